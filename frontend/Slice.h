//===- Slice.h - the part of the graph that a function needs ----*- C++ -*-===//
#ifndef KERATIN_FRONTEND_SLICE_H
#define KERATIN_FRONTEND_SLICE_H

#include "Extraction.h"

#include "ir/Ktn.h"

namespace keratin::backend {

/// The ops between the inputs and the outputs of a cut, in the order of the
/// graph. Of a choice whose condition is known only what is chosen is there.
class Slice {
public:
  /// Throws Error when a placeholder is needed that is not an input.
  Slice(Graph &graph, const Cut &cut, const Circumstances &known);

  /// The operand that stands for the only result of an op which computes
  /// nothing: what is chosen, assigned, or waits. Null for other ops.
  mlir::Value aliased(mlir::Operation *op) const;
  /// What an op reads: its operands, or the aliased one, and what its regions
  /// use.
  llvm::SetVector<mlir::Value> inputsOf(mlir::Operation *op) const;
  bool isInput(mlir::Value value) const { return inputs.contains(value); }

  llvm::SmallVector<mlir::Operation *> ops;
  /// Choices that nothing is known of.
  llvm::SmallVector<mlir::Operation *> open;
  bool readsPhase = false;

private:
  void visit(mlir::Value value);
  void visitEffects(mlir::Value value);
  void visitInputs(mlir::Operation *op);
  void checkLoop(mlir::Operation *op) const;
  std::optional<bool> valueOf(mlir::Value condition) const;
  bool isOpen(mlir::Operation *op) const;

  Graph &graph;
  const Cut &cut;
  const Circumstances &known;
  llvm::DenseSet<mlir::Value> inputs;
  llvm::DenseSet<mlir::Operation *> seen, seenEffects;
  llvm::SmallVector<mlir::Operation *> pending;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_SLICE_H
