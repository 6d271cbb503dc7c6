//===- Windows.h - windows that move over the spatial axes ------*- C++ -*-===//
//
// What convolutions, pools and their gradients share. The checks run on user
// input before any verifier.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_WINDOWS_H
#define KERATIN_IR_WINDOWS_H

#include "ir/Inference.h"
#include "ir/Ktn.h"

namespace keratin::ktn {

/// How a window moves along the spatial axes. `padding` is the flat list
/// [low, high] of each.
struct Window {
  llvm::ArrayRef<int64_t> strides;
  llvm::ArrayRef<int64_t> padding;
  llvm::ArrayRef<int64_t> dilation; ///< empty: 1 everywhere

  int64_t dilationOf(size_t i) const {
    return dilation.empty() ? 1 : dilation[i];
  }
};

/// Every one of `values` is in `least` .. 2^31 - 1, which keeps the arithmetic
/// on window positions within 64 bits.
mlir::LogicalResult checkRange(MaybeLoc location, llvm::StringRef name,
                               llvm::ArrayRef<int64_t> values, int64_t least);

/// An image has 1 to 3 spatial axes.
mlir::LogicalResult checkImageRank(MaybeLoc location, int64_t rank);

mlir::LogicalResult checkWindow(MaybeLoc location, const Window &window,
                                int64_t spatial);

/// x and kernel of a convolution, checked but for the channels.
mlir::LogicalResult
checkConvOperands(MaybeLoc location, mlir::FailureOr<mlir::RankedTensorType> x,
                  mlir::FailureOr<mlir::RankedTensorType> kernel,
                  const Window &window, int64_t groups);

/// The extent of a window of `size` elements whose first and last are
/// `dilation` apart, or nullopt when it overflows.
std::optional<int64_t> dilatedExtent(int64_t size, int64_t dilation);

/// The number of positions of a window of `size` on spatial axis `i`.
mlir::FailureOr<int64_t> windowCount(MaybeLoc location, const Window &window,
                                     size_t i, int64_t extent, int64_t size);

/// The padding of TensorFlow's "same" for windows of `sizes`, and that of a
/// transposed convolution to `target`. Zeros on an axis that is not known.
llvm::SmallVector<int64_t> samePadding(const Window &window,
                                       llvm::ArrayRef<int64_t> extents,
                                       llvm::ArrayRef<int64_t> sizes);
llvm::SmallVector<int64_t>
transposedSamePadding(const Window &window, llvm::ArrayRef<int64_t> extents,
                      llvm::ArrayRef<int64_t> sizes,
                      llvm::ArrayRef<int64_t> target);

/// Fails, with a diagnostic, while the padding of `op` is not known.
template <typename OpT> mlir::LogicalResult requirePadding(OpT op) {
  if (!op.getSame())
    return mlir::success();
  return op.emitOpError("has the padding 'same', which depends on the extents "
                        "of its spatial axes, and they are not known");
}

/// The shape of an image with the batch of `x`, `spatial` and `channels`.
llvm::SmallVector<int64_t> imageShape(mlir::RankedTensorType x,
                                      llvm::ArrayRef<int64_t> spatial,
                                      int64_t channels, DataFormat format);

/// The type of a pool of `image`; the padding is not that of `window` with
/// `same`.
mlir::LogicalResult inferPool(MaybeLoc location, mlir::Value image,
                              llvm::ArrayRef<int64_t> poolSize, Window window,
                              bool same, DataFormat format,
                              InferredTypes &types);

/// The window of a pool along one axis, and the padding around the axis.
struct PoolWindow {
  int64_t size, low, high;
};

/// The smallest window that sees the same of the `extent` elements of an axis
/// at each of its `windows` positions: work does not grow with a window far
/// larger than the image. What it does not see any more was padding.
PoolWindow withoutCommonPadding(PoolWindow window, int64_t stride,
                                int64_t extent, int64_t windows);

/// The extents of the spatial axes of an image type.
llvm::SmallVector<int64_t> spatialExtents(mlir::RankedTensorType image,
                                          DataFormat format);

/// The image `x` with its channels last, and an image with its channels last
/// back in `format`.
mlir::Value imageToLast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        DataFormat format);
mlir::Value imageFromLast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                          DataFormat format);

/// The extents of the spatial axes of an image. Reports that `op` has no
/// gradient where one of them is not known.
mlir::FailureOr<llvm::SmallVector<int64_t>>
knownSpatialExtents(mlir::Operation *op, mlir::Value image, DataFormat format);

} // namespace keratin::ktn

#endif // KERATIN_IR_WINDOWS_H
