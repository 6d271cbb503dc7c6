//===- Decompose.cpp - ops that are formulas become their formulas --------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"

namespace {

struct Decompose : impl::DecomposeBase<Decompose> {
  using Base::Base;

  void runOnOperation() override {
    resolveTrainingPhase();
    dropStopGradients();
    // A formula may hold ops that have a formula.
    SmallVector<ktn::DecomposeOpInterface> found;
    do {
      found.clear();
      getOperation().walk(
          [&](ktn::DecomposeOpInterface op) { found.push_back(op); });
      for (ktn::DecomposeOpInterface op : found)
        if (failed(replaceByFormula(op)))
          return signalPassFailure();
    } while (!found.empty());
  }

private:
  LogicalResult replaceByFormula(ktn::DecomposeOpInterface op) {
    OpBuilder b(op);
    FailureOr<SmallVector<Value>> values = op.decompose(b);
    if (failed(values))
      return failure();
    op->replaceAllUsesWith(*values);
    op->erase();
    return success();
  }

  void resolveTrainingPhase() {
    getOperation().walk([&](ktn::TrainingPhaseOp op) {
      OpBuilder b(op);
      Value phase =
          ktn::createConstant(b, op.getLoc(), op.getType(), training ? 1 : 0);
      op.replaceAllUsesWith(phase);
      op.erase();
    });
  }

  void dropStopGradients() {
    getOperation().walk([](ktn::StopGradientOp op) {
      op.replaceAllUsesWith(op.getX());
      op.erase();
    });
  }
};

} // namespace
} // namespace keratin
