//===- Extraction.h - a function cut out of the graph -----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_EXTRACTION_H
#define KERATIN_FRONTEND_EXTRACTION_H

#include "Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

namespace keratin::backend {

using VariablePtr = std::shared_ptr<Variable>;

/// What is cut: `outputs` as functions of `inputs`, and the new values of the
/// variables that `events` and the outputs assign.
struct Cut {
  Tensors inputs, outputs;
  /// The outputs that are computed from the new values of variables.
  std::set<size_t> afterUpdates;
  /// Wanted for what they assign.
  Tensors events;
  /// False: nothing is assigned and no state advances.
  bool commits = true;
  std::string function;
  std::vector<std::string> inputNames, outputNames;
};

/// The values of conditions of `ktn.choose`, by the condition's id.
using Choices = std::map<const void *, bool>;

/// What is known where a cut is compiled.
struct Circumstances {
  bool training = false;
  Choices choices;
  /// Whether a choice between types that differ may stay unknown.
  bool keepOpenChoices = false;
  /// Whether variables that are not updated are constants, but for `live`.
  bool foldVariables = true;
  std::set<VariablePtr> live;
};

/// What is seen of a cut before it is made.
struct Survey {
  /// Conditions that choose between types that differ and are not known yet.
  Tensors openConditions;
  bool readsPhase = false;
  /// Whether a call changes anything.
  bool updates = false;
};

/// A module of one function `@symbol`. Its arguments are the inputs and then
/// `state`; its results the outputs and then the new values of `updated`.
struct Extraction {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<VariablePtr> state, updated;
  /// Variables whose present value is a constant of the function.
  std::vector<VariablePtr> folded;
};

/// Both throw Error when an output depends on a placeholder that is not an
/// input. The graph is locked by the caller.
Survey survey(Graph &graph, const Cut &cut, const Circumstances &known);
/// All choices must be known that `survey` finds open.
Extraction extract(Graph &graph, const Cut &cut, const Circumstances &known,
                   llvm::StringRef symbol);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_EXTRACTION_H
