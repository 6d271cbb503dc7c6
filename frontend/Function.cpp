//===- Function.cpp - running of functions --------------------------------===//
#include "FunctionImpl.h"

#include "Cache.h"
#include "Diagnostics.h"
#include "Settings.h"
#include "keratin/backend.h"

#include <algorithm>

using namespace mlir;

namespace keratin::backend {

void appendStateShapes(const Extraction &extraction, CompileOptions &options) {
  for (const VariablePtr &variable : extraction.state)
    options.inputShapes.push_back(variable->value.shape());
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

namespace {

std::string listNames(const std::vector<TensorInfo> &tensors) {
  std::string text;
  for (const TensorInfo &tensor : tensors)
    text += (text.empty() ? "'" : ", '") + tensor.name + "'";
  return text.empty() ? "none" : text;
}

/// Whether values of `from` are taken for `to`: what loses at most precision.
bool isConvertible(DType from, DType to) {
  return isFloat(to) || from == DType::Bool ||
         (!isFloat(from) && to != DType::Bool);
}

} // namespace

void checkDims(const TensorInfo &input, const Shape &shape) {
  bool fits = shape.size() == input.shape.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis)
    fits = input.shape[axis] == None || input.shape[axis] == shape[axis];
  if (!fits)
    throw Error("input '" + input.name + "' has shape " + shapeName(shape) +
                " but the function takes " + shapeName(input.shape));
}

bool Function::Impl::trains(const std::vector<Array> &given) const {
  if (!phaseInput)
    return false;
  const Array &phase = given[*phaseInput];
  if (phase.size() != 1)
    throw Error("input '" + inputs[*phaseInput].name + "' has shape " +
                shapeName(phase.shape()) + " but must be one number");
  // Code that does not ask is the same for both.
  return readsPhase && phase.at(0) != 0;
}

std::vector<Array>
Function::Impl::checkInputs(const std::vector<Array> &given) const {
  if (given.size() != inputs.size())
    throw Error("function '" + cut.function + "' takes " +
                std::to_string(inputs.size()) + " inputs (" +
                listNames(inputs) + ") but " + std::to_string(given.size()) +
                " are given");
  std::vector<Array> checked;
  checked.reserve(given.size());
  for (auto [index, input] : llvm::enumerate(inputs)) {
    if (index == phaseInput)
      continue;
    const Array &array = given[index];
    checkDims(input, array.shape());
    if (!isConvertible(array.dtype(), input.dtype))
      throw Error("input '" + input.name + "' has dtype " +
                  std::string(dtypeName(array.dtype())) +
                  " but the function takes " +
                  std::string(dtypeName(input.dtype)));
    checked.push_back(array.to(input.dtype));
  }
  return checked;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Circumstances Function::Impl::circumstances(bool training,
                                            Choices choices) const {
  Circumstances known;
  known.training = training;
  known.choices = std::move(choices);
  known.foldVariables = foldVariables;
  known.live = live;
  return known;
}

/// A variable that changes between calls becomes an argument of later code:
/// what folded it is compiled once more and not again.
bool Function::Impl::isStale(const Compiled &code) {
  bool stale = false;
  for (const auto &[variable, version] : code.folded)
    if (variable->version != version) {
      live.insert(variable);
      stale = true;
    }
  return stale;
}

std::shared_ptr<Compiled>
Function::Impl::find(bool training, const Choices &choices,
                     llvm::function_ref<bool(const Compiled &)> hasShapes) {
  auto found = llvm::find_if(cache, [&](const auto &code) {
    return code->training == training && hasShapes(*code) &&
           code->choices == choices;
  });
  if (found == cache.end())
    return nullptr;
  if (isStale(**found)) {
    cache.erase(found);
    return nullptr;
  }
  std::rotate(cache.begin(), found, std::next(found));
  return cache.front();
}

/// A variable is written in place where the code may do so and no other
/// argument is the same variable.
static std::vector<int64_t> findOverwrites(const Compiled &code) {
  std::vector<int64_t> result(code.updated.size(), -1);
  const int32_t *inPlace = code.info->in_place;
  if (!inPlace)
    return result;
  int64_t inputs = code.info->num_inputs - int64_t(code.state.size());
  inPlace += code.info->num_outputs - code.updated.size();
  for (auto [index, variable] : llvm::enumerate(code.updated)) {
    int64_t place = inPlace[index] - inputs;
    if (place >= 0 && code.state[place] == variable &&
        llvm::count(code.state, variable) == 1)
      result[index] = place;
  }
  return result;
}

static bool suits(const Compiled &code, Caller caller) {
  switch (caller) {
  case Caller::Us:
    return true;
  case Caller::UsOften:
    return !code.loaded->isQuick();
  case Caller::Anybody:
    return code.caller == Caller::Anybody;
  }
  return false;
}

/// So many calls of quick code take longer than to compile it without haste.
static constexpr uint64_t manyCalls = 1000;

std::shared_ptr<Compiled>
Function::Impl::prepare(const std::vector<Shape> &shapes, bool training,
                        const Choices &choices, Caller caller) {
  auto hasShapes = [&](const Compiled &code) {
    return code.shapes == shapes && suits(code, caller);
  };
  if (std::shared_ptr<Compiled> code = find(training, choices, hasShapes))
    return code;
  Leftovers leftovers(*graph);
  auto code = std::make_shared<Compiled>();
  code->shapes = shapes;
  code->training = training;
  code->choices = choices;
  CompileOptions options = compileOptions(settings, cut.function);
  code->caller = caller;
  options.trusted = caller != Caller::Anybody;
  // In profiles kernels are functions of their own.
  options.quick = caller == Caller::Us && !options.profile;
  // The bits of results stay as they were when code is made once more.
  if (caller == Caller::UsOften && options.winograd == Winograd::Auto)
    options.winograd = Winograd::Off;
  if (caller == Caller::UsOften)
    options.strassen = options.pairs = false;
  // In a process weights change, and with them all of such a table.
  if (caller != Caller::Anybody)
    options.foldLookups = false;
  options.inputShapes = shapes;
  Extraction extraction =
      extract(*graph, cut, circumstances(training, choices), options.name);
  code->state = extraction.state;
  code->updated = extraction.updated;
  for (const VariablePtr &variable : extraction.folded)
    code->folded.emplace_back(variable, variable->version);
  appendStateShapes(extraction, options);
  Diagnostics diagnostics(graph->getContext());
  code->loaded = compileCached(std::move(extraction.module), options);
  if (!code->loaded)
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be compiled"));
  code->info = &code->loaded->info();
  code->overwrites = findOverwrites(*code);
  cache.insert(cache.begin(), code);
  return code;
}

//===----------------------------------------------------------------------===//
// Choices between shapes
//===----------------------------------------------------------------------===//

std::shared_ptr<Function::Impl>
Function::Impl::makeAside(const Tensors &inputs, const Tensors &outputs) const {
  auto aside = std::make_shared<Impl>();
  aside->graph = graph;
  aside->settings = settings;
  aside->foldVariables = false;
  aside->choosesShapes = true;
  aside->cut.inputs = inputs;
  aside->cut.outputs = outputs;
  aside->cut.commits = false;
  aside->cut.function = cut.function + "_condition";
  if (!inputs.empty())
    aside->cut.inputNames = cut.inputNames;
  for (size_t index = 0; index < outputs.size(); ++index)
    aside->cut.outputNames.push_back("condition_" + std::to_string(index));
  return aside;
}

Function::Impl::Conditions
Function::Impl::conditionsAfter(const Circumstances &known) {
  Conditions result;
  result.tensors = survey(*graph, cut, known).openConditions;
  if (!result.tensors.empty())
    result.function = makeAside(cut.inputs, result.tensors);
  return result;
}

Choices Function::Impl::choose(bool training,
                               const std::vector<Array> &arguments) {
  Choices choices;
  while (choosesShapes) {
    std::pair<bool, Choices> key(training, choices);
    auto found = conditions.find(key);
    if (found == conditions.end())
      found =
          conditions
              .emplace(key, conditionsAfter(circumstances(training, choices)))
              .first;
    const Conditions &next = found->second;
    if (next.tensors.empty())
      break;
    std::vector<Array> values = next.function->call(training, arguments);
    for (auto [condition, value] : llvm::zip_equal(next.tensors, values))
      choices[condition.id()] = value.at(0) != 0;
  }
  return choices;
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

static std::vector<Shape> shapesOf(const std::vector<Array> &arrays) {
  std::vector<Shape> shapes;
  shapes.reserve(arrays.size());
  for (const Array &array : arrays)
    shapes.push_back(array.shape());
  return shapes;
}

std::vector<Array> Function::Impl::call(bool training,
                                        std::vector<Array> arguments) {
  std::optional<Graph::Lock> lock(std::in_place, graph);
  Choices choices = choose(training, arguments);
  std::shared_ptr<Compiled> code =
      find(training, choices, [&](const Compiled &known) {
        return llvm::equal(known.shapes, arguments,
                           [](const Shape &shape, const Array &argument) {
                             return shape == argument.shape();
                           });
      });
  if (!code)
    code = prepare(shapesOf(arguments), training, choices, Caller::Us);
  if (code->loaded->isQuick() && ++code->calls == manyCalls) {
    llvm::erase(cache, code);
    code = prepare(shapesOf(arguments), training, choices, Caller::UsOften);
  }
  // An old value that somebody has is not written over.
  llvm::SmallVector<void *, 32> places;
  for (auto [variable, place] :
       llvm::zip_equal(code->updated, code->overwrites))
    places.push_back(place < 0 ? nullptr : variable->value.unsharedData());
  // The elements are kept, whoever changes the variables meanwhile.
  llvm::SmallVector<std::shared_ptr<const void>, 32> owners;
  llvm::SmallVector<const void *, 32> values;
  for (const Array &argument : arguments)
    values.push_back(argument.data());
  for (const VariablePtr &variable : code->state) {
    owners.push_back(variable->value.owner());
    values.push_back(variable->value.data());
  }
  // Who changes variables keeps others from them until they are changed.
  if (code->updated.empty())
    lock.reset();
  std::vector<Array> results = run(*code, values, places);
  size_t next = results.size() - code->updated.size();
  for (auto [variable, place] : llvm::zip_equal(code->updated, places)) {
    Array &result = results[next++];
    graph->assign(*variable, place ? variable->value : std::move(result));
  }
  results.resize(results.size() - code->updated.size());
  return results;
}

std::vector<Array> Function::operator()(const std::vector<Array> &given) const {
  std::vector<Array> arguments = impl->checkInputs(given);
  bool training = impl->trains(given);
  if (impl->cut.outputs.empty() && !impl->updates)
    return {};
  return impl->host.finish(impl->call(training, std::move(arguments)));
}

//===----------------------------------------------------------------------===//
// The handle
//===----------------------------------------------------------------------===//

const std::vector<TensorInfo> &Function::inputs() const { return impl->inputs; }
const std::vector<TensorInfo> &Function::outputs() const {
  return impl->outputs;
}

void Function::configure(const CompileSettings &settings) {
  checkSettings("configure", settings);
  Graph::Lock lock(impl->graph);
  impl->settings = settings;
  impl->cache.clear();
  impl->conditions.clear();
}

const ktn_model_info_t *
Function::compiled(const std::vector<Shape> &inputShapes) const {
  if (inputShapes.size() != impl->inputs.size())
    throw Error("function '" + impl->cut.function + "' takes " +
                std::to_string(impl->inputs.size()) + " inputs but " +
                std::to_string(inputShapes.size()) + " shapes are given");
  std::vector<Shape> shapes;
  for (auto [index, input] : llvm::enumerate(impl->inputs)) {
    if (index == impl->phaseInput)
      continue;
    checkDims(input, inputShapes[index]);
    shapes.push_back(inputShapes[index]);
  }
  Graph::Lock lock(impl->graph);
  return impl->prepare(shapes, /*training=*/false, {}, Caller::Anybody)->info;
}

void Function::setProfileHook(const std::vector<Shape> &inputShapes,
                              void (*hook)(void *, int32_t, int32_t),
                              void *user) const {
  if (!impl->settings.profile)
    throw Error("function '" + impl->cut.function +
                "' is not compiled for profiling: configure it so");
  compiled(inputShapes)->set_profile(hook, user);
}

} // namespace keratin::backend
