//===- Evaluate.h - constant expressions, compiled and run ------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_EVALUATE_H
#define KERATIN_CODEGEN_EVALUATE_H

#include "passes/Pipelines.h"

namespace keratin {

/// The ConstantEvaluator of Pipelines.h: compiles `@evaluate` at -O0 for this
/// machine, and runs it. Problems are diagnostics.
llvm::FailureOr<llvm::SmallVector<mlir::ElementsAttr>>
evaluateConstants(mlir::ModuleOp module);

} // namespace keratin

#endif // KERATIN_CODEGEN_EVALUATE_H
