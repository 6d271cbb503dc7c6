#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Permutation.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace keratin::ktn;

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

std::optional<std::pair<unsigned, int64_t>>
TransposeOp::getStepSource(int64_t axis) {
  return std::pair(0u, getPermutation()[axis]);
}

Value TransposeOp::buildStep(OpBuilder &b, int64_t axis, Value entry) {
  SmallVector<int64_t> permutation =
      permutationWithout(getPermutation(), getPermutation()[axis]);
  if (llvm::is_sorted(permutation))
    return entry;
  return TransposeOp::create(b, getLoc(), entry, permutation);
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
