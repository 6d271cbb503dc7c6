//===- DotPlan.cpp - when and how sums of products of bf16 are dots -------===//
#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/Dots.h"
#include "codegen/cpu/SplitTiles.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
class DotPlanner {
public:
  DotPlanner(Kernel &kernel, linalg::GenericOp root, DotUnit unit,
             const VectorUnit &vectors)
      : kernel(kernel), root(root), vectors(vectors) {
    plan.unit = unit;
  }

  std::optional<DotPlan> run();

private:
  bool isSumOfProducts();
  bool findFactors();
  bool sortLoops();
  bool measure(OpOperand *factor, SmallVector<int64_t> &strides,
               int64_t &start);
  bool follows(unsigned outer, unsigned inner);
  bool pickSteps();
  bool packRight();
  bool pickPanel();
  bool pickRows();
  bool pickSplitRows();
  bool paysToSplit();
  void mergeRows(int64_t most);

  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }
  AffineMap mapOf(OpOperand *operand) {
    return root.getMatchingIndexingMap(operand);
  }

  Kernel &kernel;
  linalg::GenericOp root;
  const VectorUnit &vectors;
  DotPlan plan = {};
};
} // namespace

/// Whether a distance is only known when the code runs.
static bool isOpen(int64_t stride) { return ShapedType::isDynamic(stride); }

/// Products of two numbers of bf16, or of f32 which are to be split, summed up
/// from zero in f32.
bool DotPlanner::isSumOfProducts() {
  plan.split = plan.unit == DotUnit::Tiles && isProductOfF32(root);
  return (plan.split || isProductOfBf16(root)) && startsFromZero(root) &&
         llvm::all_of(root.getDpsInputs(), [&](Value input) {
           return bool(kernel.memrefOf(input));
         });
}

/// The columns are the innermost loop of the output; one factor has them.
bool DotPlanner::findFactors() {
  AffineMap output = mapOf(root.getDpsInitOperand(0));
  std::optional<unsigned> lane;
  for (AffineExpr expr : output.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && extent(dim.getPosition()) != 1)
      lane = dim.getPosition();
  if (!lane || ShapedType::isDynamic(extent(*lane)))
    return false;
  plan.lane = *lane;
  plan.columns = extent(*lane);
  OpOperand *first = root.getDpsInputOperand(0),
            *second = root.getDpsInputOperand(1);
  if (mapOf(first).isFunctionOfDim(*lane))
    std::swap(first, second);
  plan.left = first;
  plan.right = second;
  return !mapOf(first).isFunctionOfDim(*lane) &&
         mapOf(second).isFunctionOfDim(*lane) && first->get() != second->get();
}

bool DotPlanner::sortLoops() {
  AffineMap left = mapOf(plan.left), right = mapOf(plan.right);
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray())) {
    if (extent(loop) == 0)
      return false;
    if (loop == plan.lane || extent(loop) == 1)
      continue;
    bool inLeft = left.isFunctionOfDim(loop),
         inRight = right.isFunctionOfDim(loop);
    if (kind == utils::IteratorType::reduction) {
      if (!inLeft || !inRight || ShapedType::isDynamic(extent(loop)))
        return false;
      plan.sums.push_back(loop);
    } else if (inRight) {
      plan.outer.push_back(loop);
    } else {
      plan.rows.push_back(loop);
    }
  }
  return !plan.sums.empty();
}

/// Distances in a factor, which is read at sums of multiples of loops; that of
/// rows may be open.
bool DotPlanner::measure(OpOperand *factor, SmallVector<int64_t> &strides,
                         int64_t &start) {
  auto type = cast<MemRefType>(kernel.memrefOf(factor->get()).getType());
  SmallVector<int64_t> apart;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(apart, offset)) || offset != 0)
    return false;
  strides.assign(root.getNumLoops(), 0);
  start = 0;
  SmallVector<AffineExpr> zeros(root.getNumLoops(),
                                getAffineConstantExpr(0, root.getContext()));
  for (auto [expr, stride] :
       llvm::zip_equal(mapOf(factor).getResults(), apart)) {
    auto first = dyn_cast<AffineConstantExpr>(expr.replaceDims(zeros));
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && ShapedType::isDynamic(stride) &&
        llvm::is_contained(plan.rows, dim.getPosition()) &&
        strides[dim.getPosition()] == 0) {
      strides[dim.getPosition()] = stride;
      continue;
    }
    if (!first || ShapedType::isDynamic(stride))
      return false;
    start += first.getValue() * stride;
    for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
      std::optional<int64_t> step = laneStep(expr, loop);
      if (!step || (*step != 0 && isOpen(strides[loop])))
        return false;
      strides[loop] += *step * stride;
    }
  }
  return llvm::all_of(
      strides, [](int64_t stride) { return stride >= 0 || isOpen(stride); });
}

/// Whether the turns of `outer` are as far from each other in the left factor
/// as all of `inner` take, however many those are: nothing is between their
/// dimensions.
bool DotPlanner::follows(unsigned outer, unsigned inner) {
  bool isBetween = false;
  auto type = cast<MemRefType>(kernel.memrefOf(plan.left->get()).getType());
  if (!type.getLayout().isIdentity())
    return false;
  for (auto [dim, expr] : llvm::enumerate(mapOf(plan.left).getResults())) {
    if (expr == getAffineDimExpr(outer, root.getContext()))
      isBetween = true;
    else if (isBetween && type.getDimSize(int64_t(dim)) != 1)
      return expr == getAffineDimExpr(inner, root.getContext());
  }
  return false;
}

/// How many elements of a sum each step takes: as many as fit, the same number
/// in each, and whole pairs, but for the last one of an odd sum.
bool DotPlanner::pickSteps() {
  llvm::sort(plan.sums, [&](unsigned one, unsigned other) {
    return std::pair(-plan.strides[one], one) <
           std::pair(-plan.strides[other], other);
  });
  for (unsigned loop : llvm::reverse(plan.sums)) {
    if (plan.strides[loop] != plan.depth)
      break;
    plan.depth *= extent(loop);
    ++plan.inner;
  }
  // Elements that are split are copied, so that zeros may follow them.
  if (plan.split) {
    plan.step = splitDepth;
    return plan.inner == plan.sums.size() ||
           (plan.inner != 0 && plan.depth % splitDepth == 0);
  }
  bool isOdd = plan.depth % 2 != 0 && plan.inner == plan.sums.size();
  if (plan.unit == DotUnit::Tiles)
    plan.step = tileDepth(plan.depth);
  else
    plan.step = isOdd ? 2 : evenPart(plan.depth, 2);
  return plan.inner != 0 && plan.step != 0;
}

/// The right factor is read along whole loops, each in a dimension of its own.
bool DotPlanner::packRight() {
  auto argument = dyn_cast<BlockArgument>(plan.right->get());
  if (!argument || !argument.hasOneUse() ||
      !kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"))
    return false;
  plan.packing.block = plan.block;
  plan.packing.split = plan.split;
  plan.packing.dim = -1;
  AffineMap map = mapOf(plan.right);
  auto dimOf = [&](unsigned loop) -> int64_t {
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(loop, root.getContext()))
        return int64_t(dim);
    return -1;
  };
  // Dimensions of one element are of no loop.
  auto type = cast<RankedTensorType>(plan.right->get().getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.getDimSize(dim) == 1)
      plan.packing.outer.push_back(dim);
  for (unsigned loop : plan.outer)
    plan.packing.outer.push_back(dimOf(loop));
  for (unsigned loop : plan.sums)
    plan.packing.sums.push_back(dimOf(loop));
  plan.packing.dim = dimOf(plan.lane);
  return isValid(plan.packing, type);
}

/// A factor that is computed is copied for each block of columns, of which
/// enough rows make use.
bool DotPlanner::pickPanel() {
  constexpr int64_t leastRows = 16, panelBytes = 128 << 10;
  int64_t rows = 1, bytes = 2 * plan.block;
  for (unsigned loop : plan.rows)
    rows *= ShapedType::isDynamic(extent(loop)) ? leastRows : extent(loop);
  for (unsigned loop : plan.sums)
    bytes *= extent(loop);
  unsigned last = plan.sums.back();
  if (rows < leastRows || bytes > panelBytes || extent(last) % 2 != 0 ||
      !measure(plan.right, plan.rightStrides, plan.rightStart))
    return false;
  plan.panel = true;
  plan.hasPairs = plan.rightStrides[last] == 1;
  return plan.hasPairs || plan.rightStrides[plan.lane] == 1;
}

/// The rows of an image that is so narrow that they leave tiles half empty, as
/// 7 x 7 with a border, are one run: what is between two of them is computed
/// too, from what there is of the border.
void DotPlanner::mergeRows(int64_t most) {
  if (plan.run != 1 || plan.rows.size() < 2 || !plan.runRows)
    return;
  unsigned last = plan.rows.back(), next = plan.rows[plan.rows.size() - 2];
  int64_t stride = plan.strides[last], turns = extent(next);
  if (ShapedType::isDynamic(turns) || stride == 0 ||
      plan.strides[next] % stride != 0)
    return;
  int64_t pitch = plan.strides[next] / stride;
  if (pitch <= *plan.runRows)
    return;
  int64_t rows = (turns - 1) * pitch + *plan.runRows;
  int64_t apart = turns * int64_t(llvm::divideCeil(*plan.runRows, most)),
          merged = int64_t(llvm::divideCeil(rows, most));
  if (4 * merged > 3 * apart)
    return;
  plan.pitch = pitch;
  plan.runRows = rows;
  plan.run = 2;
}

/// Rows that are split are copied to tiles of one height, from wherever they
/// are.
bool DotPlanner::pickSplitRows() {
  for (unsigned loop : llvm::reverse(plan.rows)) {
    if (ShapedType::isDynamic(extent(loop)))
      break;
    plan.runRows = *plan.runRows * extent(loop);
    ++plan.run;
  }
  auto tiles = int64_t(llvm::divideCeil(*plan.runRows, mostTileRows));
  plan.height = int64_t(llvm::divideCeil(*plan.runRows, tiles));
  return llvm::none_of(plan.strides, isOpen);
}

/// Whether six products in tile registers take less time than one in vectors.
/// On a Granite Rapids those take 0.0061 ns for each row and weight, and these
/// 0.0103; but rows are split before, and the six bytes of a weight that no
/// near cache has take 0.2 ns.
bool DotPlanner::paysToSplit() {
  constexpr int64_t leastColumns = 40;
  int64_t leastRows = vectors.nearWeights() ? 32 : 40;
  int64_t depth = 1;
  for (unsigned loop : plan.sums)
    depth *= extent(loop);
  AffineMap left = mapOf(plan.left);
  bool isForAll = llvm::none_of(
      plan.outer, [&](unsigned loop) { return left.isFunctionOfDim(loop); });
  return isForAll && fillsSplitSteps(depth) && *plan.runRows >= leastRows &&
         plan.columns >= leastColumns;
}

/// Rows at one distance are done together, in tiles of one height. False where
/// others are at one that is open.
bool DotPlanner::pickRows() {
  // With vectors, rows by two vectors are sums in registers.
  int64_t most = plan.unit == DotUnit::Tiles ? mostTileRows : 12;
  plan.runRows = 1;
  if (plan.split)
    return pickSplitRows();
  int64_t stride = 0;
  for (unsigned loop : llvm::reverse(plan.rows)) {
    if (plan.run != 0 && plan.strides[loop] != stride * *plan.runRows)
      break;
    if (plan.run == 0)
      stride = plan.strides[loop];
    if (ShapedType::isDynamic(extent(loop))) {
      if (plan.run == 0) {
        plan.runRows = std::nullopt;
        ++plan.run;
      }
      break;
    }
    plan.runRows = *plan.runRows * extent(loop);
    ++plan.run;
  }
  size_t number = plan.rows.size();
  if (!plan.runRows && number > 1) {
    unsigned outer = plan.rows[number - 2];
    if (isOpen(plan.strides[outer]) && follows(outer, plan.rows.back())) {
      plan.strides[outer] = 0; // told by the extent of the last ones
      ++plan.run;
    }
  }
  if (plan.unit == DotUnit::Tiles)
    mergeRows(most);
  plan.height = plan.runRows
                    ? int64_t(llvm::divideCeil(
                          *plan.runRows, llvm::divideCeil(*plan.runRows, most)))
                    : most;
  if (plan.runRows && plan.unit == DotUnit::Vectors)
    plan.lowTiles =
        int64_t(llvm::alignTo(*plan.runRows, plan.height)) - *plan.runRows;
  return llvm::none_of(plan.strides, isOpen);
}

std::optional<DotPlan> DotPlanner::run() {
  if (!isSumOfProducts() || !findFactors() || !sortLoops() ||
      !measure(plan.left, plan.strides, plan.start) || !pickSteps())
    return std::nullopt;
  plan.block = 32;
  if (!packRight() && (plan.split || plan.depth % 2 != 0 || !pickPanel()))
    return std::nullopt;
  if (!pickRows())
    return std::nullopt;
  if (plan.split)
    return paysToSplit() ? std::optional(plan) : std::nullopt;
  constexpr int64_t leastOfRow = 128, fewRows = 16;
  int64_t products = plan.columns, rows = 1;
  for (unsigned loop : plan.sums)
    products *= extent(loop);
  for (unsigned loop : plan.rows)
    rows *= ShapedType::isDynamic(extent(loop)) ? fewRows : extent(loop);
  if (plan.columns < 4 || products < leastOfRow ||
      products * std::min<int64_t>(rows, fewRows * fewRows) < productsOfSetup)
    return std::nullopt;
  return plan;
}

std::optional<DotPlan> planDots(Kernel &kernel, linalg::GenericOp root,
                                DotUnit unit, const VectorUnit &vectors) {
  if (unit == DotUnit::None)
    return std::nullopt;
  return DotPlanner(kernel, root, unit, vectors).run();
}

} // namespace keratin
