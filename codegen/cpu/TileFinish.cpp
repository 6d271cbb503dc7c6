//===- TileFinish.cpp - what is computed from the sums of a tile ----------===//
//
// Additions and comparisons are done while the sums are in registers. Functions
// are not: their chains are long and want registers for constants, and only
// chains side by side hide the latency of each: a chain of 25 instructions
// takes 90 cycles, and a scheduler of 100 entries sees no more than four in a
// row. So the sums go to memory, and a small loop computes the outputs of some
// rows from there, instruction by instruction for all of their vectors. Where
// the first cache holds the sums of several tiles, the loop goes over all of
// them: what it ends with is a chain once more.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/JoinVectors.h"
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

bool finishesWithFunctions(linalg::GenericOp root, ArrayRef<Output> outputs) {
  SmallVector<Operation *> ops;
  auto add = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && op != root && !llvm::is_contained(ops, op))
      ops.push_back(op);
  };
  for (const Output &output : outputs)
    add(output.tensor);
  for (size_t next = 0; next < ops.size(); ++next) {
    llvm::for_each(ops[next]->getOperands(), add);
    if (ops[next]
            ->walk([](Operation *op) {
              return isa_and_nonnull<math::MathDialect>(op->getDialect())
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted())
      return true;
  }
  return false;
}

/// How many chains of a function go side by side: what is alive of them and the
/// constants should fit in 32 registers, or 16.
unsigned TileEmitter::chainsAtOnce() {
  unsigned bits = 0;
  for (Value result : root->getResults())
    bits = std::max(bits, getElementTypeOrSelf(result).getIntOrFloatBitWidth());
  return tiling.lanes * bits >= 512 ? 4 : 2;
}

/// Whether a memref is more than the second cache holds beside other things.
static bool exceedsSecondCache(MemRefType type) {
  constexpr int64_t bytes = 1 << 20;
  return type.hasStaticShape() &&
         type.getNumElements() * type.getElementTypeBitWidth() / 8 >= bytes;
}

/// How far it is from what this tile has to what the next one has, in `row` and
/// in `column`: in the same rows, where their columns are the innermost loop
/// and these are not the last, or in the next rows. Rows of 4 KiB and multiples
/// share sets of the first cache, which have no room for those of two tiles.
void TileEmitter::findNextTile(unsigned row, unsigned column) {
  Value rows = kernel.index(innerRows), zero = kernel.index(0);
  if (!columnsInside.first) {
    reader.bind(row, rows);
    reader.bind(column, zero);
    return;
  }
  int64_t width = int64_t(tiling.size.vectors) * tiling.lanes;
  auto [from, to] = columnsInside;
  Value at = reader.at(getAffineDimExpr(tiling.lane, b.getContext()));
  Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                       kernel.plus(at, kernel.index(width)),
                                       times(to, width));
  Value back = arith::SubIOp::create(b, loc, times(from, width), at);
  auto bind = [&](unsigned loop, Value behindLast, Value otherwise) {
    reader.bind(loop,
                arith::SelectOp::create(b, loc, isLast, behindLast, otherwise));
  };
  bind(row, rows, zero);
  bind(column, back, kernel.index(width));
}

/// Asks for where the next tile writes what this one writes of `vectors`: a
/// store has to wait for its cache line as a load has.
void TileEmitter::prefetchNextPlaces(const Output &output,
                                     ArrayRef<SumsAt> vectors, unsigned width) {
  constexpr unsigned line = 64;
  auto type = cast<MemRefType>(output.destination.getType());
  unsigned bits = type.getElementTypeBitWidth();
  // A part of a line would be asked for once more with the next one.
  if (width * bits / 8 < line || !tiling.row || !exceedsSecondCache(type) ||
      tiling.inBlocks() != tiling.asksForSums || asksForPlaces(output) ||
      laneAccess(type, atPoint(output.place, vectors.front().point),
                 tiling.lane) != LaneAccess::Contiguous)
    return;
  // Coordinates of their own, behind the loops of the root and what finishRows
  // and finishColumns have there.
  unsigned row = root.getNumLoops() + 2, column = row + 1;
  LaneReader::Scope scope(reader);
  findNextTile(row, column);
  for (const SumsAt &vector : vectors) {
    Position next = vector.point;
    next[*tiling.row] =
        next[*tiling.row] + getAffineDimExpr(row, b.getContext());
    next[tiling.lane] =
        next[tiling.lane] + getAffineDimExpr(column, b.getContext());
    for (unsigned lane = 0; lane < width; lane += line * 8 / bits) {
      Position place = next;
      place[tiling.lane] = place[tiling.lane] + lane;
      SmallVector<Value> indices;
      for (AffineExpr expr : atPoint(output.place, place))
        indices.push_back(reader.at(expr));
      memref::PrefetchOp::create(b, loc, output.destination, indices,
                                 /*isWrite=*/true, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
  }
}

void TileEmitter::finishVectors(ArrayRef<SumsAt> vectors, unsigned width) {
  storeOutputs(kernel, reader, root, outputs, vectors, width);
  for (const Output &output : outputs)
    prefetchNextPlaces(output, vectors, width);
}

/// The part of a sum that is of columns, where it is of a whole vector.
Value TileEmitter::inColumn(Value sum, unsigned column) {
  unsigned width = columns[column].width;
  if (width == 0 || sumWidth(column) == width)
    return sum;
  return vector::ExtractStridedSliceOp::create(
      b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
      ArrayRef<int64_t>{1});
}

/// Computes the outputs from the sums, rows by columns by results.
void TileEmitter::finishTile(Sums sums) {
  bool functions = finishesWithFunctions(root, outputs);
  if (firstOfGroup)
    return storeSums(sums);
  if (functions && rows() > 1) {
    storeSums(sums);
    return finishRows(kernel.index(innerRows));
  }
  SmallVector<AffineExpr> taps(root.getNumLoops());
  size_t results = root.getNumResults();
  unsigned most = functions ? chainsAtOnce() : 1;
  for (unsigned row = 0; row < rows(); ++row) {
    completeRow(row, sums);
    for (unsigned column = 0; column < columns.size();) {
      unsigned width = columns[column].width;
      SmallVector<SumsAt> vectors;
      for (; column < columns.size() && vectors.size() < most &&
             columns[column].width == width;
           ++column) {
        SumsAt &vector = vectors.emplace_back();
        vector.point = pointOf(row, column, taps);
        for (size_t result = 0; result < results; ++result)
          vector.sums.push_back(
              inColumn(sums[(row * columns.size() + column) * results + result],
                       column));
      }
      finishVectors(vectors, width);
    }
    endRow();
  }
}

/// Of how many tiles behind each other along `loop` the outputs are computed
/// together.
int64_t TileEmitter::tilesFinishedTogether(unsigned loop) {
  const Tiling::Level &innermost = tiling.levels.back();
  if (tiling.tilesOfGroup == 1 || innermost.loop != loop || isPartOfSums ||
      !finishesWithFunctions(root, outputs))
    return 1;
  return tiling.tilesOfGroup;
}

/// Memory for the sums of the tiles that are finished together, for each result
/// of the root.
ArrayRef<Value> TileEmitter::memoryOfSums() {
  if (sumsInMemory.empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    int64_t count = tiling.tilesOfGroup * tiling.size.rows *
                    tiling.size.outerRows * tiling.size.vectors * tiling.lanes;
    for (Value result : root->getResults())
      sumsInMemory.push_back(memref::AllocaOp::create(
          b, loc, MemRefType::get(count, getElementTypeOrSelf(result)),
          b.getI64IntegerAttr(64)));
  }
  return sumsInMemory;
}

/// Where that memory has the sums of a row, which is counted from the first one
/// of the tile, from the lane + `column` on.
AffineExpr TileEmitter::placeOfSums(AffineExpr row, int64_t column) {
  auto length = int64_t(columns.size()) * tiling.lanes;
  AffineExpr along = getAffineConstantExpr(column, b.getContext());
  if (firstOfGroup) {
    bool ofColumns = tiling.levels.back().kind == Tiling::Kind::Columns;
    unsigned loop = tiling.levels.back().loop;
    AffineExpr distance =
        getAffineDimExpr(loop, b.getContext()) - reader.symbol(firstOfGroup);
    if (ofColumns)
      length = tiling.tilesOfGroup * tiling.size.vectors * tiling.lanes;
    (ofColumns ? along : row) = (ofColumns ? along : row) + distance;
  }
  return canonical(row * length + along);
}

void TileEmitter::storeSums(Sums sums) {
  size_t next = 0;
  for (unsigned row = 0; row < rows(); ++row) {
    completeRow(row, sums);
    for (const Column &column : columns)
      for (Value place : memoryOfSums()) {
        AffineExpr ofRow = getAffineConstantExpr(row, b.getContext());
        Value at = reader.at(placeOfSums(ofRow, column.offset));
        Value sum = sums[next++];
        if (isa<VectorType>(sum.getType()))
          vector::StoreOp::create(b, loc, sum, place, at);
        else
          memref::StoreOp::create(b, loc, sum, place, at);
      }
    endRow();
  }
}

/// Computes the outputs of `count` rows from their sums in memory. In loops of
/// their own: what is known at the coordinates of the tile is known for its
/// first row.
void TileEmitter::finishRows(Value count) {
  if (tiling.tilesOfGroup > 1)
    freeRegisters(kernel);
  unsigned inner = root.getNumLoops(), outer = inner + 1;
  auto full = unsigned(llvm::count_if(columns, [&](const Column &column) {
    return column.width == tiling.lanes;
  }));
  // Rows at once, in turns that are as equal as they can be.
  unsigned height = std::max(chainsAtOnce() / std::max(full, 1U), 1U);
  std::optional<int64_t> known = getConstantIntValue(count);
  if (known)
    height = llvm::divideCeil(*known, llvm::divideCeil(*known, height));
  auto some = [&](unsigned count) {
    for (unsigned column = 0; column < columns.size();) {
      unsigned width = columns[column].width;
      SmallVector<SumsAt> vectors;
      for (; column < columns.size() && columns[column].width == width &&
             (vectors.empty() || vectors.size() + count <= chainsAtOnce());
           ++column)
        for (unsigned row = 0; row < count; ++row)
          vectors.push_back(sumsFromMemory(column, row));
      finishVectors(vectors, width);
    }
  };
  auto turns = [&](Value from, Value to, unsigned step) {
    span(inner, from, to, step, [&] { some(step); });
  };
  Value whole = wholeTurns(count, height);
  span(outer, kernel.index(0), kernel.index(outerRows), 1, [&] {
    turns(kernel.index(0), whole, height);
    turns(whole, count, known ? std::max<int64_t>(*known % height, 1) : 1);
  });
}

/// Computes the outputs of `count` columns of all rows of a group of tiles from
/// their sums in memory, as long runs of a row.
void TileEmitter::finishColumns(Value count) {
  freeRegisters(kernel);
  unsigned inner = root.getNumLoops(), outer = inner + 1;
  auto run = [&](Value from, Value to, unsigned vectors, unsigned width) {
    columns.clear();
    for (unsigned vector = 0; vector < vectors; ++vector)
      columns.push_back({int64_t(vector) * width, width});
    span(tiling.lane, from, to, int64_t(vectors) * width, [&] {
      SmallVector<SumsAt> all;
      for (unsigned column = 0; column < columns.size(); ++column)
        all.push_back(sumsFromMemory(column, /*row=*/0));
      finishVectors(all, width);
    });
  };
  span(outer, kernel.index(0), kernel.index(outerRows), 1, [&] {
    span(inner, kernel.index(0), kernel.index(innerRows), 1, [&] {
      Value done = kernel.index(0);
      auto upTo = [&](Value next, unsigned vectors, unsigned width) {
        if (next != done)
          run(kernel.plus(firstOfGroup, done), kernel.plus(firstOfGroup, next),
              vectors, width);
        done = next;
      };
      for (unsigned vectors = chainsAtOnce(); vectors != 0; vectors /= 2)
        upTo(wholeTurns(count, int64_t(vectors) * tiling.lanes), vectors,
             tiling.lanes);
      if (int64_t rest = staticLoopExtent(root, tiling.lane) % tiling.lanes)
        upTo(count, 1, rest);
    });
  });
}

/// Where the vector `column` of a row behind that at the spare coordinates is,
/// and its sums, read from memory.
SumsAt TileEmitter::sumsFromMemory(unsigned column, unsigned row) {
  SmallVector<AffineExpr> taps(root.getNumLoops());
  AffineExpr down = getAffineDimExpr(root.getNumLoops() + 1, b.getContext());
  AffineExpr along = getAffineDimExpr(root.getNumLoops(), b.getContext()) + row;
  Value from =
      reader.at(placeOfSums(down * innerRows + along, columns[column].offset));
  SumsAt vector;
  for (Value place : memoryOfSums()) {
    Type element = cast<MemRefType>(place.getType()).getElementType();
    if (unsigned width = columns[column].width)
      vector.sums.push_back(
          vector::LoadOp::create(b, loc, VectorType::get(width, element), place,
                                 from)
              .getResult());
    else
      vector.sums.push_back(memref::LoadOp::create(b, loc, place, from));
  }
  vector.point = pointOf(0, column, taps);
  if (tiling.row)
    vector.point[*tiling.row] = vector.point[*tiling.row] + along;
  if (tiling.outerRow)
    vector.point[*tiling.outerRow] = vector.point[*tiling.outerRow] + down;
  return vector;
}

/// Makes `sums` the values of the results of `root` at `point`.
static void rememberSums(LaneReader &reader, linalg::GenericOp root,
                         const Position &point, unsigned width,
                         ValueRange sums) {
  for (auto [result, sum] : llvm::zip_equal(root->getResults(), sums)) {
    AffineMap map = root.getIndexingMapMatchingResult(result);
    reader.remember(result, atPoint(map.getResults(), point), width, {sum, {}});
  }
}

void storeOutputs(LaneReader &reader, linalg::GenericOp root,
                  ArrayRef<Output> outputs, const Position &point,
                  unsigned width, ValueRange sums) {
  rememberSums(reader, root, point, width, sums);
  // All are read before any is written: a destination may be what they are
  // computed from.
  auto values = llvm::map_to_vector(outputs, [&](const Output &output) {
    return reader.read(output.tensor, atPoint(output.position, point), width);
  });
  for (auto [value, output] : llvm::zip_equal(values, outputs))
    reader.write(value, output.destination, atPoint(output.place, point),
                 width);
}

void storeOutputs(Kernel &kernel, LaneReader &reader, linalg::GenericOp root,
                  ArrayRef<Output> outputs, ArrayRef<SumsAt> vectors,
                  unsigned width) {
  if (vectors.size() == 1 || width == 0) {
    for (const SumsAt &vector : vectors)
      storeOutputs(reader, root, outputs, vector.point, width, vector.sums);
    return;
  }
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  for (const SumsAt &vector : vectors)
    rememberSums(reader, root, vector.point, width, vector.sums);
  // All are read before any is written, as in storeOutputs.
  SmallVector<SmallVector<Value>> values(outputs.size());
  for (auto [parts, output] : llvm::zip_equal(values, outputs))
    for (const SumsAt &vector : vectors)
      parts.push_back(reader.materialize(
          reader.read(output.tensor, atPoint(output.position, vector.point),
                      width),
          width));
  VectorJoiner joiner(b, loc);
  for (SmallVector<Value> &parts : values) {
    // LLVM takes vectors apart by halves, and elements of others one by one;
    // what nobody reads of these it does not compute.
    SmallVector<Value> even = parts;
    even.resize(llvm::PowerOf2Ceil(parts.size()), parts.back());
    Value whole = joiner.join(even);
    for (auto [number, part] : llvm::enumerate(parts))
      part = vector::ExtractStridedSliceOp::create(
          b, loc, whole, ArrayRef<int64_t>{int64_t(number) * width},
          ArrayRef<int64_t>{width}, ArrayRef<int64_t>{1});
  }
  for (auto [parts, output] : llvm::zip_equal(values, outputs))
    for (auto [part, vector] : llvm::zip_equal(parts, vectors))
      reader.write({part, {}}, output.destination,
                   atPoint(output.place, vector.point), width);
}

} // namespace keratin
