//===- AttentionPlan.cpp - how large the blocks of attention are ----------===//
#include "codegen/cpu/AttentionPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
class AttentionPlanner {
public:
  AttentionPlanner(const Attention &attention, const VectorUnit &unit)
      : attention(attention), unit(unit) {}

  std::optional<AttentionPlan> run(bool holdsSums, int64_t mostKeys);

private:
  Tiling tilingOf(linalg::GenericOp op, unsigned row, unsigned lane,
                  OpOperand *blocked);
  void pickTiles();
  void pickPanelOfValues(bool holdsSums);
  void pickBlock();
  void pickRunningBlock(int64_t mostKeys);
  int64_t keysOfPanel();

  const Attention &attention;
  const VectorUnit &unit;
  AttentionPlan sizes;
  int64_t bytes = 4; ///< of an element
};
} // namespace

/// The loops of a product, but for the sizes of its tiles: columns outside of
/// the rows, for which `blocked` is copied to a panel.
Tiling AttentionPlanner::tilingOf(linalg::GenericOp op, unsigned row,
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

int64_t bytesApart(linalg::GenericOp op, OpOperand *operand, unsigned loop) {
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
void AttentionPlanner::pickTiles() {
  int64_t queries = attention.queryCount(), keys = attention.keyCount();
  int64_t most = std::min(
      queries,
      cachedRows(bytesApart(attention.scores, attention.queries,
                            attention.scoresLoop(attention.rows.axis))));
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

/// How many keys a panel of the values of one tile has room for.
int64_t AttentionPlanner::keysOfPanel() {
  constexpr int64_t panelBytes = 128 << 10;
  const Tiling &tiling = sizes.values;
  return panelBytes / (int64_t(tiling.size.vectors) * tiling.lanes * bytes);
}

/// Values that are not one behind the other are copied to a panel, so many at a
/// time as the stack has room for: lines at one distance share ways of caches.
void AttentionPlanner::pickPanelOfValues(bool holdsSums) {
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
  int64_t keys = attention.keyCount(), fitting = keysOfPanel();
  if (keys > fitting && !sizes.ordersOnce && !sizes.isRunning) {
    if (!holdsSums)
      return;
    tiling.blockStep = llvm::divideCeil(keys, llvm::divideCeil(keys, fitting));
  }
  tiling.blocked = attention.vectors;
  tiling.panel = true;
}

/// As many queries at a time as their scores have room for in the second cache
/// beside keys and values: for each block all keys are put in order.
void AttentionPlanner::pickBlock() {
  constexpr int64_t panelBytes = 512 << 10, mostQueries = 144;
  int64_t height = sizes.scores.size.rows;
  int64_t all = attention.queryCount();
  sizes.keys = attention.keyCount();
  sizes.stride = llvm::alignTo(sizes.keys, 16);
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

/// Scores of some queries and some keys that have room in the second cache
/// beside those. Each block of queries reads all keys and values again, so that
/// there are many of them.
void AttentionPlanner::pickRunningBlock(int64_t mostKeys) {
  constexpr int64_t keysAtOnce = 512, mostQueries = 240;
  int64_t height = sizes.scores.size.rows;
  int64_t width = int64_t(sizes.scores.size.vectors) * sizes.scores.lanes;
  int64_t all = attention.queryCount(), keys = attention.keyCount();
  int64_t fitting =
      std::max(std::min({keysAtOnce, mostKeys, keysOfPanel()}), width);
  fitting = fitting / width * width;
  int64_t blocks = llvm::divideCeil(keys, fitting);
  sizes.keys = llvm::alignTo(llvm::divideCeil(keys, blocks), width);
  sizes.stride = llvm::alignTo(sizes.keys, 16);
  if (cachedRows(sizes.stride * bytes) < height)
    sizes.stride += 16;
  blocks = llvm::divideCeil(all, mostQueries);
  sizes.queries = llvm::alignTo(llvm::divideCeil(all, blocks), height);
  sizes.values.blockStep = sizes.keys;
  sizes.isRunning = true;
}

std::optional<AttentionPlan> AttentionPlanner::run(bool holdsSums,
                                                   int64_t mostKeys) {
  unsigned last = attention.axes() - 1, axis = attention.rows.axis;
  if (ShapedType::isDynamic(attention.queryCount()) ||
      ShapedType::isDynamic(attention.keyCount()))
    return std::nullopt;
  bytes =
      getElementTypeOrSelf(attention.rows.given).getIntOrFloatBitWidth() / 8;
  sizes.scores = tilingOf(attention.scores, attention.scoresLoop(axis),
                          attention.scoresLoop(last), attention.keys);
  sizes.values = tilingOf(attention.values, attention.valuesLoop(axis),
                          attention.column, nullptr);
  pickTiles();
  if (attention.softmax && attention.keyCount() > mostKeys)
    pickRunningBlock(mostKeys);
  else
    pickBlock();
  pickPanelOfValues(holdsSums);
  return sizes;
}

std::optional<AttentionPlan> planAttention(const Attention &attention,
                                           const VectorUnit &unit,
                                           bool holdsSums, int64_t mostKeys) {
  return AttentionPlanner(attention, unit).run(holdsSums, mostKeys);
}

} // namespace keratin
