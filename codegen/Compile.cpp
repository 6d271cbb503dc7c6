//===- Compile.cpp - the only door of codegen -----------------------------===//
#include "codegen/Compile.h"

#include "codegen/Artefact.h"
#include "codegen/Dialects.h"
#include "codegen/Dumps.h"
#include "codegen/Header.h"
#include "codegen/Jit.h"
#include "codegen/Link.h"
#include "codegen/Object.h"
#include "codegen/Signature.h"
#include "codegen/Target.h"
#include "codegen/Variables.h"
#include "codegen/Weights.h"
#include "codegen/cpu/CpuPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Support/Timing.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral emitWords[] = {
    "graph", "core", "layout", "linalg", "kernels", "loops",
    "llvm",  "asm",  "obj",    "lib",    "so",      "exe"};

std::vector<std::string> emitNames() {
  return std::vector<std::string>(std::begin(emitWords), std::end(emitWords));
}

std::optional<Emit> parseEmit(llvm::StringRef name) {
  for (auto [index, word] : llvm::enumerate(emitWords))
    if (word == name)
      return static_cast<Emit>(index);
  return std::nullopt;
}

std::optional<Stage> stageOf(Emit emit) {
  if (emit >= Emit::Llvm)
    return std::nullopt;
  return parseStage(emitWords[static_cast<unsigned>(emit)]);
}

static constexpr llvm::StringLiteral stageAttr = "ktn.stage";

Stage stageOf(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(stageAttr);
  return name ? parseStage(name.getValue()).value_or(Stage::Graph)
              : Stage::Graph;
}

/// A diagnostic at `loc` of an LLVM error.
static LogicalResult report(Location loc, llvm::Error error) {
  return emitError(loc) << llvm::toString(std::move(error));
}

//===----------------------------------------------------------------------===//
// Running passes
//===----------------------------------------------------------------------===//

namespace {
/// What the steps of one compilation share: the clock, the count of dumps, how
/// far it is.
class Progress {
public:
  Progress(const CompileOptions &options, unsigned total)
      : options(options), total(total) {
    clock.setEnabled(options.timePasses);
    root = clock.getRootScope();
  }

  /// Tells that the step `name` begins.
  void announce(llvm::StringRef name) {
    if (options.progress)
      options.progress(name, done, total);
    ++done;
  }
  /// The step `name` begins; it ends with the scope.
  TimingScope begin(llvm::StringRef name) {
    announce(name);
    return root.nest(name);
  }
  void finish() {
    if (options.progress)
      options.progress("done", total, total);
  }

  void instrument(PassManager &pm, TimingScope &scope) {
    if (!options.dumpAfter.empty())
      pm.addInstrumentation(std::make_unique<DumpAfterPass>(
          options.dumpAfter, options.dumpDirectory, dumps));
    if (options.timePasses)
      pm.enableTiming(scope);
  }

private:
  const CompileOptions &options;
  unsigned done = 0, total;
  std::atomic<unsigned> dumps = 0;
  DefaultTimingManager clock; // prints when it goes
  TimingScope root;
};
} // namespace

/// CompileOptions::inputShapes, before anything else is done: `shapes` are
/// those of the first arguments of the function, the rest keep their types.
static LogicalResult applyInputShapes(ModuleOp module,
                                      ArrayRef<std::vector<int64_t>> shapes) {
  if (stageOf(module) != Stage::Graph)
    return module.emitError("is at the stage '")
           << stageName(stageOf(module))
           << "', shapes can be set at the stage 'graph' only";
  func::FuncOp function = findFunction(module);
  if (!function)
    return failure();
  llvm::SmallVector<RankedTensorType> types;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    types.push_back(cast<RankedTensorType>(type));
    if (index >= shapes.size())
      continue;
    llvm::SmallVector<int64_t> shape;
    for (int64_t extent : shapes[index])
      shape.push_back(extent < 0 ? ShapedType::kDynamic : extent);
    types.back() = RankedTensorType::get(shape, types.back().getElementType());
  }
  return specializeShapes(function, types);
}

/// How many arguments of the part are the caller's; none without a function.
static size_t countInputs(ModulePart &part) {
  func::FuncOp function = findFunction(*part.module);
  auto isState = [](int variable) { return variable >= 0; };
  return function ? function.getNumArguments() -
                        llvm::count_if(part.inputState, isState)
                  : 0;
}

/// The same for the inputs of all functions of a module, one after the other.
static LogicalResult applyInputShapes(SplitModule &split,
                                      const CompileOptions &options) {
  ArrayRef<std::vector<int64_t>> shapes = options.inputShapes;
  if (shapes.empty())
    return success();
  size_t count = 0;
  for (ModulePart &part : split.parts)
    count += countInputs(part);
  if (count != shapes.size())
    return split.parts[0].module->emitError("has ")
           << count << " inputs, but " << shapes.size() << " shapes are given";
  for (ModulePart &part : split.parts) {
    size_t inputs = countInputs(part);
    if (failed(applyInputShapes(*part.module, shapes.take_front(inputs))))
      return failure();
    shapes = shapes.drop_front(inputs);
  }
  return success();
}

/// One pass manager a stage, so that each leaves a module that says where it
/// is.
static LogicalResult runStages(ModuleOp module, Stage to,
                               const PipelineOptions &options,
                               Progress &progress) {
  for (Stage from = stageOf(module); from < to;) {
    Stage next = static_cast<Stage>(static_cast<unsigned>(from) + 1);
    TimingScope scope = progress.begin(stageName(next));
    PassManager pm(module.getContext(), ModuleOp::getOperationName());
#ifdef NDEBUG
    // Once a stage, below: after each pass it shows in the time that small
    // functions take.
    pm.enableVerifier(false);
#endif
    progress.instrument(pm, scope);
    buildPipeline(pm, from, next, options);
    if (failed(pm.run(module)) || failed(verify(module)))
      return failure();
    module->setAttr(stageAttr,
                    StringAttr::get(module.getContext(), stageName(next)));
    from = next;
  }
  return success();
}

static PipelineOptions pipelineOptions(const Target &target,
                                       const CompileOptions &options,
                                       ConstantEvaluator evaluator) {
  PipelineOptions result;
  result.optimize = options.optimize;
  result.parallel = options.optimize && options.threads != 1;
  result.vectorBits = target.vectorBits;
  result.vectorRegisters = target.vectorRegisters;
  result.fma = target.fma;
  result.rounding = target.rounding;
  result.evaluateConstants = std::move(evaluator);
  result.emitKernels = addCpuEmitter;
  return result;
}

//===----------------------------------------------------------------------===//
// A compiled model
//===----------------------------------------------------------------------===//

namespace {

class Compiled final : public CompiledModel {
public:
  Compiled(MLIRContext *context, const CompileOptions &options, Target target)
      : loc(UnknownLoc::get(context)), options(options),
        target(std::move(target)) {}

  /// Adds the code of a part at the stage `loops`.
  LogicalResult generate(ModulePart &part, const PipelineOptions &pipeline,
                         Progress &progress);
  /// After all parts: joins their weights and the first values of `variables`.
  LogicalResult finish(llvm::ArrayRef<ModuleVariable> variables);

  llvm::ArrayRef<KernelRow> kernels() const override { return kernelRows; }
  std::pair<int64_t, int64_t> arenaBytes() const override;
  const ktn_model_info_t *load() override;
  void setProfileHook(ktn_profile_fn_t hook, void *user) override;
  FailureOr<std::string> text(Emit emit) override;
  LogicalResult write(Emit emit, llvm::StringRef prefix) override;
  /// Machine code and weights; the model is of no more use.
  FailureOr<CodeImage> takeImage();

private:
  LogicalResult layOutState(llvm::ArrayRef<ModuleVariable> variables);
  llvm::ArrayRef<char> weightBytes() const { return weights->getBuffer(); }
  bool embedsWeights() const {
    return options.weights == WeightsPlacement::Embed && !weightBytes().empty();
  }
  /// The reference may call libm, optimised code nothing.
  llvm::Error checkObject(llvm::MemoryBufferRef object) const {
    return options.optimize ? checkUndefinedSymbols(object)
                            : llvm::Error::success();
  }
  std::string optionText() const;
  ArtefactOptions artefactOptions() const;
  std::unique_ptr<llvm::Module> withArtefact(const ArtefactOptions &artefact);
  llvm::Error emitObject(const ArtefactOptions &artefact,
                         llvm::StringRef weightsFile,
                         llvm::raw_pwrite_stream &stream);
  llvm::Expected<std::string> makeText(Emit emit, llvm::StringRef weightsFile);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> objectForHere();
  llvm::Error writeText(Emit emit, llvm::StringRef prefix);
  llvm::Error writeObject(const ArtefactOptions &artefact,
                          llvm::StringRef path);
  llvm::Error writeProduct(Emit emit, llvm::StringRef prefix);
  llvm::Error writeCompanions(llvm::StringRef prefix);

  Location loc;
  CompileOptions options;
  Target target;
  ModelSignature signature;
  std::vector<KernelRow> kernelRows; // of all functions
  llvm::SmallVector<std::unique_ptr<llvm::WritableMemoryBuffer>> partWeights;
  std::unique_ptr<llvm::WritableMemoryBuffer> weights;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code; // optimised, without entry points
  std::unique_ptr<LoadedObject> loaded;
};

} // namespace

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
// Files
//===----------------------------------------------------------------------===//

llvm::Expected<std::string> Compiled::makeText(Emit emit,
                                               llvm::StringRef weightsFile) {
  ArtefactOptions artefact = artefactOptions();
  artefact.embedsWeights = embedsWeights();
  std::unique_ptr<llvm::Module> module = withArtefact(artefact);
  std::string weightsText;
  if (artefact.embedsWeights)
    weightsText = embedFile(options.name, signature.weightsBytes, weightsFile,
                            target.machine->getTargetTriple());
  if (emit == Emit::Llvm) {
    module->appendModuleInlineAsm(weightsText);
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }
  // Appended as text: LLVM would print the bytes of the file in its place.
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream stream(assembly);
  if (llvm::Error error = emitCode(*module, target,
                                   llvm::CodeGenFileType::AssemblyFile, stream))
    return std::move(error);
  return assembly.str().str() + weightsText;
}

FailureOr<std::string> Compiled::text(Emit emit) {
  llvm::Expected<std::string> text = makeText(emit, options.name + ".weights");
  if (!text)
    return report(loc, text.takeError());
  return std::move(*text);
}

/// The text refers to the weights by the name of a file beside it.
llvm::Error Compiled::writeText(Emit emit, llvm::StringRef prefix) {
  bool toStdout = prefix == "-";
  std::string weightsFile = (toStdout ? llvm::StringRef(options.name)
                                      : llvm::sys::path::filename(prefix))
                                .str() +
                            ".weights";
  llvm::Expected<std::string> text = makeText(emit, weightsFile);
  if (!text)
    return text.takeError();
  if (toStdout)
    return writeFile("-", *text);
  if (!weightBytes().empty())
    if (llvm::Error error =
            writeFile((prefix + ".weights").str(), weightBytes()))
      return error;
  return writeFile((prefix + (emit == Emit::Llvm ? ".ll" : ".s")).str(), *text);
}

/// The header and the file of external weights.
llvm::Error Compiled::writeCompanions(llvm::StringRef prefix) {
  HeaderOptions header;
  header.name = options.name;
  header.target = target.description();
  header.externalWeights = options.weights == WeightsPlacement::External;
  if (header.externalWeights && !weightBytes().empty())
    if (llvm::Error error =
            writeFile((prefix + ".weights").str(), weightBytes()))
      return error;
  return writeFile((prefix + ".h").str(), makeHeader(signature, header));
}

/// Streams the object to a file: large weights are not gathered in memory once
/// more.
llvm::Error Compiled::writeObject(const ArtefactOptions &artefact,
                                  llvm::StringRef path) {
  std::optional<TemporaryFile> weightsFile;
  if (artefact.embedsWeights) {
    llvm::Expected<TemporaryFile> file =
        TemporaryFile::create("weights", weightBytes());
    if (!file)
      return file.takeError();
    weightsFile.emplace(std::move(*file));
  }
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return llvm::createStringError("cannot write " + path + ": " +
                                   code.message());
  if (llvm::Error error =
          emitObject(artefact, weightsFile ? weightsFile->name() : "", stream))
    return error;
  stream.close();
  if (stream.has_error()) {
    code = stream.error();
    stream.clear_error();
    return llvm::createStringError("cannot write " + path + ": " +
                                   code.message());
  }
  auto object = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!object)
    return llvm::errorCodeToError(object.getError());
  return checkObject((*object)->getMemBufferRef());
}

llvm::Error Compiled::writeProduct(Emit emit, llvm::StringRef prefix) {
  if (prefix == "-")
    return llvm::createStringError(
        "'-' as a prefix is for text; this product is a file");
  ArtefactOptions artefact = artefactOptions();
  artefact.exportModel = emit == Emit::So;
  artefact.embedsWeights = embedsWeights();
  std::string path = prefix.str();
  if (emit == Emit::Obj)
    return replaceFile(path + ".o", [&](llvm::StringRef object) {
      llvm::Error error = writeObject(artefact, object);
      return error ? std::move(error) : writeCompanions(prefix);
    });

  llvm::Expected<TemporaryFile> object = TemporaryFile::create("o", {});
  if (!object)
    return object.takeError();
  if (llvm::Error error = writeObject(artefact, object->name()))
    return error;
  if (llvm::Error error = writeCompanions(prefix))
    return error;
  if (emit == Emit::Lib)
    return writeLibrary(path + ".a",
                        (llvm::sys::path::filename(prefix) + ".o").str(),
                        object->name());
  if (emit == Emit::So)
    return linkShared(path + ".so", object->name(), target);
  return linkProgram(path, options.name, options.threads, object->name(),
                     target);
}

LogicalResult Compiled::write(Emit emit, llvm::StringRef prefix) {
  if (stageOf(emit))
    return emitError(loc) << "the stage '"
                          << emitWords[static_cast<unsigned>(emit)]
                          << "' is past: the model is compiled";
  bool isText = emit == Emit::Llvm || emit == Emit::Asm;
  llvm::Error error =
      isText ? writeText(emit, prefix) : writeProduct(emit, prefix);
  return error ? report(loc, std::move(error)) : success();
}

//===----------------------------------------------------------------------===//
// The door
//===----------------------------------------------------------------------===//

static std::unique_ptr<Compiled> compileFor(OwningOpRef<ModuleOp> module,
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

/// The values in memory of a constant expression, as an attribute. What is
/// large is kept out of the uniquing of attributes.
static ElementsAttr makeElements(RankedTensorType type,
                                 llvm::ArrayRef<char> bytes) {
  if (type.getElementType().isInteger(1)) {
    llvm::SmallVector<bool> values(bytes.begin(), bytes.end());
    return DenseElementsAttr::get(type, values);
  }
  if (type.getNumElements() <= 16)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  return DenseResourceElementsAttr::get(
      type, "folded",
      HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, KTN_ALIGNMENT));
}

/// Runs a loaded function without inputs; the values of its results.
static FailureOr<llvm::SmallVector<ElementsAttr>>
runLoaded(const ktn_model_info_t &info, TypeRange types, Location loc) {
  auto allocate = [](int64_t bytes) {
    return llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
        bytes, "", llvm::Align(KTN_ALIGNMENT));
  };
  llvm::SmallVector<std::unique_ptr<llvm::WritableMemoryBuffer>> buffers;
  llvm::SmallVector<void *> outputs;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bits = tensor.getElementTypeBitWidth();
    buffers.push_back(allocate(tensor.getNumElements() * ((bits + 7) / 8)));
    if (!buffers.back())
      return emitError(loc) << "no memory for a constant of type " << tensor;
    outputs.push_back(buffers.back()->getBufferStart());
  }
  auto arena = allocate(info.arena_bytes[0] + info.batch * info.arena_bytes[1]);
  if (!arena)
    return emitError(loc) << "no memory to compute constants";
  ktn_status_t status = info.run(info.weights, arena->getBufferStart(),
                                 info.batch, nullptr, outputs.data());
  if (status != KTN_OK)
    return emitError(loc) << "constants cannot be computed: "
                          << ktn_status_name(status);
  llvm::SmallVector<ElementsAttr> values;
  for (auto [type, buffer] : llvm::zip_equal(types, buffers))
    values.push_back(
        makeElements(cast<RankedTensorType>(type), buffer->getBuffer()));
  return values;
}

/// The ConstantEvaluator: compiles at -O0 for this machine, and runs.
static FailureOr<llvm::SmallVector<ElementsAttr>>
evaluateConstants(ModuleOp module) {
  func::FuncOp function = findFunction(module);
  if (!function)
    return failure();
  llvm::SmallVector<Type> types(function.getResultTypes());
  CompileOptions options;
  options.name = "evaluate";
  options.threads = 1;
  options.optimize = false;
  llvm::Expected<Target> target = parseTarget("native", options.optimize);
  if (!target)
    return report(module.getLoc(), target.takeError());
  PipelineOptions pipeline =
      pipelineOptions(*target, options, /*evaluator=*/nullptr);
  std::unique_ptr<CompiledModel> model =
      compileFor(module.clone(), options, std::move(*target), pipeline);
  const ktn_model_info_t *info = model ? model->load() : nullptr;
  if (!info)
    return failure();
  return runLoaded(*info, types, module.getLoc());
}

FailureOr<PipelineOptions> pipelineOptions(Location loc,
                                           const CompileOptions &options) {
  llvm::Expected<Target> target = parseTarget(options.target, options.optimize);
  if (!target)
    return report(loc, target.takeError());
  return pipelineOptions(*target, options, evaluateConstants);
}

namespace {
/// Passes over a small module run on this thread while it lives: to wake others
/// takes longer.
class FewThreads {
public:
  explicit FewThreads(ModuleOp module) : context(*module.getContext()) {
    size_t ops = 0;
    module.walk([&](Operation *) { ++ops; });
    constexpr size_t fewOps = 100;
    if (!context.isMultithreadingEnabled() || ops > fewOps)
      return;
    context.disableMultithreading();
    disabled = true;
  }
  ~FewThreads() {
    if (disabled)
      context.enableMultithreading();
  }
  FewThreads(const FewThreads &) = delete;
  FewThreads &operator=(const FewThreads &) = delete;

private:
  MLIRContext &context;
  bool disabled = false;
};
} // namespace

static std::unique_ptr<Compiled> compileHere(OwningOpRef<ModuleOp> module,
                                             const CompileOptions &options) {
  FewThreads few(*module);
  Location loc = module->getLoc();
  if (llvm::Error error = checkModelName(options.name)) {
    (void)report(loc, std::move(error));
    return nullptr;
  }
  llvm::Expected<Target> target = parseTarget(options.target, options.optimize);
  if (!target) {
    (void)report(loc, target.takeError());
    return nullptr;
  }
  loadDialects(module->getContext());
  PipelineOptions pipeline =
      pipelineOptions(*target, options, evaluateConstants);
  return compileFor(std::move(module), options, std::move(*target), pipeline);
}

std::unique_ptr<CompiledModel> compile(OwningOpRef<ModuleOp> module,
                                       const CompileOptions &options) {
  return compileHere(std::move(module), options);
}

FailureOr<CodeImage> compileImage(OwningOpRef<ModuleOp> module,
                                  const CompileOptions &options) {
  std::unique_ptr<Compiled> model = compileHere(std::move(module), options);
  if (!model)
    return failure();
  return model->takeImage();
}

/// CompileOptions::inputShapes, of a module of one function.
static LogicalResult applyShapesOfOne(ModuleOp module,
                                      const CompileOptions &options) {
  if (options.inputShapes.empty())
    return success();
  func::FuncOp function = findFunction(module);
  if (!function)
    return failure();
  if (options.inputShapes.size() != function.getNumArguments())
    return function.emitError("has ")
           << function.getNumArguments() << " inputs, but "
           << options.inputShapes.size() << " shapes are given";
  return applyInputShapes(module, options.inputShapes);
}

LogicalResult runPipeline(ModuleOp module, Stage to,
                          const CompileOptions &options) {
  Stage from = stageOf(module);
  if (from > to)
    return module.emitError("is at the stage '")
           << stageName(from) << "', past '" << stageName(to) << "'";
  FailureOr<PipelineOptions> pipeline =
      pipelineOptions(module.getLoc(), options);
  if (failed(pipeline))
    return failure();
  loadDialects(module.getContext());
  Progress progress(options,
                    static_cast<unsigned>(to) - static_cast<unsigned>(from));
  if (failed(applyShapesOfOne(module, options)) ||
      failed(runStages(module, to, *pipeline, progress)))
    return failure();
  progress.finish();
  return success();
}

std::string irText(ModuleOp module, bool withWeights) {
  OpPrintingFlags flags =
      withWeights ? OpPrintingFlags().enableDebugInfo() : elidedFlags();
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, flags);
  os << '\n';
  return text;
}

LogicalResult writeIr(ModuleOp module, llvm::StringRef prefix,
                      bool withWeights) {
  std::string path = prefix == "-" ? "-" : (prefix + ".mlir").str();
  if (llvm::Error error = writeFile(path, irText(module, withWeights)))
    return report(module.getLoc(), std::move(error));
  return success();
}

} // namespace keratin
