//===- Vjp.h - what the gradient rules share ---------------------*- C++
//-*-===//
//
// Everything here emits ktn ops only, so gradients have gradients.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_VJP_H
#define KERATIN_IR_VJP_H

#include "ir/Ktn.h"

namespace keratin::ktn {

using Values = llvm::SmallVector<mlir::Value>;

/// The scalar `value` in the element type of `like`; broadcasts to any shape.
mlir::Value createScalarLike(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value like, double value);

/// Zeros of the type of `like`.
mlir::Value createZerosLike(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value like);

/// `x`, broadcast to the type of `like`.
mlir::Value broadcastLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                          mlir::Value like);

/// Undoes a broadcast: sums the cotangent `dy` over the axes along which `x`
/// was repeated. Gives exactly the type of `x`.
mlir::Value sumLike(mlir::OpBuilder &b, mlir::Location loc, mlir::Value dy,
                    mlir::Value x);

/// `x` transposed, or x itself when the permutation changes nothing.
mlir::Value permuteAxes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        llvm::ArrayRef<int64_t> permutation);

} // namespace keratin::ktn

#endif // KERATIN_IR_VJP_H
