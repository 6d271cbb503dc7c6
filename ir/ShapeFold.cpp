//===- ShapeFold.cpp - what ops that move elements become -----------------===//
#include "ir/Folding.h"
#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Permutation.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

OpFoldResult ShapeOp::fold(FoldAdaptor) {
  RankedTensorType x = getX().getType();
  if (!x.hasStaticShape())
    return {};
  return DenseIntElementsAttr::get(getType(), x.getShape());
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

OpFoldResult BroadcastToOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  // Of a constant of one value. A large one would be stored element by element
  // where nobody computes with it.
  constexpr int64_t fewElements = 1 << 14;
  auto value = dyn_cast_if_present<SplatElementsAttr>(adaptor.getX());
  if (value && getType().hasStaticShape() &&
      getType().getNumElements() <= fewElements)
    return value.resizeSplat(getType());
  return {};
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

/// The extents whose shape, in integers of any width, `x` is; none where it is
/// something else.
static ArrayRef<int64_t> extentsIn(Value x) {
  if (auto cast = x.getDefiningOp<CastOp>())
    x = cast.getX();
  auto shape = x.getDefiningOp<ShapeOp>();
  return shape ? shape.getX().getType().getShape() : ArrayRef<int64_t>();
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  DenseIntElementsAttr integers = smallIntegers(adaptor.getX());
  // Of a shape some extents may be known, and others not.
  ArrayRef<int64_t> extents = extentsIn(getX());
  auto element = dyn_cast<IntegerType>(getType().getElementType());
  if ((!integers && extents.empty()) || !element || getType().getRank() != 1 ||
      !getType().hasStaticShape())
    return {};
  SmallVector<APInt> elements;
  for (int64_t i : llvm::seq(getType().getNumElements())) {
    int64_t position = getStarts()[0] + i * getStrides()[0];
    if (integers) {
      elements.push_back(integers.getValues<APInt>()[position]);
      continue;
    }
    if (ShapedType::isDynamic(extents[position]))
      return {};
    elements.emplace_back(element.getWidth(), extents[position],
                          /*isSigned=*/true, /*implicitTrunc=*/true);
  }
  return DenseIntElementsAttr::get(getType(), elements);
}

//===----------------------------------------------------------------------===//
// Shapes that become known
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::refineShapes() {
  resolveTarget(*this);
  return success();
}

LogicalResult BroadcastToOp::refineShapes() {
  resolveTarget(*this);
  return success();
}

//===----------------------------------------------------------------------===//
// Transposed operands
//===----------------------------------------------------------------------===//

Value SqueezeOp::buildUntransposed(OpBuilder &b, ValueRange operands,
                                   SmallVector<int64_t> &permutation) {
  SmallVector<int64_t> axes = axesBefore(getAxes(), permutation);
  permutation = permutationWithout(permutation, axes);
  return SqueezeOp::create(b, getLoc(), operands[0], axes);
}

Value ReverseOp::buildUntransposed(OpBuilder &b, ValueRange operands,
                                   SmallVector<int64_t> &permutation) {
  return ReverseOp::create(b, getLoc(), operands[0],
                           axesBefore(getAxes(), permutation));
}

Value ConcatOp::buildUntransposed(OpBuilder &b, ValueRange operands,
                                  SmallVector<int64_t> &permutation) {
  return ConcatOp::create(b, getLoc(), operands, permutation[getAxis()]);
}

Value SliceOp::buildUntransposed(OpBuilder &b, ValueRange operands,
                                 SmallVector<int64_t> &permutation) {
  return SliceOp::create(b, getLoc(), operands[0],
                         valuesBefore(getStarts(), permutation),
                         valuesBefore(getEnds(), permutation),
                         valuesBefore(getStrides(), permutation));
}

Value PadOp::buildUntransposed(OpBuilder &b, ValueRange operands,
                               SmallVector<int64_t> &permutation) {
  return PadOp::create(b, getLoc(), operands[0],
                       valuesBefore(getLow(), permutation),
                       valuesBefore(getHigh(), permutation), getValue());
}
