//===- ControlScope.h - what new ops of a thread wait for -------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_CONTROLSCOPE_H
#define KERATIN_FRONTEND_CONTROLSCOPE_H

#include "Graph.h"

namespace keratin::backend {

/// What the ControlDependencies of a thread come to, those around it included.
class ControlScope {
public:
  ControlScope(std::shared_ptr<Graph> graph, const Tensors &dependencies,
               ControlScope *outer);

  /// The innermost scope of this thread, null when it is of another graph.
  static ControlScope *current(const Graph &graph);

  /// `value` after the assignments: for a variable that is assigned its new
  /// value. A constant stays as it is.
  mlir::Value after(mlir::Value value);
  /// Whether evaluating `value` performs the assignments.
  bool isAfter(mlir::Value value) const;
  /// The same for any value, a constant too.
  mlir::Value afterAll(mlir::Value value);
  /// An op that reads something that waits, waits itself.
  void noteMade(mlir::Operation *op);

private:
  friend class ControlDependencies;

  std::shared_ptr<Graph> graph;
  /// Those of the dependencies that assign something.
  Tensors events;
  /// The last new value of each variable that an event assigns.
  llvm::DenseMap<const Variable *, mlir::Value> newValues;
  /// Values from outside as they are after the assignments; those that wait
  /// stand for themselves.
  llvm::DenseMap<mlir::Value, mlir::Value> known;
  /// All of them, so that no new value gets the address of one.
  Tensors held;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_CONTROLSCOPE_H
