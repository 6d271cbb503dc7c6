//===- WinogradGradientPlan.cpp - when and how gradients go by tiles ------===//
#include "codegen/cpu/WinogradCosts.h"
#include "codegen/cpu/WinogradGradient.h"

#include <limits>

using namespace mlir;

namespace keratin {

int64_t GradientPlan::columns() const {
  return int64_t(llvm::alignTo(conv.filters, lanes));
}

namespace {
class GradientPlanner : WindowCosts {
public:
  GradientPlanner(const WindowConv &conv, unsigned bits, const VectorUnit &unit)
      : WindowCosts(conv, bits, unit) {}

  GradientPlan plan(TileForm form) const;
  int64_t costOf(const GradientPlan &plan) const;
  int64_t costOfSums() const;

private:
  /// Of an unknown number of images the cost of a batch of some is meant.
  static constexpr int64_t someImages = 16;
  int64_t images() const {
    return conv.images.value_or(someImages * conv.outerPlaces());
  }
  int64_t tilesOf(const WindowTiling &plan) const {
    return images() * plan.tilesOfImage();
  }
  TileSize tile() const;
  int64_t groupsOf(const GradientPlan &plan) const;
};
} // namespace

/// The best tile of rows that divide a vector: calls share channels in vectors.
TileSize GradientPlanner::tile() const {
  TileSize best;
  int64_t leastCost = std::numeric_limits<int64_t>::max();
  int64_t columns = vectors(conv.filters);
  for (int64_t width = 1; width <= std::min(columns, mostVectors); ++width)
    for (int64_t height = 1; height <= lanes; height *= 2) {
      if ((height + 1) * width + 1 > int64_t(unit.registers))
        break;
      TileSize size = {unsigned(height), unsigned(width)};
      int64_t cost = productCost(conv.channels, columns, size);
      if (cost >= leastCost)
        continue;
      leastCost = cost;
      best = size;
    }
  return best;
}

/// The convolution's products, at some nine tenths of the peak.
int64_t GradientPlanner::costOfSums() const {
  return images() * conv.down.extent * conv.across.extent * conv.outerTaps() *
         conv.down.taps * conv.across.taps * conv.channels *
         vectors(conv.filters) * 10 / 9;
}

/// As many groups as blocks, up to eight, and few where their sums are large.
int64_t GradientPlanner::groupsOf(const GradientPlan &plan) const {
  constexpr int64_t mostGroups = 8, mostSumBytes = 8 << 20;
  int64_t bytesOfGroup = plan.points() * plan.sumStride() * bytes;
  int64_t affordable = std::clamp<int64_t>(
      mostSumBytes / std::max<int64_t>(bytesOfGroup, 1), 1, mostGroups);
  if (!conv.images)
    return affordable;
  auto blocks = int64_t(llvm::divideCeil(tilesOf(plan), plan.block));
  auto ofGroup = int64_t(llvm::divideCeil(blocks, affordable));
  return int64_t(llvm::divideCeil(blocks, ofGroup));
}

int64_t GradientPlanner::costOf(const GradientPlan &plan) const {
  int64_t tiles = tilesOf(plan), columns = vectors(conv.filters);
  auto blocks = int64_t(llvm::divideCeil(tiles, plan.block));
  int64_t products = plan.points() * (tiles + blocks * stepsOfEnds) *
                     plan.pieces() *
                     productCost(conv.channels, columns, plan.size);
  int64_t slopes =
      tiles * columns * costOfTransform(plan, {80, 300, 600}, {20, 45, 45});
  int64_t ends =
      plan.pieceChannels() * columns * (plan.points() * (plan.groups + 2));
  // Transforms are written and read, as sums are in each block, of which half
  // hides behind products.
  int64_t moved =
      costOutside(plan.blockElements() * bytes, cacheBytes, 3) +
      costOutside(plan.points() * plan.sumStride() * bytes, cacheBytes / 2, 1);
  return products + costOfInputs(plan, tiles) + slopes + ends + blocks * moved;
}

GradientPlan GradientPlanner::plan(TileForm form) const {
  constexpr int64_t blocks[] = {128, 256, 96, 64, 48, 32, 16};
  GradientPlan best;
  int64_t leastCost = std::numeric_limits<int64_t>::max();
  for (int64_t most : blocks) {
    GradientPlan plan;
    static_cast<WindowTiling &>(plan) = tilingOf(form);
    plan.size = tile();
    plan.block = most;
    if (conv.images) {
      auto count = int64_t(llvm::divideCeil(tilesOf(plan), most));
      plan.block = int64_t(llvm::divideCeil(tilesOf(plan), count));
    }
    plan.groups = groupsOf(plan);
    int64_t cost = costOf(plan);
    if (cost >= leastCost)
      continue;
    leastCost = cost;
    best = plan;
  }
  return best;
}

std::optional<GradientPlan> planGradient(Kernel &kernel, linalg::GenericOp root,
                                         const VectorUnit &unit,
                                         Winograd choice) {
  if (choice == Winograd::Off)
    return std::nullopt;
  std::optional<WindowConv> conv = readWindowGradient(kernel, root);
  if (!conv)
    return std::nullopt;
  unsigned bits =
      getElementTypeOrSelf(root.getResult(0)).getIntOrFloatBitWidth();
  GradientPlanner planner(*conv, bits, unit);
  std::optional<TileForm> form = fastestForm(
      formsOf(*conv, choice),
      [&](TileForm form) { return planner.costOf(planner.plan(form)); },
      choice == Winograd::Auto ? std::optional(planner.costOfSums())
                               : std::nullopt);
  if (!form)
    return std::nullopt;
  GradientPlan plan = planner.plan(*form);
  constexpr int64_t mostBytes = 64 << 20;
  int64_t elements = std::max(plan.blockElements(), plan.sumElements());
  return elements * bits / 8 > mostBytes ? std::nullopt : std::optional(plan);
}

} // namespace keratin
