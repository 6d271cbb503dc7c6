//===- Variables.h - functions that share variables -------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_VARIABLES_H
#define KERATIN_CODEGEN_VARIABLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace keratin {

/// A variable that some function of a module assigns.
struct ModuleVariable {
  std::string name;
  mlir::RankedTensorType type;
  mlir::ElementsAttr initialValue;
};

/// One public function of a module, alone: what it reads of variables are its
/// last arguments, what it assigns its last results.
struct ModulePart {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entry;
  /// The variable that each argument and result is, or -1.
  std::vector<int> inputState, outputState;
};

struct SplitModule {
  std::vector<ModuleVariable> variables;
  std::vector<ModulePart> parts; ///< at least one
};

/// Parts `module`, at the stage graph, into its functions. A module of one
/// function that assigns nothing stays as it is, at any stage, and its entry is
/// "predict"; entries of others are the names of the functions. Problems are
/// diagnostics.
llvm::FailureOr<SplitModule>
splitModule(mlir::OwningOpRef<mlir::ModuleOp> module);

} // namespace keratin

#endif // KERATIN_CODEGEN_VARIABLES_H
