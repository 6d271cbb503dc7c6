//===- TileRows.cpp - tiles along the rows --------------------------------===//
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

void TileEmitter::emitRows(unsigned loop, bool shared, Then then) {
  bool outer = loop == tiling.outerRow;
  unsigned full = outer ? tiling.size.outerRows : tiling.size.rows;
  int64_t extent = staticLoopExtent(root, loop);
  if (ShapedType::isDynamic(extent))
    return emitRowLadder(shared, then);
  unsigned &height = outer ? outerRows : innerRows;
  int64_t whole = extent / full * full;
  bool back = goesBackwards(loop);
  int64_t together = tilesFinishedTogether(loop), even = 0;
  if (tiling.taps.empty() && !tiling.outerRow &&
      !(shared && tiling.sharedWith) && !tiling.copied && !tiling.widened &&
      together == 1)
    even = evenRows(extent, full,
                    columns.empty() ? tiling.size.vectors : columns.size());
  if (even != 0)
    whole -= full;
  auto allTiles = [&](Value from, Value to) {
    auto rest = [&] {
      if (whole == extent)
        return;
      if (even != 0)
        return emitEvenRows(loop, from, to, even, then);
      height = extent - whole;
      tileAt(loop, from, to, whole, height, then);
    };
    if (back)
      rest();
    height = full;
    if (firstTileWidens()) {
      emitWideningTile(loop, from, then);
      from = kernel.plus(from, kernel.index(full));
    }
    spanTiles(loop, from, least(to, whole), full, then);
    if (!back)
      rest();
  };
  auto [from, to] = range(loop, full, shared);
  if (together == 1)
    return allTiles(from, to);
  inGroups(from, to, together * full, [&](Value first, Value count) {
    firstOfGroup = first;
    allTiles(first, kernel.plus(first, count));
    reader.bind(loop, first);
    height = together * full; // what is behind this group is the next one
    finishRows(count);
  });
}

/// The last two tiles, of which the first has `first` rows. Calls have them as
/// if it were a full one.
void TileEmitter::emitEvenRows(unsigned loop, Value from, Value to,
                               int64_t first, Then then) {
  int64_t full = tiling.size.rows, extent = staticLoopExtent(root, loop);
  int64_t begin = (extent / full - 1) * full, second = extent - begin - first;
  auto turns = [&](int64_t turn, int64_t count, int64_t rows) {
    innerRows = rows;
    Value start = kernel.index(turn);
    emitTurns(kernel, reader, most(from, start), least(to, turn + count * full),
              full, [&](Value at) {
                Value number = arith::SubIOp::create(b, loc, at, start);
                number =
                    arith::DivUIOp::create(b, loc, number, kernel.index(full));
                Value place =
                    kernel.index(turn == begin ? begin : begin + first);
                reader.bind(loop, kernel.plus(place, times(number, rows)));
                then();
              });
  };
  if (first == second)
    return turns(begin, 2, first);
  turns(begin, 1, first);
  turns(begin + full, 1, second);
}

/// Rows of unknown number: full tiles, then tiles of half the rows, and so on.
void TileEmitter::emitRowLadder(bool shared, Then then) {
  unsigned loop = *tiling.row;
  auto [from, all] = range(loop, tiling.size.rows, shared);
  for (unsigned height = tiling.size.rows; height != 0; height /= 2) {
    Value to = all, step = kernel.index(height);
    if (height > 1) {
      Value left = arith::SubIOp::create(b, loc, all, from);
      Value tiles = arith::DivUIOp::create(b, loc, left, step);
      to = arith::AddIOp::create(b, loc, from,
                                 arith::MulIOp::create(b, loc, tiles, step));
    }
    innerRows = height;
    span(loop, from, to, height, then);
    from = to;
  }
}

} // namespace keratin
