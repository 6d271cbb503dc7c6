//===- VectorMath.cpp - elementary functions in plain arithmetic ----------===//
//
// log: x = 2^k (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), log(1 + f) = f + f^2
// p(f). sin, cos: pi/2 in three parts. f32 and f64 differ in their table only,
// but for erf and pow.
//
//===----------------------------------------------------------------------===//
#include "passes/VectorMath.h"

#include "passes/Lanes.h"
#include "passes/VectorMathTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
static constexpr double twoOverPi = 0.63661977236758138;

VectorMath::VectorMath(OpBuilder &builder, Location loc, Type type,
                       VectorMathTarget target)
    : b(loc, builder), type(type),
      integerType(likewise(
          type, builder.getIntegerType(
                    getElementTypeOrSelf(type).getIntOrFloatBitWidth()))),
      target(target),
      table(getElementTypeOrSelf(type).isF64() ? f64MathTable : f32MathTable) {
  assert((isDouble() || getElementTypeOrSelf(type).isF32()) &&
         "the caller widens narrow floats");
}

//===----------------------------------------------------------------------===//
// The words of the sequences
//===----------------------------------------------------------------------===//

bool VectorMath::isDouble() const { return &table == &f64MathTable; }

Value VectorMath::constant(double value) {
  return splat(b, b.getLoc(), type,
               b.getFloatAttr(getElementTypeOrSelf(type), value));
}

Value VectorMath::integer(uint64_t value) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(integerType));
  APInt bits(64, value);
  return splat(b, b.getLoc(), integerType,
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

/// Whether what AVX-512 does in one instruction applies to values of `type`.
bool VectorMath::hasIntrinsics() const {
  auto vector = dyn_cast<VectorType>(type);
  return target.avx512 && !isDouble() &&
         (!vector || (vector.getRank() == 1 && !vector.isScalable()));
}

/// Whether one instruction picks any of eight values of `type` for each lane.
bool VectorMath::hasPermutations() const {
  auto vector = dyn_cast<VectorType>(type);
  return target.permutes && target.fma && !isDouble() &&
         (!vector || (vector.getRank() == 1 && !vector.isScalable()));
}

/// What `make` makes of so many `lanes` of each of `operands` at a time, for as
/// many as there are.
Value VectorMath::inRegisters(int64_t lanes, ValueRange operands,
                              function_ref<Value(ArrayRef<Value>)> make) {
  auto wide = [&](Value operand) {
    return VectorType::get(lanes, getElementTypeOrSelf(operand));
  };
  auto vector = dyn_cast<VectorType>(type);
  if (!vector) {
    SmallVector<Value> values;
    for (Value operand : operands)
      values.push_back(vector::BroadcastOp::create(b, wide(operand), operand));
    return vector::ExtractOp::create(b, make(values), int64_t(0));
  }
  int64_t count = vector.getNumElements();
  if (count == lanes)
    return make(llvm::to_vector(operands));
  Value result = splat(b, b.getLoc(), type, b.getF32FloatAttr(0));
  for (int64_t at = 0; at < count; at += lanes) {
    int64_t size = std::min(lanes, count - at);
    SmallVector<Value> values;
    for (Value operand : operands) {
      Value part = vector::ExtractStridedSliceOp::create(
          b, operand, ArrayRef(at), ArrayRef(size), ArrayRef<int64_t>(1));
      if (size != lanes)
        part = vector::InsertStridedSliceOp::create(
            b, part, arith::ConstantOp::create(b, b.getZeroAttr(wide(operand))),
            ArrayRef<int64_t>(0), ArrayRef<int64_t>(1));
      values.push_back(part);
    }
    Value part = make(values);
    if (size != lanes)
      part = vector::ExtractStridedSliceOp::create(
          b, part, ArrayRef<int64_t>(0), ArrayRef(size), ArrayRef<int64_t>(1));
    result = vector::InsertStridedSliceOp::create(b, part, result, ArrayRef(at),
                                                  ArrayRef<int64_t>(1));
  }
  return result;
}

/// The elements of `pieces` whose numbers are the last bits of `number`: one
/// instruction picks from a register of AVX2, or from two of AVX-512.
Value VectorMath::lookUp(Value number, ArrayRef<float> pieces) {
  constexpr size_t ofAvx2 = 8, ofAvx512 = 16;
  bool isOne = pieces.size() == ofAvx2;
  assert(isOne ? hasPermutations()
               : hasIntrinsics() && pieces.size() == 2 * ofAvx512);
  size_t lanes = isOne ? ofAvx2 : ofAvx512;
  auto wide = VectorType::get(int64_t(lanes), b.getF32Type());
  auto vectorOf = [&](ArrayRef<float> elements) -> Value {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(wide, elements));
  };
  Value low = vectorOf(pieces.take_front(lanes));
  Value high = isOne ? Value() : vectorOf(pieces.take_back(lanes));
  StringRef name =
      isOne ? "llvm.x86.avx2.permps" : "llvm.x86.avx512.vpermi2var.ps.512";
  return inRegisters(int64_t(lanes), number,
                     [&](ArrayRef<Value> numbers) -> Value {
                       SmallVector<Value> operands = {low, numbers[0]};
                       if (high)
                         operands.push_back(high);
                       return LLVM::CallIntrinsicOp::create(
                                  b, wide, b.getStringAttr(name), operands)
                           .getResult(0);
                     });
}

/// The intrinsic `name`; it `rounds` if it wants to be told how. The immediate
/// is behind the operands.
Value VectorMath::intrinsic(StringRef name, ValueRange operands, bool rounds,
                            std::optional<int32_t> immediate) {
  auto wide = VectorType::get(16, b.getF32Type());
  Value nothing = splat(b, b.getLoc(), wide, b.getF32FloatAttr(0));
  Value all = arith::ConstantOp::create(b, b.getI16IntegerAttr(-1));
  return inRegisters(16, operands, [&](ArrayRef<Value> values) -> Value {
    SmallVector<Value> arguments(values);
    if (immediate)
      arguments.push_back(
          arith::ConstantOp::create(b, b.getI32IntegerAttr(*immediate)));
    arguments.append({nothing, all});
    if (rounds) // as the machine is told to for everything else
      arguments.push_back(arith::ConstantOp::create(b, b.getI32IntegerAttr(4)));
    return LLVM::CallIntrinsicOp::create(b, wide, b.getStringAttr(name),
                                         arguments)
        .getResult(0);
  });
}

/// 1 / x (1 + 2^-14) for positive numbers that are far from the ends of the
/// normal ones.
Value VectorMath::reciprocalTo14Bits(Value x) {
  return intrinsic("llvm.x86.avx512.rcp14.ps.512", x, /*rounds=*/false);
}

/// x - floor(x); 0 for infinities.
Value VectorMath::aboveFloor(Value x) {
  constexpr int32_t down = 9; // and no exception
  return intrinsic("llvm.x86.avx512.mask.reduce.ps.512", x, /*rounds=*/true,
                   down);
}

/// x / divisor for a positive divisor that is far from the ends of the normal
/// numbers. The division of 16 lanes takes 16 cycles on most machines, in which
/// they could be multiplied 32 times; that of 8 takes 5, beside whatever is
/// multiplied.
Value VectorMath::quotient(Value x, Value divisor) {
  return hasIntrinsics() && !target.divides
             ? quotientBy(x, divisor, reciprocalTo14Bits(divisor))
             : div(x, divisor);
}

/// x / divisor by a reciprocal that is off by e: what is left of x after x
/// times it makes that e^2.
Value VectorMath::quotientBy(Value x, Value divisor, Value reciprocal) {
  Value quotient = mul(x, reciprocal);
  return fma(fma(negate(divisor), quotient, x), reciprocal, quotient);
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
  VectorMath wide(b, b.getLoc(), likewise(type, b.getF64Type()), target);
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

} // namespace keratin
