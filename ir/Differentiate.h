//===- Differentiate.h - the walk of reverse-mode derivatives ---*- C++ -*-===//
#ifndef KERATIN_IR_DIFFERENTIATE_H
#define KERATIN_IR_DIFFERENTIATE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace keratin::ktn {

/// Emits the cotangents of `wrt`, given the `seeds` of `targets`, where `b`
/// stands: in the block of the targets, behind them. Walks back once, over the
/// ops that depend on `wrt`, and asks each for its rule. A cotangent is null
/// where none flows. Values of `wrt` may come from outside of the block.
///
/// Failure, with a diagnostic that notes `location`, when an op has no rule.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
differentiate(mlir::OpBuilder &b, mlir::Location location,
              mlir::ValueRange targets, mlir::ValueRange seeds,
              mlir::ValueRange wrt);

/// The values that `op` reads: its operands, and what its regions use from
/// outside.
llvm::SmallVector<mlir::Value> valuesRead(mlir::Operation &op);

} // namespace keratin::ktn

#endif // KERATIN_IR_DIFFERENTIATE_H
