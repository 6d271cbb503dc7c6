//===- Rebuild.h - an op again, on other operands ---------------*- C++ -*-===//
#ifndef KERATIN_PASSES_REBUILD_H
#define KERATIN_PASSES_REBUILD_H

#include "mlir/IR/Builders.h"

namespace keratin {

/// A copy of `op`, which has no regions, on other operands, with `attributes`
/// replaced and the result types inferred. Failure, with nothing inserted, when
/// the op infers no types or does not take these operands.
llvm::FailureOr<mlir::Operation *>
rebuild(mlir::OpBuilder &b, mlir::Operation *op, mlir::ValueRange operands,
        llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

} // namespace keratin

#endif // KERATIN_PASSES_REBUILD_H
