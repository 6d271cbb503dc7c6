//===- TileFinish.cpp - what is computed from the sums of a tile ----------===//
//
// Additions and comparisons are done while the sums are in registers. Functions
// are not: their chains are long and want registers for constants, and only
// chains side by side hide the latency of each. So the sums go to memory, and
// a small loop computes the outputs from there, row by row.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

/// Whether computing the outputs from the sums takes functions.
bool TileEmitter::finishesWithFunctions() {
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

/// How many full vectors of columns from `column` on to finish as one.
unsigned TileEmitter::columnsAtOnce(unsigned column) {
  auto isFull = [&](unsigned other) {
    return other < columns.size() && columns[other].width == tiling.lanes;
  };
  for (unsigned number : {4, 2})
    if (llvm::all_of(llvm::seq(column, column + number), isFull))
      return number;
  return 1;
}

/// The vectors one behind the other.
static Value joined(OpBuilder &b, Location loc, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors[0];
  size_t half = vectors.size() / 2;
  Value left = joined(b, loc, vectors.take_front(half));
  Value right = joined(b, loc, vectors.drop_front(half));
  auto lanes = cast<VectorType>(left.getType()).getNumElements() * 2;
  return vector::ShuffleOp::create(b, loc, left, right,
                                   llvm::to_vector(llvm::seq<int64_t>(lanes)));
}

/// Whether a memref is more than the second cache holds beside other things.
static bool exceedsSecondCache(MemRefType type) {
  constexpr int64_t bytes = 1 << 20;
  return type.hasStaticShape() &&
         type.getNumElements() * type.getElementTypeBitWidth() / 8 >= bytes;
}

/// Asks for where the next tile writes what this one writes at `point`: a
/// store has to wait for its cache line as a load has.
void TileEmitter::prefetchPlace(const Output &output, Position point,
                                unsigned width) {
  constexpr unsigned line = 64;
  auto type = cast<MemRefType>(output.destination.getType());
  unsigned bits = type.getElementTypeBitWidth();
  if (width == 0 || bits < 8 || !tiling.row || !exceedsSecondCache(type) ||
      laneAccess(type, atPoint(output.place, point), tiling.lane) !=
          LaneAccess::Contiguous)
    return;
  point[*tiling.row] = point[*tiling.row] + innerRows;
  for (unsigned lane = 0; lane < width; lane += line * 8 / bits) {
    Position place = point;
    place[tiling.lane] = place[tiling.lane] + lane;
    SmallVector<Value> indices;
    for (AffineExpr expr : atPoint(output.place, place))
      indices.push_back(reader.at(expr));
    memref::PrefetchOp::create(b, loc, output.destination, indices,
                               /*isWrite=*/true, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

/// Computes the outputs of `columns` from `column` on, at the position `point`,
/// from a sum for each result and column.
void TileEmitter::finishColumns(const Position &point, unsigned width,
                                ArrayRef<Value> sums) {
  storeOutputs(reader, root, outputs, point, width, sums);
  for (const Output &output : outputs)
    prefetchPlace(output, point, width);
}

/// Computes the outputs from the sums, rows by columns by results.
void TileEmitter::finishTile(ValueRange sums) {
  bool functions = finishesWithFunctions();
  if (functions && rows() > 1)
    return finishFromMemory(sums);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  size_t results = root.getNumResults();
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0, number = 1; column < columns.size();
         column += number) {
      number = functions ? columnsAtOnce(column) : 1;
      Sums whole;
      for (size_t result = 0; result < results; ++result) {
        SmallVector<Value> parts;
        for (unsigned next = column; next < column + number; ++next) {
          Value sum = sums[(row * columns.size() + next) * results + result];
          unsigned part = columns[next].width;
          if (part != 0 && sumWidth(next) != part)
            sum = vector::ExtractStridedSliceOp::create(
                b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{part},
                ArrayRef<int64_t>{1});
          parts.push_back(sum);
        }
        whole.push_back(joined(b, loc, parts));
      }
      finishColumns(pointOf(row, column, taps), columns[column].width * number,
                    whole);
    }
}

/// Memory for the sums of one tile, for each result of the root.
ArrayRef<Value> TileEmitter::memoryOfSums() {
  if (sumsInMemory.empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    int64_t count = int64_t(tiling.size.rows) * tiling.size.outerRows *
                    tiling.size.vectors * tiling.lanes;
    for (Value result : root->getResults())
      sumsInMemory.push_back(memref::AllocaOp::create(
          b, loc, MemRefType::get(count, getElementTypeOrSelf(result)),
          b.getI64IntegerAttr(64)));
  }
  return sumsInMemory;
}

void TileEmitter::finishFromMemory(ValueRange sums) {
  ArrayRef<Value> memory = memoryOfSums();
  auto rowLength = int64_t(columns.size()) * tiling.lanes;
  auto next = sums.begin();
  for (unsigned row = 0; row < rows(); ++row)
    for (const Column &column : columns)
      for (Value place : memory) {
        Value at = kernel.index(row * rowLength + column.offset);
        if (column.width == 0)
          memref::StoreOp::create(b, loc, *next++, place, at);
        else
          vector::StoreOp::create(b, loc, *next++, place, at);
      }

  // Loops of their own: what is known at the coordinates of the tile is known
  // for its first row.
  unsigned inner = root.getNumLoops(), outer = inner + 1;
  SmallVector<AffineExpr> taps(root.getNumLoops());
  auto row = [&] {
    AffineExpr down = getAffineDimExpr(outer, b.getContext());
    AffineExpr along = getAffineDimExpr(inner, b.getContext());
    AffineExpr start = (down * innerRows + along) * rowLength;
    for (unsigned column = 0, number = 1; column < columns.size();
         column += number) {
      number = columnsAtOnce(column);
      unsigned width = columns[column].width * number;
      Sums whole;
      Value from = reader.at(canonical(start + columns[column].offset));
      for (Value place : memory) {
        Type element = cast<MemRefType>(place.getType()).getElementType();
        if (width == 0)
          whole.push_back(memref::LoadOp::create(b, loc, place, from));
        else
          whole.push_back(
              vector::LoadOp::create(b, loc, VectorType::get(width, element),
                                     place, from)
                  .getResult());
      }
      Position point = pointOf(0, column, taps);
      if (tiling.row)
        point[*tiling.row] = point[*tiling.row] + along;
      if (tiling.outerRow)
        point[*tiling.outerRow] = point[*tiling.outerRow] + down;
      finishColumns(point, width, whole);
    }
  };
  span(outer, kernel.index(0), kernel.index(outerRows), 1,
       [&] { span(inner, kernel.index(0), kernel.index(innerRows), 1, row); });
}

void storeOutputs(LaneReader &reader, linalg::GenericOp root,
                  ArrayRef<Output> outputs, const Position &point,
                  unsigned width, ValueRange sums) {
  for (auto [result, sum] : llvm::zip_equal(root->getResults(), sums)) {
    AffineMap map = root.getIndexingMapMatchingResult(result);
    reader.remember(result, atPoint(map.getResults(), point), width, {sum, {}});
  }
  // All are read before any is written: a destination may be what they are
  // computed from.
  auto values = llvm::map_to_vector(outputs, [&](const Output &output) {
    return reader.read(output.tensor, atPoint(output.position, point), width);
  });
  for (auto [value, output] : llvm::zip_equal(values, outputs))
    reader.write(value, output.destination, atPoint(output.place, point),
                 width);
}

} // namespace keratin
