//===- Compiled.h - a compiled model, in memory -----------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_COMPILED_H
#define KERATIN_CODEGEN_COMPILED_H

#include "codegen/Artefact.h"
#include "codegen/Compile.h"
#include "codegen/Jit.h"
#include "codegen/Object.h"
#include "codegen/Signature.h"
#include "codegen/Stages.h"
#include "codegen/Target.h"
#include "codegen/Variables.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace keratin {

/// The CompiledModel of the door: LLVM IR and weights, made into what is asked
/// for.
class Compiled final : public CompiledModel {
public:
  Compiled(mlir::MLIRContext *context, const CompileOptions &options,
           Target target)
      : loc(mlir::UnknownLoc::get(context)), options(options),
        target(std::move(target)) {}

  /// Adds the code of a part at the stage `loops`.
  llvm::LogicalResult generate(ModulePart &part,
                               const PipelineOptions &pipeline,
                               Progress &progress);
  /// After all parts: joins their weights and the first values of `variables`.
  llvm::LogicalResult finish(llvm::ArrayRef<ModuleVariable> variables);

  llvm::ArrayRef<KernelRow> kernels() const override { return kernelRows; }
  std::pair<int64_t, int64_t> arenaBytes() const override;
  const ktn_model_info_t *load() override;
  void setProfileHook(ktn_profile_fn_t hook, void *user) override;
  llvm::FailureOr<std::string> text(Emit emit) override;
  llvm::LogicalResult write(Emit emit, llvm::StringRef prefix) override;
  /// Machine code and weights; the model is of no more use.
  llvm::FailureOr<CodeImage> takeImage();

private:
  llvm::LogicalResult layOutState(llvm::ArrayRef<ModuleVariable> variables);
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

  mlir::Location loc;
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

/// Compiles for `target`, told the passes what `pipeline` says. Null, with a
/// diagnostic, when that fails.
std::unique_ptr<Compiled> compileFor(mlir::OwningOpRef<mlir::ModuleOp> module,
                                     const CompileOptions &options,
                                     Target target,
                                     const PipelineOptions &pipeline);

} // namespace keratin

#endif // KERATIN_CODEGEN_COMPILED_H
