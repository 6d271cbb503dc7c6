//===- StepSource.cpp - what the steps of a loop follow from --------------===//
#include "passes/StepSource.h"

using namespace mlir;

namespace keratin {

bool StepSource::advance() {
  auto op = value.getDefiningOp<ktn::StepwiseOpInterface>();
  auto source = op ? op.getStepSource(axis) : std::nullopt;
  if (!source)
    return false;
  ops.emplace_back(op, axis);
  value = op->getOperand(source->first);
  axis = source->second;
  return true;
}

StepSource sourceOf(ktn::ScanOp scan, BlockArgument slice) {
  return {scan.getXs()[slice.getArgNumber()], 0, {}};
}

Value takeFrom(const StepSource &source, ktn::ScanOp scan, BlockArgument slice,
               OpBuilder &b) {
  Value stack = source.value;
  if (source.axis != 0) {
    SmallVector<int64_t> permutation = {source.axis};
    int64_t rank = cast<RankedTensorType>(stack.getType()).getRank();
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != source.axis)
        permutation.push_back(axis);
    OpBuilder outside(scan);
    stack =
        ktn::TransposeOp::create(outside, stack.getLoc(), stack, permutation);
  }
  scan.getXsMutable()[slice.getArgNumber()].set(stack);
  auto type = cast<RankedTensorType>(stack.getType());
  slice.setType(type.clone(type.getShape().drop_front()));
  Value entry = slice;
  for (auto [op, axis] : llvm::reverse(source.ops))
    entry = ktn::StepwiseOpInterface(op).buildStep(b, axis, entry);
  return entry;
}

} // namespace keratin
