//===- Compiled.cpp - a compiled model, in memory -------------------------===//
#include "codegen/Compiled.h"

#include "codegen/Object.h"
#include "codegen/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace keratin {

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

LogicalResult Compiled::generate(ModulePart &part,
                                 const PipelineOptions &pipeline,
                                 Progress &progress) {
  ModuleOp module = *part.module;
  func::FuncOp function = findFunction(module);
  if (!function)
    return failure();
  FailureOr<Signature> read = readSignature(function);
  if (failed(read))
    return failure();
  read->entry = part.entry;
  read->inputState = part.inputState;
  read->outputState = part.outputState;
  partWeights.push_back(collectWeights(function, read->weightsBytes));
  if (!partWeights.back())
    return failure();
  if (options.profile)
    addProfileCalls(function);

  if (failed(runStages(module, Stage::Llvm, pipeline, progress)))
    return failure();
  TimingScope scope = progress.begin("optimise code");
  llvm::Expected<std::unique_ptr<llvm::Module>> translated =
      translate(module, read->function, target, llvmContext);
  if (!translated)
    return report(loc, translated.takeError());
  optimizeCode(**translated, target, options.optimize);
  if (!code)
    code = std::move(*translated);
  else if (llvm::Linker::linkModules(*code, std::move(*translated)))
    return emitError(loc) << "the code of the functions cannot be joined";
  llvm::append_range(kernelRows, read->kernels);
  signature.functions.push_back(std::move(*read));
  return success();
}

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
    function.weightsOffset = signature.weightsBytes;
    signature.weightsBytes += function.weightsBytes;
    for (int variable : function.outputState)
      if (variable >= 0)
        function.updateBytes += llvm::alignTo(
            signature.state[variable].tensor.unitBytes(), KTN_ALIGNMENT);
  }
  signature.initialState = signature.weightsBytes;
  signature.weightsBytes += signature.stateBytes;

  if (partWeights.size() == 1 && variables.empty()) {
    weights = std::move(partWeights[0]);
  } else {
    weights = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
        signature.weightsBytes, "weights", llvm::Align(KTN_ALIGNMENT));
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

std::pair<int64_t, int64_t> Compiled::arenaBytes() const {
  std::pair<int64_t, int64_t> bytes = {0, 0};
  for (const Signature &function : signature.functions)
    bytes = {
        std::max(bytes.first, function.arenaBytes[0] + function.updateBytes),
        std::max(bytes.second, function.arenaBytes[1])};
  return bytes;
}

/// The options that shaped the code, for the descriptor.
std::string Compiled::optionText() const {
  std::string text = options.optimize ? "-O2" : "-O0";
  text += " --target=" + options.target;
  if (options.weights == WeightsPlacement::External)
    text += " --weights=external";
  if (options.profile)
    text += " --profile";
  return text;
}

ArtefactOptions Compiled::artefactOptions() const {
  ArtefactOptions artefact;
  artefact.name = options.name;
  artefact.target = target.description();
  artefact.options = optionText();
  artefact.profile = options.profile;
  return artefact;
}

std::unique_ptr<llvm::Module>
Compiled::withArtefact(const ArtefactOptions &artefact) {
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(*code);
  addArtefact(*module, signature, artefact);
  return module;
}

llvm::Error Compiled::emitObject(const ArtefactOptions &artefact,
                                 llvm::StringRef weightsFile,
                                 llvm::raw_pwrite_stream &stream) {
  std::unique_ptr<llvm::Module> module = withArtefact(artefact);
  if (artefact.embedsWeights)
    module->appendModuleInlineAsm(embedFile(options.name,
                                            signature.weightsBytes, weightsFile,
                                            target.machine->getTargetTriple()));
  return emitCode(*module, target, llvm::CodeGenFileType::ObjectFile, stream);
}

//===----------------------------------------------------------------------===//
// In process
//===----------------------------------------------------------------------===//

/// The object without weights: they stay where they are and come to the code
/// as an argument.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> Compiled::objectForHere() {
  if (!target.runsHere)
    return llvm::createStringError(
        "code for " + target.description() +
        " cannot run in this process: the machine lacks its instructions");
  if (signature.functions.size() > 1 || signature.hasState())
    return llvm::createStringError(
        "a model of several functions is run from files");
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  ArtefactOptions artefact = artefactOptions();
  artefact.descriptorOnly = true;
  if (llvm::Error error = emitObject(artefact, /*weightsFile=*/"", stream))
    return std::move(error);
  auto object = std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), options.name, /*RequiresNullTerminator=*/false);
  if (llvm::Error error = checkObject(object->getMemBufferRef()))
    return std::move(error);
  return object;
}

const ktn_model_info_t *Compiled::load() {
  if (loaded)
    return &loaded->info();
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> object = objectForHere();
  if (!object) {
    (void)report(loc, object.takeError());
    return nullptr;
  }
  llvm::Expected<std::unique_ptr<LoadedObject>> code = LoadedObject::load(
      std::move(*object), options.name, weights->getBufferStart());
  if (!code) {
    (void)report(loc, code.takeError());
    return nullptr;
  }
  loaded = std::move(*code);
  return &loaded->info();
}

FailureOr<CodeImage> Compiled::takeImage() {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> object = objectForHere();
  if (!object)
    return report(loc, object.takeError());
  return CodeImage{std::move(*object), std::move(weights)};
}

namespace {
/// An object in this process and the weights that it reads.
class LoadedImage final : public LoadedCode {
public:
  LoadedImage(std::unique_ptr<llvm::MemoryBuffer> weights,
              std::unique_ptr<LoadedObject> object)
      : weights(std::move(weights)), object(std::move(object)) {}
  const ktn_model_info_t &info() const override { return object->info(); }

private:
  std::unique_ptr<llvm::MemoryBuffer> weights;
  std::unique_ptr<LoadedObject> object;
};
} // namespace

llvm::Expected<std::unique_ptr<LoadedCode>> loadImage(CodeImage image,
                                                      llvm::StringRef name) {
  llvm::Expected<std::unique_ptr<LoadedObject>> object = LoadedObject::load(
      std::move(image.object), name, image.weights->getBufferStart());
  if (!object)
    return object.takeError();
  return std::make_unique<LoadedImage>(std::move(image.weights),
                                       std::move(*object));
}

void Compiled::setProfileHook(ktn_profile_fn_t hook, void *user) {
  const ktn_model_info_t *info = load();
  if (info && info->set_profile)
    info->set_profile(hook, user);
}

//===----------------------------------------------------------------------===//
// Making one
//===----------------------------------------------------------------------===//

std::unique_ptr<Compiled> compileFor(OwningOpRef<ModuleOp> module,
                                     const CompileOptions &options,
                                     Target target,
                                     const PipelineOptions &pipeline) {
  Stage start = stageOf(*module);
  if (start == Stage::Llvm) {
    module->emitError("the stage llvm has lost what an artefact must know: "
                      "start from the stage loops or before");
    return nullptr;
  }
  auto model = std::make_unique<Compiled>(module->getContext(), options,
                                          std::move(target));
  FailureOr<SplitModule> split = splitModule(std::move(module));
  if (failed(split) || failed(applyInputShapes(*split, options)))
    return nullptr;
  unsigned steps =
      static_cast<unsigned>(Stage::Llvm) - static_cast<unsigned>(start) + 1;
  Progress progress(options, split->parts.size() * steps + 1);
  for (ModulePart &part : split->parts)
    if (failed(runStages(*part.module, Stage::Loops, pipeline, progress)) ||
        failed(model->generate(part, pipeline, progress)))
      return nullptr;
  if (failed(model->finish(split->variables)))
    return nullptr;
  // What is left to do for a file or for load().
  progress.announce("emit code");
  return model;
}

} // namespace keratin
