//===- DotSums.cpp - what dot products compute ----------------------------===//
#include "codegen/cpu/DotLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// The loops of the sum, outermost first, and below them the steps. `number`
/// counts turns of those that are done.
DotEmitter::Values DotEmitter::sumUp(ArrayRef<unsigned> loops,
                                     ArrayRef<Value> left, Value right,
                                     Value number, int64_t columns,
                                     ValueRange sums) {
  bool steps = loops.size() == plan.inner;
  int64_t turns = steps ? plan.depth / plan.step : extent(loops[0]);
  int64_t stride = steps ? plan.step : plan.strides[loops[0]];
  auto turn = [&](Value iv, ValueRange inner) -> Values {
    Value count = iv;
    if (steps)
      iv = inRuns(iv, turns);
    Values places;
    for (Value place : left)
      places.push_back(kernel.plus(place, times(iv, stride)));
    Value at = kernel.plus(times(number, turns), iv);
    if (!steps)
      return sumUp(loops.drop_front(), places, right, at, columns, inner);
    Value place = kernel.plus(right, times(at, plan.step * plan.block));
    prefetch(at);
    if (usesTiles()) {
      stepOfTiles(places, place, columns);
      finishSome(kernel.plus(times(number, turns), count), columns);
      return {};
    }
    return stepOfVectors(places[0], place, columns, inner);
  };
  bool asks = loops.size() == plan.sums.size() && !asked.empty();
  Values all(sums);
  if (turns == 1)
    all = turn(kernel.index(0), sums);
  else if (turns != 0 && asks)
    all = loopAsking(turns, columns, sums, turn);
  else if (turns != 0)
    all = emitLoop(b, loc, kernel.index(0), kernel.index(turns),
                   kernel.index(1), sums, turn);
  if (!steps || plan.depth % plan.step == 0)
    return all;
  int64_t done = turns * plan.step;
  return stepOfVectors(kernel.plus(left[0], kernel.index(done)),
                       kernel.plus(right, kernel.index(done * plan.block)),
                       columns, all, /*isHalf=*/true);
}

/// Weights that come from memory and are read once arrive sooner in several
/// runs.
int64_t DotEmitter::runsOfSteps(std::optional<int64_t> rows) {
  constexpr int64_t leastBytes = 1 << 20, leastSteps = 32;
  bool once = rows && *rows <= plan.height * mostTiles() && plan.outer.empty();
  return once && !plan.panel && !plan.split && plan.sums.size() == plan.inner &&
                 plan.depth / plan.step >= leastSteps &&
                 2 * depth() * plan.columns >= leastBytes
             ? runsAtOnce
             : 1;
}

/// The step that is done as number `step`.
Value DotEmitter::inRuns(Value step, int64_t steps) {
  if (runs == 1)
    return step;
  int64_t whole = steps / runs * runs;
  Value place = sideBySide(kernel, step, whole, runs);
  if (whole == steps)
    return place;
  Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, step,
                                       kernel.index(whole));
  return arith::SelectOp::create(b, loc, isLeft, step, place);
}

void DotEmitter::stepOfTiles(ArrayRef<Value> left, Value right,
                             int64_t columns) {
  int64_t apart = plan.run != 0 ? plan.strides[plan.rows.back()] : 0;
  int64_t vectors = int64_t(llvm::divideCeil(columns, dotLanes));
  for (int64_t column = 0; column < vectors; ++column)
    loadTile(kernel, firstColumnTile + column, rightMemory,
             kernel.plus(right, kernel.index(column * dotLanes * 2)),
             plan.block * 4);
  for (auto [tile, place] : llvm::enumerate(left)) {
    auto row = int64_t(tile);
    loadTile(kernel, firstRowTile + row, leftMemory, place, apart * 2);
    for (int64_t column = 0; column < vectors; ++column)
      addTileDots(kernel, row * 2 + column, firstRowTile + row,
                  firstColumnTile + column);
  }
}

DotEmitter::Values DotEmitter::stepOfVectors(Value left, Value right,
                                             int64_t columns, ValueRange sums,
                                             bool isHalf) {
  int64_t vectors = int64_t(llvm::divideCeil(columns, dotLanes));
  int64_t apart = plan.run != 0 ? plan.strides[plan.rows.back()] : 0;
  Values factors, next;
  for (int64_t column = 0; column < vectors; ++column)
    factors.push_back(
        loadPairs(kernel, rightMemory,
                  kernel.plus(right, kernel.index(column * dotLanes * 2))));
  for (int64_t row = 0; row < height; ++row) {
    Value pair =
        spreadPair(kernel, leftMemory,
                   kernel.plus(left, kernel.index(row * apart)), isHalf);
    for (int64_t column = 0; column < vectors; ++column)
      next.push_back(
          addDots(kernel, sums[row * vectors + column], pair, factors[column]));
  }
  return next;
}

} // namespace keratin
