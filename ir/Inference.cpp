#include "ir/Inference.h"

#include "ir/Ktn.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace keratin::ktn;

std::string keratin::ktn::formatShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(shape, os, [&](int64_t extent) {
    if (ShapedType::isDynamic(extent))
      os << '?';
    else
      os << extent;
  });
  os << ']';
  return text;
}

FailureOr<RankedTensorType> keratin::ktn::inferRanked(MaybeLoc location,
                                                      Value value) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    return type;
  return emitOptionalError(location, "operand has type ", value.getType(),
                           " but must be a ranked tensor");
}

LogicalResult keratin::ktn::inferTensor(MaybeLoc location,
                                        ArrayRef<int64_t> shape, Type element,
                                        InferredTypes &types) {
  if (!RankedTensorType::isValidElementType(element))
    return emitOptionalError(location, element, " is no element type");
  int64_t bytes = element.isIntOrFloat()
                      ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
                      : 1;
  for (int64_t extent : shape) {
    if (ShapedType::isDynamic(extent))
      continue;
    if (extent < 0)
      return emitOptionalError(location, "shape ", formatShape(shape),
                               " has the negative extent ", extent);
    // An empty axis does not excuse the others: they are multiplied elsewhere.
    std::optional<int64_t> product =
        llvm::checkedMul(bytes, std::max<int64_t>(extent, 1));
    if (!product)
      return emitOptionalError(location, "a tensor of shape ",
                               formatShape(shape), " and element type ",
                               element, " has more than 2^63 - 1 bytes");
    bytes = *product;
  }
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

bool keratin::ktn::hasOneShape(ArrayRef<int64_t> shape) {
  return llvm::count(shape, ShapedType::kDynamic) <= 1 &&
         !llvm::is_contained(shape, 0);
}

FailureOr<int64_t> keratin::ktn::mergeExtents(int64_t a, int64_t b) {
  if (a == b || ShapedType::isDynamic(b))
    return a;
  if (ShapedType::isDynamic(a))
    return b;
  return failure();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult keratin::ktn::checkShapeOperand(MaybeLoc location, Value shape,
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

LogicalResult keratin::ktn::checkAxis(MaybeLoc location, StringRef name,
                                      int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return emitOptionalError(location, name, " is ", axis,
                           " but the tensor has rank ", rank);
}

LogicalResult keratin::ktn::checkAxes(MaybeLoc location, StringRef name,
                                      ArrayRef<int64_t> axes, int64_t rank) {
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (failed(checkAxis(location, name, axis, rank)))
      return failure();
    if (i > 0 && axes[i - 1] >= axis)
      return emitOptionalError(location, name, " has ", axis, " after ",
                               axes[i - 1], " but must be sorted and distinct");
  }
  return success();
}

LogicalResult keratin::ktn::checkCount(MaybeLoc location, StringRef name,
                                       ArrayRef<int64_t> values, int64_t count,
                                       StringRef what) {
  if (static_cast<int64_t>(values.size()) == count)
    return success();
  return emitOptionalError(location, name, " has ", values.size(),
                           " entries but must have ", count, ": one for each ",
                           what);
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

static FailureOr<int64_t> broadcastExtents(int64_t a, int64_t b) {
  if (a == 1)
    return b;
  if (b == 1)
    return a;
  return mergeExtents(a, b);
}

FailureOr<SmallVector<int64_t>>
keratin::ktn::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> shape(a);
  size_t leading = a.size() - b.size();
  for (auto [i, extent] : llvm::enumerate(b)) {
    FailureOr<int64_t> merged = broadcastExtents(a[leading + i], extent);
    if (failed(merged))
      return failure();
    shape[leading + i] = *merged;
  }
  return shape;
}

/// The shape of all operands together.
static FailureOr<SmallVector<int64_t>> broadcastOperands(MaybeLoc location,
                                                         ValueRange operands) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    FailureOr<RankedTensorType> type = inferRanked(location, operand);
    if (failed(type))
      return failure();
    FailureOr<SmallVector<int64_t>> merged =
        broadcastShapes(shape, type->getShape());
    if (failed(merged))
      return emitOptionalError(location, "shapes ", formatShape(shape), " and ",
                               formatShape(type->getShape()),
                               " do not broadcast");
    shape = *merged;
  }
  return shape;
}

static LogicalResult checkSameElementType(MaybeLoc location,
                                          ValueRange operands) {
  Type first = getElementTypeOrSelf(operands.front().getType());
  for (Value operand : operands.drop_front()) {
    Type element = getElementTypeOrSelf(operand.getType());
    if (element != first)
      return emitOptionalError(location, "operands have the element types ",
                               first, " and ", element);
  }
  return success();
}

LogicalResult keratin::ktn::inferBroadcast(MaybeLoc location,
                                           ValueRange operands,
                                           InferredTypes &types) {
  FailureOr<SmallVector<int64_t>> shape = broadcastOperands(location, operands);
  if (failed(shape) || failed(checkSameElementType(location, operands)))
    return failure();
  return inferTensor(location, *shape,
                     getElementTypeOrSelf(operands.front().getType()), types);
}

LogicalResult keratin::ktn::inferComparison(MaybeLoc location,
                                            ValueRange operands,
                                            InferredTypes &types) {
  FailureOr<SmallVector<int64_t>> shape = broadcastOperands(location, operands);
  if (failed(shape) || failed(checkSameElementType(location, operands)))
    return failure();
  return inferTensor(
      location, *shape,
      IntegerType::get(operands.front().getContext(), /*width=*/1), types);
}

/// cond ? a : b, where only a and b have one element type.
LogicalResult SelectOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  ValueRange operands = adaptor.getOperands();
  FailureOr<SmallVector<int64_t>> shape = broadcastOperands(location, operands);
  if (failed(shape) ||
      failed(checkSameElementType(location, operands.drop_front())))
    return failure();
  return inferTensor(location, *shape,
                     getElementTypeOrSelf(operands.back().getType()), types);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static SmallVector<int64_t>
reducedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes, bool keepdims) {
  SmallVector<int64_t> reduced;
  for (auto [axis, extent] : llvm::enumerate(shape)) {
    bool isReduced = llvm::is_contained(axes, static_cast<int64_t>(axis));
    if (!isReduced)
      reduced.push_back(extent);
    else if (keepdims)
      reduced.push_back(1);
  }
  return reduced;
}

LogicalResult keratin::ktn::inferReduction(MaybeLoc location, Value x,
                                           ArrayRef<int64_t> axes,
                                           bool keepdims,
                                           InferredTypes &types) {
  FailureOr<RankedTensorType> type = inferRanked(location, x);
  if (failed(type) ||
      failed(checkAxes(location, "axes", axes, type->getRank())))
    return failure();
  return inferTensor(location, reducedShape(type->getShape(), axes, keepdims),
                     type->getElementType(), types);
}

LogicalResult keratin::ktn::inferArgReduction(MaybeLoc location, Value x,
                                              int64_t axis, bool keepdims,
                                              InferredTypes &types) {
  FailureOr<RankedTensorType> type = inferRanked(location, x);
  if (failed(type) ||
      failed(checkAxis(location, "axis", axis, type->getRank())))
    return failure();
  if (type->getDimSize(axis) == 0)
    return emitOptionalError(location, "axis ", axis, " of ",
                             formatShape(type->getShape()),
                             " is empty but must have an element to find");
  return inferTensor(location, reducedShape(type->getShape(), axis, keepdims),
                     IntegerType::get(x.getContext(), 64), types);
}
