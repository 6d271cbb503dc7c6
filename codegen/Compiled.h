//===- Compiled.h - a compiled model, in memory -----------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_COMPILED_H
#define KERATIN_CODEGEN_COMPILED_H

#include "codegen/Artefact.h"
#include "codegen/Compile.h"
#include "codegen/Evaluate.h"
#include "codegen/Jit.h"
#include "codegen/JoinObjects.h"
#include "codegen/Link.h"
#include "codegen/Object.h"
#include "codegen/Signature.h"
#include "codegen/Stages.h"
#include "codegen/Target.h"
#include "codegen/Units.h"
#include "codegen/Variables.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace keratin {

/// The CompiledModel of the door. Passes have run when it is made; LLVM runs
/// when the first thing is asked for that needs machine code.
class Compiled final : public CompiledModel {
public:
  /// `targets`, at least one, from the least to the most that a machine can do:
  /// there is code for each, of which a process chooses.
  Compiled(mlir::MLIRContext *context, const CompileOptions &options,
           std::vector<Target> targets,
           std::shared_ptr<FoldedConstants> constants)
      : context(context), loc(mlir::UnknownLoc::get(context)), options(options),
        targets(std::move(targets)), constants(std::move(constants)) {}

  /// Runs the passes over all parts, told by `pipeline` what they do but for
  /// the target.
  llvm::LogicalResult compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                              const PipelineOptions &pipeline);

  llvm::ArrayRef<KernelRow> kernels() const override { return kernelRows; }
  const ktn_model_info_t *load() override;
  void setProfileHook(ktn_profile_fn_t hook, void *user) override;
  llvm::FailureOr<std::string> text(Emit emit) override;
  llvm::LogicalResult write(Emit emit, llvm::StringRef prefix) override;
  /// Machine code and weights; the model is of no more use.
  llvm::FailureOr<CodeImage> takeImage();

private:
  // Compiled.cpp: passes and weights.
  llvm::LogicalResult compilePart(ModulePart &part,
                                  const PipelineOptions &pipeline);
  llvm::LogicalResult generate(mlir::OwningOpRef<mlir::ModuleOp> module,
                               const ModulePart &part, unsigned variant,
                               const PipelineOptions &pipeline);
  llvm::LogicalResult addSignature(Signature read, const ModulePart &part,
                                   unsigned variant);
  llvm::LogicalResult finish(llvm::ArrayRef<ModuleVariable> variables);
  ArenaUse arena() const;
  llvm::LogicalResult layOutState(llvm::ArrayRef<ModuleVariable> variables);
  std::unique_ptr<llvm::WritableMemoryBuffer>
  takeWeights(mlir::func::FuncOp function, int64_t bytes);
  bool hasVariants() const { return targets.size() > 1; }

  // CompiledCode.cpp: machine code.
  std::string optionText() const;
  ArtefactOptions artefactOptions() const;
  llvm::Expected<Target> artefactTarget() const;
  Effort effort() const;
  llvm::Error finishArtefact(llvm::Module &module,
                             const ArtefactOptions &artefact,
                             const Target &target);
  llvm::Expected<std::unique_ptr<llvm::Module>>
  optimizedUnit(unsigned code, unsigned unit, const Target &target,
                llvm::LLVMContext &llvmContext, mlir::TimingScope &scope);
  CacheKey keyOf(unsigned code, unsigned unit);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  objectOf(unsigned code, unsigned unit, mlir::TimingScope &scope);
  llvm::Error makeObjects();
  llvm::Error emitObject(const ArtefactOptions &artefact,
                         llvm::raw_pwrite_stream &stream);
  llvm::Expected<std::unique_ptr<llvm::Module>>
  wholeModule(const ArtefactOptions &artefact, llvm::LLVMContext &llvmContext);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> objectForHere();
  /// The reference may call libm, optimised code nothing.
  llvm::Error checkObject(llvm::MemoryBufferRef object) const {
    return options.optimize ? checkUndefinedSymbols(object)
                            : llvm::Error::success();
  }

  // CompiledFiles.cpp
  llvm::ArrayRef<char> weightBytes() const { return weights->getBuffer(); }
  bool embedsWeights() const {
    return options.weights == WeightsPlacement::Embed && !weightBytes().empty();
  }
  llvm::Expected<std::string> makeText(Emit emit, llvm::StringRef weightsFile);
  llvm::Error writeText(Emit emit, llvm::StringRef prefix);
  llvm::Error writeObject(const ArtefactOptions &artefact,
                          llvm::StringRef path);
  llvm::Error writeProduct(Emit emit, llvm::StringRef prefix);
  llvm::Error addCompanions(OutputFiles &files, llvm::StringRef prefix);
  llvm::Error addCode(OutputFiles &files, Emit emit, const std::string &prefix,
                      const ArtefactOptions &artefact);

  mlir::MLIRContext *context;
  mlir::Location loc;
  CompileOptions options;
  std::vector<Target> targets;
  std::shared_ptr<FoldedConstants> constants; // may be null
  std::unique_ptr<Progress> progress;
  bool littleCode = false; // see CompileOptions::quick
  ModelSignature signature;
  std::vector<KernelRow> kernelRows; // of all functions
  llvm::SmallVector<std::unique_ptr<llvm::WritableMemoryBuffer>> partWeights;
  std::unique_ptr<llvm::WritableMemoryBuffer> weights;

  /// The code of each function for each target, functions first.
  llvm::SmallVector<CodeUnits, 1> codes;
  /// Made of all units but the host, in order.
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  /// What entry points are added to: an empty module, or the only unit of code
  /// that is to be compiled in little time, optimised.
  llvm::LLVMContext hostContext;
  std::unique_ptr<llvm::Module> host;
  std::unique_ptr<LoadedObject> loaded;
};

/// Compiles for `targets`, told the passes what `pipeline` says; its evaluator
/// is `constants`, which may be null. Null, with a diagnostic, when that fails.
std::unique_ptr<Compiled>
compileFor(mlir::OwningOpRef<mlir::ModuleOp> module,
           const CompileOptions &options, std::vector<Target> targets,
           const PipelineOptions &pipeline,
           std::shared_ptr<FoldedConstants> constants);

} // namespace keratin

#endif // KERATIN_CODEGEN_COMPILED_H
