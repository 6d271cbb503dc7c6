//===- VectorMath.cpp - elementary functions in plain arithmetic ----------===//
//
// exp, expm1, tanh: x = k ln 2 + r with k = round(x log2 e), got by adding
// 1.5 2^23 (a sum of that size has no fraction bits left); e^r = 1 + r + r^2
// q(r); 2^k by shifting k into the exponent. log: x = 2^k (1 + f) with 1 + f in
// [sqrt 1/2, sqrt 2), log(1 + f) = f + f^2 p(f). sin, cos: pi/2 in three parts.
// f32 and f64 differ in their table only, but for erf and pow.
//
//===----------------------------------------------------------------------===//
#include "passes/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace keratin {

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
static constexpr double log2E = 1.4426950408889634;
static constexpr double twoOverPi = 0.63661977236758138;

/// What is particular to a float format.
struct VectorMath::Table {
  int mantissaBits; ///< stored ones; also the distance of subnormals
  double magic;     ///< 1.5 2^mantissaBits: + magic - magic rounds
  double smallestNormal;
  double ln2High, ln2Low; ///< the high part leaves room for k in a product
  double expLow, expHigh; ///< past them the result is 0 or infinite anyway
  double expFlushLow;     ///< k is here the exponent of +0
  double expm1Low;        ///< e^x is here below half an ulp of 1
  uint64_t sqrtHalf;      ///< the bits of sqrt 1/2
  double log1pTiny;       ///< log1p(x) is x below
  double halfPi[3];       ///< their sum is pi/2
  ArrayRef<double> exp, expm1, log, sin, cos, erfSmall, erfLarge;
};

// f32: least relative error (Lawson's iteration), rounded to f32 one at a time,
// lowest first, and the rest fitted again after each. What is left of error:
// exp 2^-28.2, expm1 2^-26.1, log 2^-27.8, sin 2^-27.8, cos 2^-33, erf 2^-25.6
// and 2^-25.9. Each is exactly an f32.
static constexpr double f32Exp[] = {0.4999999403953552, 0.1666652113199234,
                                    0.04166829213500023, 0.008368715643882751,
                                    0.0013818698935210705};
static constexpr double f32Expm1[] = {0.4999999701976776, 0.1666654497385025,
                                      0.04166744649410248, 0.008366446942090988,
                                      0.0013869843678548932};
static constexpr double f32Log[] = {
    -0.49999988079071045, 0.33333325386047363,  -0.25001609325408936,
    0.20002013444900513,  -0.16608455777168274, 0.14180614054203033,
    -0.13247044384479523, 0.12914399802684784,  -0.07624596357345581};
static constexpr double f32Sin[] = {-0.16666653752326965, 0.008332106284797192,
                                    -0.0001950787118403241};
static constexpr double f32Cos[] = {0.04166664555668831, -0.0013887308305129409,
                                    2.4432101781712845e-05};
static constexpr double f32ErfSmall[] = {
    0.12837915122509003,   -0.3761247992515564,  0.11281618475914001,
    -0.026758616790175438, 0.004980794154107571, -0.0005925789009779692};
static constexpr double f32ErfLarge[] = {
    0.9976857900619507,    0.15362484753131866,   0.06037413701415062,
    0.06201450154185295,   -0.025649968534708023, 0.015016566962003708,
    -0.003450747113674879, 0.0004969805595465004};
/// erf(x) = x p(x^2) / q(x^2) up to the point where that is 1 in f32: 2^-27.9.
/// Rational fit by least squares reweighted with the denominator of the step
/// before; q(0) was searched so that q(0) 2/sqrt(pi) is almost an f32.
static constexpr double f32ErfNumerator[] = {
    0.8579201102256775,     0.14084266126155853,   0.04130766540765762,
    0.0029290795791894197,  0.0002889092720579356, 3.5677419418789214e-06,
    -1.0064961308842157e-08};
static constexpr double f32ErfDenominator[] = {
    0.7603119015693665,   0.3782559037208557,    0.08666172623634338,
    0.011761104688048363, 0.0009950255043804646, 4.804419950232841e-05};
static constexpr double f32ErfIsOne = 3.924999952316284;

// f64: tests/ulp/fit.py prints these rows (Remez exchange in 60 digits). Error
// after rounding: exp, expm1 2^-58.7, log 2^-56.5, sin 2^-57.3, cos 2^-59.6,
// erf 2^-56.2 and 2^-58.4, atanh 2^-66.3.
static constexpr double f64Exp[] = {0.5,
                                    0.1666666666666667,
                                    0.041666666666666685,
                                    0.008333333333325985,
                                    0.0013888888888874097,
                                    0.00019841269875345578,
                                    2.4801587348050643e-05,
                                    2.755725473661192e-06,
                                    2.755725222694834e-07,
                                    2.5105492303202806e-08,
                                    2.092182059148926e-09};
static constexpr double f64Log[] = {-0.5,
                                    0.33333333333333487,
                                    -0.2499999999999807,
                                    0.19999999999936185,
                                    -0.16666666667007207,
                                    0.14285714294853893,
                                    -0.12499999977359906,
                                    0.11111110463057754,
                                    -0.10000000495835987,
                                    0.09090935099794951,
                                    -0.0833334483853215,
                                    0.07691685917426688,
                                    -0.07141985953463266,
                                    0.06675446135449499,
                                    -0.06270195341444448,
                                    0.058161625516773285,
                                    -0.05323343798243066,
                                    0.054188694150203505,
                                    -0.06286180832219168,
                                    0.057017850201777576,
                                    -0.024245872515322984};
static constexpr double f64Sin[] = {
    -0.16666666666666666,   0.008333333333333323,    -0.0001984126984125483,
    2.7557319214064973e-06, -2.5052104878286744e-08, 1.6058362309459553e-10,
    -7.578480241931024e-13};
static constexpr double f64Cos[] = {
    0.041666666666666595,   -0.0013888888888873839, 2.4801587289294292e-05,
    -2.755731429543611e-07, 2.0875715215162343e-09, -1.135921511608831e-11};
static constexpr double f64ErfSmall[] = {
    0.1283791670955126,      -0.37612638903183754,    0.11283791670955064,
    -0.026866170645115733,   0.005223977625239346,    -0.0008548327007665133,
    0.00012055332192607999,  -1.4925623886390206e-05, 1.6461505273925267e-06,
    -1.6356187128374722e-07, 1.4703092311606645e-08,  -1.1556224199768923e-09,
    6.296653241503353e-11};
static constexpr double f64ErfLarge[] = {
    0.25539567631050575,     -0.42718584741395854,   0.24165819424247129,
    -0.07897858101562596,    0.003732892404304543,   0.006997461729516097,
    -0.0008471432894806356,  -0.0009819768108172925, 4.35569874795127e-05,
    0.00017435982109783018,  2.7506578882691484e-05, -2.7585826348345214e-05,
    -1.3843477846463256e-05, 1.4925093881893397e-06, 3.3841911955307513e-06,
    8.033006953762042e-07};
/// atanh(s) = s + s^3 (1/3 + s^2 p(s^2)), of pow.
static constexpr double f64Atanh[] = {0.2,
                                      0.14285714285715148,
                                      0.11111111110580474,
                                      0.09090909216300372,
                                      0.07692292947759578,
                                      0.06667619789077661,
                                      0.05847930168100775,
                                      0.05910385818458437};

const VectorMath::Table VectorMath::f32Table = {
    /*mantissaBits=*/23,
    /*magic=*/0x1.8p23,
    /*smallestNormal=*/0x1p-126,
    /*ln2High=*/0.693145751953125,
    /*ln2Low=*/1.42860682030941723212e-6,
    /*expLow=*/-104.0,
    /*expHigh=*/88.8,
    /*expFlushLow=*/-88.0297,
    /*expm1Low=*/-20.0,
    /*sqrtHalf=*/0x3f3504f3,
    /*log1pTiny=*/0x1p-25,
    /*halfPi=*/
    {1.57079637050628662109375, -4.37113900018624283e-8, -1.71512449e-15},
    f32Exp,
    f32Expm1,
    f32Log,
    f32Sin,
    f32Cos,
    f32ErfSmall,
    f32ErfLarge};

const VectorMath::Table VectorMath::f64Table = {
    /*mantissaBits=*/52,
    /*magic=*/0x1.8p52,
    /*smallestNormal=*/0x1p-1022,
    /*ln2High=*/0x1.62e42feep-1,
    /*ln2Low=*/0x1.a39ef35793c76p-33,
    /*expLow=*/-746.0,
    /*expHigh=*/709.9,
    /*expFlushLow=*/-709.0896,
    /*expm1Low=*/-40.0,
    /*sqrtHalf=*/0x3fe6a09e667f3bcd,
    /*log1pTiny=*/0x1p-54,
    /*halfPi=*/
    {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110},
    f64Exp,
    f64Exp,
    f64Log,
    f64Sin,
    f64Cos,
    f64ErfSmall,
    f64ErfLarge};

/// `shape`, a scalar or a vector type, with elements of `element`.
static Type withElement(Type shape, Type element) {
  if (auto vector = dyn_cast<VectorType>(shape))
    return vector.clone(element);
  return element;
}

VectorMath::VectorMath(OpBuilder &builder, Location loc, Type type,
                       VectorMathTarget target)
    : b(loc, builder), type(type),
      integerType(withElement(
          type, builder.getIntegerType(
                    getElementTypeOrSelf(type).getIntOrFloatBitWidth()))),
      target(target),
      table(getElementTypeOrSelf(type).isF64() ? f64Table : f32Table) {
  assert((isDouble() || getElementTypeOrSelf(type).isF32()) &&
         "the caller widens narrow floats");
}

//===----------------------------------------------------------------------===//
// The words of the sequences
//===----------------------------------------------------------------------===//

bool VectorMath::isDouble() const { return &table == &f64Table; }

/// A constant of `type`, in every lane where that is a vector.
static Value splat(ImplicitLocOpBuilder &b, Type type, TypedAttr scalar) {
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, scalar));
  return arith::ConstantOp::create(b, scalar);
}

Value VectorMath::constant(double value) {
  return splat(b, type, b.getFloatAttr(getElementTypeOrSelf(type), value));
}

Value VectorMath::integer(uint64_t value) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(integerType));
  APInt bits(64, value);
  return splat(b, integerType,
               b.getIntegerAttr(element, bits.trunc(element.getWidth())));
}

uint64_t VectorMath::bitsOf(double value) const {
  if (isDouble())
    return llvm::bit_cast<uint64_t>(value);
  return llvm::bit_cast<uint32_t>(static_cast<float>(value));
}

Value VectorMath::add(Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
Value VectorMath::sub(Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
Value VectorMath::mul(Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
Value VectorMath::div(Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}

Value VectorMath::fma(Value x, Value y, Value z) {
  if (!target.fma)
    return add(mul(x, y), z);
  return math::FmaOp::create(b, x, y, z);
}
Value VectorMath::fma(Value x, double y, double z) {
  return fma(x, constant(y), constant(z));
}
Value VectorMath::fma(Value x, Value y, double z) {
  return fma(x, y, constant(z));
}
Value VectorMath::fma(Value x, double y, Value z) {
  return fma(x, constant(y), z);
}

Value VectorMath::addBits(Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}
Value VectorMath::subBits(Value x, Value y) {
  return arith::SubIOp::create(b, x, y);
}
Value VectorMath::andBits(Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}
Value VectorMath::orBits(Value x, Value y) {
  return arith::OrIOp::create(b, x, y);
}
Value VectorMath::xorBits(Value x, Value y) {
  return arith::XOrIOp::create(b, x, y);
}
Value VectorMath::shiftLeft(Value x, unsigned count) {
  return arith::ShLIOp::create(b, x, integer(count));
}
Value VectorMath::shiftRight(Value x, unsigned count) {
  return arith::ShRSIOp::create(b, x, integer(count));
}
Value VectorMath::asInteger(Value x) {
  return arith::BitcastOp::create(b, integerType, x);
}
Value VectorMath::asFloat(Value bits) {
  return arith::BitcastOp::create(b, type, bits);
}

Value VectorMath::lessThan(Value x, Value y) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
}
Value VectorMath::equal(Value x, Value y) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
}
Value VectorMath::notEqual(Value x, Value y) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, x, y);
}
Value VectorMath::greaterOrUnordered(Value x, Value y) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, y);
}
Value VectorMath::both(Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}
Value VectorMath::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}

// One instruction each on x86, since a NaN in x takes the second operand.
Value VectorMath::atLeast(Value x, double bound) {
  Value limit = constant(bound);
  return select(arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, limit, x),
                limit, x);
}
Value VectorMath::atMost(Value x, double bound) {
  Value limit = constant(bound);
  return select(lessThan(limit, x), limit, x);
}

Value VectorMath::signBit(Value x) {
  return andBits(asInteger(x), integer(bitsOf(-0.0)));
}
Value VectorMath::abs(Value x) {
  return asFloat(andBits(asInteger(x), integer(bitsOf(-0.0) - 1)));
}
Value VectorMath::negate(Value x) { return arith::NegFOp::create(b, x); }
Value VectorMath::withSignOf(Value magnitude, Value x) {
  return asFloat(orBits(asInteger(magnitude), signBit(x)));
}

Value VectorMath::horner(Value x, ArrayRef<double> coefficients) {
  Value sum = constant(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, coefficient);
  return sum;
}

/// scale 2^k for the integer in the low bits of `k`. To be multiplied with:
/// adding k to a number's exponent would turn some NaN into numbers.
Value VectorMath::powerOfTwo(Value k, double scale) {
  return asFloat(
      addBits(shiftLeft(k, table.mantissaBits), integer(bitsOf(scale))));
}

/// x y = high + low, exactly; by Dekker's splitting without FMA.
VectorMath::Pair VectorMath::exactProduct(Value x, Value y) {
  Value high = mul(x, y);
  if (target.fma)
    return {high, fma(x, y, negate(high))};
  Value splitter =
      constant(std::ldexp(1.0, (table.mantissaBits + 2) / 2) + 1.0);
  auto split = [&](Value v) -> Pair {
    Value wide = mul(v, splitter);
    Value top = sub(wide, sub(wide, v));
    return {top, sub(v, top)};
  };
  Pair p = split(x), q = split(y);
  Value low = sub(mul(p.high, q.high), high);
  low = add(add(low, mul(p.high, q.low)), mul(p.low, q.high));
  return {high, add(low, mul(p.low, q.low))};
}

/// x + y = high + low, exactly, where |x| >= |y| or x = 0.
VectorMath::Pair VectorMath::orderedSum(Value x, Value y) {
  Value high = add(x, y);
  return {high, sub(y, sub(high, x))};
}

/// x y + z with the product exact also without FMA, for an x y that cancels z.
Value VectorMath::exactFma(Value x, Value y, Value z) {
  if (target.fma)
    return fma(x, y, z);
  Pair product = exactProduct(x, y);
  return add(add(z, product.high), product.low);
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

VectorMath::Reduced VectorMath::reduceByLn2(Value x) {
  Value shifted = fma(x, log2E, table.magic);
  Value k = sub(shifted, constant(table.magic));
  Value r = fma(k, -table.ln2High, x);
  return {shifted, k, fma(k, -table.ln2Low, r)};
}

/// e^r - 1.
Value VectorMath::expTail(Value r, ArrayRef<double> coefficients) {
  return fma(mul(r, r), horner(r, coefficients), r);
}

/// e^(x + low), where `low` may be null. 2^k in two factors, so that results
/// underflow gradually and overflow to infinity without a test.
Value VectorMath::scaledExp(Value x, Value low, bool mayBePositive) {
  x = atLeast(x, table.expLow);
  if (mayBePositive)
    x = atMost(x, table.expHigh);
  Reduced reduced = reduceByLn2(x);
  Value r = low ? add(reduced.r, low) : reduced.r;
  Value tail = expTail(r, table.exp);
  Value k = subBits(asInteger(reduced.shifted), integer(bitsOf(table.magic)));
  Value half = shiftRight(k, 1);
  Value scale = powerOfTwo(half);
  return mul(fma(tail, scale, scale), powerOfTwo(subBits(k, half)));
}

Value VectorMath::exp(Value x) { return scaledExp(x, /*low=*/nullptr); }

Value VectorMath::expOfNonPositive(Value x) {
  return scaledExp(x, /*low=*/nullptr, /*mayBePositive=*/false);
}

Value VectorMath::expFlushed(Value x) {
  Reduced reduced = reduceByLn2(atLeast(x, table.expFlushLow));
  Value scale = powerOfTwo(asInteger(reduced.shifted));
  return fma(expTail(reduced.r, table.exp), scale, scale);
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

/// -m / (2 + m) with m = expm1(-2 |x|).
Value VectorMath::tanh(Value x) {
  Value y = atLeast(mul(abs(x), constant(-2.0)), table.expm1Low);
  Reduced reduced = reduceByLn2(y);
  Value scale = powerOfTwo(asInteger(reduced.shifted));
  Value m =
      fma(scale, expTail(reduced.r, table.expm1), sub(scale, constant(1.0)));
  return withSignOf(abs(div(m, add(m, constant(2.0)))), x);
}

/// |x| < 0.9375: x + x p(x^2). Beyond, f32: 1 - 1/p(|x|)^8; f64:
/// 1 - e^(-x^2) p((|x| - 2) / (|x| + 2)).
Value VectorMath::erf(Value x) {
  Value magnitude = abs(x);
  Value small = fma(magnitude, horner(mul(x, x), table.erfSmall), magnitude);
  Value rest;
  if (isDouble()) {
    Value y = atMost(magnitude, 6.0); // erf is 1 from 5.93 on
    Value two = constant(2.0);
    Value t = div(sub(y, two), add(y, two));
    rest = mul(expFlushed(negate(mul(y, y))), horner(t, table.erfLarge));
  } else {
    Value p = horner(magnitude, table.erfLarge);
    for (int squaring = 0; squaring < 3; ++squaring)
      p = mul(p, p);
    rest = div(constant(1.0), p);
  }
  Value large = sub(constant(1.0), rest);
  return withSignOf(select(lessThan(magnitude, constant(0.9375)), small, large),
                    x);
}

Value VectorMath::erfForSum(Value x) {
  if (isDouble())
    return erf(x);
  Value y = atMost(atLeast(x, -f32ErfIsOne), f32ErfIsOne);
  Value u = mul(y, y);
  return div(mul(y, horner(u, f32ErfNumerator)), horner(u, f32ErfDenominator));
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

Value VectorMath::exponentAsFloat(Value exponent) {
  // AVX2 has no conversion of 64-bit integers.
  if (isDouble())
    return sub(asFloat(addBits(exponent, integer(bitsOf(table.magic)))),
               constant(table.magic));
  return arith::SIToFPOp::create(b, type, exponent);
}

/// x = 2^k (1 + f), for positive x; subnormal ones are scaled first.
VectorMath::LogParts VectorMath::splitForLog(Value x) {
  Value subnormal = lessThan(x, constant(table.smallestNormal));
  int distance = table.mantissaBits;
  Value y = select(subnormal, mul(x, constant(std::ldexp(1.0, distance))), x);
  Value bits = asInteger(y);
  Value exponent =
      shiftRight(subBits(bits, integer(table.sqrtHalf)), table.mantissaBits);
  Value m = asFloat(subBits(bits, shiftLeft(exponent, table.mantissaBits)));
  Value k = exponentAsFloat(exponent);
  k = select(subnormal, add(k, constant(-distance)), k);
  return {k, sub(m, constant(1.0))};
}

/// k ln 2 + log(1 + f).
Value VectorMath::logOfParts(LogParts parts) {
  auto [k, f] = parts;
  Value low = fma(k, table.ln2Low, mul(mul(f, f), horner(f, table.log)));
  return fma(k, table.ln2High, add(f, low));
}

/// Infinity and NaN stay, -infinity at `pole`, NaN below.
Value VectorMath::withEndsOfLog(Value result, Value x, double pole) {
  result = select(lessThan(x, constant(infinity)), result, x);
  Value edge = constant(pole);
  Value below =
      select(equal(x, edge), constant(-infinity), constant(notANumber));
  return select(greaterOrUnordered(x, edge), result, below);
}

Value VectorMath::log(Value x) {
  return withEndsOfLog(logOfParts(splitForLog(x)), x, /*pole=*/0.0);
}

Value VectorMath::log1p(Value x) {
  Value sum = add(x, constant(1.0));
  Value exponent = shiftRight(subBits(asInteger(sum), integer(table.sqrtHalf)),
                              table.mantissaBits);
  // f = x 2^-k + (2^-k - 1) loses nothing of x; 4 2^-k is always normal.
  Value scale = asFloat(
      subBits(integer(bitsOf(4.0)), shiftLeft(exponent, table.mantissaBits)));
  Value f = fma(mul(x, constant(0.25)), scale, fma(scale, 0.25, -1.0));
  Value result = logOfParts({exponentAsFloat(exponent), f});
  result = select(lessThan(abs(x), constant(table.log1pTiny)), x, result);
  return withEndsOfLog(result, x, /*pole=*/-1.0);
}

//===----------------------------------------------------------------------===//
// sin and cos
//===----------------------------------------------------------------------===//

/// Three parts of pi/2 are enough for this angle in f32; above, the parts of
/// f64 are, up to 2^45. Any larger x would need more digits of pi.
static constexpr double largeAngle = 1e5;

Value VectorMath::sinOrCos(Value x, bool cosine) {
  if (isDouble())
    return sinOrCosInPlace(x, cosine);
  Value isLarge = anyLane(lessThan(constant(largeAngle), abs(x)));
  auto branch = [&](bool inDouble) {
    return [&, inDouble](OpBuilder &inner, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(inner.getInsertionBlock());
      Value value =
          inDouble ? sinOrCosInDouble(x, cosine) : sinOrCosInPlace(x, cosine);
      scf::YieldOp::create(b, value);
    };
  };
  return scf::IfOp::create(b, isLarge, branch(/*inDouble=*/true),
                           branch(/*inDouble=*/false))
      .getResult(0);
}

Value VectorMath::sinOrCosInDouble(Value x, bool cosine) {
  VectorMath wide(b, b.getLoc(), withElement(type, b.getF64Type()), target);
  Value value = wide.sinOrCos(arith::ExtFOp::create(b, wide.type, x), cosine);
  return arith::TruncFOp::create(b, type, value);
}

Value VectorMath::sinOrCosInPlace(Value x, bool cosine) {
  Value shifted = fma(x, twoOverPi, table.magic);
  Value k = sub(shifted, constant(table.magic));
  Value r = x;
  for (double part : table.halfPi)
    r = exactFma(k, constant(-part), r);
  // Where x is too large for three parts, at least no value out of range.
  if (isDouble())
    r = atMost(atLeast(r, -0.8), 0.8);
  Value u = mul(r, r);
  Value sine = fma(mul(r, u), horner(u, table.sin), r);
  Value cosineOfR = fma(mul(u, u), horner(u, table.cos), fma(u, -0.5, 1.0));

  Value quadrant = asInteger(shifted);
  if (cosine)
    quadrant = addBits(quadrant, integer(1));
  Value odd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                    andBits(quadrant, integer(1)), integer(0));
  Value value = select(odd, cosineOfR, sine);
  unsigned toSign = isDouble() ? 62 : 30;
  Value sign = shiftLeft(andBits(quadrant, integer(2)), toSign);
  return asFloat(xorBits(asInteger(value), sign));
}

Value VectorMath::sin(Value x) {
  return select(equal(x, constant(0.0)), x, sinOrCos(x, /*cosine=*/false));
}

Value VectorMath::cos(Value x) { return sinOrCos(x, /*cosine=*/true); }

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
                           mul(u.high, horner(u.high, f64Atanh)));
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
    return inDouble(x, y, &VectorMath::pow);
  Value one = constant(1.0), zero = constant(0.0);
  Value magnitude = abs(x);
  Value result = powOfMagnitude(magnitude, y);
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
  Type wideType = withElement(type, b.getF64Type());
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
