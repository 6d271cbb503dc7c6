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
    Operation *user = use.getOwner();
    if (user->getBlock() != linear->getBlock() || user->getNumResults() != 1 ||
        user->getNumOperands() != 2 ||
        user->getResult(0).getType() != result.getType())
      return false;
    bool isLeft = use.getOperandNumber() == 0;
    Value other = user->getOperand(isLeft ? 1 : 0);
    if (!isConstantExpression(other) || !isAffine(user, other, isLeft))
      return false;
    OpBuilder b(user);
    apply(user, isLeft, b, asVector(b, other));
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
  /// Whether `user` scales or shifts by `other`, by one value a channel.
  bool isAffine(Operation *user, Value other, bool isLeft) const {
    // bias_add says where its channels are; the others align at the right.
    if (auto bias = dyn_cast<ktn::BiasAddOp>(user))
      return isLeft && bias.getChannelAxis() == axis;
    if (!isa<ktn::AddOp, ktn::SubOp, ktn::MulOp>(user) &&
        !(isa<ktn::DivOp>(user) && isLeft))
      return false;
    RankedTensorType type = tensorType(other);
    int64_t missing = tensorType(result).getRank() - type.getRank();
    for (int64_t own = 0; own < type.getRank(); ++own)
      if (type.getDimSize(own) != 1 && own + missing != axis)
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

  void apply(Operation *user, bool isLeft, OpBuilder &b, Value constant) {
    if (isa<ktn::MulOp>(user)) {
      scale = scale ? combine<ktn::MulOp>(user, b, scale, constant) : constant;
      shift = shift ? combine<ktn::MulOp>(user, b, shift, constant) : shift;
    } else if (isa<ktn::DivOp>(user)) {
      scale = combine<ktn::DivOp>(
          user, b, scale ? scale : one(user, b, constant), constant);
      shift = shift ? combine<ktn::DivOp>(user, b, shift, constant) : shift;
    } else if (!isa<ktn::SubOp>(user)) {
      shift = shift ? combine<ktn::AddOp>(user, b, shift, constant) : constant;
    } else if (isLeft) {
      shift = shift ? combine<ktn::SubOp>(user, b, shift, constant)
                    : ktn::NegOp::create(b, user->getLoc(), constant);
    } else {
      // constant - (x * scale + shift)
      scale = ktn::NegOp::create(b, user->getLoc(),
                                 scale ? scale : one(user, b, constant));
      shift = shift ? combine<ktn::SubOp>(user, b, constant, shift) : constant;
    }
  }

  template <typename OpT>
  static Value combine(Operation *user, OpBuilder &b, Value left, Value right) {
    return OpT::create(b, user->getLoc(), left, right);
  }

  static Value one(Operation *user, OpBuilder &b, Value like) {
    Type element = tensorType(like).getElementType();
    return ktn::createConstant(b, user->getLoc(),
                               RankedTensorType::get({}, element), 1.0);
  }

  ktn::LinearInKernelOpInterface linear;
  Value result, scale, shift;
  int64_t axis, length = 0;
};

struct FoldAffine : impl::FoldAffineBase<FoldAffine> {
  void runOnOperation() override {
    SmallVector<ktn::LinearInKernelOpInterface> all;
    getOperation().walk(
        [&](ktn::LinearInKernelOpInterface op) { all.push_back(op); });
    for (ktn::LinearInKernelOpInterface linear : all) {
      Value kernel = linear->getOperand(linear.getKernelOperandIndex());
      if (linear.getKernelOutputAxis() < 0 ||
          !isa<FloatType>(tensorType(kernel).getElementType()) ||
          !isConstantExpression(kernel))
        continue;
      AffineChain chain(linear);
      while (chain.extend())
        ;
      if (chain.isWorthFolding() && failed(chain.fold()))
        return signalPassFailure();
    }
    eraseUnused();
  }

private:
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
