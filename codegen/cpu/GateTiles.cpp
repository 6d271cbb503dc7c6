//===- GateTiles.cpp - sums of gates in tile registers --------------------===//
//
// One or two tiles of rows are multiplied by a vector of units of some gates,
// as many as there are registers for, and then by those of the other gates. The
// sums go to memory, and what follows from them is computed from there: in the
// steps of the next sums, for which the unit that multiplies tiles need not
// wait.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/GateLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Rows in turns of some tiles. The last tile ends with the last row: what rows
/// it has in common with the one before is summed up twice.
void GateEmitter::emitTiledRows() {
  if (sharedFrom)
    return emitTilesOf(sharedFrom, sharedTo, sharedTo);
  Value all = kernel.loopExtent(root, gate - 1);
  int64_t extent = staticLoopExtent(root, gate - 1);
  if (!ShapedType::isDynamic(extent))
    return emitTilesOf(kernel.index(0), all, kernel.index(extent - tileRows));
  // Fewer rows than a tile has are summed up in vectors.
  Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, all,
                                     kernel.index(tileRows));
  auto branch = scf::IfOp::create(b, loc, many, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool first : {true, false}) {
    b.setInsertionPointToStart(first ? branch.thenBlock() : branch.elseBlock());
    LaneReader::Scope scope(reader);
    if (first)
      emitTilesOf(kernel.index(0), all,
                  arith::SubIOp::create(b, loc, all, kernel.index(tileRows)));
    else
      emitRows();
  }
}

/// Rows up to `all`; `last` is where the last tile may begin.
void GateEmitter::emitTilesOf(Value begin, Value all, Value last) {
  int64_t rowsOfTurn = tileRows * tilesAtOnce;
  emitTurns(kernel, reader, begin, all, rowsOfTurn, [&](Value from) {
    SmallVector<Value> firsts;
    for (int64_t tile = 0; tile < tilesAtOnce; ++tile)
      firsts.push_back(
          kernel.least(kernel.plus(from, kernel.index(tile * tileRows)), last));
    sumTiles(firsts);
    // With more turns the block is read from the first cache.
    if (staticLoopExtent(root, gate - 1) <= rowsOfTurn)
      prefetchNext();
    if (overlaps())
      return keep(from);
    firstRow = reader.symbol(firsts[0]);
    finishRows(from,
               kernel.least(kernel.plus(from, kernel.index(rowsOfTurn)), all));
    firstRow = getAffineConstantExpr(0, b.getContext());
  });
}

//===----------------------------------------------------------------------===//
// What follows from sums
//===----------------------------------------------------------------------===//

/// Whether rows come in whole groups, whose results are computed at once.
bool GateEmitter::overlaps() const {
  int64_t extent = staticLoopExtent(root, gate - 1);
  return !ShapedType::isDynamic(extent) &&
         extent % (tileRows * tilesAtOnce) == 0 &&
         tileRows * tilesAtOnce % Kernel::rowsAtOnce == 0 && gate == 1 &&
         reductions.size() == 1;
}

namespace {
/// What is known of sums that are kept.
enum Word : int64_t { IsKept, Block, From, Words };
} // namespace

void GateEmitter::allocateKept() {
  kept = memref::AllocaOp::create(b, loc,
                                  MemRefType::get({Words}, b.getIndexType()),
                                  b.getI64IntegerAttr(64));
  memref::StoreOp::create(b, loc, kernel.index(0), kept,
                          ValueRange{kernel.index(IsKept)});
}

/// Keeps the sums of the present block, of rows from `from` on.
void GateEmitter::keep(Value from) {
  for (auto [word, value] :
       {std::pair(IsKept, kernel.index(1)), {Block, block}, {From, from}})
    memref::StoreOp::create(b, loc, value, kept,
                            ValueRange{kernel.index(word)});
}

/// Computes the results of some groups of rows whose sums are kept, if there
/// are such. Of the same block of columns, as all but the last have.
void GateEmitter::finishKept(Value firstGroup, Value lastGroup) {
  auto word = [&](Word word) -> Value {
    return memref::LoadOp::create(b, loc, kept, ValueRange{kernel.index(word)});
  };
  Value isKept = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       word(IsKept), kernel.index(0));
  auto branch = scf::IfOp::create(b, loc, isKept, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LaneReader::Scope scope(reader);
  unsigned before = rows;
  rows = Kernel::rowsAtOnce;
  Value from = word(From);
  firstRow = reader.symbol(from);
  reader.bind(lane,
              arith::MulIOp::create(b, loc, word(Block),
                                    kernel.index(int64_t(vectors) * lanes)));
  emitTurns(kernel, reader, firstGroup, lastGroup, 1, [&](Value group) {
    AffineExpr row = reader.symbol(from) +
                     reader.symbol(group) * int64_t(Kernel::rowsAtOnce);
    reader.bind(gate - 1, reader.at(canonical(row)));
    finish(readSums());
  });
  rows = before;
  firstRow = getAffineConstantExpr(0, b.getContext());
}

/// Finishes the share that `step` has of what is kept. When the last step of a
/// sum is done all of it is.
void GateEmitter::finishSome(Value step) {
  int64_t groups = tileRows * tilesAtOnce / int64_t(Kernel::rowsAtOnce);
  auto steps = int64_t(
      llvm::divideCeil(staticLoopExtent(root, reductions.back()), depth));
  auto each = int64_t(llvm::divideCeil(groups, steps));
  Value first = reader.at(canonical(reader.symbol(step) * each));
  Value last = kernel.plus(first, kernel.index(each));
  if (each * steps != groups) {
    first = kernel.least(first, kernel.index(groups));
    last = kernel.least(last, kernel.index(groups));
  }
  finishKept(first, last);
}

/// Finishes all that is kept, of blocks of `count` units.
void GateEmitter::finishAllKept(int64_t count) {
  LaneReader::Scope scope(reader);
  valid = count;
  columns = unsigned(llvm::divideCeil(count, int64_t(lanes)));
  int64_t groups = tileRows * tilesAtOnce / int64_t(Kernel::rowsAtOnce);
  finishKept(kernel.index(0), kernel.index(groups));
  memref::StoreOp::create(b, loc, kernel.index(0), kept,
                          ValueRange{kernel.index(IsKept)});
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

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
    emitSteps(reductions, [&] {
      addStep(firsts, from, to, tileOf);
      if (from != 0 || !overlaps())
        return;
      AffineExpr at = getAffineDimExpr(reductions.back(), b.getContext());
      finishSome(reader.at(canonical(at.floorDiv(depth))));
    });
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
  Value step = startOfStep(gates * pairsOfGate() / 2);
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
