//===- ExpandGradients.cpp - ktn.gradients to reverse-mode derivatives ----===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EXPANDGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// Whether `op` reads one of `values`, itself or in its regions.
bool readsAny(Operation &op, const llvm::DenseSet<Value> &values) {
  auto isActive = [&](Value value) { return values.contains(value); };
  if (llvm::any_of(op.getOperands(), isActive))
    return true;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegions(), captured);
  return llvm::any_of(captured, isActive);
}

/// Ops before `gradients` whose value depends on a differentiation variable.
SmallVector<Operation *> findActiveOps(ktn::GradientsOp gradients) {
  llvm::DenseSet<Value> active(gradients.getWrt().begin(),
                               gradients.getWrt().end());
  SmallVector<Operation *> ops;
  for (Operation &op : *gradients->getBlock()) {
    if (&op == gradients)
      break;
    if (!readsAny(op, active))
      continue;
    ops.push_back(&op);
    active.insert_range(op.getResults());
  }
  return ops;
}

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

/// The sum of the cotangents that reached each value so far.
class Cotangents {
public:
  Cotangents(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void accumulate(Value value, Value term) {
    Value &sum = sums[value];
    sum = sum ? ktn::AddOp::create(b, loc, sum, term) : term;
  }
  Value lookup(Value value) const { return sums.lookup(value); }

private:
  OpBuilder &b;
  Location loc;
  llvm::DenseMap<Value, Value> sums;
};

/// Adds what the cotangents of the results of `op` give to those of its
/// operands.
LogicalResult propagate(Operation *op, ktn::GradientsOp gradients, OpBuilder &b,
                        Cotangents &cotangents) {
  SmallVector<Value> upstream;
  for (Value result : op->getResults())
    upstream.push_back(cotangents.lookup(result));
  if (llvm::none_of(upstream, [](Value value) { return bool(value); }))
    return success();

  auto rule = dyn_cast<ktn::VjpOpInterface>(op);
  if (!rule) {
    InFlightDiagnostic diag = op->emitOpError("has no gradient");
    diag.attachNote(gradients.getLoc()) << "needed by this gradient";
    return diag;
  }
  SmallVector<Value> terms = rule.vjp(b, upstream);
  if (terms.size() != op->getNumOperands())
    return failure(); // the rule said why
  for (auto [operand, term] : llvm::zip_equal(op->getOperands(), terms))
    if (term)
      cotangents.accumulate(operand, term);
  return success();
}

LogicalResult expand(ktn::GradientsOp gradients) {
  OpBuilder b(gradients);
  Location loc = gradients.getLoc();
  Cotangents cotangents(b, loc);
  for (Value target : gradients.getTargets())
    cotangents.accumulate(target, filledLike(b, loc, target, 1.0));

  SmallVector<Operation *> activeOps = findActiveOps(gradients);
  for (Operation *op : llvm::reverse(activeOps))
    if (failed(propagate(op, gradients, b, cotangents)))
      return failure();

  SmallVector<Value> results;
  for (Value variable : gradients.getWrt()) {
    Value cotangent = cotangents.lookup(variable);
    results.push_back(cotangent ? cotangent
                                : filledLike(b, loc, variable, 0.0));
  }
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
