//===- SamePadding.cpp - paddings that follow from extents ----------------===//
//
// TensorFlow's "same": ceil(extent / stride) windows, the odd element of the
// padding at the end. A transposed convolution has the padding of the
// convolution that it is the gradient of.
//
//===----------------------------------------------------------------------===//
#include "ir/Windows.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin::ktn {

/// Half of `total` on each side; none where it is below 0, or not known.
static void appendHalves(SmallVectorImpl<int64_t> &padding,
                         std::optional<int64_t> total) {
  int64_t amount = std::max<int64_t>(total.value_or(0), 0);
  llvm::append_values(padding, amount / 2, amount - amount / 2);
}

static std::optional<int64_t> sameTotal(int64_t extent, int64_t reach,
                                        int64_t stride) {
  if (extent < 1)
    return 0;
  int64_t last = (extent - 1) / stride * stride; // where the last window is
  return llvm::checkedAdd(last - extent, reach);
}

SmallVector<int64_t> samePadding(const Window &window,
                                 ArrayRef<int64_t> extents,
                                 ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> padding;
  for (auto [i, extent] : llvm::enumerate(extents)) {
    std::optional<int64_t> reach, total;
    if (ShapedType::isStatic(extent) && ShapedType::isStatic(sizes[i]))
      reach = dilatedExtent(sizes[i], window.dilationOf(i));
    if (reach)
      total = sameTotal(extent, *reach, window.strides[i]);
    appendHalves(padding, total);
  }
  return padding;
}

SmallVector<int64_t> transposedSamePadding(const Window &window,
                                           ArrayRef<int64_t> extents,
                                           ArrayRef<int64_t> sizes,
                                           ArrayRef<int64_t> target) {
  SmallVector<int64_t> padding;
  for (auto [i, extent] : llvm::enumerate(extents)) {
    std::optional<int64_t> reach, total;
    if (ShapedType::isStatic(extent) && ShapedType::isStatic(sizes[i]) &&
        ShapedType::isStatic(target[i]))
      reach = dilatedExtent(sizes[i], window.dilationOf(i));
    if (reach)
      total = llvm::checkedMulAdd(extent - 1, window.strides[i], *reach);
    if (total)
      total = llvm::checkedSub(*total, target[i]);
    appendHalves(padding, total);
  }
  return padding;
}

//===----------------------------------------------------------------------===//
// Refinement
//===----------------------------------------------------------------------===//

/// The padding of `op` is `padding` once all of `lists` are known.
template <typename OpT>
static void resolveSame(OpT op, ArrayRef<int64_t> padding,
                        ArrayRef<ArrayRef<int64_t>> lists) {
  if (!op.getSame() || llvm::any_of(lists, ShapedType::isDynamicShape))
    return;
  op.setPadding(padding);
  op.setSame(false);
}

LogicalResult ConvOp::refineShapes() {
  SmallVector<int64_t> extents =
      spatialExtents(getX().getType(), getDataFormat());
  ArrayRef<int64_t> sizes = getKernel().getType().getShape().drop_back(2);
  Window window{getStrides(), getPadding(), getDilation()};
  resolveSame(*this, samePadding(window, extents, sizes), {extents, sizes});
  return success();
}

LogicalResult MaxPoolOp::refineShapes() {
  SmallVector<int64_t> extents =
      spatialExtents(getX().getType(), getDataFormat());
  Window window{getStrides(), getPadding(), /*dilation=*/{}};
  resolveSame(*this, samePadding(window, extents, getPoolSize()), {extents});
  return success();
}

LogicalResult AvgPoolOp::refineShapes() {
  SmallVector<int64_t> extents =
      spatialExtents(getX().getType(), getDataFormat());
  Window window{getStrides(), getPadding(), /*dilation=*/{}};
  resolveSame(*this, samePadding(window, extents, getPoolSize()), {extents});
  return success();
}

LogicalResult ConvTransposeOp::refineShapes() {
  DenseIntElementsAttr given;
  if (getShape() && matchPattern(getShape(), m_Constant(&given))) {
    SmallVector<int64_t> target(getOutputShape());
    for (auto [extent, value] :
         llvm::zip_equal(target, given.getValues<APInt>()))
      if (ShapedType::isDynamic(extent))
        extent = value.getSExtValue();
    if (failed(checkRange(getLoc(), "output_shape", target, 1)))
      return failure();
    setOutputShape(target);
    getShapeMutable().clear();
  }
  SmallVector<int64_t> extents =
      spatialExtents(getX().getType(), getDataFormat());
  ArrayRef<int64_t> sizes = getKernel().getType().getShape().drop_back(2);
  Window window{getStrides(), getPadding(), getDilation()};
  resolveSame(*this,
              transposedSamePadding(window, extents, sizes, getOutputShape()),
              {extents, sizes, getOutputShape()});
  return success();
}

} // namespace keratin::ktn
