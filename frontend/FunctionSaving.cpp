//===- FunctionSaving.cpp - functions in files ----------------------------===//
#include "FunctionImpl.h"

#include "Diagnostics.h"
#include "KernelInfo.h"
#include "Settings.h"
#include "StateModule.h"
#include "keratin/backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <filesystem>

using namespace mlir;

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

namespace {

Emit parseProduct(std::string_view name) {
  if (std::optional<Emit> emit = parseEmit(llvm::StringRef(name)))
    return *emit;
  throw Error("'" + std::string(name) + "' is nothing that can be written: " +
              llvm::join(emitNames(), ", ") + " can");
}

} // namespace

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
  CompileOptions result = compileOptions(options, prefix, cut.function);
  result.inputShapes = savedShapes(options);
  return result;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

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

Extraction Function::Impl::extractForSaving(const SaveOptions &options,
                                            const std::string &symbol,
                                            const std::set<VariablePtr> &live) {
  Circumstances known;
  known.live = live;
  known.training = options.training;
  known.choices = chooseForSaving(options.training);
  known.keepOpenChoices = true;
  // Artefacts have no host.
  Cut saved = cut;
  saved.outputs.clear();
  saved.outputNames.clear();
  saved.afterUpdates.clear();
  for (auto [index, output] : llvm::enumerate(outputs)) {
    std::optional<size_t> place = host.placeOf(index);
    if (place && cut.afterUpdates.count(*place))
      saved.afterUpdates.insert(index);
    saved.outputs.push_back(place ? cut.outputs[*place] : host.savedFor(index));
    saved.outputNames.push_back(output.name);
    if (!saved.outputs.back())
      throw Error(
          "function '" + cut.function + "': output '" + output.name +
          "' is made by the program after a call (as ctc_decode by beams does) "
          "and cannot be saved: save a function of what it is made "
          "of, and decode where that is called");
  }
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
// Files
//===----------------------------------------------------------------------===//

std::vector<KernelInfo> kernelsOf(const CompiledModel &model) {
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

/// Files of no name would be hidden ones, ".o" and ".h".
void requirePrefix(const std::string &prefix) {
  std::string name = std::filesystem::path(prefix).filename().string();
  if (name.empty() || name == "." || name == "..")
    throw Error("save: prefix is '" + prefix +
                "' but must be the path of a file without an extension, such "
                "as out/model");
}

} // namespace

std::vector<KernelInfo> save(const std::string &prefix,
                             const std::vector<SavedFunction> &functions,
                             const SaveOptions &options) {
  requirePrefix(prefix);
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
  requirePrefix(prefix);
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

} // namespace keratin::backend
