//===- Units.h - code that is generated piece by piece ----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_UNITS_H
#define KERATIN_CODEGEN_UNITS_H

#include "passes/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace keratin {

/// The code of one function of a model, at the stage loops or llvm, as modules
/// that are lowered and translated independently of each other, at the same
/// time.
struct CodeUnits {
  std::string entry;        ///< the function, in the first module
  PipelineOptions pipeline; ///< of the passes that are still to come
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
      modules; ///< at least one
  /// Functions that one module defines and others use. None when there is only
  /// one module.
  llvm::StringSet<> shared;
  /// Whether the first module is a long entry, which only calls kernels:
  /// registers are not worth to be thought about in all of it.
  bool entryIsLong = false;
};

/// Parts a module into units, by what it holds and nothing else: the entry, and
/// then some kernels in order, as many as are worth a run of LLVM. A module of
/// up to `opsOfWhole` operations is one unit.
CodeUnits splitUnits(mlir::OwningOpRef<mlir::ModuleOp> module,
                     llvm::StringRef entry, size_t opsOfWhole);

} // namespace keratin

#endif // KERATIN_CODEGEN_UNITS_H
