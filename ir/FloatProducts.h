//===- FloatProducts.h - sums of products of floats -------------*- C++ -*-===//
#ifndef KERATIN_IR_FLOATPRODUCTS_H
#define KERATIN_IR_FLOATPRODUCTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// Whether the one result of `generic` is sums of products of its two inputs,
/// in floating point.
bool isFloatProduct(mlir::linalg::GenericOp generic);

/// Whether the body of a float product does no more to its factors than to
/// widen them.
bool onlyWidensFactors(mlir::linalg::GenericOp product);

/// Whether `generic` sums up products of two numbers of bf16 in f32.
bool isProductOfBf16(mlir::linalg::GenericOp generic);

/// Whether `generic` sums up products of two numbers of f32, in f32.
bool isProductOfF32(mlir::linalg::GenericOp generic);

/// Whether the sums of `generic` start from a constant zero.
bool startsFromZero(mlir::linalg::GenericOp generic);

} // namespace keratin

#endif // KERATIN_IR_FLOATPRODUCTS_H
