//===- Compiled.cpp - a compiled model, in memory -------------------------===//
#include "codegen/Compiled.h"

#include "codegen/Compile.h"
#include "codegen/Weights.h"
#include "codegen/cpu/KernelCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// Calls of the profile hook around each call of a kernel, numbered like the
/// rows of `ktn.kernels`.
static void addProfileCalls(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Type i32 = b.getI32Type();
  auto hook = func::FuncOp::create(b, function.getLoc(), profileFunction,
                                   b.getFunctionType({i32, i32}, {}));
  hook.setPrivate();
  int32_t kernel = 0;
  auto callHook = [&](Location loc, int32_t isEnd) {
    Value arguments[] = {
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(kernel)),
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(isEnd))};
    func::CallOp::create(b, loc, hook, arguments);
  };
  llvm::SmallVector<func::CallOp> calls;
  function.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    b.setInsertionPoint(call);
    callHook(call.getLoc(), /*isEnd=*/0);
    b.setInsertionPointAfter(call);
    callHook(call.getLoc(), /*isEnd=*/1);
    ++kernel;
  }
}

/// Joins what two variants of a function say of themselves; they compute the
/// same.
LogicalResult Compiled::addSignature(Signature read, const ModulePart &part,
                                     unsigned variant) {
  if (variant == 0) {
    read.entry = part.entry;
    read.inputState = part.inputState;
    read.outputState = part.outputState;
    signature.functions.push_back(std::move(read));
    return success();
  }
  Signature &known = signature.functions.back();
  if (known.kernels.size() != read.kernels.size())
    return emitError(loc) << "the code of '" << known.function << "' for "
                          << targets[variant].description()
                          << " consists of other kernels";
  for (unsigned index : {0, 1})
    known.arenaBytes[index] =
        std::max(known.arenaBytes[index], read.arenaBytes[index]);
  known.weightsBytes = read.weightsBytes;
  // One caller for all: in place is what is so in each.
  if (known.inPlace != read.inPlace)
    known.inPlace.clear();
  return success();
}

/// Packs the weights, and gives back what they were made of on the way: that
/// and the packed ones do not have to fit in memory together.
std::unique_ptr<llvm::WritableMemoryBuffer>
Compiled::takeWeights(func::FuncOp function, int64_t bytes) {
  // By the name of the elements: those of a view are the same.
  auto nameOf = [](ElementsAttr value) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(value);
    return resource ? resource.getRawHandle().getKey() : llvm::StringRef();
  };
  llvm::StringMap<unsigned> uses;
  llvm::SmallVector<ElementsAttr> values;
  if (auto rows = function->getAttrOfType<ArrayAttr>("ktn.weights"))
    for (Attribute row : rows)
      if (auto fields = dyn_cast<DictionaryAttr>(row))
        if (auto value = fields.getAs<ElementsAttr>("value")) {
          ++uses[nameOf(value)];
          values.push_back(value);
        }
  if (constants)
    constants->keepOnly(values);
  return collectWeights(function, bytes, [&](ElementsAttr value) {
    if (--uses[nameOf(value)] == 0 && constants)
      constants->giveBack(value);
  });
}

/// Operations of the largest module that is one unit: each takes time.
static size_t opsOfWhole(const PipelineOptions &pipeline) {
  return pipeline.optimize && !pipeline.littleCode ? 100 : 400;
}

/// The code does not follow from what the artefact was told.
static void dropSignature(func::FuncOp function) {
  for (NamedAttribute attribute :
       llvm::to_vector(function->getDiscardableAttrs()))
    if (attribute.getName().strref().starts_with("ktn."))
      function->removeDiscardableAttr(attribute.getName());
}

/// Adds the code of a function at the stage `loops`.
LogicalResult Compiled::generate(OwningOpRef<ModuleOp> module,
                                 const ModulePart &part, unsigned variant,
                                 const PipelineOptions &pipeline) {
  func::FuncOp function = findFunction(*module);
  if (!function)
    return failure();
  FailureOr<Signature> read = readSignature(function);
  if (failed(read))
    return failure();
  int64_t weightsBytes = read->weightsBytes;
  if (failed(addSignature(std::move(*read), part, variant)))
    return failure();
  if (variant + 1 == targets.size()) {
    partWeights.push_back(takeWeights(function, weightsBytes));
    if (!partWeights.back())
      return failure();
  }
  dropSignature(function);
  if (options.profile)
    addProfileCalls(function);
  std::string entry = signature.functions.back().function;
  if (hasVariants()) {
    entry += "." + signature.variants[variant];
    function.setSymName(entry);
  }
  // Dumps are of all kernels together.
  if (!options.dumpAfter.empty() &&
      failed(runStages(*module, Stage::Llvm, pipeline, *progress)))
    return failure();
  codes.push_back(splitUnits(std::move(module), entry, opsOfWhole(pipeline)));
  codes.back().pipeline = pipeline;
  return success();
}

/// The kernels are the same for all targets, their code is not.
LogicalResult Compiled::compilePart(ModulePart &part,
                                    const PipelineOptions &pipeline) {
  if (!hasVariants()) {
    if (stageOf(*part.module) < Stage::Kernels &&
        failed(runStages(*part.module, Stage::Kernels, pipeline, *progress)))
      return failure();
    PipelineOptions own = pipeline;
    own.littleCode = littleCode = options.quick && hasLittleWork(*part.module);
    if (failed(runStages(*part.module, Stage::Loops, own, *progress)))
      return failure();
    return generate(std::move(part.module), part, 0, own);
  }
  if (stageOf(*part.module) < Stage::Kernels &&
      failed(runStages(*part.module, Stage::Kernels, pipeline, *progress)))
    return failure();
  Attribute placed, placedBytes;
  for (auto [variant, target] : llvm::enumerate(targets)) {
    PipelineOptions own =
        pipelineOptions(target, options, pipeline.evaluateConstants);
    OwningOpRef<ModuleOp> copy = part.module->clone();
    func::FuncOp function = findFunction(*copy);
    if (!function)
      return failure();
    // Weights in the same order are stored once.
    if (placed) {
      function->setAttr("ktn.weights", placed);
      function->setAttr("ktn.weights_bytes", placedBytes);
    }
    if (failed(runStages(*copy, Stage::Loops, own, *progress)))
      return failure();
    function = findFunction(*copy);
    placed = function->getAttr("ktn.weights");
    placedBytes = function->getAttr("ktn.weights_bytes");
    if (failed(generate(std::move(copy), part, variant, own)))
      return failure();
  }
  return success();
}

LogicalResult Compiled::compile(OwningOpRef<ModuleOp> module,
                                const PipelineOptions &pipeline) {
  Stage start = stageOf(*module);
  if (start == Stage::Llvm)
    return module->emitError("the stage llvm has lost what an artefact must "
                             "know: start from the stage loops or before");
  if (failed(checkDumps(*module, Stage::Llvm, pipeline, options)))
    return failure();
  if (hasVariants())
    for (const Target &target : targets)
      signature.variants.push_back(target.machine->getTargetCPU().str());
  FailureOr<SplitModule> split = splitModule(std::move(module));
  if (failed(split) || failed(applyInputShapes(*split, options)))
    return failure();
  Stage end = options.dumpAfter.empty() ? Stage::Loops : Stage::Llvm;
  unsigned steps = static_cast<unsigned>(end) - static_cast<unsigned>(start);
  unsigned ownSteps = static_cast<unsigned>(end) -
                      static_cast<unsigned>(std::max(start, Stage::Kernels));
  steps += ownSteps * (targets.size() - 1);
  progress =
      std::make_unique<Progress>(options, split->parts.size() * steps + 1);
  for (ModulePart &part : split->parts)
    if (failed(compilePart(part, pipeline)))
      return failure();
  if (failed(finish(split->variables)))
    return failure();
  if (options.arena)
    options.arena(arena());
  return success();
}

//===----------------------------------------------------------------------===//
// State and weights
//===----------------------------------------------------------------------===//

/// A place for each variable in the memory of an instance.
LogicalResult Compiled::layOutState(llvm::ArrayRef<ModuleVariable> variables) {
  std::string description;
  llvm::raw_string_ostream os(description);
  for (const ModuleVariable &variable : variables) {
    FailureOr<TensorSignature> tensor =
        tensorSignature(loc, variable.name, variable.type);
    if (failed(tensor))
      return failure();
    os << variable.name << '\0' << variable.type << '\0';
    signature.state.push_back({std::move(*tensor), signature.stateBytes});
    signature.stateBytes +=
        llvm::alignTo(signature.state.back().tensor.unitBytes(), KTN_ALIGNMENT);
  }
  signature.stateHash = ktn_hash(description.data(), description.size());
  return success();
}

LogicalResult Compiled::finish(llvm::ArrayRef<ModuleVariable> variables) {
  if (failed(layOutState(variables)))
    return failure();
  for (Signature &function : signature.functions) {
    llvm::append_range(kernelRows, function.kernels);
    function.weightsOffset = signature.weightsBytes;
    signature.weightsBytes += function.weightsBytes;
    for (auto [output, variable] : llvm::enumerate(function.outputState))
      if (variable >= 0 && !function.updatesInPlace(output))
        function.updateBytes += llvm::alignTo(
            signature.state[variable].tensor.unitBytes(), KTN_ALIGNMENT);
  }
  signature.initialState = signature.weightsBytes;
  signature.weightsBytes += signature.stateBytes;

  if (partWeights.size() == 1 && variables.empty()) {
    weights = std::move(partWeights[0]);
  } else {
    weights = takePageBuffer(signature.weightsBytes, "weights");
    if (!weights)
      return emitError(loc) << "no memory for " << signature.weightsBytes
                            << " bytes of weights";
    std::fill(weights->getBufferStart(), weights->getBufferEnd(), 0);
    char *place = weights->getBufferStart();
    for (auto &part : partWeights)
      place = llvm::copy(part->getBuffer(), place);
    for (auto [variable, placed] : llvm::zip_equal(variables, signature.state))
      if (failed(copyElements(
              variable.initialValue,
              weights->getBuffer().slice(signature.initialState + placed.offset,
                                         placed.tensor.unitBytes()))))
        return emitError(loc) << "variable '" << variable.name
                              << "' has no initial value of its type; was it "
                                 "elided from the dump?";
  }
  partWeights.clear();
  signature.weightsHash =
      ktn_hash(weights->getBufferStart(), weights->getBufferSize());
  return success();
}

/// The most that any function needs, with room for updates.
ArenaUse Compiled::arena() const {
  ArenaUse use;
  for (const Signature &function : signature.functions)
    for (int part : {0, 1}) {
      int64_t updates = part == 0 ? function.updateBytes : 0;
      use.bytes[part] =
          std::max(use.bytes[part], function.arenaBytes[part] + updates);
      use.least[part] =
          std::max(use.least[part], function.arenaLeast[part] + updates);
    }
  return use;
}

//===----------------------------------------------------------------------===//
// Making one
//===----------------------------------------------------------------------===//

std::unique_ptr<Compiled>
compileFor(OwningOpRef<ModuleOp> module, const CompileOptions &options,
           std::vector<Target> targets, const PipelineOptions &pipeline,
           std::shared_ptr<FoldedConstants> constants) {
  auto model = std::make_unique<Compiled>(
      module->getContext(), options, std::move(targets), std::move(constants));
  if (failed(model->compile(std::move(module), pipeline)))
    return nullptr;
  return model;
}

} // namespace keratin
