//===- RunningRows.cpp - a softmax over blocks of a row -------------------===//
#include "codegen/cpu/RunningRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace keratin {

/// A tensor of the type of `like` that nobody has computed.
static Value emptyLike(OpBuilder &b, Location loc, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, loc, like, dim));
  return tensor::EmptyOp::create(b, loc, type, sizes);
}

using Body = llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

/// What `body` computes from the elements of `first`, and of `second` where
/// `map` leads.
static Value elementwise(OpBuilder &b, Location loc, Value first, Value second,
                         AffineMap map, Body body) {
  auto rank = cast<RankedTensorType>(first.getType()).getRank();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, first.getType(), ValueRange{first, second},
      emptyLike(b, loc, first), ArrayRef<AffineMap>{identity, map, identity},
      loops, [&](OpBuilder &inner, Location place, ValueRange elements) {
        ImplicitLocOpBuilder builder(place, inner);
        Value element = body(builder, elements);
        linalg::YieldOp::create(inner, place, element);
      });
  return op->getResult(0);
}

/// For positions in the sums of values, those in what there is one of in a row
/// of scores.
static AffineMap rowsOfSums(const Attention &attention, Value perRow) {
  linalg::GenericOp values = attention.values;
  AffineMap output =
      values.getIndexingMapMatchingResult(values->getOpResult(0));
  MLIRContext *context = values.getContext();
  unsigned rank = cast<RankedTensorType>(perRow.getType()).getRank();
  SmallVector<AffineExpr> places;
  for (unsigned axis = 0; axis < rank; ++axis) {
    AffineExpr place = getAffineConstantExpr(0, context);
    if (axis + 1 < attention.axes()) {
      AffineExpr loop = getAffineDimExpr(attention.valuesLoop(axis), context);
      const auto *found = llvm::find(output.getResults(), loop);
      assert(found != output.getResults().end() && "each row has its sums");
      place = getAffineDimExpr(found - output.getResults().begin(), context);
    }
    places.push_back(place);
  }
  return AffineMap::get(output.getNumResults(), 0, places, context);
}

RunningRows makeRunning(Kernel &kernel, Attention &attention) {
  RowSoftmax softmax = *attention.softmax;
  Location loc = kernel.loc();
  RunningRows running;
  OpBuilder b(softmax.largest);
  OpOperand *start = softmax.largest.getDpsInitOperand(0);
  running.least = start->get().getDefiningOp<linalg::FillOp>().getInputs()[0];
  running.most = emptyLike(b, loc, start->get());
  running.total = emptyLike(b, loc, softmax.total.getDpsInits()[0]);
  start->set(running.most);

  b.setInsertionPointAfter(softmax.largest);
  running.nextMost = softmax.largest->getResult(0);
  Type element = getElementTypeOrSelf(running.most);
  AffineMap rows = b.getMultiDimIdentityMap(
      cast<RankedTensorType>(running.most.getType()).getRank());
  Value from = elementwise(
      b, loc, running.nextMost, running.most, rows,
      [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
        const llvm::fltSemantics &semantics =
            cast<FloatType>(element).getFloatSemantics();
        Value nothing = arith::ConstantOp::create(
            b, b.getFloatAttr(element, APFloat::getInf(semantics, true)));
        Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
        Value isNothing =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, in[0], nothing);
        return arith::SelectOp::create(b, isNothing, zero, in[0]);
      });
  running.factor =
      elementwise(b, loc, running.most, from, rows,
                  [](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
                    Value least = arith::SubFOp::create(b, in[0], in[1]);
                    auto power = math::ExpOp::create(b, least);
                    power->setAttr("ktn.flush", b.getUnitAttr());
                    return power;
                  });
  auto times = [](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
    return arith::MulFOp::create(b, in[0], in[1]);
  };
  Value total = elementwise(b, loc, running.total, running.factor, rows, times);
  softmax.subtracted->set(from);
  softmax.total.getDpsInitsMutable()[0].set(total);
  running.nextTotal = softmax.total->getResult(0);

  // What the quotient is multiplied by, the powers are.
  softmax.quotient->getResult(0).replaceAllUsesWith(
      softmax.quotient->getOperand(0));
  softmax.quotient->erase();
  SmallVector<linalg::GenericOp> ops = {softmax.largest};
  for (Value value : {from, running.factor, total})
    ops.push_back(value.getDefiningOp<linalg::GenericOp>());
  ops.append({softmax.powers, softmax.total});
  Value yielded = softmax.weights.getBody()->getTerminator()->getOperand(0);
  RowBlock &block = attention.rows;
  if (yielded == softmax.weights.getMatchingBlockArgument(softmax.divided)) {
    attention.weights->set(softmax.powers->getResult(0));
    softmax.weights->erase();
  } else {
    ops.push_back(softmax.weights);
  }
  block.ops = ops;
  block.result = attention.weights->get();

  b.setInsertionPoint(attention.values);
  OpOperand *init = attention.values.getDpsInitOperand(0);
  running.sums = emptyLike(b, loc, init->get());
  init->set(elementwise(b, loc, running.sums, running.factor,
                        rowsOfSums(attention, running.factor), times));
  attention.softmax.reset();
  return running;
}

} // namespace keratin
