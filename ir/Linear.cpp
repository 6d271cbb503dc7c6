#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// dot_general
//===----------------------------------------------------------------------===//

/// The axes of a tensor of `rank` that are in neither list.
static SmallVector<int64_t> freeAxes(int64_t rank, ArrayRef<int64_t> batch,
                                     ArrayRef<int64_t> contract) {
  SmallVector<int64_t> axes;
  for (int64_t axis : llvm::seq<int64_t>(rank))
    if (!llvm::is_contained(batch, axis) && !llvm::is_contained(contract, axis))
      axes.push_back(axis);
  return axes;
}

/// Axes of one operand: in range, none in two places.
static LogicalResult checkDotAxes(MaybeLoc location, StringRef operand,
                                  int64_t rank, ArrayRef<int64_t> batch,
                                  ArrayRef<int64_t> contract) {
  SmallVector<bool> seen(rank, false);
  for (int64_t axis : llvm::concat<const int64_t>(batch, contract)) {
    if (axis < 0 || axis >= rank)
      return emitOptionalError(location, operand, " has rank ", rank,
                               " but its axis ", axis, " is used");
    if (seen[axis])
      return emitOptionalError(location, "axis ", axis, " of ", operand,
                               " is used twice");
    seen[axis] = true;
  }
  return success();
}

/// Paired axes have one extent; those of batch axes go to `shape`.
static LogicalResult pairAxes(MaybeLoc location, StringRef kind,
                              RankedTensorType lhs, RankedTensorType rhs,
                              ArrayRef<int64_t> lhsAxes,
                              ArrayRef<int64_t> rhsAxes,
                              SmallVectorImpl<int64_t> &shape) {
  if (lhsAxes.size() != rhsAxes.size())
    return emitOptionalError(location, "lhs has ", lhsAxes.size(), " ", kind,
                             " axes but rhs has ", rhsAxes.size());
  for (auto [left, right] : llvm::zip_equal(lhsAxes, rhsAxes)) {
    FailureOr<int64_t> extent =
        mergeExtents(lhs.getDimSize(left), rhs.getDimSize(right));
    if (failed(extent))
      return emitOptionalError(location, kind, " axis ", left, " of lhs ",
                               formatShape(lhs.getShape()), " has ",
                               lhs.getDimSize(left), " elements but axis ",
                               right, " of rhs ", formatShape(rhs.getShape()),
                               " has ", rhs.getDimSize(right));
    shape.push_back(*extent);
  }
  return success();
}

LogicalResult DotGeneralOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                             Adaptor adaptor,
                                             InferredTypes &types) {
  FailureOr<RankedTensorType> lhs = inferRanked(location, adaptor.getLhs());
  FailureOr<RankedTensorType> rhs = inferRanked(location, adaptor.getRhs());
  if (failed(lhs) || failed(rhs))
    return failure();
  if (lhs->getElementType() != rhs->getElementType())
    return emitOptionalError(location, "operands have the element types ",
                             lhs->getElementType(), " and ",
                             rhs->getElementType());
  ArrayRef<int64_t> lhsBatch = adaptor.getLhsBatch();
  ArrayRef<int64_t> rhsBatch = adaptor.getRhsBatch();
  ArrayRef<int64_t> lhsContract = adaptor.getLhsContract();
  ArrayRef<int64_t> rhsContract = adaptor.getRhsContract();
  SmallVector<int64_t> shape, contracted;
  if (failed(checkDotAxes(location, "lhs", lhs->getRank(), lhsBatch,
                          lhsContract)) ||
      failed(checkDotAxes(location, "rhs", rhs->getRank(), rhsBatch,
                          rhsContract)) ||
      failed(
          pairAxes(location, "batch", *lhs, *rhs, lhsBatch, rhsBatch, shape)) ||
      failed(pairAxes(location, "contracted", *lhs, *rhs, lhsContract,
                      rhsContract, contracted)))
    return failure();
  for (int64_t axis : freeAxes(lhs->getRank(), lhsBatch, lhsContract))
    shape.push_back(lhs->getDimSize(axis));
  for (int64_t axis : freeAxes(rhs->getRank(), rhsBatch, rhsContract))
    shape.push_back(rhs->getDimSize(axis));
  return inferTensor(location, shape, lhs->getElementType(), types);
}

/// Reads what `operand` of `op`, a matrix for each of a batch, is a transpose
/// of, by the axes there, which are `batch` and `contract` now. Weights are
/// transposed once and for all.
static LogicalResult readBeforeTranspose(DotGeneralOp op, OpOperand &operand,
                                         SmallVectorImpl<int64_t> &batch,
                                         SmallVectorImpl<int64_t> &contract) {
  auto transpose = operand.get().getDefiningOp<TransposeOp>();
  if (!transpose || matchPattern(transpose.getX(), m_Constant()))
    return failure();
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  auto before = [&](ArrayRef<int64_t> axes) {
    return llvm::map_to_vector(axes,
                               [&](int64_t axis) { return permutation[axis]; });
  };
  // Several that are summed over, or that the result has, may be neighbours now
  // and would be none: a product over one axis, as heads joined by a transpose,
  // would be one over two.
  if (contract.size() > 1 ||
      freeAxes(int64_t(permutation.size()), batch, contract).size() > 1)
    return failure();
  batch = before(batch);
  contract = before(contract);
  operand.set(transpose.getX());
  return success();
}

/// dot(transpose(x), y) = dot(x, y) over other axes
LogicalResult DotGeneralOp::canonicalize(DotGeneralOp op,
                                         PatternRewriter &rewriter) {
  SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch()),
      lhsContract(op.getLhsContract()), rhsContract(op.getRhsContract());
  bool changed = false;
  rewriter.startOpModification(op);
  changed |= succeeded(
      readBeforeTranspose(op, op.getLhsMutable(), lhsBatch, lhsContract));
  changed |= succeeded(
      readBeforeTranspose(op, op.getRhsMutable(), rhsBatch, rhsContract));
  if (!changed) {
    rewriter.cancelOpModification(op);
    return rewriter.notifyMatchFailure(op, "no factor is a transpose");
  }
  op.setLhsBatch(lhsBatch);
  op.setRhsBatch(rhsBatch);
  op.setLhsContract(lhsContract);
  op.setRhsContract(rhsContract);
  rewriter.finalizeOpModification(op);
  return success();
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

namespace {
/// The roles of the axes of one operand.
struct DotAxes {
  SmallVector<int64_t> batch, contract, free;
};
} // namespace

/// The cotangent of the operand with the axes `own`, given the cotangent `dy`
/// of the product with the `other` operand: dy contracted with it over the
/// other's free axes, which are at `otherInResult` in dy.
static Value dotVjp(OpBuilder &b, Location loc, Value dy, Value other,
                    const DotAxes &own, const DotAxes &others,
                    ArrayRef<int64_t> otherInResult) {
  auto batch = llvm::to_vector(llvm::seq<int64_t>(own.batch.size()));
  // The factor comes first whose axes do in the operand: then the product has
  // its axes in the order of the operand more often.
  bool otherFirst = !own.contract.empty() && !own.free.empty() &&
                    own.contract.front() < own.free.front();
  Value product =
      otherFirst ? DotGeneralOp::create(b, loc, other, dy,
                                        /*lhs_batch=*/others.batch,
                                        /*rhs_batch=*/batch,
                                        /*lhs_contract=*/others.free,
                                        /*rhs_contract=*/otherInResult)
                 : DotGeneralOp::create(b, loc, dy, other, /*lhs_batch=*/batch,
                                        /*rhs_batch=*/others.batch,
                                        /*lhs_contract=*/otherInResult,
                                        /*rhs_contract=*/others.free);

  // The product has the axes batch, own free, and the contracted ones in the
  // order in which they stand in `other`; or the last two the other way round.
  // Say where each axis comes from.
  size_t rank = own.batch.size() + own.free.size() + own.contract.size();
  SmallVector<int64_t> permutation(rank);
  SmallVector<size_t> pairs(own.contract.size());
  std::iota(pairs.begin(), pairs.end(), 0);
  llvm::sort(pairs, [&](size_t left, size_t right) {
    return others.contract[left] < others.contract[right];
  });
  auto contracted = llvm::map_to_vector(
      pairs, [&](size_t pair) { return own.contract[pair]; });
  int64_t position = 0;
  for (int64_t axis : llvm::concat<const int64_t>(
           own.batch, otherFirst ? contracted : own.free,
           otherFirst ? own.free : contracted))
    permutation[axis] = position++;
  return permuteAxes(b, loc, product, permutation);
}

Values DotGeneralOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y[b, i, j] = sum_k lhs[b, i, k] rhs[b, j, k], so
  // dlhs[b, i, k] = sum_j dy[b, i, j] rhs[b, j, k] and
  // drhs[b, j, k] = sum_i dy[b, i, j] lhs[b, i, k].
  DotAxes lhs{
      llvm::to_vector(getLhsBatch()), llvm::to_vector(getLhsContract()),
      freeAxes(getLhs().getType().getRank(), getLhsBatch(), getLhsContract())};
  DotAxes rhs{
      llvm::to_vector(getRhsBatch()), llvm::to_vector(getRhsContract()),
      freeAxes(getRhs().getType().getRank(), getRhsBatch(), getRhsContract())};
  int64_t firstLeft = lhs.batch.size();
  int64_t firstRight = firstLeft + lhs.free.size();
  int64_t end = firstRight + rhs.free.size();
  auto leftInResult = llvm::to_vector(llvm::seq(firstLeft, firstRight));
  auto rightInResult = llvm::to_vector(llvm::seq(firstRight, end));
  Value dlhs =
      dotVjp(b, getLoc(), cotangents[0], getRhs(), lhs, rhs, rightInResult);
  Value drhs =
      dotVjp(b, getLoc(), cotangents[0], getLhs(), rhs, lhs, leftInResult);
  return {sumLike(b, getLoc(), dlhs, getLhs()),
          sumLike(b, getLoc(), drhs, getRhs())};
}

//===----------------------------------------------------------------------===//
// What passes ask
//===----------------------------------------------------------------------===//

unsigned DotGeneralOp::getKernelOperandIndex() { return 1; }

int64_t DotGeneralOp::getKernelOutputAxis() {
  SmallVector<int64_t> free =
      freeAxes(getRhs().getType().getRank(), getRhsBatch(), getRhsContract());
  return free.size() == 1 ? free[0] : -1;
}

int64_t DotGeneralOp::getKernelResultAxis() {
  return getY().getType().getRank() - 1;
}

std::optional<std::pair<int64_t, int64_t>> DotGeneralOp::getJoinedAxes() {
  if (getLhsContract().empty())
    return std::nullopt;
  return std::pair(getLhsContract()[0], getRhsContract()[0]);
}

bool DotGeneralOp::isRowwise() {
  int64_t last = getLhs().getType().getRank() - 1;
  return getLhsBatch().empty() && getRhs().getType().getRank() == 2 &&
         getLhsContract() == ArrayRef<int64_t>(last) &&
         getRhsContract() == ArrayRef<int64_t>(0);
}

Value DotGeneralOp::buildRows(OpBuilder &b, ValueRange operands) {
  return DotGeneralOp::create(
      b, getLoc(), operands[0], operands[1], getLhsBatch(), getRhsBatch(),
      /*lhs_contract=*/ArrayRef<int64_t>(1), getRhsContract());
}

Value DotGeneralOp::buildStacked(OpBuilder &b, ValueRange operands,
                                 ArrayRef<bool> stacked) {
  // The steps are one more free axis of lhs, in front of the others.
  if (!stacked[0] || stacked[1] || !getLhsBatch().empty())
    return {};
  SmallVector<int64_t> contract(getLhsContract());
  for (int64_t &axis : contract)
    ++axis;
  return DotGeneralOp::create(b, getLoc(), operands[0], operands[1],
                              getLhsBatch(), getRhsBatch(), contract,
                              getRhsContract());
}
