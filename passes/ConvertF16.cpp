//===- ConvertF16.cpp - to and from f16, without a library ----------------===//
//
// The bits of a number of f16 are SEEEEEMMMMMMMMMM, with an exponent that is 15
// for 1; those of f32 have 8 bits of exponent, 127 for 1, and 23 of mantissa.
//
//===----------------------------------------------------------------------===//
#include "passes/Lanes.h"
#include "passes/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_CONVERTF16
#include "passes/Passes.h.inc"

namespace {

/// Integers and comparisons of the lanes of values of one shape.
class Bits {
public:
  Bits(PatternRewriter &rewriter, Location loc, Type like)
      : b(loc, rewriter), i16(likewise(like, b.getI16Type())),
        i32(likewise(like, b.getI32Type())),
        f32(likewise(like, b.getF32Type())) {}

  Value constant(uint32_t bits) {
    return splat(b, b.getLoc(), i32,
                 b.getIntegerAttr(b.getI32Type(), APInt(32, bits)));
  }
  template <typename OpTy> Value apply(Value x, uint32_t y) {
    return OpTy::create(b, x, constant(y));
  }
  /// Unsigned; signed is the same where the highest bit is clear.
  Value isAbove(Value x, uint32_t y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, x, constant(y));
  }
  Value isBelow(Value x, uint32_t y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value asF32(Value bits) { return arith::BitcastOp::create(b, f32, bits); }
  Value bitsOf(Value number) {
    return arith::BitcastOp::create(b, i32, number);
  }

  ImplicitLocOpBuilder b;
  Type i16, i32, f32;
};

constexpr uint32_t signOfF32 = 0x80000000, infinityOfF32 = 0x7f800000,
                   quietOfF32 = 0x00400000;
/// Bits of mantissa that f32 has more.
constexpr uint32_t shift = 23 - 10;

/// The number as f32, exactly.
Value widen(Bits &bits, Value half) {
  ImplicitLocOpBuilder &b = bits.b;
  Value narrow = arith::BitcastOp::create(b, bits.i16, half);
  Value all = arith::ExtUIOp::create(b, bits.i32, narrow);
  Value magnitude = bits.apply<arith::AndIOp>(all, 0x7fff);
  Value sign =
      bits.apply<arith::ShLIOp>(bits.apply<arith::AndIOp>(all, 0x8000), 16);
  Value placed = bits.apply<arith::ShLIOp>(magnitude, shift);
  Value normal = bits.apply<arith::AddIOp>(placed, uint32_t(127 - 15) << 23);
  // A subnormal number is M * 2^-24, and 2^-14 + M * 2^-24 has M behind its
  // exponent. The difference is exact, and a normal number.
  constexpr uint32_t leastNormal = uint32_t(127 - 14) << 23;
  Value sum = bits.apply<arith::OrIOp>(placed, leastNormal);
  Value subnormal = bits.bitsOf(arith::SubFOp::create(
      b, bits.asF32(sum), bits.asF32(bits.constant(leastNormal))));
  Value special = bits.apply<arith::OrIOp>(placed, infinityOfF32);
  Value quiet = bits.apply<arith::OrIOp>(special, quietOfF32);
  special = bits.select(bits.isAbove(magnitude, 0x7c00), quiet, special);
  Value result =
      bits.select(bits.isBelow(magnitude, 0x0400), subnormal, normal);
  result = bits.select(bits.isAbove(magnitude, 0x7bff), special, result);
  return bits.asF32(arith::OrIOp::create(b, result, sign));
}

/// The nearest number of f16, of two the even one.
Value narrow(Bits &bits, Value number) {
  ImplicitLocOpBuilder &b = bits.b;
  Value all = bits.bitsOf(number);
  Value magnitude = bits.apply<arith::AndIOp>(all, ~signOfF32);
  Value sign =
      bits.apply<arith::ShRUIOp>(bits.apply<arith::AndIOp>(all, signOfF32), 16);
  // Half of the last place, less one for even numbers, carries where it must:
  // also into the exponent, and from 65520 on to infinity.
  Value shifted = bits.apply<arith::ShRUIOp>(magnitude, shift);
  Value odd = bits.apply<arith::AndIOp>(shifted, 1);
  Value rounded =
      bits.apply<arith::AddIOp>(magnitude, 0xfff - (uint32_t(127 - 15) << 23));
  Value normal =
      bits.apply<arith::ShRUIOp>(arith::AddIOp::create(b, rounded, odd), shift);
  // The last place of f32 between 1/2 and 1 is that of subnormal numbers of
  // f16, so this sum is rounded as those are.
  constexpr uint32_t half = uint32_t(127 - 1) << 23;
  Value sum = arith::AddFOp::create(b, bits.asF32(magnitude),
                                    bits.asF32(bits.constant(half)));
  Value subnormal = bits.apply<arith::SubIOp>(bits.bitsOf(sum), half);
  Value payload = bits.apply<arith::AndIOp>(shifted, 0x3ff);
  Value nan = bits.apply<arith::OrIOp>(payload, 0x7e00);
  Value special = bits.select(bits.isAbove(magnitude, infinityOfF32), nan,
                              bits.constant(0x7c00));
  constexpr uint32_t leastNormal = uint32_t(127 - 14) << 23,
                     pastLargest = uint32_t(127 + 16) << 23;
  Value result =
      bits.select(bits.isBelow(magnitude, leastNormal), subnormal, normal);
  result = bits.select(bits.isBelow(magnitude, pastLargest), result, special);
  result = arith::OrIOp::create(b, result, sign);
  return arith::BitcastOp::create(b, likewise(number.getType(), b.getF16Type()),
                                  arith::TruncIOp::create(b, bits.i16, result));
}

/// `number`, of f64, as the f32 next to it on either side that is odd, unless
/// one is equal. It lies on the same side of all that f16 has, and of what is
/// half way between, as `number` does.
Value roundToOdd(PatternRewriter &rewriter, Location loc, Value number) {
  Bits bits(rewriter, loc, number.getType());
  ImplicitLocOpBuilder &b = bits.b;
  Value nearest = arith::TruncFOp::create(b, bits.f32, number);
  Value back = arith::ExtFOp::create(b, number.getType(), nearest);
  Value pattern = bits.bitsOf(nearest);
  // Away from zero by one place, or towards it, is the other neighbour.
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  };
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(number.getType()));
  Value above = isLess(back, number), below = isLess(number, back);
  Value negative = isLess(number, zero);
  Value up = bits.apply<arith::AddIOp>(pattern, 1);
  Value down = bits.apply<arith::SubIOp>(pattern, 1);
  Value higher = bits.select(negative, down, up);
  Value lower = bits.select(negative, up, down);
  Value other = bits.select(above, higher, bits.select(below, lower, pattern));
  Value odd = bits.apply<arith::AndIOp>(pattern, 1);
  Value isOdd = bits.isAbove(odd, 0);
  return bits.asF32(bits.select(isOdd, pattern, other));
}

/// What converts from or to f16: between f16 and f32 if `expand`, and in two
/// steps between f16 and other types.
template <typename OpTy> struct F16Pattern : OpRewritePattern<OpTy> {
  F16Pattern(MLIRContext *context, bool expand)
      : OpRewritePattern<OpTy>(context), expand(expand) {}

  /// Whether a conversion between `half` and `other` is to be rewritten.
  bool applies(Type half, Type other) const {
    return getElementTypeOrSelf(half).isF16() &&
           (expand || !getElementTypeOrSelf(other).isF32());
  }

  bool expand;
};

struct WidenF16 : F16Pattern<arith::ExtFOp> {
  using F16Pattern::F16Pattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!applies(op.getIn().getType(), type))
      return rewriter.notifyMatchFailure(op, "is one step");
    Bits bits(rewriter, op.getLoc(), type);
    Value wide =
        expand ? widen(bits, op.getIn())
               : Value(arith::ExtFOp::create(bits.b, bits.f32, op.getIn()));
    if (wide.getType() != type)
      wide = arith::ExtFOp::create(bits.b, type, wide);
    rewriter.replaceOp(op, wide);
    return success();
  }
};

struct NarrowToF16 : F16Pattern<arith::TruncFOp> {
  using F16Pattern::F16Pattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType(), from = op.getIn().getType();
    if (!applies(type, from))
      return rewriter.notifyMatchFailure(op, "is one step");
    Bits bits(rewriter, op.getLoc(), type);
    Value number = from == bits.f32
                       ? op.getIn()
                       : roundToOdd(rewriter, op.getLoc(), op.getIn());
    rewriter.replaceOp(op, expand
                               ? narrow(bits, number)
                               : arith::TruncFOp::create(bits.b, type, number));
    return success();
  }
};

struct ConvertF16 : impl::ConvertF16Base<ConvertF16> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<WidenF16, NarrowToF16>(&getContext(), expand);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace keratin
