//===- ExpandGradients.cpp - ktn.gradients to reverse-mode derivatives ----===//
#include "passes/Passes.h"

#include "ir/Differentiate.h"
#include "ir/Ktn.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EXPANDGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// A tensor of the shape of `value` filled with `element`.
Value filledLike(OpBuilder &b, Location loc, Value value, double element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.hasStaticShape())
    return ktn::createConstant(b, loc, type, element);
  Value scalar = ktn::createConstant(
      b, loc, RankedTensorType::get({}, type.getElementType()), element);
  Value shape = ktn::ShapeOp::create(b, loc, value);
  return ktn::BroadcastToOp::create(b, loc, scalar, shape, type.getShape());
}

LogicalResult expand(ktn::GradientsOp gradients) {
  OpBuilder b(gradients);
  Location loc = gradients.getLoc();
  SmallVector<Value> seeds;
  for (Value target : gradients.getTargets())
    seeds.push_back(filledLike(b, loc, target, 1.0));
  // A rule may give the uses of a value to another one.
  SmallVector<Value> variables(gradients.getWrt());
  FailureOr<SmallVector<Value>> cotangents =
      ktn::differentiate(b, loc, gradients.getTargets(), seeds, variables);
  if (failed(cotangents))
    return failure();

  SmallVector<Value> results;
  for (auto [variable, cotangent] : llvm::zip_equal(variables, *cotangents))
    results.push_back(cotangent ? cotangent
                                : filledLike(b, loc, variable, 0.0));
  gradients->replaceAllUsesWith(results);
  gradients->erase();
  return success();
}

struct ExpandGradients : impl::ExpandGradientsBase<ExpandGradients> {
  void runOnOperation() override {
    SmallVector<ktn::GradientsOp> all;
    getOperation().walk([&](ktn::GradientsOp op) { all.push_back(op); });
    for (ktn::GradientsOp gradients : all)
      if (failed(expand(gradients)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace keratin
