#include "ir/Folding.h"
#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// gather
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  FailureOr<RankedTensorType> indices =
      inferRanked(location, adaptor.getIndices());
  int64_t axis = adaptor.getAxis();
  int64_t batch = adaptor.getBatchDims();
  if (failed(x) || failed(indices) ||
      failed(checkAxis(location, "axis", axis, x->getRank())))
    return failure();
  if (batch < 0 || batch > axis || batch > indices->getRank())
    return emitOptionalError(location, "batch_dims is ", batch,
                             " but the axis is ", axis,
                             " and the indices have rank ", indices->getRank());
  if (x->getDimSize(axis) == 0)
    return emitOptionalError(location, "axis ", axis, " of ",
                             formatShape(x->getShape()),
                             " is empty but must have an element to gather");
  SmallVector<int64_t> shape;
  for (int64_t i : llvm::seq(batch)) {
    FailureOr<int64_t> merged =
        mergeExtents(x->getDimSize(i), indices->getDimSize(i));
    if (failed(merged))
      return emitOptionalError(location, "batch axis ", i, " has ",
                               x->getDimSize(i), " elements in x and ",
                               indices->getDimSize(i), " in indices");
    shape.push_back(*merged);
  }
  llvm::append_range(shape, x->getShape().slice(batch, axis - batch));
  llvm::append_range(shape, indices->getShape().drop_front(batch));
  llvm::append_range(shape, x->getShape().drop_front(axis + 1));
  return inferTensor(location, shape, x->getElementType(), types);
}

/// The axes of indices are those of y from `axis` on, but for batch axes.
std::optional<std::pair<unsigned, int64_t>>
GatherOp::getStepSource(int64_t axis) {
  int64_t own = axis - int64_t(getAxis()) + int64_t(getBatchDims());
  if (own < int64_t(getBatchDims()) || own >= getIndices().getType().getRank())
    return std::nullopt;
  return std::pair(1u, own);
}

Value GatherOp::buildStep(OpBuilder &b, int64_t, Value entry) {
  return GatherOp::create(b, getLoc(), getX(), entry, getAxis(),
                          getBatchDims());
}

bool GatherOp::looksUpRows() {
  return getAxis() == 0 && getBatchDims() == 0 &&
         getX().getType().getRank() == 2;
}

Value GatherOp::buildLookup(OpBuilder &b, Value matrix) {
  return GatherOp::create(b, getLoc(), matrix, getIndices(), getAxis(),
                          getBatchDims());
}

OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  DenseIntElementsAttr x = smallIntegers(adaptor.getX());
  DenseIntElementsAttr indices = smallIntegers(adaptor.getIndices());
  if (!x || !indices || getX().getType().getRank() != 1)
    return {};
  bool isUnsigned = indices.getElementType().isUnsignedInteger();
  SmallVector<APInt> elements;
  for (const APInt &index : indices.getValues<APInt>()) {
    int64_t position = isUnsigned ? index.getZExtValue() : index.getSExtValue();
    elements.push_back(x.getValues<APInt>()[std::clamp<int64_t>(
        position, 0, x.getNumElements() - 1)]);
  }
  return DenseIntElementsAttr::get(getType(), elements);
}

//===----------------------------------------------------------------------===//
// scatter_add
//===----------------------------------------------------------------------===//

LogicalResult ScatterAddOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                             Adaptor adaptor,
                                             InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  types.push_back(*x);
  return success();
}

LogicalResult ScatterAddOp::verify() {
  RankedTensorType x = getX().getType();
  RankedTensorType updates = getUpdates().getType();
  if (x.getElementType() != updates.getElementType())
    return emitOpError("x has element type ")
           << x.getElementType() << " but updates have "
           << updates.getElementType();
  if (x.getRank() == 0)
    return emitOpError("x has rank 0 but must have an axis to scatter into");
  if (x.getDimSize(0) == 0)
    return emitOpError("x has the shape ")
           << formatShape(x.getShape())
           << " but must have an element to scatter into";
  SmallVector<int64_t> expected(getIndices().getType().getShape());
  llvm::append_range(expected, x.getShape().drop_front());
  if (failed(verifyCompatibleShape(expected, updates.getShape())))
    return emitOpError("updates have the shape ")
           << formatShape(updates.getShape()) << " but x and indices ask for "
           << formatShape(expected);
  return success();
}

//===----------------------------------------------------------------------===//
// sparse
//===----------------------------------------------------------------------===//

LogicalResult SparseOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  FailureOr<RankedTensorType> values =
      inferRanked(location, adaptor.getValues());
  FailureOr<RankedTensorType> rows = inferRanked(location, adaptor.getRows());
  FailureOr<RankedTensorType> columns =
      inferRanked(location, adaptor.getColumns());
  if (failed(values) || failed(rows) || failed(columns))
    return failure();
  if (values->getRank() != 1 || rows->getShape() != values->getShape() ||
      columns->getShape() != values->getShape())
    return emitOptionalError(
        location, "values have the shape ", formatShape(values->getShape()),
        ", rows ", formatShape(rows->getShape()), " and columns ",
        formatShape(columns->getShape()), " but must be lists of one length");
  ArrayRef<int64_t> target = adaptor.getTarget();
  if (target.size() != 2 || llvm::any_of(target, [](int64_t extent) {
        return extent < 1; // `?` too
      }))
    return emitOptionalError(location, "target ", formatShape(target),
                             " must be two known extents of 1 or more");
  return inferTensor(location, target, values->getElementType(), types);
}

/// rows[i] * extent of a row + columns[i]
static Value flatPositions(OpBuilder &b, SparseOp op) {
  auto wide = [&](Value indices) -> Value {
    return CastOp::create(b, op.getLoc(), indices, b.getI64Type());
  };
  Value rows = wide(op.getRows());
  Value extent = createScalarLike(b, op.getLoc(), rows, op.getTarget()[1]);
  Value begins = MulOp::create(b, op.getLoc(), rows, extent);
  return AddOp::create(b, op.getLoc(), begins, wide(op.getColumns()));
}

FailureOr<Values> SparseOp::decompose(OpBuilder &b) {
  int64_t elements = getTarget()[0] * getTarget()[1];
  Type element = getType().getElementType();
  Value zeros = createConstant(b, getLoc(),
                               RankedTensorType::get({elements}, element), 0);
  Value flat = ScatterAddOp::create(b, getLoc(), zeros, flatPositions(b, *this),
                                    getValues());
  return Values{ReshapeOp::create(b, getLoc(), flat, Value(), getTarget())};
}

Values SparseOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // Each value has the element of dy where it stands.
  int64_t elements = getTarget()[0] * getTarget()[1];
  Value flat =
      ReshapeOp::create(b, getLoc(), cotangents[0], Value(), {elements});
  Value dvalues = GatherOp::create(b, getLoc(), flat, flatPositions(b, *this),
                                   /*axis=*/0, /*batch_dims=*/0);
  return {dvalues, Value(), Value()};
}

//===----------------------------------------------------------------------===//
// iota
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                       Adaptor adaptor, InferredTypes &types) {
  ArrayRef<int64_t> target = adaptor.getTarget();
  if (ShapedType::isDynamicShape(target) && !adaptor.getShape())
    return emitOptionalError(location, "target ", formatShape(target),
                             " has an unknown extent but there is no shape "
                             "that gives it");
  if (failed(checkShapeOperand(location, adaptor.getShape(), target)) ||
      failed(checkAxis(location, "axis", adaptor.getAxis(), target.size())))
    return failure();
  return inferTensor(location, target, adaptor.getDtype(), types);
}

LogicalResult IotaOp::refineShapes() {
  resolveTarget(*this);
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The first `kept` of `rank` axes, then first .. first + count, then the
/// others in order.
static SmallVector<int64_t> axesToFront(int64_t rank, int64_t first,
                                        int64_t count, int64_t kept) {
  auto permutation = llvm::to_vector(llvm::seq(kept));
  llvm::append_range(permutation, llvm::seq(first, first + count));
  for (int64_t axis : llvm::seq(kept, rank))
    if (axis < first || axis >= first + count)
      permutation.push_back(axis);
  return permutation;
}

static SmallVector<int64_t> invert(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, axis] : llvm::enumerate(permutation))
    inverse[axis] = i;
  return inverse;
}

/// x[b.., n, k..] with its first `count` axes as one.
static Value joinFront(OpBuilder &b, Location loc, Value x, int64_t count) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(x.getType()).getShape();
  int64_t joined = 1;
  for (int64_t extent : shape.take_front(count))
    joined = ShapedType::isDynamic(extent) || ShapedType::isDynamic(joined)
                 ? ShapedType::kDynamic
                 : joined * extent;
  SmallVector<int64_t> target = {joined};
  llvm::append_range(target, shape.drop_front(count));
  return ReshapeOp::create(b, loc, x, Value(), target);
}

/// The indices of a gather with batches of `extent` elements each as indices
/// into all of these elements in a row. Null where an extent is not known.
static Value indicesOfAll(OpBuilder &b, GatherOp op, int64_t extent) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getIndices().getType();
  auto wide = type.clone(b.getI64Type());
  Value positions =
      CastOp::create(b, loc, op.getIndices(), wide.getElementType());
  // What is clamped into its own batch is not in another one.
  positions = MinimumOp::create(
      b, loc, positions, createScalarLike(b, loc, positions, extent - 1));
  positions = MaximumOp::create(b, loc, positions,
                                createScalarLike(b, loc, positions, 0));
  Value shape;
  if (!type.hasStaticShape())
    shape = ShapeOp::create(b, loc, op.getIndices());
  int64_t stride = extent;
  for (int64_t axis = op.getBatchDims() - 1; axis >= 0; --axis) {
    Value batch = IotaOp::create(b, loc, shape, type.getShape(), axis,
                                 wide.getElementType());
    Value begin = MulOp::create(
        b, loc, batch,
        createScalarLike(b, loc, batch, static_cast<double>(stride)));
    positions = AddOp::create(b, loc, positions, begin);
    if (axis == 0)
      break;
    if (type.isDynamicDim(axis))
      return {};
    stride *= type.getDimSize(axis);
  }
  return positions;
}

Values GatherOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y takes slices of x, so dx adds the slices of dy up where they came from.
  // scatter_add works along axis 0: the gathered axis moves there and back, and
  // batches become parts of it.
  Location loc = getLoc();
  int64_t batch = getBatchDims();
  SmallVector<int64_t> inX =
      axesToFront(getX().getType().getRank(), getAxis(), 1, batch);
  SmallVector<int64_t> inResult =
      axesToFront(getType().getRank(), getAxis(),
                  getIndices().getType().getRank() - batch, batch);
  Value x = permuteAxes(b, loc, getX(), inX);
  Value updates = permuteAxes(b, loc, cotangents[0], inResult);
  Value indices = getIndices(), all = x;
  if (batch > 0) {
    int64_t extent = getX().getType().getDimSize(getAxis());
    indices = ShapedType::isDynamic(extent) ? Value()
                                            : indicesOfAll(b, *this, extent);
    if (!indices) {
      emitOpError("has no gradient: only the extent of the first batch axis "
                  "may be unknown in ")
          << getX().getType() << " and " << getIndices().getType();
      return {};
    }
    all = joinFront(b, loc, x, batch + 1);
  }
  Value sums = ScatterAddOp::create(b, loc, createZerosLike(b, loc, all),
                                    indices, updates);
  if (batch > 0)
    sums = ReshapeOp::create(b, loc, sums, Value(),
                             cast<RankedTensorType>(x.getType()).getShape());
  return {permuteAxes(b, loc, sums, invert(inX)), Value()};
}

Values ScatterAddOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = x + scattered updates: dx = dy, and each update has the slice of dy
  // where it was added.
  Value dupdates = GatherOp::create(b, getLoc(), cotangents[0], getIndices(),
                                    /*axis=*/0, /*batch_dims=*/0);
  return {cotangents[0], Value(), dupdates};
}
