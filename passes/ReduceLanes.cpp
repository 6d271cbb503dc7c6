//===- ReduceLanes.cpp - sums over the lanes of a vector as trees ---------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_REDUCELANES
#include "passes/Passes.h.inc"

namespace {

struct ReduceAsTree : OpRewritePattern<vector::ReductionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::ReductionOp op,
                                PatternRewriter &rewriter) const override {
    if (!isa<FloatType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "LLVM may order integers itself");
    if (op.getSourceVectorType().isScalable())
      return rewriter.notifyMatchFailure(op, "the number of lanes is open");
    Value result = reduce(rewriter, op, op.getVector());
    if (Value start = op.getAcc())
      result = vector::makeArithReduction(rewriter, op.getLoc(), op.getKind(),
                                          result, start);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value slice(PatternRewriter &rewriter, Location loc, Value vector,
                     int64_t begin, int64_t count) {
    return vector::ExtractStridedSliceOp::create(
        rewriter, loc, vector, ArrayRef<int64_t>{begin},
        ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  }

  /// Folds halves onto each other; what is beyond a power of two comes last.
  static Value reduce(PatternRewriter &rewriter, vector::ReductionOp op,
                      Value vector) {
    Location loc = op.getLoc();
    int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
    int64_t even = int64_t(1) << llvm::Log2_64(lanes);
    Value rest;
    if (even != lanes) {
      rest = reduce(rewriter, op,
                    slice(rewriter, loc, vector, even, lanes - even));
      vector = slice(rewriter, loc, vector, 0, even);
    }
    for (int64_t half = even / 2; half > 0; half /= 2)
      vector = vector::makeArithReduction(
          rewriter, loc, op.getKind(), slice(rewriter, loc, vector, 0, half),
          slice(rewriter, loc, vector, half, half));
    Value result = vector::ExtractOp::create(rewriter, loc, vector, 0);
    if (rest)
      result =
          vector::makeArithReduction(rewriter, loc, op.getKind(), result, rest);
    return result;
  }
};

struct ReduceLanes : impl::ReduceLanesBase<ReduceLanes> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ReduceAsTree>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace keratin
