//===- PairedPlan.cpp - when products are made in pairs -------------------===//
#include "codegen/cpu/PairedProduct.h"
#include "codegen/cpu/PairedTiles.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace keratin {

static constexpr int64_t bytesOfF32 = 4;

int64_t PairedPlan::panels() const {
  return int64_t(llvm::divideCeil(columns.turns(), width()));
}

int64_t PairedPlan::blocks() const {
  return int64_t(llvm::divideCeil(rows.turns(), block));
}

/// Makes the rows of all samples one group, where their number is known.
static void joinSamples(MatrixProduct &product) {
  if (!product.sample || !product.samples)
    return;
  LoopGroup all;
  all.add(*product.sample, *product.samples);
  for (auto [loop, extent] :
       llvm::zip_equal(product.rows.loops, product.rows.extents))
    all.add(loop, extent);
  product.rows = all;
  product.sample = std::nullopt;
  product.samples = 1;
}

/// Whether the first cache has so many rows, or all that are counted.
static bool areCached(int64_t stride, int64_t rows) {
  constexpr int64_t most = 16;
  return cachedRows(stride) >= std::min(rows, most);
}

/// Elements from a row of a copy to the next, of which the first cache has
/// `rows`.
static int64_t strideOfCopies(int64_t depth, int64_t rows) {
  constexpr int64_t bytesOfLine = 64;
  auto stride = int64_t(llvm::alignTo(depth * bytesOfF32, bytesOfLine));
  do
    stride += bytesOfLine;
  while (!areCached(stride, rows));
  return stride / bytesOfF32;
}

static int64_t bytesOfRows(const PairedPlan &plan) {
  return plan.rows.turns() * plan.depth() * bytesOfF32;
}

static bool areRunsOfSums(const PairedPlan &plan) {
  return plan.leftPlace->steps[plan.sums.loops.back()] == 1;
}

/// Whether a call can arrange the factors that are not as pairs need them:
/// matrices with neighbours along one axis.
static bool canArrange(const PairedPlan &plan) {
  constexpr int64_t mostBytes = 64 << 20; // of rows that are transposed
  auto isMatrix = [](const LinearPlace &place, const LoopGroup &rows,
                     const LoopGroup &columns) {
    std::optional<int64_t> ofRow = stepOf(place, rows);
    std::optional<int64_t> ofColumn = stepOf(place, columns);
    return ofRow && ofColumn && std::min(*ofRow, *ofColumn) == 1;
  };
  if (plan.hasKnownWeights)
    return !plan.leftPlace || areRunsOfSums(plan);
  bool areRows =
      areRunsOfSums(plan) || (bytesOfRows(plan) <= mostBytes &&
                              isMatrix(*plan.leftPlace, plan.rows, plan.sums));
  return !plan.rows.loops.empty() && areRows &&
         isMatrix(*plan.weightsPlace, plan.sums, plan.columns);
}

static PairedCosts costsOf(const PairedPlan &plan) {
  PairedCosts costs;
  auto rows = double(plan.rows.turns()), depth = double(plan.depth());
  costs.tiles =
      double(costOfPairedRows(plan.rows.turns(), plan.size.rows)) / rows;
  // Rows that are copied, or have just been packed beside, are near when they
  // are measured.
  constexpr double ofCopy = .17;
  if (plan.leftStride == 0) {
    costs.ofRow = 45;
    costs.ofElement += ofCopy;
  }
  if (plan.hasKnownWeights)
    return costs;
  // Neighbours along the axis of vectors, or transposed in squares. Sums of
  // products have such weights to pack as well.
  constexpr double ofWeight = .4, ofTransposedWeight = .55,
                   ofTransposedRow = .8;
  costs.ofRow = 20;
  costs.ofVector = 5;
  costs.most = .92;
  bool isTransposed = plan.weightsPlace->steps[plan.columns.loops.back()] != 1;
  costs.ofRow += depth * double(plan.columns.turns()) *
                 (isTransposed ? ofTransposedWeight : ofWeight) / rows;
  if (plan.transposesLeft)
    costs.ofElement += ofTransposedRow;
  // What one thread has copied all others read, and it writes it anew in the
  // next call. Code for one thread computes the same.
  constexpr double ofExchange = 2.2;
  if (plan.measuresFirst)
    costs.ofElement += ofExchange;
  return costs;
}

/// How many rows are measured and then multiplied with one panel after the
/// other: about a few tiles where the second cache has all weights, which the
/// first one keeps, and else as many rows as the second one keeps. Of such
/// blocks those of which the last one has most: threads are to end together.
static int64_t rowsOfBlock(const PairedPlan &plan, const VectorUnit &unit) {
  constexpr int64_t firstCache = 24 << 10, tilesThatAsk = 4;
  int64_t height = plan.size.rows, ofTile = plan.depth() * bytesOfF32 * height;
  int64_t bytes = plan.stays ? firstCache : unit.secondCache() * 3 / 8;
  int64_t fitting =
      std::max<int64_t>(bytes / ofTile, plan.asksAhead ? tilesThatAsk : 1);
  auto tiles = int64_t(llvm::divideCeil(plan.rows.turns(), height));
  auto missing = [&](int64_t ofBlock) {
    return int64_t(llvm::alignTo(tiles, ofBlock)) - tiles;
  };
  int64_t best = std::min(tiles, fitting * 5 / 4);
  for (int64_t ofBlock = best; 2 * ofBlock > fitting; --ofBlock)
    if (missing(ofBlock) < missing(best))
      best = ofBlock;
  return best * height;
}

LoopGroup PairedPlan::run() const {
  LoopGroup run;
  int64_t step = 1;
  for (auto [loop, extent] :
       llvm::reverse(llvm::zip_equal(sums.loops, sums.extents))) {
    if (leftPlace->steps[loop] != step)
      break;
    run.loops.insert(run.loops.begin(), loop);
    run.extents.insert(run.extents.begin(), extent);
    step *= extent;
  }
  return run;
}

std::optional<PairedPlan> planPaired(Kernel &kernel, linalg::GenericOp root,
                                     ArrayRef<Output> outputs,
                                     const VectorUnit &unit) {
  constexpr unsigned mostVectors = 2;
  constexpr int64_t fewestRows = 6, fewestSteps = 4;
  if (!canHavePairs(unit))
    return std::nullopt;
  std::optional<MatrixProduct> product =
      readProduct(kernel, root, Products::All);
  if (!product)
    return std::nullopt;
  PairedPlan plan = {};
  static_cast<MatrixProduct &>(plan) = *std::move(product);
  joinSamples(plan);
  if (!canArrange(plan))
    return std::nullopt;
  plan.lanes = unit.bits / (8 * bytesOfF32);
  plan.size.vectors = unsigned(std::min<int64_t>(
      mostVectors, llvm::divideCeil(plan.columns.turns(), plan.lanes)));
  int64_t rows = plan.rows.turns();
  // A vector is of one turn of the outer columns, and so is the output.
  bool areWhole = plan.columns.loops.size() == 1 ||
                  plan.columns.extents.back() % plan.width() == 0;
  if (plan.rows.loops.empty() || rows < fewestRows ||
      plan.steps() < fewestSteps || plan.columns.turns() < plan.lanes ||
      !areWhole || plan.rows.turns() * plan.depth() > INT32_MAX)
    return std::nullopt;
  plan.size.rows = rowsOfPairedTile(rows, plan.size.vectors, unit);
  // Rows go through the first cache once for each panel.
  if (plan.size.rows * plan.depth() * bytesOfF32 > unit.secondCache() / 4)
    return std::nullopt;
  plan.copiedStride = strideOfCopies(plan.depth(), plan.size.rows);
  plan.measuresFirst =
      !plan.hasKnownWeights && bytesOfRows(plan) <= unit.secondCache();
  plan.transposesLeft = !plan.hasKnownWeights && !areRunsOfSums(plan);
  if (plan.transposesLeft)
    plan.leftStride = plan.copiedStride;
  // Rows that are too far apart, or meet in few sets of the first cache, are
  // copied, and windows that share elements: one of them may have to be
  // multiplied.
  if (plan.leftStride > 2 * plan.depth() || plan.leftStride < plan.depth() ||
      !areCached(plan.leftStride * bytesOfF32, plan.size.rows))
    plan.leftStride = 0;
  if (plan.leftStride == 0 && !plan.leftPlace && plan.sums.loops.size() != 1)
    return std::nullopt;
  if (plan.leftStride != 0)
    plan.copiedStride = plan.leftStride;
  plan.stays = plan.depth() * plan.columns.turns() * bytesOfF32 <=
               unit.secondCache() / 2;
  plan.asksAhead =
      plan.hasKnownWeights ? !unit.nearestWeights() : !plan.measuresFirst;
  plan.block = plan.measuresFirst ? plan.size.rows : rowsOfBlock(plan, unit);
  plan.hasFunctions = finishesWithFunctions(root, outputs);
  bool areFaster = arePairsFaster(plan.depth(), plan.columns.turns(),
                                  plan.lanes, costsOf(plan));
  return areFaster &&
                 (!plan.hasKnownWeights ||
                  canBePaired(kernel, plan.weights->get(), plan.packing(root)))
             ? std::optional(plan)
             : std::nullopt;
}

} // namespace keratin
