//===- Units.h - code that is generated piece by piece ----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_UNITS_H
#define KERATIN_CODEGEN_UNITS_H

#include "passes/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace keratin {

/// The code of one function of a model, at the stage loops or llvm, as modules
/// that are lowered and translated independently of each other, at the same
/// time.
///
/// In the modules the entry is `entry`, and other functions that one of them
/// defines have numbers: their code does not depend on what a model and its
/// layers are called.
struct CodeUnits {
  std::string entry;        ///< what the function was called
  PipelineOptions pipeline; ///< of the passes that are still to come
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
      modules; ///< at least one
  /// For each module, what those with numbers were called.
  llvm::SmallVector<llvm::StringMap<std::string>> names;
  /// Whether the first module is a long entry, which only calls kernels:
  /// registers are not worth to be thought about in all of it.
  bool entryIsLong = false;

  /// Whether one module defines `function`, by its name there, and others may
  /// use it.
  bool isShared(unsigned module, llvm::StringRef function) const {
    return modules.size() > 1 && names[module].contains(function);
  }
  /// What a symbol of the machine code of a module is called in the whole:
  /// `<entry>.main` the entry, `<entry>.<name>` others, with what follows.
  std::string symbolInWhole(unsigned module, llvm::StringRef symbol) const;
};

/// Symbols of the machine code of a unit: no C name has a dot.
inline constexpr llvm::StringLiteral unitPrefix = "unit.";
inline constexpr llvm::StringLiteral unitEntrySymbol = "unit.main";
/// The entry in the module of a unit.
inline constexpr llvm::StringLiteral unitEntry = "entry";

/// Parts a module into units, by what it holds and nothing else: the entry, and
/// then some kernels in order, as many as are worth a run of LLVM. A module of
/// up to `opsOfWhole` operations is one unit.
CodeUnits splitUnits(mlir::OwningOpRef<mlir::ModuleOp> module,
                     llvm::StringRef entry, size_t opsOfWhole);

} // namespace keratin

#endif // KERATIN_CODEGEN_UNITS_H
