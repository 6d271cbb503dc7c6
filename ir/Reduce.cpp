#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// Neutral elements and combinations
//===----------------------------------------------------------------------===//

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static TypedAttr numberAttr(OpBuilder &b, Type type, int64_t value) {
  if (isa<FloatType>(type))
    return b.getFloatAttr(type, static_cast<double>(value));
  return b.getIntegerAttr(type, value);
}

/// The least value of a type, or the largest: infinities for floats.
static TypedAttr extremeAttr(OpBuilder &b, Type type, bool isLeast) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return b.getFloatAttr(
        type, APFloat::getInf(floatType.getFloatSemantics(), isLeast));
  unsigned width = type.getIntOrFloatBitWidth();
  return b.getIntegerAttr(type, isLeast ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
}

template <typename FloatOp, typename IntegerOp>
static Value combine(OpBuilder &b, Location loc, Value element,
                     Value accumulator) {
  if (isa<FloatType>(element.getType()))
    return FloatOp::create(b, loc, element, accumulator);
  return IntegerOp::create(b, loc, element, accumulator);
}

TypedAttr SumOp::getNeutralElement(OpBuilder &b) {
  return numberAttr(b, elementOf(getX()), 0);
}
Value SumOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return combine<arith::AddFOp, arith::AddIOp>(b, getLoc(), element,
                                               accumulator);
}

TypedAttr ProdOp::getNeutralElement(OpBuilder &b) {
  return numberAttr(b, elementOf(getX()), 1);
}
Value ProdOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return combine<arith::MulFOp, arith::MulIOp>(b, getLoc(), element,
                                               accumulator);
}

TypedAttr MaxOp::getNeutralElement(OpBuilder &b) {
  return extremeAttr(b, elementOf(getX()), /*isLeast=*/true);
}
Value MaxOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return combine<arith::MaximumFOp, arith::MaxSIOp>(b, getLoc(), element,
                                                    accumulator);
}

TypedAttr MinOp::getNeutralElement(OpBuilder &b) {
  return extremeAttr(b, elementOf(getX()), /*isLeast=*/false);
}
Value MinOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return combine<arith::MinimumFOp, arith::MinSIOp>(b, getLoc(), element,
                                                    accumulator);
}

TypedAttr AnyOp::getNeutralElement(OpBuilder &b) {
  return b.getBoolAttr(false);
}
Value AnyOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return arith::OrIOp::create(b, getLoc(), element, accumulator);
}

TypedAttr AllOp::getNeutralElement(OpBuilder &b) { return b.getBoolAttr(true); }
Value AllOp::buildCombiner(OpBuilder &b, Value element, Value accumulator) {
  return arith::AndIOp::create(b, getLoc(), element, accumulator);
}

//===----------------------------------------------------------------------===//
// squared_deviations
//===----------------------------------------------------------------------===//

LogicalResult SquaredDeviationsOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  return inferReduction(location, adaptor.getX(), adaptor.getAxes(),
                        /*keepdims=*/true, types);
}

LogicalResult SquaredDeviationsOp::verify() {
  if (succeeded(verifyCompatibleShape(getMean().getType(), getType())) &&
      getMean().getType().getElementType() == getType().getElementType())
    return success();
  return emitOpError() << "mean has type " << getMean().getType()
                       << " but the mean over these axes has the type "
                       << getType();
}

FailureOr<SmallVector<Value>> SquaredDeviationsOp::decompose(OpBuilder &b) {
  Value off = SubOp::create(b, getLoc(), getX(), getMean());
  Value square = MulOp::create(b, getLoc(), off, off);
  return SmallVector<Value>{
      SumOp::create(b, getLoc(), square, getAxes(), /*keepdims=*/true)};
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Values SquaredDeviationsOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // dx = 2 dy (x - mean); that by the mean, which is the sum of -dx, is zero.
  Value two = createScalarLike(b, getLoc(), getX(), 2);
  Value slope = MulOp::create(b, getLoc(), cotangents[0], two);
  Value off = SubOp::create(b, getLoc(), getX(), getMean());
  return {MulOp::create(b, getLoc(), off, slope), Value()};
}

/// `y` with its reduced axes back, of extent 1: it broadcasts against x.
template <typename ReduceOp>
static Value withReducedAxes(OpBuilder &b, ReduceOp op, Value y) {
  if (op.getKeepdims() || op.getAxes().empty())
    return y;
  return ExpandDimsOp::create(b, op.getLoc(), y, op.getAxes());
}

Values SumOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = sum x: dx = dy, repeated
  Value dy = withReducedAxes(b, *this, cotangents[0]);
  return {broadcastLike(b, getLoc(), dy, getX())};
}

Values ProdOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // dx[i] = dy * product of the others. With p the product of what is not 0,
  // that is p / x[i] when nothing is 0; when one element is, p there and 0
  // elsewhere; else 0.
  Location loc = getLoc();
  Value zero = createScalarLike(b, loc, getX(), 0);
  Value one = createScalarLike(b, loc, getX(), 1);
  Value isZero = EqualOp::create(b, loc, getX(), zero);
  Value rest = SelectOp::create(b, loc, isZero, one, getX());
  Value product = ProdOp::create(b, loc, rest, getAxes(), /*keepdims=*/true);
  Value zeros =
      SumOp::create(b, loc, SelectOp::create(b, loc, isZero, one, zero),
                    getAxes(), /*keepdims=*/true);
  Value hasNone = EqualOp::create(b, loc, zeros, zero);
  Value hasOne = EqualOp::create(b, loc, zeros, one);
  Value counts = SelectOp::create(b, loc, isZero, hasOne, hasNone);
  Value others = DivOp::create(b, loc, product, rest);
  Value dy = withReducedAxes(b, *this, cotangents[0]);
  Value dx = MulOp::create(b, loc, dy, others);
  return {SelectOp::create(b, loc, counts, dx, zero)};
}

/// y is one of x: dx = dy where x = y, shared among equal elements.
template <typename ReduceOp>
static Values extremeVjp(OpBuilder &b, ReduceOp op, Value dy) {
  Location loc = op.getLoc();
  Value x = op.getX();
  Value zero = createScalarLike(b, loc, x, 0);
  Value one = createScalarLike(b, loc, x, 1);
  Value chosen = EqualOp::create(b, loc, x, withReducedAxes(b, op, op.getY()));
  Value count =
      SumOp::create(b, loc, SelectOp::create(b, loc, chosen, one, zero),
                    op.getAxes(), /*keepdims=*/true);
  Value share = DivOp::create(b, loc, withReducedAxes(b, op, dy), count);
  return {SelectOp::create(b, loc, chosen, share, zero)};
}

Values MaxOp::vjp(OpBuilder &b, ValueRange cotangents) {
  return extremeVjp(b, *this, cotangents[0]);
}

Values MinOp::vjp(OpBuilder &b, ValueRange cotangents) {
  return extremeVjp(b, *this, cotangents[0]);
}
