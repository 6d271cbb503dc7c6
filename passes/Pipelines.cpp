//===- Pipelines.cpp - the story of a compilation -------------------------===//
#include "passes/Pipelines.h"

#include "passes/LowerToLlvm.h"
#include "passes/Passes.h"

#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace keratin {

static constexpr llvm::StringLiteral stageNames[] = {
    "graph", "core", "layout", "linalg", "kernels", "loops", "llvm"};

llvm::StringRef stageName(Stage stage) {
  return stageNames[static_cast<unsigned>(stage)];
}

std::optional<Stage> parseStage(llvm::StringRef name) {
  for (auto [index, known] : llvm::enumerate(stageNames))
    if (name == known)
      return static_cast<Stage>(index);
  return std::nullopt;
}

std::optional<Winograd> parseWinograd(llvm::StringRef name) {
  static constexpr std::pair<llvm::StringLiteral, Winograd> names[] = {
      {"off", Winograd::Off},
      {"auto", Winograd::Auto},
      {"2", Winograd::F2},
      {"4", Winograd::F4},
      {"8", Winograd::F8}};
  for (auto [known, choice] : names)
    if (name == known)
      return choice;
  return std::nullopt;
}

std::optional<Precision> parsePrecision(llvm::StringRef name) {
  if (name == "f32")
    return Precision::F32;
  if (name == "bf16")
    return Precision::BF16;
  if (name == "f16")
    return Precision::F16;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The stages
//===----------------------------------------------------------------------===//

/// Formulas instead of names, and every constant expression computed.
static void addCore(OpPassManager &pm, const PipelineOptions &options) {
  CheckpointScanOptions checkpoints;
  checkpoints.checkpointEvery = options.checkpointEvery;
  pm.addNestedPass<func::FuncOp>(createCheckpointScan(checkpoints));
  // Who wants weights of f16 wants them small.
  if (options.optimize && options.foldLookups &&
      options.precision != Precision::F16)
    pm.addNestedPass<func::FuncOp>(createFoldLookups());
  // What leaves a loop now has its gradient outside as well; the loops of
  // gradients are new ones.
  if (options.optimize)
    pm.addNestedPass<func::FuncOp>(createHoistScan());
  pm.addNestedPass<func::FuncOp>(createExpandGradients());
  pm.addNestedPass<func::FuncOp>(createDecompose());
  // What is folded into weights is rounded with them, so the reference does it
  // as well.
  if (options.precision != Precision::F32 && !options.optimize)
    pm.addNestedPass<func::FuncOp>(createFoldAffine());
  if (options.optimize) {
    // Batch normalisation is scales and shifts by now, a gate plain products.
    pm.addNestedPass<func::FuncOp>(createFoldAffine());
    // Gradients leave loops with states and stacks that nobody reads.
    pm.addPass(createCanonicalize());
    pm.addNestedPass<func::FuncOp>(createHoistScan());
  }
  pm.addPass(createCanonicalize());
  pm.addPass(createCSEPass());
  pm.addPass(createFoldConstants(options.evaluateConstants));
}

/// channels_last everywhere. The transposes of weights that this takes are
/// constant expressions.
static void addLayout(OpPassManager &pm, const PipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createAssignLayout());
  pm.addPass(createCanonicalize());
  pm.addPass(createFoldConstants(options.evaluateConstants));
}

static void addLinalg(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createLowerToLinalg());
  if (options.optimize) {
    WidenHalvesOptions halves;
    halves.bf16 = options.dots == DotUnit::None;
    pm.addPass(createWidenHalves(halves));
    SplitWindowsOptions windows;
    windows.vectorBits = options.vectorBits;
    pm.addNestedPass<func::FuncOp>(createSplitWindows(windows));
  }
  if (options.precision != Precision::F32) {
    RoundFactorsOptions rounding;
    rounding.type = options.precision;
    rounding.narrow =
        options.precision == Precision::BF16 && options.dots != DotUnit::None;
    pm.addPass(createRoundFactors(rounding));
  }
  if (options.unrollFactor != 1) {
    UnrollLoopsOptions unrolling;
    unrolling.unrollFactor = options.unrollFactor;
    pm.addNestedPass<func::FuncOp>(createUnrollLoops(unrolling));
  }
  if (options.optimize) {
    pm.addNestedPass<func::FuncOp>(createFuseElementwise());
    pm.addNestedPass<func::FuncOp>(createMergeAxes());
    pm.addNestedPass<func::FuncOp>(createSkipUnread());
    pm.addNestedPass<func::FuncOp>(createSplitSums());
    pm.addNestedPass<func::FuncOp>(createSplitPools());
  }
  pm.addPass(createCanonicalize());
  pm.addPass(createCSEPass());
}

static void addKernels(OpPassManager &pm, const PipelineOptions &options) {
  FormKernelsOptions kernels;
  kernels.fuse = options.optimize;
  pm.addPass(createFormKernels(kernels));
  if (options.optimize) {
    BandKernelsOptions bands;
    bands.parallel = options.parallel;
    // Of a cache of 2 MiB more than half is too much for what comes in between.
    bands.bandKiB = std::max(1024U, options.secondCacheKiB / 16 * 9);
    pm.addPass(createBandKernels(bands));
    pm.addPass(createFoldPads());
  }
  // What the partition left without users.
  pm.addPass(createCanonicalize());
}

static void addLoops(OpPassManager &pm, const PipelineOptions &options) {
  if (options.emitKernels)
    options.emitKernels(pm, options);
  pm.addPass(createPlanMemory());
  pm.addPass(createCanonicalize());
  pm.addPass(createCSEPass());
}

static void addLlvm(OpPassManager &pm, const PipelineOptions &options) {
  addLowerToLlvm(pm, options);
}

void buildPipeline(OpPassManager &pm, Stage from, Stage to,
                   const PipelineOptions &options) {
  using AddStage = void (*)(OpPassManager &, const PipelineOptions &);
  static constexpr std::pair<Stage, AddStage> story[] = {
      {Stage::Core, addCore},     {Stage::Layout, addLayout},
      {Stage::Linalg, addLinalg}, {Stage::Kernels, addKernels},
      {Stage::Loops, addLoops},   {Stage::Llvm, addLlvm},
  };
  for (auto [stage, addStage] : story)
    if (from < stage && stage <= to)
      addStage(pm, options);
}

//===----------------------------------------------------------------------===//
// keratin-opt
//===----------------------------------------------------------------------===//

namespace {
struct StageOptions : PassPipelineOptions<StageOptions> {
  Option<bool> optimize{*this, "optimize",
                        llvm::cl::desc("fuse, tile and vectorise")};
  Option<unsigned> vectorBits{*this, "vector-bits",
                              llvm::cl::desc("bits of a vector register")};
  Option<int64_t> unrollFactor{
      *this, "unroll-factor",
      llvm::cl::desc("steps of a loop in a row; 0 chooses")};
  Option<int64_t> checkpointEvery{
      *this, "checkpoint-every",
      llvm::cl::desc("keep one state of a loop in so many for its gradient")};
  Option<unsigned> vectorRegisters{
      *this, "vector-registers", llvm::cl::desc("number of vector registers")};
};
} // namespace

void registerPassesAndStages(const PipelineOptions &defaults) {
  registerKeratinPasses();
  for (unsigned index = 1; index < std::size(stageNames); ++index) {
    Stage to = static_cast<Stage>(index), from = static_cast<Stage>(index - 1);
    PassPipelineRegistration<StageOptions>(
        ("keratin-" + stageName(to)).str(),
        ("From stage " + stageName(from) + " to stage " + stageName(to)).str(),
        [=](OpPassManager &pm, const StageOptions &given) {
          PipelineOptions options = defaults;
          if (given.optimize.hasValue())
            options.optimize = given.optimize;
          if (given.unrollFactor.hasValue())
            options.unrollFactor = given.unrollFactor;
          if (given.checkpointEvery.hasValue())
            options.checkpointEvery = given.checkpointEvery;
          if (given.vectorBits.hasValue())
            options.vectorBits = given.vectorBits;
          if (given.vectorRegisters.hasValue())
            options.vectorRegisters = given.vectorRegisters;
          buildPipeline(pm, from, to, options);
        });
  }
}

} // namespace keratin
