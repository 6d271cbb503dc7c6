//===- FunctionMaking.cpp - functions of tensors --------------------------===//
#include "FunctionImpl.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

using namespace mlir;

namespace keratin::backend {

namespace {

/// Names that differ: a repeated one gets a number.
std::vector<std::string> distinct(const std::vector<std::string> &names) {
  llvm::StringMap<unsigned> counts;
  std::vector<std::string> result;
  for (const std::string &name : names) {
    std::string candidate = name;
    while (counts.contains(candidate))
      candidate = name + "_" + std::to_string(++counts[name]);
    counts[candidate];
    result.push_back(candidate);
  }
  return result;
}

TensorInfo infoOf(const Tensor &tensor, const std::string &name) {
  return {name, dtype(tensor), int_shape(tensor)};
}

bool isPhase(const Tensor &tensor) {
  return Graph::valueOf(tensor).getDefiningOp<ktn::TrainingPhaseOp>() !=
         nullptr;
}

std::vector<std::string> inputNames(const Tensors &inputs,
                                    const FunctionNames &names) {
  std::vector<std::string> result;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    std::string own = name(input);
    result.push_back(index < names.inputs.size() ? names.inputs[index]
                     : !own.empty()              ? own
                     : isPhase(input) ? "learning_phase"
                                      : "input_" + std::to_string(index));
  }
  return distinct(result);
}

std::vector<std::string> outputNames(const Tensors &outputs,
                                     const FunctionNames &names) {
  std::vector<std::string> result;
  for (size_t index = 0; index < outputs.size(); ++index)
    result.push_back(index < names.outputs.size()
                         ? names.outputs[index]
                         : "output_" + std::to_string(index));
  return distinct(result);
}

/// What is evaluated for its assignments.
Tensors eventsOf(Graph &graph, const std::vector<Update> &updates) {
  Tensors events;
  for (const Update &update : updates) {
    if (update.variable)
      events.push_back(graph.appendAssign(update.variable, update.value));
    else if (update.value.id())
      events.push_back(update.value);
    else
      throw Error("function: update " + std::to_string(events.size()) + " is " +
                  (update.value ? "a number" : "None") +
                  ", not a tensor that an update function gave");
  }
  return events;
}

/// What is known of the function before it is compiled. A phase that is fed may
/// make an input unnecessary: it is enough if one of them does.
void examine(Function::Impl &impl) {
  Survey test;
  std::optional<Error> problem;
  auto look = [&](bool training) {
    try {
      Circumstances known;
      known.training = training;
      Survey found = survey(*impl.graph, impl.cut, known);
      impl.readsPhase |= found.readsPhase;
      impl.updates |= found.updates;
      impl.choosesShapes |= !found.openConditions.empty();
      return true;
    } catch (const Error &error) {
      problem = error;
      return false;
    }
  };
  bool works = look(/*training=*/false);
  if (impl.phaseInput && (!works || impl.readsPhase))
    works |= look(/*training=*/true);
  if (!works)
    throw *problem;
}

void checkFunctionInputs(const Tensors &inputs, const std::string &function) {
  llvm::DenseSet<const void *> seen;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    if (!input.id())
      throw Error("function '" + function + "': input " +
                  std::to_string(index) + " is a number or None, not a tensor");
    if (!seen.insert(input.id()).second)
      throw Error("function '" + function + "': input " +
                  std::to_string(index) + " is given twice");
  }
}

/// Of the outputs, leaves to compiled code what it computes.
void shareWithHost(Function::Impl &impl, const FunctionOptions &options) {
  Cut &cut = impl.cut;
  impl.host = HostPlan(*impl.graph, cut.function, cut.outputs, cut.events);
  cut.outputs = impl.host.compiled();
  for (auto [index, output] : llvm::enumerate(impl.outputs))
    if (impl.host.placeOf(index))
      cut.outputNames.push_back(output.name);
  while (cut.outputNames.size() < cut.outputs.size())
    cut.outputNames.push_back("host_" + std::to_string(cut.outputNames.size()));
  for (size_t index : options.afterUpdates)
    if (std::optional<size_t> place = impl.host.placeOf(index))
      cut.afterUpdates.insert(*place);
}

} // namespace

Function function(const Tensors &inputs, const Tensors &outputs,
                  const std::vector<Update> &updates,
                  const FunctionNames &names, const FunctionOptions &options) {
  Tensors all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  for (const Update &update : updates)
    all.insert(all.end(), {update.variable, update.value});
  auto impl = std::make_shared<Function::Impl>();
  impl->graph = Graph::of(all);
  Graph::Lock lock(impl->graph);

  Cut &cut = impl->cut;
  cut.function = names.function;
  checkFunctionInputs(inputs, cut.function);
  std::vector<std::string> named = inputNames(inputs, names);
  for (auto [index, input] : llvm::enumerate(inputs)) {
    impl->inputs.push_back(infoOf(input, named[index]));
    if (isPhase(input)) {
      impl->phaseInput = index;
      continue;
    }
    cut.inputs.push_back(input);
    cut.inputNames.push_back(named[index]);
  }
  for (auto [index, output] : llvm::enumerate(outputs)) {
    requireTensor(output, "function '" + cut.function + "'",
                  "output " + std::to_string(index));
    cut.outputs.push_back(
        output.id() ? output : impl->graph->wrap(impl->graph->unwrap(output)));
  }
  for (size_t index : options.afterUpdates)
    if (index >= outputs.size())
      throw Error("function '" + cut.function + "': output " +
                  std::to_string(index) +
                  " after the updates is not there: "
                  "there are " +
                  std::to_string(outputs.size()));
  cut.events = eventsOf(*impl->graph, updates);
  impl->foldVariables = options.foldVariables;
  for (auto [output, name] :
       llvm::zip_equal(cut.outputs, outputNames(outputs, names)))
    impl->outputs.push_back(infoOf(output, name));
  shareWithHost(*impl, options);
  examine(*impl);
  return Function(std::move(impl));
}

} // namespace keratin::backend
