//===- Extraction.h - a function cut out of the graph -----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_EXTRACTION_H
#define KERATIN_FRONTEND_EXTRACTION_H

#include "Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace keratin::backend {

using VariablePtr = std::shared_ptr<Variable>;

/// What is cut: `outputs` and the new values of updates as functions of
/// `inputs`.
struct Cut {
  Tensors inputs, outputs;
  std::vector<std::pair<VariablePtr, Tensor>> updates;
  /// Variables that are read when the function is called, and not constants
  /// of it, besides those that it updates.
  std::set<VariablePtr> live;
  std::string function;
  std::vector<std::string> inputNames, outputNames;
  bool training = false;
};

/// A module of one function `@symbol`. Its arguments are the inputs and then
/// `state`; its results the outputs and then the updates.
struct Extraction {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<VariablePtr> state;
  /// Variables whose present value is a constant of the function.
  std::vector<VariablePtr> folded;
};

/// Throws Error when the outputs depend on a placeholder that is not an input.
/// The graph is locked by the caller.
Extraction extract(Graph &graph, const Cut &cut, llvm::StringRef symbol);
/// Only checks that it can be cut.
void checkExtraction(const Cut &cut);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_EXTRACTION_H
