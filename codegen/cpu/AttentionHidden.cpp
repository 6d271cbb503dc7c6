//===- AttentionHidden.cpp - keys that a block of queries does not see ----===//
//
// A mask gives pairs of a query and a key a score of its own, so low that they
// have no weight: a causal one does so for half of all pairs. Whether it does
// follows from something else than their score, so that is asked first: what
// none of the queries of a block sees is left out where it is at the beginning
// or at the end of some keys.
//
// A query that sees nothing has equal weights for all keys: then nothing is
// left out. And when the largest scores are known they are compared with that
// of hidden pairs; where that is not far below, the block is computed once
// more.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/AttentionLanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace keratin {

/// What `value`, of the body of `op`, follows from: ops in order, and arguments
/// of the body.
static llvm::SetVector<Operation *>
stepsTo(linalg::GenericOp op, Value value,
        llvm::SmallDenseSet<Value> &arguments) {
  llvm::SmallDenseSet<Value> needed = {value};
  SmallVector<Operation *> steps;
  for (Operation &step : llvm::reverse(op.getBody()->without_terminator()))
    if (llvm::any_of(step.getResults(),
                     [&](Value result) { return needed.contains(result); })) {
      needed.insert(step.operand_begin(), step.operand_end());
      steps.push_back(&step);
    }
  for (BlockArgument argument : op.getBody()->getArguments())
    if (needed.contains(argument))
      arguments.insert(argument);
  return {steps.rbegin(), steps.rend()};
}

/// Looks for a choice between what follows from the score and a number.
void LaneAttention::findHidden() {
  auto op = attention.rows.given.getDefiningOp<linalg::GenericOp>();
  auto choice = op.getBody()
                    ->getTerminator()
                    ->getOperand(0)
                    .getDefiningOp<arith::SelectOp>();
  if (op == scores || !choice || choice->getBlock() != op.getBody())
    return;
  llvm::SmallDenseSet<Value> arguments;
  stepsTo(op, choice.getCondition(), arguments);
  for (OpOperand &operand : op->getOpOperands())
    if (arguments.contains(op.getMatchingBlockArgument(&operand)) &&
        (!op.isDpsInput(&operand) || dependsOn(operand.get(), scores)))
      return;
  APFloat score(0.0F);
  for (bool when : {false, true})
    if (matchPattern(when ? choice.getTrueValue() : choice.getFalseValue(),
                     m_ConstantFloat(&score)))
      hidden = {op, choice.getCondition(), when, score.convertToDouble()};
}

/// Writes down what is not hidden as a tensor, which is computed where it is
/// read.
void LaneAttention::makeSeen() {
  linalg::GenericOp op = hidden->op;
  llvm::SmallDenseSet<Value> arguments;
  auto steps = stepsTo(op, hidden->condition, arguments);
  SmallVector<Value> inputs, elements;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    if (Value element = op.getMatchingBlockArgument(input);
        arguments.contains(element)) {
      inputs.push_back(input->get());
      elements.push_back(element);
      maps.push_back(op.getMatchingIndexingMap(input));
    }
  OpBuilder before(op);
  maps.push_back(before.getMultiDimIdentityMap(op.getNumLoops()));
  Value empty = tensor::EmptyOp::create(
      before, loc, tensor::getMixedSizes(before, loc, op.getDpsInits()[0]),
      before.getI1Type());
  auto seen = linalg::GenericOp::create(
      before, loc, empty.getType(), inputs, empty, maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location place, ValueRange values) {
        IRMapping mapping;
        mapping.map(elements, values.drop_back());
        for (Operation *step : steps)
          inner.clone(*step, mapping);
        Value condition = mapping.lookupOrDefault(hidden->condition);
        if (hidden->when) {
          Value yes =
              arith::ConstantOp::create(inner, place, inner.getBoolAttr(true));
          condition = arith::XOrIOp::create(inner, place, condition, yes);
        }
        linalg::YieldOp::create(inner, place, condition);
      });
  hidden->seen = seen->getResult(0);
}

/// Which queries of `block` see `key`: vectors of i1.
LaneAttention::Sums LaneAttention::seenAt(LaneReader &reader,
                                          const Block &block, Value key) {
  LaneReader::Scope scope(reader);
  unsigned queryLoop = attention.scoresLoop(queryAxis());
  reader.bind(attention.scoresLoop(keyAxis()), key);
  Position position = *positionOf(attention.rows.given, scores);
  Sums seen;
  for (int64_t vector = 0; vector < block.tile.vectors; ++vector) {
    Position point = pointOf(scores);
    point[queryLoop] = canonical(dim(queryLoop) + vector * lanes);
    seen.push_back(reader.materialize(
        reader.read(hidden->seen, atPoint(position, point), lanes), lanes));
  }
  return seen;
}

/// All lanes of `vectors` of i1 as one.
Value LaneAttention::joined(ValueRange vectors, vector::CombiningKind kind) {
  Value all = vectors.front();
  for (Value other : vectors.drop_front())
    all = vector::makeArithReduction(b, loc, kind, all, other);
  return vector::ReductionOp::create(b, loc, kind, all);
}

Value LaneAttention::negated(Value condition) {
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, loc, condition, yes);
}

/// Whether each query of `block` sees some key. Most see one of the first.
Value LaneAttention::allSeeSome(const Block &block) {
  LaneReader reader(kernel);
  bindMasked(reader, &Attention::scoresLoop, block);
  Value end = kernel.index(keyCount()), one = kernel.index(1);
  auto type = VectorType::get(lanes, b.getI1Type());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Sums start(1 + block.tile.vectors, none);
  start[0] = kernel.index(0);
  auto keys = scf::WhileOp::create(
      b, loc, TypeRange(ValueRange(start)), start,
      [&](OpBuilder &, Location, ValueRange before) {
        Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             before[0], end);
        Value some =
            negated(joined(before.drop_front(), vector::CombiningKind::AND));
        Value goesOn = arith::AndIOp::create(b, loc, isLeft, some);
        scf::ConditionOp::create(b, loc, goesOn, before);
      },
      [&](OpBuilder &, Location, ValueRange before) {
        Sums next = seenAt(reader, block, before[0]);
        for (auto [vector, known] : llvm::zip(next, before.drop_front()))
          vector = arith::OrIOp::create(b, loc, vector, known);
        next.insert(next.begin(),
                    arith::AddIOp::create(b, loc, before[0], one));
        scf::YieldOp::create(b, loc, next);
      });
  return joined(keys.getResults().drop_front(), vector::CombiningKind::AND);
}

/// Leaves out keys of `block` that none of its queries sees, if `mayLeaveOut`,
/// in whole tiles at both ends.
void LaneAttention::leaveOutHidden(Block &block, Value mayLeaveOut) {
  LaneReader reader(kernel);
  bindMasked(reader, &Attention::scoresLoop, block);
  Value one = kernel.index(1);
  Value first = block.from;
  Value last = arith::SubIOp::create(b, loc, block.to, one);
  // The first of the keys from `start` on in a direction that is seen, or
  // `end`.
  auto walk = [&](Value start, Value end, bool back) -> Value {
    auto steps = scf::WhileOp::create(
        b, loc, b.getIndexType(), start,
        [&](OpBuilder &, Location, ValueRange key) {
          Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                               key[0], end);
          Value isHidden = negated(
              joined(seenAt(reader, block, key[0]), vector::CombiningKind::OR));
          Value goesOn = arith::AndIOp::create(b, loc, isLeft, isHidden);
          goesOn = arith::AndIOp::create(b, loc, goesOn, mayLeaveOut);
          scf::ConditionOp::create(b, loc, goesOn, key);
        },
        [&](OpBuilder &, Location, ValueRange key) {
          Value next = back ? Value(arith::SubIOp::create(b, loc, key[0], one))
                            : Value(arith::AddIOp::create(b, loc, key[0], one));
          scf::YieldOp::create(b, loc, next);
        });
    return steps.getResult(0);
  };
  last = walk(last, first, /*back=*/true);
  first = walk(first, last, /*back=*/false);
  // Blocks of keys begin with a tile.
  Value step = kernel.index(block.tile.keys);
  first = arith::SubIOp::create(b, loc, first,
                                arith::RemUIOp::create(b, loc, first, step));
  Value end = arith::SubIOp::create(b, loc, last,
                                    arith::RemUIOp::create(b, loc, last, step));
  end = arith::AddIOp::create(b, loc, end, step);
  block.from = first;
  block.to = arith::MinUIOp::create(b, loc, block.to, end);
}

/// Whether some query may have weights for what is hidden: where its largest
/// score `most` is not so far above that that a power of the difference is 0.
Value LaneAttention::needsHidden(ValueRange most) {
  constexpr double far = 128;
  Sums isAbove;
  for (Value largest : most)
    isAbove.push_back(arith::CmpFOp::create(
        b, loc, arith::CmpFPredicate::OGT,
        arith::SubFOp::create(b, loc, largest, splat(hidden->score)),
        splat(far)));
  return negated(joined(isAbove, vector::CombiningKind::AND));
}

} // namespace keratin
