#include "ir/Folding.h"
#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// Type inference
//===----------------------------------------------------------------------===//

LogicalResult ShapeOp::inferReturnTypes(MLIRContext *context, MaybeLoc location,
                                        Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  return inferTensor(location, x->getRank(), IntegerType::get(context, 64),
                     types);
}

/// The product of the static extents, or failure when it overflows.
static FailureOr<int64_t> countStatic(MaybeLoc location,
                                      ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (ShapedType::isDynamic(extent))
      continue;
    std::optional<int64_t> product = llvm::checkedMul(count, extent);
    if (!product)
      return emitOptionalError(location, "shape ", formatShape(shape),
                               " has more than 2^63 - 1 elements");
    count = *product;
  }
  return count;
}

/// The operand that gives the `?` of a target has one element an axis.
static LogicalResult checkShapeOperand(MaybeLoc location, Value shape,
                                       ArrayRef<int64_t> target) {
  if (!shape)
    return success();
  FailureOr<RankedTensorType> type = inferRanked(location, shape);
  if (failed(type))
    return failure();
  int64_t rank = target.size();
  if (type->getRank() == 1 &&
      succeeded(mergeExtents(type->getDimSize(0), rank)))
    return success();
  return emitOptionalError(location, "shape has type ", *type,
                           " but the target ", formatShape(target), " has ",
                           rank, " axes");
}

/// The one `?` of `target` from the element count of `x`, 0 when the count is
/// not divisible.
static LogicalResult resolveUnknownExtent(MaybeLoc location,
                                          ArrayRef<int64_t> x,
                                          SmallVectorImpl<int64_t> &target) {
  FailureOr<int64_t> count = countStatic(location, x);
  FailureOr<int64_t> known = countStatic(location, target);
  if (failed(count) || failed(known))
    return failure();
  int64_t unknowns = llvm::count(target, ShapedType::kDynamic);
  if (unknowns > 1)
    return emitOptionalError(location, "target ", formatShape(target), " has ",
                             unknowns,
                             " unknown extents but only one follows from the "
                             "element count");
  if (unknowns == 1 && *known == 0)
    return emitOptionalError(location, "the unknown extent of target ",
                             formatShape(target),
                             " does not follow from the element count, as "
                             "another extent is 0");
  if (ShapedType::isDynamicShape(x))
    return success();
  bool fits = unknowns == 0 ? *count == *known : *count % *known == 0;
  if (!fits)
    return emitOptionalError(location, "cannot reshape ", formatShape(x),
                             " with ", *count, " elements to ",
                             formatShape(target));
  if (unknowns == 1)
    *llvm::find(target, ShapedType::kDynamic) = *count / *known;
  return success();
}

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  SmallVector<int64_t> target(adaptor.getTarget());
  for (int64_t extent : target)
    if (extent < 0 && !ShapedType::isDynamic(extent))
      return emitOptionalError(location, "target ", formatShape(target),
                               " has the negative extent ", extent);
  if (failed(checkShapeOperand(location, adaptor.getShape(), target)))
    return failure();
  bool isResolved = adaptor.getShape() && ShapedType::isDynamicShape(target);
  if (!isResolved &&
      failed(resolveUnknownExtent(location, x->getShape(), target)))
    return failure();
  return inferTensor(location, target, x->getElementType(), types);
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                            Adaptor adaptor,
                                            InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (failed(checkCount(location, "permutation", permutation, x->getRank(),
                        "axis")))
    return failure();
  SmallVector<int64_t> shape;
  SmallVector<bool> seen(x->getRank(), false);
  for (int64_t axis : permutation) {
    if (failed(checkAxis(location, "permutation", axis, x->getRank())))
      return failure();
    if (seen[axis])
      return emitOptionalError(location, "permutation ",
                               formatShape(permutation), " has axis ", axis,
                               " twice");
    seen[axis] = true;
    shape.push_back(x->getDimSize(axis));
  }
  return inferTensor(location, shape, x->getElementType(), types);
}

/// The extent of the result of broadcast_to where x has `extent`.
static FailureOr<int64_t> broadcastExtentTo(int64_t extent, int64_t target,
                                            bool hasShape) {
  if (ShapedType::isDynamic(target))
    return hasShape ? target : extent;
  if (extent == 1 || extent == target || ShapedType::isDynamic(extent))
    return target;
  return failure();
}

LogicalResult BroadcastToOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                              Adaptor adaptor,
                                              InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  SmallVector<int64_t> target(adaptor.getTarget());
  if (failed(checkShapeOperand(location, adaptor.getShape(), target)))
    return failure();
  int64_t leading = static_cast<int64_t>(target.size()) - x->getRank();
  if (leading < 0)
    return emitOptionalError(location, "cannot broadcast ",
                             formatShape(x->getShape()), " to ",
                             formatShape(target), " of smaller rank");
  bool hasShape = static_cast<bool>(adaptor.getShape());
  for (auto [i, extent] : llvm::enumerate(target)) {
    int64_t axis = static_cast<int64_t>(i) - leading;
    if (axis < 0 && ShapedType::isDynamic(extent) && !hasShape)
      return emitOptionalError(
          location, "extent ", i, " of target ", formatShape(target),
          " is unknown but ", formatShape(x->getShape()), " has no axis there");
    if (axis < 0)
      continue;
    FailureOr<int64_t> merged =
        broadcastExtentTo(x->getDimSize(axis), extent, hasShape);
    if (failed(merged))
      return emitOptionalError(location, "cannot broadcast ",
                               formatShape(x->getShape()), " to ",
                               formatShape(target), ": axis ", i, " has ",
                               x->getDimSize(axis), " and ", extent);
    extent = *merged;
  }
  return inferTensor(location, target, x->getElementType(), types);
}

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                             Adaptor adaptor,
                                             InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  ArrayRef<int64_t> axes = adaptor.getAxes();
  int64_t rank = x->getRank() + axes.size();
  if (failed(checkAxes(location, "axes", axes, rank)))
    return failure();
  SmallVector<int64_t> shape(x->getShape());
  for (int64_t axis : axes) // sorted: an insertion moves only later ones
    shape.insert(shape.begin() + axis, 1);
  return inferTensor(location, shape, x->getElementType(), types);
}

LogicalResult SqueezeOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x) ||
      failed(checkAxes(location, "axes", adaptor.getAxes(), x->getRank())))
    return failure();
  SmallVector<int64_t> shape(x->getShape());
  for (int64_t axis : llvm::reverse(adaptor.getAxes())) {
    if (failed(mergeExtents(shape[axis], 1)))
      return emitOptionalError(location, "cannot squeeze axis ", axis, " of ",
                               formatShape(x->getShape()), ": its extent is ",
                               shape[axis]);
    shape.erase(shape.begin() + axis);
  }
  return inferTensor(location, shape, x->getElementType(), types);
}

/// Joins the extents of a further operand of concat to `shape`.
static LogicalResult joinShapes(MaybeLoc location,
                                SmallVectorImpl<int64_t> &shape,
                                ArrayRef<int64_t> other, int64_t axis) {
  for (auto [i, extent] : llvm::enumerate(other)) {
    if (static_cast<int64_t>(i) == axis) {
      bool isUnknown =
          ShapedType::isDynamic(extent) || ShapedType::isDynamic(shape[i]);
      std::optional<int64_t> sum =
          isUnknown ? ShapedType::kDynamic : llvm::checkedAdd(shape[i], extent);
      if (!sum)
        return emitOptionalError(location, "the extents ", shape[i], " and ",
                                 extent, " of axis ", i, " overflow");
      shape[i] = *sum;
      continue;
    }
    FailureOr<int64_t> merged = mergeExtents(shape[i], extent);
    if (failed(merged))
      return emitOptionalError(location, "cannot concatenate along axis ", axis,
                               ": axis ", i, " has ", shape[i], " and ",
                               extent);
    shape[i] = *merged;
  }
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  if (adaptor.getXs().empty())
    return emitOptionalError(location, "there is no tensor to concatenate");
  FailureOr<RankedTensorType> first =
      inferRanked(location, adaptor.getXs().front());
  int64_t axis = adaptor.getAxis();
  if (failed(first) ||
      failed(checkAxis(location, "axis", axis, first->getRank())))
    return failure();
  SmallVector<int64_t> shape(first->getShape());
  for (Value x : adaptor.getXs().drop_front()) {
    FailureOr<RankedTensorType> type = inferRanked(location, x);
    if (failed(type))
      return failure();
    if (type->getElementType() != first->getElementType())
      return emitOptionalError(location, "operands have the element types ",
                               first->getElementType(), " and ",
                               type->getElementType());
    if (type->getRank() != first->getRank())
      return emitOptionalError(location, "operands have the ranks ",
                               first->getRank(), " and ", type->getRank());
    if (failed(joinShapes(location, shape, type->getShape(), axis)))
      return failure();
  }
  return inferTensor(location, shape, first->getElementType(), types);
}

/// The number of elements of `start:end:stride` on an axis of `extent`.
static FailureOr<int64_t> sliceExtent(MaybeLoc location, int64_t extent,
                                      int64_t start, int64_t end,
                                      int64_t stride) {
  if (start < 0 || stride < 1)
    return emitOptionalError(location, "slice starts at ", start,
                             " with stride ", stride,
                             " but needs a start of at least 0 and a stride of "
                             "at least 1");
  int64_t limit = ShapedType::isDynamic(end) ? extent : end;
  if (ShapedType::isDynamic(limit))
    return ShapedType::kDynamic;
  if (ShapedType::isStatic(extent) && limit > extent)
    return emitOptionalError(location, "slice ends at ", limit,
                             " but the axis has extent ", extent);
  if (start > limit)
    return emitOptionalError(location, "slice starts at ", start,
                             " but ends at ", limit);
  int64_t length = limit - start;
  return length == 0 ? 0 : (length - 1) / stride + 1;
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                        Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  int64_t rank = x->getRank();
  if (failed(
          checkCount(location, "starts", adaptor.getStarts(), rank, "axis")) ||
      failed(checkCount(location, "ends", adaptor.getEnds(), rank, "axis")) ||
      failed(
          checkCount(location, "strides", adaptor.getStrides(), rank, "axis")))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [extent, start, end, stride] :
       llvm::zip_equal(x->getShape(), adaptor.getStarts(), adaptor.getEnds(),
                       adaptor.getStrides())) {
    FailureOr<int64_t> count =
        sliceExtent(location, extent, start, end, stride);
    if (failed(count))
      return failure();
    shape.push_back(*count);
  }
  return inferTensor(location, shape, x->getElementType(), types);
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                      Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x) ||
      failed(checkCount(location, "low", adaptor.getLow(), x->getRank(),
                        "axis")) ||
      failed(checkCount(location, "high", adaptor.getHigh(), x->getRank(),
                        "axis")))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [extent, low, high] :
       llvm::zip_equal(x->getShape(), adaptor.getLow(), adaptor.getHigh())) {
    if (low < 0 || high < 0)
      return emitOptionalError(location, "padding is ", low, " and ", high,
                               " but must not be negative");
    std::optional<int64_t> margin = llvm::checkedAdd(low, high);
    if (margin && ShapedType::isStatic(extent))
      margin = llvm::checkedAdd(*margin, extent);
    if (!margin)
      return emitOptionalError(location, "the extent ", extent,
                               " and the padding ", low, " and ", high,
                               " overflow");
    shape.push_back(ShapedType::isDynamic(extent) ? extent : *margin);
  }
  return inferTensor(location, shape, x->getElementType(), types);
}

LogicalResult PadOp::verify() {
  if (getValue().getType() == getX().getType().getElementType())
    return success();
  return emitOpError("value has type ")
         << getValue().getType() << " but x has element type "
         << getX().getType().getElementType();
}

LogicalResult ReverseOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x) ||
      failed(checkAxes(location, "axes", adaptor.getAxes(), x->getRank())))
    return failure();
  types.push_back(*x);
  return success();
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

OpFoldResult ShapeOp::fold(FoldAdaptor) {
  RankedTensorType x = getX().getType();
  if (!x.hasStaticShape())
    return {};
  return DenseIntElementsAttr::get(getType(), x.getShape());
}

/// Whether a value of the type of `x` and of `y` has one shape only: at most
/// one
/// `?`, which follows from the rest.
static bool hasOneShape(ArrayRef<int64_t> shape) {
  return llvm::count(shape, ShapedType::kDynamic) <= 1 &&
         !llvm::is_contained(shape, 0);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType() && hasOneShape(getType().getShape()))
    return getX();
  return reshapeIntegers(adaptor.getX(), getType());
}

/// reshape(reshape(x)) = reshape(x)
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "x is no reshape");
  SmallVector<Value> operands{inner.getX()};
  if (op.getShape())
    operands.push_back(op.getShape());
  SmallVector<Type> types;
  if (failed(ReshapeOp::inferReturnTypes(
          op.getContext(), /*location=*/std::nullopt, operands,
          op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
          op->getRegions(), types)) ||
      types.front() != op.getType())
    return rewriter.notifyMatchFailure(op, "the type would change");
  rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    if (static_cast<int64_t>(i) != axis)
      return {};
  return getX();
}

/// transpose(transpose(x, p), q) = transpose(x, p after q)
LogicalResult TransposeOp::canonicalize(TransposeOp op,
                                        PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "x is no transpose");
  SmallVector<int64_t> permutation;
  for (int64_t axis : op.getPermutation())
    permutation.push_back(inner.getPermutation()[axis]);
  rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getX(), permutation);
  return success();
}

OpFoldResult BroadcastToOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : OpFoldResult();
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) {
  if (getAxes().empty())
    return getX();
  // What was squeezed comes back: those extents were 1.
  auto inner = getX().getDefiningOp<SqueezeOp>();
  if (inner && inner.getAxes() == getAxes() &&
      inner.getX().getType() == getType())
    return inner.getX();
  return reshapeIntegers(adaptor.getX(), getType());
}

OpFoldResult SqueezeOp::fold(FoldAdaptor adaptor) {
  if (getAxes().empty())
    return getX();
  auto inner = getX().getDefiningOp<ExpandDimsOp>();
  if (inner && inner.getAxes() == getAxes())
    return inner.getX();
  return reshapeIntegers(adaptor.getX(), getType());
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getType().getRank() != 1 || !getType().hasStaticShape())
    return {};
  SmallVector<APInt> elements;
  for (Attribute part : adaptor.getXs()) {
    DenseIntElementsAttr integers = smallIntegers(part);
    if (!integers)
      return {};
    llvm::append_range(elements, integers.getValues<APInt>());
  }
  return DenseIntElementsAttr::get(getType(), elements);
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  DenseIntElementsAttr integers = smallIntegers(adaptor.getX());
  if (!integers || getType().getRank() != 1 || !getType().hasStaticShape())
    return {};
  SmallVector<APInt> elements;
  for (int64_t i : llvm::seq(getType().getNumElements()))
    elements.push_back(
        integers.getValues<APInt>()[getStarts()[0] + i * getStrides()[0]]);
  return DenseIntElementsAttr::get(getType(), elements);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

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
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    inverse[axis] = i;
  return {TransposeOp::create(b, getLoc(), cotangents[0], inverse)};
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
