//===- Frames.cpp - calls that only put values in places ------------------===//
#include "passes/Frames.h"

#include "passes/PlaceParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

static bool addParts(Frame &frame, func::CallOp call, tensor::ConcatOp concat) {
  int64_t axis = concat.getDim(), offset = 0;
  for (Value input : concat.getInputs()) {
    auto argument = dyn_cast<BlockArgument>(input);
    auto type = cast<RankedTensorType>(input.getType());
    if (!argument || !canBeSlice(type) || type.isDynamicDim(axis))
      return false;
    Part part = {call.getOperand(argument.getArgNumber()), {}};
    part.offsets.assign(type.getRank(), 0);
    part.offsets[axis] = offset;
    offset += type.getDimSize(axis);
    frame.parts.push_back(part);
  }
  return true;
}

static bool addPart(Frame &frame, func::CallOp call, tensor::PadOp pad) {
  auto argument = dyn_cast<BlockArgument>(pad.getSource());
  auto type = cast<RankedTensorType>(pad.getSource().getType());
  Value border = pad.getConstantPaddingValue();
  if (!argument || !canBeSlice(type) || !border ||
      !border.getDefiningOp<arith::ConstantOp>())
    return false;
  for (auto [axis, low, high] :
       llvm::enumerate(pad.getStaticLow(), pad.getStaticHigh())) {
    bool fixed = type.isDynamicDim(axis) || axis + 1 == size_t(type.getRank());
    if (low < 0 || high < 0 || (fixed && (low != 0 || high != 0)))
      return false;
  }
  frame.parts.push_back({call.getOperand(argument.getArgNumber()),
                         SmallVector<int64_t>(pad.getStaticLow())});
  frame.pad = pad;
  return true;
}

std::optional<Frame> frameOf(func::CallOp call, func::FuncOp kernel) {
  if (!kernel || !kernel->hasAttr("ktn.kernel") || kernel.isExternal() ||
      call.getNumResults() != 1)
    return std::nullopt;
  Operation *only = nullptr;
  for (Operation &op : kernel.front().without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (only)
      return std::nullopt;
    only = &op;
  }
  Frame frame;
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(only)) {
    if (addParts(frame, call, concat))
      return frame;
  } else if (auto pad = dyn_cast_or_null<tensor::PadOp>(only)) {
    if (addPart(frame, call, pad))
      return frame;
  }
  return std::nullopt;
}

} // namespace keratin
