//===- AttentionForm.cpp - which kernels are attention --------------------===//
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Roles.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

static unsigned loopOf(linalg::GenericOp op, OpOperand *operand,
                       unsigned axis) {
  return op.getMatchingIndexingMap(operand).getDimPosition(axis);
}

unsigned Attention::axes() const {
  return cast<RankedTensorType>(rows.given.getType()).getRank();
}

unsigned Attention::scoresLoop(unsigned axis) const {
  linalg::GenericOp op = scores;
  return loopOf(op, op.getDpsInitOperand(0), axis);
}

unsigned Attention::valuesLoop(unsigned axis) const {
  return loopOf(values, weights, axis);
}

int64_t Attention::queryCount() const {
  return staticLoopExtent(scores, scoresLoop(rows.axis));
}

int64_t Attention::keyCount() const {
  return staticLoopExtent(scores, scoresLoop(axes() - 1));
}

/// Whether `op` sums up products of two tensors that are read along plain
/// loops, all of one type.
static bool isPlainProduct(linalg::GenericOp op) {
  if (!isFloatProduct(op) || op.getNumReductionLoops() == 0)
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0));
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return getElementTypeOrSelf(operand.get()) == element &&
           op.getMatchingIndexingMap(&operand).isProjectedPermutation();
  });
}

static bool isElementwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op->getNumResults() == 1 &&
         op.getIndexingMapMatchingResult(op->getOpResult(0)).isIdentity();
}

/// Sorts the operands of the products.
static bool sortOperands(Attention &attention) {
  linalg::GenericOp scores = attention.scores, values = attention.values;
  unsigned last = attention.axes() - 1;
  auto alongKeys = [&](OpOperand *operand) {
    return scores.getMatchingIndexingMap(operand).isFunctionOfDim(
        attention.scoresLoop(last));
  };
  attention.queries = scores.getDpsInputOperand(0);
  attention.keys = scores.getDpsInputOperand(1);
  if (alongKeys(attention.queries))
    std::swap(attention.queries, attention.keys);
  attention.weights = values.getDpsInputOperand(0);
  attention.vectors = values.getDpsInputOperand(1);
  if (dependsOn(attention.vectors->get(), scores))
    std::swap(attention.weights, attention.vectors);
  return !alongKeys(attention.queries) && alongKeys(attention.keys) &&
         !dependsOn(attention.vectors->get(), scores);
}

/// Whether the loops are those of attention: sums of values go along the last
/// axis of the weights, and some other axis is of queries alone.
static bool sortLoops(Attention &attention) {
  linalg::GenericOp scores = attention.scores, values = attention.values;
  unsigned last = attention.axes() - 1;
  SmallVector<unsigned> sums;
  values.getReductionDims(sums);
  if (last == 0 || scores.getNumParallelLoops() != last + 1 ||
      values.getNumLoops() != last + 2 || sums.size() != 1 ||
      values.getMatchingIndexingMap(attention.weights).getNumResults() !=
          last + 1 ||
      attention.valuesLoop(last) != sums[0])
    return false;
  for (linalg::GenericOp op : {scores, values})
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (staticLoopExtent(op, loop) == 0)
        return false;
  AffineMap weights = values.getMatchingIndexingMap(attention.weights);
  AffineMap vectors = values.getMatchingIndexingMap(attention.vectors);
  for (unsigned loop = 0; loop < values.getNumLoops(); ++loop)
    if (!weights.isFunctionOfDim(loop))
      attention.column = loop;
  if (!vectors.isFunctionOfDim(attention.column) ||
      !vectors.isFunctionOfDim(sums[0]) ||
      ShapedType::isDynamic(staticLoopExtent(values, attention.column)))
    return false;
  for (unsigned loop = 0; loop < scores.getNumLoops(); ++loop)
    if (scores.getIteratorTypesArray()[loop] ==
            utils::IteratorType::reduction &&
        ShapedType::isDynamic(staticLoopExtent(scores, loop)))
      return false;
  // Of several axes of queries the longest.
  int64_t most = 1;
  for (unsigned axis = 0; axis < last; ++axis) {
    unsigned loop = attention.scoresLoop(axis);
    int64_t extent = staticLoopExtent(scores, loop);
    auto reads = [&](OpOperand *operand) {
      return scores.getMatchingIndexingMap(operand).isFunctionOfDim(loop);
    };
    if (extent >= most && reads(attention.queries) && !reads(attention.keys) &&
        !vectors.isFunctionOfDim(attention.valuesLoop(axis))) {
      attention.rows.axis = axis;
      most = extent + 1;
    }
  }
  return most > 1;
}

std::optional<Attention> attentionOf(Kernel &kernel, const VectorUnit &unit) {
  Attention attention;
  SmallVector<linalg::GenericOp> ops(kernel.from().getOps<linalg::GenericOp>());
  for (linalg::GenericOp op : ops) {
    if (!isPlainProduct(op))
      continue;
    if (attention.values)
      return std::nullopt;
    (attention.scores ? attention.values : attention.scores) = op;
  }
  if (!attention.values ||
      !dependsOn(attention.values->getResult(0), attention.scores))
    return std::nullopt;
  // What each score gives by itself is computed with it.
  RowBlock &rows = attention.rows;
  rows.given = attention.scores->getResult(0);
  SmallVector<linalg::GenericOp> withScores;
  rows.given = lastOfChain(rows.given, withScores);
  if (!sortOperands(attention) || !sortLoops(attention))
    return std::nullopt;
  rows.result = attention.weights->get();
  for (linalg::GenericOp op : ops) {
    if (op == attention.scores || op == attention.values ||
        llvm::is_contained(withScores, op))
      continue;
    Value result = op->getResult(0);
    if (!dependsOn(result, attention.scores))
      return std::nullopt;
    if (!dependsOn(result, attention.values))
      rows.ops.push_back(op);
    else if (!isElementwise(op))
      return std::nullopt;
  }
  if (rows.result == rows.given || !positionOf(rows.given, attention.scores) ||
      getElementTypeOrSelf(rows.given) != getElementTypeOrSelf(rows.result) ||
      !fitsRowBlock(kernel, rows, unit) ||
      !llvm::all_of(kernel.results(), [&](Value result) {
        return positionOf(result, attention.values).has_value();
      }))
    return std::nullopt;
  attention.softmax = rowSoftmaxOf(rows.result);
  // Nothing but the four ops of it.
  if (attention.softmax &&
      (attention.softmax->given != rows.given || rows.ops.size() != 4 ||
       !startsFromZero(attention.values)))
    attention.softmax.reset();
  return attention;
}

} // namespace keratin
