//===- Attention.cpp - products with weights of rows between --------------===//
#include "passes/Attention.h"

#include "ir/FloatProducts.h"
#include "ir/RowSoftmax.h"
#include "passes/KernelGroups.h"
#include "passes/OpKinds.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {

namespace {
/// What leads from a product of scores to the product of values.
class AttentionFinder {
public:
  AttentionFinder(linalg::GenericOp values,
                  llvm::function_ref<bool(Operation *)> isFree)
      : values(values), isFree(isFree) {}

  SmallVector<Operation *> run();

private:
  using Ops = llvm::SmallSetVector<Operation *, 8>;

  bool readsWeights(OpOperand &weights, OpOperand &vectors);
  bool findScores(Value weights);
  bool staysInside(Operation *op);
  bool fitsRows();
  bool isSoftmax();
  bool hasRows(OpOperand &weights, OpOperand &vectors);

  linalg::GenericOp values, scores;
  llvm::function_ref<bool(Operation *)> isFree;
  Ops between; ///< what follows from the scores, in block order
};
} // namespace

/// Whether `generic` is a product of sums from a constant whose operands are
/// all of one type, that of the sums, and read along plain loops.
static bool isPlainProduct(linalg::GenericOp generic) {
  if (!isProduct(generic) || kindOf(generic) != "matmul" ||
      generic->getNumResults() != 1 ||
      !generic.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return false;
  Type element = getElementTypeOrSelf(generic->getResult(0));
  return (element.isF32() || element.isF64()) &&
         llvm::all_of(generic->getOpOperands(), [&](OpOperand &operand) {
           return getElementTypeOrSelf(operand.get()) == element &&
                  generic.getMatchingIndexingMap(&operand)
                      .isProjectedPermutation();
         });
}

/// Whether `value` is known at compile time.
static bool isConstant(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      return matchPattern(op, m_Constant());
    value = op->getOperand(0);
  }
  return false;
}

/// Whether the values are summed up along the last axis of the weights alone,
/// and have columns of their own.
bool AttentionFinder::readsWeights(OpOperand &weights, OpOperand &vectors) {
  AffineMap map = values.getMatchingIndexingMap(&weights);
  AffineMap other = values.getMatchingIndexingMap(&vectors);
  SmallVector<unsigned> sums;
  values.getReductionDims(sums);
  return sums.size() == 1 && map.getNumResults() >= 2 &&
         map.getDimPosition(map.getNumResults() - 1) == sums[0] &&
         other.isFunctionOfDim(sums[0]) &&
         map.getNumResults() + 1 == values.getNumLoops() &&
         !isConstant(vectors.get()) && weights.get() != vectors.get();
}

/// Finds the last product that `weights` follow from, and what is between.
bool AttentionFinder::findScores(Value weights) {
  constexpr size_t mostOps = 24;
  auto shape = cast<ShapedType>(weights.getType()).getShape();
  Ops seen;
  auto add = [&](Value value) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (op && op->getBlock() == values->getBlock())
      seen.insert(op);
  };
  add(weights);
  for (size_t next = 0; next < seen.size(); ++next) {
    auto op = cast<linalg::GenericOp>(seen[next]);
    if (isPlainProduct(op) &&
        cast<ShapedType>(op.getResult(0).getType()).getShape() == shape) {
      if (!scores || scores->isBeforeInBlock(op))
        scores = op;
    } else if (isElementwise(op) || isRowReduction(op)) {
      llvm::for_each(op->getOperands(), add);
    }
    if (seen.size() > mostOps)
      return false;
  }
  if (!scores)
    return false;
  SmallVector<Operation *> inOrder(seen.getArrayRef());
  llvm::sort(inOrder, [](Operation *left, Operation *right) {
    return left->isBeforeInBlock(right);
  });
  for (Operation *op : inOrder)
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *source = operand.getDefiningOp();
          return source && (source == scores || between.contains(source));
        }))
      between.insert(op);
  return between.contains(weights.getDefiningOp());
}

/// Whether `op` can be part of the kernel, and nobody outside needs it.
bool AttentionFinder::staysInside(Operation *op) {
  return isFree(op) && op->getNumResults() == 1 &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return user == values || between.contains(user);
         });
}

/// Whether what is between is elementwise and then a softmax: rows of any
/// length can be gone over in blocks.
bool AttentionFinder::isSoftmax() {
  std::optional<RowSoftmax> softmax =
      rowSoftmaxOf(between.back()->getResult(0));
  SmallVector<linalg::GenericOp> before;
  return softmax &&
         lastOfChain(scores->getResult(0), before) == softmax->given &&
         between.size() == before.size() + 4 && startsFromZero(values);
}

/// Whether what is between follows row by row from the scores, with a reduction
/// of the row among it.
bool AttentionFinder::fitsRows() {
  // A block of few queries has more bytes than this, in memory of the arena.
  constexpr int64_t mostBytes = 2 * maxRowBytes;
  auto shape = cast<ShapedType>(scores.getResult(0).getType()).getShape();
  RowShape row(shape, shape.size() - 1);
  auto isMember = [&](Operation *op) { return between.contains(op); };
  bool reduces = false;
  for (Operation *op : between) {
    auto generic = cast<linalg::GenericOp>(op);
    reduces |= isRowReduction(op);
    if (!row.fits(generic, isMember))
      return false;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getDefiningOp() == scores &&
          !(generic.isDpsInput(&operand) && row.isWhole(generic) &&
            generic.getMatchingIndexingMap(&operand).isIdentity()))
        return false;
  }
  bool isStatic = llvm::none_of(row.row(), ShapedType::isDynamic);
  return reduces && (row.bytes() <= mostBytes || (isStatic && isSoftmax()));
}

/// Whether some axis of the scores goes along rows of queries that share their
/// keys and values, enough of them to work on some at a time.
bool AttentionFinder::hasRows(OpOperand &weights, OpOperand &vectors) {
  constexpr int64_t fewest = 8, mostDepth = 2048;
  AffineMap output = scores.getMatchingIndexingMap(scores.getDpsInitOperand(0));
  AffineMap read = values.getMatchingIndexingMap(&weights);
  unsigned last = output.getNumResults() - 1;
  OpOperand *queries = scores.getDpsInputOperand(0);
  OpOperand *keys = scores.getDpsInputOperand(1);
  auto dependsOn = [&](OpOperand *operand, unsigned axis) {
    return scores.getMatchingIndexingMap(operand).isFunctionOfDim(
        output.getDimPosition(axis));
  };
  if (dependsOn(queries, last))
    std::swap(queries, keys);
  if (dependsOn(queries, last) || !dependsOn(keys, last) ||
      output.getNumResults() != scores.getNumParallelLoops() ||
      isConstant(keys->get()))
    return false;
  SmallVector<unsigned> sums;
  scores.getReductionDims(sums);
  SmallVector<int64_t> extents = scores.getStaticLoopRanges();
  int64_t depth = 1;
  for (unsigned loop : sums)
    depth = ShapedType::isDynamic(extents[loop])
                ? mostDepth + 1
                : llvm::SaturatingMultiply<uint64_t>(depth, extents[loop]);
  int64_t columns = 0;
  for (auto [loop, extent] : llvm::enumerate(values.getStaticLoopRanges()))
    if (!read.isFunctionOfDim(loop))
      columns = extent;
  if (depth < 1 || depth > mostDepth ||
      extents[output.getDimPosition(last)] < fewest || columns < 4)
    return false;
  for (unsigned axis = 0; axis < last; ++axis)
    if (extents[output.getDimPosition(axis)] >= fewest &&
        dependsOn(queries, axis) && !dependsOn(keys, axis) &&
        !values.getMatchingIndexingMap(&vectors).isFunctionOfDim(
            read.getDimPosition(axis)))
      return true;
  return false;
}

SmallVector<Operation *> AttentionFinder::run() {
  if (!isPlainProduct(values) || !isFree(values))
    return {};
  for (unsigned number : {0u, 1u}) {
    OpOperand &weights = *values.getDpsInputOperand(number);
    OpOperand &vectors = *values.getDpsInputOperand(1 - number);
    scores = {};
    between.clear();
    if (!readsWeights(weights, vectors) || !findScores(weights.get()) ||
        !staysInside(scores) ||
        !llvm::all_of(between,
                      [&](Operation *op) { return staysInside(op); }) ||
        !fitsRows() || !hasRows(weights, vectors))
      continue;
    SmallVector<Operation *> ops = {scores};
    llvm::append_range(ops, between);
    ops.push_back(values);
    return ops;
  }
  return {};
}

SmallVector<Operation *>
findAttention(linalg::GenericOp values,
              llvm::function_ref<bool(Operation *)> isFree) {
  return AttentionFinder(values, isFree).run();
}

} // namespace keratin
