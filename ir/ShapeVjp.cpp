//===- ShapeVjp.cpp - gradients of ops that move elements -----------------===//
#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Permutation.h"
#include "ir/Vjp.h"

using namespace mlir;
using namespace keratin::ktn;

/// `dy`, whose elements are those of x, in the shape of x.
static Value reshapeLike(OpBuilder &b, Location loc, Value dy, Value x) {
  if (dy.getType() == x.getType())
    return dy;
  auto type = cast<RankedTensorType>(x.getType());
  // A `?` that followed from static extents would not be a `?` in the type.
  bool followsFromCount =
      type.hasStaticShape() ||
      (hasOneShape(type.getShape()) &&
       !cast<RankedTensorType>(dy.getType()).hasStaticShape());
  Value shape;
  if (!followsFromCount)
    shape = ShapeOp::create(b, loc, x);
  return ReshapeOp::create(b, loc, dy, shape, type.getShape());
}

Values ReshapeOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // The same elements in the other shape.
  Values grads{reshapeLike(b, getLoc(), cotangents[0], getX())};
  if (getShape())
    grads.push_back(Value());
  return grads;
}

Values ExpandDimsOp::vjp(OpBuilder &b, ValueRange cotangents) {
  return {SqueezeOp::create(b, getLoc(), cotangents[0], getAxes())};
}

Values SqueezeOp::vjp(OpBuilder &b, ValueRange cotangents) {
  return {reshapeLike(b, getLoc(), cotangents[0], getX())};
}

Values TransposeOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // Axis i of y is axis p[i] of x, so axis p[i] of dx is axis i of dy.
  return {TransposeOp::create(b, getLoc(), cotangents[0],
                              inverseOf(getPermutation()))};
}

Values BroadcastToOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // dx sums dy over the copies; a `?` of x is not repeated.
  Values grads{sumLike(b, getLoc(), cotangents[0], getX())};
  if (getShape())
    grads.push_back(Value());
  return grads;
}

Values ReverseOp::vjp(OpBuilder &b, ValueRange cotangents) {
  return {ReverseOp::create(b, getLoc(), cotangents[0], getAxes())};
}

/// `start:end` of one axis, all of the others.
static Value sliceAxis(OpBuilder &b, Location loc, Value x, int64_t axis,
                       int64_t start, int64_t end) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<int64_t> starts(rank, 0), strides(rank, 1);
  SmallVector<int64_t> ends(rank, ShapedType::kDynamic);
  starts[axis] = start;
  ends[axis] = end;
  return SliceOp::create(b, loc, x, starts, ends, strides);
}

/// All of one axis but the last `count` elements, of unknown extent.
static Value dropBack(OpBuilder &b, Location loc, Value x, int64_t axis,
                      int64_t count) {
  if (count == 0)
    return x;
  Value reversed = ReverseOp::create(b, loc, x, axis);
  Value kept = sliceAxis(b, loc, reversed, axis, count, ShapedType::kDynamic);
  return ReverseOp::create(b, loc, kept, axis);
}

/// Zeros around `x` along one axis.
static Value padAxis(OpBuilder &b, Location loc, Value x, int64_t axis,
                     int64_t low, int64_t high) {
  if (low == 0 && high == 0)
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> lows(type.getRank(), 0), highs(type.getRank(), 0);
  lows[axis] = low;
  highs[axis] = high;
  auto zero = cast<TypedAttr>(b.getZeroAttr(type.getElementType()));
  return PadOp::create(b, loc, x, lows, highs, zero);
}

/// The extent of `x` along one axis.
static int64_t extentOf(Value x, int64_t axis) {
  return cast<RankedTensorType>(x.getType()).getDimSize(axis);
}

Values PadOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // x is the middle of y, so dx is the middle of dy.
  Value dx = cotangents[0];
  for (auto [axis, low, high] : llvm::enumerate(getLow(), getHigh())) {
    dx = dropBack(b, getLoc(), dx, axis, high);
    if (low != 0)
      dx = sliceAxis(b, getLoc(), dx, axis, low, ShapedType::kDynamic);
  }
  return {dx};
}

/// The sum of the extents of `xs` along one axis, `?` when one is.
static int64_t totalExtent(ValueRange xs, int64_t axis) {
  int64_t total = 0;
  for (Value x : xs) {
    if (ShapedType::isDynamic(extentOf(x, axis)))
      return ShapedType::kDynamic;
    total += extentOf(x, axis);
  }
  return total;
}

/// The part of `whole` with `before` elements before it along one axis and
/// `after` elements after it, null when it takes more than one unknown extent
/// to find it.
static Value findPart(OpBuilder &b, Location loc, Value whole, int64_t axis,
                      int64_t before, int64_t extent, int64_t after) {
  bool isStatic = ShapedType::isStatic(extent);
  if (ShapedType::isStatic(before) && isStatic)
    return sliceAxis(b, loc, whole, axis, before, before + extent);
  if (ShapedType::isDynamic(after))
    return nullptr;
  whole = dropBack(b, loc, whole, axis, after);
  if (ShapedType::isStatic(before))
    return sliceAxis(b, loc, whole, axis, before, ShapedType::kDynamic);
  if (!isStatic)
    return nullptr;
  Value reversed = ReverseOp::create(b, loc, whole, axis);
  Value part = sliceAxis(b, loc, reversed, axis, 0, extent);
  return ReverseOp::create(b, loc, part, axis);
}

Values ConcatOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // Each operand takes its part of dy.
  int64_t axis = getAxis();
  Values grads;
  for (auto [i, x] : llvm::enumerate(getXs())) {
    int64_t before = totalExtent(getXs().take_front(i), axis);
    int64_t after = totalExtent(getXs().drop_front(i + 1), axis);
    grads.push_back(findPart(b, getLoc(), cotangents[0], axis, before,
                             extentOf(x, axis), after));
    if (!grads.back()) {
      emitOpError("has no gradient: more than one operand has an unknown "
                  "extent on axis ")
          << axis;
      return {};
    }
  }
  return grads;
}

/// The extents of `x`, the one of `axis` times `factor`.
static Value scaleExtent(OpBuilder &b, Location loc, Value x, int64_t axis,
                         int64_t factor) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<int64_t> factors(rank, 1);
  factors[axis] = factor;
  auto type = RankedTensorType::get(rank, b.getI64Type());
  return MulOp::create(
      b, loc, ShapeOp::create(b, loc, x),
      ConstantOp::create(b, loc, DenseIntElementsAttr::get(type, factors)));
}

/// `x` with `stride - 1` zeros after each element of one axis.
static Value spreadAxis(OpBuilder &b, Location loc, Value x, int64_t axis,
                        int64_t stride) {
  if (stride == 1)
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> target(type.getShape());
  if (ShapedType::isStatic(target[axis]))
    target[axis] *= stride;
  Value columns = ExpandDimsOp::create(b, loc, x, axis + 1);
  Value padded = padAxis(b, loc, columns, axis + 1, 0, stride - 1);
  Value shape;
  if (!hasOneShape(target))
    shape = scaleExtent(b, loc, x, axis, stride);
  return ReshapeOp::create(b, loc, padded, shape, target);
}

/// Zeros for what `slice` leaves out at the end of `axis`, from `covered` on.
/// The later axes are whole, those before it as the slice has them.
static Value createZerosAfter(OpBuilder &b, SliceOp slice, int64_t axis,
                              int64_t covered) {
  SmallVector<int64_t> starts(slice.getStarts()), ends(slice.getEnds());
  SmallVector<int64_t> strides(slice.getStrides());
  for (size_t whole = axis; whole < starts.size(); ++whole) {
    starts[whole] = 0;
    ends[whole] = ShapedType::kDynamic;
    strides[whole] = 1;
  }
  starts[axis] = covered;
  Value rest =
      SliceOp::create(b, slice.getLoc(), slice.getX(), starts, ends, strides);
  return createZerosLike(b, slice.getLoc(), rest);
}

/// Gives `dy` the extent of x along `axis`: zeros where the slice takes
/// nothing. Null when the zeros at the end cannot be counted.
static Value unsliceAxis(OpBuilder &b, SliceOp slice, Value dy, int64_t axis) {
  Location loc = slice.getLoc();
  int64_t start = slice.getStarts()[axis], end = slice.getEnds()[axis];
  int64_t stride = slice.getStrides()[axis];
  int64_t extent = extentOf(slice.getX(), axis);
  int64_t limit = ShapedType::isDynamic(end) ? extent : end;
  if (ShapedType::isDynamic(limit))
    return stride == 1 ? padAxis(b, loc, dy, axis, start, 0) : Value();
  dy = spreadAxis(b, loc, dy, axis, stride);
  if (extentOf(dy, axis) > limit - start) // the last element's zeros
    dy = sliceAxis(b, loc, dy, axis, 0, limit - start);
  int64_t covered = start + extentOf(dy, axis);
  if (ShapedType::isStatic(extent))
    return padAxis(b, loc, dy, axis, start, extent - covered);
  Value front = padAxis(b, loc, dy, axis, start, 0);
  Value zeros = createZerosAfter(b, slice, axis, covered);
  return ConcatOp::create(b, loc, ValueRange{front, zeros}, axis);
}

Values SliceOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // dx is dy where the slice takes an element, and 0 elsewhere.
  Value dx = cotangents[0];
  for (int64_t axis = getStarts().size() - 1; axis >= 0; --axis) {
    dx = unsliceAxis(b, *this, dx, axis);
    if (!dx) {
      emitOpError("has no gradient: axis ")
          << axis << " has an unknown extent and stride " << getStrides()[axis];
      return {};
    }
  }
  return {dx};
}
