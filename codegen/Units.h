//===- Units.h - code that is generated piece by piece ----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_UNITS_H
#define KERATIN_CODEGEN_UNITS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace keratin {

/// The code of one function of a model, at the stage llvm, as modules that LLVM
/// translates independently of each other, at the same time.
struct CodeUnits {
  std::string entry; ///< the function, in the first module
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
      modules; ///< at least one
  /// Functions that one module defines and others use. None when there is only
  /// one module.
  llvm::StringSet<> shared;
  /// Whether the first module is a long entry alone, which only calls kernels:
  /// registers are not worth to be thought about in all of it.
  bool entryIsAlone = false;
};

/// Parts a module into units, by what it holds and nothing else: a unit is some
/// kernels in order, enough of them to be worth a run of LLVM.
CodeUnits splitUnits(mlir::OwningOpRef<mlir::ModuleOp> module,
                     llvm::StringRef entry);

} // namespace keratin

#endif // KERATIN_CODEGEN_UNITS_H
