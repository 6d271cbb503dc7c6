//===- DotSplit.cpp - dot products of f32 ---------------------------------===//
//
// A block of rows is split before all columns go by (codegen/cpu/SplitTiles.h).
// It is [tile][step][part][row][splitDepth].
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotLoops.h"
#include "codegen/cpu/SplitTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Blocks of rows, and of a sum that is so long that the second cache would
/// have few rows: of each block of rows the sums so far wait there as well.
void DotEmitter::pickSplitBlocks() {
  constexpr int64_t rowBytes = 640 << 10, cacheBytes = 1 << 20;
  constexpr int64_t mostSteps = 32, leastSteps = 16, nearBytes = 512 << 10;
  stepsAtOnce = steps();
  int64_t bytesOfRow = 2 * splitParts * depth();
  std::optional<int64_t> rows = plan.runRows;
  for (unsigned loop : outerRows())
    rows = rows && !ShapedType::isDynamic(extent(loop))
               ? std::optional(*rows * extent(loop))
               : std::nullopt;
  bool fits = rows && *rows * bytesOfRow <= rowBytes;
  bool isNear = bytesOfRow * blocksOfAll() * plan.block <= nearBytes;
  bool isOneRun =
      plan.inner == plan.sums.size() && plan.depth % splitDepth == 0;
  if (!fits && !isNear && isOneRun)
    for (int64_t part = mostSteps; part >= leastSteps; --part)
      if (steps() % part == 0) {
        stepsAtOnce = std::min(stepsAtOnce, part);
        break;
      }
  int64_t bytes = 2 * splitParts * splitDepth * stepsAtOnce;
  splitTiles = rowBytes / (bytes * height);
  if (stepsAtOnce != steps())
    splitTiles = std::min(
        splitTiles,
        cacheBytes / ((bytes + 4 * plan.block * blocksOfAll()) * height));
  if (isNear)
    splitTiles = 2 * mostTiles();
  if (rows)
    splitTiles = std::min(splitTiles, int64_t(llvm::divideCeil(*rows, height)));
  splitTiles = std::max(splitTiles, mostTiles());
  splitTiles = int64_t(llvm::alignTo(splitTiles, mostTiles()));
}

/// Memory for a block of rows, and for their sums, for each call.
void DotEmitter::allocateSplit() {
  int64_t elements = splitTiles * elementsOfTile();
  if (stepsAtOnce != steps())
    elements += splitTiles * height * blocksOfAll() * plan.block * 2;
  std::tie(split, firstOfSplit) = addSplitScratch(kernel, elements);
}

/// The tiles of rows from `first` to before `last`, block by block of the sum.
void DotEmitter::emitSplitBlocks(Value first, Value last, Value left) {
  firstTile = first;
  loop(kernel.index(0), kernel.index(steps() / stepsAtOnce), 1,
       [&](Value block) {
         blockOfSum = block;
         splitRows(first, last,
                   kernel.plus(left, times(block, stepsAtOnce * splitDepth)));
         emitOuter(plan.outer, left, kernel.index(0),
                   [&](Value left, Value number) {
                     outerNumber = number;
                     emitColumns(first, last, left, number);
                   });
       });
}

/// Splits the rows of the tiles from `first` to before `last`.
void DotEmitter::splitRows(Value first, Value last, Value left) {
  loop(first, last, 1, [&](Value number) {
    Tile tile = tileAt(number);
    Value inBlock = arith::SubIOp::create(b, loc, number, first);
    Value to = kernel.plus(firstOfSplit, times(inBlock, elementsOfTile()));
    loop(kernel.index(0), kernel.index(height), 1, [&](Value row) {
      LaneReader::Scope scope(reader);
      bindLoops(outerRows(), tile.outer);
      bindLoops(runRows(), kernel.plus(tile.first, row));
      splitRun(placeAt(plan.rows, left),
               kernel.plus(to, times(row, splitDepth)));
    });
  });
}

/// Splits the row at `place`.
void DotEmitter::splitRun(Value place, Value to) {
  llvm::ArrayRef<unsigned> outer =
      llvm::ArrayRef(plan.sums).drop_back(plan.inner);
  int64_t perStep = splitDepth * height * splitParts;
  loop(kernel.index(0), extentOf(outer), 1, [&](Value run) {
    LaneReader::Scope scope(reader);
    bindLoops(outer, run);
    int64_t elements =
        stepsAtOnce == steps() ? plan.depth : stepsAtOnce * splitDepth;
    splitRow(kernel, reader, leftMemory, placeAt(outer, place), split,
             kernel.plus(to, times(run, elements / splitDepth * perStep)),
             height * splitDepth, elements);
  });
}

/// `tiles` tiles of rows from number `group` on.
void DotEmitter::sumUpSplit(Value group, ArrayRef<Tile> tiles, Value right,
                            int64_t columns) {
  int64_t vectors = int64_t(llvm::divideCeil(columns, dotLanes));
  auto count = int64_t(tiles.size());
  int64_t blocks = steps() / stepsAtOnce;
  auto isBlock = [&](int64_t number) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, blockOfSum,
                                 kernel.index(number));
  };
  /// `then` in block `number` of the sum, `otherwise` in all others.
  auto inBlock = [&](int64_t number, llvm::function_ref<void()> then,
                     llvm::function_ref<void()> otherwise) {
    if (blocks == 1)
      return then();
    auto branch = scf::IfOp::create(b, loc, isBlock(number), /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    {
      LaneReader::Scope scope(reader);
      then();
    }
    b.setInsertionPointToStart(branch.elseBlock());
    LaneReader::Scope scope(reader);
    otherwise();
  };
  inBlock(
      0,
      [&] {
        for (int64_t tile = 0; tile < count; ++tile)
          for (int64_t column = 0; column < vectors; ++column)
            zeroTile(kernel, tile * 2 + column);
      },
      [&] { moveSums(group, count, vectors, /*load=*/true); });
  Value from = arith::SubIOp::create(b, loc, group, firstTile);
  loop(kernel.index(0), kernel.index(stepsAtOnce), 1, [&](Value step) {
    Values places;
    for (int64_t tile = 0; tile < count; ++tile) {
      Value place =
          times(kernel.plus(from, kernel.index(tile)), elementsOfTile());
      places.push_back(
          kernel.plus(kernel.plus(firstOfSplit, place),
                      times(step, plan.step * height * splitParts)));
    }
    prefetch(step);
    stepOfSplit(places, kernel.plus(right, times(step, elementsOfStep())),
                columns);
    finishSome(step, columns);
  });
  inBlock(
      blocks - 1, [&] { keepTiles(tiles, vectors); },
      [&] { moveSums(group, count, vectors, /*load=*/false); });
}

/// Loads the sums of the blocks before, or stores those up to this one: tiles
/// of [tile of rows][block of columns][vector][row][lane].
void DotEmitter::moveSums(Value group, int64_t tiles, int64_t vectors,
                          bool load) {
  int64_t tileElements = 2 * height * dotLanes; // as bf16
  Value block = over(reader.at(getAffineDimExpr(plan.lane, b.getContext())),
                     kernel.index(plan.block), /*rest=*/false);
  block = kernel.plus(block, times(outerNumber, blocksOfColumns()));
  Value from = arith::SubIOp::create(b, loc, group, firstTile);
  Value behind =
      kernel.plus(firstOfSplit, kernel.index(splitTiles * elementsOfTile()));
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Value number = times(kernel.plus(from, kernel.index(tile)), blocksOfAll());
    Value place = kernel.plus(
        behind, times(kernel.plus(number, block), 2 * tileElements));
    for (int64_t column = 0; column < vectors; ++column)
      (load ? loadTile : storeTile)(
          kernel, tile * 2 + column, split,
          kernel.plus(place, kernel.index(column * tileElements)),
          dotLanes * 4);
  }
}

/// One step of the rows that are split at `left`.
void DotEmitter::stepOfSplit(ArrayRef<Value> left, Value right,
                             int64_t columns) {
  auto loadRow = [&](int64_t row, int64_t part, int64_t tile) {
    Value place = kernel.plus(left[size_t(row)],
                              kernel.index(part * height * splitDepth));
    loadTile(kernel, tile, split, place, splitDepth * 2);
  };
  auto loadColumn = [&](int64_t column, int64_t part, int64_t tile) {
    int64_t at = part * splitDepth * plan.block + column * dotLanes * 2;
    loadTile(kernel, tile, rightMemory, kernel.plus(right, kernel.index(at)),
             plan.block * 4);
  };
  auto sums = [](int64_t row, int64_t column) { return row * 2 + column; };
  addSplitDots(kernel, {int64_t(left.size()),
                        int64_t(llvm::divideCeil(columns, dotLanes)), loadRow,
                        loadColumn, sums});
}

} // namespace keratin
