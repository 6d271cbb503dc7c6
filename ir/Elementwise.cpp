#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// Scalar bodies
//===----------------------------------------------------------------------===//

/// The scalar constant `value` of a float or signless integer type.
static Value createScalar(OpBuilder &b, Location loc, Type type, double value) {
  TypedAttr attribute;
  if (isa<FloatType>(type))
    attribute = b.getFloatAttr(type, value);
  else
    attribute = b.getIntegerAttr(type, static_cast<int64_t>(value));
  return arith::ConstantOp::create(b, loc, attribute);
}

static Value isBelow(OpBuilder &b, Location loc, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}

static Value isEqual(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}

Value NegOp::buildScalar(OpBuilder &b, ValueRange args) {
  Value x = args[0];
  if (isa<FloatType>(x.getType()))
    return arith::NegFOp::create(b, getLoc(), x);
  Value zero = createScalar(b, getLoc(), x.getType(), 0);
  return arith::SubIOp::create(b, getLoc(), zero, x);
}

Value AbsOp::buildScalar(OpBuilder &b, ValueRange args) {
  if (isa<FloatType>(args[0].getType()))
    return math::AbsFOp::create(b, getLoc(), args[0]);
  return math::AbsIOp::create(b, getLoc(), args[0]);
}

Value SignOp::buildScalar(OpBuilder &b, ValueRange args) {
  Value x = args[0];
  Value zero = createScalar(b, getLoc(), x.getType(), 0);
  Value one = createScalar(b, getLoc(), x.getType(), 1);
  Value minusOne = createScalar(b, getLoc(), x.getType(), -1);
  Value orNegative = arith::SelectOp::create(
      b, getLoc(), isBelow(b, getLoc(), x, zero), minusOne, x);
  return arith::SelectOp::create(b, getLoc(), isBelow(b, getLoc(), zero, x),
                                 one, orNegative);
}

Value RsqrtOp::buildScalar(OpBuilder &b, ValueRange args) {
  Value one = createScalar(b, getLoc(), args[0].getType(), 1);
  Value root = math::SqrtOp::create(b, getLoc(), args[0]);
  return arith::DivFOp::create(b, getLoc(), one, root);
}

Value SigmoidOp::buildScalar(OpBuilder &b, ValueRange args) {
  // z = e^-|x| is in (0, 1]; y = (x < 0 ? z : 1) / (1 + z).
  Value x = args[0];
  Value zero = createScalar(b, getLoc(), x.getType(), 0);
  Value one = createScalar(b, getLoc(), x.getType(), 1);
  Value magnitude = math::AbsFOp::create(b, getLoc(), x);
  Value z = math::ExpOp::create(b, getLoc(),
                                arith::NegFOp::create(b, getLoc(), magnitude));
  Value numerator = arith::SelectOp::create(
      b, getLoc(), isBelow(b, getLoc(), x, zero), z, one);
  Value denominator = arith::AddFOp::create(b, getLoc(), one, z);
  return arith::DivFOp::create(b, getLoc(), numerator, denominator);
}

Value ReluOp::buildScalar(OpBuilder &b, ValueRange args) {
  Value zero = createScalar(b, getLoc(), args[0].getType(), 0);
  if (isa<FloatType>(zero.getType()))
    return arith::MaximumFOp::create(b, getLoc(), args[0], zero);
  return arith::MaxSIOp::create(b, getLoc(), args[0], zero);
}

Value LogicalNotOp::buildScalar(OpBuilder &b, ValueRange args) {
  Value yes = createScalar(b, getLoc(), args[0].getType(), 1);
  return arith::XOrIOp::create(b, getLoc(), args[0], yes);
}

//===----------------------------------------------------------------------===//
// Integer division
//===----------------------------------------------------------------------===//

namespace {
/// The truncating division of two integers, without its two traps: by zero, and
/// of the least integer by -1.
struct IntegerDivision {
  Value byZero, byMinusOne;
  Value divisor; // 1 where one of the two holds
};
} // namespace

static IntegerDivision avoidTraps(OpBuilder &b, Location loc, Value divisor) {
  Value zero = createScalar(b, loc, divisor.getType(), 0);
  Value one = createScalar(b, loc, divisor.getType(), 1);
  Value minusOne = createScalar(b, loc, divisor.getType(), -1);
  Value byZero = isEqual(b, loc, divisor, zero);
  Value byMinusOne = isEqual(b, loc, divisor, minusOne);
  Value isTrap = arith::OrIOp::create(b, loc, byZero, byMinusOne);
  Value safe = arith::SelectOp::create(b, loc, isTrap, one, divisor);
  return {byZero, byMinusOne, safe};
}

/// a / b truncated toward zero; a / 0 = 0; a / -1 = -a, which wraps.
static Value divideTruncating(OpBuilder &b, Location loc, Value x, Value y) {
  IntegerDivision division = avoidTraps(b, loc, y);
  Value zero = createScalar(b, loc, x.getType(), 0);
  Value quotient = arith::DivSIOp::create(b, loc, x, division.divisor);
  Value negative = arith::SubIOp::create(b, loc, zero, x);
  quotient =
      arith::SelectOp::create(b, loc, division.byMinusOne, negative, quotient);
  return arith::SelectOp::create(b, loc, division.byZero, zero, quotient);
}

/// Whether the remainder of a truncating division has to move by one divisor to
/// get the divisor's sign: it is not zero, and their signs differ.
static Value hasWrongSign(OpBuilder &b, Location loc, Value remainder,
                          Value divisor) {
  Value zero = createScalar(b, loc, divisor.getType(), 0);
  Value differ = arith::XOrIOp::create(b, loc, isBelow(b, loc, remainder, zero),
                                       isBelow(b, loc, divisor, zero));
  Value nonzero;
  if (isa<FloatType>(divisor.getType()))
    nonzero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE,
                                    remainder, zero);
  else
    nonzero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, remainder,
                                    zero);
  return arith::AndIOp::create(b, loc, differ, nonzero);
}

/// The remainder of the truncating division; 0 by 0 and by -1.
static Value remainderTruncating(OpBuilder &b, Location loc, Value x, Value y) {
  // The safe divisor 1 leaves no remainder.
  Value safe = avoidTraps(b, loc, y).divisor;
  return arith::RemSIOp::create(b, loc, x, safe);
}

Value DivOp::buildScalar(OpBuilder &b, ValueRange args) {
  if (isa<FloatType>(args[0].getType()))
    return arith::DivFOp::create(b, getLoc(), args[0], args[1]);
  return divideTruncating(b, getLoc(), args[0], args[1]);
}

Value FloordivOp::buildScalar(OpBuilder &b, ValueRange args) {
  Location loc = getLoc();
  Value x = args[0], y = args[1];
  if (isa<FloatType>(x.getType()))
    return math::FloorOp::create(b, loc, arith::DivFOp::create(b, loc, x, y));
  Value quotient = divideTruncating(b, loc, x, y);
  Value remainder = remainderTruncating(b, loc, x, y);
  Value one = createScalar(b, loc, x.getType(), 1);
  Value below = arith::SubIOp::create(b, loc, quotient, one);
  return arith::SelectOp::create(b, loc, hasWrongSign(b, loc, remainder, y),
                                 below, quotient);
}

Value ModOp::buildScalar(OpBuilder &b, ValueRange args) {
  Location loc = getLoc();
  Value x = args[0], y = args[1];
  if (!isa<FloatType>(x.getType())) {
    Value remainder = remainderTruncating(b, loc, x, y);
    Value moved = arith::AddIOp::create(b, loc, remainder, y);
    return arith::SelectOp::create(b, loc, hasWrongSign(b, loc, remainder, y),
                                   moved, remainder);
  }
  Value remainder = arith::RemFOp::create(b, loc, x, y);
  Value moved = arith::AddFOp::create(b, loc, remainder, y);
  return arith::SelectOp::create(b, loc, hasWrongSign(b, loc, remainder, y),
                                 moved, remainder);
}

Value SelectOp::buildScalar(OpBuilder &b, ValueRange args) {
  return arith::SelectOp::create(b, getLoc(), args[0], args[1], args[2]);
}

//===----------------------------------------------------------------------===//
// cast
//===----------------------------------------------------------------------===//

LogicalResult CastOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                       Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  return inferTensor(location, x->getShape(), adaptor.getDtype(), types);
}

/// x in the float type `to`, by way of f32 where neither holds the other.
static Value castFloat(OpBuilder &b, Location loc, Value x, FloatType to) {
  auto from = cast<FloatType>(x.getType());
  if (from == to)
    return x;
  if (from.getWidth() == to.getWidth())
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  if (cast<FloatType>(x.getType()).getWidth() < to.getWidth())
    return arith::ExtFOp::create(b, loc, to, x);
  return arith::TruncFOp::create(b, loc, to, x);
}

/// x truncated toward zero, saturated to the range of the signless type `to`;
/// NaN gives 0.
static Value castFloatToInteger(OpBuilder &b, Location loc, Value x,
                                IntegerType to, bool isUnsigned) {
  // Two to the width must be a float.
  if (cast<FloatType>(x.getType()).getWidth() < 32)
    x = castFloat(b, loc, x, b.getF32Type());
  unsigned width = to.getWidth();
  double limit = std::ldexp(1.0, isUnsigned ? width : width - 1);
  Value above = createScalar(b, loc, x.getType(), limit);
  // The floats that truncate into the range are from least to below limit; an
  // unsigned one may start above -1, but what is below 0 saturates to 0 anyway.
  Value least = createScalar(b, loc, x.getType(), isUnsigned ? 0 : -limit);
  Value isHigh =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, above);
  Value isLow = isBelow(b, loc, x, least);
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value isOutside = arith::OrIOp::create(
      b, loc, arith::OrIOp::create(b, loc, isHigh, isLow), isNan);
  Value zero = createScalar(b, loc, x.getType(), 0);
  Value safe = arith::SelectOp::create(b, loc, isOutside, zero, x);

  Value inside, highest, lowest;
  APInt top =
      isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  APInt bottom =
      isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  highest = arith::ConstantOp::create(b, loc, b.getIntegerAttr(to, top));
  lowest = arith::ConstantOp::create(b, loc, b.getIntegerAttr(to, bottom));
  if (isUnsigned)
    inside = arith::FPToUIOp::create(b, loc, to, safe);
  else
    inside = arith::FPToSIOp::create(b, loc, to, safe);
  Value orLow = arith::SelectOp::create(b, loc, isLow, lowest, inside);
  return arith::SelectOp::create(b, loc, isHigh, highest, orLow);
}

/// x in the signless type `to`, wrapped.
static Value castInteger(OpBuilder &b, Location loc, Value x, IntegerType to,
                         bool isUnsigned) {
  unsigned width = cast<IntegerType>(x.getType()).getWidth();
  if (width == to.getWidth())
    return x;
  if (width > to.getWidth())
    return arith::TruncIOp::create(b, loc, to, x);
  if (isUnsigned)
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
}

/// x != 0
static Value castToBool(OpBuilder &b, Location loc, Value x) {
  Value zero = createScalar(b, loc, x.getType(), 0);
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, zero);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
}

/// The type of the same bits that `arith` takes.
static Type toSignless(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

static Value reinterpret(OpBuilder &b, Location loc, Value x, Type to) {
  if (x.getType() == to)
    return x;
  return UnrealizedConversionCastOp::create(b, loc, to, x).getResult(0);
}

static Value castScalar(OpBuilder &b, Location loc, Value x, bool fromUnsigned,
                        Type to, bool toUnsigned) {
  if (to.isInteger(1))
    return castToBool(b, loc, x);
  if (auto integer = dyn_cast<IntegerType>(to)) {
    if (isa<FloatType>(x.getType()))
      return castFloatToInteger(b, loc, x, integer, toUnsigned);
    return castInteger(b, loc, x, integer, fromUnsigned);
  }
  if (isa<FloatType>(x.getType()))
    return castFloat(b, loc, x, cast<FloatType>(to));
  if (fromUnsigned)
    return arith::UIToFPOp::create(b, loc, to, x);
  return arith::SIToFPOp::create(b, loc, to, x);
}

Value CastOp::buildScalar(OpBuilder &b, ValueRange args) {
  Type from = getX().getType().getElementType(), to = getDtype();
  if (from == to)
    return args[0];
  // `arith` has no ui8: the bits travel as i8. A true i1 is 1, not -1.
  bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  Value x = reinterpret(b, getLoc(), args[0], toSignless(args[0].getType()));
  Value y = castScalar(b, getLoc(), x, fromUnsigned, toSignless(to),
                       to.isUnsignedInteger());
  return reinterpret(b, getLoc(), y, to);
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : OpFoldResult();
}

/// -(-x) = x, bit for bit.
OpFoldResult NegOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<NegOp>();
  return inner ? inner.getX() : OpFoldResult();
}

OpFoldResult LogicalNotOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<LogicalNotOp>();
  return inner ? inner.getX() : OpFoldResult();
}

/// The number that all elements of `value` are known to be.
static std::optional<double> knownNumber(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() ||
      !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

/// x^2 = x x, and so on: a general power takes fifty times as long.
LogicalResult PowOp::canonicalize(PowOp op, PatternRewriter &rewriter) {
  Value x = op.getA();
  std::optional<double> exponent = knownNumber(op.getB());
  if (!exponent || x.getType() != op.getType())
    return rewriter.notifyMatchFailure(op, "is not by a known number");
  // Types of 16 bits would round in between.
  Type element = getElementTypeOrSelf(x);
  if (*exponent != 2 && !element.isF32() && !element.isF64())
    return rewriter.notifyMatchFailure(op, "rounds once");
  Location loc = op.getLoc();
  auto multiply = [&](Value a, Value b) -> Value {
    return MulOp::create(rewriter, loc, a, b);
  };
  auto number = [&](double value) {
    return createScalarLike(rewriter, loc, x, value);
  };
  auto invert = [&](Value y) -> Value {
    return DivOp::create(rewriter, loc, number(1), y);
  };
  // Unlike a root, a power of -0 is 0, and one of -inf is inf.
  auto root = [&]() -> Value {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Value positive = AddOp::create(rewriter, loc, x, number(0));
    Value y = SqrtOp::create(rewriter, loc, positive);
    Value isLeast = EqualOp::create(rewriter, loc, x, number(-infinity));
    return SelectOp::create(rewriter, loc, isLeast, number(infinity), y);
  };
  Value power;
  if (*exponent == 2)
    power = multiply(x, x);
  else if (*exponent == 3)
    power = multiply(multiply(x, x), x);
  else if (*exponent == 4) {
    Value square = multiply(x, x);
    power = multiply(square, square);
  } else if (*exponent == -1)
    power = invert(x);
  else if (*exponent == 0.5)
    power = root();
  else if (*exponent == -0.5)
    power = invert(root());
  else
    return rewriter.notifyMatchFailure(op, "is no product, quotient or root");
  rewriter.replaceOp(op, power);
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients: unary
//===----------------------------------------------------------------------===//

Values NegOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = -x: dx = -dy
  return {NegOp::create(b, getLoc(), cotangents[0])};
}

Values AbsOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = |x|: dx = dy sign(x)
  Value sign = SignOp::create(b, getLoc(), getX());
  return {MulOp::create(b, getLoc(), cotangents[0], sign)};
}

Values SignOp::vjp(OpBuilder &b, ValueRange) {
  return {createZerosLike(b, getLoc(), getX())};
}

// Constant between its jumps: no gradient that anybody wants.
Values FloorOp::vjp(OpBuilder &, ValueRange) { return {Value()}; }
bool FloorOp::isDifferentiable(unsigned) { return false; }
Values CeilOp::vjp(OpBuilder &, ValueRange) { return {Value()}; }
bool CeilOp::isDifferentiable(unsigned) { return false; }
Values RoundOp::vjp(OpBuilder &, ValueRange) { return {Value()}; }
bool RoundOp::isDifferentiable(unsigned) { return false; }

Values ExpOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = e^x: dx = dy y
  return {MulOp::create(b, getLoc(), cotangents[0], getY())};
}

Values Expm1Op::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = e^x - 1: dx = dy (y + 1)
  Value one = createScalarLike(b, getLoc(), getX(), 1);
  Value slope = AddOp::create(b, getLoc(), getY(), one);
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values LogOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = ln x: dx = dy / x
  return {DivOp::create(b, getLoc(), cotangents[0], getX())};
}

Values Log1pOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = ln(1 + x): dx = dy / (1 + x)
  Value one = createScalarLike(b, getLoc(), getX(), 1);
  Value shifted = AddOp::create(b, getLoc(), getX(), one);
  return {DivOp::create(b, getLoc(), cotangents[0], shifted)};
}

Values SqrtOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = sqrt(x): dx = dy / (2 y)
  Value two = createScalarLike(b, getLoc(), getX(), 2);
  Value twice = MulOp::create(b, getLoc(), getY(), two);
  return {DivOp::create(b, getLoc(), cotangents[0], twice)};
}

Values RsqrtOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = x^(-1/2): dx = dy (-1/2) y^3
  Value square = MulOp::create(b, getLoc(), getY(), getY());
  Value cube = MulOp::create(b, getLoc(), square, getY());
  Value factor = createScalarLike(b, getLoc(), getX(), -0.5);
  Value slope = MulOp::create(b, getLoc(), cube, factor);
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values SinOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = sin x: dx = dy cos x
  Value slope = CosOp::create(b, getLoc(), getX());
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values CosOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = cos x: dx = -dy sin x
  Value sine = SinOp::create(b, getLoc(), getX());
  Value product = MulOp::create(b, getLoc(), cotangents[0], sine);
  return {NegOp::create(b, getLoc(), product)};
}

Values TanhOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = tanh x: dx = dy (1 - y^2)
  Value one = createScalarLike(b, getLoc(), getX(), 1);
  Value square = MulOp::create(b, getLoc(), getY(), getY());
  Value slope = SubOp::create(b, getLoc(), one, square);
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values SigmoidOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = 1 / (1 + e^-x): dx = dy y (1 - y)
  Value one = createScalarLike(b, getLoc(), getX(), 1);
  Value rest = SubOp::create(b, getLoc(), one, getY());
  Value slope = MulOp::create(b, getLoc(), getY(), rest);
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values ErfOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = erf x: dx = dy 2/sqrt(pi) e^(-x^2)
  Value square = MulOp::create(b, getLoc(), getX(), getX());
  Value bell = ExpOp::create(b, getLoc(), NegOp::create(b, getLoc(), square));
  Value factor =
      createScalarLike(b, getLoc(), getX(), 2 * llvm::numbers::inv_sqrtpi);
  Value slope = MulOp::create(b, getLoc(), bell, factor);
  return {MulOp::create(b, getLoc(), cotangents[0], slope)};
}

Values ReluOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = max(x, 0): dx = y > 0 ? dy : 0. Who reads y needs no x, which then is
  // nowhere in memory.
  Value zero = createScalarLike(b, getLoc(), getY(), 0);
  Value isPositive = GreaterOp::create(b, getLoc(), getY(), zero);
  return {SelectOp::create(b, getLoc(), isPositive, cotangents[0], zero)};
}

//===----------------------------------------------------------------------===//
// Gradients: binary
//===----------------------------------------------------------------------===//

Values AddOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a + b: da = dy, db = dy
  Value dy = cotangents[0];
  return {sumLike(b, getLoc(), dy, getA()), sumLike(b, getLoc(), dy, getB())};
}

Values SubOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a - b: da = dy, db = -dy
  Value dy = cotangents[0];
  Value db = sumLike(b, getLoc(), dy, getB());
  return {sumLike(b, getLoc(), dy, getA()), NegOp::create(b, getLoc(), db)};
}

Values MulOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a b: da = dy b, db = dy a
  Value da = MulOp::create(b, getLoc(), cotangents[0], getB());
  Value db = MulOp::create(b, getLoc(), cotangents[0], getA());
  return {sumLike(b, getLoc(), da, getA()), sumLike(b, getLoc(), db, getB())};
}

Values DivOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a / b: da = dy / b, db = -(dy / b) y
  Value da = DivOp::create(b, getLoc(), cotangents[0], getB());
  Value product = MulOp::create(b, getLoc(), da, getY());
  Value db = NegOp::create(b, getLoc(), product);
  return {sumLike(b, getLoc(), da, getA()), sumLike(b, getLoc(), db, getB())};
}

// Constant between its jumps.
Values FloordivOp::vjp(OpBuilder &, ValueRange) { return {Value(), Value()}; }
bool FloordivOp::isDifferentiable(unsigned) { return false; }

Values ModOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a - b floor(a / b): da = dy, db = -dy floor(a / b)
  Value quotient = FloordivOp::create(b, getLoc(), getA(), getB());
  Value product = MulOp::create(b, getLoc(), cotangents[0], quotient);
  Value db = NegOp::create(b, getLoc(), product);
  return {sumLike(b, getLoc(), cotangents[0], getA()),
          sumLike(b, getLoc(), db, getB())};
}

Values PowOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = a^b: da = dy b a^(b - 1), db = dy y ln a. Where b is 0 the first is 0
  // for every a, and where a <= 0 there is no logarithm.
  Location loc = getLoc();
  Value dy = cotangents[0];
  Value zero = createScalarLike(b, loc, getA(), 0);
  Value one = createScalarLike(b, loc, getA(), 1);
  Value isZero = EqualOp::create(b, loc, getB(), zero);
  Value lower =
      SelectOp::create(b, loc, isZero, one, SubOp::create(b, loc, getB(), one));
  Value slope =
      MulOp::create(b, loc, getB(), PowOp::create(b, loc, getA(), lower));
  Value da = MulOp::create(b, loc, dy, slope);

  Value isPositive = GreaterOp::create(b, loc, getA(), zero);
  Value base = SelectOp::create(b, loc, isPositive, getA(), one);
  Value growth = MulOp::create(b, loc, getY(), LogOp::create(b, loc, base));
  Value db = SelectOp::create(b, loc, isPositive,
                              MulOp::create(b, loc, dy, growth), zero);
  return {sumLike(b, loc, da, getA()), sumLike(b, loc, db, getB())};
}

/// da = chooses ? dy : 0, db = chooses ? 0 : dy
static std::pair<Value, Value> shareBetween(OpBuilder &b, Location loc,
                                            Value chooses, Value dy, Value x,
                                            Value y) {
  Value zero = createScalarLike(b, loc, dy, 0);
  Value dx = SelectOp::create(b, loc, chooses, dy, zero);
  Value dother = SelectOp::create(b, loc, chooses, zero, dy);
  return {sumLike(b, loc, dx, x), sumLike(b, loc, dother, y)};
}

Values MaximumOp::vjp(OpBuilder &b, ValueRange cotangents) {
  Value chooses = GreaterEqualOp::create(b, getLoc(), getA(), getB());
  auto [da, db] =
      shareBetween(b, getLoc(), chooses, cotangents[0], getA(), getB());
  return {da, db};
}

Values MinimumOp::vjp(OpBuilder &b, ValueRange cotangents) {
  Value chooses = LessEqualOp::create(b, getLoc(), getA(), getB());
  auto [da, db] =
      shareBetween(b, getLoc(), chooses, cotangents[0], getA(), getB());
  return {da, db};
}

Values SelectOp::vjp(OpBuilder &b, ValueRange cotangents) {
  auto [da, db] =
      shareBetween(b, getLoc(), getCond(), cotangents[0], getA(), getB());
  return {Value(), da, db};
}

Values CastOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // Only floats are differentiable: dx is dy in x's element type.
  Type from = getX().getType().getElementType();
  if (!isa<FloatType>(from) || !isa<FloatType>(getDtype()))
    return {Value()};
  return {CastOp::create(b, getLoc(), cotangents[0], from)};
}
