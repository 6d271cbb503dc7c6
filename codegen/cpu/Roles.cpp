//===- Roles.cpp - what the loops of a root are for -----------------------===//
#include "codegen/cpu/Classifier.h"

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

namespace {
/// The tensors that computing an operand of a root reads, and where. Each
/// tensor is looked at once for each place: the ways to it may be very many.
class AccessCollector {
public:
  AccessCollector(Kernel &kernel, OpOperand &ofRoot,
                  SmallVectorImpl<Access> &accesses)
      : kernel(kernel), ofRoot(ofRoot), accesses(accesses) {}

  void collect(OpOperand &operand, ArrayRef<AffineExpr> dims) {
    Value tensor = operand.get();
    auto op = cast<linalg::GenericOp>(operand.getOwner());
    if (!isa<TensorType>(tensor.getType()) ||
        op.getMatchingBlockArgument(&operand).use_empty())
      return;
    Position position = compose(op.getMatchingIndexingMap(&operand), dims);
    SmallVectorImpl<Position> &known = seen[tensor];
    if (llvm::is_contained(known, position))
      return;
    known.push_back(position);
    if (kernel.memrefOf(tensor) || tensor.getDefiningOp<tensor::PadOp>()) {
      accesses.push_back(
          {&ofRoot, tensor, position, /*direct=*/&operand == &ofRoot});
      return;
    }
    auto producer = tensor.getDefiningOp<linalg::GenericOp>();
    if (!producer)
      return;
    AffineMap map =
        producer.getIndexingMapMatchingResult(cast<OpResult>(tensor));
    Position inner = loopsAt(map, position);
    for (OpOperand &next : producer->getOpOperands())
      collect(next, inner);
  }

private:
  Kernel &kernel;
  OpOperand &ofRoot;
  SmallVectorImpl<Access> &accesses;
  llvm::DenseMap<Value, SmallVector<Position, 1>> seen;
};
} // namespace

SmallVector<Access> accessesOf(Kernel &kernel, linalg::GenericOp root) {
  SmallVector<Access> accesses;
  for (OpOperand *operand : root.getDpsInputOperands())
    AccessCollector(kernel, *operand, accesses)
        .collect(*operand, identity(root));
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
  // Each value once, whatever the number of ways that lead to it.
  llvm::SmallSetVector<Value, 8> tensors;
  tensors.insert(tensor);
  for (unsigned i = 0; i < tensors.size(); ++i) {
    see(getElementTypeOrSelf(tensors[i]));
    auto op = tensors[i].getDefiningOp<linalg::GenericOp>();
    if (!op)
      continue;
    for (Operation &inner : *op.getBody())
      for (Type type : inner.getResultTypes())
        see(type);
    for (OpOperand &operand : op->getOpOperands())
      if (!op.getMatchingBlockArgument(&operand).use_empty())
        tensors.insert(operand.get());
  }
  return widest;
}

unsigned lanesOf(Value tensor, const VectorUnit &unit) {
  return std::max(2u, unit.bits / widestOf(tensor));
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

int64_t bytesApart(const Access &access, unsigned loop) {
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

bool hasFewSteps(linalg::GenericOp root) {
  constexpr int64_t few = 16;
  uint64_t steps = 1;
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::reduction)
      continue;
    int64_t turns = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(turns))
      return false;
    steps = llvm::SaturatingMultiply<uint64_t>(steps, turns);
  }
  return steps < few;
}

std::optional<unsigned> Classifier::innermostOfOutput() {
  AffineMap map = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  for (AffineExpr expr : llvm::reverse(map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (extent(dim.getPosition()) != 1)
        return dim.getPosition();
  return std::nullopt;
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
  for (const Access &access : accesses)
    if (access.operand == tiling.blocked && widensBlocks(access))
      tiling.panel = tiling.widened = true;
  for (const Access &access : accesses)
    if (scalars && !tiling.blocked && paysToPack(access)) {
      tiling.blocked = access.operand;
      tiling.panel = tiling.packsAll = true;
      return true;
    }
  const Access *gathered = nullptr, *far = nullptr;
  for (const Access &access : accesses) {
    if (access.operand == tiling.blocked)
      continue;
    if (along(access, *lane) == LaneAccess::Gather)
      gathered = &access;
    else if (access.dependsOn(*lane) &&
             (stepsFar(access) || isOfGradient(access)))
      far = &access;
  }
  if (const Access *wanted = gathered ? gathered : far;
      wanted && scalars && !tiling.blocked && pickPanel(*wanted)) {
    nearPanel = !gathered && isOfGradient(*wanted);
    return true;
  }
  if (gathered && reduceLanes())
    tiling.blocked = nullptr;
  return true; // or else gathers element by element
}

/// How many vectors of weights the second cache has room for along the whole
/// reduction: with more, the sums would go to memory and back. Where that is
/// too few for a tile, as many as there may be.
int64_t Classifier::vectorsOfWholeSums() {
  constexpr int64_t fewest = 3;
  if (!tiling.blocked || (tiling.panel && !tiling.packsAll))
    return mostVectors;
  auto type = cast<ShapedType>(tiling.blocked->get().getType());
  int64_t bytes = int64_t(tiling.lanes) *
                  llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop) && blockedDependsOn(loop))
      bytes =
          llvm::SaturatingMultiply<uint64_t>(bytes, extent(loop).value_or(1));
  int64_t fitting = unit.secondCache() / 8 / std::max<int64_t>(bytes, 1);
  return fitting >= fewest ? fitting : mostVectors;
}

/// Where `root` writes its first result.
static Access resultOf(linalg::GenericOp root) {
  OpOperand *result = root.getDpsInitOperand(0);
  return {result, result->get(),
          llvm::to_vector(root.getMatchingIndexingMap(result).getResults()),
          /*direct=*/true};
}

/// The row is the loop that costs least by itself; of equals the innermost,
/// whose rows are neighbours in memory.
void Classifier::pickProductRow(std::optional<int64_t> vectors) {
  constexpr int64_t manyRows = 64;
  int64_t mostOfOneRow = mostVectors;
  mostVectors = std::min(mostVectors, vectorsOfWholeSums());
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
    if (hasFewSteps(root))
      most = std::min(most, cachedRows(bytesApart(resultOf(root), loop)));
    bool far = llvm::any_of(accesses, [&](const Access &access) {
      return access.operand != tiling.blocked && shares(access);
    });
    TileSize size = productTile(rows, vectors, {most, mostVectors}, unit, far);
    auto costPerRow = [&](int64_t count) {
      return double(productCost(count, vectors.value_or(1), size)) /
             double(count);
    };
    // Of unknown number, as samples of a batch, there may be many, but often
    // there is one: then each turn of the loops outside reads all weights.
    double perRow =
        rows ? costPerRow(*rows) : (costPerRow(manyRows) + costPerRow(1)) / 2;
    if (tiling.row && perRow > .97 * best)
      continue;
    tiling.row = loop;
    tiling.size = size;
    best = perRow;
  }
  if (tiling.row)
    return;
  // One row reads no weights again: nothing has to stay in a cache.
  if (tiling.blocked && mostVectors < fewestStreams * vectorsOfStream())
    mostVectors = mostOfOneRow;
  tiling.size = {1, widthOfOneRow(vectors)};
}

/// Vectors of a tile of one row, which reads each weight once, right into its
/// products: a last block that is not full takes the time of a full one, and of
/// weights that no near cache holds few sums keep up with the loads, of some
/// lines a step.
unsigned Classifier::widthOfOneRow(std::optional<int64_t> vectors) {
  constexpr int64_t nearBytes = 64 << 10;
  TileSize size = productTile(1, vectors, {1, mostVectors}, unit);
  if (!vectors || !tiling.blocked ||
      bytesOf(tiling.blocked->get()) <= nearBytes)
    return size.vectors;
  int64_t ofLine = vectorsOfStream();
  int64_t best = std::min(*vectors, mostVectors);
  auto filled = [&](int64_t width) { return llvm::alignTo(*vectors, width); };
  for (int64_t width = best / ofLine * ofLine; width >= fewestStreams * ofLine;
       width -= ofLine)
    if (filled(width) <= filled(best))
      best = width;
  return unsigned(best);
}

/// Vectors that fill a line of the operand in blocks.
int64_t Classifier::vectorsOfLine() {
  constexpr int64_t line = 64;
  return std::max<int64_t>(line / (int64_t(tiling.lanes) * bytesInBlock()), 1);
}

/// Vectors of a packed block that one row reads beside others: a line of it, or
/// half a line where the sums of so many whole ones have no room in registers.
int64_t Classifier::vectorsOfStream() {
  int64_t ofLine = vectorsOfLine();
  bool fits = fewestStreams * ofLine * 2 <= int64_t(unit.registers);
  return fits ? ofLine : std::max<int64_t>(ofLine / 2, 1);
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
  bool isFull = tiling.lanes == lanesOf(root->getResult(0), unit);
  tiling.fewestLanes =
      unit.halfUnits && isFull ? tiling.lanes / 2 : tiling.lanes;
  bool product = llvm::any_of(accesses, [&](const Access &access) {
    return !access.dependsOn(tiling.lane);
  });
  tiling.asksForRuns = !unit.fetchesAhead;
  tiling.storesAtOnce = unit.storesAtOnce;
  if (tiling.reducesLanes) {
    tiling.size = {1, unsigned(std::min<int64_t>(vectors.value_or(4), 4))};
  } else if (product) {
    pickProductRow(vectors);
  } else {
    tiling.size = {1, columnVectors(vectors)};
    pickWindow();
    if (!pickWindowRows())
      pickTapRows(vectors);
  }
  if (!columns && !tiling.reducesLanes)
    tiling.size.vectors = 1;
  pickReductions();
  if (keepsSums && product && !tiling.reductions.empty()) {
    if (tiling.row)
      blockReductions();
    else
      blockRows();
  }
  if (tiling.widened && !(tiling.row && tiling.taps.empty() && panelFits())) {
    tiling.panel = tiling.widened = false;
  } else if (tiling.packsAll && !tiling.row) {
    tiling.blocked = nullptr;
    tiling.panel = tiling.packsAll = false;
  } else if (tiling.panel && !tiling.packsAll && !panelFits()) {
    tiling.blocked = nullptr;
    tiling.panel = false;
  }
  orderLoops();
  pickPrefetch();
  pickRowsAhead();
  pickAdded();
  pickFar();
  pickNextBlocks();
  // A large second cache gives them soon enough.
  constexpr int64_t largeCache = 2 << 20;
  tiling.asksForSums = tiling.inBlocks() && unit.secondCache() < largeCache;
  pickNextPanel();
  pickCopied();
  pickDirection();
  pickRuns();
  pickGroups();
  tiling.shared = pickShared();
  pickSharedWith();
  return tiling;
}

std::optional<Tiling> tilingOf(Kernel &kernel, linalg::GenericOp root,
                               const VectorUnit &unit, bool keepsSums) {
  return Classifier(kernel, root, unit).run(keepsSums);
}

} // namespace keratin
