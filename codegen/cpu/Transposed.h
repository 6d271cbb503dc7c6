//===- Transposed.h - squares of numbers in vectors -------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_TRANSPOSED_H
#define KERATIN_CODEGEN_CPU_TRANSPOSED_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace keratin {

/// The columns of as many vectors as these have elements, a power of two. Where
/// vectors have some times as many elements, each part of them is a square of
/// its own.
llvm::SmallVector<mlir::Value>
transposed(mlir::OpBuilder &b, mlir::Location loc,
           llvm::SmallVector<mlir::Value> vectors);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_TRANSPOSED_H
