//===- Roles.cpp - what the loops of a root are for -----------------------===//
#include "codegen/cpu/Roles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

bool Access::dependsOn(unsigned loop) const {
  return llvm::any_of(
      position, [&](AffineExpr expr) { return expr.isFunctionOfDim(loop); });
}

static Position compose(AffineMap map, ArrayRef<AffineExpr> dims) {
  Position position;
  for (AffineExpr expr : map.getResults())
    position.push_back(canonical(expr.replaceDims(dims)));
  return position;
}

/// The loops of `op`; one of a single turn is at 0.
static Position identity(linalg::GenericOp op) {
  Position dims;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    dims.push_back(staticLoopExtent(op, loop) == 1
                       ? getAffineConstantExpr(0, op.getContext())
                       : getAffineDimExpr(loop, op.getContext()));
  return dims;
}

/// The loops of `op` at which its result with the map `map` is at `position`.
static Position loopsAt(AffineMap map, ArrayRef<AffineExpr> position) {
  Position dims(map.getNumDims());
  for (auto [expr, at] : llvm::zip_equal(map.getResults(), position))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      dims[dim.getPosition()] = at;
  return dims;
}

static void collect(Kernel &kernel, OpOperand &operand, OpOperand *ofRoot,
                    ArrayRef<AffineExpr> dims, bool direct,
                    SmallVectorImpl<Access> &accesses) {
  Value tensor = operand.get();
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  if (!isa<TensorType>(tensor.getType()) ||
      op.getMatchingBlockArgument(&operand).use_empty())
    return;
  Position position = compose(op.getMatchingIndexingMap(&operand), dims);
  if (kernel.memrefOf(tensor)) {
    bool known = llvm::any_of(accesses, [&](const Access &access) {
      return access.operand == ofRoot && access.tensor == tensor &&
             access.position == position;
    });
    if (!known)
      accesses.push_back({ofRoot, tensor, position, direct});
    return;
  }
  auto producer = tensor.getDefiningOp<linalg::GenericOp>();
  if (!producer)
    return;
  AffineMap map = producer.getIndexingMapMatchingResult(cast<OpResult>(tensor));
  Position inner = loopsAt(map, position);
  for (OpOperand &next : producer->getOpOperands())
    collect(kernel, next, ofRoot, inner, /*direct=*/false, accesses);
}

SmallVector<Access> accessesOf(Kernel &kernel, linalg::GenericOp root) {
  SmallVector<Access> accesses;
  for (OpOperand *operand : root.getDpsInputOperands())
    collect(kernel, *operand, operand, identity(root), /*direct=*/true,
            accesses);
  return accesses;
}

bool dependsOn(Value value, linalg::GenericOp root) {
  llvm::SmallSetVector<Operation *, 8> ops;
  auto add = [&](Value operand) {
    if (Operation *op = operand.getDefiningOp())
      ops.insert(op);
  };
  add(value);
  for (size_t next = 0; next < ops.size(); ++next) {
    if (ops[next] == root)
      return true;
    llvm::for_each(ops[next]->getOperands(), add);
  }
  return false;
}

namespace {
/// Positions of values by the ops that compute them, each found once.
class Positions {
public:
  explicit Positions(linalg::GenericOp root) : root(root) {}

  std::optional<Position> of(Value value) {
    auto [known, isNew] = positions.try_emplace(value);
    if (!isNew)
      return known->second;
    std::optional<Position> found = find(value);
    positions[value] = found;
    return found;
  }

private:
  std::optional<Position> find(Value value);
  bool meet(linalg::GenericOp op, OpOperand &operand, Position &dims);

  linalg::GenericOp root;
  llvm::DenseMap<Value, std::optional<Position>> positions;
};
} // namespace

/// Solves for the loops `dims` of `op` at which it reads `operand` where the
/// root computes it.
bool Positions::meet(linalg::GenericOp op, OpOperand &operand, Position &dims) {
  std::optional<Position> inner = of(operand.get());
  if (!inner)
    return false;
  for (auto [expr, at] : llvm::zip_equal(
           op.getMatchingIndexingMap(&operand).getResults(), *inner)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim ? expr != at
             : dims[dim.getPosition()] && dims[dim.getPosition()] != at)
      return false;
    if (dim)
      dims[dim.getPosition()] = at;
  }
  return true;
}

std::optional<Position> Positions::find(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return std::nullopt;
  AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(value));
  if (op == root)
    return compose(map, identity(root));
  Position dims(op.getNumLoops());
  for (auto [loop, expr] : llvm::enumerate(identity(op)))
    if (isa<AffineConstantExpr>(expr))
      dims[loop] = expr;
  for (OpOperand &operand : op->getOpOperands())
    if (dependsOn(operand.get(), root) && !meet(op, operand, dims))
      return std::nullopt;
  if (op.getNumReductionLoops() != 0 || llvm::is_contained(dims, AffineExpr()))
    return std::nullopt;
  return compose(map, dims);
}

std::optional<Position> positionOf(Value value, linalg::GenericOp root) {
  return Positions(root).of(value);
}

/// The most bits of a number that computing `tensor` takes.
static unsigned widestOf(Value tensor) {
  unsigned widest = 16; // narrower vectors of bytes are converted anyway
  auto see = [&](Type type) {
    if (type.isIntOrFloat())
      widest = std::max(widest, type.getIntOrFloatBitWidth());
  };
  see(getElementTypeOrSelf(tensor));
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return widest;
  for (Operation &inner : *op.getBody())
    for (Type type : inner.getResultTypes())
      see(type);
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingBlockArgument(&operand).use_empty())
      widest = std::max(widest, widestOf(operand.get()));
  return widest;
}

unsigned lanesOf(Value tensor, const VectorUnit &unit) {
  return std::max(2u, unit.bits / widestOf(tensor));
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

namespace {
class Classifier {
public:
  Classifier(Kernel &kernel, linalg::GenericOp root, const VectorUnit &unit)
      : kernel(kernel), root(root), unit(unit),
        accesses(accessesOf(kernel, root)) {}

  std::optional<Tiling> run(bool outputHoldsSums);

private:
  std::optional<unsigned> innermostOfOutput();
  bool pickLane();
  bool canPack(const Access &access, unsigned lane);
  bool canPanel(const Access &access, unsigned lane);
  bool stepsFar(const Access &access);
  bool pickPanel(const Access &access);
  bool reduceLanes();
  void pickWindow();
  void pickProductRow(std::optional<int64_t> vectors);
  std::optional<WindowWay> windowAlong(unsigned loop);
  void pickWindowRows();
  void pickTapRows(std::optional<int64_t> vectors);
  bool holdsShared();
  int64_t bytesRead(const Access &access, ArrayRef<unsigned> loops);
  int64_t bytesOfScalars(ArrayRef<unsigned> loops);
  void orderBlocked(ArrayRef<Tiling::Level> inner);
  int64_t tilesOf(const Tiling::Level &level);
  void pickPrefetch();
  void pickReductions();
  void orderLoops();
  int64_t turnsInBlock(unsigned loop);
  int64_t bytesWalked(const Access &access);
  void blockReductions();
  int64_t turnsOf(const Tiling::Level &level);

  std::optional<int64_t> extent(unsigned loop) {
    int64_t known = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(known))
      return std::nullopt;
    return known;
  }
  bool isReduction(unsigned loop) {
    return root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  }
  bool blockedDependsOn(unsigned loop) {
    return root.getMatchingIndexingMap(tiling.blocked).isFunctionOfDim(loop);
  }
  LaneAccess along(const Access &access, unsigned lane) {
    return laneAccess(cast<ShapedType>(access.tensor.getType()),
                      access.position, lane);
  }

  Kernel &kernel;
  linalg::GenericOp root;
  const VectorUnit &unit;
  SmallVector<Access> accesses;
  int64_t mostVectors = 8; ///< in a row of a tile
  bool keepsSums = false;  ///< the output can hold them
  Tiling tiling;
};
} // namespace

/// Bytes between the elements that `access` reads in turns of `loop`; 1 when
/// that is not known.
static int64_t bytesApart(const Access &access, unsigned loop) {
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8), stride = 0;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    std::optional<int64_t> step = laneStep(access.position[dim], loop);
    if (!step || (type.isDynamicDim(dim) && dim != 0))
      return 1;
    stride += *step * bytes;
    if (dim != 0) // the first may be open
      bytes *= type.getDimSize(dim);
  }
  return stride;
}

/// A panel is on the stack, which may be small where the code runs.
static constexpr int64_t panelBytes = 128 << 10;

std::optional<unsigned> Classifier::innermostOfOutput() {
  AffineMap map = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  for (AffineExpr expr : llvm::reverse(map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (extent(dim.getPosition()) != 1)
        return dim.getPosition();
  return std::nullopt;
}

/// Packing moves one dimension, so it has to be the lane alone and the others
/// plain loops that a tile has one of.
bool Classifier::canPack(const Access &access, unsigned lane) {
  auto argument = dyn_cast<BlockArgument>(access.tensor);
  if (!access.direct || !argument || !argument.hasOneUse() ||
      !kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant") ||
      !extent(lane))
    return false;
  return canPanel(access, lane);
}

bool Classifier::canPanel(const Access &access, unsigned lane) {
  llvm::SmallDenseSet<AffineExpr> seen;
  for (AffineExpr expr : access.position)
    if (!isa<AffineConstantExpr>(expr) &&
        !(isa<AffineDimExpr>(expr) && seen.insert(expr).second))
      return false;
  // Blocks stand for the tensor wherever it is read: a product of a tensor with
  // itself has none.
  bool once = llvm::count_if(accesses, [&](const Access &other) {
                return other.tensor == access.tensor;
              }) == 1;
  return once && access.direct &&
         seen.contains(getAffineDimExpr(lane, root.getContext()));
}

/// Goes along a reduction when everything is contiguous there.
bool Classifier::reduceLanes() {
  if (root.getNumResults() != 1 || !Combiner::of(root, 0))
    return false;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    if (!isReduction(loop) || extent(loop) == 1)
      continue;
    auto is = [&](LaneAccess kind) {
      return [&, kind](const Access &access) {
        return along(access, loop) == kind;
      };
    };
    if (llvm::any_of(accesses, is(LaneAccess::Contiguous)) &&
        llvm::none_of(accesses, is(LaneAccess::Gather))) {
      tiling.lane = loop;
      tiling.reducesLanes = true;
      return true;
    }
  }
  return false;
}

bool Classifier::pickLane() {
  std::optional<unsigned> lane = innermostOfOutput();
  if (!lane)
    return reduceLanes();
  tiling.lane = *lane;
  // What a product shares between its rows is wanted in blocks.
  bool scalars = llvm::any_of(
      accesses, [&](const Access &access) { return !access.dependsOn(*lane); });
  for (const Access &access : accesses)
    if (scalars && access.dependsOn(*lane) && canPack(access, *lane))
      tiling.blocked = access.operand;
  const Access *gathered = nullptr, *far = nullptr;
  for (const Access &access : accesses) {
    if (access.operand == tiling.blocked)
      continue;
    if (along(access, *lane) == LaneAccess::Gather)
      gathered = &access;
    else if (access.dependsOn(*lane) && stepsFar(access))
      far = &access;
  }
  if (const Access *wanted = gathered ? gathered : far;
      wanted && scalars && !tiling.blocked && pickPanel(*wanted))
    return true;
  if (gathered && reduceLanes())
    tiling.blocked = nullptr;
  return true; // or else gathers element by element
}

/// Whether steps of a reduction go so far in `access` that lines share ways of
/// the caches, and pages are many.
bool Classifier::stepsFar(const Access &access) {
  constexpr int64_t farBytes = 2048, manySteps = 64;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop) && extent(loop).value_or(manySteps) >= manySteps &&
        std::abs(bytesApart(access, loop)) >= farBytes)
      return true;
  return false;
}

/// Copies blocks of `access` to a panel where enough rows read it.
bool Classifier::pickPanel(const Access &access) {
  bool gathers = along(access, tiling.lane) == LaneAccess::Gather;
  int64_t fewRows = gathers ? 8 : 32;
  bool rows = false;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    rows |= !isReduction(loop) && !access.dependsOn(loop) &&
            extent(loop).value_or(fewRows) >= fewRows;
  int64_t depth = 1;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop))
      depth = extent(loop)
                  ? llvm::SaturatingMultiply<uint64_t>(depth, *extent(loop))
                  : INT32_MAX;
  // A deep sum is done in blocks, if the output can hold its sums.
  int64_t widest =
      panelBytes / std::clamp<int64_t>(depth, 1, INT32_MAX) * 8 / unit.bits;
  if (keepsSums)
    widest = std::max<int64_t>(widest, 4);
  if (!rows || widest == 0 || !canPanel(access, tiling.lane))
    return false;
  tiling.blocked = access.operand;
  tiling.panel = true;
  mostVectors = std::min(mostVectors, widest);
  return true;
}

/// Reductions that move a window over a parallel loop are its taps. A window
/// over one channel is unrolled, so that neighbours share what they read; of a
/// large one the inner taps.
void Classifier::pickWindow() {
  constexpr int64_t mostTaps = 25;
  int64_t number = 1;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    bool slides = llvm::any_of(accesses, [&](const Access &access) {
      return llvm::any_of(access.position, [&](AffineExpr expr) {
        return !isa<AffineDimExpr>(expr) && expr.isFunctionOfDim(loop);
      });
    });
    if (!slides || !isReduction(loop))
      continue;
    number = extent(loop) ? number * *extent(loop) : mostTaps + 1;
    if (number > mostTaps)
      break;
    tiling.taps.insert(tiling.taps.begin(), loop);
  }
}

/// The row is the loop that costs least by itself; of equals the innermost,
/// whose rows are neighbours in memory.
void Classifier::pickProductRow(std::optional<int64_t> vectors) {
  constexpr int64_t manyRows = 64;
  double best = 0;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    auto shares = [&](const Access &access) {
      return access.dependsOn(tiling.lane) && !access.dependsOn(loop);
    };
    auto broadcasts = [&](const Access &access) {
      return !access.dependsOn(tiling.lane) && access.dependsOn(loop);
    };
    if (loop == tiling.lane || isReduction(loop) || extent(loop) == 1 ||
        llvm::none_of(accesses, shares) || llvm::none_of(accesses, broadcasts))
      continue;
    if (tiling.panel && blockedDependsOn(loop))
      continue; // the panel is filled outside of the rows
    std::optional<int64_t> rows = extent(loop);
    int64_t most = INT64_MAX;
    for (const Access &access : accesses)
      if (broadcasts(access))
        most = std::min(most, cachedRows(bytesApart(access, loop)));
    TileSize size = productTile(rows, vectors, {most, mostVectors}, unit);
    int64_t count = rows.value_or(manyRows);
    // Rows of unknown number cost the code of a ladder as well.
    double perRow = double(productCost(count, vectors.value_or(1), size)) /
                    double(count) * (rows ? 1 : 1.1);
    if (tiling.row && perRow > .97 * best)
      continue;
    tiling.row = loop;
    tiling.size = size;
    best = perRow;
  }
  if (!tiling.row)
    tiling.size = productTile(1, vectors, {1, mostVectors}, unit);
}

/// How the window goes along `loop`; null when it does not, or when the steps
/// are not the same everywhere.
std::optional<WindowWay> Classifier::windowAlong(unsigned loop) {
  if (isReduction(loop) || extent(loop) == 1)
    return std::nullopt;
  for (const Access &access : accesses)
    for (AffineExpr expr : access.position)
      for (unsigned tap : tiling.taps)
        if (expr.isFunctionOfDim(loop) && expr.isFunctionOfDim(tap)) {
          auto step = laneStep(expr, loop), tapStep = laneStep(expr, tap);
          if (!step || !tapStep)
            return std::nullopt;
          return WindowWay{extent(loop), *step, *extent(tap), *tapStep};
        }
  return std::nullopt;
}

/// The two innermost loops that the window goes along.
void Classifier::pickWindowRows() {
  WindowWay ways[2] = {{1}, {1}};
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    std::optional<WindowWay> way = windowAlong(loop);
    if (!way || (tiling.row && !way->extent))
      continue;
    ways[tiling.row ? 0 : 1] = *way;
    (tiling.row ? tiling.outerRow : tiling.row) = loop;
    if (tiling.outerRow)
      break;
  }
  if (tiling.row)
    tiling.size = windowTile(ways[0], ways[1], unit);
  if (tiling.size.outerRows == 1)
    tiling.outerRow.reset();
}

/// A sum over all places of a window, as the gradient of the kernel of a
/// depthwise convolution: its taps are rows, so that what they share is read
/// once for all of them.
void Classifier::pickTapRows(std::optional<int64_t> vectors) {
  int64_t rows = 1, most = unit.registers / 2;
  SmallVector<unsigned> loops;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    bool slides = llvm::any_of(accesses, [&](const Access &access) {
      return llvm::any_of(access.position, [&](AffineExpr expr) {
        return !isa<AffineDimExpr>(expr) && expr.isFunctionOfDim(loop);
      });
    });
    int64_t turns = extent(loop).value_or(most + 1);
    if (slides && !isReduction(loop) && turns > 1 && rows * turns <= most &&
        loops.size() < 2) {
      loops.push_back(loop);
      rows *= turns;
    }
  }
  if (loops.empty())
    return;
  tiling.row = loops[0];
  tiling.size.rows = unsigned(*extent(loops[0]));
  if (loops.size() > 1) {
    tiling.outerRow = loops[1];
    tiling.size.outerRows = unsigned(*extent(loops[1]));
  }
  // A register for what rows share and one for what they do not.
  int64_t fitting = (int64_t(unit.registers) - 2) / (rows + 1);
  tiling.size.vectors = unsigned(std::clamp<int64_t>(
      vectors.value_or(1), 1, std::max<int64_t>(fitting, 1)));
}

/// Whether the second cache holds all of what rows share, beside what one turn
/// of the other loops reads.
bool Classifier::holdsShared() {
  constexpr int64_t most = 256 << 10;
  int64_t bytes = 0;
  for (const Access &access : accesses) {
    if (!access.dependsOn(tiling.lane) || access.dependsOn(*tiling.row))
      continue;
    auto type = cast<ShapedType>(access.tensor.getType());
    if (!type.hasStaticShape())
      return false;
    bytes += type.getNumElements() *
             int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  }
  return bytes <= most;
}

/// Turns of a loop that are taken for those of an unknown number.
static constexpr int64_t manyTurns = 64;

/// Turns of `loop`, of a reduction those in one block.
int64_t Classifier::turnsInBlock(unsigned loop) {
  auto *place = llvm::find(tiling.reductions, loop);
  size_t number = place - tiling.reductions.begin();
  if (place != tiling.reductions.end() && number < tiling.outerReductions)
    return 1;
  int64_t turns = extent(loop).value_or(manyTurns);
  if (place != tiling.reductions.end() && tiling.blockStep != 0 &&
      number == tiling.outerReductions)
    return std::min(turns, tiling.blockStep);
  return turns;
}

/// Bytes that `access` reads in all turns of `loops` and of the reductions.
int64_t Classifier::bytesRead(const Access &access, ArrayRef<unsigned> loops) {
  auto type = cast<ShapedType>(access.tensor.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (auto [expr, size] : llvm::zip_equal(access.position, type.getShape())) {
    int64_t range = 1;
    for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
      if (expr.isFunctionOfDim(loop) &&
          (isReduction(loop) || llvm::is_contained(loops, loop)))
        range += std::abs(laneStep(expr, loop).value_or(1)) *
                 (turnsInBlock(loop) - 1);
    if (!ShapedType::isDynamic(size))
      range = std::min(range, size);
    bytes =
        llvm::SaturatingMultiply<uint64_t>(bytes, std::max<int64_t>(range, 1));
  }
  return std::min<uint64_t>(bytes, INT64_MAX / 4);
}

/// The same for all that is broadcast along the lane.
int64_t Classifier::bytesOfScalars(ArrayRef<unsigned> loops) {
  int64_t bytes = 0;
  for (const Access &access : accesses)
    if (!access.dependsOn(tiling.lane))
      bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesRead(access, loops));
  return std::min<uint64_t>(bytes, INT64_MAX / 4);
}

/// Columns outside of the loops `inner`, of which the last are the rows: what
/// those read stays in the second cache from column to column. Where it is too
/// much, blocks of a loop are outside.
void Classifier::orderBlocked(ArrayRef<Tiling::Level> inner) {
  constexpr int64_t cacheBytes = 768 << 10;
  SmallVector<unsigned> loops;
  for (const Tiling::Level &level : inner)
    loops.push_back(level.loop);
  size_t first = 0; // of those that are all inside
  while (first < inner.size() &&
         bytesOfScalars(ArrayRef(loops).drop_front(first)) > cacheBytes)
    ++first;
  if (first > 0) {
    tiling.levels.append(inner.begin(), inner.begin() + first - 1);
    const Tiling::Level &cut = inner[first - 1];
    int64_t unit = cut.kind == Tiling::Kind::Rows ? tiling.size.rows : 1;
    int64_t turn = bytesOfScalars(ArrayRef(loops).drop_front(first));
    int64_t step = cacheBytes / std::max<int64_t>(turn, 1) / unit * unit;
    int64_t turns = extent(cut.loop).value_or(INT64_MAX);
    if (step >= 2 * unit && step < turns) {
      // Blocks of about one size.
      if (turns != INT64_MAX) {
        int64_t blocks = llvm::divideCeil(turns, step);
        step = llvm::alignTo(llvm::divideCeil(turns, blocks), unit);
      }
      tiling.levels.push_back({Tiling::Kind::Blocks, cut.loop, step});
      --first;
    } else if (cut.kind != Tiling::Kind::Rows) {
      tiling.levels.push_back(cut);
    } else {
      --first;
    }
  }
  tiling.levels.push_back({Tiling::Kind::Columns, tiling.lane});
  tiling.levels.append(inner.begin() + first, inner.end());
}

/// Tiles along a level inside of the columns, in one block of its loop.
int64_t Classifier::tilesOf(const Tiling::Level &level) {
  int64_t turns = extent(level.loop).value_or(manyTurns);
  for (const Tiling::Level &outer : tiling.levels)
    if (outer.kind == Tiling::Kind::Blocks && outer.loop == level.loop)
      turns = std::min(turns, outer.step);
  return level.kind == Tiling::Kind::Rows
             ? llvm::divideCeil(turns, tiling.size.rows)
             : turns;
}

/// Weights that no cache near holds are asked for one block ahead, evenly over
/// the tiles of a block: the loads of a tile need the same buffers.
void Classifier::pickPrefetch() {
  constexpr int64_t leastBytes = 128 << 10, mostBytes = 320 << 10;
  int64_t block = int64_t(tiling.size.vectors) * tiling.lanes;
  if (!tiling.blocked || tiling.panel || !tiling.row ||
      extent(tiling.lane) <= block)
    return;
  auto type = cast<ShapedType>(tiling.blocked->get().getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t inBlock = block * bytes;
  for (unsigned loop : tiling.reductions)
    if (blockedDependsOn(loop))
      inBlock *= turnsInBlock(loop);
  if (type.getNumElements() * bytes < leastBytes || inBlock > mostBytes)
    return;
  int64_t tiles = 1;
  for (const Tiling::Level &level : llvm::reverse(tiling.levels)) {
    if (level.kind == Tiling::Kind::Columns)
      break;
    tiles *= tilesOf(level);
  }
  tiling.tilesOfPrefetch = tiles;
}

/// The reductions that are loops.
void Classifier::pickReductions() {
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop) && !llvm::is_contained(tiling.taps, loop) &&
        !(tiling.reducesLanes && loop == tiling.lane))
      tiling.reductions.push_back(loop);
}

/// What rows share stays in the cache, so it is outside of them: first the
/// loops that it depends on, then the columns, then the other loops. Where all
/// columns stay in the cache, the other loops are outside: what they read is
/// read once.
void Classifier::orderLoops() {
  using Level = Tiling::Level;
  SmallVector<Level> before, after;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (isReduction(loop) || loop == tiling.lane || loop == tiling.row ||
        loop == tiling.outerRow)
      continue;
    bool outside = llvm::any_of(accesses, [&](const Access &access) {
      return tiling.row && access.dependsOn(tiling.lane) &&
             !access.dependsOn(*tiling.row) && access.dependsOn(loop);
    });
    outside |= tiling.panel && blockedDependsOn(loop);
    (outside ? before : after).push_back({Tiling::Kind::Single, loop});
  }
  Level rows = {Tiling::Kind::Rows, tiling.row.value_or(0)};
  Level columns = {Tiling::Kind::Columns, tiling.lane};
  if (tiling.row && (tiling.outerRow || !tiling.taps.empty())) {
    // Neighbouring channels are neighbours in memory.
    tiling.levels = before;
    tiling.levels.append(after);
    if (tiling.outerRow)
      tiling.levels.push_back({Tiling::Kind::Rows, *tiling.outerRow});
    tiling.levels.push_back(rows);
    tiling.levels.push_back(columns);
    return;
  }
  bool shared = llvm::any_of(accesses, [&](const Access &access) {
    return tiling.row && access.dependsOn(tiling.lane) &&
           !access.dependsOn(*tiling.row);
  });
  tiling.levels = before;
  bool inside = shared && !tiling.panel && holdsShared();
  if (shared && tiling.row && !inside) {
    after.push_back(rows);
    return orderBlocked(after);
  }
  if (inside)
    tiling.levels.append(after);
  if (shared || tiling.blocked)
    tiling.levels.push_back(columns);
  if (!inside)
    tiling.levels.append(after);
  if (tiling.row)
    tiling.levels.push_back(rows);
  if (!shared && !tiling.blocked && !tiling.reducesLanes)
    tiling.levels.push_back(columns);
}

/// Bytes of what `access` reads, or of the cache lines that hold it, while one
/// tile walks along the whole reduction.
int64_t Classifier::bytesWalked(const Access &access) {
  constexpr int64_t line = 64;
  auto type = cast<ShapedType>(access.tensor.getType());
  int64_t bytes = access.dependsOn(tiling.lane)
                      ? int64_t(tiling.size.vectors) * tiling.lanes *
                            llvm::divideCeil(type.getElementTypeBitWidth(), 8)
                      : line;
  for (unsigned loop : tiling.reductions)
    if (access.dependsOn(loop))
      bytes = llvm::SaturatingMultiply<uint64_t>(
          bytes, extent(loop).value_or(manyTurns));
  return bytes;
}

/// Where the cache does not hold what a tile reads until the next tile reads it
/// again, as in the gradient of a kernel, which is a sum over all images; and
/// where it does not hold a block of weights beside the next one.
void Classifier::blockReductions() {
  constexpr int64_t cacheBytes = 384 << 10, blockBytes = 256 << 10;
  int64_t bytes = 0, depthOfBlock = 256;
  for (const Access &access : accesses)
    bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesWalked(access));
  if (tiling.blocked) {
    auto type = cast<ShapedType>(tiling.blocked->get().getType());
    int64_t row = int64_t(tiling.size.vectors) * tiling.lanes *
                  llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    int64_t most = tiling.panel ? panelBytes : blockBytes;
    depthOfBlock = most / row;
    bytes = 0;
    for (const Access &access : accesses)
      if (access.operand == tiling.blocked)
        bytes = bytesWalked(access);
    if (bytes <= most)
      return;
  } else if (bytes <= cacheBytes) {
    return;
  }
  int64_t depth = 1, below = 1;
  unsigned inner = tiling.reductions.size();
  while (inner > 0 && depth < depthOfBlock) {
    below = depth;
    depth *= extent(tiling.reductions[--inner]).value_or(manyTurns);
  }
  tiling.outerReductions = inner;
  // Blocks of about one size.
  int64_t turns = extent(tiling.reductions[inner]).value_or(INT64_MAX / 2);
  int64_t step = std::max<int64_t>(depthOfBlock / below, 1);
  if (turns > step)
    tiling.blockStep = llvm::divideCeil(turns, llvm::divideCeil(turns, step));
}

/// Turns of the loop of a level; ShapedType::kDynamic where not known.
int64_t Classifier::turnsOf(const Tiling::Level &level) {
  std::optional<int64_t> known = extent(level.loop);
  if (!known)
    return ShapedType::kDynamic;
  bool inBlocks = llvm::any_of(tiling.levels, [&](const Tiling::Level &outer) {
    return outer.kind == Tiling::Kind::Blocks && outer.loop == level.loop;
  });
  int64_t step = level.step;
  if (inBlocks && level.kind != Tiling::Kind::Blocks)
    return 1; // blocks are shared, not what is in them
  if (level.kind == Tiling::Kind::Columns)
    step = int64_t(tiling.size.vectors) * tiling.lanes;
  else if (level.kind == Tiling::Kind::Rows)
    step = level.loop == tiling.outerRow ? tiling.size.outerRows
                                         : tiling.size.rows;
  return llvm::divideCeil(*known, step);
}

std::optional<Tiling> Classifier::run(bool outputHoldsSums) {
  keepsSums = outputHoldsSums;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (extent(loop) == 0)
      return std::nullopt;
  if (!pickLane())
    return std::nullopt;
  tiling.lanes = lanesOf(root->getResult(0), unit);
  std::optional<int64_t> columns = extent(tiling.lane), vectors;
  if (columns) {
    uint64_t fitting = tiling.reducesLanes ? llvm::bit_floor(uint64_t(*columns))
                                           : llvm::bit_ceil(uint64_t(*columns));
    tiling.lanes = std::min<uint64_t>(tiling.lanes, fitting);
    vectors = llvm::divideCeil(*columns, tiling.lanes);
  }
  bool product = llvm::any_of(accesses, [&](const Access &access) {
    return !access.dependsOn(tiling.lane);
  });
  if (tiling.reducesLanes) {
    tiling.size = {1, unsigned(std::min<int64_t>(vectors.value_or(4), 4))};
  } else if (product) {
    pickProductRow(vectors);
  } else {
    tiling.size = {1, columnVectors(vectors)};
    pickWindow();
    pickWindowRows();
    if (!tiling.row)
      pickTapRows(vectors);
  }
  if (!columns && !tiling.reducesLanes)
    tiling.size.vectors = 1;
  pickReductions();
  if (keepsSums && product && tiling.row && !tiling.reductions.empty())
    blockReductions();
  orderLoops();
  pickPrefetch();
  SmallVector<int64_t> turns;
  for (const Tiling::Level &level : tiling.levels)
    turns.push_back(turnsOf(level));
  tiling.shared = kernel.pickShared(turns);
  return tiling;
}

std::optional<Tiling> tilingOf(Kernel &kernel, linalg::GenericOp root,
                               const VectorUnit &unit, bool keepsSums) {
  return Classifier(kernel, root, unit).run(keepsSums);
}

} // namespace keratin
