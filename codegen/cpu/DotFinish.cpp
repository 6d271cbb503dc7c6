//===- DotFinish.cpp - what follows from sums of products of bf16 ---------===//
//
// The unit that multiplies tiles does nothing else, and nobody else can do its
// work: while it waits for what follows from its sums, or that for it, the time
// is lost. A processor does not look far enough ahead to fill it with the next
// tiles. So tiles of sums are kept in the square, and each step of the next
// ones finishes some of their rows.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Tiles that are kept
//===----------------------------------------------------------------------===//

namespace {
/// What is known of a tile that is kept. One whose rows are all skipped is
/// none.
enum Word : int64_t { Outer, First, Skipped, Column, OfColumns };
} // namespace

/// Writes the sums of `tiles`, of the present columns, to the square.
void DotEmitter::keepTiles(ArrayRef<Tile> tiles, int64_t vectors) {
  for (int64_t tile = 0; tile < int64_t(tiles.size()); ++tile)
    for (int64_t column = 0; column < vectors; ++column)
      storeTile(kernel, tile * 2 + column, square,
                kernel.index(tile * height * plan.block + column * dotLanes),
                plan.block * 4);
  Value column = reader.at(getAffineDimExpr(plan.lane, b.getContext()));
  for (int64_t number = 0; number < mostTiles(); ++number) {
    auto keep = [&](Word word, Value value) {
      memref::StoreOp::create(
          b, loc, value, kept,
          ValueRange{kernel.index(number), kernel.index(word)});
    };
    if (size_t(number) >= tiles.size()) {
      keep(Skipped, kernel.index(height));
      continue;
    }
    keep(Outer, tiles[number].outer);
    keep(First, tiles[number].first);
    keep(Skipped, tiles[number].skipped);
    keep(Column, column);
    if (plan.split)
      keep(OfColumns, outerNumber);
  }
}

void DotEmitter::forgetKept() {
  for (int64_t number = 0; number < mostTiles(); ++number)
    memref::StoreOp::create(
        b, loc, kernel.index(height), kept,
        ValueRange{kernel.index(number), kernel.index(Skipped)});
}

/// Finishes line `line` of the square, if that is of a tile that is kept and
/// was not skipped.
void DotEmitter::finishKeptRow(Value line, int64_t columns) {
  Value tile = over(line, kernel.index(height), /*rest=*/false);
  Value row = over(line, kernel.index(height), /*rest=*/true);
  auto word = [&](Word word) -> Value {
    return memref::LoadOp::create(b, loc, kept,
                                  ValueRange{tile, kernel.index(word)});
  };
  Value isWanted = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, row,
                                         word(Skipped));
  auto branch = scf::IfOp::create(b, loc, isWanted, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LaneReader::Scope scope(reader);
  reader.bind(plan.lane, word(Column));
  bindLoops(outerRows(), word(Outer));
  if (plan.split)
    bindLoops(plan.outer, word(OfColumns));
  finishRow(line, kernel.plus(word(First), row), columns);
}

/// Finishes the share that `step` has of the lines of the square.
void DotEmitter::finishSome(Value step, int64_t columns) {
  constexpr int64_t fewLines = 2;
  int64_t lines = mostTiles() * height;
  int64_t each = int64_t(llvm::divideCeil(lines, turnsOfSum()));
  Value from = times(step, each), end = kernel.index(lines);
  if (each > fewLines) {
    Value to = kernel.least(kernel.plus(from, kernel.index(each)), end);
    return loop(from, to, 1, [&](Value line) { finishKeptRow(line, columns); });
  }
  for (int64_t number = 0; number < each; ++number) {
    Value line = kernel.plus(from, kernel.index(number));
    Value isLine =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, line, end);
    auto branch = scf::IfOp::create(b, loc, isLine, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    finishKeptRow(line, columns);
  }
}

/// Finishes all that is kept.
void DotEmitter::finishKept(int64_t columns) {
  if (!usesTiles())
    return;
  loop(kernel.index(0), kernel.index(mostTiles() * height), 1,
       [&](Value line) { finishKeptRow(line, columns); });
  forgetKept();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// The rows of a tile whose sums are the first lines of the square.
void DotEmitter::finishTile(const Tile &tile, int64_t columns) {
  LaneReader::Scope scope(reader);
  bindLoops(outerRows(), tile.outer);
  loop(tile.skipped, kernel.index(height), 1, [&](Value row) {
    finishRow(row, kernel.plus(tile.first, row), columns);
  });
}

/// Row `number` of the run, whose sums are line `line` of the square.
void DotEmitter::finishRow(Value line, Value number, int64_t columns) {
  auto store = [&] {
    for (int64_t column = 0; column < columns;) {
      int64_t width = std::min<int64_t>(
          columns - column, columns == plan.block ? plan.block : dotLanes);
      auto type = VectorType::get(width, b.getF32Type());
      Value sum = vector::LoadOp::create(
          b, loc, type, square, ValueRange{line, kernel.index(column)});
      finish(column, unsigned(width), sum);
      column += width;
    }
  };
  if (plan.pitch == 0) {
    bindLoops(runRows(), number);
    return store();
  }
  Value pitch = kernel.index(plan.pitch), turn = over(number, pitch, true);
  Value turns = kernel.index(extent(runRows().back()));
  Value isRow =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, turn, turns);
  auto branch = scf::IfOp::create(b, loc, isRow, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LaneReader::Scope scope(reader);
  reader.bind(runRows().front(), over(number, pitch, false));
  reader.bind(runRows().back(), turn);
  store();
}

/// The loops of the root at the present row and `column` of the block.
Position DotEmitter::pointAt(int64_t column) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (loop == plan.lane)
      expr = expr + column;
    else if (llvm::is_contained(plan.sums, loop) || extent(loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  return point;
}

/// Computes and stores what follows from the sums of columns.
void DotEmitter::finish(int64_t column, unsigned width, Value sum) {
  storeOutputs(reader, root, outputs, pointAt(column), width, sum);
}

} // namespace keratin
