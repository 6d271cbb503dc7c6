//===- PickPrefetch.cpp - what a tile asks for ----------------------------===//
//
// What no cache near holds, and what nothing fetches by itself, is asked for
// while something else is computed. How is in TilePrefetch.cpp.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace keratin {

/// Where `op` is when its result is at `position`.
static Position loopsAt(linalg::GenericOp op, OpResult result,
                        const Position &position) {
  Position loops(op.getNumLoops());
  AffineMap map = op.getIndexingMapMatchingResult(result);
  for (auto [expr, value] : llvm::zip_equal(map.getResults(), position))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = value;
  return loops;
}

SmallVector<Access> readWithSums(Kernel &kernel, linalg::GenericOp root) {
  SmallVector<Access> accesses;
  for (auto op : kernel.from().getOps<linalg::GenericOp>()) {
    if (op == root || op.getNumReductionLoops() != 0 ||
        !dependsOn(op->getResult(0), root))
      continue;
    std::optional<Position> position = positionOf(op->getResult(0), root);
    if (!position)
      continue;
    Position loops = loopsAt(op, op->getResult(0), *position);
    if (!llvm::all_of(loops, [](AffineExpr loop) { return bool(loop); }))
      continue;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Access access = {operand, operand->get(), {}, /*direct=*/false};
      auto type = dyn_cast<RankedTensorType>(access.tensor.getType());
      if (!type || !kernel.memrefOf(access.tensor) ||
          !type.getElementType().isIntOrFloat())
        continue;
      AffineMap map = op.getMatchingIndexingMap(operand);
      for (AffineExpr expr : map.getResults())
        access.position.push_back(canonical(expr.replaceDims(loops)));
      accesses.push_back(access);
    }
  }
  return accesses;
}

/// Weights that no cache near holds are asked for one block ahead, evenly over
/// the tiles of a block: the loads of a tile need the same buffers.
void Classifier::pickPrefetch() {
  constexpr int64_t leastBytes = 128 << 10, mostBytes = 320 << 10;
  int64_t block = int64_t(tiling.size.vectors) * tiling.lanes;
  bool hasAll = !tiling.panel || (tiling.packsAll && !tiling.inBlocks());
  if (!tiling.blocked || !(hasAll || tiling.widened) || !tiling.row ||
      extent(tiling.lane) <= block)
    return;
  auto type = cast<ShapedType>(tiling.blocked->get().getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t inBlock = block * bytes;
  for (unsigned loop : tiling.reductions)
    if (blockedDependsOn(loop))
      inBlock *= turnsInBlock(loop);
  // What was packed just now is in the second cache where that has room for it.
  int64_t least = tiling.packsAll ? unit.secondCache() / 4 * 3 : leastBytes;
  if (type.getNumElements() * bytes < least || inBlock > mostBytes)
    return;
  int64_t tiles = 1;
  for (const Tiling::Level &level : llvm::reverse(tiling.levels)) {
    if (level.kind == Tiling::Kind::Columns)
      break;
    tiles *= tilesOf(level);
  }
  tiling.tilesOfPrefetch = tiles;
}

/// Rows that the second cache cannot hold are used once and gone. What fetches
/// ahead by itself loses track of as many runs as a tile has rows. Of short
/// rows each tile waits for the first lines, wherever they come from.
void Classifier::pickRowsAhead() {
  constexpr int64_t cacheBytes = 1 << 20, firstCacheBytes = 64 << 10;
  constexpr int64_t fewSteps = 64;
  if (!tiling.row || tiling.outerRow || !tiling.taps.empty() ||
      tiling.reducesLanes || tiling.inBlocks() || tiling.reductions.empty())
    return;
  int64_t steps = 1;
  for (unsigned loop : tiling.reductions)
    steps = llvm::SaturatingMultiply<uint64_t>(
        steps, extent(loop).value_or(fewSteps + 1));
  tiling.rowsAreShort = unit.asksNextRows && steps <= fewSteps;
  int64_t leastBytes = tiling.rowsAreShort ? firstCacheBytes : cacheBytes;
  for (const Access &access : accesses) {
    Value memref = kernel.memrefOf(access.tensor);
    if (!memref || access.dependsOn(tiling.lane) ||
        !access.dependsOn(*tiling.row))
      continue;
    auto type = cast<MemRefType>(memref.getType());
    ArrayRef<int64_t> shape = type.getShape();
    // Rows, then what is reduced, each whole and in order.
    SmallVector<unsigned> wanted = {*tiling.row};
    for (unsigned loop : tiling.reductions)
      if (extent(loop) != 1)
        wanted.push_back(loop);
    size_t next = wanted.size();
    bool inOrder = type.getLayout().isIdentity();
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    for (size_t dim = shape.size(); dim-- > 0; bytes *= std::abs(shape[dim])) {
      if (ShapedType::isDynamic(shape[dim])) {
        inOrder &= dim == 0;
        break;
      }
      auto loop = dyn_cast<AffineDimExpr>(access.position[dim]);
      if (next == 0 || shape[dim] == 1)
        continue;
      --next;
      inOrder &= loop && loop.getPosition() == wanted[next] &&
                 (next == 0 || extent(loop.getPosition()) == shape[dim]);
    }
    if (inOrder && next == 0 && bytes > leastBytes)
      tiling.rowsAhead = access;
  }
}

/// Tensors that are read element by element as the sums are done, and that no
/// near cache holds.
void Classifier::pickAdded() {
  constexpr int64_t leastBytes = 256 << 10;
  if (!tiling.row || tiling.outerRow || !tiling.taps.empty() ||
      tiling.reducesLanes || tiling.inBlocks() || tiling.reductions.empty())
    return;
  for (const Access &access : readWithSums(kernel, root))
    if (access.dependsOn(*tiling.row) &&
        along(access, tiling.lane) == LaneAccess::Contiguous &&
        bytesOf(access.tensor) >= leastBytes)
      tiling.added.push_back(access);
}

/// Both factors of the gradient of a kernel, which is a sum over pixels: a tile
/// reads a line or two of each of them.
void Classifier::pickFar() {
  constexpr int64_t leastStride = 256, leastBytes = 64 << 10;
  if (!tiling.row || tiling.outerRow || !tiling.taps.empty() ||
      tiling.reducesLanes || tiling.reductions.empty())
    return;
  unsigned loop = tiling.reductions.back();
  for (const Access &access : accesses) {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    if (access.operand == tiling.blocked || !kernel.memrefOf(access.tensor) ||
        !type.getElementType().isIntOrFloat())
      continue;
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    bool isNear = false;
    for (unsigned way : {tiling.lane, *tiling.row})
      isNear |=
          access.dependsOn(way) && along(access, way) == LaneAccess::Contiguous;
    int64_t stride = 0, apart = bytes;
    for (int64_t dim = type.getRank(); dim-- > 0;) {
      std::optional<int64_t> step = laneStep(access.position[dim], loop);
      if (!step || (type.isDynamicDim(dim) && dim != 0)) {
        stride = 0;
        break;
      }
      stride += *step * apart;
      if (dim != 0) // the first may be open
        apart *= type.getDimSize(dim);
      bytes *= type.isDynamicDim(dim) ? 1 : type.getDimSize(dim);
    }
    if (isNear && stride >= leastStride && bytes >= leastBytes)
      tiling.far.push_back(access);
  }
}

/// How many elements a block of the reduction has of what `access` reads, where
/// those are one run of memory, and the next block is the run behind it.
std::optional<int64_t> Classifier::elementsOfBlock(const Access &access) {
  unsigned blocked = tiling.outerReductions - (tiling.blockStep == 0 ? 1 : 0);
  unsigned loop = tiling.reductions[blocked];
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t stride = 1;
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    AffineExpr expr = access.position[dim];
    if (expr.isFunctionOfDim(loop)) {
      int64_t step = laneStep(expr, loop).value_or(0);
      return step > 0 ? std::optional(step * stride *
                                      std::max<int64_t>(tiling.blockStep, 1))
                      : std::nullopt;
    }
    int64_t range = 1;
    for (unsigned inner = 0; inner < root.getNumLoops(); ++inner)
      if (expr.isFunctionOfDim(inner))
        range += std::abs(laneStep(expr, inner).value_or(0)) *
                 (extent(inner).value_or(1) - 1);
    bool isOutside = llvm::any_of(
        ArrayRef(tiling.reductions).take_front(blocked),
        [&](unsigned outer) { return expr.isFunctionOfDim(outer); });
    if (type.isDynamicDim(dim) || isOutside ||
        2 * range < type.getDimSize(dim)) // most of it is read by nobody
      return std::nullopt;
    stride *= type.getDimSize(dim);
  }
  return std::nullopt;
}

/// Factors that tiles read in pieces, whose blocks come from beyond the second
/// cache and fit in it.
void Classifier::pickNextBlocks() {
  constexpr int64_t line = 64, leastBytes = 512 << 10, mostBytes = 512 << 10;
  if (!tiling.inBlocks() || !tiling.row || tiling.outerRow ||
      !tiling.taps.empty() || tiling.reducesLanes || tiling.widened ||
      tiling.packsAll)
    return;
  int64_t tiles = 1, steps = 1;
  for (const Tiling::Level &level : tiling.levels) {
    if (level.kind == Tiling::Kind::Blocks)
      continue;
    std::optional<int64_t> turns = extent(level.loop);
    if (!turns)
      return;
    int64_t step = 1;
    if (level.kind == Tiling::Kind::Columns)
      step = int64_t(tiling.size.vectors) * tiling.lanes;
    else if (level.kind == Tiling::Kind::Rows)
      step = tiling.size.rows;
    tiles *= llvm::divideCeil(*turns, step);
  }
  for (unsigned loop : tiling.reductions)
    steps *= turnsInBlock(loop);
  for (const Access &access : accesses) {
    bool isFar = llvm::any_of(tiling.far, [&](const Access &far) {
      return far.tensor == access.tensor;
    });
    auto memref = dyn_cast_or_null<TypedValue<MemRefType>>(
        kernel.memrefOf(access.tensor));
    if (!memref || !memref.getType().getLayout().isIdentity() ||
        !memref.getType().getElementType().isIntOrFloat() ||
        !(access.operand == tiling.blocked ? tiling.panel : isFar))
      continue;
    int64_t bytes =
        llvm::divideCeil(memref.getType().getElementTypeBitWidth(), 8);
    std::optional<int64_t> elements = elementsOfBlock(access);
    if (!elements || *elements * bytes > mostBytes ||
        bytesOf(access.tensor) < leastBytes)
      continue;
    int64_t ofStep = llvm::divideCeil(*elements, tiles * steps);
    ofStep = std::min(ofStep, line / bytes);
    tiling.nextBlocks.push_back(
        {access, ofStep, int64_t(llvm::divideCeil(*elements, ofStep * steps))});
  }
}

/// A panel is filled row by row from memory, with some columns of each: what
/// fetches ahead by itself knows nothing of the next row. Where the operand
/// comes from beyond the second cache, tiles ask for the next columns of it
/// while they multiply these.
void Classifier::pickNextPanel() {
  constexpr int64_t leastBytes = 1 << 20, fewestTiles = 4;
  constexpr int64_t ways = 16, wayBytes = 128 << 10;
  if (!tiling.panel || tiling.widened || tiling.packsAll || !tiling.row ||
      tiling.outerRow || !tiling.taps.empty() || tiling.reductions.size() != 1)
    return;
  unsigned loop = tiling.reductions[0];
  const Access *access = llvm::find_if(accesses, [&](const Access &access) {
    return access.operand == tiling.blocked;
  });
  bool isAsked =
      llvm::any_of(tiling.nextBlocks, [&](const Tiling::NextBlock &next) {
        return next.access.operand == tiling.blocked;
      });
  if (isAsked || !kernel.memrefOf(access->tensor) ||
      along(*access, tiling.lane) != LaneAccess::Contiguous ||
      !access->dependsOn(loop) || bytesOf(access->tensor) < leastBytes ||
      !(extent(tiling.lane) > int64_t(tiling.size.vectors) * tiling.lanes) ||
      !extent(loop))
    return;
  int64_t tiles = 1;
  for (const Tiling::Level &level : llvm::reverse(tiling.levels)) {
    if (level.kind == Tiling::Kind::Columns)
      break;
    tiles = llvm::SaturatingMultiply<uint64_t>(tiles, tilesOf(level));
  }
  // All of it is to be in the second cache together.
  int64_t depth = turnsInBlock(loop), stride = bytesApart(*access, loop);
  int64_t rowsHeld = ways * (wayBytes / std::gcd(stride, wayBytes));
  if (tiles >= fewestTiles && tiles <= INT32_MAX && depth <= rowsHeld &&
      int64_t(llvm::divideCeil(depth, tiles)) * 2 <= depth)
    tiling.tilesOfPanel = tiles;
}

/// Weights that come from memory and meet few rows, which one run of memory
/// brings too slowly. One tile of rows reads each block once: it reads some of
/// them side by side, a line or more of each in a step, or asks for what is
/// near. More tiles ask for the next block. Where there may be one row or more,
/// the sums of one block would be too few for the latency of an FMA, however
/// small the weights are.
void Classifier::pickRuns() {
  constexpr int64_t leastBytes = 2 << 20, nearBytes = 256 << 10;
  constexpr int64_t line = 64;
  if (!tiling.blocked || tiling.panel || !tiling.taps.empty())
    return;
  // Shorter vectors get their runs as soon as a core can read: of Zen 3, four
  // runs have 18 GB/s so and 15 where they are asked for.
  constexpr unsigned longVector = 512;
  tiling.asksAhead = unit.farWeights() && unit.bits >= longVector;
  int64_t all = bytesOf(tiling.blocked->get());
  int64_t rows = 1;
  for (const Tiling::Level &level : tiling.levels)
    if (level.kind != Tiling::Kind::Columns && level.loop != tiling.row)
      rows *= extent(level.loop).value_or(rowsOfRuns + 1);
  if (!llvm::all_of(tiling.reductions,
                    [&](unsigned loop) { return blockedDependsOn(loop); }))
    return;
  bool wholeLines = tiling.size.vectors % vectorsOfStream() == 0;
  if (tiling.row && !extent(*tiling.row)) {
    if (rows != 1)
      return;
    tiling.mayHaveFewRows = all >= leastBytes;
    unsigned streams = unit.registers / 2 / tiling.size.vectors;
    bool isOneBlock =
        extent(tiling.lane) <= int64_t(tiling.lanes) * tiling.size.vectors;
    if (!isOneBlock && wholeLines && streams >= fewestStreams)
      tiling.streamsOfOneRow = streams;
    return;
  }
  if (tiling.inBlocks() || all < nearBytes)
    return;
  rows *= tiling.row ? *extent(*tiling.row) : 1;
  int64_t bytes = int64_t(tiling.size.vectors) * tiling.lanes * bytesInBlock();
  for (unsigned loop : tiling.reductions)
    bytes *= extent(loop).value_or(0);
  if (rows <= int64_t(tiling.size.rows)) {
    auto streams = unsigned(tiling.size.vectors / vectorsOfStream());
    if (unit.oneRun && all >= unit.secondCache() / 2) {
      // From farther it comes later where it is asked for.
      tiling.asksFirstCache = unit.nearWeights();
      tiling.tilesOfPrefetch = 0;
    } else if (wholeLines && streams >= fewestStreams) {
      tiling.streams = streams;
      tiling.tilesOfPrefetch = 0;
    } else if (all >= leastBytes) {
      tiling.runs = runsAtOnce;
      tiling.tilesOfPrefetch = 0;
    }
  } else if (all >= leastBytes && rows <= rowsOfRuns &&
             tiling.tilesOfPrefetch != 0 && bytes % (runsAtOnce * line) == 0) {
    tiling.runs = runsAtOnce;
  }
}

} // namespace keratin
