//===- Function.cpp - compiled functions of a graph -----------------------===//
#include "Cache.h"
#include "Diagnostics.h"
#include "Execution.h"
#include "Host.h"
#include "StateModule.h"

#include "codegen/Compile.h"
#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace keratin::backend {

namespace {

/// A C identifier like `name`.
std::string identifier(llvm::StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) ? c : '_';
  if (result.empty() || llvm::isDigit(result[0]))
    result = "f" + result;
  return result;
}

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

Emit parseProduct(std::string_view name) {
  if (std::optional<Emit> emit = parseEmit(llvm::StringRef(name)))
    return *emit;
  throw Error("'" + std::string(name) + "' is nothing that can be written: " +
              llvm::join(emitNames(), ", ") + " can");
}

WeightsPlacement parsePlacement(const std::string &name) {
  if (name == "embed")
    return WeightsPlacement::Embed;
  if (name == "external")
    return WeightsPlacement::External;
  throw Error("weights are '" + name + "' but must be 'embed' or 'external'");
}

} // namespace

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

struct Function::Impl {
  std::shared_ptr<Graph> graph; // first: the code below refers to its context
  Cut cut;
  /// As the caller sees them. The inputs of the cut are without the learning
  /// phase, its outputs are what compiled code gives to the host.
  std::vector<TensorInfo> inputs, outputs;
  std::optional<size_t> phaseInput;
  HostPlan host;
  bool foldVariables = true;
  bool readsPhase = false, updates = false, choosesShapes = false;
  CompileSettings settings;
  /// Variables that changed between calls: arguments of later code.
  std::set<VariablePtr> live;
  /// The code of the last call first.
  std::vector<std::shared_ptr<Compiled>> cache;

  /// What is to be evaluated before code is chosen, after the choices so far.
  struct Conditions {
    Tensors tensors;
    std::shared_ptr<Impl> function;
  };
  std::map<std::pair<bool, Choices>, Conditions> conditions;

  bool trains(const std::vector<Array> &given) const;
  std::vector<Array> checkInputs(const std::vector<Array> &given) const;
  std::vector<Array> call(bool training, std::vector<Array> arguments);

  /// The choices that these inputs and the variables give.
  Choices choose(bool training, const std::vector<Array> &arguments);
  Conditions conditionsAfter(const Circumstances &known);
  /// A function of some of the inputs that changes nothing.
  std::shared_ptr<Impl> makeAside(const Tensors &inputs,
                                  const Tensors &outputs) const;
  /// Choices for code that is called by others, as far as they are known now.
  Choices chooseForSaving(bool training);

  /// Code for inputs of these shapes with the present values of variables.
  std::shared_ptr<Compiled> prepare(const std::vector<Shape> &shapes,
                                    bool training, const Choices &choices);
  /// Code in the cache that is not stale, null without.
  std::shared_ptr<Compiled>
  find(bool training, const Choices &choices,
       llvm::function_ref<bool(const Compiled &)> hasShapes);
  bool isStale(const Compiled &code);
  Circumstances circumstances(bool training, Choices choices) const;
  std::unique_ptr<CompiledModel> compileExtraction(Extraction extraction,
                                                   CompileOptions options);
  CompileOptions optionsFor(const CompileSettings &settings) const;

  /// `live` variables are arguments.
  Extraction extractForSaving(const SaveOptions &options,
                              const std::string &symbol,
                              const std::set<VariablePtr> &live = {});
  CompileOptions optionsFor(const SaveOptions &options,
                            const std::string &prefix) const;
  std::vector<Shape> savedShapes(const SaveOptions &options) const;
  /// What is saved, compiled.
  std::unique_ptr<CompiledModel> compileForSaving(const SaveOptions &options,
                                                  const std::string &prefix);
  /// The module after the passes up to a stage.
  OwningOpRef<ModuleOp> lowerTo(Stage stage, const SaveOptions &options,
                                const std::string &prefix);
};

namespace {
/// At its end the constants go that a compilation made on its way.
class Leftovers {
public:
  explicit Leftovers(Graph &graph) : graph(graph) {}
  ~Leftovers() { graph.dropCompiledBlobs(); }
  Leftovers(const Leftovers &) = delete;
  Leftovers &operator=(const Leftovers &) = delete;

private:
  Graph &graph;
};
} // namespace

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static void checkDims(const TensorInfo &input, const Shape &shape) {
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

CompileOptions
Function::Impl::optionsFor(const CompileSettings &settings) const {
  CompileOptions options;
  options.name = identifier(cut.function);
  options.target = settings.target;
  options.optimize = settings.optimize;
  options.threads = settings.threads;
  options.profile = settings.profile;
  options.dumpAfter = settings.dumpAfter;
  options.dumpDirectory = settings.dumpDirectory;
  options.timePasses = settings.timePasses;
  if (settings.progress)
    options.progress = [progress = settings.progress](
                           llvm::StringRef what, unsigned done,
                           unsigned total) { progress(what, done, total); };
  return options;
}

std::vector<Shape>
Function::Impl::savedShapes(const SaveOptions &options) const {
  if (options.batch != None && options.batch < 1)
    throw Error("batch is " + std::to_string(options.batch) +
                " but must be 1 or more, or None");
  if (!options.inputShapes.empty() &&
      options.inputShapes.size() != inputs.size())
    throw Error("function '" + cut.function + "' takes " +
                std::to_string(inputs.size()) + " inputs but " +
                std::to_string(options.inputShapes.size()) +
                " shapes are given");
  std::vector<Shape> shapes;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    if (index == phaseInput)
      continue;
    Shape shape = input.shape;
    if (!options.inputShapes.empty()) {
      shape = options.inputShapes[index];
      checkDims(input, shape);
    }
    if (!shape.empty() && shape[0] == None)
      shape[0] = options.batch;
    for (size_t axis = 1; axis < shape.size(); ++axis)
      if (shape[axis] == None)
        throw Error("input '" + input.name + "' has shape " + shapeName(shape) +
                    " but a saved function can leave only the first axis "
                    "open: say the extent of axis " +
                    std::to_string(axis));
    shapes.push_back(shape);
  }
  return shapes;
}

CompileOptions Function::Impl::optionsFor(const SaveOptions &options,
                                          const std::string &prefix) const {
  CompileOptions result =
      optionsFor(static_cast<const CompileSettings &>(options));
  if (!options.name.empty()) {
    if (identifier(options.name) != options.name)
      throw Error("name '" + options.name + "' is not a C identifier");
    result.name = options.name;
  } else if (!prefix.empty() && prefix != "-") {
    result.name = identifier(llvm::sys::path::filename(prefix));
  }
  result.weights = parsePlacement(options.weights);
  result.inputShapes = savedShapes(options);
  return result;
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

/// The state follows the inputs.
static void appendStateShapes(const Extraction &extraction,
                              CompileOptions &options) {
  for (const VariablePtr &variable : extraction.state)
    options.inputShapes.push_back(variable->value.shape());
}

std::unique_ptr<CompiledModel>
Function::Impl::compileExtraction(Extraction extraction,
                                  CompileOptions options) {
  appendStateShapes(extraction, options);
  Diagnostics diagnostics(graph->getContext());
  std::unique_ptr<CompiledModel> model =
      compile(std::move(extraction.module), options);
  if (!model)
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be compiled"));
  return model;
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

std::shared_ptr<Compiled>
Function::Impl::prepare(const std::vector<Shape> &shapes, bool training,
                        const Choices &choices) {
  auto hasShapes = [&](const Compiled &code) { return code.shapes == shapes; };
  if (std::shared_ptr<Compiled> code = find(training, choices, hasShapes))
    return code;
  Leftovers leftovers(*graph);
  auto code = std::make_shared<Compiled>();
  code->shapes = shapes;
  code->training = training;
  code->choices = choices;
  CompileOptions options = optionsFor(settings);
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

Choices Function::Impl::chooseForSaving(bool training) {
  Circumstances known = circumstances(training, {});
  llvm::DenseSet<const void *> unknown;
  for (bool more = choosesShapes; more;) {
    more = false;
    for (const Tensor &condition : survey(*graph, cut, known).openConditions) {
      if (unknown.contains(condition.id()))
        continue;
      try {
        std::vector<Array> value =
            makeAside({}, {condition})->call(training, {});
        known.choices[condition.id()] = value[0].at(0) != 0;
        more = true;
      } catch (const Error &) {
        // It depends on inputs: perhaps the shapes are the same by then.
        unknown.insert(condition.id());
      }
    }
  }
  return known.choices;
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
    code = prepare(shapesOf(arguments), training, choices);
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
  std::vector<Array> results = run(*code, values);
  size_t next = results.size() - code->updated.size();
  for (const VariablePtr &variable : code->updated)
    graph->assign(*variable, std::move(results[next++]));
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
// Saving
//===----------------------------------------------------------------------===//

Extraction Function::Impl::extractForSaving(const SaveOptions &options,
                                            const std::string &symbol,
                                            const std::set<VariablePtr> &live) {
  Circumstances known;
  known.live = live;
  known.training = options.training;
  known.choices = chooseForSaving(options.training);
  known.keepOpenChoices = true;
  // Artefacts have no host.
  for (auto [index, output] : llvm::enumerate(outputs))
    if (!host.placeOf(index))
      throw Error("function '" + cut.function + "': output '" + output.name +
                  "' is made by the program after a call (as ctc_decode does) "
                  "and cannot be saved");
  Cut saved = cut;
  saved.outputs.resize(outputs.size());
  saved.outputNames.resize(outputs.size());
  return extract(*graph, saved, known, symbol);
}

std::unique_ptr<CompiledModel>
Function::Impl::compileForSaving(const SaveOptions &options,
                                 const std::string &prefix) {
  CompileOptions compileOptions = optionsFor(options, prefix);
  return compileExtraction(extractForSaving(options, compileOptions.name),
                           compileOptions);
}

OwningOpRef<ModuleOp> Function::Impl::lowerTo(Stage stage,
                                              const SaveOptions &given,
                                              const std::string &prefix) {
  CompileOptions options = optionsFor(given, prefix);
  Extraction extraction = extractForSaving(given, options.name);
  appendStateShapes(extraction, options);
  Diagnostics diagnostics(graph->getContext());
  if (failed(runPipeline(*extraction.module, stage, options)))
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be lowered"));
  return std::move(extraction.module);
}

//===----------------------------------------------------------------------===//
// The handle
//===----------------------------------------------------------------------===//

const std::vector<TensorInfo> &Function::inputs() const { return impl->inputs; }
const std::vector<TensorInfo> &Function::outputs() const {
  return impl->outputs;
}

void Function::configure(const CompileSettings &settings) {
  Graph::Lock lock(impl->graph);
  impl->settings = settings;
  impl->cache.clear();
  impl->conditions.clear();
}

static std::vector<KernelInfo> kernelsOf(const CompiledModel &model) {
  std::vector<KernelInfo> kernels;
  for (const KernelRow &row : model.kernels())
    kernels.push_back({row.name,
                       row.op,
                       row.shapes,
                       {row.flops[0], row.flops[1]},
                       {row.bytes[0], row.bytes[1]},
                       {row.arenaOffset[0], row.arenaOffset[1]}});
  return kernels;
}

namespace {
/// Functions that become one artefact.
class SavedTogether {
public:
  SavedTogether(const std::vector<Function::Impl *> &functions,
                const std::vector<SavedFunction> &given,
                const SaveOptions &options)
      : functions(functions), given(given), options(options) {
    llvm::StringSet<> names;
    for (size_t index = 0; index < functions.size(); ++index) {
      const std::string &name = given[index].name;
      if (identifier(name) != name || !names.insert(name).second)
        throw Error("function " + std::to_string(index) + " is called '" +
                    name + "', which is no C identifier or is another one's");
      if (functions[index]->graph != functions[0]->graph)
        throw Error("function '" + name +
                    "' is of another graph than the first one");
    }
    if (functions.size() > 1 && !options.inputShapes.empty())
      throw Error("shapes of inputs are given but which of the " +
                  std::to_string(functions.size()) +
                  " functions they are of cannot be said");
  }

  OwningOpRef<ModuleOp> makeModule() {
    std::set<VariablePtr> state;
    for (size_t index = 0; index < functions.size(); ++index) {
      Extraction part = extract(index, {});
      state.insert(part.updated.begin(), part.updated.end());
    }
    if (functions.size() == 1 && state.empty())
      throw Error("function '" + given[0].name +
                  "' is alone and updates nothing: save it as a function of "
                  "its own");
    std::vector<Extraction> parts;
    for (size_t index = 0; index < functions.size(); ++index)
      parts.push_back(extract(index, state));
    return joinWithState(*functions[0]->graph, std::move(parts));
  }

  CompileOptions compileOptions(const std::string &prefix) const {
    CompileOptions result = functions[0]->optionsFor(options, prefix);
    for (Function::Impl *function : llvm::drop_begin(functions))
      llvm::append_range(result.inputShapes, function->savedShapes(options));
    return result;
  }

private:
  Extraction extract(size_t index, const std::set<VariablePtr> &live) {
    SaveOptions own = options;
    own.training = given[index].training;
    return functions[index]->extractForSaving(own, given[index].name, live);
  }

  const std::vector<Function::Impl *> &functions;
  const std::vector<SavedFunction> &given;
  const SaveOptions &options;
};
} // namespace

std::vector<KernelInfo> save(const std::string &prefix,
                             const std::vector<SavedFunction> &functions,
                             const SaveOptions &options) {
  Emit emit = parseProduct(options.emit);
  std::optional<Stage> stage = stageOf(emit);
  if (stage && *stage != Stage::Graph)
    throw Error("'" + options.emit +
                "' is a stage of one function: a model with state is written "
                "as graph, llvm, asm, obj, lib, so or exe");
  std::vector<Function::Impl *> impls;
  for (const SavedFunction &saved : functions) {
    if (!saved.function)
      throw Error("function '" + saved.name + "' is empty");
    impls.push_back(saved.function.impl.get());
  }
  if (impls.empty())
    throw Error("there is no function to save");
  SavedTogether together(impls, functions, options);
  Graph &graph = *impls[0]->graph;
  Graph::Lock lock(impls[0]->graph);
  Leftovers leftovers(graph);
  OwningOpRef<ModuleOp> module = together.makeModule();
  Diagnostics diagnostics(graph.getContext());
  std::string failure = "'" + prefix + "' could not be written";
  if (stage) {
    if (failed(writeIr(*module, prefix, /*withWeights=*/true)))
      throw Error(diagnostics.message(failure));
    return {};
  }
  std::unique_ptr<CompiledModel> model =
      compile(std::move(module), together.compileOptions(prefix));
  if (!model || failed(model->write(emit, prefix)))
    throw Error(diagnostics.message(failure));
  return kernelsOf(*model);
}

std::vector<KernelInfo> Function::save(const std::string &prefix,
                                       const SaveOptions &options) const {
  Emit emit = parseProduct(options.emit);
  if (impl->updates && !stageOf(emit))
    return backend::save(prefix, {{"step", *this, options.training}}, options);
  Graph::Lock lock(impl->graph);
  Leftovers leftovers(*impl->graph);
  std::string failure = "'" + prefix + "' could not be written";
  if (std::optional<Stage> stage = stageOf(emit)) {
    OwningOpRef<ModuleOp> module = impl->lowerTo(*stage, options, prefix);
    Diagnostics diagnostics(impl->graph->getContext());
    if (failed(writeIr(*module, prefix, /*withWeights=*/true)))
      throw Error(diagnostics.message(failure));
    return {};
  }
  std::unique_ptr<CompiledModel> model =
      impl->compileForSaving(options, prefix);
  Diagnostics diagnostics(impl->graph->getContext());
  if (failed(model->write(emit, prefix)))
    throw Error(diagnostics.message(failure));
  return kernelsOf(*model);
}

std::string Function::lower(std::string_view stage,
                            const SaveOptions &options) const {
  Emit emit = parseProduct(stage);
  Graph::Lock lock(impl->graph);
  Leftovers leftovers(*impl->graph);
  if (std::optional<Stage> known = stageOf(emit))
    return irText(*impl->lowerTo(*known, options, ""),
                  /*withWeights=*/false);
  std::unique_ptr<CompiledModel> model = impl->compileForSaving(options, "");
  Diagnostics diagnostics(impl->graph->getContext());
  if (FailureOr<std::string> text = model->text(emit); succeeded(text))
    return *text;
  throw Error(diagnostics.message("'" + std::string(stage) + "' has no text"));
}

std::vector<KernelInfo> Function::kernels(const SaveOptions &options) const {
  Graph::Lock lock(impl->graph);
  Leftovers leftovers(*impl->graph);
  return kernelsOf(*impl->compileForSaving(options, ""));
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
  return impl->prepare(shapes, /*training=*/false, {})->info;
}

void Function::setProfileHook(const std::vector<Shape> &inputShapes,
                              void (*hook)(void *, int32_t, int32_t),
                              void *user) const {
  if (!impl->settings.profile)
    throw Error("function '" + impl->cut.function +
                "' is not compiled for profiling: configure it so");
  compiled(inputShapes)->set_profile(hook, user);
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

namespace {

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
