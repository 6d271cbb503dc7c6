//===- Updates.cpp - assignments, and what waits for them -----------------===//
#include "ControlScope.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

using namespace mlir;

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Assignments
//===----------------------------------------------------------------------===//

/// `value` in the dtype and, as far as is known, the shape of the variable.
static Tensor checkedValue(const Variable &variable, const Tensor &value) {
  DType type = variable.value.dtype();
  const Shape &shape = variable.value.shape();
  Shape given = int_shape(value);
  bool fits = dtype(value) == type && given.size() == shape.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis)
    fits = given[axis] == None || given[axis] == shape[axis];
  if (!fits)
    throw Error(std::string(CalledAs::current("update")) + ": variable '" +
                variable.name + "' has shape " + shapeName(shape) +
                " and dtype " + std::string(dtypeName(type)) +
                " but its new value has " + shapeName(given) + " and " +
                std::string(dtypeName(dtype(value))));
  return given == shape ? value : reshape(value, shape);
}

Tensor Graph::appendAssign(const Tensor &target, const Tensor &value) {
  std::shared_ptr<Variable> variable =
      target.id() ? findVariable(target) : nullptr;
  if (!variable)
    throw Error(std::string(CalledAs::current("update")) + ": x is " +
                (target.id()
                     ? "a tensor of shape " + shapeName(int_shape(target))
                     : std::string("a number or None")) +
                ", not a variable");
  requireTensor(value, "update", "the new value of '" + variable->name + "'");
  Tensor number;
  if (!value.id())
    number =
        constant(Array::full({}, value.number(), variable->value.dtype()), "");
  Value x = unwrap(checkedValue(*variable, value.id() ? value : number));
  if (ControlScope *scope = ControlScope::current(*this))
    x = scope->afterAll(x);
  OperationState state(locationFor("assign"),
                       ktn::AssignOp::getOperationName());
  state.addOperands(x);
  state.addAttribute("variable",
                     FlatSymbolRefAttr::get(context.get(), variable->name));
  Operation *op = create(state);
  assigned[op] = std::move(variable);
  return wrap(op->getResult(0));
}

Tensor update(const Tensor &x, const Tensor &new_x) {
  std::shared_ptr<Graph> graph = Graph::of({x, new_x});
  Graph::Lock lock(graph);
  return graph->appendAssign(x, new_x);
}

Tensor update_add(const Tensor &x, const Tensor &increment) {
  CalledAs function("update_add");
  return update(x, x + increment);
}

Tensor update_sub(const Tensor &x, const Tensor &decrement) {
  CalledAs function("update_sub");
  return update(x, x - decrement);
}

Tensor moving_average_update(const Tensor &x, const Tensor &value,
                             double momentum) {
  CalledAs function("moving_average_update");
  return update(x, x - (x - value) * (1 - momentum));
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

Value Graph::appendAfter(Value value, ValueRange events) {
  OperationState state(locationFor("after"), ktn::AfterOp::getOperationName());
  state.addOperands(value);
  state.addOperands(events);
  return createAtTop(state)->getResult(0);
}

static thread_local std::vector<std::unique_ptr<ControlScope>> scopes;

ControlScope *ControlScope::current(const Graph &graph) {
  return !scopes.empty() && scopes.back()->graph.get() == &graph
             ? scopes.back().get()
             : nullptr;
}

/// The `ktn.assign` ops on which a value depends.
static SmallVector<Operation *> assignsOf(const Graph &graph, Value value) {
  SmallVector<Operation *> found;
  SmallVector<Value> pending{value};
  llvm::DenseSet<Operation *> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !graph.hasTrait(next, Graph::Assigns) || !seen.insert(op).second)
      continue;
    if (isa<ktn::AssignOp>(op))
      found.push_back(op);
    llvm::append_range(pending, op->getOperands());
  }
  return found;
}

ControlScope::ControlScope(std::shared_ptr<Graph> given,
                           const Tensors &dependencies, ControlScope *outer)
    : graph(std::move(given)) {
  if (outer) {
    events = outer->events;
    newValues = outer->newValues;
  }
  llvm::DenseMap<const Variable *, Operation *> last;
  for (const Tensor &dependency : dependencies) {
    if (!dependency.id() ||
        !graph->hasTrait(Graph::valueOf(dependency), Graph::Assigns))
      continue;
    events.push_back(dependency);
    for (Operation *op : assignsOf(*graph, Graph::valueOf(dependency))) {
      Operation *&known = last[graph->findAssigned(op).get()];
      if (!known ||
          (known->getBlock() == op->getBlock() && known->isBeforeInBlock(op)))
        known = op;
    }
  }
  for (auto [variable, op] : last)
    newValues[variable] = op->getResult(0);
}

bool ControlScope::isAfter(Value value) const {
  auto found = known.find(value);
  return found != known.end() && found->second == value;
}

Value ControlScope::after(Value value) {
  if (events.empty() || value.getDefiningOp<ktn::ConstantOp>())
    return value;
  return afterAll(value);
}

Value ControlScope::afterAll(Value value) {
  // What is made inside the step of a loop waits with the loop.
  if (events.empty() || value.getParentBlock() != graph->getTopBlock())
    return value;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Value base = value;
  if (std::shared_ptr<Variable> variable = graph->findVariable(value))
    if (Value assigned = newValues.lookup(variable.get()))
      base = assigned;
  SmallVector<Value> waited;
  for (const Tensor &event : events)
    waited.push_back(Graph::valueOf(event));
  Value made = graph->appendAfter(base, waited);
  known[value] = known[made] = made;
  held.push_back(graph->wrap(value));
  held.push_back(graph->wrap(made));
  return made;
}

void ControlScope::noteMade(Operation *op) {
  if (llvm::any_of(op->getOperands(),
                   [&](Value operand) { return isAfter(operand); }))
    for (Value result : op->getResults()) {
      known[result] = result;
      held.push_back(graph->wrap(result));
    }
}

ControlDependencies::ControlDependencies(const Tensors &tensors) {
  std::shared_ptr<Graph> graph = Graph::of(tensors);
  Graph::Lock lock(graph);
  ControlScope *outer = ControlScope::current(*graph);
  scopes.push_back(std::make_unique<ControlScope>(graph, tensors, outer));
}

ControlDependencies::~ControlDependencies() {
  // Ends after its tensors have: they may be the last of their graph.
  std::unique_ptr<ControlScope> ended = std::move(scopes.back());
  scopes.pop_back();
}

} // namespace keratin::backend
