//===- CompiledCode.cpp - machine code of a compiled model ----------------===//
#include "codegen/Compiled.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

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
  for (const Target &target : targets)
    artefact.target += artefact.target.empty()
                           ? target.description()
                           : ", " + target.machine->getTargetCPU().str();
  artefact.options = optionText();
  artefact.profile = options.profile;
  artefact.asksForTiles = !targets[0].emulatesTiles;
  return artefact;
}

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

/// The machine that entry points run on: of several the least, so that they can
/// find out which one it is.
llvm::Expected<Target> Compiled::artefactTarget() const {
  return hasVariants() ? parseTarget("x86-64", options.optimize)
                       : targets[0].clone();
}

Effort Compiled::effort() const {
  if (littleCode || (options.quick && !options.optimize))
    return Effort::Little;
  return options.optimize ? Effort::Full : Effort::Reference;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
Compiled::optimizedUnit(unsigned code, unsigned unit, const Target &target,
                        llvm::LLVMContext &llvmContext, TimingScope &scope) {
  CodeUnits &units = codes[code];
  // A copy: there may be text and machine code of one model.
  OwningOpRef<ModuleOp> lowered = units.modules[unit]->clone();
  TimingScope passes = scope.nest("stage llvm");
  if (stageOf(*lowered) != Stage::Llvm &&
      failed(
          runStage(*lowered, Stage::Llvm, units.pipeline, *progress, passes)))
    return llvm::createStringError("the code of '" + units.entry +
                                   "' cannot be lowered");
  passes.stop();
  TimingScope optimizer = scope.nest("optimize LLVM IR");
  llvm::Expected<std::unique_ptr<llvm::Module>> module =
      translate(*lowered, units, unit, target, llvmContext);
  lowered = {};
  if (!module)
    return module;
  optimizeCode(**module, target, effort());
  if (unit == 0) {
    llvm::Function *entry = (*module)->getFunction(unitEntrySymbol);
    entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
    entry->setDSOLocal(true);
  }
  return module;
}

/// Gives the code of a unit the names that it has in the whole.
static void nameInWhole(llvm::Module &module, const CodeUnits &units,
                        unsigned unit) {
  for (llvm::Function &function : module)
    function.setName(units.symbolInWhole(unit, function.getName()));
}

/// The time to give registers to values grows with the square of the length of
/// a function, but for the fast way to do it.
static void emitFast(const Target &target) {
  target.machine->setOptLevel(llvm::CodeGenOptLevel::None);
}

/// Adds entry points and the descriptor.
llvm::Error Compiled::finishArtefact(llvm::Module &module,
                                     const ArtefactOptions &artefact,
                                     const Target &target) {
  if (module.empty()) {
    module.setTargetTriple(target.machine->getTargetTriple());
    module.setDataLayout(target.machine->createDataLayout());
    module.setPICLevel(llvm::PICLevel::BigPIC);
  }
  addArtefact(module, signature, artefact);
  // The same machine for all of a module, or vectors would change registers
  // between caller and callee.
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !function.hasFnAttribute("target-cpu"))
      markFunction(function, target);
  return llvm::Error::success();
}

/// All code in one module, for people.
llvm::Expected<std::unique_ptr<llvm::Module>>
Compiled::wholeModule(const ArtefactOptions &artefact,
                      llvm::LLVMContext &llvmContext) {
  std::unique_ptr<llvm::Module> whole;
  TimingScope scope = progress->begin("generate code");
  for (unsigned code = 0; code < codes.size(); ++code)
    for (unsigned unit = 0; unit < codes[code].modules.size(); ++unit) {
      llvm::Expected<std::unique_ptr<llvm::Module>> part = optimizedUnit(
          code, unit, targets[code % targets.size()], llvmContext, scope);
      if (!part)
        return part;
      nameInWhole(**part, codes[code], unit);
      if (!whole)
        whole = std::move(*part);
      else if (llvm::Linker::linkModules(*whole, std::move(*part)))
        return llvm::createStringError("the code cannot be joined");
    }
  for (llvm::Function &function : *whole)
    if (!function.isDeclaration() && function.hasHiddenVisibility()) {
      function.setVisibility(llvm::GlobalValue::DefaultVisibility);
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  llvm::Expected<Target> target = artefactTarget();
  if (!target)
    return target.takeError();
  if (llvm::Error error = finishArtefact(*whole, artefact, *target))
    return std::move(error);
  return whole;
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// The key of the machine code of a unit: its kernels, and what they are
/// lowered and compiled for.
CacheKey Compiled::keyOf(unsigned code, unsigned unit) {
  CodeUnits &units = codes[code];
  const Target &target = targets[code % targets.size()];
  std::string text;
  llvm::raw_string_ostream(text)
      << "unit\n"
      << compilerIdentity().value_or("") << '\n'
      << target.description() << '\n'
      << target.machine->getTargetFeatureString() << '\n'
      << "optimize " << options.optimize << " effort "
      << static_cast<int>(effort()) << " first " << (unit == 0) << " long "
      << units.entryIsLong << " shared " << (units.modules.size() > 1);
  return cacheKey(*units.modules[unit], text);
}

/// Machine code of a unit, kept or made.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
Compiled::objectOf(unsigned code, unsigned unit, TimingScope &scope) {
  std::optional<CacheKey> key;
  if (options.store) {
    TimingScope lookup = scope.nest("look for code");
    key = keyOf(code, unit);
    if (auto kept = options.store->load(*key))
      return kept;
  }
  Target target = targets[code % targets.size()].clone();
  llvm::LLVMContext own;
  llvm::Expected<std::unique_ptr<llvm::Module>> module =
      optimizedUnit(code, unit, target, own, scope);
  if (!module)
    return module.takeError();
  TimingScope emitter = scope.nest("emit machine code");
  if (unit == 0 && codes[code].entryIsLong)
    emitFast(target);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error =
          emitCode(**module, target, llvm::CodeGenFileType::ObjectFile, stream))
    return std::move(error);
  if (key)
    options.store->store(*key, stream.str());
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), options.name, /*RequiresNullTerminator=*/false);
}

/// Makes the code of all units, on as many threads as the context has.
llvm::Error Compiled::makeObjects() {
  if (host)
    return llvm::Error::success();
  TimingScope scope = progress->begin("generate code");
  llvm::SmallVector<std::pair<unsigned, unsigned>> jobs;
  for (unsigned code = 0; code < codes.size(); ++code)
    for (unsigned unit = 0; unit < codes[code].modules.size(); ++unit)
      jobs.emplace_back(code, unit);
  // To join objects takes a millisecond, which counts where code is to be
  // compiled in little time.
  if (jobs.size() == 1 && (littleCode || !options.optimize)) {
    llvm::Expected<std::unique_ptr<llvm::Module>> only =
        optimizedUnit(0, 0, targets[0], hostContext, scope);
    if (!only)
      return only.takeError();
    nameInWhole(**only, codes[0], 0);
    host = std::move(*only);
    return llvm::Error::success();
  }
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> made(jobs.size());
  std::vector<std::string> problems(jobs.size());
  parallelFor(context, 0, jobs.size(), [&](size_t index) {
    auto [code, unit] = jobs[index];
    if (auto object = objectOf(code, unit, scope))
      made[index] = std::move(*object);
    else
      problems[index] = llvm::toString(object.takeError());
  });
  for (const std::string &problem : problems)
    if (!problem.empty())
      return llvm::createStringError(problem);
  host = std::make_unique<llvm::Module>(options.name, hostContext);
  objects = std::move(made);
  return llvm::Error::success();
}

llvm::Error Compiled::emitObject(const ArtefactOptions &artefact,
                                 llvm::raw_pwrite_stream &stream) {
  if (llvm::Error error = makeObjects())
    return error;
  std::unique_ptr<llvm::Module> module = llvm::CloneModule(*host);
  llvm::Expected<Target> target = artefactTarget();
  if (!target)
    return target.takeError();
  if (llvm::Error error = finishArtefact(*module, artefact, *target))
    return error;
  if (littleCode && objects.empty())
    joinFunctions(*module);
  // Of code that runs once, with thousands of arguments where it computes the
  // constants of a large model.
  if (options.quick && !options.optimize && !objects.empty())
    emitFast(*target);
  llvm::SmallVector<char, 0> first;
  llvm::raw_svector_ostream firstStream(first);
  if (llvm::Error error = emitCode(
          *module, *target, llvm::CodeGenFileType::ObjectFile, firstStream))
    return error;
  if (objects.empty() && !artefact.embedsWeights) {
    stream << firstStream.str();
    return llvm::Error::success();
  }
  llvm::SmallVector<ObjectPart> parts = {
      llvm::MemoryBufferRef(firstStream.str(), options.name)};
  size_t next = 0;
  for (const CodeUnits &units : codes)
    for (unsigned unit = 0; unit < units.modules.size() && !objects.empty();
         ++unit)
      parts.emplace_back(objects[next++]->getMemBufferRef(),
                         [&units, unit](llvm::StringRef symbol) {
                           return units.symbolInWhole(unit, symbol);
                         });
  llvm::SmallVector<DataSection> data;
  if (artefact.embedsWeights)
    data.push_back({weightsSymbol(options.name), weightBytes(), KTN_ALIGNMENT,
                    hasLargeWeights(signature.weightsBytes)});
  return joinObjects(parts, data, stream);
}

//===----------------------------------------------------------------------===//
// In process
//===----------------------------------------------------------------------===//

/// The object without weights: they stay where they are and come to the code
/// as an argument.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> Compiled::objectForHere() {
  if (!targets[0].runsHere)
    return llvm::createStringError(
        "code for " + targets[0].description() +
        " cannot run in this process: the machine lacks its instructions");
  if (signature.functions.size() > 1 || signature.hasState())
    return llvm::createStringError(
        "a model of several functions is run from files");
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  ArtefactOptions artefact = artefactOptions();
  artefact.descriptorOnly = true;
  artefact.trusted = options.trusted;
  if (llvm::Error error = emitObject(artefact, stream))
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
  return CodeImage{std::move(*object), std::move(weights), littleCode};
}

namespace {
/// An object in this process and the weights that it reads.
class LoadedImage final : public LoadedCode {
public:
  LoadedImage(std::unique_ptr<llvm::MemoryBuffer> weights,
              std::unique_ptr<LoadedObject> object, bool quick)
      : weights(std::move(weights)), object(std::move(object)), quick(quick) {}
  const ktn_model_info_t &info() const override { return object->info(); }
  bool isQuick() const override { return quick; }

private:
  std::unique_ptr<llvm::MemoryBuffer> weights;
  std::unique_ptr<LoadedObject> object;
  bool quick;
};
} // namespace

llvm::Expected<std::unique_ptr<LoadedCode>> loadImage(CodeImage image,
                                                      llvm::StringRef name) {
  llvm::Expected<std::unique_ptr<LoadedObject>> object = LoadedObject::load(
      std::move(image.object), name, image.weights->getBufferStart());
  if (!object)
    return object.takeError();
  return std::make_unique<LoadedImage>(std::move(image.weights),
                                       std::move(*object), image.isQuick);
}

void Compiled::setProfileHook(ktn_profile_fn_t hook, void *user) {
  const ktn_model_info_t *info = load();
  if (info && info->set_profile)
    info->set_profile(hook, user);
}

} // namespace keratin
