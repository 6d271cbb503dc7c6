//===- AttentionLanesMemory.cpp - what is transposed for attention --------===//
//
// Queries and masks on their way to panels, sums on their way to the outputs;
// and what is asked for ahead, where rows are far apart: each begins a run of
// its own, which the machine does not foresee.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/AttentionLanes.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Panels on the stack.
void LaneAttention::placeMemory() {
  int64_t width = full.vectors * int64_t(lanes);
  auto place = [&](ArrayRef<int64_t> shape, Type type) -> Value {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    return memref::AllocaOp::create(b, loc, MemRefType::get(shape, type),
                                    b.getI64IntegerAttr(64));
  };
  queriesPanel = place({depth, width}, element);
  panel = place({keysAtOnce, width}, element);
  sumsOfBlock = place({columns, width}, element);
  for (LaneMask &mask : masks) {
    SmallVector<int64_t> shape = {keysAtOnce + 2 * int64_t(lanes), width};
    if (!mask.key)
      shape = {width};
    mask.panel = place(shape, getElementTypeOrSelf(mask.tensor));
  }
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

/// Copies queries to the panel in squares, of which the last two may overlap.
/// Lanes behind the last query have that once more.
void LaneAttention::fillQueries(const Block &block) {
  Value memref = kernel.memrefOf(attention.queries->get());
  AffineMap map = scores.getMatchingIndexingMap(attention.queries);
  unsigned queryLoop = attention.scoresLoop(queryAxis());
  int64_t width = std::min<int64_t>(lanes, depth);
  auto squares = [&](Value start) {
    LaneReader reader(kernel);
    bindAround(reader, &Attention::scoresLoop, block);
    reader.setLane(depthLoop);
    reader.bind(depthLoop, start);
    for (int64_t vector = 0; vector < block.tile.vectors; ++vector) {
      Sums square;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t query = std::min(vector * lanes + lane, block.count - 1);
        Position point = pointOf(scores);
        point[queryLoop] = canonical(dim(queryLoop) + query);
        SmallVector<Value> place;
        for (AffineExpr expr : atPoint(map.getResults(), point))
          place.push_back(reader.at(expr));
        Value row = vector::LoadOp::create(
            b, loc, VectorType::get(width, element), memref, place);
        if (width != lanes)
          row = vector::InsertStridedSliceOp::create(b, loc, row, splat(0),
                                                     ArrayRef<int64_t>{0},
                                                     ArrayRef<int64_t>{1});
        square.push_back(row);
      }
      square = transposed(b, loc, std::move(square));
      for (int64_t number = 0; number < width; ++number)
        store(square[number], queriesPanel,
              b.createOrFold<arith::AddIOp>(loc, start, kernel.index(number)),
              vector);
    }
  };
  int64_t whole = depth / width * width;
  emitTurns(kernel, kernel.index(0), kernel.index(whole), width, squares);
  if (whole != depth)
    squares(kernel.index(depth - width));
}

/// A memref of i1 has a byte for each.
static Value bytesOf(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isInteger(1))
    return memref;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(memref);
  auto bytes = MemRefType::get(type.getShape(), b.getI8Type());
  return UnrealizedConversionCastOp::create(b, loc, bytes, memref).getResult(0);
}

/// Copies what `mask` is for the block to its panel, in squares, of which the
/// last one ends with the last key: so the block begins a square behind the
/// beginning of the panel.
void LaneAttention::fillMask(const LaneMask &mask, const Block &block) {
  Value source = bytesOf(b, loc, kernel.memrefOf(mask.tensor));
  Value target = bytesOf(b, loc, mask.panel);
  Type type = cast<MemRefType>(source.getType()).getElementType();
  int64_t width = lanes;
  Value lastStart = kernel.index(keyCount() - width);
  emitTurns(kernel, block.from, block.to, width, [&](Value key) {
    Value start = b.createOrFold<arith::MinUIOp>(loc, key, lastStart);
    LaneReader reader(kernel);
    for (unsigned axis = 0; axis < keyAxis(); ++axis)
      reader.bind(axis, axis == queryAxis() ? block.first
                                            : attention.rows.around[axis]);
    reader.bind(keyAxis(), start);
    for (int64_t vector = 0; vector < block.tile.vectors; ++vector) {
      Sums square;
      for (int64_t lane = 0; lane < width; ++lane) {
        int64_t query = std::min(vector * width + lane, block.count - 1);
        SmallVector<Value> place;
        for (AffineExpr expr : mask.map.getResults())
          place.push_back(reader.at(canonical(
              expr.replace(dim(queryAxis()), dim(queryAxis()) + query))));
        square.push_back(vector::LoadOp::create(
            b, loc, VectorType::get(width, type), source, place));
      }
      square = transposed(b, loc, std::move(square));
      Value row = b.createOrFold<arith::SubIOp>(loc, start, block.from);
      for (int64_t number = 0; number < width; ++number)
        vector::StoreOp::create(
            b, loc, square[number], target,
            ValueRange{b.createOrFold<arith::AddIOp>(
                           loc, row, kernel.index(width + number)),
                       kernel.index(vector * width)});
    }
  });
}

/// Copies what `mask` is for the queries of the block to its panel, one by one.
void LaneAttention::fillMaskOfQueries(const LaneMask &mask,
                                      const Block &block) {
  Value source = bytesOf(b, loc, kernel.memrefOf(mask.tensor));
  Value target = bytesOf(b, loc, mask.panel);
  LaneReader reader(kernel);
  bindAround(reader, &Attention::axisItself, block);
  for (int64_t lane = 0; lane < block.tile.vectors * int64_t(lanes); ++lane) {
    int64_t query = std::min(lane, block.count - 1);
    SmallVector<Value> place;
    for (AffineExpr expr : mask.map.getResults())
      place.push_back(reader.at(
          canonical(expr.replace(dim(queryAxis()), dim(queryAxis()) + query))));
    Value element = memref::LoadOp::create(b, loc, source, place);
    memref::StoreOp::create(b, loc, element, target, kernel.index(lane));
  }
}

/// Reads of `mask` go to its panel.
void LaneAttention::readMask(LaneReader &reader, const LaneMask &mask,
                             const Block &block) {
  if (!mask.key)
    return reader.setPart(
        mask.tensor, {mask.panel, {mask.query}, {reader.symbol(block.first)}});
  reader.setPart(mask.tensor, {mask.panel,
                               {*mask.key, mask.query},
                               {reader.symbol(block.masksFrom) - int64_t(lanes),
                                reader.symbol(block.first)}});
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

/// Divides the sums, transposes them and stores what follows from them.
void LaneAttention::finish(const Block &block, ValueRange totals) {
  Sums factors;
  for (Value total : totals)
    factors.push_back(arith::DivFOp::create(b, loc, splat(1), total));
  unsigned queryLoop = attention.valuesLoop(queryAxis());
  auto squares = [&](Value start, int64_t width) {
    for (int64_t vector = 0; vector < block.tile.vectors; ++vector) {
      Sums square;
      for (int64_t column = 0; column < lanes; ++column) {
        if (column >= width) {
          square.push_back(splat(0));
          continue;
        }
        Value row =
            b.createOrFold<arith::AddIOp>(loc, start, kernel.index(column));
        square.push_back(arith::MulFOp::create(
            b, loc, load(sumsOfBlock, row, vector), factors[vector]));
      }
      square = transposed(b, loc, std::move(square));
      LaneReader reader(kernel);
      bindAround(reader, &Attention::valuesLoop, block);
      reader.setLane(attention.column);
      reader.bind(attention.column, start);
      int64_t before = vector * lanes;
      for (int64_t lane = 0; lane < lanes && before + lane < block.count;
           ++lane) {
        Position point = pointOf(values);
        point[queryLoop] = canonical(dim(queryLoop) + before + lane);
        if (columns != 1)
          point[attention.column] = dim(attention.column);
        Value sums = square[lane];
        if (width != lanes)
          sums = vector::ExtractStridedSliceOp::create(
              b, loc, sums, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
              ArrayRef<int64_t>{1});
        storeOutputs(reader, values, outputs, point, width, sums);
      }
    }
  };
  int64_t whole = columns / lanes * lanes;
  emitTurns(kernel, kernel.index(0), kernel.index(whole), lanes,
            [&](Value start) { squares(start, lanes); });
  if (whole != columns)
    squares(kernel.index(whole), columns - whole);
}

//===----------------------------------------------------------------------===//
// What is asked for
//===----------------------------------------------------------------------===//

constexpr int64_t lineElements = 16; ///< of f32

void LaneAttention::prefetch(LaneReader &reader, Value memref,
                             ArrayRef<AffineExpr> position, bool isWrite) {
  SmallVector<Value> place;
  for (AffineExpr expr : position)
    place.push_back(reader.at(canonical(expr)));
  memref::PrefetchOp::create(b, loc, memref, place, isWrite,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

/// Asks for as many keys behind those of the tile.
void LaneAttention::prefetchKeys(LaneReader &reader, int64_t keys) {
  AffineMap map = scores.getMatchingIndexingMap(attention.keys);
  unsigned keyLoop = attention.scoresLoop(keyAxis());
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t at = 0; at < depth; at += lineElements) {
      Position point = pointOf(scores);
      point[keyLoop] = dim(keyLoop) + keys + key;
      point[depthLoop] = getAffineConstantExpr(at, b.getContext());
      prefetch(reader, kernel.memrefOf(attention.keys->get()),
               atPoint(map.getResults(), point), /*isWrite=*/false);
    }
}

/// While powers of `key` are computed, asks for its values and for some of what
/// comes after the last key.
void LaneAttention::prefetchAround(const Block &block, Value key) {
  prefetchValues(block, key);
  prefetchQueries(block, key);
  prefetchOutputs(block, key);
}

void LaneAttention::prefetchValues(const Block &block, Value key) {
  LaneReader reader(kernel);
  bindAround(reader, &Attention::valuesLoop, block);
  reader.bind(attention.valuesLoop(keyAxis()), key);
  AffineMap map = values.getMatchingIndexingMap(attention.vectors);
  for (int64_t at = 0; at < columns; at += lineElements) {
    Position point = pointOf(values);
    point[attention.column] = getAffineConstantExpr(at, b.getContext());
    prefetch(reader, kernel.memrefOf(attention.vectors->get()),
             atPoint(map.getResults(), point), /*isWrite=*/false);
  }
}

/// Shares the lines of the rows of a block, each of so many elements, among the
/// keys: those that are the turn of `key`.
void LaneAttention::forSomeLines(
    Value key, int64_t elements,
    llvm::function_ref<void(Value row, Value at)> body) {
  int64_t rows = full.vectors * int64_t(lanes);
  int64_t lines = llvm::divideCeil(elements, lineElements);
  int64_t atOnce = llvm::divideCeil(rows * lines, keyCount());
  Value first = arith::MulIOp::create(b, loc, key, kernel.index(atOnce));
  for (int64_t number = 0; number < atOnce; ++number) {
    Value line = arith::AddIOp::create(b, loc, first, kernel.index(number));
    Value row = arith::DivUIOp::create(b, loc, line, kernel.index(lines));
    Value at = arith::RemUIOp::create(b, loc, line, kernel.index(lines));
    body(row, arith::MulIOp::create(b, loc, at, kernel.index(lineElements)));
  }
}

/// The next queries are behind these, or are the first of the next head.
void LaneAttention::prefetchQueries(const Block &block, Value key) {
  unsigned queryLoop = attention.scoresLoop(queryAxis());
  LaneReader reader(kernel);
  bindAround(reader, &Attention::scoresLoop, block);
  Value last = kernel.index(queryCount() - 1);
  Value first = arith::AddIOp::create(
      b, loc, block.first, kernel.index(full.vectors * int64_t(lanes)));
  Value isOther =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, first, last);
  first = arith::SelectOp::create(b, loc, isOther, kernel.index(0), first);
  Value step = arith::SelectOp::create(b, loc, isOther, kernel.index(1),
                                       kernel.index(0));
  for (unsigned axis = keyAxis(); axis-- > 0;) {
    unsigned loop = attention.scoresLoop(axis);
    if (axis == queryAxis() || staticLoopExtent(scores, loop) == 1)
      continue;
    reader.bind(
        loop, arith::AddIOp::create(b, loc, attention.rows.around[axis], step));
    break;
  }
  AffineMap map = scores.getMatchingIndexingMap(attention.queries);
  forSomeLines(key, depth, [&](Value row, Value at) {
    row = arith::AddIOp::create(b, loc, first, row);
    row = arith::MinUIOp::create(b, loc, row, last);
    Position point = pointOf(scores);
    point[queryLoop] = reader.symbol(row);
    point[depthLoop] = reader.symbol(at);
    prefetch(reader, kernel.memrefOf(attention.queries->get()),
             atPoint(map.getResults(), point), /*isWrite=*/false);
  });
}

/// Asks for the lines that these queries write.
void LaneAttention::prefetchOutputs(const Block &block, Value key) {
  unsigned queryLoop = attention.valuesLoop(queryAxis());
  LaneReader reader(kernel);
  bindAround(reader, &Attention::valuesLoop, block);
  Value last = kernel.index(queryCount() - 1);
  for (const Output &output : outputs) {
    auto type = cast<ShapedType>(output.destination.getType());
    if (!type.getElementType().isF32() ||
        laneAccess(type, output.place, attention.column) !=
            LaneAccess::Contiguous)
      continue;
    forSomeLines(key, columns, [&](Value row, Value at) {
      row = arith::AddIOp::create(b, loc, block.first, row);
      row = arith::MinUIOp::create(b, loc, row, last);
      Position point = pointOf(values);
      point[queryLoop] = reader.symbol(row);
      point[attention.column] = reader.symbol(at);
      prefetch(reader, output.destination, atPoint(output.place, point),
               /*isWrite=*/true);
    });
  }
}

} // namespace keratin
