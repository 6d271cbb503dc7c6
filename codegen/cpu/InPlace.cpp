//===- InPlace.cpp - what a kernel may be written over --------------------===//
#include "codegen/cpu/InPlace.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace keratin {

namespace {
/// Follows the results of a kernel to the arguments that they are computed
/// from.
class Reads {
public:
  explicit Reads(linalg::GenericOp root) : root(root) {}

  /// Visits `tensor`, which is read at the position that is computed or, if not
  /// `same`, anywhere.
  void visit(Value tensor, bool same);

  /// Whether `argument` is read at the position that is computed alone.
  bool isInPlace(BlockArgument argument) const {
    return !elsewhere.contains(argument);
  }
  /// Whether the root is read at another position: then results that belong to
  /// one of its sums are at different ones.
  bool leavesRoot = false;

private:
  linalg::GenericOp root;
  llvm::DenseSet<std::pair<Operation *, unsigned>> seen;
  llvm::DenseSet<Value> elsewhere;
};
} // namespace

void Reads::visit(Value tensor, bool same) {
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    if (!same)
      elsewhere.insert(tensor);
    return;
  }
  if (!seen.insert({op, unsigned(same)}).second)
    return;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (op == root) {
    leavesRoot |= !same;
    same = false;
  }
  if (!generic) { // views, pads and what else reads an argument
    for (Value operand : op->getOperands())
      visit(operand, /*same=*/false);
    return;
  }
  for (Value result : op->getResults())
    same &= generic.getIndexingMapMatchingResult(cast<OpResult>(result))
                .isIdentity();
  for (OpOperand &operand : op->getOpOperands())
    if (!generic.getMatchingBlockArgument(&operand).use_empty())
      visit(operand.get(),
            same && generic.getMatchingIndexingMap(&operand).isIdentity());
  for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>())
    visit(extract.getTensor(), /*same=*/false);
}

void markInPlace(Kernel &kernel, linalg::GenericOp root, bool severalSums) {
  Reads reads(root);
  auto shape =
      cast<RankedTensorType>(kernel.results().front().getType()).getShape();
  for (Value result : kernel.results()) {
    if (!result.getDefiningOp<linalg::GenericOp>() ||
        cast<RankedTensorType>(result.getType()).getShape() != shape)
      return;
    reads.visit(result, /*same=*/true);
  }
  if ((reads.leavesRoot && !severalSums) || ShapedType::isDynamicShape(shape))
    return;
  func::FuncOp from = kernel.from();
  unsigned inputs = from.getNumArguments() - from.getNumResults();
  for (BlockArgument argument : from.getArguments().take_front(inputs)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getShape() == shape && reads.isInPlace(argument))
      kernel.to().setArgAttr(argument.getArgNumber(), "ktn.in_place",
                             kernel.builder().getUnitAttr());
  }
}

} // namespace keratin
