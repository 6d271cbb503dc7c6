//===- Lanes.h - scalars, and vectors of them in one way --------*- C++ -*-===//
#ifndef KERATIN_PASSES_LANES_H
#define KERATIN_PASSES_LANES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace keratin {

/// `element`, or a vector of it, as `like` is one.
inline mlir::Type likewise(mlir::Type like, mlir::Type element) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(like))
    return vector.clone(element);
  return element;
}

/// The constant of `type` whose elements are `scalar`.
inline mlir::Value splat(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Type type, mlir::TypedAttr scalar) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    scalar = mlir::DenseElementsAttr::get(vector, mlir::Attribute(scalar));
  return mlir::arith::ConstantOp::create(b, loc, scalar);
}

} // namespace keratin

#endif // KERATIN_PASSES_LANES_H
