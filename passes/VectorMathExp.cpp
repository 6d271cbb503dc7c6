//===- VectorMathExp.cpp - exponentials -----------------------------------===//
//
// exp, expm1, tanh: x = k ln 2 + r with k = round(x log2 e), got by adding
// 1.5 2^23 (a sum of that size has no fraction bits left); e^r = 1 + r + r^2
// q(r); 2^k by shifting k into the exponent. Where the last digits of what is
// small matter less, 2^y = 2^(y - k) 2^k with y = x log2 e, k in eighths if the
// machine has a table of eight of them in a register.
//
//===----------------------------------------------------------------------===//
#include "passes/VectorMath.h"

#include "passes/VectorMathTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;

namespace keratin {

static constexpr double log2E = 1.4426950408889634;
static constexpr double ln2 = 0.6931471805599453;

VectorMath::Reduced VectorMath::reduceByLn2(Value x, bool negated) {
  Value shifted = fma(x, negated ? -log2E : log2E, table.magic);
  Value k = sub(shifted, constant(table.magic));
  Value r = fma(k, -table.ln2High, negated ? negate(x) : x);
  return {shifted, k, fma(k, -table.ln2Low, r)};
}

/// The same with ln 2 in one number.
VectorMath::Reduced VectorMath::reduceNear(Value x) {
  Value shifted = fma(x, log2E, table.magic);
  Value k = sub(shifted, constant(table.magic));
  return {shifted, k, fma(k, -ln2, x)};
}

/// e^r - 1.
Value VectorMath::expTail(Value r, ArrayRef<double> coefficients) {
  return fma(mul(r, r), horner(r, coefficients), r);
}

/// e^r 2^k for a 2^k that may underflow but, without intrinsics, is far from
/// overflow: a number far below the normal ones is one among them times a
/// constant. The tail of e^r is added to 1 where that is scaled, in one
/// rounding.
Value VectorMath::expOfReduced(const Reduced &reduced) {
  if (hasIntrinsics()) {
    Value one = constant(1.0), r = reduced.r;
    Value power = fma(fma(horner(r, table.exp), r, one), r, one);
    return intrinsic("llvm.x86.avx512.mask.scalef.ps.512", {power, reduced.k},
                     /*rounds=*/true);
  }
  double far = std::ldexp(1.0, 3 * table.mantissaBits);
  Value scale = powerOfTwo(asInteger(reduced.shifted), far);
  return mul(fma(expTail(reduced.r, table.exp), scale, scale),
             constant(1 / far));
}

/// e^(x + low), where `low` may be null. 2^k in two factors, so that results
/// underflow gradually and overflow to infinity without a test.
Value VectorMath::scaledExp(Value x, Value low) {
  x = atMost(atLeast(x, table.expLow), table.expHigh);
  Reduced reduced = reduceByLn2(x);
  if (low)
    reduced.r = add(reduced.r, low);
  if (hasIntrinsics())
    return expOfReduced(reduced);
  Value tail = expTail(reduced.r, table.exp);
  Value k = subBits(asInteger(reduced.shifted), integer(bitsOf(table.magic)));
  Value half = shiftRight(k, 1);
  Value scale = powerOfTwo(half);
  return mul(fma(tail, scale, scale), powerOfTwo(subBits(k, half)));
}

Value VectorMath::exp(Value x) { return scaledExp(x, /*low=*/nullptr); }

Value VectorMath::expOfNonPositive(Value x) {
  Reduced reduced = reduceByLn2(atLeast(x, table.expLow));
  return expOfReduced(reduced);
}

/// 2^(k/8) for the integer in the low bits of `k`, the last three of
/// which choose among eight numbers: one instruction. Each of them takes back
/// what those bits are in the place of an exponent.
Value VectorMath::powerOfEighths(Value k) {
  constexpr unsigned lanes = 8, bits = 3;
  unsigned place = table.mantissaBits - bits;
  SmallVector<float> roots;
  for (uint32_t eighths = 0; eighths < lanes; ++eighths) {
    auto root = static_cast<float>(std::exp2(eighths / double(lanes)));
    roots.push_back(llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(root) -
                                          (eighths << place)));
  }
  Value root = lookUp(k, roots);
  return asFloat(addBits(asInteger(root), shiftLeft(k, place)));
}

/// 2^(factor x), a normal number. What the product is off by for a factor of 24
/// bits stays in the exponent. Eighths need two coefficients less.
VectorMath::Factors VectorMath::powerOfTwoOf(Value x, double factor) {
  bool inEighths = hasPermutations();
  double parts = inEighths ? 8 : 1;
  Value shifted = fma(x, parts * factor, table.magic);
  Value k = sub(shifted, constant(table.magic));
  Value rest = fma(x, parts * factor, negate(k));
  Value number = asInteger(shifted);
  Value scale = inEighths ? powerOfEighths(number) : powerOfTwo(number);
  return {horner(rest, inEighths ? table.exp2Eighths : table.exp2Near), scale};
}

Value VectorMath::expFlushed(Value x) {
  if (hasIntrinsics()) {
    // 2^y = 2^(y - floor y) 2^floor y. The choice is a mask of the last
    // instruction, which takes 300 cycles for a number that is not normal.
    Value y = mul(x, constant(log2E));
    Value power =
        intrinsic("llvm.x86.avx512.mask.scalef.ps.512",
                  {horner(aboveFloor(y), table.exp2), y}, /*rounds=*/true);
    return select(lessThan(x, constant(table.swishLow)), constant(0.0), power);
  }
  x = atLeast(x, table.expFlushLow);
  if (isDouble() || !target.fma) {
    Reduced reduced = reduceByLn2(x);
    Value scale = powerOfTwo(asInteger(reduced.shifted));
    return fma(expTail(reduced.r, table.exp), scale, scale);
  }
  auto [near, scale] = powerOfTwoOf(x, log2E);
  return mul(near, scale);
}

Value VectorMath::expm1(Value x) {
  Reduced reduced =
      reduceByLn2(atMost(atLeast(x, table.expm1Low), table.expHigh));
  Value tail = expTail(reduced.r, table.expm1);
  // Half of the result, since 2^k itself may be infinite.
  Value scale = powerOfTwo(asInteger(reduced.shifted), 0.5);
  Value half = fma(scale, tail, sub(scale, constant(0.5)));
  Value value = select(equal(reduced.k, constant(0.0)), tail, add(half, half));
  return withSignOf(value, x);
}

/// m / (m + 2) with m = expm1(2 x). A k that is rounded is off by too little to
/// be seen beside an m of 2^k - 1. The sign is that of the quotient but for
/// zeros.
Value VectorMath::tanh(Value x) {
  Value y = atLeast(atMost(add(x, x), -table.expm1Low), table.expm1Low);
  Reduced reduced = isDouble() || !target.fma ? reduceByLn2(y) : reduceNear(y);
  Value scale = powerOfTwo(asInteger(reduced.shifted));
  Value m =
      fma(scale, expTail(reduced.r, table.expm1), sub(scale, constant(1.0)));
  return withSignOf(quotient(m, add(m, constant(2.0))), x);
}

/// 1 / (1 + e^-x), far from overflow where that rounds to 1. Both sides of the
/// quotient are times a constant with which no e^-x overflows: results
/// underflow gradually. 1 is added to the power of two while the polynomial is
/// computed.
Value VectorMath::sigmoid(Value x) {
  x = atLeast(atMost(x, table.sigmoidIsOne), table.expLow);
  if (hasIntrinsics()) {
    Value z = expOfReduced(reduceByLn2(x));
    return quotient(z, add(z, constant(1.0)));
  }
  double small = std::ldexp(1.0, -3 * table.mantissaBits);
  Reduced reduced = reduceByLn2(x, /*negated=*/true);
  Value scale = powerOfTwo(asInteger(reduced.shifted), small);
  Value sum =
      fma(expTail(reduced.r, table.exp), scale, add(scale, constant(small)));
  return div(constant(small), sum);
}

/// Nobody asks for the digits of a number that is small beside x + 1, so the
/// rounding of x log2 e may stay in the exponent; and 2^floor of that is what
/// AVX-512 multiplies with. Below the bound e^-x has no normal reciprocal, and
/// beyond it on the other side is none that changes 1.
Value VectorMath::swish(Value x) {
  x = atLeast(x, table.swishLow);
  if (isDouble())
    return mul(x, sigmoid(x));
  if (!hasIntrinsics()) {
    auto [near, scale] = powerOfTwoOf(atMost(x, -table.swishLow), -log2E);
    return div(x, fma(near, scale, 1.0));
  }
  Value t = mul(x, constant(-log2E));
  Value z = intrinsic("llvm.x86.avx512.mask.scalef.ps.512",
                      {horner(aboveFloor(t), table.exp2), t}, /*rounds=*/true);
  Value one = constant(1.0), divisor = add(z, one);
  if (target.divides)
    return div(x, divisor);
  Value r = reciprocalTo14Bits(divisor);
  return mul(x, fma(fma(negate(divisor), r, one), r, r));
}

} // namespace keratin
