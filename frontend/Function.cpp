//===- Function.cpp - compiled functions of a graph -----------------------===//
#include "Diagnostics.h"
#include "Execution.h"

#include "codegen/Compile.h"
#include "keratin/backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace mlir;

namespace keratin::backend {

using Lock = std::lock_guard<std::recursive_mutex>;

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
  std::vector<TensorInfo> inputs, outputs;
  CompileSettings settings;
  std::map<std::vector<Shape>, std::shared_ptr<Compiled>> cache;

  std::vector<Array> checkInputs(const std::vector<Array> &arrays) const;
  /// Code for these shapes with the present values of variables.
  std::shared_ptr<Compiled> prepare(const std::vector<Shape> &shapes);
  std::unique_ptr<CompiledModel> compileFor(const CompileOptions &options,
                                            Compiled *record);
  Extraction extractFor(const CompileOptions &options);
  CompileOptions optionsFor(const CompileSettings &settings) const;
  CompileOptions optionsFor(const SaveOptions &options,
                            const std::string &prefix) const;
  std::vector<Shape> savedShapes(const SaveOptions &options) const;
  /// The module after the passes up to a stage.
  OwningOpRef<ModuleOp> lowerTo(Stage stage, const CompileOptions &options);
  /// Assigns what comes after the outputs to the variables.
  void update(llvm::ArrayRef<Array> results);
};

static void checkDims(const TensorInfo &input, const Shape &shape) {
  bool fits = shape.size() == input.shape.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis)
    fits = input.shape[axis] == None || input.shape[axis] == shape[axis];
  if (!fits)
    throw Error("input '" + input.name + "' has shape " + shapeName(shape) +
                " but the function takes " + shapeName(input.shape));
}

std::vector<Array>
Function::Impl::checkInputs(const std::vector<Array> &arrays) const {
  if (arrays.size() != inputs.size())
    throw Error("function '" + cut.function + "' takes " +
                std::to_string(inputs.size()) + " inputs (" +
                listNames(inputs) + ") but " + std::to_string(arrays.size()) +
                " are given");
  std::vector<Array> checked;
  for (auto [input, array] : llvm::zip_equal(inputs, arrays)) {
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

Extraction Function::Impl::extractFor(const CompileOptions &options) {
  return extract(*graph, cut, options.name);
}

std::unique_ptr<CompiledModel>
Function::Impl::compileFor(const CompileOptions &given, Compiled *record) {
  Extraction extraction = extractFor(given);
  CompileOptions options = given;
  for (const VariablePtr &variable : extraction.state)
    options.inputShapes.push_back(variable->value.shape());
  if (record) {
    record->state = extraction.state;
    for (const VariablePtr &variable : extraction.folded)
      record->folded.emplace_back(variable, variable->version);
  }
  Diagnostics diagnostics(graph->getContext());
  std::unique_ptr<CompiledModel> model =
      compile(std::move(extraction.module), options);
  if (!model)
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be compiled"));
  return model;
}

std::shared_ptr<Compiled>
Function::Impl::prepare(const std::vector<Shape> &shapes) {
  if (auto found = cache.find(shapes); found != cache.end()) {
    // A variable that changes between calls becomes an argument of later code:
    // it is compiled once more and not again.
    bool stale = false;
    for (const auto &[variable, version] : found->second->folded)
      if (variable->version != version) {
        cut.live.insert(variable);
        stale = true;
      }
    if (!stale)
      return found->second;
    cache.erase(found);
  }
  auto code = std::make_shared<Compiled>();
  CompileOptions options = optionsFor(settings);
  options.inputShapes = shapes;
  code->model = compileFor(options, code.get());
  Diagnostics diagnostics(graph->getContext());
  code->info = code->model->load();
  if (!code->info)
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be loaded"));
  cache[shapes] = code;
  return code;
}

void Function::Impl::update(llvm::ArrayRef<Array> results) {
  for (auto [update, value] :
       llvm::zip_equal(cut.updates, results.drop_front(outputs.size()))) {
    update.first->value = value;
    ++update.first->version;
  }
}

OwningOpRef<ModuleOp> Function::Impl::lowerTo(Stage stage,
                                              const CompileOptions &given) {
  Extraction extraction = extractFor(given);
  CompileOptions options = given;
  for (const VariablePtr &variable : extraction.state)
    options.inputShapes.push_back(variable->value.shape());
  Diagnostics diagnostics(graph->getContext());
  if (failed(runPipeline(*extraction.module, stage, options)))
    throw Error(diagnostics.message("function '" + cut.function +
                                    "' could not be lowered"));
  return std::move(extraction.module);
}

//===----------------------------------------------------------------------===//
// The handle
//===----------------------------------------------------------------------===//

std::vector<Array> Function::operator()(const std::vector<Array> &given) const {
  std::vector<Array> arguments = impl->checkInputs(given);
  std::shared_ptr<Compiled> code;
  if (impl->outputs.empty() && impl->cut.updates.empty())
    return {};
  std::unique_lock<std::recursive_mutex> lock(impl->graph->mutex);
  std::vector<Shape> shapes;
  for (const Array &argument : arguments)
    shapes.push_back(argument.shape());
  code = impl->prepare(shapes);
  for (const VariablePtr &variable : code->state)
    arguments.push_back(variable->value);
  // Who changes variables keeps others from them until they are changed.
  if (impl->cut.updates.empty())
    lock.unlock();
  std::vector<Array> results = run(*code, arguments);
  impl->update(results);
  results.resize(impl->outputs.size());
  return results;
}

const std::vector<TensorInfo> &Function::inputs() const { return impl->inputs; }
const std::vector<TensorInfo> &Function::outputs() const {
  return impl->outputs;
}

void Function::configure(const CompileSettings &settings) {
  Lock lock(impl->graph->mutex);
  impl->settings = settings;
  impl->cache.clear();
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

std::vector<KernelInfo> Function::save(const std::string &prefix,
                                       const SaveOptions &options) const {
  Emit emit = parseProduct(options.emit);
  Lock lock(impl->graph->mutex);
  CompileOptions compileOptions = impl->optionsFor(options, prefix);
  std::string failure = "'" + prefix + "' could not be written";
  if (std::optional<Stage> stage = stageOf(emit)) {
    OwningOpRef<ModuleOp> module = impl->lowerTo(*stage, compileOptions);
    Diagnostics diagnostics(impl->graph->getContext());
    if (failed(writeIr(*module, prefix, /*withWeights=*/true)))
      throw Error(diagnostics.message(failure));
    return {};
  }
  std::unique_ptr<CompiledModel> model =
      impl->compileFor(compileOptions, nullptr);
  Diagnostics diagnostics(impl->graph->getContext());
  if (failed(model->write(emit, prefix)))
    throw Error(diagnostics.message(failure));
  return kernelsOf(*model);
}

std::string Function::lower(std::string_view stage,
                            const SaveOptions &options) const {
  Emit emit = parseProduct(stage);
  Lock lock(impl->graph->mutex);
  CompileOptions compileOptions = impl->optionsFor(options, "");
  if (std::optional<Stage> known = stageOf(emit))
    return irText(*impl->lowerTo(*known, compileOptions),
                  /*withWeights=*/false);
  std::unique_ptr<CompiledModel> model =
      impl->compileFor(compileOptions, nullptr);
  Diagnostics diagnostics(impl->graph->getContext());
  if (FailureOr<std::string> text = model->text(emit); succeeded(text))
    return *text;
  throw Error(diagnostics.message("'" + std::string(stage) + "' has no text"));
}

std::vector<KernelInfo> Function::kernels(const SaveOptions &options) const {
  Lock lock(impl->graph->mutex);
  return kernelsOf(*impl->compileFor(impl->optionsFor(options, ""), nullptr));
}

const ktn_model_info_t *
Function::compiled(const std::vector<Shape> &inputShapes) const {
  if (inputShapes.size() != impl->inputs.size())
    throw Error("function '" + impl->cut.function + "' takes " +
                std::to_string(impl->inputs.size()) + " inputs but " +
                std::to_string(inputShapes.size()) + " shapes are given");
  for (auto [input, shape] : llvm::zip_equal(impl->inputs, inputShapes))
    checkDims(input, shape);
  Lock lock(impl->graph->mutex);
  return impl->prepare(inputShapes)->info;
}

void Function::setProfileHook(const std::vector<Shape> &inputShapes,
                              void (*hook)(void *, int32_t, int32_t),
                              void *user) const {
  if (!impl->settings.profile)
    throw Error("function '" + impl->cut.function +
                "' is not compiled for profiling: configure it so");
  compiled(inputShapes);
  Lock lock(impl->graph->mutex);
  impl->prepare(inputShapes)->model->setProfileHook(hook, user);
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

namespace {

TensorInfo infoOf(const Tensor &tensor, const std::string &name) {
  return {name, dtype(tensor), int_shape(tensor)};
}

std::vector<std::string> inputNames(const Tensors &inputs,
                                    const FunctionNames &names) {
  std::vector<std::string> result;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    std::string own = name(input);
    result.push_back(index < names.inputs.size() ? names.inputs[index]
                     : !own.empty() ? own
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

/// `update` with its new value in the variable's dtype.
std::pair<VariablePtr, Tensor> checkUpdate(Graph &graph, const Update &update) {
  const auto &[target, value] = update;
  VariablePtr variable = target.id() ? graph.findVariable(target) : nullptr;
  if (!variable)
    throw Error("update: the tensor is not a variable");
  requireTensor(value, "update", "the new value of '" + variable->name + "'");
  DType type = variable->value.dtype();
  Tensor checked = value.id() ? value : graph.wrap(graph.unwrap(value, type));
  if (dtype(checked) != type || int_shape(checked) != variable->value.shape())
    throw Error("update: variable '" + variable->name + "' has shape " +
                shapeName(variable->value.shape()) + " and dtype " +
                std::string(dtypeName(type)) + " but its new value has " +
                shapeName(int_shape(checked)) + " and " +
                std::string(dtypeName(dtype(checked))));
  return {variable, checked};
}

std::vector<std::pair<VariablePtr, Tensor>>
checkUpdates(Graph &graph, const std::vector<Update> &updates) {
  std::vector<std::pair<VariablePtr, Tensor>> result;
  for (const Update &update : updates) {
    result.push_back(checkUpdate(graph, update));
    for (size_t i = 0; i + 1 < result.size(); ++i)
      if (result[i].first == result.back().first)
        throw Error("update: variable '" + result[i].first->name +
                    "' is updated twice by one function");
  }
  return result;
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

} // namespace

Function function(const Tensors &inputs, const Tensors &outputs,
                  const std::vector<Update> &updates,
                  const FunctionNames &names) {
  Tensors all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  for (const Update &update : updates)
    all.insert(all.end(), {update.first, update.second});
  auto impl = std::make_shared<Function::Impl>();
  impl->graph = Graph::of(all);
  Lock lock(impl->graph->mutex);

  Cut &cut = impl->cut;
  cut.function = names.function;
  cut.training = impl->graph->training;
  checkFunctionInputs(inputs, cut.function);
  cut.inputs = inputs;
  for (auto [index, output] : llvm::enumerate(outputs)) {
    requireTensor(output, "function '" + cut.function + "'",
                  "output " + std::to_string(index));
    cut.outputs.push_back(
        output.id() ? output : impl->graph->wrap(impl->graph->unwrap(output)));
  }
  cut.updates = checkUpdates(*impl->graph, updates);
  cut.inputNames = inputNames(inputs, names);
  cut.outputNames = outputNames(outputs, names);
  checkExtraction(cut);
  for (auto [input, name] : llvm::zip_equal(cut.inputs, cut.inputNames))
    impl->inputs.push_back(infoOf(input, name));
  for (auto [output, name] : llvm::zip_equal(cut.outputs, cut.outputNames))
    impl->outputs.push_back(infoOf(output, name));
  return Function(std::move(impl));
}

} // namespace keratin::backend
