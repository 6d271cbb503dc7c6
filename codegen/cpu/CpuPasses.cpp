//===- CpuPasses.cpp - makes the passes known -----------------------------===//
#include "codegen/cpu/CpuPasses.h"

namespace keratin {
namespace {
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/CpuPasses.h.inc"
} // namespace

void registerCpuPasses() { registerCpuPassesPasses(); }

void addCpuEmitter(mlir::OpPassManager &pm, const PipelineOptions &options) {
  if (!options.optimize) {
    pm.addPass(createEmitPlainLoops());
    return;
  }
  EmitTilesOptions tiles;
  tiles.vectorBits = options.vectorBits;
  tiles.vectorRegisters = options.vectorRegisters;
  tiles.secondCacheKiB = options.secondCacheKiB;
  tiles.fetchesAhead = options.fetchesAhead;
  tiles.oneRun = options.oneRun;
  tiles.asksNextRows = options.asksNextRows;
  tiles.halfUnits = options.halfUnits;
  tiles.weights24 = options.weights24;
  tiles.asksForLater = options.asksForLater;
  tiles.strassen = options.strassen;
  tiles.pairs = options.pairs;
  tiles.storesAtOnce = options.storesAtOnce;
  tiles.parallel = options.parallel;
  tiles.winograd = options.winograd;
  tiles.littleCode = options.littleCode;
  tiles.dots = options.dots;
  pm.addPass(createEmitTiles(tiles));
}

} // namespace keratin
