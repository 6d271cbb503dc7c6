//===- GateTiles.cpp - sums of gates in tile registers --------------------===//
//
// One or two tiles of rows are multiplied by a vector of units of some gates,
// as many as there are registers for, and then by those of the other gates. The
// sums go to memory, and what follows from them is computed from there.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/GateLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace keratin {

/// Rows in turns of some tiles. The last tile ends with the last row: what rows
/// it has in common with the one before is summed up twice.
void GateEmitter::emitTiledRows() {
  Value all = kernel.loopExtent(root, gate - 1);
  int64_t extent = staticLoopExtent(root, gate - 1);
  if (!ShapedType::isDynamic(extent))
    return emitTilesOf(all, kernel.index(extent - tileRows));
  // Fewer rows than a tile has are summed up in vectors.
  Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, all,
                                     kernel.index(tileRows));
  auto branch = scf::IfOp::create(b, loc, many, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool first : {true, false}) {
    b.setInsertionPointToStart(first ? branch.thenBlock() : branch.elseBlock());
    LaneReader::Scope scope(reader);
    if (first)
      emitTilesOf(all,
                  arith::SubIOp::create(b, loc, all, kernel.index(tileRows)));
    else
      emitRows();
  }
}

/// `last` is where the last tile of `all` rows begins.
void GateEmitter::emitTilesOf(Value all, Value last) {
  int64_t rowsOfTurn = tileRows * tilesAtOnce;
  emitTurns(kernel, reader, kernel.index(0), all, rowsOfTurn, [&](Value from) {
    SmallVector<Value> firsts;
    for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
      firsts.push_back(
          kernel.least(kernel.plus(from, kernel.index(tile * tileRows)), last));
    sumTiles(firsts);
    // With more turns the block is read from the first cache.
    if (staticLoopExtent(root, gate - 1) <= rowsOfTurn)
      prefetchNext();
    firstRow = reader.symbol(firsts[0]);
    finishRows(from,
               kernel.least(kernel.plus(from, kernel.index(rowsOfTurn)), all));
    firstRow = getAffineConstantExpr(0, b.getContext());
  });
}

/// Sums up all gates of the tiles of rows that begin with `firsts`.
void GateEmitter::sumTiles(ArrayRef<Value> firsts) {
  rows = unsigned(tileRows);
  for (Value first : firsts) {
    LaneReader::Scope scope(reader);
    reader.bind(gate - 1, first);
    prefetchAdded();
  }
  int64_t gatesAtOnce = mostSumTiles / tilesAtOnce;
  for (int64_t number = 0; number < gates; number += gatesAtOnce)
    sumGates(firsts, number, std::min(number + gatesAtOnce, gates));
}

/// Sums up the gates from `from` to before `to`.
void GateEmitter::sumGates(ArrayRef<Value> firsts, int64_t from, int64_t to) {
  auto tiles = int64_t(firsts.size());
  auto tileOf = [&](int64_t tile, int64_t number) {
    return (number - from) * tiles + tile;
  };
  for (int64_t number = from; number < to; ++number)
    for (int64_t tile = 0; tile < tiles; ++tile)
      zeroTile(kernel, tileOf(tile, number));
  if (split)
    addSplitSteps(firsts, from, to, tileOf);
  else
    emitSteps(reductions, [&] { addStep(firsts, from, to, tileOf); });
  int64_t ofRow = gates * dotLanes;
  for (int64_t number = from; number < to; ++number)
    for (int64_t tile = 0; tile < tiles; ++tile) {
      AffineExpr row =
          reader.symbol(firsts[size_t(tile)]) - reader.symbol(firsts[0]);
      storeTile(kernel, tileOf(tile, number), memory,
                reader.at(canonical(row * ofRow + number * dotLanes)),
                ofRow * int64_t(sizeof(float)));
    }
}

/// Emits `step` for all steps of the reductions `loops`.
void GateEmitter::emitSteps(ArrayRef<unsigned> loops,
                            llvm::function_ref<void()> step) {
  if (loops.empty())
    return step();
  emitTurns(kernel, reader, kernel.index(0), kernel.loopExtent(root, loops[0]),
            loops.size() == 1 ? depth : 1, [&](Value at) {
              reader.bind(loops[0], at);
              emitSteps(loops.drop_front(), step);
            });
}

/// One step of the gates from `from` to before `to`.
void GateEmitter::addStep(
    ArrayRef<Value> firsts, int64_t from, int64_t to,
    llvm::function_ref<int64_t(int64_t, int64_t)> tileOf) {
  constexpr int64_t bytes = 2;
  auto elementOf = [&](AffineExpr row) {
    Position place = point(0, 0, 0);
    place[gate - 1] = row;
    return elementOfFactor(place);
  };
  AffineExpr zero = getAffineConstantExpr(0, b.getContext());
  auto apart = cast<AffineConstantExpr>(
      canonical(elementOf(zero + 1) - elementOf(zero)));
  for (auto [tile, first] : llvm::enumerate(firsts))
    loadTile(
        kernel, firstRowTile + int64_t(tile), kernel.memrefOf(factor->get()),
        reader.at(elementOf(reader.symbol(first))), apart.getValue() * bytes);
  Value step = pairsOfStep();
  for (int64_t number = from; number < to; ++number) {
    int64_t columns = firstColumnTile + number % 2;
    loadTile(kernel, columns, kernel.memrefOf(weights->get()),
             kernel.plus(step, kernel.index(number * pairsOfGate())),
             gates * pairsOfGate() * bytes);
    for (int64_t tile = 0; tile < int64_t(firsts.size()); ++tile)
      addTileDots(kernel, tileOf(tile, number), firstRowTile + tile, columns);
  }
}

} // namespace keratin
