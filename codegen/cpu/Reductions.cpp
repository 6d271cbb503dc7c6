//===- Reductions.cpp - partial results and how they are joined -----------===//
#include "codegen/cpu/Reductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

static TypedAttr neutralOf(Operation *op, Type type) {
  Builder b(type.getContext());
  if (auto number = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = number.getFloatSemantics();
    auto infinity = [&](bool negative) {
      return b.getFloatAttr(type, APFloat::getInf(semantics, negative));
    };
    if (isa<arith::AddFOp>(op))
      return b.getFloatAttr(type, 0.0);
    if (isa<arith::MulFOp>(op))
      return b.getFloatAttr(type, 1.0);
    if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
      return infinity(/*negative=*/true);
    if (isa<arith::MinimumFOp, arith::MinNumFOp>(op))
      return infinity(/*negative=*/false);
    return {};
  }
  if (!type.isInteger())
    return {};
  unsigned bits = type.getIntOrFloatBitWidth();
  auto value = [&](const APInt &number) {
    return b.getIntegerAttr(type, number);
  };
  if (isa<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(op))
    return value(APInt::getZero(bits));
  if (isa<arith::MulIOp>(op))
    return value(APInt(bits, 1));
  if (isa<arith::AndIOp, arith::MinUIOp>(op))
    return value(APInt::getAllOnes(bits));
  if (isa<arith::MaxSIOp>(op))
    return value(APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(op))
    return value(APInt::getSignedMaxValue(bits));
  return {};
}

std::optional<Combiner> Combiner::of(linalg::GenericOp op, unsigned number) {
  Value yielded = op.getBody()->getTerminator()->getOperand(number);
  Value sum = op.getRegionOutputArgs()[number];
  Operation *join = yielded.getDefiningOp();
  if (!join || join->getNumOperands() != 2 || !sum.hasOneUse() ||
      *sum.user_begin() != join)
    return std::nullopt;
  TypedAttr neutral = neutralOf(join, yielded.getType());
  if (!neutral)
    return std::nullopt;
  return Combiner(join, neutral);
}

Value Combiner::join(OpBuilder &b, Value lhs, Value rhs) const {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands({lhs, rhs});
  state.addTypes(lhs.getType());
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  return b.create(state)->getResult(0);
}

Value Combiner::joinAll(OpBuilder &b, SmallVector<Value> parts) const {
  while (parts.size() > 1) {
    SmallVector<Value> joined;
    for (size_t pair = 0; pair + 1 < parts.size(); pair += 2)
      joined.push_back(join(b, parts[pair], parts[pair + 1]));
    if (parts.size() % 2)
      joined.push_back(parts.back());
    parts = joined;
  }
  return parts[0];
}

Value Combiner::joinLanes(OpBuilder &b, Value vector) const {
  Location loc = op->getLoc();
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  auto part = [&](int64_t from, int64_t size) -> Value {
    return vector::ExtractStridedSliceOp::create(
        b, loc, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{size},
        ArrayRef<int64_t>{1});
  };
  for (; width > 1; width /= 2)
    vector = join(b, part(0, width / 2), part(width / 2, width / 2));
  return vector::ExtractOp::create(b, loc, vector, int64_t(0));
}

Value Combiner::identity(OpBuilder &b, unsigned width) const {
  if (width == 0)
    return arith::ConstantOp::create(b, op->getLoc(), neutral);
  auto type = VectorType::get(width, neutral.getType());
  return arith::ConstantOp::create(b, op->getLoc(),
                                   DenseElementsAttr::get(type, neutral));
}

} // namespace keratin
