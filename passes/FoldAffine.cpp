//===- FoldAffine.cpp - scales and shifts go into the weights -------------===//
#include "passes/Passes.h"
#include "passes/Rebuild.h"

#include "ir/Ktn.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FOLDAFFINE
#include "passes/Passes.h.inc"

namespace {

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether `value` depends on constants only.
bool isConstantExpression(Value value) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Operation *> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
      return false;
    if (!op->hasTrait<OpTrait::ConstantLike>() && op->getNumOperands() == 0)
      return false;
    if (seen.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  }
  return true;
}

/// The values linear(x, kernel) * scale + shift, one entry a channel; null is 1
/// and 0.
class AffineChain {
public:
  AffineChain(ktn::LinearInKernelOpInterface linear)
      : linear(linear), result(linear->getResult(0)),
        axis(linear.getKernelResultAxis()) {}

  /// Takes in the one op that reads the result so far; false when it is none
  /// that scales or shifts by a constant for each channel.
  bool extend() {
    if (!result.hasOneUse())
      return false;
    OpOperand &use = *result.use_begin();
    auto user = dyn_cast<ktn::AffineOpInterface>(use.getOwner());
    unsigned index = use.getOperandNumber();
    if (!user || !user.isAffineIn(index) ||
        user->getBlock() != linear->getBlock() ||
        user->getResult(0).getType() != result.getType())
      return false;
    unsigned otherIndex = index == 0 ? 1 : 0;
    Value other = user->getOperand(otherIndex);
    if (!isConstantExpression(other) || !isPerChannel(user, otherIndex))
      return false;
    OpBuilder b(user);
    user.composeAffine(b, index, asVector(b, other), scale, shift);
    result = user->getResult(0);
    ++length;
    return true;
  }

  /// Whether there is more than a shift that the result has anyway.
  bool isWorthFolding() const { return scale || length > 1; }

  /// Replaces all by one op with another kernel and one shift.
  LogicalResult fold() {
    // Scale and shift were built in front of the last op of the chain.
    OpBuilder b(result.getDefiningOp());
    Location loc = linear->getLoc();
    SmallVector<Value> operands(linear->getOperands());
    Value &kernel = operands[linear.getKernelOperandIndex()];
    if (scale)
      kernel = ktn::MulOp::create(b, loc, kernel,
                                  onAxis(b, scale, linear.getKernelOutputAxis(),
                                         tensorType(kernel).getRank()));
    FailureOr<Operation *> scaled = rebuild(b, linear, operands);
    if (failed(scaled))
      return failure();
    Value value = (*scaled)->getResult(0);
    if (shift)
      value = ktn::AddOp::create(
          b, result.getLoc(), value,
          onAxis(b, shift, axis, tensorType(value).getRank()));
    result.replaceAllUsesWith(value);
    return success();
  }

private:
  /// Whether operand `index` of `user` has one value a channel, or one for all.
  bool isPerChannel(ktn::AffineOpInterface user, unsigned index) const {
    RankedTensorType type = tensorType(user->getOperand(index));
    for (int64_t own = 0; own < type.getRank(); ++own)
      if (type.getDimSize(own) != 1 && user.getAxisInResult(index, own) != axis)
        return false;
    return true;
  }

  /// A value for each channel, or one for all, as a vector or a scalar.
  static Value asVector(OpBuilder &b, Value value) {
    RankedTensorType type = tensorType(value);
    int64_t count = type.getNumElements();
    if (count == 1)
      return ktn::ReshapeOp::create(b, value.getLoc(), value,
                                    ArrayRef<int64_t>{});
    return ktn::ReshapeOp::create(b, value.getLoc(), value, {count});
  }

  /// The vector as a tensor of rank `rank` that broadcasts along all axes but
  /// one.
  static Value onAxis(OpBuilder &b, Value vector, int64_t axis, int64_t rank) {
    if (tensorType(vector).getRank() == 0 || axis == rank - 1)
      return vector;
    SmallVector<int64_t> shape(rank, 1);
    shape[axis] = tensorType(vector).getNumElements();
    return ktn::ReshapeOp::create(b, vector.getLoc(), vector, shape);
  }

  ktn::LinearInKernelOpInterface linear;
  Value result, scale, shift;
  int64_t axis, length = 0;
};

/// Whether `scale` broadcasts along all axes of `x` but `axis`.
bool isOfChannels(Value scale, Value x, int64_t axis) {
  RankedTensorType type = tensorType(scale);
  int64_t missing = tensorType(x).getRank() - type.getRank();
  for (int64_t own = 0; own < type.getRank(); ++own)
    if (type.getDimSize(own) != 1 && own + missing != axis)
      return false;
  return true;
}

/// Whether scaling `kernel` is much less work than scaling `x`. Weights that
/// are computed are not packed ahead of time, so there has to be a gain.
bool isWorthScaling(Value kernel, Value x) {
  constexpr int64_t factor = 4;
  RankedTensorType small = tensorType(kernel), large = tensorType(x);
  return small.hasStaticShape() && large.hasStaticShape() &&
         large.getNumElements() / factor >= small.getNumElements();
}

/// linear(x * scale, kernel) with a scale for each entry of the axis that is
/// summed, constant or computed, is linear(x, scale * kernel).
LogicalResult foldScaleOfInput(ktn::LinearInKernelOpInterface linear) {
  auto summed = linear.getSummedAxes();
  auto product = linear->getOperand(0).getDefiningOp<ktn::AffineOpInterface>();
  if (!summed || !product || !product.isProduct() || !product->hasOneUse())
    return success();
  auto [axis, kernelAxis] = *summed;
  SmallVector<Value> operands(linear->getOperands());
  Value &kernel = operands[linear.getKernelOperandIndex()];
  for (unsigned index : {0, 1}) {
    Value scale = product->getOperand(index),
          x = product->getOperand(1 - index);
    if (x.getType() != product->getResult(0).getType() ||
        !isOfChannels(scale, x, axis) ||
        !(isConstantExpression(scale) || isWorthScaling(kernel, x)))
      continue;
    OpBuilder b(linear);
    Location loc = product->getLoc();
    SmallVector<int64_t> shape(tensorType(kernel).getRank(), 1);
    shape[kernelAxis] = tensorType(scale).getNumElements();
    scale = ktn::ReshapeOp::create(b, loc, scale, shape);
    kernel = ktn::MulOp::create(b, loc, kernel, scale);
    operands[0] = x;
    FailureOr<Operation *> folded = rebuild(b, linear, operands);
    if (failed(folded))
      return failure();
    linear->replaceAllUsesWith(*folded);
    return success();
  }
  return success();
}

struct FoldAffine : impl::FoldAffineBase<FoldAffine> {
  void runOnOperation() override {
    for (ktn::LinearInKernelOpInterface linear : findConstantKernels()) {
      if (linear.getKernelOutputAxis() < 0)
        continue;
      AffineChain chain(linear);
      while (chain.extend())
        ;
      if (chain.isWorthFolding() && failed(chain.fold()))
        return signalPassFailure();
    }
    eraseUnused();
    for (ktn::LinearInKernelOpInterface linear : findConstantKernels())
      if (failed(foldScaleOfInput(linear)))
        return signalPassFailure();
    eraseUnused();
  }

private:
  /// Ops whose kernel is a constant expression of floats.
  SmallVector<ktn::LinearInKernelOpInterface> findConstantKernels() {
    SmallVector<ktn::LinearInKernelOpInterface> found;
    getOperation().walk([&](ktn::LinearInKernelOpInterface op) {
      Value kernel = op->getOperand(op.getKernelOperandIndex());
      if (isa<FloatType>(tensorType(kernel).getElementType()) &&
          isConstantExpression(kernel))
        found.push_back(op);
    });
    return found;
  }

  void eraseUnused() {
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>(
        [](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }
};

} // namespace
} // namespace keratin
