//===- Folding.h - the arithmetic of shapes is folded -----------*- C++ -*-===//
//
// Shapes are computed with ops on small integer tensors. Folding those, and no
// others, makes extents known without copying weights.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_FOLDING_H
#define KERATIN_IR_FOLDING_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

namespace keratin::ktn {

/// `value` when it holds integers, at most 64 of them; null otherwise.
inline mlir::DenseIntElementsAttr smallIntegers(mlir::Attribute value) {
  auto integers = llvm::dyn_cast_if_present<mlir::DenseIntElementsAttr>(value);
  return integers && integers.getNumElements() <= 64
             ? integers
             : mlir::DenseIntElementsAttr();
}

/// The same with its elements in another shape, or null.
inline mlir::Attribute reshapeIntegers(mlir::Attribute value,
                                       mlir::RankedTensorType type) {
  mlir::DenseIntElementsAttr integers = smallIntegers(value);
  if (!integers || !type.hasStaticShape() ||
      type.getNumElements() != integers.getNumElements())
    return {};
  return integers.reshape(type);
}

/// An extent that the operand `shape` gives is part of the op once the operand
/// is known.
template <typename OpT> void resolveTarget(OpT op) {
  mlir::DenseIntElementsAttr extents;
  if (!op.getShape() ||
      !mlir::matchPattern(op.getShape(), mlir::m_Constant(&extents)))
    return;
  llvm::SmallVector<int64_t> target(op.getTarget());
  for (auto [extent, given] :
       llvm::zip_equal(target, extents.template getValues<llvm::APInt>()))
    if (mlir::ShapedType::isDynamic(extent))
      extent = given.getSExtValue();
  op.setTarget(target);
  op.getShapeMutable().clear();
}

} // namespace keratin::ktn

#endif // KERATIN_IR_FOLDING_H
