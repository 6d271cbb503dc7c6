//===- Values.cpp - placeholders, variables and what is known of them -----===//
#include "Graph.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

Tensor placeholder(const Shape &shape, DType dtype, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->placeholder(shape, dtype, name);
}

Tensor variable(const Array &value, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->variable(value, name);
}

Tensor constant(const Array &value, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->constant(value, name);
}

Tensor variable(const Tensor &value, std::string_view name) {
  requireTensor(value, "variable", "value");
  return variable(value.isNumber() ? Array::full({}, value.number(), floatx())
                                   : eval(value),
                  name);
}

Tensor identity(const Tensor &x, std::string_view) {
  requireTensor(x, "identity", "x");
  std::shared_ptr<Graph> graph = Graph::of({x});
  Graph::Lock lock(graph);
  return graph->wrap(graph->unwrap(x));
}

Tensor randomState(std::optional<uint64_t> seed) {
  uint64_t key = seed ? *seed : draw_seed();
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->randomState(key);
}

//===----------------------------------------------------------------------===//
// The learning phase
//===----------------------------------------------------------------------===//

Tensor learning_phase() {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->phase ? Tensor(*graph->phase) : graph->trainingPhase();
}

void set_learning_phase(int value) {
  if (value != 0 && value != 1)
    throw Error("learning phase is " + std::to_string(value) +
                " but must be 0 or 1");
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  graph->phase = value;
}

std::optional<int> fixed_learning_phase() {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->phase;
}

bool uses_learning_phase(const Tensor &x) {
  if (!x.id())
    return false;
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  return graph->hasTrait(Graph::valueOf(x), Graph::UsesPhase);
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

bool is_tensor(const Tensor &x) { return x.id() != nullptr; }

bool is_placeholder(const Tensor &x) {
  return x.id() && Graph::valueOf(x).getDefiningOp<ktn::PlaceholderOp>();
}

/// Null for what is no variable.
static std::shared_ptr<Variable> variableOf(const Tensor &x) {
  if (!x.id())
    return nullptr;
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  return graph->findVariable(x);
}

bool is_variable(const Tensor &x) { return variableOf(x) != nullptr; }

/// Throws Error for a number as well as for `None`.
static void requireValue(const Tensor &x, std::string_view function) {
  requireTensor(x, function, "x");
  if (!x.id())
    throw Error(std::string(function) + ": x is the number " +
                llvm::formatv("{0}", x.number()).str() +
                ", expected a tensor of a graph");
}

bool is_keras_tensor(const Tensor &x) {
  requireValue(x, "is_keras_tensor");
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  return graph->hasTrait(Graph::valueOf(x), Graph::OfLayer);
}

void mark_as_keras_tensor(const Tensor &x) {
  requireValue(x, "mark_as_keras_tensor");
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  graph->addTrait(Graph::valueOf(x), Graph::OfLayer);
}

std::string name(const Tensor &x) {
  if (!x.id())
    return "";
  if (auto op = Graph::valueOf(x).getDefiningOp<ktn::PlaceholderOp>())
    return op.getName().str();
  std::shared_ptr<Variable> variable = variableOf(x);
  return variable ? variable->name : "";
}

Shape int_shape(const Tensor &x) {
  requireTensor(x, "int_shape", "x");
  return x.id() ? Graph::shapeOf(Graph::typeOf(x)) : Shape();
}

int64_t ndim(const Tensor &x) {
  requireTensor(x, "ndim", "x");
  return x.id() ? Graph::typeOf(x).getRank() : 0;
}

DType dtype(const Tensor &x) {
  requireTensor(x, "dtype", "x");
  return x.id() ? Graph::dtypeOf(Graph::typeOf(x).getElementType()) : floatx();
}

int64_t count_params(const Tensor &x) {
  int64_t count = 1;
  for (int64_t extent : int_shape(x)) {
    if (extent == None)
      throw Error("count_params: the number of elements of a tensor of shape " +
                  shapeName(int_shape(x)) + " is not known");
    count *= extent;
  }
  return count;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

Array eval(const Tensor &x) {
  requireTensor(x, "eval", "x");
  if (x.isNumber())
    throw Error("eval: x is the number " + std::to_string(x.number()) +
                ", not a tensor");
  if (is_variable(x))
    return get_value(x);
  return function({}, {x}, {}, {.function = "eval"},
                  {.foldVariables = false})({})
      .front();
}

Array get_value(const Tensor &x) {
  std::shared_ptr<Variable> variable = variableOf(x);
  if (!variable)
    return eval(x);
  Graph::Lock lock(Graph::ownerOf(x));
  return variable->value;
}

std::vector<Array> batch_get_value(const Tensors &tensors) {
  std::vector<Array> values;
  for (const Tensor &tensor : tensors)
    values.push_back(get_value(tensor));
  return values;
}

void set_value(const Tensor &x, const Array &value) {
  std::shared_ptr<Variable> variable = variableOf(x);
  if (!variable)
    throw Error("set_value: x is " +
                (x.id() ? "a tensor of shape " + shapeName(int_shape(x))
                        : std::string("a number or None")) +
                ", not a variable");
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  if (value.shape() != variable->value.shape())
    throw Error("set_value: variable '" + variable->name + "' has shape " +
                shapeName(variable->value.shape()) + " but the value has " +
                shapeName(value.shape()));
  graph->assign(*variable, value.to(variable->value.dtype()));
}

void batch_set_value(const std::vector<std::pair<Tensor, Array>> &tuples) {
  for (const auto &[tensor, value] : tuples)
    set_value(tensor, value);
}

} // namespace keratin::backend
