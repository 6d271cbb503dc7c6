//===- WinogradTiles.cpp - tiles on their way to products -----------------===//
#include "codegen/cpu/WinogradTiles.h"
#include "codegen/cpu/WinogradMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

Value WindowTiles::view(Value scratch, Value begin, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> strides) {
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get(sizes, element, layout), scratch,
      OpFoldResult(begin), getAsIndexOpFoldResult(b.getContext(), sizes),
      getAsIndexOpFoldResult(b.getContext(), strides));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value WindowTiles::allTiles() {
  Value tiles = kernel.index(tiling.tilesOfImage() * conv.depths);
  if (!conv.image)
    return tiles;
  return arith::MulIOp::create(b, loc, kernel.loopExtent(root, *conv.image),
                               tiles);
}

TileCorner WindowTiles::cornerOf(Value tile) {
  Value ofImage = kernel.index(tiling.tilesOfImage());
  Value across = kernel.index(tiling.tilesAcross()), m = kernel.index(tiling.m);
  TileCorner corner;
  if (conv.image || conv.depth) {
    corner.image = arith::DivUIOp::create(b, loc, tile, ofImage);
    tile = arith::RemUIOp::create(b, loc, tile, ofImage);
  }
  if (conv.depth) {
    Value depths = kernel.index(conv.depths);
    corner.depth = kernel.over(corner.image, depths, /*rest=*/true);
    corner.image = kernel.over(corner.image, depths, /*rest=*/false);
  }
  Value down = arith::DivUIOp::create(b, loc, tile, across);
  Value right = arith::RemUIOp::create(b, loc, tile, across);
  corner.row = arith::MulIOp::create(b, loc, down, m);
  corner.column = arith::MulIOp::create(b, loc, right, m);
  return corner;
}

void WindowTiles::placeTile(Value tile) {
  TileCorner corner = cornerOf(tile);
  if (conv.image)
    reader.bind(*conv.image, corner.image);
  if (conv.depth)
    reader.bind(*conv.depth, corner.depth);
  row = corner.row;
  column = corner.column;
  reader.bind(conv.row, row);
  reader.bind(conv.column, column);
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

Value WindowTiles::isInside(Value position, int64_t offset, int64_t reach,
                            int64_t extent) {
  if (reach - tiling.m + offset < extent)
    return nullptr;
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               plus(position, offset), kernel.index(extent));
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

void WindowTiles::transform(
    int64_t size, Transform transform,
    llvm::function_ref<Value(int64_t, int64_t)> element,
    llvm::function_ref<void(int64_t, ValueRange)> then) {
  SmallVector<SmallVector<Value>> columns;
  for (int64_t j = 0; j < size; ++j) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(element(i, j));
    columns.push_back(transform(b, loc, values));
  }
  for (size_t i = 0; i < columns[0].size(); ++i) {
    SmallVector<Value> values;
    for (ArrayRef<Value> column : columns)
      values.push_back(column[i]);
    then(int64_t(i), transform(b, loc, values));
  }
}

void WindowTiles::transformTo(
    Value memory, Value number, Value lane, int64_t size, Transform along,
    llvm::function_ref<Value(int64_t, int64_t)> element) {
  transform(size, along, element, [&](int64_t i, ValueRange row) {
    for (auto [j, value] : llvm::enumerate(row))
      vector::StoreOp::create(
          b, loc, value, memory,
          ValueRange{kernel.index(i * (tiling.m + 2) + int64_t(j)), number,
                     lane});
  });
}

Position WindowTiles::pointOfWindow(int64_t i, int64_t j) {
  Position point(root.getNumLoops(), getAffineConstantExpr(0, b.getContext()));
  point[conv.tapRow] = getAffineConstantExpr(i, b.getContext());
  point[conv.tapColumn] = getAffineConstantExpr(j, b.getContext());
  for (unsigned loop : {conv.channel, conv.filter})
    point[loop] = getAffineDimExpr(loop, b.getContext());
  if (conv.tapDepth)
    point[*conv.tapDepth] = getAffineDimExpr(*conv.tapDepth, b.getContext());
  return point;
}

void WindowTiles::overPieces(llvm::function_ref<void(const Piece &)> body) {
  loop(kernel.index(0), kernel.index(conv.pieces()), 1, [&](Value number) {
    Piece piece;
    piece.firstChannel = kernel.times(number, conv.channels);
    // Along the innermost axis of those that are left.
    auto next = [&](int64_t pieces) {
      Value all = kernel.index(pieces);
      Value at = kernel.over(number, all, /*rest=*/true);
      number = kernel.over(number, all, /*rest=*/false);
      return kernel.times(at, 3);
    };
    piece.right = next(conv.piecesAcross());
    piece.down = next(conv.piecesDown());
    piece.column = kernel.plus(column, piece.right);
    piece.row = kernel.plus(row, piece.down);
    reader.bind(conv.column, piece.column);
    reader.bind(conv.row, piece.row);
    if (conv.tapDepth)
      reader.bind(*conv.tapDepth, number);
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

/// Where the input of a tile is that begins at `start` of the loop `loop`, of
/// tiles that reach to `reach`. What would be outside is read at the edge: no
/// output that is kept depends on it.
AffineExpr WindowTiles::placeInput(unsigned loop, Value start, int64_t offset,
                                   int64_t reach, int64_t extent) {
  if (reach - tiling.m - 1 + offset <= extent)
    return getAffineDimExpr(loop, b.getContext()) + offset;
  return reader.symbol(least(plus(start, offset), extent - 1));
}

void WindowTiles::transformInputs(Value inputs, Value firstTile, Range tiles,
                                  Range channels) {
  int64_t size = tiling.m + 2;
  reader.setLane(conv.channel);
  TilesAhead ahead(kernel, reader, root, tiling, conv.channel);
  ahead.addInputs();
  auto transformPiece = [&](Value number, const TileCorner &next,
                            const Piece &piece) {
    SmallVector<AffineExpr> down, right;
    for (int64_t i = 0; i < size; ++i) {
      down.push_back(
          placeInput(conv.row, piece.row, i,
                     tiling.tilesDown() * tiling.m + 3 * conv.piecesDown() - 1,
                     conv.inputHeight));
      right.push_back(placeInput(conv.column, piece.column, i,
                                 tiling.tilesAcross() * tiling.m +
                                     3 * conv.piecesAcross() - 1,
                                 conv.inputWidth));
    }
    auto read = [&](int64_t i, int64_t j, unsigned width) {
      Position point(root.getNumLoops(),
                     getAffineConstantExpr(0, b.getContext()));
      for (std::optional<unsigned> loop :
           {conv.image, conv.depth, conv.tapDepth})
        if (loop)
          point[*loop] = getAffineDimExpr(*loop, b.getContext());
      point[conv.row] = down[i];
      point[conv.column] = right[j];
      point[conv.channel] = getAffineDimExpr(conv.channel, b.getContext());
      return readFactor(conv.input, point, width);
    };
    TileCorner behind = next;
    if (behind.row) {
      behind.row = kernel.plus(behind.row, piece.down);
      behind.column = kernel.plus(behind.column, piece.right);
    }
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
