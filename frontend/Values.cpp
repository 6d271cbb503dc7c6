//===- Values.cpp - placeholders, variables and what is known of them -----===//
#include "Graph.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace keratin::backend {

using Lock = std::lock_guard<std::recursive_mutex>;

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

Tensor placeholder(const Shape &shape, DType dtype, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Lock lock(graph->mutex);
  return graph->placeholder(shape, dtype, name);
}

Tensor variable(const Array &value, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Lock lock(graph->mutex);
  return graph->variable(value, name);
}

Tensor constant(const Array &value, std::string_view name) {
  std::shared_ptr<Graph> graph = Graph::current();
  Lock lock(graph->mutex);
  return graph->constant(value, name);
}

Tensor learning_phase() { return emit("training_phase", {}); }

void set_learning_phase(int value) {
  if (value != 0 && value != 1)
    throw Error("learning phase is " + std::to_string(value) +
                " but must be 0 or 1");
  std::shared_ptr<Graph> graph = Graph::current();
  Lock lock(graph->mutex);
  graph->training = value == 1;
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
  Lock lock(graph->mutex);
  return graph->findVariable(x);
}

bool is_variable(const Tensor &x) { return variableOf(x) != nullptr; }

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
  if (is_variable(x))
    return get_value(x);
  return function({}, {x})({}).front();
}

Array get_value(const Tensor &x) {
  requireTensor(x, "get_value", "x");
  std::shared_ptr<Variable> variable = variableOf(x);
  if (!variable)
    return eval(x);
  Lock lock(Graph::ownerOf(x)->mutex);
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
    throw Error("set_value: the tensor is not a variable");
  Lock lock(Graph::ownerOf(x)->mutex);
  if (value.shape() != variable->value.shape())
    throw Error("set_value: variable '" + variable->name + "' has shape " +
                shapeName(variable->value.shape()) + " but the value has " +
                shapeName(value.shape()));
  variable->value = value.to(variable->value.dtype());
  ++variable->version;
}

void batch_set_value(const std::vector<std::pair<Tensor, Array>> &tuples) {
  for (const auto &[tensor, value] : tuples)
    set_value(tensor, value);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The values on which `target` depends through differentiable ops.
static llvm::DenseSet<Value> differentiableSources(Value target) {
  llvm::DenseSet<Value> seen{target};
  SmallVector<Value> pending{target};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    // A loop and a gradient are differentiated as wholes.
    if (!op || (!isa<ktn::VjpOpInterface>(op) && op->getNumRegions() == 0 &&
                !isa<ktn::GradientsOp>(op)))
      continue;
    for (Value operand : op->getOperands())
      if (isa<FloatType>(getElementTypeOrSelf(operand)) &&
          seen.insert(operand).second)
        pending.push_back(operand);
  }
  return seen;
}

Tensors gradients(const Tensor &loss, const Tensors &variables) {
  requireTensor(loss, "gradients", "loss");
  Tensors all = variables;
  all.push_back(loss);
  std::shared_ptr<Graph> graph = Graph::of(all);
  Lock lock(graph->mutex);
  if (!loss.id())
    return Tensors(variables.size());

  llvm::DenseSet<Value> sources =
      differentiableSources(Graph::valueOf(loss));
  Tensors connected;
  for (const Tensor &variable : variables)
    if (sources.contains(Graph::valueOf(variable)))
      connected.push_back(variable);
  if (connected.empty())
    return Tensors(variables.size());

  Tensors found = graph->appendGradients(loss, connected);
  Tensors result;
  auto next = found.begin();
  for (const Tensor &variable : variables)
    result.push_back(sources.contains(Graph::valueOf(variable)) ? *next++
                                                                : Tensor());
  return result;
}

} // namespace keratin::backend
