//===- Stages.h - running the stages of a compilation -----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_STAGES_H
#define KERATIN_CODEGEN_STAGES_H

#include "codegen/Compile.h"
#include "codegen/Dumps.h"
#include "codegen/Target.h"
#include "codegen/Variables.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

namespace keratin {

/// A diagnostic at `loc` of an LLVM error.
llvm::LogicalResult report(mlir::Location loc, llvm::Error error);

/// What the steps of one compilation share: the clock, the count of dumps, how
/// far it is.
class Progress {
public:
  /// `options` must outlive it; `total` steps will be announced.
  Progress(const CompileOptions &options, unsigned total);

  /// Tells that the step `name` begins.
  void announce(llvm::StringRef name);
  /// The step `name` begins; it ends with the scope.
  mlir::TimingScope begin(llvm::StringRef name);
  void finish();

  /// Dumps and clocks of the passes of `pm`, as the options ask.
  void instrument(mlir::PassManager &pm, mlir::TimingScope &scope);
  /// Whether all dumps have been written.
  bool hasDumps() const { return !dumps.hasFailed; }

private:
  const CompileOptions &options;
  unsigned done = 0, total;
  Dumps dumps;
  mlir::DefaultTimingManager clock; // prints when it goes
  mlir::TimingScope root;
};

/// CompileOptions::inputShapes for the inputs of all functions of a module, one
/// after the other, before anything else is done.
llvm::LogicalResult applyInputShapes(SplitModule &split,
                                     const CompileOptions &options);

/// CompileOptions::dumpAfter: a diagnostic unless it is among the passes that
/// lead from the stage of `module` to `to`.
llvm::LogicalResult checkDumps(mlir::ModuleOp module, Stage to,
                               const PipelineOptions &pipeline,
                               const CompileOptions &options);

/// Runs the passes of one stage, `next`, over a module at the stage before, in
/// the time of `scope`.
llvm::LogicalResult runStage(mlir::ModuleOp module, Stage next,
                             const PipelineOptions &options, Progress &progress,
                             mlir::TimingScope &scope);

/// Runs the passes from the stage that the module is at to `to`. One pass
/// manager a stage, so that each leaves a module that says where it is.
llvm::LogicalResult runStages(mlir::ModuleOp module, Stage to,
                              const PipelineOptions &options,
                              Progress &progress);

/// What the passes are told for code of `target`.
PipelineOptions pipelineOptions(const Target &target,
                                const CompileOptions &options,
                                ConstantEvaluator evaluator);

} // namespace keratin

#endif // KERATIN_CODEGEN_STAGES_H
