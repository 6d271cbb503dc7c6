//===- Host.h - what the program makes of the values of a call --*- C++ -*-===//
//
// Printing, and decoding to sequences whose length depends on the values, is
// not for compiled code: the operands of such a `ktn.host` are outputs more of
// the code, and the program goes on from their values.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_HOST_H
#define KERATIN_FRONTEND_HOST_H

#include "Graph.h"

namespace keratin::backend {

/// The outputs of a function as compiled code and the program share them.
class HostPlan {
public:
  HostPlan() = default;
  /// Throws Error when compiled code would need a result of the program.
  HostPlan(Graph &graph, const std::string &function, const Tensors &outputs,
           const Tensors &events);

  /// What the code computes: those of the outputs that it can, then what the
  /// program needs besides.
  const Tensors &compiled() const { return values; }
  /// The place among `compiled` of an output; none when the program makes it.
  std::optional<size_t> placeOf(size_t output) const {
    return places[output].inCode;
  }
  /// What a saved function has in the place of an output that the program
  /// makes; None where there is no such thing.
  const Tensor &savedFor(size_t output) const { return places[output].saved; }
  bool isEmpty() const { return tasks.empty(); }
  /// The number of `compiled` that are outputs.
  size_t ownCount() const { return own; }

  /// The outputs, given the values of `compiled`. Does the tasks in the order
  /// of the graph.
  std::vector<Array> finish(std::vector<Array> results) const;

private:
  struct Task {
    HostTask run;
    size_t first, count; ///< of `values`
  };
  struct Place {
    std::optional<size_t> inCode;
    size_t task = 0, result = 0;
    Tensor saved = {};
  };

  Tensors values;
  size_t own = 0;
  std::vector<Task> tasks;
  std::vector<Place> places;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_HOST_H
