//===- Stages.cpp - running the stages of a compilation -------------------===//
#include "codegen/Stages.h"

#include "codegen/Dialects.h"
#include "codegen/Evaluate.h"
#include "codegen/Link.h"
#include "codegen/Signature.h"
#include "codegen/cpu/CpuPasses.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace keratin {

static constexpr llvm::StringLiteral stageAttr = "ktn.stage";

Stage stageOf(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(stageAttr);
  return name ? parseStage(name.getValue()).value_or(Stage::Graph)
              : Stage::Graph;
}

LogicalResult report(Location loc, llvm::Error error) {
  return emitError(loc) << llvm::toString(std::move(error));
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

Progress::Progress(const CompileOptions &options, unsigned total)
    : options(options), total(total) {
  clock.setEnabled(options.timePasses);
  root = clock.getRootScope();
}

void Progress::announce(llvm::StringRef name) {
  if (options.progress)
    options.progress(name, done, total);
  ++done;
}

TimingScope Progress::begin(llvm::StringRef name) {
  announce(name);
  return root.nest(name);
}

void Progress::finish() {
  if (options.progress)
    options.progress("done", total, total);
}

void Progress::instrument(PassManager &pm, TimingScope &scope) {
  if (!options.dumpAfter.empty())
    pm.addInstrumentation(std::make_unique<DumpAfterPass>(
        options.dumpAfter, options.dumpDirectory, dumps));
  if (options.timePasses)
    pm.enableTiming(scope);
}

//===----------------------------------------------------------------------===//
// Shapes of inputs
//===----------------------------------------------------------------------===//

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

LogicalResult applyInputShapes(SplitModule &split,
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

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

LogicalResult checkDumps(ModuleOp module, Stage to,
                         const PipelineOptions &pipeline,
                         const CompileOptions &options) {
  if (options.dumpAfter.empty())
    return success();
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  buildPipeline(pm, stageOf(module), to, pipeline);
  if (llvm::Error error = checkDumpedPass(options.dumpAfter, pm))
    return report(UnknownLoc::get(module.getContext()), std::move(error));
  return success();
}

LogicalResult runStage(ModuleOp module, Stage next,
                       const PipelineOptions &options, Progress &progress,
                       TimingScope &scope) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
#ifdef NDEBUG
  // Once a stage, below: after each pass it shows in the time that small
  // functions take.
  pm.enableVerifier(false);
#endif
  progress.instrument(pm, scope);
  buildPipeline(pm, stageOf(module), next, options);
  if (failed(pm.run(module)) || failed(verify(module)) || !progress.hasDumps())
    return failure();
  module->setAttr(stageAttr,
                  StringAttr::get(module.getContext(), stageName(next)));
  return success();
}

LogicalResult runStages(ModuleOp module, Stage to,
                        const PipelineOptions &options, Progress &progress) {
  for (Stage from = stageOf(module); from < to;) {
    from = static_cast<Stage>(static_cast<unsigned>(from) + 1);
    TimingScope scope = progress.begin(stageName(from));
    if (failed(runStage(module, from, options, progress, scope)))
      return failure();
  }
  return success();
}

PipelineOptions pipelineOptions(const Target &target,
                                const CompileOptions &options,
                                ConstantEvaluator evaluator) {
  PipelineOptions result;
  result.optimize = options.optimize;
  result.parallel = options.optimize && options.threads != 1;
  result.vectorBits = target.vectorBits;
  result.vectorRegisters = target.vectorRegisters;
  result.secondCacheKiB = target.secondCacheKiB;
  result.fma = target.fma;
  result.rounding = target.rounding;
  result.avx512 = target.avx512;
  result.divides = target.divides;
  result.permutes = target.permutes;
  result.fetchesAhead = target.fetchesAhead;
  result.oneRun = target.oneRun;
  result.asksNextRows = target.asksNextRows;
  result.halfUnits = target.halfUnits;
  result.weights24 = options.weights24 ? target.weights24 : Weights24::None;
  result.asksForLater = target.asksForLater;
  result.strassen = options.strassen;
  result.pairs = options.pairs && target.sumsBeside;
  result.foldLookups = options.foldLookups;
  result.storesAtOnce = target.storesAtOnce;
  result.halves = target.halves;
  result.winograd = options.winograd;
  result.precision = options.precision;
  result.dots = target.dots;
  // Dot products in vectors are slow there (Target.cpp).
  if (target.dots == DotUnit::Tiles && !options.tiles)
    result.dots = DotUnit::None;
  result.unrollFactor = options.unrollFactor;
  result.checkpointEvery = options.checkpointEvery;
  result.evaluateConstants = std::move(evaluator);
  result.emitKernels = addCpuEmitter;
  return result;
}

FailureOr<PipelineOptions> pipelineOptions(Location loc,
                                           const CompileOptions &options) {
  llvm::Expected<std::vector<Target>> targets =
      parseTargets(options.target, options.optimize);
  if (!targets)
    return report(loc, targets.takeError());
  return pipelineOptions(
      targets->back(), options,
      evaluatorOf(std::make_shared<FoldedConstants>(options)));
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
  if (failed(checkDumps(module, to, *pipeline, options)) ||
      failed(applyShapesOfOne(module, options)) ||
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
