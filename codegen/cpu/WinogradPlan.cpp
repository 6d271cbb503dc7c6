//===- WinogradPlan.cpp - when and how tiles of outputs are transformed ---===//
#include "codegen/cpu/PairedTiles.h"
#include "codegen/cpu/WinogradCosts.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace keratin {

int64_t WinogradPlan::panels() const {
  return int64_t(llvm::divideCeil(conv.filters, panelWidth()));
}
/// Pixels of a tile are as far apart as the taps that they share: as many tiles
/// begin at neighbours.
int64_t WindowTiling::tilesAlong(const TransformedAxis &axis) const {
  int64_t reach = axis.dilation * pixels(axis);
  int64_t whole = axis.extent / reach;
  return whole * axis.dilation +
         std::min(axis.extent - whole * reach, axis.dilation);
}
int64_t WindowTiling::rowStride(int64_t elements) const {
  return int64_t(llvm::alignTo(elements, line)) + line;
}
int64_t WinogradPlan::sliceStride() const {
  return block * rowStride(std::max(pieceChannels(), conv.filters)) + line;
}

int64_t WinogradPlan::pieceElements() const {
  int64_t ofShare = sharedElements() + measureElements();
  return std::max(ringElements() + measureElements(),
                  int64_t(llvm::divideCeil(ofShare, mostParts)));
}

/// Scratch memory of all parts of a kernel, where it has two, and what they
/// share.
static constexpr int64_t mostScratchBytes = 4 << 20, mostSharedBytes = 16 << 20;
/// What weights that the kernel transforms may take.
static constexpr int64_t mostWeightBytes = 64 << 20;
static constexpr int64_t mostParts = 16;

namespace {
class Planner : WindowCosts {
public:
  Planner(const WindowConv &conv, unsigned bits, bool inParts,
          const VectorUnit &unit)
      : WindowCosts(conv, bits, unit), inParts(inParts) {}

  WinogradPlan plan(TileForm form) const;
  int64_t costOf(const WinogradPlan &plan) const;
  int64_t costOfSums() const;

private:
  int64_t images() const { return conv.images.value_or(conv.outerPlaces()); }
  /// What arrives in a slot from where the weights of a model are.
  int64_t bytesOfSlot() const {
    if (unit.nearestWeights())
      return nearBytesOfSlot();
    return unit.nearWeights() ? cachedBytesOfSlot() : farBytesOfSlot();
  }
  TileSize tile(int64_t rows, int64_t stride) const {
    return productTile(rows, vectors(conv.filters),
                       {cachedRows(stride * bytes), mostVectors}, unit);
  }
  TileSize tile(int64_t rows, int64_t stride, int64_t vectors) const;
  int64_t weightBytes(const WinogradPlan &plan) const {
    return plan.points() * plan.pieceChannels() * plan.panels() *
           plan.panelWidth() * bytes;
  }
  int64_t blocksOf(const WinogradPlan &plan) const {
    return int64_t(
        llvm::divideCeil(images() * plan.tilesOfImage(), plan.block));
  }
  int64_t costOfWeights(const WinogradPlan &plan) const;
  int64_t costOfProducts(const WinogradPlan &plan) const;
  int64_t costOfOutputs(const WinogradPlan &plan) const;
  int64_t costOfScratch(const WinogradPlan &plan) const;
  double costInParts(WinogradPlan &plan) const;
  double pickTile(WinogradPlan &plan) const;

  bool inParts;
};
} // namespace

/// The best tile of `width` vectors, of as many rows as there are registers and
/// ways of the cache for.
TileSize Planner::tile(int64_t rows, int64_t stride, int64_t width) const {
  int64_t most = std::min({rows, cachedRows(stride * bytes),
                           (int64_t(unit.registers) - width - 1) / width});
  TileSize best = {1, unsigned(width)};
  for (int64_t height = 2; height <= most; ++height) {
    TileSize size = {unsigned(height), unsigned(width)};
    if (productCost(rows, vectors(conv.filters), size) <
        productCost(rows, vectors(conv.filters), best))
      best = size;
  }
  return best;
}

/// The convolution as sums over the window.
int64_t Planner::costOfSums() const {
  int64_t sums =
      conv.outerTaps() * conv.down.taps * conv.across.taps * conv.channels;
  int64_t ofRow = productCost(conv.across.extent, vectors(conv.filters),
                              tile(conv.across.extent, conv.channels));
  return images() * conv.down.extent * sums * ofRow +
         sums * conv.filters * bytes / bytesOfSlot();
}

/// The transform of weights that are not known before. Where the second cache
/// does not hold them they go to the third, whose lines are read first.
int64_t Planner::costOfWeights(const WinogradPlan &plan) const {
  if (conv.hasKnownWeights)
    return 0;
  bool stay = weightBytes(plan) <= cachedWeightBytes;
  return plan.pieceChannels() * vectors(conv.filters) * costOfWindow(plan) +
         (stay ? 0 : 2 * weightBytes(plan) / cachedBytesOfSlot());
}

/// Blocks of products, and of the stream of weights beside them what they
/// cannot hide.
int64_t Planner::costOfProducts(const WinogradPlan &plan) const {
  bool kept = weightBytes(plan) <= cachedWeightBytes;
  int64_t stream = weightBytes(plan) / (conv.hasKnownWeights ? bytesOfSlot()
                                        : kept ? nearBytesOfSlot()
                                               : cachedBytesOfSlot());
  auto ofBlock = [&](int64_t tiles, bool first) {
    int64_t cost = plan.points() * (plan.pieceChannels() + stepsOfEnds) *
                   productCost(tiles, vectors(conv.filters), plan.size);
    if (kept && !first)
      return cost;
    return std::max(cost, stream) + std::min(cost, stream) / 4;
  };
  int64_t blocks = blocksOf(plan);
  int64_t rest = images() * plan.tilesOfImage() - (blocks - 1) * plan.block;
  if (blocks == 1)
    return ofBlock(rest, true);
  return ofBlock(plan.block, true) + (blocks - 2) * ofBlock(plan.block, false) +
         ofBlock(rest, false);
}

int64_t Planner::costOfOutputs(const WinogradPlan &plan) const {
  return images() * plan.tilesOfImage() * vectors(conv.filters) *
         costOfOutputTile(plan);
}

/// A ring that the cache does not hold is written and read twice.
int64_t Planner::costOfScratch(const WinogradPlan &plan) const {
  int64_t weights = weightBytes(plan);
  int64_t left = cacheBytes - (weights <= cachedWeightBytes ? weights : 0);
  return costOutside(plan.ringElements() * bytes, left, 4) * blocksOf(plan);
}

int64_t Planner::costOf(const WinogradPlan &plan) const {
  return costOfWeights(plan) + costOfProducts(plan) +
         costOfInputs(plan, images() * plan.tilesOfImage()) +
         costOfOutputs(plan) + costOfScratch(plan);
}

/// What a plan takes when a few threads share it, two or four, as one core
/// counts; says in the plan how they do. Which it is must not depend on the
/// number of threads, so that the results do not.
double Planner::costInParts(WinogradPlan &plan) const {
  int64_t blocks = blocksOf(plan), tiles = images() * plan.tilesOfImage();
  int64_t affordable = std::clamp<int64_t>(
      mostScratchBytes / (plan.ringElements() * bytes), 2, mostParts);
  // Two threads and four are to have as many parts each of any number of
  // images.
  if (!conv.images)
    affordable = llvm::bit_floor(uint64_t(affordable));
  // What few threads take of steps of which each has an equal share.
  struct Step {
    int64_t cost, turns, turn;
  };
  auto mean = [&](int64_t parts, ArrayRef<Step> steps) {
    double sum = 0;
    for (int64_t threads : {2, 4})
      for (const Step &step : steps)
        sum += double(threads) * double(step.cost) *
               double(mostOfThread(step.turns, step.turn, parts, threads)) /
               double(step.turns);
    return sum / 2;
  };
  plan.shared = blocks > 1 || !conv.images
                    ? std::optional(WinogradPlan::Shared::Blocks)
                    : std::nullopt;
  plan.mostParts = !conv.images ? affordable : std::min(blocks, affordable);
  double byBlocks =
      mean(std::min(blocks, affordable), {{costOf(plan), tiles, plan.block}});
  if (blocks > 1 || plan.sharedElements() * bytes > mostSharedBytes)
    return byBlocks;
  // Parts that each have as many positions, unless they may be parts of blocks.
  int64_t parts = conv.images ? mostParts : affordable;
  while (conv.images && plan.points() % parts != 0)
    --parts;
  // Two more turns, and what is still in the cache of another thread: some 3 us
  // of each.
  constexpr double costOfTurns = 7e4;
  double byPositions =
      costOfTurns +
      mean(parts,
           {{costOfWeights(plan), plan.panels() * plan.pieceChannels(), 1},
            {costOfInputs(plan, images() * plan.tilesOfImage()), tiles, 1},
            {costOfProducts(plan) + costOfScratch(plan), plan.points(), 1},
            {costOfOutputs(plan), tiles, 1}});
  if (byPositions >= byBlocks)
    return byBlocks;
  plan.shared = WinogradPlan::Shared::Positions;
  plan.mostParts = parts;
  return byPositions;
}

/// Gives the plan, whose block is known, its tile; returns what it takes then.
/// Threads may do better with a tile that gives them equal shares than with
/// that which one is fastest with.
double Planner::pickTile(WinogradPlan &plan) const {
  plan.size = tile(plan.block, plan.rowStride(plan.pieceChannels()));
  if (!inParts)
    return double(costOf(plan));
  double least = costInParts(plan);
  WinogradPlan other = plan;
  int64_t widest = std::min(mostVectors, vectors(conv.filters));
  for (int64_t width = 1; width <= widest; ++width) {
    other.size = tile(plan.block, plan.rowStride(plan.pieceChannels()), width);
    double cost = costInParts(other);
    if (cost >= least)
      continue;
    least = cost;
    plan = other;
  }
  return least;
}

/// The smallest block of nearly the least cost.
WinogradPlan Planner::plan(TileForm form) const {
  constexpr int64_t mostTiles = 128;
  int64_t fewestTiles = inParts ? 12 : 16;
  constexpr double nearly = 1.02;
  WinogradPlan plan, best;
  static_cast<WindowTiling &>(plan) = tilingOf(form);
  double leastCost = std::numeric_limits<double>::infinity();
  double bestCost = leastCost;
  int64_t tiles = images() * plan.tilesOfImage();
  for (int64_t block = std::min(tiles, mostTiles);
       block >= std::min(tiles, fewestTiles); --block) {
    plan.block = block;
    // Of so many blocks the most equal ones: threads are to end together.
    if (inParts && int64_t(llvm::divideCeil(tiles, blocksOf(plan))) != block)
      continue;
    double cost = pickTile(plan);
    leastCost = std::min(leastCost, cost);
    if (cost > nearly * leastCost && bestCost <= nearly * leastCost)
      continue;
    best = plan;
    bestCost = cost;
  }
  return best;
}

/// Whether `form` gains enough along two axes for how far it rounds: F(5x5,
/// 2x2) is as fast as F(3x3, 2x2), and F(6x6, 3x3) as F(4x4, 3x3).
static bool isWorthItsRounding(TileForm form) {
  return form.inputs() == 4 || form.taps > (form.inputs() == 6 ? 2 : 3);
}

/// Pieces have as many taps as windows that have few for each pixel by which
/// they move, and three or more of others.
SmallVector<TileForm> formsOf(const WindowConv &conv, Winograd choice) {
  auto mostTaps = [](const TransformedAxis &axis) {
    return int64_t(llvm::divideCeil(axis.taps, axis.stride));
  };
  int64_t most = std::min(TileForm::mostTaps,
                          std::max(mostTaps(conv.down), mostTaps(conv.across)));
  bool isOpen = choice == Winograd::Auto;
  SmallVector<TileForm> forms;
  for (auto [name, inputs] :
       {std::pair(Winograd::F2, 4), {Winograd::F4, 6}, {Winograd::F8, 8}})
    for (int64_t taps = std::min<int64_t>(most, 3); taps <= most; ++taps) {
      TileForm form = {inputs + 1 - taps, taps};
      bool isAsked = isOpen ? !conv.down.isThere() || isWorthItsRounding(form)
                            : choice == name;
      if (isAsked && form.m >= 2)
        forms.push_back(form);
    }
  return forms;
}

std::optional<WinogradPlan> planWinograd(Kernel &kernel, linalg::GenericOp root,
                                         const VectorUnit &unit,
                                         Winograd choice, DotUnit dots) {
  if (choice == Winograd::Off)
    return std::nullopt;
  std::optional<WindowConv> conv = readConvolution(kernel, root);
  if (!conv)
    return std::nullopt;
  bool isDot = dots != DotUnit::None &&
               getElementTypeOrSelf(conv->input->get()).isBF16();
  if (isDot && dots == DotUnit::Tiles)
    return std::nullopt;
  unsigned bits =
      getElementTypeOrSelf(root.getResult(0)).getIntOrFloatBitWidth();
  Planner planner(*conv, bits, kernel.hasParts(), unit);
  // What is rounded how must not depend on threads.
  Planner ofOne(*conv, bits, /*inParts=*/false, unit);
  int64_t costOfSums = ofOne.costOfSums() / (isDot ? 2 : 1);
  std::optional<TileForm> form = fastestForm(
      formsOf(*conv, choice),
      [&](TileForm form) { return ofOne.costOf(ofOne.plan(form)); },
      choice == Winograd::Auto ? std::optional(costOfSums) : std::nullopt);
  if (!form)
    return std::nullopt;
  WinogradPlan plan = planner.plan(*form);
  // Whatever the block is, which depends on threads.
  Type element = getElementTypeOrSelf(conv->input->get());
  // Few rows want weights sooner than lines that are asked for come from
  // memory.
  constexpr int64_t fewRows = 32;
  bool comeTooLate = unit.farWeights() && plan.knownTiles() < fewRows;
  plan.inPairs =
      canHavePairs(unit) && conv->hasKnownWeights && element.isF32() &&
      !comeTooLate &&
      arePairsFaster(plan.pieceChannels(), conv->filters, plan.lanes);
  if (plan.inPairs) {
    auto vectors = int64_t(llvm::divideCeil(conv->filters, plan.lanes));
    plan.size.vectors = unsigned(std::min<int64_t>(vectors, 2));
    plan.size.rows = rowsOfPairedTile(plan.block, plan.size.vectors, unit);
  }
  bool isTooLarge = !conv->hasKnownWeights &&
                    plan.weightElements() * bits / 8 > mostWeightBytes;
  return isTooLarge ? std::nullopt : std::optional(plan);
}

} // namespace keratin
