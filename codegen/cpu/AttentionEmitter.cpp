//===- AttentionEmitter.cpp - attention without a matrix of scores --------===//
//
// A block of queries at a time: its scores, a product in register tiles, go to
// a panel with a row for each query; each row becomes weights; and the weights
// times the values are the outputs, again in register tiles. So what would be a
// matrix of all queries by all keys is never in memory.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {

/// How large the blocks of attention are.
struct AttentionPlan {
  Tiling scores, values;
  int64_t queries = 1; ///< in a block
  int64_t stride = 1;  ///< elements from row to row of the panel
  /// Whether keys and values are put in order once for several blocks.
  bool ordersOnce = false;
};

class AttentionEmitter {
public:
  AttentionEmitter(Kernel &kernel, const VectorUnit &unit,
                   const Attention &attention)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), unit(unit),
        attention(attention), rows(attention.rows) {}

  bool plan();
  void run();

private:
  int64_t scoresExtent(unsigned axis);
  Tiling tilingOf(linalg::GenericOp op, unsigned row, unsigned lane,
                  OpOperand *blocked);
  void pickTiles();
  void pickPanelOfValues();
  void pickBlock();
  int64_t partsOfScratch(int64_t bytes);
  void placeMemory();
  Value slice(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides);
  void renameKeys();
  void collectOutputs();
  void emitAround(unsigned axis, std::optional<unsigned> shared);
  void emitOrder();
  void emitBlocks(bool shared);
  void emitBlock();
  TilesWithin within(linalg::GenericOp op,
                     llvm::function_ref<unsigned(unsigned)> loopOf);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  const VectorUnit &unit;
  Attention attention;
  RowBlock rows;
  AttentionPlan sizes;
  SmallVector<Output> outputs;
  int64_t bytes = 4;                ///< of an element
  Value keysInOrder, valuesInOrder; ///< all blocks of them
  std::pair<Value, Value> scratch;  ///< and where in it is room
};

} // namespace

int64_t AttentionEmitter::scoresExtent(unsigned axis) {
  return staticLoopExtent(attention.scores, attention.scoresLoop(axis));
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The loops of a product, but for the sizes of its tiles: columns outside of
/// the rows, for which `blocked` is copied to a panel.
Tiling AttentionEmitter::tilingOf(linalg::GenericOp op, unsigned row,
                                  unsigned lane, OpOperand *blocked) {
  Tiling tiling;
  tiling.levels = {{Tiling::Kind::Columns, lane}, {Tiling::Kind::Rows, row}};
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      tiling.reductions.push_back(loop);
  tiling.lane = lane;
  tiling.row = row;
  tiling.lanes =
      std::min<uint64_t>(lanesOf(op->getResult(0), unit),
                         llvm::bit_ceil(uint64_t(staticLoopExtent(op, lane))));
  tiling.blocked = blocked;
  tiling.panel = blocked != nullptr;
  return tiling;
}

/// Bytes between the elements of two turns of `loop` of `op`.
static int64_t bytesApart(linalg::GenericOp op, OpOperand *operand,
                          unsigned loop) {
  auto type = cast<RankedTensorType>(operand->get().getType());
  int64_t apart = type.getElementTypeBitWidth() / 8;
  AffineMap map = op.getMatchingIndexingMap(operand);
  for (unsigned dim = type.getRank(); dim-- > 0;) {
    if (map.getDimPosition(dim) == loop || type.isDynamicDim(dim))
      break;
    apart *= type.getDimSize(dim);
  }
  return apart;
}

/// Tiles of one height for both products, so that blocks of queries are whole
/// tiles of either.
void AttentionEmitter::pickTiles() {
  unsigned last = attention.axes() - 1;
  int64_t queries = scoresExtent(rows.axis), keys = scoresExtent(last);
  int64_t most = std::min(
      queries, cachedRows(bytesApart(attention.scores, attention.queries,
                                     attention.scoresLoop(rows.axis))));
  int64_t depth = 1;
  for (unsigned loop : sizes.scores.reductions)
    depth *= staticLoopExtent(attention.scores, loop);
  int64_t columns = staticLoopExtent(attention.values, attention.column);
  int64_t best = INT64_MAX;
  auto widest = [&](Tiling &tiling, int64_t columns, int64_t height,
                    int64_t mostVectors) {
    int64_t vectors = llvm::divideCeil(columns, tiling.lanes);
    int64_t best = INT64_MAX;
    for (int64_t width = 1; width <= std::min(vectors, mostVectors); ++width) {
      TileSize size = {unsigned(height), unsigned(width)};
      if ((height + 1) * width + 1 > unit.registers)
        break;
      if (int64_t cost = productCost(queries, vectors, size); cost < best) {
        best = cost;
        tiling.size = size;
      }
    }
    return best;
  };
  // A panel of the keys of one tile is on the stack.
  constexpr int64_t keyBytes = 64 << 10;
  int64_t mostKeys =
      std::max<int64_t>(keyBytes / (depth * bytes * sizes.scores.lanes), 1);
  for (int64_t height = 1; height <= most; ++height) {
    Tiling scores = sizes.scores, values = sizes.values;
    int64_t first = widest(scores, keys, height, mostKeys);
    int64_t second = widest(values, columns, height, 8);
    if (first == INT64_MAX || second == INT64_MAX)
      break;
    int64_t cost = first * depth + second * keys;
    if (cost < best) {
      best = cost;
      sizes.scores.size = scores.size;
      sizes.values.size = values.size;
    }
  }
}

/// Values that are not one behind the other are copied to a panel, so many at a
/// time as the stack has room for: lines at one distance share ways of caches.
void AttentionEmitter::pickPanelOfValues() {
  constexpr int64_t panelBytes = 128 << 10;
  linalg::GenericOp values = attention.values;
  Tiling &tiling = sizes.values;
  unsigned key = tiling.reductions[0];
  auto type = cast<ShapedType>(attention.vectors->get().getType());
  LaneAccess access = laneAccess(
      type, values.getMatchingIndexingMap(attention.vectors).getResults(),
      attention.column);
  if (access == LaneAccess::Contiguous &&
      bytesApart(values, attention.vectors, key) ==
          bytes * staticLoopExtent(values, attention.column))
    return;
  int64_t keys = staticLoopExtent(values, key);
  int64_t fitting =
      panelBytes / (int64_t(tiling.size.vectors) * tiling.lanes * bytes);
  if (keys > fitting && !sizes.ordersOnce) {
    if (!holdsSums(values, outputs))
      return;
    tiling.blockStep = llvm::divideCeil(keys, llvm::divideCeil(keys, fitting));
  }
  tiling.blocked = attention.vectors;
  tiling.panel = true;
}

/// As many queries at a time as their scores have room for in the second cache
/// beside keys and values: for each block all keys are put in order.
void AttentionEmitter::pickBlock() {
  constexpr int64_t panelBytes = 512 << 10, mostQueries = 144;
  int64_t height = sizes.scores.size.rows;
  int64_t keys = scoresExtent(attention.axes() - 1);
  int64_t all = scoresExtent(rows.axis);
  sizes.stride = llvm::alignTo(keys, 16);
  if (cachedRows(sizes.stride * bytes) < height)
    sizes.stride += 16;
  int64_t fitting = std::clamp<int64_t>(panelBytes / (sizes.stride * bytes),
                                        height, mostQueries);
  fitting = fitting / height * height;
  // Blocks of about one size.
  int64_t blocks = llvm::divideCeil(all, fitting);
  sizes.queries = llvm::alignTo(llvm::divideCeil(all, blocks), height);
  sizes.ordersOnce = blocks > 1;
}

/// Whether there are sizes for the kernel.
bool AttentionEmitter::plan() {
  unsigned last = attention.axes() - 1;
  for (unsigned axis : {rows.axis, last})
    if (ShapedType::isDynamic(scoresExtent(axis)))
      return false;
  bytes = getElementTypeOrSelf(rows.given).getIntOrFloatBitWidth() / 8;
  sizes.scores = tilingOf(attention.scores, attention.scoresLoop(rows.axis),
                          attention.scoresLoop(last), attention.keys);
  sizes.values = tilingOf(attention.values, attention.valuesLoop(rows.axis),
                          attention.column, nullptr);
  collectOutputs();
  pickTiles();
  pickBlock();
  pickPanelOfValues();
  return true;
}

void AttentionEmitter::collectOutputs() {
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    Position position = *positionOf(result, attention.values);
    outputs.push_back({result, position, kernel.destination(number), position});
  }
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

/// A small panel is on the stack.
void AttentionEmitter::placeMemory() {
  constexpr int64_t stackBytes = 96 << 10;
  Type element = getElementTypeOrSelf(rows.given);
  SmallVector<int64_t> shape = {sizes.queries, sizes.stride};
  int64_t count = sizes.queries * sizes.stride;
  if (!sizes.ordersOnce && count * bytes <= stackBytes) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    rows.panel = memref::AllocaOp::create(
        b, loc, MemRefType::get(shape, element), b.getI64IntegerAttr(64));
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

/// Gives the keys a name of their own where the queries are the same tensor:
/// reads of keys go to a panel.
void AttentionEmitter::renameKeys() {
  Value tensor = attention.keys->get();
  if (tensor != attention.queries->get())
    return;
  OpBuilder before(attention.scores);
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> sizes;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(extent))
      sizes.push_back(tensor::DimOp::create(before, loc, tensor, int64_t(dim)));
  Value name = tensor::EmptyOp::create(before, loc, type, sizes);
  kernel.setMemref(name, kernel.memrefOf(tensor));
  attention.keys->set(name);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Where the tiles of `op` are: on all axes but those of the queries and the
/// keys, and in the block of queries. Behind the loops of `op`, and those that
/// a tile makes of its own, is a coordinate for the start of that.
TilesWithin
AttentionEmitter::within(linalg::GenericOp op,
                         llvm::function_ref<unsigned(unsigned)> loopOf) {
  TilesWithin place;
  for (unsigned axis = 0; axis + 1 < attention.axes(); ++axis)
    if (axis != rows.axis)
      place.coordinates.push_back({loopOf(axis), rows.around[axis]});
  unsigned start = op.getNumLoops() + spareCoordinates;
  place.coordinates.push_back({start, rows.from});
  place.rows = {rows.from, rows.to};
  return place;
}

void AttentionEmitter::emitBlock() {
  auto coordinate = [&](unsigned loop) {
    return getAffineDimExpr(loop, b.getContext());
  };
  unsigned last = attention.axes() - 1;
  linalg::GenericOp scores = attention.scores, values = attention.values;
  auto scoresLoop = [&](unsigned axis) { return attention.scoresLoop(axis); };
  auto valuesLoop = [&](unsigned axis) { return attention.valuesLoop(axis); };

  AffineExpr start = coordinate(scores.getNumLoops() + spareCoordinates);
  Position inPanel = {coordinate(scoresLoop(rows.axis)) - start,
                      coordinate(scoresLoop(last))};
  Output panel = {rows.given, *positionOf(rows.given, scores), rows.panel,
                  inPanel};
  TilesWithin place = within(scores, scoresLoop);
  place.blocks = keysInOrder;
  emitTilesWithin(kernel, scores, sizes.scores, panel, place);
  emitRowBlock(kernel, rows, unit);
  place = within(values, valuesLoop);
  place.blocks = valuesInOrder;
  place.parts.push_back(
      {rows.result,
       {rows.panel,
        {rows.axis, last},
        coordinate(values.getNumLoops() + spareCoordinates)}});
  emitTilesWithin(kernel, values, sizes.values, outputs, place);
}

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

void AttentionEmitter::emitBlocks(bool shared) {
  Value extent = kernel.index(scoresExtent(rows.axis));
  auto [from, to] = shared ? kernel.share(extent, sizes.queries)
                           : std::pair(kernel.index(0), extent);
  if (!shared && sizes.queries >= scoresExtent(rows.axis)) {
    std::tie(rows.from, rows.to) = {from, to};
    return emitBlock();
  }
  std::tie(rows.from, rows.to) = {from, to};
  emitOrder();
  Value step = kernel.index(sizes.queries), end = to;
  emitLoop(b, loc, from, to, step, {},
           [&](Value first, ValueRange) -> SmallVector<Value> {
             Value next = arith::AddIOp::create(b, loc, first, step);
             rows.from = first;
             rows.to = arith::MinUIOp::create(b, loc, next, end);
             emitBlock();
             return {};
           });
}

/// The loops of the axes from `axis` on that are not of queries or keys.
void AttentionEmitter::emitAround(unsigned axis,
                                  std::optional<unsigned> shared) {
  unsigned last = attention.axes() - 1;
  if (axis == last)
    return emitBlocks(shared == rows.axis);
  if (axis == rows.axis)
    return emitAround(axis + 1, shared);
  Value extent =
      kernel.loopExtent(attention.scores, attention.scoresLoop(axis));
  auto [from, to] = shared == axis ? kernel.share(extent, 1)
                                   : std::pair(kernel.index(0), extent);
  if (scoresExtent(axis) == 1 && shared != axis) {
    rows.around[axis] = from;
    return emitAround(axis + 1, shared);
  }
  emitLoop(b, loc, from, to, kernel.index(1), {},
           [&](Value at, ValueRange) -> SmallVector<Value> {
             rows.around[axis] = at;
             emitAround(axis + 1, shared);
             return {};
           });
}

void AttentionEmitter::run() {
  placeMemory();
  renameKeys();
  unsigned last = attention.axes() - 1;
  rows.around.assign(last, kernel.index(0));
  // The loops from outside to inside, blocks of queries last.
  SmallVector<unsigned> order;
  SmallVector<int64_t> turns;
  for (unsigned axis = 0; axis < last; ++axis)
    if (axis != rows.axis) {
      order.push_back(axis);
      turns.push_back(scoresExtent(axis));
    }
  order.push_back(rows.axis);
  turns.push_back(llvm::divideCeil(scoresExtent(rows.axis), sizes.queries));
  if (std::optional<unsigned> shared = kernel.pickShared(turns))
    emitAround(0, order[*shared]);
  else
    kernel.emitOnce([&] { emitAround(0, std::nullopt); });
}

bool emitAttention(Kernel &kernel, const VectorUnit &unit) {
  std::optional<Attention> attention = attentionOf(kernel, unit);
  if (!attention)
    return false;
  AttentionEmitter emitter(kernel, unit, *attention);
  if (!emitter.plan())
    return false;
  emitter.run();
  return true;
}

} // namespace keratin
