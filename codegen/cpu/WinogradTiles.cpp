//===- WinogradTiles.cpp - tiles on their way to products -----------------===//
#include "codegen/cpu/WinogradTiles.h"
#include "codegen/cpu/WinogradMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value WindowTiles::plus(Value value, int64_t offset) {
  return kernel.plus(value, kernel.index(offset));
}

Value WindowTiles::least(Value value, int64_t bound) {
  return kernel.least(value, kernel.index(bound));
}

void WindowTiles::loop(Value from, Value to, int64_t step, Then body) {
  emitTurns(kernel, reader, from, to, step, body);
}

void WindowTiles::alongVectors(int64_t extent, AlongVectors body) {
  alongVectors({kernel.index(0), kernel.index(extent)}, extent, body);
}

/// A range begins at a multiple of a vector, and ends at one or at `extent`.
void WindowTiles::alongVectors(Range range, int64_t extent, AlongVectors body) {
  int64_t whole = extent / tiling.lanes * tiling.lanes;
  loop(range.first, least(range.second, whole), tiling.lanes,
       [&](Value at) { body(at, tiling.lanes); });
  if (whole == extent)
    return;
  auto rest = unsigned(extent - whole);
  if (getConstantIntValue(range.second) == extent)
    return body(kernel.index(whole), rest);
  loop(kernel.index(whole), range.second, tiling.lanes,
       [&](Value at) { body(at, rest); });
}

void WindowTiles::emitTurn(int64_t number, Range range,
                           llvm::function_ref<void(Range)> step) {
  kernel.emitTurn(number, [&] {
    LaneReader::Scope scope(reader);
    step(range);
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value WindowTiles::allTiles() {
  Value tiles = kernel.index(tiling.tilesOfImage() * conv.outerPlaces());
  if (!conv.image)
    return tiles;
  return arith::MulIOp::create(b, loc, kernel.loopExtent(root, *conv.image),
                               tiles);
}

Value WindowTiles::pixelOfTile(const TransformedAxis &axis, Value tile) {
  int64_t pixels = tiling.pixels(axis), dilation = axis.dilation;
  if (dilation == 1)
    return arith::MulIOp::create(b, loc, tile, kernel.index(pixels));
  // So many tiles begin at neighbours.
  Value together = kernel.index(dilation);
  Value group = kernel.over(tile, together, /*rest=*/false);
  return kernel.plus(kernel.times(group, pixels * dilation),
                     kernel.over(tile, together, /*rest=*/true));
}

TileCorner WindowTiles::cornerOf(Value tile) {
  Value ofImage = kernel.index(tiling.tilesOfImage());
  Value across = kernel.index(tiling.tilesAlong(conv.across));
  TileCorner corner;
  corner.outer.resize(conv.outer.size());
  if (conv.image || conv.outerPlaces() > 1) {
    corner.image = arith::DivUIOp::create(b, loc, tile, ofImage);
    tile = arith::RemUIOp::create(b, loc, tile, ofImage);
  }
  for (size_t number = conv.outer.size(); number-- > 0;) {
    const OuterAxis &axis = conv.outer[number];
    if (!axis.loop)
      continue;
    Value places = kernel.index(axis.extent);
    corner.outer[number] = kernel.over(corner.image, places, /*rest=*/true);
    corner.image = kernel.over(corner.image, places, /*rest=*/false);
  }
  if (conv.down.isThere()) {
    corner.row =
        pixelOfTile(conv.down, arith::DivUIOp::create(b, loc, tile, across));
    tile = arith::RemUIOp::create(b, loc, tile, across);
  }
  corner.column = pixelOfTile(conv.across, tile);
  return corner;
}

void WindowTiles::placeTile(Value tile) {
  TileCorner corner = cornerOf(tile);
  auto bind = [&](std::optional<unsigned> loop, Value place) {
    if (loop)
      reader.bind(*loop, place);
  };
  bind(conv.image, corner.image);
  for (auto [place, axis] : llvm::zip_equal(corner.outer, conv.outer))
    bind(axis.loop, place);
  row = corner.row;
  column = corner.column;
  bind(conv.down.loop, row);
  bind(conv.across.loop, column);
}

void WindowTiles::overTiles(
    Value firstTile, Range range, const TilesAhead &ahead,
    llvm::function_ref<void(Value, const TileCorner &)> body) {
  loop(range.first, range.second, 1, [&](Value number) {
    Value tile = arith::AddIOp::create(b, loc, firstTile, number);
    placeTile(tile);
    body(number, ahead.empty() ? TileCorner() : cornerOf(plus(tile, 1)));
  });
}

/// The last pixels that tiles along an axis have are those of its last ones,
/// which as many groups of neighbours begin.
static int64_t reachOf(const WindowTiling &tiling,
                       const TransformedAxis &axis) {
  int64_t group = tiling.pixels(axis) * axis.dilation;
  return int64_t(llvm::alignTo(axis.extent, group));
}

Value WindowTiles::isInside(const TransformedAxis &axis, Value position,
                            int64_t offset) {
  int64_t pixels = tiling.pixels(axis);
  int64_t lastOfGroup = axis.dilation * (offset + 1) - 1;
  if (!axis.isThere() ||
      reachOf(tiling, axis) - pixels * axis.dilation + lastOfGroup <
          axis.extent)
    return nullptr;
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               plus(position, offset * axis.dilation),
                               kernel.index(axis.extent));
}

AffineExpr WindowTiles::pixelAt(const TransformedAxis &axis, int64_t offset) {
  return getAffineDimExpr(*axis.loop, b.getContext()) + offset * axis.dilation;
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

void WindowTiles::transform(
    Size size, Transform transform,
    llvm::function_ref<Value(int64_t, int64_t)> element,
    llvm::function_ref<void(int64_t, ValueRange)> then) {
  SmallVector<SmallVector<Value>> columns;
  for (int64_t j = 0; j < size.columns; ++j) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < size.rows; ++i)
      values.push_back(element(i, j));
    columns.push_back(conv.down.isThere() ? transform(b, loc, values) : values);
  }
  for (size_t i = 0; i < columns[0].size(); ++i) {
    SmallVector<Value> values;
    for (ArrayRef<Value> column : columns)
      values.push_back(column[i]);
    then(int64_t(i), transform(b, loc, values));
  }
}

void WindowTiles::transformTo(
    Value memory, Value number, Value lane, Size size, Transform along,
    llvm::function_ref<Value(int64_t, int64_t)> element) {
  transform(size, along, element, [&](int64_t i, ValueRange row) {
    for (auto [j, value] : llvm::enumerate(row))
      vector::StoreOp::create(
          b, loc, value, memory,
          ValueRange{kernel.index(i * positions().columns + int64_t(j)), number,
                     lane});
  });
}

Position WindowTiles::pointOfImage() {
  MLIRContext *context = b.getContext();
  Position point(root.getNumLoops(), getAffineConstantExpr(0, context));
  auto keep = [&](std::optional<unsigned> loop) {
    if (loop)
      point[*loop] = getAffineDimExpr(*loop, context);
  };
  keep(conv.image);
  for (const OuterAxis &axis : conv.outer)
    keep(axis.loop);
  return point;
}

Position WindowTiles::pointOfWindow(int64_t i, int64_t j) {
  MLIRContext *context = b.getContext();
  Position point(root.getNumLoops(), getAffineConstantExpr(0, context));
  auto place = [&](const TransformedAxis &axis, int64_t number) {
    if (axis.isThere())
      point[*axis.tap] =
          getAffineDimExpr(*axis.tap, context) + number * axis.stride;
  };
  place(conv.down, i);
  place(conv.across, j);
  for (unsigned loop : {conv.channel, conv.filter})
    point[loop] = getAffineDimExpr(loop, context);
  for (const OuterAxis &axis : conv.outer)
    if (axis.tap)
      point[*axis.tap] = getAffineDimExpr(*axis.tap, context);
  return point;
}

Value WindowTiles::hasTap(const TransformedAxis &axis, Value first,
                          int64_t number) {
  if (!axis.isThere())
    return nullptr;
  int64_t lastPiece = tiling.piecesAlong(axis) - 1;
  int64_t last = lastPiece % axis.stride +
                 lastPiece / axis.stride * tiling.form.taps * axis.stride;
  int64_t offset = number * axis.stride;
  if (last + offset < axis.taps)
    return nullptr;
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               plus(first, offset), kernel.index(axis.taps));
}

Value WindowTiles::both(Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::AndIOp::create(b, loc, left, right);
}

void WindowTiles::onlyIf(Value condition, llvm::function_ref<void()> then) {
  if (!condition)
    return then();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LaneReader::Scope scope(reader);
  then();
}

Value WindowTiles::zeroUnless(Value condition, Value value) {
  if (!condition)
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  return arith::SelectOp::create(b, loc, condition, value, zero);
}

void WindowTiles::bindOuterTaps(Value taps) {
  for (const OuterAxis &axis : llvm::reverse(conv.outer)) {
    if (!axis.tap)
      continue;
    Value all = kernel.index(axis.taps);
    reader.bind(*axis.tap, kernel.over(taps, all, /*rest=*/true));
    taps = kernel.over(taps, all, /*rest=*/false);
  }
}

/// Takes what is along the innermost axis of those that are left off `number`.
WindowTiles::PieceAlong WindowTiles::innermost(const TransformedAxis &axis,
                                               Value &number) {
  Value all = kernel.index(tiling.piecesAlong(axis));
  Value at = kernel.over(number, all, /*rest=*/true);
  number = kernel.over(number, all, /*rest=*/false);
  if (axis.stride == 1)
    return {nullptr, at};
  Value together = kernel.index(axis.stride);
  return {kernel.over(at, together, /*rest=*/true),
          kernel.over(at, together, /*rest=*/false)};
}

void WindowTiles::bindPiece(Value number) {
  auto bind = [&](const TransformedAxis &axis) {
    auto [neighbour, stride] = innermost(axis, number);
    Value first = kernel.times(stride, tiling.form.taps * axis.stride);
    if (neighbour)
      first = kernel.plus(first, neighbour);
    reader.bind(*axis.tap, first);
    return first;
  };
  firstAcross = bind(conv.across);
  if (conv.down.isThere())
    firstDown = bind(conv.down);
  bindOuterTaps(number);
}

void WindowTiles::overPieces(llvm::function_ref<void(const Piece &)> body) {
  loop(kernel.index(0), kernel.index(tiling.pieces()), 1, [&](Value number) {
    Piece piece;
    piece.firstChannel = kernel.times(number, conv.channels);
    auto next = [&](const TransformedAxis &axis, Value &tap) {
      auto [neighbour, stride] = innermost(axis, number);
      tap = neighbour;
      if (tap)
        reader.bind(*axis.tap, tap);
      return kernel.times(stride, tiling.form.taps * axis.dilation);
    };
    piece.right = next(conv.across, piece.rightTap);
    piece.column = kernel.plus(column, piece.right);
    reader.bind(*conv.across.loop, piece.column);
    if (conv.down.isThere()) {
      piece.down = next(conv.down, piece.downTap);
      piece.row = kernel.plus(row, piece.down);
      reader.bind(*conv.down.loop, piece.row);
    }
    bindOuterTaps(number);
    body(piece);
  });
}

Value WindowTiles::withZeros(Value value, unsigned width) {
  if (width == tiling.lanes)
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  return vector::InsertStridedSliceOp::create(
      b, loc, value, zero, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
}

Value WindowTiles::withoutRest(Value value, unsigned width) {
  if (width == tiling.lanes)
    return value;
  return vector::ExtractStridedSliceOp::create(
      b, loc, value, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
      ArrayRef<int64_t>{1});
}

SmallVector<Value>
WindowTiles::addProducts(ValueRange before, ArrayRef<Value> factors,
                         llvm::function_ref<Value(unsigned)> scalarOf) {
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  SmallVector<Value> after;
  for (unsigned row = 0; after.size() < before.size(); ++row) {
    Value value =
        vector::BroadcastOp::create(b, loc, vectorType, scalarOf(row));
    for (Value factor : factors) {
      Value product = arith::MulFOp::create(b, loc, value, factor, fused);
      after.push_back(
          arith::AddFOp::create(b, loc, before[after.size()], product, fused));
    }
  }
  return after;
}

Value WindowTiles::readFactor(OpOperand *operand, const Position &point,
                              unsigned width) {
  Position position;
  for (AffineExpr expr : root.getMatchingIndexingMap(operand).getResults())
    position.push_back(canonical(expr.replaceDims(point)));
  Value value =
      reader.materialize(reader.read(operand->get(), position, width), width);
  if (getElementTypeOrSelf(value) == element)
    return value;
  return arith::ExtFOp::create(b, loc, VectorType::get(width, element), value);
}

/// Where the input of a tile is that begins at `start` of `axis`, at `tap`
/// where windows move by several pixels. What would be outside is read at the
/// edge: no output that is kept depends on it.
AffineExpr WindowTiles::placeInput(const TransformedAxis &axis, Value start,
                                   Value tap, int64_t offset) {
  // The last that a tile begins at, with the last piece.
  int64_t before = (tiling.piecesAlong(axis) - 1) / axis.stride;
  int64_t last = reachOf(tiling, axis) -
                 axis.dilation * (tiling.pixels(axis) - 1) - 1 +
                 axis.dilation * tiling.form.taps * before;
  if (axis.stride * (last + axis.dilation * offset + 1) <= axis.inputExtent)
    return pixelAt(axis, offset);
  Value edge = kernel.index(axis.inputExtent - 1);
  if (tap)
    edge = kernel.over(arith::SubIOp::create(b, loc, edge, tap),
                       kernel.index(axis.stride), /*rest=*/false);
  return reader.symbol(kernel.least(plus(start, axis.dilation * offset), edge));
}

void WindowTiles::transformInputs(Value inputs, Value firstTile, Range tiles,
                                  Range channels) {
  Size size = positions();
  reader.setLane(conv.channel);
  TilesAhead ahead(kernel, reader, root, tiling, conv.channel);
  ahead.addInputs();
  auto transformPiece = [&](Value number, const TileCorner &next,
                            const Piece &piece) {
    SmallVector<AffineExpr> down, right;
    for (int64_t i = 0; i < size.rows && conv.down.isThere(); ++i)
      down.push_back(placeInput(conv.down, piece.row, piece.downTap, i));
    for (int64_t j = 0; j < size.columns; ++j)
      right.push_back(placeInput(conv.across, piece.column, piece.rightTap, j));
    auto read = [&](int64_t i, int64_t j, unsigned width) {
      Position point = pointOfImage();
      auto keep = [&](unsigned loop) {
        point[loop] = getAffineDimExpr(loop, b.getContext());
      };
      for (const OuterAxis &axis : conv.outer)
        if (axis.tap)
          keep(*axis.tap);
      keep(conv.channel);
      if (conv.down.isThere())
        point[*conv.down.loop] = down[i];
      point[*conv.across.loop] = right[j];
      for (const TransformedAxis &axis : {conv.down, conv.across})
        if (axis.stride > 1)
          keep(*axis.tap);
      return readFactor(conv.input, point, width);
    };
    TileCorner behind = next;
    if (behind.column)
      behind.column = kernel.plus(behind.column, piece.right);
    if (behind.row)
      behind.row = kernel.plus(behind.row, piece.down);
    alongVectors(channels, conv.channels, [&](Value channel, unsigned width) {
      reader.bind(conv.channel, channel);
      ahead.ask(behind);
      transformTo(inputs, number, kernel.plus(piece.firstChannel, channel),
                  size, emitInputTransform,
                  [&](int64_t i, int64_t j) { return read(i, j, width); });
    });
  };
  overTiles(firstTile, tiles, ahead, [&](Value number, const TileCorner &next) {
    overPieces(
        [&](const Piece &piece) { transformPiece(number, next, piece); });
  });
}

} // namespace keratin
