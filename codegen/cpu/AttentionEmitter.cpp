//===- AttentionEmitter.cpp - attention without a matrix of scores --------===//
//
// A block of queries at a time: its scores, a product in register tiles, go to
// a panel with a row for each query; each row becomes weights; and the weights
// times the values are the outputs, again in register tiles. So what would be a
// matrix of all queries by all keys is never in memory.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/AttentionPlan.h"
#include "codegen/cpu/RunningRows.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {

class AttentionEmitter {
public:
  AttentionEmitter(Kernel &kernel, const VectorUnit &unit,
                   const Attention &attention)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), unit(unit),
        attention(attention), rows(this->attention.rows) {}

  bool plan(int64_t mostKeys);
  void run();

private:
  int64_t scoresExtent(unsigned axis);
  int64_t partsOfScratch(int64_t bytes);
  void placeMemory();
  Value slice(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides);
  Value onStack(ArrayRef<int64_t> shape);
  void placeRunning();
  void emitOrder();
  void emitBlocks(Value from, Value to);
  void emitBlock();
  void emitWeights(std::pair<Value, Value> columns);
  void emitValues(ArrayRef<Output> results, std::pair<Value, Value> keys);
  void startRunning();
  void emitRunningBlock();
  void finishRunning();
  SmallVector<unsigned> axesOfSums();
  SmallVector<AffineExpr> originOfPanel(linalg::GenericOp op);
  TilesWithin within(linalg::GenericOp op,
                     llvm::function_ref<unsigned(unsigned)> loopOf);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  const VectorUnit &unit;
  Attention attention;
  RowBlock &rows;
  AttentionPlan sizes;
  SmallVector<Output> outputs;
  int64_t bytes = 4;                ///< of an element
  Value keysInOrder, valuesInOrder; ///< all blocks of them
  std::pair<Value, Value> scratch;  ///< and where in it is room

  // Of rows that are gone over in blocks.
  RunningRows running;
  Value panelOfKeys, panelOfValues;                        ///< of one tile
  Value mostOfRows, totalOfRows, factorOfRows, sumsOfRows; ///< memory
};

} // namespace

int64_t AttentionEmitter::scoresExtent(unsigned axis) {
  return staticLoopExtent(attention.scores, attention.scoresLoop(axis));
}

/// Whether there are sizes for the kernel.
bool AttentionEmitter::plan(int64_t mostKeys) {
  bytes = getElementTypeOrSelf(rows.given).getIntOrFloatBitWidth() / 8;
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    Position position = *positionOf(result, attention.values);
    outputs.push_back({result, position, kernel.destination(number), position});
  }
  std::optional<AttentionPlan> found = planAttention(
      attention, unit, holdsSums(attention.values, outputs), mostKeys);
  if (found)
    sizes = *found;
  return found.has_value();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Pieces of scratch memory of so many bytes: as many as there may be threads,
/// while they are together less than half of the matrix of scores.
int64_t AttentionEmitter::partsOfScratch(int64_t pieceBytes) {
  constexpr int64_t mostBytes = 4 << 20, mostParts = 64, fewest = 4;
  int64_t matrix = bytes;
  for (unsigned axis = 0; axis < attention.axes(); ++axis)
    if (int64_t extent = scoresExtent(axis); !ShapedType::isDynamic(extent))
      matrix = llvm::SaturatingMultiply<uint64_t>(matrix, extent);
  return std::clamp<int64_t>(std::min(mostBytes, matrix / 2) / pieceBytes,
                             fewest, mostParts);
}

/// The next part of the scratch memory.
Value AttentionEmitter::slice(ArrayRef<int64_t> shape,
                              ArrayRef<int64_t> strides) {
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  auto &[memory, begin] = scratch;
  auto type = MemRefType::get(
      shape, cast<MemRefType>(memory.getType()).getElementType(), layout);
  Value part = memref::ReinterpretCastOp::create(
      b, loc, type, memory, OpFoldResult(begin),
      getAsIndexOpFoldResult(b.getContext(), shape),
      getAsIndexOpFoldResult(b.getContext(), strides));
  begin =
      arith::AddIOp::create(b, loc, begin, kernel.index(shape[0] * strides[0]));
  return part;
}

Value AttentionEmitter::onStack(ArrayRef<int64_t> shape) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  auto type = MemRefType::get(shape, getElementTypeOrSelf(rows.given));
  return memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64));
}

/// A small panel is on the stack.
void AttentionEmitter::placeMemory() {
  constexpr int64_t stackBytes = 96 << 10;
  Type element = getElementTypeOrSelf(rows.given);
  SmallVector<int64_t> shape = {sizes.queries, sizes.stride};
  int64_t count = sizes.queries * sizes.stride;
  if (!sizes.ordersOnce && count * bytes <= stackBytes) {
    rows.panel = onStack(shape);
    return;
  }
  SmallVector<int64_t> keys, values;
  if (sizes.ordersOnce) {
    keys = blocksShape(kernel, attention.scores, sizes.scores);
    if (sizes.values.panel)
      values = blocksShape(kernel, attention.values, sizes.values);
  }
  for (ArrayRef<int64_t> blocks : {keys, values})
    if (!blocks.empty())
      count += llvm::product_of(blocks);
  count = llvm::alignTo(count, 16);
  scratch = kernel.addScratch(element, count, partsOfScratch(count * bytes));
  rows.panel = slice(shape, {sizes.stride, 1});
  if (!keys.empty())
    keysInOrder = slice(keys, computeStrides(keys));
  if (!values.empty())
    valuesInOrder = slice(values, computeStrides(values));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Where the tiles of `op` are: on all axes but those of the queries and the
/// keys, and in the block of queries. Behind the loops of `op`, and those that
/// a tile makes of its own, are coordinates for where the panel starts.
TilesWithin
AttentionEmitter::within(linalg::GenericOp op,
                         llvm::function_ref<unsigned(unsigned)> loopOf) {
  TilesWithin place;
  for (unsigned axis = 0; axis + 1 < attention.axes(); ++axis)
    if (axis != rows.axis)
      place.coordinates.push_back({loopOf(axis), rows.around[axis]});
  unsigned start = op.getNumLoops() + spareCoordinates;
  place.coordinates.push_back({start, rows.from});
  if (rows.first)
    place.coordinates.push_back({start + 1, rows.first});
  place.rows = {rows.from, rows.to};
  return place;
}

/// Those coordinates as expressions.
SmallVector<AffineExpr> AttentionEmitter::originOfPanel(linalg::GenericOp op) {
  unsigned start = op.getNumLoops() + spareCoordinates;
  SmallVector<AffineExpr> origin = {getAffineDimExpr(start, b.getContext())};
  if (rows.first)
    origin.push_back(getAffineDimExpr(start + 1, b.getContext()));
  return origin;
}

/// Fills the panel with scores, and makes weights of them row by row. `columns`
/// are the tiles of keys; null for all.
void AttentionEmitter::emitWeights(std::pair<Value, Value> columns) {
  unsigned last = attention.axes() - 1;
  linalg::GenericOp scores = attention.scores;
  auto loopOf = [&](unsigned axis) { return attention.scoresLoop(axis); };
  Position inPanel = {getAffineDimExpr(loopOf(rows.axis), b.getContext()),
                      getAffineDimExpr(loopOf(last), b.getContext())};
  for (auto [place, origin] : llvm::zip(inPanel, originOfPanel(scores)))
    place = place - origin;
  Output panel = {rows.given, *positionOf(rows.given, scores), rows.panel,
                  inPanel};
  TilesWithin place = within(scores, loopOf);
  place.blocks = keysInOrder;
  place.panel = panelOfKeys;
  place.columns = columns;
  emitTilesWithin(kernel, scores, sizes.scores, panel, place);
  emitRowBlock(kernel, rows, unit);
}

/// Sums up values by the weights in the panel, of the `keys` that it has; null
/// for all.
void AttentionEmitter::emitValues(ArrayRef<Output> results,
                                  std::pair<Value, Value> keys) {
  linalg::GenericOp values = attention.values;
  SmallVector<AffineExpr> origin = originOfPanel(values);
  TilesWithin place =
      within(values, [&](unsigned axis) { return attention.valuesLoop(axis); });
  place.blocks = valuesInOrder;
  place.panel = panelOfValues;
  place.sums = keys;
  place.parts.push_back(
      {rows.result, {rows.panel, {rows.axis, attention.axes() - 1}, origin}});
  if (sizes.isRunning) {
    place.parts.push_back(
        {running.factor, {factorOfRows, {rows.axis}, {origin[0]}}});
    place.parts.push_back(
        {running.sums, {sumsOfRows, axesOfSums(), {origin[0]}}});
  }
  emitTilesWithin(kernel, values, sizes.values, results, place);
}

void AttentionEmitter::emitBlock() {
  if (sizes.isRunning)
    return emitRunningBlock();
  emitWeights({});
  emitValues(outputs, {});
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

/// The axes of the sums of values that go along queries and along a value.
SmallVector<unsigned> AttentionEmitter::axesOfSums() {
  linalg::GenericOp values = attention.values;
  AffineMap map = values.getIndexingMapMatchingResult(values->getOpResult(0));
  SmallVector<unsigned> axes;
  for (unsigned loop : {attention.valuesLoop(rows.axis), attention.column})
    axes.push_back(
        *map.getResultPosition(getAffineDimExpr(loop, b.getContext())));
  return axes;
}

/// Memory for a block of scores, and for what is kept of the blocks before.
void AttentionEmitter::placeRunning() {
  running = makeRunning(kernel, attention);
  int64_t columns =
      llvm::alignTo(staticLoopExtent(attention.values, attention.column), 16);
  int64_t queries = llvm::alignTo(sizes.queries, 16);
  int64_t count = queries * (sizes.stride + columns + 3);
  scratch = kernel.addScratch(getElementTypeOrSelf(rows.given), count,
                              partsOfScratch(count * bytes));
  auto panelOf = [&](linalg::GenericOp op, const Tiling &tiling) -> Value {
    if (!tiling.panel)
      return {};
    SmallVector<int64_t> shape = blocksShape(kernel, op, tiling);
    shape[0] = 1;
    return onStack(shape);
  };
  panelOfKeys = panelOf(attention.scores, sizes.scores);
  panelOfValues = panelOf(attention.values, sizes.values);
  rows.panel = slice({queries, sizes.stride}, {sizes.stride, 1});
  sumsOfRows = slice({queries, columns}, {columns, 1});
  for (Value *memory : {&mostOfRows, &totalOfRows, &factorOfRows})
    *memory = slice({queries}, {1});
}

/// Before the first block of keys there is nothing.
void AttentionEmitter::startRunning() {
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(getElementTypeOrSelf(rows.given)));
  Value least = kernel.scalar(running.least);
  int64_t columns = cast<MemRefType>(sumsOfRows.getType()).getDimSize(1);
  auto type = VectorType::get(sizes.values.lanes, zero.getType());
  Value zeros = vector::BroadcastOp::create(b, loc, type, zero);
  Value count = arith::SubIOp::create(b, loc, rows.to, rows.from);
  emitLoop(b, loc, kernel.index(0), count, kernel.index(1), {},
           [&](Value row, ValueRange) -> SmallVector<Value> {
             memref::StoreOp::create(b, loc, least, mostOfRows, row);
             memref::StoreOp::create(b, loc, zero, totalOfRows, row);
             emitLoop(b, loc, kernel.index(0), kernel.index(columns),
                      kernel.index(sizes.values.lanes), {},
                      [&](Value column, ValueRange) -> SmallVector<Value> {
                        vector::StoreOp::create(b, loc, zeros, sumsOfRows,
                                                ValueRange{row, column});
                        return {};
                      });
             return {};
           });
}

/// A block of queries sees a block of keys after the other.
void AttentionEmitter::emitRunningBlock() {
  int64_t keys = attention.keyCount();
  int64_t width = int64_t(sizes.scores.size.vectors) * sizes.scores.lanes;
  Position place = {
      getAffineDimExpr(attention.valuesLoop(rows.axis), b.getContext()),
      getAffineDimExpr(attention.column, b.getContext())};
  auto some = [&](Value first, int64_t count) {
    rows.first = first;
    rows.count = count;
    rows.known = {{running.most, mostOfRows}, {running.total, totalOfRows}};
    rows.kept = {{running.factor, factorOfRows},
                 {running.nextTotal, totalOfRows},
                 {running.nextMost, mostOfRows}};
    Value number = arith::DivUIOp::create(b, loc, first, kernel.index(width));
    Value next = arith::AddIOp::create(
        b, loc, number, kernel.index(llvm::divideCeil(count, width)));
    emitWeights({number, next});
    linalg::GenericOp values = attention.values;
    Position inSums = place;
    inSums[0] = inSums[0] - originOfPanel(values)[0];
    Output sums = {values->getResult(0),
                   *positionOf(values->getResult(0), values), sumsOfRows,
                   inSums};
    Value end = arith::AddIOp::create(b, loc, first, kernel.index(count));
    emitValues(sums, {first, end});
  };
  startRunning();
  int64_t whole = keys / sizes.keys * sizes.keys;
  if (whole != 0)
    emitLoop(b, loc, kernel.index(0), kernel.index(whole),
             kernel.index(sizes.keys), {},
             [&](Value first, ValueRange) -> SmallVector<Value> {
               some(first, sizes.keys);
               return {};
             });
  if (whole != keys)
    some(kernel.index(whole), keys - whole);
  finishRunning();
}

/// Computes the outputs of the block of queries from the sums.
void AttentionEmitter::finishRunning() {
  linalg::GenericOp values = attention.values;
  LaneReader reader(kernel);
  reader.setLane(attention.column);
  for (unsigned axis = 0; axis + 1 < attention.axes(); ++axis)
    reader.bind(attention.valuesLoop(axis), rows.around[axis]);
  Position point;
  for (unsigned loop = 0; loop < values.getNumLoops(); ++loop)
    point.push_back(staticLoopExtent(values, loop) == 1
                        ? getAffineConstantExpr(0, b.getContext())
                        : getAffineDimExpr(loop, b.getContext()));
  int64_t columns = staticLoopExtent(values, attention.column);
  int64_t lanes = sizes.values.lanes, whole = columns / lanes * lanes;
  emitTurns(kernel, reader, rows.from, rows.to, 1, [&](Value query) {
    reader.bind(attention.valuesLoop(rows.axis), query);
    Value row = arith::SubIOp::create(b, loc, query, rows.from);
    Value total = memref::LoadOp::create(b, loc, totalOfRows, row);
    auto some = [&](Value column, unsigned width) {
      LaneReader::Scope scope(reader);
      reader.bind(attention.column, column);
      auto type = VectorType::get(width, total.getType());
      Value sums = vector::LoadOp::create(b, loc, type, sumsOfRows,
                                          ValueRange{row, column});
      Value divisor = vector::BroadcastOp::create(b, loc, type, total);
      sums = arith::DivFOp::create(b, loc, sums, divisor);
      storeOutputs(reader, values, outputs, point, width, sums);
    };
    emitTurns(kernel, reader, kernel.index(0), kernel.index(whole), lanes,
              [&](Value column) { some(column, lanes); });
    if (whole != columns)
      some(kernel.index(whole), columns - whole);
  });
}

//===----------------------------------------------------------------------===//
// Blocks of queries
//===----------------------------------------------------------------------===//

/// Puts keys and values in the order of tiles.
void AttentionEmitter::emitOrder() {
  auto order = [&](linalg::GenericOp op, const Tiling &tiling, Value blocks,
                   llvm::function_ref<unsigned(unsigned)> loopOf) {
    if (!blocks)
      return;
    TilesWithin place = within(op, loopOf);
    place.blocks = blocks;
    fillBlocks(kernel, op, tiling, place);
  };
  order(attention.scores, sizes.scores, keysInOrder,
        [&](unsigned axis) { return attention.scoresLoop(axis); });
  order(attention.values, sizes.values, valuesInOrder,
        [&](unsigned axis) { return attention.valuesLoop(axis); });
}

void AttentionEmitter::emitBlocks(Value from, Value to) {
  std::tie(rows.from, rows.to) = {from, to};
  int64_t all = scoresExtent(rows.axis);
  if (sizes.queries >= all && getConstantIntValue(from) == 0 &&
      getConstantIntValue(to) == all)
    return emitBlock();
  emitOrder();
  Value step = kernel.index(sizes.queries);
  emitLoop(b, loc, from, to, step, {},
           [&](Value first, ValueRange) -> SmallVector<Value> {
             Value next = arith::AddIOp::create(b, loc, first, step);
             rows.from = first;
             rows.to = arith::MinUIOp::create(b, loc, next, to);
             emitBlock();
             return {};
           });
}

void AttentionEmitter::run() {
  sizes.isRunning ? placeRunning() : placeMemory();
  renameKeys(kernel, attention);
  emitAroundQueries(kernel, attention, sizes.queries,
                    [&](Value from, Value to) { emitBlocks(from, to); });
}

bool emitAttention(Kernel &kernel, const VectorUnit &unit, int64_t mostKeys) {
  std::optional<Attention> attention = attentionOf(kernel, unit);
  if (!attention)
    return false;
  if (emitLaneAttention(kernel, unit, *attention))
    return true;
  AttentionEmitter emitter(kernel, unit, *attention);
  if (!emitter.plan(mostKeys))
    return false;
  emitter.run();
  return true;
}

} // namespace keratin
