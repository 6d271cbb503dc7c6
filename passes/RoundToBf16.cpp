//===- RoundToBf16.cpp - to bf16, without a library -----------------------===//
#include "passes/Lanes.h"
#include "passes/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_ROUNDTOBF16
#include "passes/Passes.h.inc"

namespace {

/// The nearest number of bf16, of two the even one: a bf16 is the first half of
/// a float, so that half of its last place is added, less one for even numbers.
Value roundBits(ImplicitLocOpBuilder &b, Value number) {
  Type type = number.getType();
  Type i16 = likewise(type, b.getI16Type()),
       i32 = likewise(type, b.getI32Type());
  auto constant = [&](int32_t bits) {
    return splat(b, b.getLoc(), i32, b.getI32IntegerAttr(bits));
  };
  Value isNan =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, number, number);
  // Chosen first: LLVM would move the last operation in front of a choice, and
  // choose between numbers of bf16, for which it may call its library.
  Value bits = arith::SelectOp::create(
      b, isNan, constant(0x7fc00000), arith::BitcastOp::create(b, i32, number));
  Value half = constant(16);
  Value odd = arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, half),
                                    constant(1));
  Value sum = arith::AddIOp::create(
      b, arith::AddIOp::create(b, bits, constant(0x7fff)), odd);
  Value rounded = arith::ShRUIOp::create(b, sum, half);
  return arith::BitcastOp::create(b, likewise(type, b.getBF16Type()),
                                  arith::TruncIOp::create(b, i16, rounded));
}

/// Any conversion to bf16 by way of f32. From f64 that rounds twice, from a
/// wide integer too: by at most half of a bf16 ulp and a bit.
template <typename OpTy> struct ConvertByF32 : OpRewritePattern<OpTy> {
  ConvertByF32(MLIRContext *context, bool expand)
      : OpRewritePattern<OpTy>(context), expand(expand) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    Type from = getElementTypeOrSelf(op.getIn().getType());
    if (!getElementTypeOrSelf(type).isBF16() || (from.isF32() && !expand))
      return rewriter.notifyMatchFailure(op, "is one step already");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type wide = likewise(type, b.getF32Type());
    Value number = op.getIn();
    if (from.isF16())
      number = arith::ExtFOp::create(b, wide, number);
    else if (!from.isF32())
      number = OpTy::create(b, wide, number);
    if (expand)
      rewriter.replaceOp(op, roundBits(b, number));
    else
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, number);
    return success();
  }

private:
  bool expand;
};

struct RoundToBf16 : impl::RoundToBf16Base<RoundToBf16> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvertByF32<arith::TruncFOp>, ConvertByF32<arith::SIToFPOp>,
                 ConvertByF32<arith::UIToFPOp>>(&getContext(), expand);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace keratin
