//===- SmallWeights.cpp - what gains by weights of 16 bits ----------------===//
#include "passes/SmallWeights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace keratin {

bool hasWindow(linalg::GenericOp op) {
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    return !op.getMatchingIndexingMap(input).isProjectedPermutation();
  });
}

/// Whether `op` goes over windows of more than one element.
static bool hasLargeWindow(linalg::GenericOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto types = op.getIteratorTypesArray();
  for (OpOperand *input : op.getDpsInputOperands())
    for (AffineExpr place : op.getMatchingIndexingMap(input).getResults())
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (!isa<AffineDimExpr>(place) && place.isFunctionOfDim(loop) &&
            types[loop] == utils::IteratorType::reduction && extents[loop] != 1)
          return true;
  return false;
}

bool gainsBySmallWeights(linalg::GenericOp product, Value weights) {
  constexpr int64_t mostBytes = 1 << 20; // as f32, in the second cache
  auto type = cast<RankedTensorType>(weights.getType());
  bool stays = product->getParentOfType<LoopLikeOpInterface>() &&
               type.getNumElements() <= mostBytes / int64_t(sizeof(float));
  return !hasLargeWindow(product) && !stays;
}

void readWidened(linalg::GenericOp op, OpOperand &input) {
  Type element = getElementTypeOrSelf(input.get());
  BlockArgument argument = op.getMatchingBlockArgument(&input);
  if (argument.getType() == element)
    return;
  OpBuilder b(op.getContext());
  argument.setType(element);
  b.setInsertionPointToStart(op.getBody());
  auto widened =
      arith::ExtFOp::create(b, op.getLoc(), b.getF32Type(), argument);
  argument.replaceAllUsesExcept(widened, widened);
}

} // namespace keratin
