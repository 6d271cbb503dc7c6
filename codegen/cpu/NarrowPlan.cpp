//===- NarrowPlan.cpp - which products have vectors along their sum -------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/NarrowProducts.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
class NarrowPlanner {
public:
  NarrowPlanner(Kernel &kernel, linalg::GenericOp root, const VectorUnit &unit)
      : kernel(kernel), root(root), unit(unit), classifier(kernel, root, unit),
        accesses(accessesOf(kernel, root)) {}

  std::optional<NarrowPlan> run();

private:
  bool isSumOfProducts();
  bool findFactors(bool ofOneColumn);
  bool pickLane();
  std::optional<unsigned> findTap();
  bool canLieAcross(unsigned across);
  bool isRunOfRows();
  bool pickSize();
  /// Whether `input` is read at loops, not through a window.
  bool isPlain(OpOperand *input) {
    return llvm::all_of(accesses, [&](const Access &access) {
      return access.operand != input ||
             llvm::all_of(access.position,
                          llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
    });
  }
  /// Whether the root reads `input` itself.
  bool isDirect(OpOperand *input) {
    return llvm::any_of(accesses, [&](const Access &access) {
      return access.operand == input && access.direct;
    });
  }

  struct Tile {
    int64_t rows, columns;
  };
  int64_t tapsOfStep() { return plan.tap ? extent(*plan.tap) : 1; }
  bool staysNear(int64_t columns);
  int64_t slotsOfTile(Tile tile, bool isNear);
  double slotsOf(int64_t rows, Tile tile);
  double slotsOfRegisterTiles(std::optional<int64_t> rows);

  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }
  AffineMap mapOf(OpOperand *operand) {
    return root.getMatchingIndexingMap(operand);
  }
  bool isReduction(unsigned loop) {
    return root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  }

  Kernel &kernel;
  linalg::GenericOp root;
  const VectorUnit &unit;
  Classifier classifier;
  SmallVector<Access> accesses;
  NarrowPlan plan = {};
  OpOperand *left = nullptr, *right = nullptr;
  int64_t steps = 1; ///< of a tile whose vectors have one column
  int64_t depth = 1; ///< elements of a sum
};
} // namespace

/// Products of two numbers, summed up from zero.
bool NarrowPlanner::isSumOfProducts() {
  Type sum = getElementTypeOrSelf(root->getResult(0));
  // Of widened factors, zeros behind the last element of a sum add nothing.
  return isFloatProduct(root) && (sum.isF32() || sum.isF64()) &&
         onlyWidensFactors(root) && startsFromZero(root) &&
         llvm::all_of(
             root.getDpsInputs(),
             [](Value input) { return isa<TensorType>(input.getType()); }) &&
         llvm::none_of(accesses, [](const Access &access) {
           return access.tensor.getDefiningOp<tensor::PadOp>() != nullptr;
         });
}

/// The columns are the innermost loop of the output, which one factor has; a
/// row is a loop of the other one. That is the innermost loop of more than one
/// turn, or one column.
bool NarrowPlanner::findFactors(bool ofOneColumn) {
  std::optional<unsigned> column;
  for (AffineExpr expr : mapOf(root.getDpsInitOperand(0)).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (dim && (extent(dim.getPosition()) == 1) == ofOneColumn)
      column = dim.getPosition();
    else if (ofOneColumn)
      column.reset();
  }
  if (!column || ShapedType::isDynamic(extent(*column)))
    return false;
  plan.column = *column;
  left = root.getDpsInputOperand(0);
  right = root.getDpsInputOperand(1);
  if (mapOf(left).isFunctionOfDim(*column))
    std::swap(left, right);
  if (mapOf(left).isFunctionOfDim(*column) ||
      !mapOf(right).isFunctionOfDim(*column))
    return false;
  constexpr int64_t unknownRows = 4; // of a batch, which often is of one image
  int64_t best = 0;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    int64_t turns = extent(loop);
    if (turns == 0)
      return false;
    if (isReduction(loop) || loop == *column || turns == 1)
      continue;
    plan.outer.insert(plan.outer.begin(), loop);
    if (ShapedType::isDynamic(turns))
      turns = unknownRows;
    if (turns > best && mapOf(left).isFunctionOfDim(loop) &&
        !mapOf(right).isFunctionOfDim(loop)) {
      plan.row = loop;
      best = turns;
    }
  }
  llvm::erase_if(plan.outer, [&](unsigned loop) { return loop == plan.row; });
  return true;
}

/// The innermost part of a sum along which neighbours are neighbours in memory,
/// or can be made so.
bool NarrowPlanner::pickLane() {
  plan.lanes = lanesOf(root->getResult(0), unit);
  std::optional<unsigned> lane;
  for (unsigned loop = root.getNumLoops(); loop-- > 0 && !lane;) {
    if (!isReduction(loop) || ShapedType::isDynamic(extent(loop)) ||
        extent(loop) < plan.lanes)
      continue;
    plan.packed = nullptr;
    plan.copied = false;
    bool fits = true;
    for (const Access &access : accesses) {
      auto type = cast<ShapedType>(access.tensor.getType());
      if (laneAccess(type, access.position, loop) != LaneAccess::Gather)
        continue;
      bool isKnown = classifier.canPack(access, loop);
      fits &= access.operand == right &&
              (isKnown || (classifier.canPanel(access, loop) &&
                           kernel.memrefOf(access.tensor)));
      plan.packed = right;
      plan.copied = !isKnown;
    }
    // Windows that a row has one for each element share what they read, row
    // after row.
    fits &= plan.packed || isPlain(right);
    if (fits)
      lane = loop;
  }
  if (!lane)
    return false;
  plan.lane = *lane;
  depth = extent(*lane);
  steps = int64_t(llvm::divideCeil(depth, plan.lanes));
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (!isReduction(loop) || loop == *lane || extent(loop) == 1)
      continue;
    plan.sums.push_back(loop);
    int64_t turns = extent(loop);
    if (ShapedType::isDynamic(turns))
      return false;
    depth = llvm::SaturatingMultiply<uint64_t>(depth, turns);
    steps = llvm::SaturatingMultiply<uint64_t>(steps, turns);
  }
  constexpr int64_t mostDepth = 1 << 20;
  return depth <= mostDepth;
}

/// A loop of the sum that goes along the rows of an image as `row` does.
std::optional<unsigned> NarrowPlanner::findTap() {
  constexpr int64_t mostTaps = 9; // all in one step
  if (!plan.row)
    return std::nullopt;
  auto isAlongRow = [&](unsigned loop) {
    return llvm::all_of(accesses, [&](const Access &access) {
      return access.operand != left ||
             llvm::all_of(access.position, [&](AffineExpr expr) {
               return (!expr.isFunctionOfDim(loop) &&
                       !expr.isFunctionOfDim(*plan.row)) ||
                      (laneStep(expr, loop) == 1 &&
                       laneStep(expr, *plan.row) == 1);
             });
    });
  };
  for (unsigned loop : plan.sums)
    if (extent(loop) <= mostTaps && mapOf(left).isFunctionOfDim(loop) &&
        isAlongRow(loop))
      return loop;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Whether it pays
//===----------------------------------------------------------------------===//

/// Whether what is multiplied with so many columns stays in the first cache.
bool NarrowPlanner::staysNear(int64_t columns) {
  constexpr int64_t nearBytes = 36 << 10;
  unsigned bits = getElementTypeOrSelf(right->get()).getIntOrFloatBitWidth();
  return depth * columns * bits / 8 <= nearBytes;
}

/// Issue slots, of which a cycle has two. In each step an FMA for each sum, or
/// a load for each row and column, of which those from the second cache take
/// longer, or what hides the latency of an FMA; loads count a little even where
/// they hide (TileSizes.cpp). Then two shuffles and an addition where two
/// vectors become one, a shuffle less where one is alone.
int64_t NarrowPlanner::slotsOfTile(Tile tile, bool isNear) {
  constexpr int64_t sumsInFlight = 8, loop = 2, pair = 3, alone = 2, end = 24;
  constexpr int64_t farSlots = 3;
  int64_t vectors = tile.columns / plan.across, taps = tapsOfStep();
  int64_t sums = tile.rows * vectors;
  int64_t loads =
      tile.rows + taps - 1 + taps * vectors * (isNear ? 1 : farSlots);
  int64_t ofStep =
      std::max(taps * std::max(sums, sumsInFlight), loads) + loads / 4 + loop;
  if (plan.across > 1) {
    int64_t slots = depth / plan.along() * ofStep;
    for (unsigned left = plan.along(); left > 1; left /= 2) {
      vectors = llvm::divideCeil(vectors, 2);
      slots += tile.rows * vectors * pair;
    }
    return slots + tile.rows * 2 + end;
  }
  int64_t slots = steps / taps * ofStep;
  int64_t width = llvm::PowerOf2Ceil(tile.columns);
  int64_t atOnce = plan.lanes / width;
  for (int64_t row = 0; row < tile.rows; row += atOnce) {
    // First rows meet, then columns.
    int64_t ofRows = std::min(atOnce, tile.rows - row);
    int64_t ofColumns = tile.columns;
    for (int64_t half = plan.lanes / 2; half > 0; half /= 2) {
      bool rowsMeet = half >= width;
      int64_t &ways = rowsMeet ? ofRows : ofColumns;
      int64_t kept = std::min(ways, rowsMeet ? half / width : half);
      int64_t pairs = ways - kept;
      slots += (rowsMeet ? tile.columns : 1) *
               (pairs * pair + (kept - pairs) * alone);
      ways = kept;
    }
  }
  return slots + tile.rows * 2 + end;
}

/// All columns of `rows` rows.
double NarrowPlanner::slotsOf(int64_t rows, Tile tile) {
  auto column = [&](int64_t columns) {
    if (columns == 0)
      return 0.0;
    // One tile of rows reads everything once.
    bool isNear = rows > tile.rows && staysNear(columns);
    int64_t tiles = rows / tile.rows, rest = rows % tile.rows;
    double slots =
        double(tiles) * double(slotsOfTile({tile.rows, columns}, isNear));
    return rest ? slots + double(slotsOfTile({rest, columns}, isNear)) : slots;
  };
  int64_t columns = extent(plan.column), blocks = columns / tile.columns;
  return double(blocks) * column(tile.columns) + column(columns % tile.columns);
}

/// What others take for the same, whose vectors are along the columns, or along
/// the sum of one element.
double NarrowPlanner::slotsOfRegisterTiles(std::optional<int64_t> rows) {
  constexpr int64_t manyRows = 64, ofOneStep = 4, ofOneElement = 40;
  int64_t columns = extent(plan.column);
  int64_t count = rows.value_or(manyRows);
  bool alongColumns =
      plan.packed || llvm::all_of(accesses, [&](const Access &access) {
        return laneAccess(cast<ShapedType>(access.tensor.getType()),
                          access.position, plan.column) != LaneAccess::Gather;
      });
  constexpr int64_t rowsOfPanel = 8; // Classifier::pickPanel
  if (!alongColumns && count < rowsOfPanel)
    return double(count) * double(columns) *
           double(steps * ofOneStep + ofOneElement);
  int64_t lanes = std::min<int64_t>(plan.lanes, llvm::PowerOf2Ceil(columns));
  int64_t vectors = llvm::divideCeil(columns, lanes);
  constexpr int64_t mostVectors = 8, mostRows = 16;
  VectorUnit plain = {unit.bits, unit.registers};
  TileSize size = productTile(rows, vectors, {mostRows, mostVectors}, plain);
  double slots = double(productCost(count, vectors, size));
  if (!rows)
    slots += 4 * double(productCost(1, vectors, size));
  // A panel of columns is filled square by square, or element by element.
  if (!alongColumns)
    slots += double(columns) * (columns % lanes == 0 ? .5 : 3);
  return slots * double(depth);
}

/// Whether vectors may have `across` columns, with the elements of the sum that
/// fill them: weights are packed so, in whole blocks. Where half a vector takes
/// half the time, half empty ones are no loss.
bool NarrowPlanner::canLieAcross(unsigned across) {
  constexpr unsigned fewestLanes = 8;
  constexpr int64_t fewestRows = 4;
  unsigned along = plan.lanes / across;
  Type element = getElementTypeOrSelf(root->getResult(0));
  bool isAlone = llvm::all_of(root.getDpsInputs(), [&](Value input) {
    return getElementTypeOrSelf(input) == element;
  });
  constexpr int64_t mostCopied = 1 << 14;
  if (plan.copied &&
      (depth > mostCopied || depth * extent(plan.column) > mostCopied))
    return false;
  if (!isAlone || !plan.packed || !plan.row || unit.halfUnits ||
      plan.lanes < fewestLanes || extent(plan.column) % across != 0 ||
      extent(plan.lane) % along != 0 || extent(*plan.row) < fewestRows)
    return false;
  // Blocks leave the order of the other dimensions as it is.
  ArrayRef<AffineExpr> map = mapOf(right).getResults();
  for (AffineExpr expr : llvm::reverse(map))
    if (expr != getAffineDimExpr(plan.lane, root.getContext()))
      return expr == getAffineDimExpr(plan.column, root.getContext());
  return false;
}

/// Whether what is summed up of a row follows that of the row before it.
bool NarrowPlanner::isRunOfRows() {
  const Access *access = llvm::find_if(
      accesses, [&](const Access &access) { return access.operand == left; });
  ArrayRef<AffineExpr> position = access->position;
  ArrayRef<int64_t> shape = cast<ShapedType>(left->get().getType()).getShape();
  MLIRContext *context = root.getContext();
  return plan.sums.empty() && shape.size() > 1 &&
         llvm::none_of(shape.drop_front(), ShapedType::isDynamic) &&
         position.back() == getAffineDimExpr(plan.lane, context) &&
         position.drop_back().back() == getAffineDimExpr(*plan.row, context) &&
         shape.back() == extent(plan.lane);
}

/// The tile that costs least, if that is less than what others take. Rows of
/// unknown number are many, but often there is one.
bool NarrowPlanner::pickSize() {
  constexpr int64_t manyRows = 64, mostBytes = 256 << 10;
  int64_t columns = extent(plan.column);
  std::optional<int64_t> rows = 1;
  if (plan.row)
    rows = extent(*plan.row);
  if (rows && ShapedType::isDynamic(*rows))
    rows.reset();
  // What is read again for each row should be in a cache that is near.
  unsigned bits = getElementTypeOrSelf(right->get()).getIntOrFloatBitWidth();
  if (llvm::SaturatingMultiply<uint64_t>(depth, columns) * bits / 8 > mostBytes)
    return false;

  // Sums, what stays in registers beside them, and what comes by. With taps
  // larger tiles load little less, and of more columns loads hide.
  constexpr int64_t mostSumsOfTaps = 8, mostColumnsOfTaps = 2;
  if (columns <= mostColumnsOfTaps)
    plan.tap = findTap();
  auto fits = [&](Tile tile) {
    int64_t vectors = tile.columns / plan.across, sums = tile.rows * vectors;
    int64_t stay =
        plan.tap ? vectors * tapsOfStep() : std::min(tile.rows, vectors);
    return sums + stay + 1 <= int64_t(unit.registers) &&
           (!plan.tap || sums <= mostSumsOfTaps);
  };
  constexpr int64_t cacheBytes = 1 << 20;
  bool isFar = isDirect(left) && bytesOf(left->get()) > cacheBytes;
  double best = 0;
  unsigned across = 1;
  auto tryWidth = [&](int64_t width) {
    for (int64_t high = 1; high <= rows.value_or(high) && fits({high, width});
         ++high) {
      Tile tile = {high, width};
      double slots = rows ? slotsOf(*rows, tile)
                          : slotsOf(manyRows, tile) + 4 * slotsOf(1, tile);
      // What ends so many more tiles takes is not known so well. Rows that come
      // from far come once where a tile has all columns.
      bool isOther = plan.across > 1 && across == 1;
      if (best == 0 || slots < (isOther && !isFar ? .95 : .99) * best) {
        best = slots;
        across = plan.across;
        plan.rows = high;
        plan.columns = width;
      }
    }
  };
  // What is copied in each call is little where it lies across.
  for (int64_t width = plan.copied ? 0 : std::min<int64_t>(columns, plan.lanes);
       width > 0; --width) {
    // Of blocks of about one size.
    auto blocks = int64_t(llvm::divideCeil(columns, width));
    if (int64_t(llvm::divideCeil(columns, blocks)) == width)
      tryWidth(width);
  }
  for (unsigned along : {2, 4}) {
    plan.across = plan.lanes / along;
    if (plan.across != 0 && canLieAcross(plan.across))
      tryWidth(columns);
  }
  plan.across = across;
  llvm::erase_if(plan.sums, [&](unsigned loop) { return loop == plan.tap; });
  // Slots are those of the rows of one turn of the loops around them.
  constexpr double slotsOfCopy = 8; // of an element, in some calls
  double turns = 1;
  for (unsigned loop : plan.outer)
    turns *= double(std::max<int64_t>(extent(loop), 1));
  if (plan.copied && best != 0)
    best += slotsOfCopy * double(depth) * double(columns) / turns;
  // What decides is the same for any code that is wanted; how large tiles are
  // changes no sum.
  // For a little work the last sums of lanes, which wait for each other, count.
  constexpr double gain = .9, lastSums = 150;
  if (best == 0 || best + lastSums >= gain * slotsOfRegisterTiles(rows))
    return false;
  constexpr int64_t littleSums = 16;
  plan.rowsOutside = staysNear(columns);
  if (plan.row && isFar && (plan.across == 1 || isRunOfRows()))
    plan.far = left;
  if (unit.littleCode)
    plan.rows = std::clamp<int64_t>(littleSums / plan.columns, 1, plan.rows);
  return true;
}

std::optional<NarrowPlan> NarrowPlanner::run() {
  if (!isSumOfProducts())
    return std::nullopt;
  // The rows of a window with one output would be taken for its columns.
  for (bool ofOneColumn : {false, true}) {
    plan = {};
    steps = depth = 1;
    if (findFactors(ofOneColumn) && pickLane())
      return pickSize() ? std::optional(plan) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<NarrowPlan> planNarrow(Kernel &kernel, linalg::GenericOp root,
                                     const VectorUnit &unit) {
  return NarrowPlanner(kernel, root, unit).run();
}

} // namespace keratin
