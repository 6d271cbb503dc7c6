//===- FunctionImpl.h - what is behind a Function ---------------*- C++ -*-===//
//
// Function.cpp runs functions, FunctionSaving.cpp writes them to files, and
// FunctionMaking.cpp makes them of tensors.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_FUNCTIONIMPL_H
#define KERATIN_FRONTEND_FUNCTIONIMPL_H

#include "Execution.h"
#include "Host.h"

#include "codegen/Compile.h"
#include "keratin/function.h"

#include <map>

namespace keratin::backend {

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
                                    bool training, const Choices &choices,
                                    Caller caller);
  /// Code in the cache that is not stale, null without.
  std::shared_ptr<Compiled>
  find(bool training, const Choices &choices,
       llvm::function_ref<bool(const Compiled &)> hasShapes);
  bool isStale(const Compiled &code);
  Circumstances circumstances(bool training, Choices choices) const;
  std::unique_ptr<CompiledModel> compileExtraction(Extraction extraction,
                                                   CompileOptions options);

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
  mlir::OwningOpRef<mlir::ModuleOp>
  lowerTo(Stage stage, const SaveOptions &options, const std::string &prefix);
};

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

/// Throws Error when an array of this shape is none for the input.
void checkDims(const TensorInfo &input, const Shape &shape);
/// The state follows the inputs.
void appendStateShapes(const Extraction &extraction, CompileOptions &options);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_FUNCTIONIMPL_H
