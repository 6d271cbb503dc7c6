//===- LowerToLlvm.h - from loops to the LLVM dialect -----------*- C++ -*-===//
#ifndef KERATIN_PASSES_LOWERTOLLVM_H
#define KERATIN_PASSES_LOWERTOLLVM_H

#include "passes/Pipelines.h"

namespace keratin {

/// Appends the passes from the stage `loops` to `llvm`: afterwards the module
/// holds the LLVM dialect alone. Nothing is specific to a target but what
/// `options` say of it.
///
/// A function takes for each memref one pointer; private ones take after it, as
/// i64, the extents and strides that its type leaves open.
void addLowerToLlvm(mlir::OpPassManager &pm, const PipelineOptions &options);

} // namespace keratin

#endif // KERATIN_PASSES_LOWERTOLLVM_H
