//===- AttentionLanesPlan.cpp - which attention has a query in each lane --===//
#include "codegen/cpu/AttentionLanes.h"
#include "codegen/cpu/AttentionPlan.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace keratin {

/// Whether what follows from each score reads `operand` at places that are the
/// same for all queries, or that can be transposed.
bool LaneAttention::takeMask(linalg::GenericOp op, OpOperand &operand) {
  Value tensor = operand.get();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (op.getMatchingBlockArgument(&operand).use_empty() ||
      !kernel.memrefOf(tensor) || !map.isFunctionOfDim(queryAxis()))
    return true;
  auto isRead = [&](OpOperand *other) { return other->get() == tensor; };
  Type type = getElementTypeOrSelf(tensor);
  MLIRContext *context = b.getContext();
  std::optional<unsigned> query =
      map.getResultPosition(getAffineDimExpr(queryAxis(), context));
  std::optional<unsigned> key =
      map.getResultPosition(getAffineDimExpr(keyAxis(), context));
  bool isTransposed =
      key && *key + 1 == map.getNumResults() && keyCount() >= int64_t(lanes);
  if (!query || (!isTransposed && map.isFunctionOfDim(keyAxis())) ||
      !(type.isF32() || type.isInteger(1) || type.isInteger(8) ||
        type.isInteger(32)) ||
      llvm::any_of(map.getResults(),
                   [](AffineExpr expr) {
                     return !isa<AffineDimExpr, AffineConstantExpr>(expr);
                   }) ||
      isRead(attention.queries) || isRead(attention.keys) ||
      isRead(attention.vectors))
    return false;
  for (const LaneMask &mask : masks)
    if (mask.tensor == tensor)
      return mask.map == map;
  masks.push_back({tensor, map, *query, key});
  return true;
}

bool LaneAttention::fits() {
  element = getElementTypeOrSelf(attention.rows.given);
  if (!element.isF32() || unit.littleCode ||
      ShapedType::isDynamic(queryCount()) || ShapedType::isDynamic(keyCount()))
    return false;
  lanes = unit.bits / 32;
  if (!kernel.memrefOf(attention.queries->get()))
    return false;
  for (auto [loop, kind] : llvm::enumerate(scores.getIteratorTypesArray())) {
    int64_t extent = staticLoopExtent(scores, loop);
    if (kind != utils::IteratorType::reduction || extent == 1)
      continue;
    if (depth != 1)
      return false;
    depth = extent;
    depthLoop = loop;
  }
  columns = staticLoopExtent(values, attention.column);
  auto reads = [&](linalg::GenericOp op, OpOperand *operand, unsigned loop) {
    return laneAccess(cast<ShapedType>(operand->get().getType()),
                      op.getMatchingIndexingMap(operand).getResults(), loop);
  };
  if (depth == 1 || !scores.getDpsInits()[0].getDefiningOp<linalg::FillOp>() ||
      reads(scores, attention.queries, depthLoop) != LaneAccess::Contiguous)
    return false;
  // Rows that are far apart are not fetched ahead by the machine.
  constexpr int64_t far = 1024;
  auto isFar = [&](linalg::GenericOp op, OpOperand *operand, unsigned row,
                   unsigned along) {
    return reads(op, operand, along) == LaneAccess::Contiguous &&
           bytesApart(op, operand, row) >= far;
  };
  asksForKeys =
      isFar(scores, attention.keys, attention.scoresLoop(keyAxis()), depthLoop);
  asksForRest = isFar(scores, attention.queries,
                      attention.scoresLoop(queryAxis()), depthLoop) &&
                isFar(values, attention.vectors,
                      attention.valuesLoop(keyAxis()), attention.column);
  SmallVector<linalg::GenericOp> elementwise = {softmax.weights};
  lastOfChain(scores->getResult(0), elementwise);
  return llvm::all_of(elementwise, [&](linalg::GenericOp op) {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
      return takeMask(op, operand);
    });
  });
}

/// The best tiles for blocks of so many vectors.
LaneTile LaneAttention::tileOf(int64_t vectors) const {
  LaneTile best;
  auto pick = [&](int64_t rows, int64_t &height) {
    // So many sums hide the latency of each only just.
    constexpr int64_t fewSums = 9;
    int64_t least = INT64_MAX;
    for (int64_t high = 1; high <= std::min<int64_t>(rows, 16) &&
                           high * vectors + vectors + 1 <= unit.registers;
         ++high) {
      TileSize size = {unsigned(high), unsigned(vectors)};
      int64_t cost = productCost(rows, vectors, size);
      if (high * vectors <= fewSums)
        cost += cost / 16;
      if (cost < least) {
        least = cost;
        height = high;
      }
    }
    return least;
  };
  best.vectors = vectors;
  best.cost = pick(keyCount(), best.keys) * depth;
  best.cost += pick(columns, best.columns) * keyCount();
  return best;
}

/// Blocks of one size, and what is left of the queries.
bool LaneAttention::pickBlocks() {
  constexpr int64_t mostVectors = 4, panelBytes = 16 << 10;
  constexpr int64_t mostBytes = 32 << 10; // of queries, and of sums
  int64_t all = llvm::divideCeil(queryCount(), int64_t(lanes));
  // At least three of four lanes have something to do.
  if (queryCount() * 4 < all * lanes * 3)
    return false;
  int64_t least = INT64_MAX, vectorBytes = int64_t(lanes) * 4;
  // With one vector each sum loads a scalar for itself.
  for (int64_t vectors = std::min<int64_t>(all, 2);
       vectors <= std::min(all, mostVectors); ++vectors) {
    if (std::max(depth, columns) * vectors * vectorBytes > mostBytes)
      break;
    LaneTile some = tileOf(vectors), rest;
    int64_t cost = all / vectors * some.cost;
    if (all % vectors != 0) {
      rest = tileOf(all % vectors);
      cost += rest.cost + some.cost / 8; // it is code
    }
    if (hidden) // of causal pairs a half, and what is left of a block
      cost *= 3 * all + vectors;
    if (cost > least)
      continue;
    least = cost;
    full = some;
    last = rest;
  }
  if (full.vectors == 0)
    return false;
  // The rest begins where whole blocks of queries that exist end.
  if (queryCount() % (full.vectors * lanes) != 0 && last.vectors == 0)
    last = full;
  // Blocks of keys are whole tiles of either.
  constexpr int64_t mostKeys = 64;
  int64_t step = std::lcm(full.keys, std::max<int64_t>(last.keys, 1));
  if (step > mostKeys) {
    step = full.keys;
    last.keys = full.keys;
  }
  int64_t most = panelBytes / (full.vectors * vectorBytes);
  most = std::max(most / step * step, step);
  int64_t blocks = llvm::divideCeil(keyCount(), most);
  keysAtOnce = blocks == 1
                   ? keyCount()
                   : llvm::alignTo(llvm::divideCeil(keyCount(), blocks), step);
  return true;
}

bool LaneAttention::plan() {
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    Position position = *positionOf(result, values);
    outputs.push_back({result, position, kernel.destination(number), position});
  }
  if (!fits())
    return false;
  findHidden();
  return pickBlocks();
}

} // namespace keratin
