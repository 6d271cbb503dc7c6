//===- StrassenPlan.cpp - when seven products take the place of eight -----===//
#include "codegen/cpu/Strassen.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace mlir;

namespace keratin {

int64_t StrassenPlan::rowStride() const {
  return int64_t(llvm::alignTo(depth(), line)) + line;
}

int64_t StrassenPlan::segments() const {
  return int64_t(llvm::divideCeil(rows.turns(), rowsOfSegment));
}

int64_t StrassenPlan::blocks() const {
  return int64_t(llvm::divideCeil(pairs(), block));
}

//===----------------------------------------------------------------------===//
// Which weights
//===----------------------------------------------------------------------===//

/// The magnitudes of columns, summed up for each half of the sums: those of the
/// first half, then those of the second.
static std::vector<double> magnitudesOf(ArrayRef<char> weights,
                                        const StrassenPlan &plan,
                                        bool columnsInside) {
  int64_t columns = plan.columns.turns(), sums = plan.sums.turns();
  std::vector<double> magnitudes(size_t(2 * columns));
  const char *next = weights.data();
  auto add = [&](int64_t sum, int64_t column) {
    float weight;
    std::memcpy(&weight, next, sizeof(float));
    next += sizeof(float);
    magnitudes[size_t(sum < sums / 2 ? column : columns + column)] +=
        std::fabs(double(weight));
  };
  if (columnsInside)
    for (int64_t sum = 0; sum < sums; ++sum)
      for (int64_t column = 0; column < columns; ++column)
        add(sum, column);
  else
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t sum = 0; sum < sums; ++sum)
        add(sum, column);
  return magnitudes;
}

/// Whether no column is much smaller than those that it is added to.
static bool areAlike(ArrayRef<double> magnitudes) {
  constexpr double most = 32, least = 0x1p-80;
  size_t half = magnitudes.size() / 4;
  for (size_t column = 0; column < half; ++column) {
    double blocks[4];
    for (size_t block = 0; block < 4; ++block)
      blocks[block] = magnitudes[block * half + column];
    auto [smallest, largest] = std::minmax_element(blocks, blocks + 4);
    // It is no number where one of the weights is none.
    if (!llvm::all_of(blocks,
                      [](double block) {
                        return std::isfinite(block) && block >= least;
                      }) ||
        *largest > most * *smallest)
      return false;
  }
  return true;
}

/// Whether the values of the weights are known in all calls, and each column is
/// as large as those that it is added to.
static bool haveLikeWeights(Kernel &kernel, linalg::GenericOp root,
                            const StrassenPlan &plan) {
  bool columnsInside = haveColumnsInside(root, plan);
  auto bytes = size_t(plan.columns.turns() * plan.sums.turns()) * sizeof(float);
  ArrayRef<ElementsAttr> values = kernel.valuesOf(plan.weights->get());
  return !values.empty() && llvm::all_of(values, [&](ElementsAttr value) {
    ArrayRef<char> weights = bytesOfElements(value);
    return weights.size() == bytes &&
           areAlike(magnitudesOf(weights, plan, columnsInside));
  });
}

//===----------------------------------------------------------------------===//
// How, and when
//===----------------------------------------------------------------------===//

/// What a kernel has of sums of A at most.
static constexpr int64_t mostLeftBytes = 4 << 20;
static constexpr int64_t bytesOfF32 = 4, fewestSteps = 32;

/// The tile of products that takes the least time of those whose panels are
/// whole, in each half of the columns.
static std::optional<TileSize> pickTile(const StrassenPlan &plan,
                                        const VectorUnit &unit) {
  constexpr int64_t mostVectors = 4;
  int64_t inner = plan.columns.extents.back();
  if (plan.columns.loops.size() == 1)
    inner /= 2;
  std::optional<TileSize> best;
  int64_t vectors = plan.columns.turns() / 2 / plan.lanes;
  for (int64_t width = 1; width <= mostVectors; ++width) {
    if (inner % (width * plan.lanes) != 0)
      continue;
    int64_t fitting = (unit.registers - width - 1) / width;
    int64_t most = std::min<int64_t>(
        {plan.block, fitting, cachedRows(plan.rowStride() * bytesOfF32)});
    if (plan.leftStride != 0)
      most = std::min(most, cachedRows(plan.leftStride * bytesOfF32));
    for (int64_t height = 1; height <= most; ++height) {
      TileSize size = {unsigned(height), unsigned(width)};
      if (!best || productCost(plan.block, vectors, size) <
                       productCost(plan.block, vectors, *best))
        best = size;
    }
  }
  return best;
}

/// What a thread takes in issue slots of FMAs, as the costs of TileSizes are,
/// where there are so many.
static int64_t costOf(const StrassenPlan &plan, const VectorUnit &unit,
                      int64_t threads) {
  // Measured, with loads and stores, where a vector takes two turns of a unit:
  // what is done with a vector of each block of A, of B beside products, and of
  // C; more where A and C do not stay in the second cache. Shorter vectors are
  // more of all of them, and outputs of them are soonest done.
  constexpr int64_t ofWeights = 4, ofCopies = 8;
  bool isShort = unit.bits < 512;
  int64_t ofShort = isShort ? 3 : 1, ofShortOutputs = isShort ? 2 : 1;
  int64_t samples = plan.samples.value_or(1), rows = plan.rows.turns();
  bool isFar =
      samples * rows * (plan.sums.turns() + plan.columns.turns()) * bytesOfF32 >
      unit.secondCache();
  int64_t ofLeft = isFar ? 28 : 16, ofProducts = isFar ? 60 : 30;
  if (plan.leftStride == 0)
    ofLeft += ofCopies;
  int64_t vectors = plan.size.vectors, depth = plan.depth();
  int64_t left = plan.block * (depth / plan.lanes) * ofLeft * ofShort;
  int64_t panel = depth * vectors * ofWeights * ofShort +
                  plan.block * vectors * ofProducts * ofShortOutputs;
  panel += 7 * depth * productCost(plan.block, vectors, plan.size);
  int64_t units = plan.blocks() * plan.panels();
  auto panels = int64_t(llvm::divideCeil(units, threads));
  // Each of the calls that threads do, a few, makes the sums of a block more.
  int64_t sums = threads == 1 ? plan.blocks() : plan.blocks() / threads + 1;
  // Lines of what is stored come from caches of others at first: some 10 us.
  constexpr int64_t ofCaches = 37000;
  return sums * left + panels * panel + (threads == 1 ? 0 : ofCaches);
}

/// The same for sums of products.
static int64_t costOfSums(const StrassenPlan &plan, const VectorUnit &unit) {
  int64_t rows = plan.samples.value_or(1) * plan.rows.turns();
  int64_t vectors = plan.columns.turns() / plan.lanes;
  constexpr int64_t mostRows = 16, mostVectors = 4;
  TileSize size = productTile(rows, vectors, {mostRows, mostVectors}, unit);
  return plan.sums.turns() * productCost(rows, vectors, size);
}

/// Picks a tile and the steps of blocks; false where none fits.
static bool pickSizes(StrassenPlan &plan, const VectorUnit &unit) {
  std::optional<TileSize> size = pickTile(plan, unit);
  if (!size)
    return false;
  plan.size = *size;
  plan.readsForEach = unit.bits >= 512 && plan.size.vectors <= 3;
  // The four blocks of weights and a sum of two are to stay in half of the
  // second cache.
  int64_t fitting = unit.secondCache() / 2 / (5 * plan.width() * bytesOfF32);
  auto turns =
      int64_t(llvm::divideCeil(plan.depth(), std::max(fitting, fewestSteps)));
  plan.steps = int64_t(llvm::divideCeil(plan.depth(), turns));
  plan.stepsOfQuestion = stepsOfQuestion(plan.lanes, plan.depth());
  plan.steps = int64_t(llvm::alignTo(plan.steps, plan.stepsOfQuestion));
  return true;
}

/// Ways to cut rows into blocks of pairs: of a segment, or of several samples.
/// None where there are too few, or sums of A take too much.
static std::vector<StrassenPlan> blocksOf(StrassenPlan plan,
                                          const VectorUnit &unit) {
  // So many threads are to have something to do.
  constexpr int64_t fewestUnits = 8, fewestPairs = 16, mostPairs = 64;
  // Where vectors are short, sums of weights take longer, and have to meet more
  // rows.
  int64_t few = unit.bits >= 512 ? 32 : mostPairs;
  std::vector<StrassenPlan> plans;
  auto add = [&] {
    int64_t bytes = plan.leftElements() * bytesOfF32;
    if (plan.block >= fewestPairs &&
        bytes <= (plan.block <= few ? mostLeftBytes : unit.secondCache()) &&
        pickSizes(plan, unit) && plan.blocks() * plan.panels() >= fewestUnits)
      plans.push_back(plan);
  };
  int64_t rows = plan.rows.turns(), segments = 0;
  for (int64_t pairs = mostPairs; pairs >= fewestPairs; --pairs) {
    auto enough = int64_t(llvm::divideCeil(rows, 2 * pairs));
    if (enough == segments)
      continue;
    segments = enough;
    plan.rowsOfSegment = int64_t(llvm::divideCeil(rows, segments));
    plan.block = plan.pairsOfSegment();
    if (plan.rowsOfLast() >= plan.block)
      add();
  }
  plan.rowsOfSegment = rows;
  plan.leftStride = 0;
  for (int64_t most : {few, mostPairs}) {
    auto blocks = int64_t(llvm::divideCeil(plan.pairs(), most));
    plan.block = int64_t(llvm::divideCeil(plan.pairs(), blocks));
    if (plan.block > plan.pairsOfSegment())
      add();
  }
  return plans;
}

std::optional<StrassenPlan> planStrassen(Kernel &kernel, linalg::GenericOp root,
                                         const VectorUnit &unit) {
  constexpr unsigned leastBits = 256;
  StrassenPlan plan = {};
  // Where units have the width of vectors, a core does two products of them in
  // a cycle. What is beside the products waits for caches as long as elsewhere,
  // and takes what seven for eight gain.
  bool areFast = unit.bits >= 512 && !unit.halfUnits;
  if (!unit.strassen || unit.littleCode || unit.bits < leastBits || areFast)
    return std::nullopt;
  std::optional<MatrixProduct> product =
      readProduct(kernel, root, Products::Plain);
  if (!product || product->rows.loops.empty() ||
      product->sums.extents.front() % 2 != 0 ||
      product->columns.extents.front() % 2 != 0)
    return std::nullopt;
  static_cast<MatrixProduct &>(plan) = *std::move(product);
  constexpr int64_t bytesOfLine = 64;
  plan.lanes = unit.bits / (8 * bytesOfF32);
  plan.line = bytesOfLine / bytesOfF32;
  plan.chains = unit.bits >= 512 ? 4 : 2;
  plan.asksAhead = !unit.nearestWeights();
  if (plan.depth() < fewestSteps)
    return std::nullopt;
  // What is computed does not depend on the number of threads: one and two are
  // to gain on average.
  double sums = double(costOfSums(plan, unit)), least = .97;
  std::optional<StrassenPlan> best;
  StrassenPlan copying = plan;
  copying.leftStride = 0;
  for (const StrassenPlan &from : {plan, copying})
    for (const StrassenPlan &sized : blocksOf(from, unit)) {
      double ofOne = double(costOf(sized, unit, 1)) / sums;
      double ofTwo = double(costOf(sized, unit, 2)) / sums * 2;
      if (double ofBoth = (ofOne + ofTwo) / 2; ofBoth < least) {
        least = ofBoth;
        best = sized;
      }
    }
  return best && haveLikeWeights(kernel, root, *best) ? best : std::nullopt;
}

} // namespace keratin
