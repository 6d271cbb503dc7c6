//===- RowLanes.cpp - short rows, as many side by side as a vector has ----===//
//
// A row of few elements leaves most lanes of a vector empty, and ends each pass
// in a chain of its own. So vectors lie across rows: one for each element of a
// row, lane i of which is row i. What rows are computed from is a run in memory
// that is loaded as such and unzipped, as their results are zipped and stored.
// The last rows, which fill no vector, are copied to a whole one, so that a row
// has the same bits wherever it is.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/RowLoops.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

/// Rows that are one run of elements, wherever they begin.
static bool isRun(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getLayout().isIdentity() &&
         type.getElementType().isIntOrFloat() &&
         type.getElementTypeBitWidth() >= 8 &&
         llvm::none_of(type.getShape().drop_front(), ShapedType::isDynamic);
}

/// Shuffles grow with the square of how many elements a row has, of which those
/// of half a vector do as well along it unless functions are computed. Few rows
/// go across as many do, so that they have the same bits; one alone does not.
bool RowEmitter::goesAcross() {
  const int64_t mostElements = computesFunctions() ? 11 : 7;
  if (block || rows == 0 || extents.size() != 1 || extents[0] > mostElements ||
      uint64_t(extents[0]) > lanesAcross)
    return false;
  for (auto [number, result] : llvm::enumerate(results))
    if (!isRun(kernel.destination(number)))
      return false;
  // Behind the last rows is nothing to read.
  for (linalg::GenericOp op : ops) {
    if (isReduction(op) && isa<BlockArgument>(op.getDpsInits().front()))
      return false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      bool isOfKernel =
          input->get().getDefiningOp<linalg::GenericOp>() != nullptr;
      if (!isOfKernel && map.isFunctionOfDim(rowLoop()) &&
          !isRunOfRows(op, *input))
        return false;
    }
  }
  return llvm::none_of(ops, [](linalg::GenericOp op) {
    return !op.getBody()->getOps<tensor::ExtractOp>().empty();
  });
}

/// Whether `op` reads all elements of its rows in order.
bool RowEmitter::isRunOfRows(linalg::GenericOp op, OpOperand &input) {
  Value memref = kernel.memrefOf(input.get());
  return memref && hasExtents(op, extents) &&
         op.getMatchingIndexingMap(&input).isIdentity() && isRun(memref);
}

Position RowEmitter::pointAcross(int64_t element) {
  Position position = point(0);
  position.back() = getAffineConstantExpr(element, b.getContext());
  return position;
}

/// The elements at `places`, each a vector's number and a lane.
static Value pick(OpBuilder &b, Location loc, ArrayRef<Value> vectors,
                  ArrayRef<std::pair<int64_t, int64_t>> places) {
  auto lanes = int64_t(places.size());
  Value picked;
  for (auto [number, vector] : llvm::enumerate(vectors)) {
    SmallVector<int64_t> mask;
    bool isUsed = false;
    for (auto [lane, place] : llvm::enumerate(places)) {
      bool isOf = place.first == int64_t(number);
      isUsed |= isOf;
      mask.push_back(isOf ? lanes + place.second : int64_t(lane));
    }
    if (isUsed)
      picked = vector::ShuffleOp::create(b, loc, picked ? picked : vector,
                                         vector, mask);
  }
  return picked;
}

/// Where the rows that are bound begin in a view of `memref`, which is a run,
/// along one dimension.
RowEmitter::Run RowEmitter::runOf(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  AffineExpr start = getAffineConstantExpr(0, b.getContext());
  Position place = pointAcross(0);
  place.resize(type.getRank(), getAffineConstantExpr(0, b.getContext()));
  for (auto [expr, extent] : llvm::zip_equal(place, type.getShape()))
    start = ShapedType::isDynamic(extent) ? expr : start * extent + expr;
  Value at = reader.at(canonical(start));
  if (type.getRank() == 1)
    return {memref, at};
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  ReassociationIndices all(llvm::to_vector(llvm::seq(type.getRank())));
  return {memref::CollapseShapeOp::create(b, loc, memref,
                                          ArrayRef<ReassociationIndices>(all)),
          at};
}

/// Memory for whole vectors of rows of `memref`.
RowEmitter::Run RowEmitter::copyOf(Value memref) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = MemRefType::get({int64_t(lanesAcross) * extents[0]}, element);
  return {memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64)),
          kernel.index(0)};
}

/// Copies `count` elements; in place of those behind the first `known` ones the
/// last of these.
void RowEmitter::copyRun(Run from, Run to, Value count, Value known) {
  Value last = b.createOrFold<arith::SubIOp>(loc, known, kernel.index(1));
  emitLoop(b, loc, kernel.index(0), count, kernel.index(1), {},
           [&](Value number, ValueRange) -> Sums {
             Value place = kernel.plus(from.start, kernel.least(number, last));
             Value element = memref::LoadOp::create(b, loc, from.memref, place);
             memref::StoreOp::create(b, loc, element, to.memref,
                                     kernel.plus(to.start, number));
             return {};
           });
}

/// Loads what rows read of themselves, an element of all at a time; of `count`
/// rows that there are, if that is less than a vector.
void RowEmitter::unzipRows(Value count) {
  auto lanes = int64_t(lanesAcross), elements = extents[0];
  llvm::SmallDenseSet<Value> seen;
  for (linalg::GenericOp op : ops)
    for (OpOperand *input : op.getDpsInputOperands()) {
      if (!isRunOfRows(op, *input) || !seen.insert(input->get()).second)
        continue;
      Value memref = kernel.memrefOf(input->get());
      Run run = runOf(memref);
      if (count) {
        Run copy = copyOf(memref);
        copyRun(run, copy, kernel.index(lanes * elements),
                kernel.times(count, elements));
        run = copy;
      }
      Sums vectors;
      auto type = VectorType::get(
          lanes, cast<MemRefType>(memref.getType()).getElementType());
      for (int64_t number = 0; number < elements; ++number)
        vectors.push_back(vector::LoadOp::create(
            b, loc, type, run.memref,
            kernel.plus(run.start, kernel.index(number * lanes))));
      for (int64_t number = 0; number < elements; ++number) {
        SmallVector<std::pair<int64_t, int64_t>> places;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          int64_t from = lane * elements + number;
          places.emplace_back(from / lanes, from % lanes);
        }
        reader.remember(input->get(), pointAcross(number), lanesAcross,
                        {pick(b, loc, vectors, places), {}});
      }
    }
}

/// Stores `vectors`, one for each element of a row; `count` rows if that is
/// less than a vector.
void RowEmitter::zipRows(ArrayRef<Value> vectors, Value memref, Value count) {
  auto lanes = int64_t(lanesAcross), elements = int64_t(vectors.size());
  Run run = runOf(memref), to = count ? copyOf(memref) : run;
  for (int64_t number = 0; number < elements; ++number) {
    SmallVector<std::pair<int64_t, int64_t>> places;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t from = number * lanes + lane;
      places.emplace_back(from % elements, from / elements);
    }
    vector::StoreOp::create(
        b, loc, pick(b, loc, vectors, places), to.memref,
        kernel.plus(to.start, kernel.index(number * lanes)));
  }
  if (!count)
    return;
  Value all = kernel.times(count, elements);
  copyRun(to, run, all, all);
}

/// What `op` has for the rows, its parts joined in the order of those of a row
/// that a vector lies along, so that a row has the same bits in both ways.
Value RowEmitter::reduceAcross(linalg::GenericOp op) {
  Combiner combiner = *Combiner::of(op, 0);
  Sums parts;
  for (int64_t element = 0; element < extents[0]; ++element) {
    Lanes none = {combiner.identity(b, lanesAcross), {}};
    Lanes part =
        reader.evaluate(op, pointAcross(element), {none}, lanesAcross)[0];
    parts.push_back(reader.materialize(part, lanesAcross));
  }
  for (size_t left = llvm::bit_floor(parts.size());; left /= 2) {
    for (size_t number = left; number < parts.size(); ++number)
      parts[number - left] =
          combiner.join(b, parts[number - left], parts[number]);
    parts.truncate(left);
    if (left == 1)
      break;
  }
  Lanes start =
      reader.read(op.getDpsInitOperand(0)->get(), placeOf(op), lanesAcross);
  return combiner.join(b, reader.materialize(start, lanesAcross), parts[0]);
}

/// As many rows as a vector has lanes, from the bound one on, or `count`.
void RowEmitter::emitRowsAcross(Value count) {
  unzipRows(count);
  for (linalg::GenericOp op : ops)
    if (isReduction(op))
      reader.remember(op->getResult(0), placeOf(op), lanesAcross,
                      {reduceAcross(op), {}});
  // All is read before anything is stored, which may be in its place.
  SmallVector<Sums> values;
  for (Value result : results) {
    Sums &all = values.emplace_back();
    bool isEach = isWhole(result);
    for (int64_t element = 0; element < (isEach ? extents[0] : 1); ++element) {
      Position place = isEach ? pointAcross(element) : pointOfSingle(result);
      all.push_back(reader.materialize(reader.read(result, place, lanesAcross),
                                       lanesAcross));
    }
  }
  for (auto [number, all] : llvm::enumerate(values))
    zipRows(all, kernel.destination(number), count);
}

/// The rows `from` to before `to`.
void RowEmitter::emitAcross(Value from, Value to) {
  Value lanes = kernel.index(lanesAcross);
  Value all = b.createOrFold<arith::SubIOp>(loc, to, from);
  Value rest = kernel.over(all, lanes, /*rest=*/true);
  Value end = b.createOrFold<arith::SubIOp>(loc, to, rest);
  reader.setLane(rowLoop());
  emitTurns(kernel, reader, from, end, lanesAcross, [&](Value at) {
    reader.bind(rowLoop(), at);
    emitRowsAcross(/*count=*/nullptr);
  });
  emitTurns(kernel, reader, end, to, lanesAcross, [&](Value at) {
    reader.bind(rowLoop(), at);
    emitRowsAcross(rest);
  });
}

} // namespace keratin
