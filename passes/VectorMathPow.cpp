//===- VectorMathPow.cpp - pow, remainder and rounding --------------------===//
#include "passes/Lanes.h"
#include "passes/VectorMath.h"

#include "passes/VectorMathTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace keratin {

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// pow
//===----------------------------------------------------------------------===//

/// log x for x >= 0 to about 2^-65, since pow multiplies its error by up to
/// 745: k ln 2 + 2 atanh(s), s = f / (2 + f), its first terms as pairs.
VectorMath::Pair VectorMath::logPair(Value x) {
  auto [k, f] = splitForLog(x);
  Value two = constant(2.0);
  Value divisor = add(two, f);
  Value divisorLow = sub(f, sub(divisor, two));
  Value s = div(f, divisor);
  Value left = exactFma(negate(s), divisor, f);
  Value sLow = div(sub(left, mul(s, divisorLow)), divisor);

  Pair u = exactProduct(s, s);
  u.low = fma(mul(two, s), sLow, u.low);
  Pair cube = exactProduct(s, u.high);
  cube.low = add(cube.low, fma(s, u.low, mul(sLow, u.high)));
  Pair factor = orderedSum(constant(0x1.5555555555555p-2),
                           mul(u.high, horner(u.high, table.atanh)));
  factor.low = add(factor.low, constant(0x1.5555555555555p-56));
  Pair tail = exactProduct(cube.high, factor.high);
  tail.low =
      add(tail.low, fma(cube.high, factor.low, mul(cube.low, factor.high)));
  Pair half = orderedSum(s, tail.high);
  half.low = add(half.low, add(tail.low, sLow));

  Pair sum = orderedSum(mul(k, constant(table.ln2High)), mul(two, half.high));
  Value low = fma(k, table.ln2Low, fma(two, half.low, sum.low));
  sum = orderedSum(sum.high, low);
  sum.high = select(lessThan(x, constant(infinity)), sum.high, x);
  sum.high = select(equal(x, constant(0.0)), constant(-infinity), sum.high);
  return sum;
}

/// |x|^y but for y = 0 and |x| = 1 with infinite y, where it is NaN.
Value VectorMath::powOfMagnitude(Value magnitude, Value y) {
  Pair logarithm = logPair(magnitude);
  Pair exponent = exactProduct(y, logarithm.high);
  Value low = fma(y, logarithm.low, exponent.low);
  // An infinite product has a NaN as its low part.
  Value small = lessThan(abs(exponent.high), constant(1000.0));
  return scaledExp(exponent.high, select(small, low, constant(0.0)));
}

Value VectorMath::isInteger(Value x) { return equal(trunc(x), x); }

Value VectorMath::pow(Value x, Value y) {
  if (!isDouble())
    return inDouble(x, y, &VectorMath::powOfF32);
  return finishPow(powOfMagnitude(abs(x), y), x, y);
}

/// Extended f32 values: a logarithm that is rounded to f64 has digits enough.
Value VectorMath::powOfF32(Value x, Value y) {
  return finishPow(exp(mul(y, log(abs(x)))), x, y);
}

/// `result` is |x|^y but for y = 0 and |x| = 1 with infinite y.
Value VectorMath::finishPow(Value result, Value x, Value y) {
  Value one = constant(1.0), zero = constant(0.0);
  Value magnitude = abs(x);
  result = select(both(equal(magnitude, one), equal(y, y)), one, result);

  // A negative x: the sign of an odd power, NaN where y is no integer.
  Value whole = isInteger(y);
  Value wholeHalf = isInteger(mul(y, constant(0.5)));
  Value negated = xorBits(asInteger(result), signBit(x));
  result = select(wholeHalf, result, select(whole, asFloat(negated), result));
  Value finiteNegative =
      both(lessThan(x, zero), notEqual(x, constant(-infinity)));
  Value wholeOrNan = select(whole, result, constant(notANumber));
  result = select(finiteNegative, wholeOrNan, result);
  return select(equal(y, zero), one, select(equal(x, one), one, result));
}

//===----------------------------------------------------------------------===//
// Remainder and rounding
//===----------------------------------------------------------------------===//

/// `function` of f32 values by its f64 form.
Value VectorMath::inDouble(Value x, Value y,
                           Value (VectorMath::*function)(Value, Value)) {
  Type wideType = likewise(type, b.getF64Type());
  VectorMath wide(b, b.getLoc(), wideType, target);
  Value result = (wide.*function)(arith::ExtFOp::create(b, wideType, x),
                                  arith::ExtFOp::create(b, wideType, y));
  return arith::TruncFOp::create(b, type, result);
}

Value VectorMath::anyLane(Value condition) {
  auto vector = dyn_cast<VectorType>(condition.getType());
  if (!vector)
    return condition;
  if (vector.getRank() != 1) {
    auto flat = VectorType::get({vector.getNumElements()}, b.getI1Type());
    condition = vector::ShapeCastOp::create(b, flat, condition);
  }
  return vector::ReductionOp::create(b, vector::CombiningKind::OR, condition);
}

/// x mod divisor (which is not negative), in (-divisor, divisor): takes whole
/// multiples off, as many digits at a time as a quotient has. Each difference
/// is exact: it fits, as the residual of a rounded quotient does.
Value VectorMath::takeOffMultiples(Value x, Value divisor) {
  auto loop = scf::WhileOp::create(
      b, TypeRange(type), ValueRange(x),
      [&](OpBuilder &inner, Location, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value tooLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE,
                                               abs(args[0]), divisor);
        scf::ConditionOp::create(b, anyLane(tooLarge), args);
      },
      [&](OpBuilder &inner, Location, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value quotient = trunc(div(args[0], divisor));
        Value less = exactFma(negate(quotient), divisor, args[0]);
        // A lane that is done may have an infinite divisor.
        Value done = lessThan(abs(args[0]), divisor);
        scf::YieldOp::create(b, select(done, args[0], less));
      });
  return loop.getResult(0);
}

Value VectorMath::remainder(Value x, Value y) {
  if (!isDouble())
    return inDouble(x, y, &VectorMath::remainderOfF32);
  // Multiples of larger multiples first: no quotient may be infinite.
  Value divisor = abs(y), step = constant(0x1p1000);
  Value larger = mul(divisor, step);
  Value left = takeOffMultiples(abs(x), mul(larger, step));
  left = takeOffMultiples(left, larger);
  return finishRemainder(takeOffMultiples(left, divisor), x, y);
}

/// Extended f32 values: their quotients are far from the end of f64.
Value VectorMath::remainderOfF32(Value x, Value y) {
  return finishRemainder(takeOffMultiples(abs(x), abs(y)), x, y);
}

Value VectorMath::finishRemainder(Value left, Value x, Value y) {
  Value wrapped = add(left, abs(y));
  left = select(lessThan(left, constant(0.0)), wrapped, left);
  return select(equal(y, y), withSignOf(abs(left), x), y);
}

/// `x` where it has no fraction bits (or is NaN), else `rounded` with its sign:
/// |x| + 2^mantissaBits has none either.
Value VectorMath::roundMagnitude(Value x, bool towardZero) {
  Value whole = constant(std::ldexp(1.0, table.mantissaBits));
  Value magnitude = abs(x);
  Value rounded = sub(add(magnitude, whole), whole);
  if (towardZero)
    rounded = select(lessThan(magnitude, rounded), sub(rounded, constant(1.0)),
                     rounded);
  return select(lessThan(magnitude, whole), withSignOf(rounded, x), x);
}

Value VectorMath::roundEven(Value x) {
  if (target.rounding)
    return math::RoundEvenOp::create(b, x);
  return roundMagnitude(x, /*towardZero=*/false);
}

Value VectorMath::trunc(Value x) {
  if (target.rounding)
    return math::TruncOp::create(b, x);
  return roundMagnitude(x, /*towardZero=*/true);
}

Value VectorMath::floor(Value x) {
  if (target.rounding)
    return math::FloorOp::create(b, x);
  Value whole = trunc(x);
  return select(lessThan(x, whole), sub(whole, constant(1.0)), whole);
}

Value VectorMath::ceil(Value x) {
  if (target.rounding)
    return math::CeilOp::create(b, x);
  Value whole = trunc(x);
  // The sign again, for ceil(-0.5) = -0.
  return select(lessThan(whole, x), withSignOf(add(whole, constant(1.0)), x),
                whole);
}

} // namespace keratin
