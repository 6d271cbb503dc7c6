//===- WinogradPlan.cpp - when and how tiles of outputs are transformed ---===//
#include "codegen/cpu/Winograd.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

int64_t WinogradPlan::panels() const {
  return int64_t(llvm::divideCeil(conv.filters, panelWidth()));
}
int64_t WinogradPlan::tilesDown() const {
  return int64_t(llvm::divideCeil(conv.height, m));
}
int64_t WinogradPlan::tilesAcross() const {
  return int64_t(llvm::divideCeil(conv.width, m));
}
int64_t WinogradPlan::rowStride(int64_t elements) const {
  return int64_t(llvm::alignTo(elements, line)) + line;
}
int64_t WinogradPlan::sliceStride() const {
  return block * rowStride(std::max(conv.channels, conv.filters)) + line;
}

//===----------------------------------------------------------------------===//
// What is such a convolution
//===----------------------------------------------------------------------===//

namespace {
/// Reads a root as a WindowConv.
class WindowReader {
public:
  WindowReader(Kernel &kernel, linalg::GenericOp root)
      : kernel(kernel), root(root) {}

  std::optional<WindowConv> run();

private:
  bool isSumOfProducts();
  bool readWeights();
  bool readOutput();
  bool readInput();
  bool isReadInOrder();
  std::optional<unsigned> loopAt(AffineMap map, unsigned position);
  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }

  Kernel &kernel;
  linalg::GenericOp root;
  WindowConv conv;
  unsigned tapRow = 0, tapColumn = 0;
};
} // namespace

std::optional<unsigned> WindowReader::loopAt(AffineMap map, unsigned position) {
  if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(position)))
    return dim.getPosition();
  return std::nullopt;
}

/// A sum of products of floats of one type that starts at zero.
bool WindowReader::isSumOfProducts() {
  Type element = getElementTypeOrSelf(root.getResult(0));
  if (root.getNumDpsInputs() != 2 || root->getNumResults() != 1 ||
      !(element.isF32() || element.isF64()) ||
      llvm::any_of(root.getDpsInputs(),
                   [&](Value input) {
                     return getElementTypeOrSelf(input) != element;
                   }) ||
      !linalg::detail::isContractionBody(
          *root.getBlock(), [](Operation *first, Operation *second) {
            return isa<arith::MulFOp>(first) && isa<arith::AddFOp>(second);
          }))
    return false;
  auto fill = root.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// g[kh, kw, c, k] of known values.
bool WindowReader::readWeights() {
  for (OpOperand *operand : root.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand->get());
    if (!argument || !argument.hasOneUse() ||
        !kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"))
      continue;
    AffineMap map = root.getMatchingIndexingMap(operand);
    auto shape = cast<RankedTensorType>(argument.getType()).getShape();
    if (shape.size() != 4 || shape[0] != 3 || shape[1] != 3 ||
        !map.isProjectedPermutation())
      continue;
    conv.weights = operand;
    conv.input = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    tapRow = *loopAt(map, 0);
    tapColumn = *loopAt(map, 1);
    conv.channel = *loopAt(map, 2);
    conv.filter = *loopAt(map, 3);
    conv.channels = shape[2];
    conv.filters = shape[3];
    return true;
  }
  return false;
}

/// y[n, h, w, k]
bool WindowReader::readOutput() {
  AffineMap map = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  unsigned rank = map.getNumResults();
  if (rank < 3 || rank > 4 || !map.isProjectedPermutation() ||
      root.getNumLoops() != rank + 3 || root.getNumReductionLoops() != 3 ||
      loopAt(map, rank - 1) != conv.filter)
    return false;
  conv.row = *loopAt(map, rank - 3);
  conv.column = *loopAt(map, rank - 2);
  conv.height = extent(conv.row);
  conv.width = extent(conv.column);
  conv.images = 1;
  if (rank == 4 && extent(*loopAt(map, 0)) != 1) {
    conv.image = loopAt(map, 0);
    int64_t known = extent(*conv.image);
    conv.images =
        ShapedType::isDynamic(known) ? std::nullopt : std::optional(known);
  }
  // Loops of one turn are not among the coordinates of the emitters.
  return conv.height > 1 && conv.width > 1 && conv.channels > 1 &&
         conv.filters > 1 && conv.images.value_or(1) > 0;
}

/// x[n, h + kh, w + kw, c]
bool WindowReader::readInput() {
  AffineMap map = root.getMatchingIndexingMap(conv.input);
  auto type = cast<RankedTensorType>(conv.input->get().getType());
  MLIRContext *context = root.getContext();
  auto sum = [&](unsigned one, unsigned other) {
    return canonical(getAffineDimExpr(one, context) +
                     getAffineDimExpr(other, context));
  };
  unsigned seen = 0;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    if (canonical(expr) == sum(conv.row, tapRow)) {
      conv.inputHeight = type.getDimSize(position);
      seen |= 1;
    } else if (canonical(expr) == sum(conv.column, tapColumn)) {
      conv.inputWidth = type.getDimSize(position);
      seen |= 2;
    } else if (expr == getAffineDimExpr(conv.channel, context)) {
      seen |= 4;
    } else if (expr.isFunctionOfDim(conv.row) ||
               expr.isFunctionOfDim(conv.column) ||
               expr.isFunctionOfDim(conv.filter) ||
               llvm::any_of(
                   ArrayRef{tapRow, tapColumn, conv.channel},
                   [&](unsigned loop) { return expr.isFunctionOfDim(loop); })) {
      return false;
    }
  }
  return seen == 7 && conv.inputHeight >= conv.height + 2 &&
         conv.inputWidth >= conv.width + 2;
}

/// Whether neighbouring channels are neighbours in memory.
bool WindowReader::isReadInOrder() {
  return llvm::none_of(accessesOf(kernel, root), [&](const Access &access) {
    return access.operand == conv.input &&
           laneAccess(cast<ShapedType>(access.tensor.getType()),
                      access.position, conv.channel) == LaneAccess::Gather;
  });
}

std::optional<WindowConv> WindowReader::run() {
  if (isSumOfProducts() && readWeights() && readOutput() && readInput() &&
      isReadInOrder())
    return conv;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// How, and when
//
// Costs are in issue slots of FMAs, as those of TileSizes. What a transform of
// the vectors of one tile takes was measured, loads and stores included.
//===----------------------------------------------------------------------===//

/// What the second cache holds of a block and of weights.
static constexpr int64_t cacheBytes = 1 << 20;
/// What arrives from the third cache and from memory in one slot.
static constexpr int64_t cachedBytesOfSlot = 5, bytesOfSlot = 3;

namespace {
class Planner {
public:
  Planner(const WindowConv &conv, unsigned bits, const VectorUnit &unit)
      : conv(conv), unit(unit), lanes(unit.bits / bits), bytes(bits / 8) {}

  WinogradPlan plan(int64_t m) const;
  int64_t costOf(const WinogradPlan &plan) const;
  int64_t costOfSums() const;

private:
  int64_t images() const { return conv.images.value_or(1); }
  int64_t vectors(int64_t elements) const {
    return int64_t(llvm::divideCeil(elements, lanes));
  }
  /// Of products that read `weights` elements while they last.
  int64_t streamed(int64_t cost, int64_t weights, int64_t rate) const {
    return std::max(cost, weights * bytes / rate);
  }
  TileSize tile(int64_t rows, int64_t stride) const {
    return productTile(rows, vectors(conv.filters),
                       {cachedRows(stride * bytes), 8}, unit);
  }

  const WindowConv &conv;
  const VectorUnit &unit;
  int64_t lanes, bytes;
};
} // namespace

/// The convolution as sums over the window.
int64_t Planner::costOfSums() const {
  int64_t ofRow = productCost(conv.width, vectors(conv.filters),
                              tile(conv.width, conv.channels));
  int64_t sums = 9 * conv.channels;
  return streamed(images() * conv.height * sums * ofRow, sums * conv.filters,
                  bytesOfSlot);
}

int64_t Planner::costOf(const WinogradPlan &plan) const {
  int64_t tiles = images() * plan.tilesOfImage();
  int64_t weights =
      plan.points() * conv.channels * plan.panels() * plan.panelWidth();
  auto ofBlock = [&](int64_t tiles, int64_t rate) {
    int64_t cost = plan.points() * conv.channels *
                   productCost(tiles, vectors(conv.filters), plan.size);
    return streamed(cost, weights, rate);
  };
  // Only the first block finds the weights where the last layer left them.
  int64_t laterRate =
      weights * bytes <= cacheBytes ? INT32_MAX : cachedBytesOfSlot;
  int64_t blocks = llvm::divideCeil(tiles, plan.block);
  int64_t rest = tiles - (blocks - 1) * plan.block;
  int64_t products = blocks == 1
                         ? ofBlock(rest, bytesOfSlot)
                         : ofBlock(plan.block, bytesOfSlot) +
                               (blocks - 2) * ofBlock(plan.block, laterRate) +
                               ofBlock(rest, laterRate);
  int64_t ofInput = plan.m == 2 ? 120 : 400, ofOutput = plan.m == 2 ? 80 : 240;
  return products + tiles * (vectors(conv.channels) * ofInput +
                             vectors(conv.filters) * ofOutput);
}

/// The block of least cost among those whose transforms the cache holds.
WinogradPlan Planner::plan(int64_t m) const {
  constexpr int64_t mostTiles = 256;
  WinogradPlan plan, best;
  plan.conv = conv;
  plan.m = m;
  plan.lanes = lanes;
  plan.line = 64 / bytes;
  int64_t bestCost = INT64_MAX;
  int64_t tiles = images() * plan.tilesOfImage();
  for (plan.block = 1; plan.block <= std::min(tiles, mostTiles); ++plan.block) {
    if (plan.block > 8 && plan.scratchElements() * bytes > cacheBytes)
      break;
    plan.size = tile(plan.block, plan.rowStride(conv.channels));
    int64_t cost = costOf(plan);
    // At equal cost the larger block, which reads the weights less often.
    if (cost <= bestCost) {
      best = plan;
      bestCost = cost;
    }
  }
  return best;
}

/// Lets calls of the kernel share the blocks, or the columns of few blocks.
static void sharePlan(WinogradPlan &plan, const Kernel &kernel, int64_t bytes) {
  constexpr int64_t mostBytes = 16 << 20, mostParts = 16;
  std::optional<int64_t> blocks;
  if (plan.conv.images)
    blocks =
        llvm::divideCeil(*plan.conv.images * plan.tilesOfImage(), plan.block);
  std::optional<unsigned> shared =
      kernel.pickShared({blocks.value_or(ShapedType::kDynamic), plan.panels()});
  if (!shared)
    return;
  plan.shared = *shared == 0 ? WinogradPlan::Shared::Blocks
                             : WinogradPlan::Shared::Columns;
  int64_t turns = *shared == 0 ? blocks.value_or(mostParts) : plan.panels();
  int64_t affordable = mostBytes / (plan.scratchElements() * bytes);
  plan.mostParts =
      std::clamp<int64_t>(affordable, 2, std::min(turns, mostParts));
}

std::optional<WinogradPlan> planWinograd(Kernel &kernel, linalg::GenericOp root,
                                         const VectorUnit &unit,
                                         Winograd choice) {
  if (choice == Winograd::Off)
    return std::nullopt;
  std::optional<WindowConv> conv = WindowReader(kernel, root).run();
  if (!conv)
    return std::nullopt;
  unsigned bits =
      getElementTypeOrSelf(root.getResult(0)).getIntOrFloatBitWidth();
  Planner planner(*conv, bits, unit);
  WinogradPlan plan = planner.plan(choice == Winograd::F2 ? 2 : 4);
  if (choice == Winograd::Auto) {
    // Sums need no memory and round less: they go where they are nearly as
    // fast.
    WinogradPlan small = planner.plan(2);
    if (planner.costOf(small) < planner.costOf(plan))
      plan = small;
    if (planner.costOf(plan) > planner.costOfSums() / 8 * 7)
      return std::nullopt;
  }
  sharePlan(plan, kernel, bits / 8);
  return plan;
}

} // namespace keratin
