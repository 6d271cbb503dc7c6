//===- Windows.cpp - windows that move over the spatial axes --------------===//
#include "ir/Windows.h"

#include "ir/Vjp.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin::ktn {

LogicalResult checkRange(MaybeLoc location, StringRef name,
                         ArrayRef<int64_t> values, int64_t least) {
  for (int64_t value : values)
    if (value < least || value > std::numeric_limits<int32_t>::max())
      return emitOptionalError(location, name, " is ", value,
                               " but must be in ", least, "..2147483647");
  return success();
}

LogicalResult checkImageRank(MaybeLoc location, int64_t rank) {
  if (rank >= 3 && rank <= 5)
    return success();
  return emitOptionalError(location, "x has rank ", rank,
                           " but must have 1 to 3 spatial axes, a batch and "
                           "a channel axis");
}

LogicalResult checkWindow(MaybeLoc location, const Window &window,
                          int64_t spatial) {
  return failure(failed(checkCount(location, "strides", window.strides, spatial,
                                   "spatial axis")) ||
                 failed(checkCount(location, "padding", window.padding,
                                   2 * spatial, "side of a spatial axis")) ||
                 failed(checkRange(location, "stride", window.strides, 1)) ||
                 failed(checkRange(location, "padding", window.padding, 0)) ||
                 failed(checkRange(location, "dilation", window.dilation, 1)));
}

std::optional<int64_t> dilatedExtent(int64_t size, int64_t dilation) {
  return llvm::checkedMulAdd<int64_t>(size - 1, dilation, 1);
}

FailureOr<int64_t> windowCount(MaybeLoc location, const Window &window,
                               size_t i, int64_t extent, int64_t size) {
  if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(size))
    return ShapedType::kDynamic;
  if (size < 1)
    return emitOptionalError(location, "the window has extent ", size,
                             " on spatial axis ", i, " but needs an element");
  std::optional<int64_t> reach = dilatedExtent(size, window.dilationOf(i));
  std::optional<int64_t> padded = llvm::checkedAdd(
      extent, window.padding[2 * i] + window.padding[2 * i + 1]);
  if (!reach || !padded)
    return emitOptionalError(location, "the extent ", extent,
                             " of spatial axis ", i, " overflows");
  if (*reach > *padded)
    return emitOptionalError(location, "a window of extent ", *reach,
                             " does not fit into spatial axis ", i,
                             " with extent ", *padded, ", padding included");
  return (*padded - *reach) / window.strides[i] + 1;
}

SmallVector<int64_t> spatialExtents(RankedTensorType image, DataFormat format) {
  SmallVector<int64_t> extents;
  for (int64_t axis : spatialAxes(image.getRank(), format))
    extents.push_back(image.getDimSize(axis));
  return extents;
}

SmallVector<int64_t> imageShape(RankedTensorType x, ArrayRef<int64_t> spatial,
                                int64_t channels, DataFormat format) {
  SmallVector<int64_t> shape(x.getShape());
  shape[channelAxis(x.getRank(), format)] = channels;
  for (auto [axis, extent] :
       llvm::zip_equal(spatialAxes(x.getRank(), format), spatial))
    shape[axis] = extent;
  return shape;
}

LogicalResult checkConvOperands(MaybeLoc location,
                                FailureOr<RankedTensorType> x,
                                FailureOr<RankedTensorType> kernel,
                                const Window &window, int64_t groups) {
  if (failed(x) || failed(kernel) ||
      failed(checkImageRank(location, x->getRank())))
    return failure();
  if (kernel->getRank() != x->getRank())
    return emitOptionalError(location, "kernel has rank ", kernel->getRank(),
                             " but x has rank ", x->getRank());
  if (kernel->getElementType() != x->getElementType())
    return emitOptionalError(location, "kernel has element type ",
                             kernel->getElementType(), " but x has ",
                             x->getElementType());
  int64_t spatial = x->getRank() - 2;
  if (failed(checkWindow(location, window, spatial)) ||
      failed(checkCount(location, "dilation", window.dilation, spatial,
                        "spatial axis")))
    return failure();
  return checkRange(location, "groups", groups, 1);
}

/// A window that lies in the padding alone would have no element.
static LogicalResult checkPoolPadding(MaybeLoc location, const Window &window,
                                      ArrayRef<int64_t> poolSize) {
  for (auto [i, padding] : llvm::enumerate(window.padding))
    if (padding >= poolSize[i / 2])
      return emitOptionalError(location, "padding ", padding,
                               " on spatial axis ", i / 2,
                               " is not less than the window, which has "
                               "extent ",
                               poolSize[i / 2]);
  return success();
}

LogicalResult inferPool(MaybeLoc location, Value image,
                        ArrayRef<int64_t> poolSize, Window window, bool same,
                        DataFormat format, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, image);
  if (failed(x) || failed(checkImageRank(location, x->getRank())))
    return failure();
  int64_t rank = x->getRank();
  if (failed(checkWindow(location, window, rank - 2)) ||
      failed(checkCount(location, "pool_size", poolSize, rank - 2,
                        "spatial axis")) ||
      failed(checkRange(location, "pool_size", poolSize, 1)))
    return failure();
  SmallVector<int64_t> padding;
  if (same) {
    padding = samePadding(window, spatialExtents(*x, format), poolSize);
    window.padding = padding;
  }
  if (failed(checkPoolPadding(location, window, poolSize)))
    return failure();
  SmallVector<int64_t> spatial;
  for (auto [i, axis] : llvm::enumerate(spatialAxes(rank, format))) {
    FailureOr<int64_t> count =
        windowCount(location, window, i, x->getDimSize(axis), poolSize[i]);
    if (failed(count))
      return failure();
    spatial.push_back(*count);
  }
  int64_t channels = x->getDimSize(channelAxis(rank, format));
  return inferTensor(location, imageShape(*x, spatial, channels, format),
                     x->getElementType(), types);
}

PoolWindow withoutCommonPadding(PoolWindow window, int64_t stride,
                                int64_t extent, int64_t windows) {
  // The last window begins at first - low, the first ends at size - low.
  int64_t first = (windows - 1) * stride;
  int64_t low = std::min(window.low, first);
  int64_t size = std::min(window.size - (window.low - low), extent + low);
  return {size, low, std::max<int64_t>(0, first + size - low - extent)};
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Value imageToLast(OpBuilder &b, Location loc, Value x, DataFormat format) {
  if (format == DataFormat::ChannelsLast)
    return x;
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<int64_t> permutation = {0};
  llvm::append_range(permutation, llvm::seq<int64_t>(2, rank));
  permutation.push_back(1);
  return TransposeOp::create(b, loc, x, permutation);
}

Value imageFromLast(OpBuilder &b, Location loc, Value x, DataFormat format) {
  if (format == DataFormat::ChannelsLast)
    return x;
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<int64_t> permutation = {0, rank - 1};
  llvm::append_range(permutation, llvm::seq<int64_t>(1, rank - 1));
  return TransposeOp::create(b, loc, x, permutation);
}

FailureOr<SmallVector<int64_t>> knownSpatialExtents(Operation *op, Value image,
                                                    DataFormat format) {
  auto type = cast<RankedTensorType>(image.getType());
  SmallVector<int64_t> extents;
  for (auto [i, axis] : llvm::enumerate(spatialAxes(type.getRank(), format))) {
    extents.push_back(type.getDimSize(axis));
    if (ShapedType::isDynamic(extents.back()))
      return op->emitOpError("has no gradient: spatial axis ")
             << i << " has an unknown extent in " << type;
  }
  return extents;
}

} // namespace keratin::ktn
