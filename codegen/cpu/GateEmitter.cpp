//===- GateEmitter.cpp - a product and what follows from its gates --------===//
//
// A tile is some rows times all gates times one or two vectors of units. The
// weights are packed in blocks of units, in which each step of the reduction
// has the units of one gate after those of another: they are one stream, and
// what is computed from the sums hides behind the loads of the next block.
//
// With several tiles the sums of a block go to memory, and what follows from
// them is computed in one loop over all rows, four in a turn: a function is a
// long chain, and only turns that follow each other hide its latency.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/GateEmitter.h"

#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/GateLoops.h"
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/JoinVectors.h"
#include "codegen/cpu/Packing.h"
#include "codegen/cpu/PairPacking.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <set>

using namespace mlir;

namespace keratin {

/// Rows whose results are computed at once. A call that has some of the rows
/// begins with a multiple of them, so that who computes a row is always one of
/// as many: compilers round a sum of two products one way or the other.
constexpr unsigned rowsAtOnce = Kernel::rowsAtOnce;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// How the weights are packed. Two vectors of bf16 are one of words: the way of
/// one row's weights through the ports is what bounds a step.
Packing GateEmitter::packing() {
  Packing packing = {dimOfWeights(lane), int64_t(vectors) * lanes};
  packing.interleaved = vectors == 2 && onlyWidensFactors(root) &&
                        getElementTypeOrSelf(weights->get()).isBF16() &&
                        getElementTypeOrSelf(root.getResult(0)).isF32();
  return packing;
}

/// Which dimension of the weights a loop goes along.
unsigned GateEmitter::dimOfWeights(unsigned loop) {
  return *root.getMatchingIndexingMap(weights).getResultPosition(
      getAffineDimExpr(loop, root.getContext()));
}

void GateEmitter::packWeights() {
  unsigned number = cast<BlockArgument>(weights->get()).getArgNumber();
  if (packing24) {
    kernel.to()->setAttr(kernelAttr, b.getStringAttr("matmul24"));
    return kernel.setPackedArgument(number, *packing24);
  }
  if (paired) {
    kernel.to()->setAttr(kernelAttr, b.getStringAttr("paired"));
    PairedPacking ofPairs = {staticLoopExtent(root, reductions.back()),
                             gates * units, int64_t(vectors) * lanes,
                             /*columnsInside=*/true};
    return kernel.setPackedArgument(number, ofPairs);
  }
  if (dots == DotUnit::None)
    return kernel.setPackedArgument(number, packing());
  PairPacking pairs = {dimOfWeights(lane), int64_t(vectors) * lanes, {}, {}};
  for (unsigned loop : reductions)
    pairs.sums.push_back(dimOfWeights(loop));
  // Gates that are split are summed up one after the other.
  pairs.split = split;
  (split ? pairs.outer : pairs.inner) = {dimOfWeights(gate)};
  kernel.setPackedArgument(number, pairs);
  StringRef kind = split ? "tiles6" : dots == DotUnit::Tiles ? "tiles" : "dots";
  kernel.to()->setAttr(kernelAttr, b.getStringAttr(kind));
}

/// Whether calls are to begin with what the one before them left in the second
/// cache, which holds a part of the weights: they are read once by each.
bool GateEmitter::alternates() {
  constexpr int64_t mostBytes = 16 << 20;
  int64_t bytes = llvm::product_of(
      cast<MemRefType>(kernel.memrefOf(weights->get()).getType()).getShape());
  bytes *=
      getElementTypeOrSelf(weights->get().getType()).getIntOrFloatBitWidth() /
      8;
  return gate == 1 && !sharedFrom && !split && !paired &&
         staticLoopExtent(root, 0) == int64_t(mostRows) && bytes >= farBytes &&
         bytes <= mostBytes;
}

unsigned GateEmitter::width(unsigned column) {
  return unsigned(std::min<int64_t>(lanes, valid - int64_t(column) * lanes));
}

/// A row of the tile; rows of a single turn are at 0.
AffineExpr GateEmitter::rowExpr(unsigned row) {
  if (staticLoopExtent(root, gate - 1) == 1)
    return getAffineConstantExpr(0, b.getContext());
  return canonical(getAffineDimExpr(gate - 1, b.getContext()) + row);
}

/// The loops of the root.
Position GateEmitter::point(unsigned row, unsigned gateNumber,
                            unsigned column) {
  Position position;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (loop == gate - 1)
      expr = rowExpr(row);
    else if (loop == gate)
      expr = getAffineConstantExpr(gateNumber, b.getContext());
    else if (loop == lane)
      expr = expr + int64_t(column) * lanes;
    else if (staticLoopExtent(root, loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    position.push_back(canonical(expr));
  }
  return position;
}

void GateEmitter::run() {
  packWeights();
  allocate();
  reader.setLane(lane);
  auto blocks = int64_t(llvm::divideCeil(units, int64_t(vectors) * lanes));
  if (canShareRows()) {
    std::tie(sharedFrom, sharedTo) = kernel.shareRows();
    if (dots != DotUnit::Tiles)
      countTilesOfShare();
    return emitBlocks(kernel.index(0), kernel.index(blocks));
  }
  if (kernel.pickShared({blocks})) {
    auto [from, to] = kernel.share(kernel.index(blocks), 1);
    return emitBlocks(from, to);
  }
  kernel.emitOnce([&] { emitBlocks(kernel.index(0), kernel.index(blocks)); });
}

/// Memory for sums that do not stay in registers.
void GateEmitter::allocate() {
  firstRow = getAffineConstantExpr(0, b.getContext());
  if (dots != DotUnit::Tiles && !sumsInMemory)
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  int64_t most = tileRows * tilesAtOnce;
  if (dots == DotUnit::Tiles)
    shape = allocateTileShape(kernel);
  else
    most = staticLoopExtent(root, gate - 1);
  auto type = MemRefType::get(most * gates * int64_t(vectors) * lanes,
                              getElementTypeOrSelf(root.getResult(0)));
  memory = memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64));
  if (split)
    allocateSplit();
  if (paired)
    allocatePairs();
}

/// Blocks of units, the last of which may have fewer.
void GateEmitter::emitBlocks(Value from, Value to) {
  int64_t block = int64_t(vectors) * lanes;
  int64_t blocks = units / block, rest = units % block;
  if (dots == DotUnit::Tiles)
    configureTiles(kernel, shape, tileRows, depth);
  bool keeps = dots == DotUnit::Tiles && overlaps();
  if (split)
    splitRows();
  if (paired)
    copyPairedRows();
  if (keeps)
    allocateKept();
  Value end = arith::MinUIOp::create(b, loc, to, kernel.index(blocks));
  if (alternates())
    back = kernel.goesBack();
  emitLoop(b, loc, from, end, kernel.index(1), {},
           [&](Value number, ValueRange) -> Sums {
             if (back)
               number = mirrored(kernel, number, from, end, back);
             emitBlock(number, block);
             return {};
           });
  if (keeps)
    finishAllKept(block);
  if (rest != 0) {
    Value start = arith::MaxUIOp::create(b, loc, from, kernel.index(blocks));
    emitLoop(b, loc, start, to, kernel.index(1), {},
             [&](Value number, ValueRange) -> Sums {
               emitBlock(number, rest);
               if (keeps)
                 finishAllKept(rest);
               return {};
             });
  }
  if (dots == DotUnit::Tiles)
    releaseTiles(kernel);
}

/// The block `number`, in which there are `count` units.
void GateEmitter::emitBlock(Value number, int64_t count) {
  LaneReader::Scope scope(reader);
  int64_t width = int64_t(vectors) * lanes;
  block = number;
  valid = count;
  columns = unsigned(llvm::divideCeil(count, int64_t(lanes)));
  reader.bind(lane, arith::MulIOp::create(b, loc, number, kernel.index(width)));
  Value memref = kernel.memrefOf(weights->get());
  if (split)
    start = arith::MulIOp::create(b, loc, number,
                                  kernel.index(elementsOfSplitBlock()));
  else if (dots != DotUnit::None || packing24)
    start = arith::MulIOp::create(
        b, loc, number,
        kernel.index(llvm::product_of(
            cast<MemRefType>(memref.getType()).getShape().drop_front())));
  else if (!paired)
    reader.setPacked(weights->get(), {memref, number, packing()});
  emitOuter(0);
}

/// The loops in front of the rows.
void GateEmitter::emitOuter(unsigned loop) {
  if (loop + 1 == gate && paired)
    return emitPairedRows();
  if (loop + 1 == gate)
    return dots == DotUnit::Tiles ? emitTiledRows() : emitRows();
  emitLoop(b, loc, kernel.index(0), kernel.loopExtent(root, loop),
           kernel.index(1), {}, [&](Value iv, ValueRange) -> Sums {
             LaneReader::Scope scope(reader);
             reader.bind(loop, iv);
             emitOuter(loop + 1);
             return {};
           });
}

/// Rows from `from` to before `to`, `height` at once.
void GateEmitter::emitRowsFrom(Value from, Value to, unsigned height,
                               llvm::function_ref<void()> body) {
  rows = height;
  emitTurns(kernel, reader, from, to, height, [&](Value at) {
    reader.bind(gate - 1, at);
    body();
  });
}

/// Whether threads are to share the rows.
bool GateEmitter::canShareRows() {
  return kernel.sharedRows() != 0 && gate == 1 &&
         (sumsInMemory || dots == DotUnit::Tiles) &&
         staticLoopExtent(root, 0) == kernel.sharedRows();
}

/// As few tiles as hold the rows of a call, and of about one height: t tiles
/// of h rows or one more. Calls have few different numbers of rows.
void GateEmitter::countTilesOfShare() {
  int64_t most = rowsFitting;
  std::set<int64_t> heights;
  for (int64_t rows : kernel.rowsOfCalls()) {
    auto tiles = std::max<int64_t>(llvm::divideCeil(rows, most), 1);
    heights.insert(rows / tiles);
    heights.insert(int64_t(llvm::divideCeil(rows, tiles)));
  }
  auto constant = [&](int64_t value) { return kernel.index(value); };
  Value count = arith::SubIOp::create(b, loc, sharedTo, sharedFrom);
  Value tiles = arith::CeilDivUIOp::create(b, loc, count, constant(most));
  tiles = arith::MaxUIOp::create(b, loc, tiles, constant(1));
  Value low = arith::DivUIOp::create(b, loc, count, tiles);
  Value highTiles = arith::RemUIOp::create(b, loc, count, tiles);
  Value lowTiles = arith::SubIOp::create(b, loc, tiles, highTiles);
  for (int64_t height : llvm::reverse(heights)) {
    if (height == 0)
      continue;
    auto isHeight = [&](Value value, int64_t expected) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value,
                                   constant(expected));
    };
    Value number = arith::SelectOp::create(b, loc, isHeight(low, height),
                                           lowTiles, constant(0));
    number = arith::SelectOp::create(b, loc, isHeight(low, height - 1),
                                     highTiles, number);
    tilesOfShare.emplace_back(height, number);
  }
}

/// The rows of this call.
std::pair<Value, Value> GateEmitter::rowsOfCall() {
  if (sharedFrom)
    return {sharedFrom, sharedTo};
  return {kernel.index(0), kernel.loopExtent(root, gate - 1)};
}

/// Calls `body` for tiles of one height, then for those of another, and so on;
/// of rows whose number is not known for tiles, then for rows one by one.
void GateEmitter::forTiles(llvm::function_ref<void()> body) {
  auto [from, all] = rowsOfCall();
  for (auto [height, tiles] : tilesOfShare) {
    Value rows = arith::MulIOp::create(b, loc, tiles, kernel.index(height));
    Value to = arith::AddIOp::create(b, loc, from, rows);
    emitRowsFrom(from, to, height, body);
    from = to;
  }
  if (sharedFrom)
    return;
  int64_t extent = staticLoopExtent(root, gate - 1);
  if (ShapedType::isDynamic(extent)) {
    Value height = kernel.index(mostRows);
    Value whole = arith::MulIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, all, height), height);
    emitRowsFrom(from, whole, mostRows, body);
    return emitRowsFrom(whole, all, 1, body);
  }
  Value high = kernel.index(extent - lowTiles * int64_t(lowRows));
  emitRowsFrom(from, high, mostRows, body);
  emitRowsFrom(high, all, lowRows, body);
}

void GateEmitter::emitRows() {
  forTiles([&] { emitTile(); });
  if (!sumsInMemory)
    return;
  prefetchNext();
  auto [from, to] = rowsOfCall();
  finishRows(from, to);
}

/// Computes the results of the rows from `from` to before `to`, whose sums are
/// in memory.
void GateEmitter::finishRows(Value from, Value to) {
  auto compute = [&] { finish(readSums()); };
  std::optional<int64_t> first = getConstantIntValue(from),
                         last = getConstantIntValue(to);
  if (first && last) {
    int64_t rest = (*last - *first) % rowsAtOnce;
    Value whole = kernel.index(*last - rest);
    emitRowsFrom(from, whole, rowsAtOnce, compute);
    return emitRowsFrom(whole, to, unsigned(rest), compute);
  }
  Value count = arith::SubIOp::create(b, loc, to, from);
  Value rest = arith::RemUIOp::create(b, loc, count, kernel.index(rowsAtOnce));
  Value whole = arith::SubIOp::create(b, loc, to, rest);
  emitRowsFrom(from, whole, rowsAtOnce, compute);
  emitRowsFrom(whole, to, 1, compute);
}

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

void GateEmitter::emitTile() {
  prefetchAdded();
  Sums sums = packing24 ? sum24() : reduce(reductions, startSums());
  if (sumsInMemory) {
    auto next = sums.begin();
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned number = 0; number < gates; ++number)
        for (unsigned column = 0; column < columns; ++column)
          vector::StoreOp::create(b, loc, *next++, memory,
                                  placeOfSums(row, number, column));
    return;
  }
  // With more tiles of rows the block is read from the first cache.
  if (staticLoopExtent(root, gate - 1) == rows)
    prefetchNext();
  finish(sums);
}

/// Where the sums of a row, a gate and a vector of units are in memory.
Value GateEmitter::placeOfSums(unsigned row, unsigned number, unsigned column) {
  int64_t ofGate = int64_t(vectors) * lanes, ofRow = gates * ofGate;
  return reader.at(canonical((rowExpr(row) - firstRow) * ofRow +
                             number * ofGate + int64_t(column) * lanes));
}

/// The sums of the present rows, from memory.
GateEmitter::Sums GateEmitter::readSums() {
  auto type = VectorType::get(
      lanes, cast<MemRefType>(memory.getType()).getElementType());
  Sums sums;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned number = 0; number < gates; ++number)
      for (unsigned column = 0; column < columns; ++column)
        sums.push_back(vector::LoadOp::create(b, loc, type, memory,
                                              placeOfSums(row, number, column))
                           .getResult());
  return paired ? completed(sums) : sums;
}

/// Starts to load what is added to the sums of this tile: it may come from far,
/// and the product takes long enough.
void GateEmitter::prefetchAdded() {
  llvm::SmallDenseSet<std::pair<Value, AffineMap>> asked;
  auto ask = [&](Value tensor, AffineMap map, unsigned row, unsigned number,
                 unsigned column, bool withGates) {
    Position dims = point(row, number, column), place;
    dims.truncate(lane + 1);
    if (!withGates)
      dims.erase(dims.begin() + gate);
    for (AffineExpr expr : map.getResults())
      place.push_back(canonical(expr.replaceDims(dims)));
    if (!asked
             .insert({tensor, AffineMap::get(root.getNumLoops(), 0, place,
                                             b.getContext())})
             .second)
      return;
    SmallVector<Value> indices;
    for (AffineExpr expr : place)
      indices.push_back(reader.at(expr));
    memref::PrefetchOp::create(b, loc, kernel.memrefOf(tensor), indices,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  };
  for (auto op : kernel.from().getOps<linalg::GenericOp>()) {
    bool withGates = op.getNumLoops() == lane + 1;
    if (op == root || !(withGates || op.getNumLoops() == lane))
      continue;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      if (!isa<BlockArgument>(operand->get()) ||
          !map.isFunctionOfDim(op.getNumLoops() - 1) ||
          !map.isFunctionOfDim(gate - 1))
        continue;
      for (unsigned row = 0; row < rows; ++row)
        for (unsigned number = 0; number < (withGates ? gates : 1); ++number)
          for (unsigned column = 0; column < columns; ++column)
            ask(operand->get(), map, row, number, column, withGates);
    }
  }
}

/// Starts to load what the next block begins with: what is computed from the
/// sums would leave the way from the second cache idle. The last block is
/// followed by the first one of the next step.
void GateEmitter::prefetchNext() {
  if (split) // weights of one gate are behind those of another
    return;
  constexpr int64_t line = 64, bytes = 4096;
  Value memref = kernel.memrefOf(weights->get());
  auto type = cast<MemRefType>(memref.getType());
  int64_t elements = line * 8 / type.getElementTypeBitWidth();
  int64_t last = type.getDimSize(0) - 1;
  int64_t most = llvm::product_of(type.getShape().drop_front());
  Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, block,
                                       kernel.index(last));
  Value after = arith::AddIOp::create(b, loc, block, kernel.index(1));
  Value next = arith::SelectOp::create(b, loc, isLast, kernel.index(0), after);
  if (back) {
    // Behind the first block, on the way back, comes the first.
    Value before = arith::SubIOp::create(
        b, loc, arith::MaxUIOp::create(b, loc, block, kernel.index(1)),
        kernel.index(1));
    next = arith::SelectOp::create(
        b, loc, back, before,
        arith::MinUIOp::create(b, loc, after, kernel.index(last)));
  }
  for (int64_t start = 0; start < std::min(most, bytes / line * elements);
       start += elements) {
    SmallVector<Value> place(type.getRank(), next);
    int64_t rest = start;
    for (int64_t dim = type.getRank() - 1; dim > 0; --dim) {
      place[dim] = kernel.index(rest % type.getDimSize(dim));
      rest /= type.getDimSize(dim);
    }
    memref::PrefetchOp::create(b, loc, memref, place, /*isWrite=*/false,
                               /*localityHint=*/3, /*isDataCache=*/true);
  }
}

/// Computes the results from the gates, while those are in registers.
void GateEmitter::finish(ValueRange sums) {
  LaneReader::Scope scope(reader);
  SmallVector<std::tuple<Position, Value, unsigned>> places;
  auto next = sums.begin();
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned number = 0; number < gates; ++number)
      for (unsigned column = 0; column < columns; ++column) {
        Value sum = *next++;
        if (width(column) != lanes)
          sum = vector::ExtractStridedSliceOp::create(
              b, loc, sum, ArrayRef<int64_t>{0},
              ArrayRef<int64_t>{width(column)}, ArrayRef<int64_t>{1});
        Position place(
            ArrayRef(point(row, number, column)).take_front(lane + 1));
        reader.remember(root->getResult(0), place, width(column), {sum, {}});
        places.emplace_back(place, sum, width(column));
      }
  // Some at once: their long chains hide their latency only side by side.
  SmallVector<std::pair<unsigned, unsigned>> vectors;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      if (width(column) != lanes)
        writeResults({{row, column}});
      else
        vectors.emplace_back(row, column);
    }
  for (ArrayRef<std::pair<unsigned, unsigned>> rest = vectors; !rest.empty();) {
    size_t number = llvm::bit_floor(std::min<size_t>(rest.size(), rowsAtOnce));
    writeResults(rest.take_front(number));
    rest = rest.drop_front(number);
  }
  // Sums that another kernel reads as well, when all has been read that they
  // might be written over.
  for (auto [number, result] : llvm::enumerate(kernel.results()))
    if (result == root->getResult(0))
      for (auto &[place, sum, lanes] : places)
        reader.write({sum, {}}, kernel.destination(number), place, lanes);
}

/// Where the results are that a row and a vector of units end in.
Position GateEmitter::resultPlace(unsigned row, unsigned column) {
  Position place = point(row, 0, column);
  place.truncate(lane + 1);
  place.erase(place.begin() + gate);
  return place;
}

/// Computes and stores the results of some rows and vectors of units, of equal
/// width.
void GateEmitter::writeResults(
    ArrayRef<std::pair<unsigned, unsigned>> vectors) {
  unsigned width = this->width(vectors[0].second);
  SmallVector<SmallVector<Value>> parts(kernel.results().size());
  for (auto [row, column] : vectors)
    for (auto [values, result] : llvm::zip_equal(parts, kernel.results())) {
      if (result == root->getResult(0))
        continue;
      Lanes lanes = reader.read(result, resultPlace(row, column), width);
      values.push_back(reader.materialize(lanes, width));
    }
  VectorJoiner joiner(b, loc);
  for (SmallVector<Value> &values : parts) {
    if (values.size() <= 1)
      continue;
    Value whole = joiner.join(values);
    for (auto [number, value] : llvm::enumerate(values))
      value = vector::ExtractStridedSliceOp::create(
          b, loc, whole, ArrayRef<int64_t>{int64_t(number) * width},
          ArrayRef<int64_t>{width}, ArrayRef<int64_t>{1});
  }
  for (auto [number, values] : llvm::enumerate(parts))
    for (auto [place, value] : llvm::zip(vectors, values))
      reader.write({value, {}}, kernel.destination(number),
                   resultPlace(place.first, place.second), width);
}

bool emitGates(Kernel &kernel, const VectorUnit &unit, DotUnit dots) {
  std::optional<GateForm> form = gateFormOf(kernel, unit, dots);
  if (!form)
    return false;
  GateEmitter(kernel, *form).run();
  // All that follows from the gates of a row and a unit is at that row and
  // unit.
  markInPlace(kernel, form->root, /*severalSums=*/true);
  return true;
}

} // namespace keratin
