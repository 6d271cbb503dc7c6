//===- ConvGradients.cpp - gradients of convolutions ----------------------===//
//
// sum(conv(x, w) * z) is linear in x, w and z. Its derivatives by the three are
// conv_transpose(z, w), conv_kernel_grad(x, z) and conv(x, w), so the gradients
// of each are the other two and nothing new comes up however often one derives.
//
//===----------------------------------------------------------------------===//
#include "ir/Vjp.h"
#include "ir/Windows.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// conv_kernel_grad
//===----------------------------------------------------------------------===//

/// The channels of one group, or `?`.
static FailureOr<int64_t> channelsPerGroup(MaybeLoc location, StringRef name,
                                           int64_t channels, int64_t groups) {
  if (ShapedType::isDynamic(channels))
    return ShapedType::kDynamic;
  if (channels % groups != 0)
    return emitOptionalError(location, name, " has ", channels,
                             " channels, which ", groups,
                             " groups cannot share evenly");
  return channels / groups;
}

LogicalResult ConvKernelGradOp::inferReturnTypes(MLIRContext *,
                                                 MaybeLoc location,
                                                 Adaptor adaptor,
                                                 InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  FailureOr<RankedTensorType> z = inferRanked(location, adaptor.getZ());
  Window window{adaptor.getStrides(), adaptor.getPadding(),
                adaptor.getDilation()};
  ArrayRef<int64_t> extents = adaptor.getWindow();
  int64_t groups = adaptor.getGroups();
  if (failed(x) || failed(z) || failed(checkImageRank(location, x->getRank())))
    return failure();
  int64_t rank = x->getRank(), spatial = rank - 2;
  if (z->getRank() != rank)
    return emitOptionalError(location, "z has rank ", z->getRank(),
                             " but x has rank ", rank);
  if (z->getElementType() != x->getElementType())
    return emitOptionalError(location, "z has element type ",
                             z->getElementType(), " but x has ",
                             x->getElementType());
  if (failed(checkWindow(location, window, spatial)) ||
      failed(checkCount(location, "dilation", window.dilation, spatial,
                        "spatial axis")) ||
      failed(
          checkCount(location, "window", extents, spatial, "spatial axis")) ||
      failed(checkRange(location, "window", extents, 1)) ||
      failed(checkRange(location, "groups", groups, 1)))
    return failure();
  if (failed(mergeExtents(x->getDimSize(0), z->getDimSize(0))))
    return emitOptionalError(location, "x has a batch of ", x->getDimSize(0),
                             " but z has ", z->getDimSize(0));
  for (int64_t i : llvm::seq(spatial)) {
    FailureOr<int64_t> count =
        windowCount(location, window, i, x->getDimSize(1 + i), extents[i]);
    if (failed(count))
      return failure();
    if (failed(mergeExtents(*count, z->getDimSize(1 + i))))
      return emitOptionalError(location, "spatial axis ", i,
                               " of z has extent ", z->getDimSize(1 + i),
                               " but the window has ", *count, " positions");
  }
  int64_t filters = z->getShape().back();
  FailureOr<int64_t> perGroup =
      channelsPerGroup(location, "x", x->getShape().back(), groups);
  if (failed(perGroup) ||
      failed(channelsPerGroup(location, "z", filters, groups)))
    return failure();
  SmallVector<int64_t> shape(extents);
  llvm::append_values(shape, *perGroup, filters);
  return inferTensor(location, shape, x->getElementType(), types);
}

Values ConvKernelGradOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = grad(x, z), so dx = conv_transpose(z, dy) and dz = conv(x, dy).
  Location loc = getLoc();
  constexpr DataFormat format = DataFormat::ChannelsLast;
  FailureOr<SmallVector<int64_t>> extents =
      knownSpatialExtents(*this, getX(), format);
  if (failed(extents))
    return {};
  Value dx =
      ConvTransposeOp::create(b, loc, getZ(), cotangents[0],
                              /*shape=*/Value(), getStrides(), getPadding(),
                              getDilation(), *extents, getGroups(), format);
  Value dz = ConvOp::create(b, loc, getX(), cotangents[0], getStrides(),
                            getPadding(), getDilation(), getGroups(), format);
  return {sumLike(b, loc, dx, getX()), sumLike(b, loc, dz, getZ())};
}

//===----------------------------------------------------------------------===//
// conv, conv_transpose
//===----------------------------------------------------------------------===//

/// conv_kernel_grad(x, z) of images in the format of `op`, as a cotangent of
/// its kernel.
template <typename ConvOp>
static Value kernelGradient(OpBuilder &b, ConvOp op, Value x, Value z) {
  Location loc = op.getLoc();
  RankedTensorType kernel = op.getKernel().getType();
  Value gradient = ConvKernelGradOp::create(
      b, loc, imageToLast(b, loc, x, op.getDataFormat()),
      imageToLast(b, loc, z, op.getDataFormat()),
      kernel.getShape().drop_back(2), op.getStrides(), op.getPadding(),
      op.getDilation(), op.getGroups());
  return sumLike(b, loc, gradient, op.getKernel());
}

Values ConvOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = conv(x, w), so dx = conv_transpose(dy, w) and
  // dw = conv_kernel_grad(x, dy).
  Location loc = getLoc();
  Value dy = cotangents[0];
  FailureOr<SmallVector<int64_t>> extents =
      knownSpatialExtents(*this, getX(), getDataFormat());
  if (failed(extents) || failed(requirePadding(*this)))
    return {};
  Value dx = ConvTransposeOp::create(b, loc, dy, getKernel(),
                                     /*shape=*/Value(), getStrides(),
                                     getPadding(), getDilation(), *extents,
                                     getGroups(), getDataFormat());
  return {sumLike(b, loc, dx, getX()), kernelGradient(b, *this, getX(), dy)};
}

Values ConvTransposeOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = conv_transpose(x, w), so dx = conv(dy, w) and
  // dw = conv_kernel_grad(dy, x).
  if (failed(requirePadding(*this)))
    return {};
  Location loc = getLoc();
  Value dy = cotangents[0];
  Value dx = ConvOp::create(b, loc, dy, getKernel(), getStrides(), getPadding(),
                            getDilation(), getGroups(), getDataFormat());
  return {sumLike(b, loc, dx, getX()), kernelGradient(b, *this, dy, getX())};
}
