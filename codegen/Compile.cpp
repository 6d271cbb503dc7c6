//===- Compile.cpp - the only door of codegen -----------------------------===//
#include "codegen/Compile.h"

#include "codegen/Compiled.h"
#include "codegen/Dialects.h"
#include "codegen/Evaluate.h"
#include "codegen/Stages.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace keratin {

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
  llvm::Expected<std::vector<Target>> targets =
      parseTargets(options.target, options.optimize);
  if (!targets) {
    (void)report(loc, targets.takeError());
    return nullptr;
  }
  loadDialects(module->getContext());
  auto constants = std::make_shared<FoldedConstants>(options);
  PipelineOptions pipeline =
      pipelineOptions(targets->back(), options, evaluatorOf(constants));
  return compileFor(std::move(module), options, std::move(*targets), pipeline,
                    std::move(constants));
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

} // namespace keratin
