//===- StrassenPlan.cpp - when seven products take the place of eight -----===//
#include "codegen/cpu/Strassen.h"
#include "ir/FloatProducts.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace mlir;

namespace keratin {

int64_t LoopGroup::turns() const {
  uint64_t product = 1;
  for (int64_t extent : extents)
    product = llvm::SaturatingMultiply<uint64_t>(product, extent);
  return int64_t(std::min<uint64_t>(product, INT64_MAX));
}

int64_t StrassenPlan::rowStride() const {
  return int64_t(llvm::alignTo(depth(), line)) + line;
}

//===----------------------------------------------------------------------===//
// What is such a product
//===----------------------------------------------------------------------===//

namespace {
/// Finds the factors of a product, and what its loops are.
class ProductReader {
public:
  ProductReader(Kernel &kernel, linalg::GenericOp root, StrassenPlan &plan)
      : kernel(kernel), root(root), plan(plan) {}

  bool run();

private:
  bool findFactors();
  bool groupLoops();
  bool isOrder(OpOperand *operand, ArrayRef<const LoopGroup *> groups);
  bool areNeighbours();
  bool canBeCounted();
  AffineMap mapOf(OpOperand *operand) {
    return root.getMatchingIndexingMap(operand);
  }

  Kernel &kernel;
  linalg::GenericOp root;
  StrassenPlan &plan;
};
} // namespace

/// Known weights of f32 and what they multiply.
bool ProductReader::findFactors() {
  if (!isProductOfF32(root) || !startsFromZero(root) ||
      !llvm::all_of(root.getIndexingMapsArray(), [](AffineMap map) {
        return llvm::all_of(map.getResults(),
                            llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
      }))
    return false;
  for (OpOperand *operand : root.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand->get());
    if (!argument || !argument.hasOneUse() ||
        !kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"))
      continue;
    plan.weights = operand;
    plan.left = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    return true;
  }
  return false;
}

/// Samples are the first axis of the output, as everywhere in Keras.
bool ProductReader::groupLoops() {
  AffineMap ofOutput = mapOf(root.getDpsInitOperand(0));
  auto first = dyn_cast<AffineDimExpr>(ofOutput.getResult(0));
  if (!first)
    return false;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    int64_t extent = staticLoopExtent(root, loop);
    bool ofLeft = mapOf(plan.left).isFunctionOfDim(loop);
    bool ofWeights = mapOf(plan.weights).isFunctionOfDim(loop);
    if (extent == 1)
      continue;
    bool isKnown = !ShapedType::isDynamic(extent);
    if (root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction) {
      if (!ofLeft || !ofWeights || !isKnown)
        return false;
      plan.sums.add(loop, extent);
    } else if (ofLeft == ofWeights) {
      return false;
    } else if (loop == first.getPosition()) {
      if (!ofLeft)
        return false;
      plan.sample = loop;
      plan.samples = isKnown ? std::optional(extent) : std::nullopt;
    } else if (!isKnown) {
      return false;
    } else {
      (ofLeft ? plan.rows : plan.columns).add(loop, extent);
    }
  }
  if (!plan.sample)
    plan.samples = 1;
  return !plan.rows.loops.empty() && !plan.columns.loops.empty() &&
         !plan.sums.loops.empty();
}

/// Whether `operand` has the dimensions of `groups` in order, the last ones
/// innermost.
bool ProductReader::isOrder(OpOperand *operand,
                            ArrayRef<const LoopGroup *> groups) {
  SmallVector<unsigned> wanted, found;
  for (const LoopGroup *group : groups)
    llvm::append_range(wanted, group->loops);
  for (AffineExpr expr : mapOf(operand).getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && staticLoopExtent(root, dim.getPosition()) != 1)
      found.push_back(dim.getPosition());
  return ArrayRef(found).take_back(wanted.size()) == ArrayRef(wanted);
}

/// Whether neighbours of a sum are neighbours in what is multiplied, and those
/// of columns in the output; weights are packed, for which their loops are to
/// be in order.
bool ProductReader::areNeighbours() {
  return isOrder(plan.left, {&plan.sums}) &&
         (isOrder(plan.weights, {&plan.sums, &plan.columns}) ||
          isOrder(plan.weights, {&plan.columns, &plan.sums})) &&
         isOrder(root.getDpsInitOperand(0), {&plan.columns}) &&
         llvm::none_of(accessesOf(kernel, root), [&](const Access &access) {
           return access.operand == plan.left &&
                  laneAccess(cast<ShapedType>(access.tensor.getType()),
                             access.position,
                             plan.sums.loops.back()) == LaneAccess::Gather;
         });
}

/// Whether no cost overflows. What does not fit in memory is refused later.
bool ProductReader::canBeCounted() {
  constexpr int64_t most = 1 << 24;
  constexpr double mostProducts = 1e15;
  auto isCount = [](int64_t number) { return number > 0 && number <= most; };
  double products = double(plan.samples.value_or(1)) *
                    double(plan.rows.turns()) * double(plan.columns.turns()) *
                    double(plan.sums.turns());
  return isCount(plan.samples.value_or(1)) && isCount(plan.rows.turns()) &&
         isCount(plan.columns.turns()) && isCount(plan.sums.turns()) &&
         products <= mostProducts;
}

bool ProductReader::run() {
  return findFactors() && groupLoops() && areNeighbours() && canBeCounted() &&
         plan.sums.extents.front() % 2 == 0 &&
         plan.columns.extents.front() % 2 == 0;
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
  AffineMap map = root.getMatchingIndexingMap(plan.weights);
  auto placeOf = [&](unsigned loop) {
    return *map.getResultPosition(getAffineDimExpr(loop, root.getContext()));
  };
  bool columnsInside =
      placeOf(plan.columns.loops.back()) > placeOf(plan.sums.loops.back());
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
        {plan.block, fitting, cachedRows(plan.rowStride() * 4)});
    for (int64_t height = 1; height <= most; ++height) {
      TileSize size = {unsigned(height), unsigned(width)};
      if (!best || productCost(plan.block, vectors, size) <
                       productCost(plan.block, vectors, *best))
        best = size;
    }
  }
  return best;
}

/// What it takes in issue slots of FMAs, as the costs of TileSizes are.
static int64_t costOf(const StrassenPlan &plan, const VectorUnit &unit) {
  // Measured, with loads and stores, where a vector takes two turns of a unit:
  // what is done with a vector of each block of A, of B beside products, and of
  // C. Shorter vectors are more of both.
  constexpr int64_t ofLeft = 24, ofWeights = 4, ofProducts = 40, ofShort = 3;
  int64_t vectors = plan.columns.turns() / 2 / plan.lanes;
  int64_t depth = plan.depth();
  int64_t beside = plan.block * (depth / plan.lanes) * ofLeft +
                   depth * vectors * ofWeights +
                   plan.block * vectors * ofProducts;
  if (unit.bits < 512)
    beside *= ofShort;
  auto blocks = int64_t(llvm::divideCeil(plan.pairs(), plan.block));
  return blocks *
         (7 * depth * productCost(plan.block, vectors, plan.size) + beside);
}

/// The same for sums of products.
static int64_t costOfSums(const StrassenPlan &plan, const VectorUnit &unit) {
  int64_t rows = plan.samples.value_or(1) * plan.rows.turns();
  int64_t vectors = plan.columns.turns() / plan.lanes;
  constexpr int64_t mostRows = 16, mostVectors = 4;
  TileSize size = productTile(rows, vectors, {mostRows, mostVectors}, unit);
  return plan.sums.turns() * productCost(rows, vectors, size);
}

std::optional<StrassenPlan> planStrassen(Kernel &kernel, linalg::GenericOp root,
                                         const VectorUnit &unit) {
  constexpr unsigned leastBits = 256;
  constexpr int64_t fewestPairs = 16, fewestSteps = 32;
  StrassenPlan plan = {};
  // Where units have the width of vectors, a core does two products of them in
  // a cycle. What is beside the products waits for caches as long as elsewhere,
  // and takes what seven for eight gain.
  bool areFast = unit.bits >= 512 && !unit.halfUnits;
  if (!unit.strassen || unit.littleCode || unit.bits < leastBits || areFast ||
      !ProductReader(kernel, root, plan).run())
    return std::nullopt;
  constexpr int64_t bytes = 4, bytesOfLine = 64;
  plan.lanes = unit.bits / (8 * bytes);
  plan.line = bytesOfLine / bytes;
  plan.chains = unit.bits >= 512 ? 4 : 2;
  plan.asksAhead = !unit.nearestWeights();
  if (plan.pairs() < fewestPairs || plan.depth() < fewestSteps)
    return std::nullopt;
  // Blocks are what threads share, so they are small; where vectors are short,
  // sums of weights take longer, and have to meet more rows.
  int64_t mostPairs = unit.bits >= 512 ? 32 : 64;
  int64_t affordable =
      std::min(mostLeftBytes / (7 * plan.rowStride() * bytes), mostPairs);
  if (affordable < fewestPairs)
    return std::nullopt;
  auto blocks = int64_t(llvm::divideCeil(plan.pairs(), affordable));
  plan.block = int64_t(llvm::divideCeil(plan.pairs(), blocks));
  std::optional<TileSize> size = pickTile(plan, unit);
  if (!size)
    return std::nullopt;
  plan.size = *size;
  plan.readsForEach = unit.bits >= 512 && plan.size.vectors <= 3;
  // The four blocks of weights and a sum of two are to stay in half of the
  // second cache.
  int64_t fitting = unit.secondCache() / 2 / (5 * plan.width() * bytes);
  auto turns =
      int64_t(llvm::divideCeil(plan.depth(), std::max(fitting, fewestSteps)));
  plan.steps = int64_t(llvm::divideCeil(plan.depth(), turns));
  if (costOf(plan, unit) > costOfSums(plan, unit) / 20 * 19 ||
      !haveLikeWeights(kernel, root, plan))
    return std::nullopt;
  return plan;
}

} // namespace keratin
