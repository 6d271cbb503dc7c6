//===- Values.cpp - placeholders, variables and what is known of them -----===//
#include "Graph.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

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

namespace {

/// Walks from a loss to what it depends on.
class GradientPaths {
public:
  explicit GradientPaths(Value loss) {
    walk(loss, connected, [&](Operation *op) {
      if (isDifferentiable(op))
        return true;
      if (!isa<ktn::StopGradientOp>(op))
        blocking.push_back(op);
      return false;
    });
  }

  /// Whether the loss depends on `value` through differentiable ops. Throws
  /// Error when it depends on it only through ops without a derivative.
  bool connects(Value value) const {
    if (connected.contains(value))
      return true;
    for (Operation *op : blocking)
      for (Value operand : inputsOf(op)) {
        llvm::DenseSet<Value> behind;
        walk(operand, behind,
             [](Operation *op) { return !isa<ktn::StopGradientOp>(op); });
        if (behind.contains(value))
          throw Error("gradients: " + op->getName().stripDialect().str() +
                      ", through which the loss depends on a variable, has no "
                      "derivative");
      }
    return false;
  }

private:
  static bool isFloating(Value value) {
    return isa<FloatType>(getElementTypeOrSelf(value));
  }

  static bool isDifferentiable(Operation *op) {
    return !isa<ktn::StopGradientOp>(op) &&
           (isa<ktn::VjpOpInterface, ktn::GradientsOp>(op) ||
            inputsOf(op).empty());
  }

  /// The operands, and what a loop uses from outside.
  static SetVector<Value> inputsOf(Operation *op) {
    SetVector<Value> inputs;
    getUsedValuesDefinedAbove(op->getRegions(), inputs);
    inputs.insert(op->operand_begin(), op->operand_end());
    return inputs;
  }

  /// Adds to `seen` the floats on which `value` depends, as far as `passes`.
  static void walk(Value value, llvm::DenseSet<Value> &seen,
                   llvm::function_ref<bool(Operation *)> passes) {
    SmallVector<Value> pending{value};
    seen.insert(value);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val().getDefiningOp();
      if (!op || !passes(op))
        continue;
      for (Value operand : inputsOf(op))
        if (isFloating(operand) && seen.insert(operand).second)
          pending.push_back(operand);
    }
  }

  llvm::DenseSet<Value> connected;
  SmallVector<Operation *> blocking;
};

} // namespace

Tensors gradients(const Tensor &loss, const Tensors &variables) {
  requireTensor(loss, "gradients", "loss");
  Tensors all = variables;
  all.push_back(loss);
  std::shared_ptr<Graph> graph = Graph::of(all);
  Lock lock(graph->mutex);
  if (!loss.id())
    return Tensors(variables.size());

  GradientPaths paths(Graph::valueOf(loss));
  Tensors connected;
  for (const Tensor &variable : variables) {
    requireTensor(variable, "gradients", "a variable");
    if (paths.connects(Graph::valueOf(variable)))
      connected.push_back(variable);
  }
  if (connected.empty())
    return Tensors(variables.size());

  Tensors found = graph->appendGradients(loss, connected);
  Tensors result;
  auto next = found.begin();
  for (const Tensor &variable : variables)
    result.push_back(paths.connects(Graph::valueOf(variable)) ? *next++
                                                              : Tensor());
  return result;
}

} // namespace keratin::backend
