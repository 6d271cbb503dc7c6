//===- Linear.cpp - products ----------------------------------------------===//
#include "passes/lower/Lower.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// y[batch, m, n] = sum over k of lhs[batch, m, k] * rhs[batch, n, k], where
/// each of batch, m, n and k stands for any number of axes at any place.
struct LowerDotGeneral : Lowering<ktn::DotGeneralOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::DotGeneralOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value lhs = operands.getLhs(), rhs = operands.getRhs();
    SmallVector<AffineExpr> lhsExprs(tensorType(lhs).getRank());
    SmallVector<AffineExpr> rhsExprs(tensorType(rhs).getRank());
    SmallVector<OpFoldResult> sizes;
    unsigned loops = 0;

    for (auto [i, j] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch())) {
      lhsExprs[i] = rhsExprs[j] = b.getAffineDimExpr(loops++);
      sizes.push_back(sizeOf(b, loc, lhs, i));
    }
    auto addFree = [&](Value side, MutableArrayRef<AffineExpr> exprs,
                       ArrayRef<int64_t> contracted) {
      for (auto [axis, expr] : llvm::enumerate(exprs)) {
        if (expr || llvm::is_contained(contracted, axis))
          continue;
        expr = b.getAffineDimExpr(loops++);
        sizes.push_back(sizeOf(b, loc, side, axis));
      }
    };
    addFree(lhs, lhsExprs, op.getLhsContract());
    addFree(rhs, rhsExprs, op.getRhsContract());
    for (auto [i, j] :
         llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
      lhsExprs[i] = rhsExprs[j] = b.getAffineDimExpr(loops++);

    AffineMap maps[] = {AffineMap::get(loops, 0, lhsExprs, b.getContext()),
                        AffineMap::get(loops, 0, rhsExprs, b.getContext()),
                        firstLoops(b, loops, sizes.size())};
    return createContraction(b, loc, type, sizes, {lhs, rhs}, maps,
                             loops - sizes.size());
  }
};

} // namespace

void populateLinear(const TypeConverter &converter,
                    RewritePatternSet &patterns) {
  patterns.add<LowerDotGeneral>(converter, patterns.getContext());
}

} // namespace keratin::lower
