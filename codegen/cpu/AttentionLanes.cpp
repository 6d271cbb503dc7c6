//===- AttentionLanes.cpp - attention with a query in each lane -----------===//
//
// A block of queries, a few vectors of them, is transposed to a panel. Their
// scores are then sums of scalars of keys times vectors of queries, their
// maxima and totals are vectors, and what they sum up of the values are scalars
// of values times vectors of powers:
//
//     scores[key][queries] = sum over d of keys[key][d] panel[d][queries]
//     sums[d][queries] = sum over keys of values[key][d] powers[key][queries]
//
// So nothing of keys or values is copied, no lanes are joined, and heads of any
// size fill whole vectors. A block of queries sees as many keys at a time as
// the first cache has room for scores; sums of the blocks before are multiplied
// by a factor when a larger score comes. At the end the sums are transposed.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/AttentionLanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Whether it fits, and sizes
//===----------------------------------------------------------------------===//

Value LaneAttention::splat(double value) {
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(vectorType(),
                             Attribute(b.getFloatAttr(element, value))));
}

Value LaneAttention::load(Value memory, Value row, int64_t vector) {
  return vector::LoadOp::create(b, loc, vectorType(), memory,
                                ValueRange{row, kernel.index(vector * lanes)});
}

void LaneAttention::store(Value vector, Value memory, Value row,
                          int64_t number) {
  vector::StoreOp::create(b, loc, vector, memory,
                          ValueRange{row, kernel.index(number * lanes)});
}

Value LaneAttention::difference(Value index, Value start) {
  return b.createOrFold<arith::SubIOp>(loc, index, start);
}

void LaneAttention::bindAround(LaneReader &reader, LoopOf loopOf,
                               const Block &block) {
  const RowBlock &rows = attention.rows;
  for (unsigned axis = 0; axis < keyAxis(); ++axis)
    reader.bind((attention.*loopOf)(axis),
                axis == rows.axis ? block.first : rows.around[axis]);
  reader.setLane((attention.*loopOf)(rows.axis));
}

void LaneAttention::bindMasked(LaneReader &reader, LoopOf loopOf,
                               const Block &block) {
  bindAround(reader, loopOf, block);
  for (const LaneMask &mask : masks)
    readMask(reader, mask, block);
}

/// The loops of `op`.
Position LaneAttention::pointOf(linalg::GenericOp op) {
  Position point;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    point.push_back(staticLoopExtent(op, loop) == 1
                        ? getAffineConstantExpr(0, b.getContext())
                        : dim(loop));
  return point;
}

void LaneAttention::fillMasks(const Block &block) {
  for (const LaneMask &mask : masks)
    if (mask.key)
      fillMask(mask, block);
}

void LaneAttention::emitBlock(Value first, int64_t count) {
  Block block = {first, count, full};
  if (count < full.vectors * lanes)
    block.tile = last;
  fillQueries(block);
  for (const LaneMask &mask : masks)
    if (!mask.key)
      fillMaskOfQueries(mask, block);
  block.from = block.masksFrom = kernel.index(0);
  block.to = kernel.index(keyCount());
  if (!hasBlocksOfKeys())
    fillMasks(block);
  if (!hidden)
    return finish(block, emitAllKeys(block, {}).second);
  // Without what is hidden, and once more with it where that is needed.
  Value start = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  bool isAtHand =
      llvm::none_of(masks, [](const LaneMask &mask) { return mask.key; });
  if (isAtHand || !hasBlocksOfKeys())
    start = allSeeSome(block);
  SmallVector<Type> types(block.tile.vectors, vectorType());
  auto turns = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange mayLeaveOut) {
        auto [most, totals] = emitAllKeys(block, mayLeaveOut[0]);
        Value again =
            arith::AndIOp::create(b, loc, mayLeaveOut[0], needsHidden(most));
        scf::ConditionOp::create(b, loc, again, totals);
      },
      [&](OpBuilder &, Location, ValueRange) {
        scf::YieldOp::create(b, loc, no);
      });
  finish(block, turns.getResults());
}

/// The largest scores of the queries, and the sums of their powers.
std::pair<LaneAttention::Sums, LaneAttention::Sums>
LaneAttention::emitAllKeys(Block block, Value mayLeaveOut) {
  int64_t vectors = block.tile.vectors;
  Value least = kernel.scalar(softmax.largest.getDpsInits()[0]
                                  .getDefiningOp<linalg::FillOp>()
                                  .getInputs()[0]);
  Sums most(vectors, vector::BroadcastOp::create(b, loc, vectorType(), least));
  Sums totals(vectors, splat(0));
  if (!hasBlocksOfKeys()) {
    emitKeys(block, most, totals, mayLeaveOut);
    return {most, totals};
  }
  clearSums(block);
  Sums carried = most;
  carried.append(totals);
  Value all = block.to, step = kernel.index(keysAtOnce);
  carried = emitLoop(b, loc, block.from, all, step, carried,
                     [&](Value from, ValueRange before) -> Sums {
                       Sums most(before.take_front(vectors));
                       Sums totals(before.drop_front(vectors));
                       block.from = block.masksFrom = from;
                       block.to = arith::AddIOp::create(b, loc, from, step);
                       block.to = arith::MinUIOp::create(b, loc, block.to, all);
                       fillMasks(block);
                       emitKeys(block, most, totals, mayLeaveOut);
                       most.append(totals);
                       return most;
                     });
  return {Sums(ArrayRef(carried).take_front(vectors)),
          Sums(ArrayRef(carried).drop_front(vectors))};
}

void LaneAttention::clearSums(const Block &block) {
  emitTurns(kernel, kernel.index(0), kernel.index(columns), 1,
            [&](Value column) {
              for (int64_t vector = 0; vector < block.tile.vectors; ++vector)
                store(splat(0), sumsOfBlock, column, vector);
            });
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Adds the keys of `block` to the sums and to `totals`. While all scores are
/// -inf so is `most`, and 0 takes its place: powers and factors are 0 then.
void LaneAttention::emitKeys(Block block, Sums &most, Sums &totals,
                             Value mayLeaveOut) {
  Sums before = most, from, factors;
  if (mayLeaveOut)
    leaveOutHidden(block, mayLeaveOut);
  most = emitScores(block, before);
  from = most;
  if (hasBlocksOfKeys())
    for (auto [number, value] : llvm::enumerate(from)) {
      Value nothing = splat(-std::numeric_limits<double>::infinity());
      Value isNothing = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              value, nothing);
      value = arith::SelectOp::create(b, loc, isNothing, splat(0), value);
      factors.push_back(
          power(arith::SubFOp::create(b, loc, before[number], value)));
      totals[number] =
          arith::MulFOp::create(b, loc, totals[number], factors[number]);
    }
  totals = emitPowers(block, from, totals);
  emitSums(block, factors);
}

/// e^difference, as the softmax has it.
Value LaneAttention::power(Value difference) {
  auto power = math::ExpOp::create(b, loc, difference);
  for (auto exp : softmax.powers.getBody()->getOps<math::ExpOp>())
    power->setDiscardableAttrs(exp->getDiscardableAttrDictionary());
  return power;
}

/// Steps of the reduction `loop` over `range`, which end at a multiple of
/// `unrolled` from its beginning, for the `sums`, rows by vectors.
LaneAttention::Sums
LaneAttention::along(linalg::GenericOp op, LaneReader &reader, unsigned loop,
                     std::pair<Value, Value> range, int64_t unrolled, Sums sums,
                     llvm::function_ref<Position(int64_t, int64_t)> pointAt,
                     int64_t rows, int64_t vectors) {
  return emitLoop(
      b, loc, range.first, range.second, kernel.index(unrolled), sums,
      [&](Value at, ValueRange before) -> Sums {
        LaneReader::Scope scope(reader);
        reader.bind(loop, at);
        Sums next(before);
        for (int64_t step = 0; step < unrolled; ++step)
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t vector = 0; vector < vectors; ++vector) {
              Position point = pointAt(row, vector);
              point[loop] = canonical(dim(loop) + step);
              Value &sum = next[row * vectors + vector];
              sum = reader.materialize(
                  reader.evaluate(op, point, {Lanes{sum, {}}}, lanes)[0],
                  lanes);
            }
        return next;
      });
}

/// The scores of a tile, which go to the panel, and the largest with `most`.
LaneAttention::Sums LaneAttention::scoresOfTile(LaneReader &reader,
                                                const Block &block,
                                                int64_t keys, ValueRange most) {
  constexpr int64_t unrolled = 4;
  unsigned queryLoop = attention.scoresLoop(queryAxis());
  unsigned keyLoop = attention.scoresLoop(keyAxis());
  int64_t vectors = block.tile.vectors;
  auto pointAt = [&](int64_t key, int64_t vector) {
    Position point = pointOf(scores);
    point[queryLoop] = canonical(dim(queryLoop) + vector * lanes);
    point[keyLoop] = canonical(dim(keyLoop) + key);
    return point;
  };
  OpOperand *init = scores.getDpsInitOperand(0);
  Lanes start = reader.read(
      init->get(),
      atPoint(scores.getMatchingIndexingMap(init).getResults(), pointAt(0, 0)),
      lanes);
  Sums sums(keys * vectors, reader.materialize(start, lanes));
  if (asksForKeys)
    prefetchKeys(reader, keys);
  int64_t whole = depth / unrolled * unrolled;
  if (whole != 0)
    sums =
        along(scores, reader, depthLoop, {kernel.index(0), kernel.index(whole)},
              unrolled, sums, pointAt, keys, vectors);
  if (whole != depth)
    sums = along(scores, reader, depthLoop,
                 {kernel.index(whole), kernel.index(depth)}, depth - whole,
                 sums, pointAt, keys, vectors);
  Value given = attention.rows.given;
  Position position = *positionOf(given, scores);
  Output output = {given,
                   position,
                   panel,
                   {dim(keyLoop) - reader.symbol(block.from),
                    dim(queryLoop) - reader.symbol(block.first)}};
  Sums next(most);
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t vector = 0; vector < vectors; ++vector) {
      Position point = pointAt(key, vector);
      storeOutputs(reader, scores, output, point, lanes,
                   sums[key * vectors + vector]);
      Lanes score = reader.read(given, atPoint(position, point), lanes);
      next[vector] =
          largest.join(b, next[vector], reader.materialize(score, lanes));
    }
  return next;
}

/// Fills the panel with the scores of the block, and returns the largest of
/// them and `most`.
LaneAttention::Sums LaneAttention::emitScores(const Block &block,
                                              ValueRange most) {
  LaneReader reader(kernel);
  bindAround(reader, &Attention::scoresLoop, block);
  AffineMap map = scores.getMatchingIndexingMap(attention.queries);
  unsigned keyLoop = attention.scoresLoop(keyAxis());
  auto dimOf = [&](unsigned loop) { return *map.getResultPosition(dim(loop)); };
  reader.setPart(
      attention.queries->get(),
      {queriesPanel,
       {dimOf(depthLoop), dimOf(attention.scoresLoop(queryAxis()))},
       {getAffineConstantExpr(0, b.getContext()), reader.symbol(block.first)}});
  for (const LaneMask &mask : masks)
    readMask(reader, mask, block);
  auto tiles = [&](Value from, Value to, int64_t keys, Sums most) {
    return emitLoop(b, loc, from, to, kernel.index(keys), most,
                    [&](Value at, ValueRange before) -> Sums {
                      LaneReader::Scope scope(reader);
                      reader.bind(keyLoop, at);
                      return scoresOfTile(reader, block, keys, before);
                    });
  };
  int64_t step = block.tile.keys, rest = keyCount() % step;
  Value end = block.to;
  if (rest != 0) // only behind the last block
    end = b.createOrFold<arith::MinUIOp>(loc, end,
                                         kernel.index(keyCount() - rest));
  Sums all = tiles(block.from, end, step, Sums(most));
  if (rest != 0)
    all = tiles(end, block.to, rest, all);
  return all;
}

/// Makes powers of the scores in the panel, and adds them to `totals`.
LaneAttention::Sums LaneAttention::emitPowers(const Block &block,
                                              ValueRange from,
                                              ValueRange totals) {
  Value count = difference(block.to, block.from);
  LaneReader reader(kernel);
  bindMasked(reader, &Attention::axisItself, block);
  return emitLoop(
      b, loc, kernel.index(0), count, kernel.index(1), totals,
      [&](Value key, ValueRange before) -> Sums {
        Value number = b.createOrFold<arith::AddIOp>(loc, block.from, key);
        if (asksForRest)
          prefetchAround(block, number);
        LaneReader::Scope scope(reader);
        reader.bind(keyAxis(), number);
        Sums next;
        for (int64_t vector = 0; vector < block.tile.vectors; ++vector) {
          Value score = load(panel, key, vector);
          Value result =
              power(arith::SubFOp::create(b, loc, score, from[vector]));
          store(weightOf(reader, result, vector), panel, key, vector);
          next.push_back(arith::AddFOp::create(b, loc, before[vector], result));
        }
        return next;
      });
}

/// What takes part in the sums of values for `power`: that itself, or what is
/// made of the quotients, as by a mask. `reader` is at the axes of the scores.
Value LaneAttention::weightOf(LaneReader &reader, Value power, int64_t vector) {
  Position position;
  for (unsigned axis = 0; axis < attention.axes(); ++axis)
    position.push_back(canonical(
        dim(axis) + (axis == queryAxis() ? vector * int64_t(lanes) : 0)));
  reader.remember(softmax.divided->get(), position, lanes, {power, {}});
  return reader.materialize(
      reader.read(softmax.weights->getResult(0), position, lanes), lanes);
}

/// Some columns of the sums, which are multiplied by `factors` first; without
/// these there are none before.
void LaneAttention::sumsOfTile(LaneReader &reader, const Block &block,
                               int64_t count, ValueRange factors) {
  unsigned queryLoop = attention.valuesLoop(queryAxis());
  unsigned keyLoop = attention.valuesLoop(keyAxis());
  int64_t vectors = block.tile.vectors;
  auto pointAt = [&](int64_t column, int64_t vector) {
    Position point = pointOf(values);
    point[queryLoop] = canonical(dim(queryLoop) + vector * lanes);
    if (columns != 1)
      point[attention.column] = canonical(dim(attention.column) + column);
    return point;
  };
  auto rowOf = [&](int64_t column) {
    return b.createOrFold<arith::AddIOp>(loc, reader.at(dim(attention.column)),
                                         kernel.index(column));
  };
  Sums sums;
  for (int64_t column = 0; column < count; ++column)
    for (int64_t vector = 0; vector < vectors; ++vector)
      sums.push_back(factors.empty()
                         ? splat(0)
                         : Value(arith::MulFOp::create(
                               b, loc, load(sumsOfBlock, rowOf(column), vector),
                               factors[vector])));
  sums = along(values, reader, keyLoop, {block.from, block.to}, 1, sums,
               pointAt, count, vectors);
  for (int64_t column = 0; column < count; ++column)
    for (int64_t vector = 0; vector < vectors; ++vector)
      store(sums[column * vectors + vector], sumsOfBlock, rowOf(column),
            vector);
}

/// Adds the values of the block, times the powers in the panel.
void LaneAttention::emitSums(const Block &block, ValueRange factors) {
  LaneReader reader(kernel);
  bindAround(reader, &Attention::valuesLoop, block);
  reader.setPart(attention.rows.result,
                 {panel,
                  {keyAxis(), queryAxis()},
                  {reader.symbol(block.from), reader.symbol(block.first)}});
  auto tiles = [&](int64_t from, int64_t to, int64_t step) {
    emitTurns(kernel, kernel.index(from), kernel.index(to), step,
              [&](Value column) {
                LaneReader::Scope scope(reader);
                reader.bind(attention.column, column);
                sumsOfTile(reader, block, std::min(step, to - from), factors);
              });
  };
  int64_t step = block.tile.columns, whole = columns / step * step;
  tiles(0, whole, step);
  tiles(whole, columns, step);
}

void LaneAttention::run() {
  renameKeys(kernel, attention);
  if (hidden)
    makeSeen();
  // Sums of values are divided at the end, so what a quotient would be
  // multiplied by the powers are.
  softmax.quotient->getResult(0).replaceAllUsesWith(
      softmax.quotient->getOperand(0));
  softmax.quotient->erase();
  int64_t width = full.vectors * lanes, all = queryCount();
  placeMemory();
  int64_t whole = all / width * width;
  emitAroundQueries(kernel, attention, width, [&](Value from, Value to) {
    Value end = b.createOrFold<arith::MinUIOp>(loc, to, kernel.index(whole));
    if (whole != 0)
      emitTurns(kernel, from, end, width,
                [&](Value first) { emitBlock(first, width); });
    if (whole == all)
      return;
    Value start =
        b.createOrFold<arith::MaxUIOp>(loc, from, kernel.index(whole));
    emitTurns(kernel, start, to, width,
              [&](Value first) { emitBlock(first, all - whole); });
  });
}

bool emitLaneAttention(Kernel &kernel, const VectorUnit &unit,
                       const Attention &attention) {
  if (!attention.softmax)
    return false;
  linalg::GenericOp largest = attention.softmax->largest;
  if (!Combiner::of(largest, 0))
    return false;
  LaneAttention emitter(kernel, unit, attention);
  if (!emitter.plan())
    return false;
  emitter.run();
  return true;
}

} // namespace keratin
