//===- UnrollLoops.cpp - several steps of a loop in a row -----------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_UNROLLLOOPS
#include "passes/Passes.h.inc"

namespace {

/// The number of computations that a loop may be unrolled to when the factor is
/// to be chosen: each becomes a call of a kernel.
constexpr int64_t unrollBudget = 64;

int64_t countComputations(scf::ForOp loop) {
  int64_t count = 0;
  loop.getBody()->walk([&](linalg::LinalgOp) { ++count; });
  return count;
}

/// All steps when they are few, else none: a part of them saves nothing but the
/// count.
int64_t chooseFactor(scf::ForOp loop, int64_t steps) {
  return steps * countComputations(loop) <= unrollBudget ? steps : 1;
}

struct UnrollLoops : impl::UnrollLoopsBase<UnrollLoops> {
  using Base::Base;

  void runOnOperation() override {
    // Inner loops come first.
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (failed(unroll(loop)))
        return signalPassFailure();
  }

private:
  LogicalResult unroll(scf::ForOp loop) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips)
      return success();
    int64_t steps = trips->getSExtValue();
    int64_t factor =
        unrollFactor > 0 ? unrollFactor : chooseFactor(loop, steps);
    if (factor <= 1 || steps <= 1) // one step is canonicalised
      return success();
    if (factor >= steps)
      return loopUnrollFull(loop);
    return loopUnrollByFactor(loop, factor);
  }
};

} // namespace
} // namespace keratin
