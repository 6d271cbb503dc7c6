//===- GateForm.cpp - which kernels have gates ----------------------------===//
#include "codegen/cpu/GateForm.h"

#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/KernelForm.h"
#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/PairPacking.h"
#include "codegen/cpu/PairedTiles.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/SplitTiles.h"
#include "codegen/cpu/TileSizes.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace keratin {

namespace {
/// Fills in a GateForm, step by step.
class GateMatcher : public GateForm {
public:
  GateMatcher(Kernel &kernel, const VectorUnit &unit, DotUnit has)
      : kernel(kernel), unit(unit), has(has) {}

  bool matches();

private:
  bool findRoot();
  bool findWeights();
  bool isOver(Value value, bool withGates);
  bool readsInPlace(linalg::GenericOp op);
  int64_t mostRowsFitting() const;
  void pickHeights();
  bool hasPairs();
  bool fitsTiles();
  bool fitsSplit();
  DotUnit pickDots();
  void pickPacking24();
  bool hasRowsInMemory();
  void pickPairs();

  Kernel &kernel;
  const VectorUnit &unit;
  DotUnit has;
};
} // namespace

bool GateMatcher::findRoot() {
  for (auto op : kernel.from().getOps<linalg::GenericOp>()) {
    if (!isVectorizable(op) ||
        !op.getBody()->getOps<tensor::ExtractOp>().empty())
      return false;
    if (op.getNumReductionLoops() == 0)
      continue;
    if (root)
      return false;
    root = op;
  }
  if (!root || root->getNumResults() != 1 || root.getNumParallelLoops() < 3 ||
      !tellsItsLoops(root))
    return false;
  gate = root.getNumParallelLoops() - 2;
  lane = gate + 1;
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray())) {
    if ((kind == utils::IteratorType::parallel) != (loop <= lane))
      return false;
    if (kind == utils::IteratorType::reduction)
      reductions.push_back(loop);
  }
  gates = staticLoopExtent(root, gate);
  units = staticLoopExtent(root, lane);
  AffineMap output = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  return gates > 0 && units > 0 &&
         output == AffineMap::getMultiDimIdentityMap(root.getNumLoops(),
                                                     root.getContext())
                       .getMajorSubMap(lane + 1);
}

/// A constant that is read along the gates, the units and the reductions only,
/// and nothing else that is read along the units.
bool GateMatcher::findWeights() {
  for (OpOperand *operand : root.getDpsInputOperands()) {
    AffineMap map = root.getMatchingIndexingMap(operand);
    if (!map.isFunctionOfDim(lane)) {
      factor = operand;
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(operand->get());
    if (weights || !argument || !argument.hasOneUse() ||
        !map.isProjectedPermutation() || !map.isFunctionOfDim(gate) ||
        !kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"))
      return false;
    for (unsigned loop = 0; loop < gate; ++loop)
      if (map.isFunctionOfDim(loop))
        return false;
    weights = operand;
  }
  return weights != nullptr;
}

/// Whether `value` is computed element by element over the parallel loops of
/// the root, or over those without the gates.
bool GateMatcher::isOver(Value value, bool withGates) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumReductionLoops() != 0 ||
      op.getNumLoops() != lane + withGates ||
      !op.getIndexingMapMatchingResult(cast<OpResult>(value)).isIdentity())
    return false;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (staticLoopExtent(op, loop) !=
        staticLoopExtent(root, loop + (!withGates && loop >= gate)))
      return false;
  return true;
}

/// Whether `op` reads what follows from the product in its own row and unit:
/// nothing else is there in a tile.
bool GateMatcher::readsInPlace(linalg::GenericOp op) {
  bool withGates = op.getNumLoops() == lane + 1;
  auto isInPlace = [&](AffineExpr expr, unsigned loop) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      // The lane is never at a constant.
      int64_t extent = loop == lane ? 0 : staticLoopExtent(root, loop);
      return constant.getValue() >= 0 && constant.getValue() < extent &&
             (loop == gate || extent == 1);
    }
    return (withGates || loop != gate) &&
           expr == getAffineDimExpr(loop - (!withGates && loop > gate),
                                    op.getContext());
  };
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!dependsOn(value, root))
      continue;
    bool hasGates = value == root->getResult(0) || isOver(value, true);
    if (!hasGates && !isOver(value, false))
      return false;
    for (Value result : op->getResults())
      if (!isOver(result, withGates))
        return false;
    for (auto [position, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (!isInPlace(expr, position + (!hasGates && position >= gate)))
        return false;
  }
  return true;
}

bool GateMatcher::matches() {
  if (!findRoot() || !findWeights())
    return false;
  for (auto op : kernel.from().getOps<linalg::GenericOp>())
    if (op != root && !readsInPlace(op))
      return false;
  for (Operation &op : kernel.from().front().without_terminator())
    if (isa<tensor::PadOp, tensor::ConcatOp>(op))
      return false;
  lanes = std::min<uint64_t>(lanesOf(root->getResult(0), unit),
                             llvm::bit_ceil(uint64_t(units)));
  for (Value result : kernel.results()) {
    // The sums themselves, where another kernel reads a gate too.
    if (result != root->getResult(0) && !isOver(result, /*withGates=*/false))
      return false;
    lanes = std::min(lanes, lanesOf(result, unit));
  }
  if (mostRowsFitting() == 0)
    return false;
  dots = pickDots();
  pickHeights();
  farBytes = unit.secondCache() / 2;
  if (unit.littleCode)
    mostSteps = 1;
  if (unit.fetchesAhead) // at 97 % of what the second cache gives as it is
    mostBytes = std::numeric_limits<int64_t>::max();
  // One row alone needs more sums to hide the latency of each.
  constexpr int64_t sumsInFlight = 8;
  if (dots != DotUnit::Tiles && mostRows * gates < sumsInFlight &&
      units >= 2 * int64_t(lanes) &&
      2 * (int64_t(mostRows) + 1) * gates + 1 <= int64_t(unit.registers))
    vectors = 2;
  pickPacking24();
  pickPairs();
  return true;
}

/// Whether weights become integers of 24 bits.
void GateMatcher::pickPacking24() {
  constexpr int64_t mostGates = 4;
  if (!unit.weights24 || unit.littleCode || dots != DotUnit::None ||
      int64_t(lanes) != lanes24 || !factor || gates > mostGates ||
      staticLoopExtent(root, gate - 1) != 1)
    return;
  packing24 = packing24Of(kernel, root, weights, lane);
  if (packing24)
    vectors = unsigned(columnsOfBlock24 / lanes24);
}

/// Whether products of several rows are made in pairs: with whole vectors of
/// units, and rows that the stack has room for.
void GateMatcher::pickPairs() {
  constexpr int64_t leastRows = 6, leastElements = 4 * stepOfPairs,
                    mostBytes = 128 << 10, bytes = sizeof(float), line = 64;
  int64_t total = staticLoopExtent(root, gate - 1);
  if (!canHavePairs(unit) || dots != DotUnit::None || packing24 || !factor ||
      !isProductOfF32(root) || gate != 1 || reductions.size() != 1 ||
      ShapedType::isDynamic(total) || total < leastRows ||
      units % int64_t(lanes) != 0 || lanes * bytes != line)
    return;
  int64_t elements = staticLoopExtent(root, reductions.back());
  AffineMap ofWeights = root.getMatchingIndexingMap(weights);
  auto dim = [&](unsigned loop) {
    return getAffineDimExpr(loop, root.getContext());
  };
  if (ShapedType::isDynamic(elements) || elements < leastElements ||
      !hasRowsInMemory() ||
      root.getMatchingIndexingMap(factor).isFunctionOfDim(gate) ||
      ofWeights.getResults() !=
          ArrayRef({dim(reductions.back()), dim(gate), dim(lane)}))
    return;
  unsigned ofBlock = units % (2 * int64_t(lanes)) == 0 ? 2 : 1;
  int64_t width = int64_t(ofBlock) * lanes;
  int64_t stride =
      (int64_t(llvm::alignTo(elements * bytes, line)) + line) / bytes;
  unsigned high = rowsOfPairedTile(total, ofBlock, unit);
  PairedCosts costs;
  costs.ofElement = .5; // twice measured, and copied
  costs.tiles = double(costOfPairedRows(total, high)) / double(total);
  bool fits = total * stride * bytes <= mostBytes &&
              total * gates * width * bytes <= mostBytes;
  if (!fits || !arePairsFaster(elements, gates * units, lanes, costs) ||
      !canBePaired(kernel, weights->get(),
                   {elements, gates * units, width, /*columnsInside=*/true}))
    return;
  paired = sumsInMemory = true;
  vectors = ofBlock;
  copiedStride = stride;
  rowsFitting = high;
  // Tiles of about one height.
  auto tiles = int64_t(llvm::divideCeil(total, high));
  mostRows = unsigned(llvm::divideCeil(total, tiles));
  lowRows = mostRows - 1;
  lowTiles = tiles * int64_t(mostRows) - total;
}

/// How many rows have sums beside one step of weights and a scalar, or beside
/// one of the weights and a scalar of each row.
int64_t GateMatcher::mostRowsFitting() const {
  int64_t registers = unit.registers;
  return std::max((registers - 1) / gates - 1, (registers - 1) / (gates + 1));
}

/// Whether both factors are bf16, summed up in f32, and what the weights meet
/// is in memory, with neighbours of the last reduction side by side.
bool GateMatcher::hasPairs() {
  split = has == DotUnit::Tiles && isProductOfF32(root);
  if (lanes != dotLanes || !factor || !(split || isProductOfBf16(root)) ||
      llvm::any_of(reductions, [&](unsigned loop) {
        return ShapedType::isDynamic(staticLoopExtent(root, loop)) ||
               staticLoopExtent(root, loop) == 0 ||
               !root.getMatchingIndexingMap(weights).isFunctionOfDim(loop);
      }))
    return false;
  bool isEven = staticLoopExtent(root, reductions.back()) % 2 == 0;
  return (isEven || reductions.size() == 1) && hasRowsInMemory();
}

/// Whether what the weights meet is in memory, with neighbours of the last
/// reduction side by side.
bool GateMatcher::hasRowsInMemory() {
  unsigned last = reductions.back();
  AffineMap map = root.getMatchingIndexingMap(factor);
  Value memref = kernel.memrefOf(factor->get());
  return memref && map.getNumResults() != 0 &&
         cast<MemRefType>(memref.getType()).getLayout().isIdentity() &&
         llvm::all_of(
             cast<MemRefType>(memref.getType()).getShape().drop_front(),
             [](int64_t size) { return !ShapedType::isDynamic(size); }) &&
         laneStep(map.getResults().back(), last) == 1 &&
         llvm::all_of(map.getResults().drop_back(), [&](AffineExpr expr) {
           return !expr.isFunctionOfDim(last);
         });
}

/// Whether sums of several rows are worth tiles, and are what those can do.
bool GateMatcher::fitsTiles() {
  unsigned loop = gate - 1;
  AffineMap map = root.getMatchingIndexingMap(factor);
  int64_t total = staticLoopExtent(root, loop);
  bool isKnown = !ShapedType::isDynamic(total);
  depth =
      split ? splitDepth : tileDepth(staticLoopExtent(root, reductions.back()));
  int64_t products = gates * units * (isKnown ? total : mostTileRows);
  for (unsigned reduction : reductions)
    products *= staticLoopExtent(root, reduction);
  tileRows = mostTileRows;
  tilesAtOnce = 2;
  if (isKnown && total > 0) {
    auto tiles = int64_t(llvm::divideCeil(total, mostTileRows));
    tileRows = int64_t(llvm::divideCeil(total, tiles));
    tilesAtOnce = tiles % 2 == 0 ? 2 : 1;
  }
  // Threads share whole tiles.
  if (kernel.sharedRows() != 0) {
    tileRows = kernel.unitOfRows();
    tilesAtOnce = 1;
    if (tileRows != mostTileRows || total != kernel.sharedRows())
      return false;
  }
  return depth != 0 && tileRows >= 2 && products >= productsOfSetup &&
         startsFromZero(root) && !map.isFunctionOfDim(gate) &&
         llvm::all_of(map.getResults(), [&](AffineExpr expr) {
           std::optional<int64_t> step = laneStep(expr, loop);
           return step && *step >= 0;
         });
}

/// Whether six products in tile registers take less time than one in vectors:
/// steps meet the same weights again and again, which have half as many bytes
/// more, and are in the second cache or meet many rows.
bool GateMatcher::fitsSplit() {
  constexpr int64_t leastRows = 12, manyRows = 40, leastColumns = 64,
                    nearBytes = 3 << 19, mostStackBytes = 128 << 10;
  int64_t total = staticLoopExtent(root, gate - 1);
  int64_t elements = staticLoopExtent(root, reductions.back());
  bool isNear = gates * units * elements * 2 * splitParts <= nearBytes;
  return gate == 1 && reductions.size() == 1 && fillsSplitSteps(elements) &&
         !ShapedType::isDynamic(total) && gates * units >= leastColumns &&
         total >= (isNear ? leastRows : manyRows) &&
         total * elements * 2 * splitParts <=
             (kernel.sharedRows() == 0 ? mostSplitBytes : mostStackBytes);
}

/// Where there are tile registers, a dot product of lanes takes as long as two
/// products that are added for each of them.
DotUnit GateMatcher::pickDots() {
  if (has == DotUnit::None || !hasPairs() ||
      (has == DotUnit::Tiles && !fitsTiles()) || (split && !fitsSplit())) {
    split = false;
    return DotUnit::None;
  }
  return has;
}

/// The heights of the tiles that take least time over all rows, of which there
/// are two at most; a few rows each where their number is not known. Of equals
/// those whose rows come in fewest groups, in which functions of them are
/// computed (see `finish`), unless that is done for all rows together, and of
/// those the higher ones, whose low ones are the higher.
void GateMatcher::pickHeights() {
  int64_t most = mostRowsFitting();
  rowsFitting = unsigned(most);
  int64_t total = staticLoopExtent(root, gate - 1);
  if (ShapedType::isDynamic(total) || total == 0) {
    mostRows = unsigned(std::min<int64_t>(most, 4));
    return;
  }
  constexpr int64_t leastRows = 12, mostBytes = 32 << 10,
                    mostShared = 128 << 10;
  int64_t bits =
      getElementTypeOrSelf(root.getResult(0)).getIntOrFloatBitWidth();
  int64_t bytes = total * gates * lanes * bits / 8;
  sumsInMemory = dots != DotUnit::Tiles && total > most && total >= leastRows &&
                 bytes <= (kernel.sharedRows() != 0 ? mostShared : mostBytes);
  constexpr int64_t mostApart = 2;
  auto costOf = [&](int64_t tiles, int64_t height) {
    TileSize size = {unsigned(height), unsigned(gates)};
    return tiles == 0 ? 0 : productCost(tiles * height, gates, size);
  };
  auto groupsOf = [&](int64_t height) -> int64_t {
    return sumsInMemory ? 0 : height / 4 + llvm::popcount(uint64_t(height % 4));
  };
  std::optional<std::pair<int64_t, int64_t>> best;
  for (int64_t high = std::min(most, total); high > 0; --high)
    for (int64_t low = high; low > std::max<int64_t>(high - 1 - mostApart, 0);
         --low) {
      // As many of the high ones as leave whole low ones.
      int64_t highTiles = total / high;
      while (highTiles > 0 && (total - highTiles * high) % low != 0)
        --highTiles;
      int64_t tiles = (total - highTiles * high) / low;
      if (highTiles == 0 || (total - highTiles * high) % low != 0)
        continue;
      std::pair cost = {costOf(highTiles, high) + costOf(tiles, low),
                        highTiles * groupsOf(high) + tiles * groupsOf(low)};
      if (best && cost >= *best)
        continue;
      best = cost;
      mostRows = unsigned(high);
      lowRows = unsigned(low);
      lowTiles = tiles;
    }
}

std::optional<GateForm> gateFormOf(Kernel &kernel, const VectorUnit &unit,
                                   DotUnit dots) {
  GateMatcher matcher(kernel, unit, dots);
  if (!matcher.matches())
    return std::nullopt;
  return matcher;
}

} // namespace keratin
