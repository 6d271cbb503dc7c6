//===- Host.cpp - what the program makes of the values of a call ----------===//
#include "Host.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin::backend {

/// An attribute of a `ktn.host` the last operands of which are what a saved
/// function has instead of its results.
static constexpr llvm::StringLiteral savedAttr = "ktn.saved";

/// The operands that the program is given the values of.
static ValueRange operandsOf(ktn::HostOp op) {
  ValueRange operands = op.getOperands();
  return op->hasAttr(savedAttr) ? operands.drop_back(op->getNumResults())
                                : operands;
}

Tensors Graph::appendHost(HostTask task, const Tensors &operands,
                          const std::vector<std::pair<Shape, DType>> &results,
                          const Tensors &saved) {
  if (blocks.size() > 1)
    throw Error(std::string(CalledAs::current("host")) +
                ": cannot be done inside the step of a loop");
  OperationState state(locationFor("host"), ktn::HostOp::getOperationName());
  for (const Tensor &operand : operands)
    state.addOperands(unwrap(operand));
  for (const Tensor &instead : saved)
    state.addOperands(unwrap(instead));
  if (!saved.empty())
    state.addAttribute(savedAttr, UnitAttr::get(context.get()));
  for (const auto &[shape, dtype] : results)
    state.addTypes(typeOf(shape, dtype));
  state.addAttribute("task",
                     Builder(context.get()).getI64IntegerAttr(nextTask));
  Operation *op = create(state);
  hostTasks[nextTask++] = std::move(task);
  Tensors made;
  for (Value result : op->getResults())
    made.push_back(wrap(result));
  return made;
}

Tensors emitHost(HostTask task, const Tensors &operands,
                 const std::vector<std::pair<Shape, DType>> &results,
                 const Tensors &saved) {
  std::shared_ptr<Graph> graph = Graph::of(operands);
  Graph::Lock lock(graph);
  return graph->appendHost(std::move(task), operands, results, saved);
}

Tensor emitAfter(const Tensor &x, const Tensors &events) {
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  SmallVector<Value> waited;
  for (const Tensor &event : events)
    waited.push_back(graph->unwrap(event));
  return graph->wrap(graph->appendAfter(graph->unwrap(x), waited));
}

/// The host ops behind `values`, in the order of the graph.
static SmallVector<ktn::HostOp> hostOpsBehind(const std::string &function,
                                              const Tensors &values) {
  SmallVector<Value> pending;
  for (const Tensor &value : values)
    pending.push_back(Graph::valueOf(value));
  llvm::DenseSet<Operation *> seen;
  SmallVector<ktn::HostOp> found;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto host = dyn_cast<ktn::HostOp>(op))
      found.push_back(host);
    SetVector<Value> inputs;
    getUsedValuesDefinedAbove(op->getRegions(), inputs);
    if (auto host = dyn_cast<ktn::HostOp>(op))
      inputs.insert_range(operandsOf(host));
    else
      inputs.insert(op->operand_begin(), op->operand_end());
    for (Value input : inputs) {
      bool isEvent = isa<ktn::AfterOp>(op) && op->getOperand(0) != input;
      auto host = input.getDefiningOp<ktn::HostOp>();
      if (host && !isEvent)
        throw Error("function '" + function +
                    "': " + op->getName().stripDialect().str() +
                    " needs what the program makes of the results of a call "
                    "(as ctc_decode does): that can only be an output");
      pending.push_back(input);
    }
  }
  llvm::sort(found, [](ktn::HostOp a, ktn::HostOp b) {
    return a->isBeforeInBlock(b);
  });
  return found;
}

HostPlan::HostPlan(Graph &graph, const std::string &function,
                   const Tensors &outputs, const Tensors &events) {
  Tensors roots = outputs;
  roots.insert(roots.end(), events.begin(), events.end());
  SmallVector<ktn::HostOp> ops = hostOpsBehind(function, roots);
  for (const Tensor &output : outputs) {
    auto result = dyn_cast<OpResult>(Graph::valueOf(output));
    auto found = llvm::find(ops, result ? result.getOwner() : nullptr);
    if (found == ops.end()) {
      places.push_back({values.size()});
      values.push_back(output);
    } else {
      places.push_back({std::nullopt, static_cast<size_t>(found - ops.begin()),
                        result.getResultNumber()});
      ktn::HostOp op = *found;
      if (op->hasAttr(savedAttr))
        places.back().saved = graph.wrap(op.getOperands().take_back(
            op->getNumResults())[result.getResultNumber()]);
    }
  }
  own = values.size();
  for (ktn::HostOp op : ops) {
    ValueRange operands = operandsOf(op);
    tasks.push_back(
        {graph.hostTask(op.getTask()), values.size(), operands.size()});
    for (Value operand : operands)
      values.push_back(graph.wrap(operand));
  }
}

std::vector<Array> HostPlan::finish(std::vector<Array> results) const {
  if (isEmpty())
    return results;
  std::vector<std::vector<Array>> made;
  for (const Task &task : tasks) {
    auto first = results.begin() + static_cast<std::ptrdiff_t>(task.first);
    made.push_back(
        task.run({first, first + static_cast<std::ptrdiff_t>(task.count)}));
  }
  std::vector<Array> outputs;
  for (const Place &place : places)
    outputs.push_back(place.inCode ? results[*place.inCode]
                                   : made[place.task][place.result]);
  return outputs;
}

} // namespace keratin::backend
