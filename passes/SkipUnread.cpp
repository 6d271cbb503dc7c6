//===- SkipUnread.cpp - what is never read is not computed ----------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#include <numeric>

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_SKIPUNREAD
#include "passes/Passes.h.inc"

namespace {

/// Which elements along an axis are read: the first `count` multiples of
/// `step`.
struct Reads {
  int64_t step = 0, count = 0;
};

/// `expr` without the loops of one turn, which are at 0.
AffineExpr withoutUnitLoops(AffineExpr expr, ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> loops;
  for (auto [loop, extent] : llvm::enumerate(extents))
    loops.push_back(extent == 1
                        ? getAffineConstantExpr(0, expr.getContext())
                        : getAffineDimExpr(unsigned(loop), expr.getContext()));
  return expr.replaceDims(loops);
}

/// The multiples that a reader with `expr` for the axis goes to, if it is a
/// multiple of one loop; nothing otherwise.
std::optional<Reads> readsOf(AffineExpr expr, ArrayRef<int64_t> extents) {
  expr = withoutUnitLoops(expr, extents);
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!product || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto loop = dyn_cast<AffineDimExpr>(product.getLHS());
  auto step = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!loop || !step || step.getValue() <= 1 ||
      ShapedType::isDynamic(extents[loop.getPosition()]))
    return std::nullopt;
  return Reads{step.getValue(), extents[loop.getPosition()]};
}

/// What all readers of `axis` of `value` together read; nothing where one of
/// them reads elements side by side.
std::optional<Reads> findReads(Value value, int64_t axis) {
  Reads all;
  SmallVector<Reads> each;
  for (OpOperand &use : value.getUses()) {
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!reader || !reader.isDpsInput(&use))
      return std::nullopt;
    std::optional<Reads> reads =
        readsOf(reader.getMatchingIndexingMap(&use).getResult(unsigned(axis)),
                reader.getStaticLoopRanges());
    if (!reads)
      return std::nullopt;
    each.push_back(*reads);
    all.step = std::gcd(all.step, reads->step);
  }
  if (all.step <= 1)
    return std::nullopt;
  for (Reads reads : each)
    all.count =
        std::max(all.count, (reads.count - 1) * (reads.step / all.step) + 1);
  return all;
}

/// `init`, an unset tensor or one number everywhere, as a tensor of `type`;
/// null for others.
Value resized(OpBuilder &b, Value init, RankedTensorType type) {
  if (auto empty = init.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, empty.getLoc(), type,
                                   empty.getDynamicSizes());
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return {};
  Value memory = resized(b, fill.getOutputs()[0], type);
  if (!memory)
    return {};
  return linalg::FillOp::create(b, fill.getLoc(), fill.getInputs(), memory)
      .getResult(0);
}

/// The dimension of the loops that is `axis` of what `op` computes, if that is
/// all it is there.
std::optional<unsigned> loopOf(linalg::GenericOp op, int64_t axis) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto loop = dyn_cast<AffineDimExpr>(map.getResult(unsigned(axis)));
  if (!loop || !map.isProjectedPermutation() ||
      op.getIteratorTypesArray()[loop.getPosition()] !=
          utils::IteratorType::parallel)
    return std::nullopt;
  return loop.getPosition();
}

/// Lets `op` compute the elements along `axis` that `reads` says, and its
/// readers find them there. Returns what takes its place; null, and nothing
/// changes, where that does not apply.
linalg::GenericOp thinOut(linalg::GenericOp op, int64_t axis, Reads reads) {
  std::optional<unsigned> loop = loopOf(op, axis);
  if (!loop)
    return {};
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[size_t(axis)] = reads.count;
  OpBuilder b(op);
  Value init = resized(b, op.getDpsInits()[0], type.clone(shape));
  if (!init)
    return {};
  MLIRContext *context = op.getContext();
  AffineExpr here = getAffineDimExpr(*loop, context);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [operand, map] : llvm::zip(op->getOpOperands(), maps))
    if (op.isDpsInput(&operand))
      map = map.replace(here, here * reads.step, map.getNumDims(), 0);
  auto thin =
      linalg::GenericOp::create(b, op.getLoc(), init.getType(), op.getInputs(),
                                init, maps, op.getIteratorTypesArray());
  thin->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  thin.getRegion().takeBody(op.getRegion());
  for (OpOperand &use : llvm::make_early_inc_range(op.getResult(0).getUses())) {
    auto reader = cast<linalg::GenericOp>(use.getOwner());
    SmallVector<AffineMap> readerMaps = reader.getIndexingMapsArray();
    AffineMap &map = readerMaps[use.getOperandNumber()];
    auto expr = cast<AffineBinaryOpExpr>(withoutUnitLoops(
        map.getResult(unsigned(axis)), reader.getStaticLoopRanges()));
    int64_t step = cast<AffineConstantExpr>(expr.getRHS()).getValue();
    SmallVector<AffineExpr> results(map.getResults());
    results[size_t(axis)] = expr.getLHS() * (step / reads.step);
    map = AffineMap::get(map.getNumDims(), 0, results, context);
    reader.setIndexingMapsAttr(b.getAffineMapArrayAttr(readerMaps));
    use.set(thin.getResult(0));
  }
  op.erase();
  return thin;
}

struct SkipUnread : impl::SkipUnreadBase<SkipUnread> {
  void runOnOperation() override {
    // Readers come first: what they skip their operands need not have.
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : llvm::reverse(ops)) {
      if (op->getNumResults() != 1 || op.hasIndexSemantics())
        continue;
      auto type = cast<RankedTensorType>(op.getResult(0).getType());
      for (int64_t axis = 0; axis < type.getRank(); ++axis) {
        std::optional<Reads> reads = findReads(op.getResult(0), axis);
        if (type.isDynamicDim(unsigned(axis)) || !reads)
          continue;
        if (linalg::GenericOp thin = thinOut(op, axis, *reads))
          op = thin;
      }
    }
  }
};

} // namespace
} // namespace keratin
