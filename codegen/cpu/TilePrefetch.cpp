//===- TilePrefetch.cpp - asking for what a tile will read ----------------===//
//
// What is added to the sums of a tile, as the other branch of a residual block,
// is read once, when the sums are done; then all of the tile waits for it. The
// product is long enough to ask for it ahead, a row every few steps: the loads
// of the product need the same buffers.
//
// What is far from step to step is in no run that is fetched ahead by itself.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

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

/// Tensors that are read element by element as the sums are done, and that no
/// near cache holds.
void Classifier::pickAdded() {
  constexpr int64_t leastBytes = 256 << 10;
  if (!tiling.row || tiling.outerRow || !tiling.taps.empty() ||
      tiling.reducesLanes || tiling.inBlocks() || tiling.reductions.empty())
    return;
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
      int64_t elements = 1;
      for (int64_t size : type.getShape())
        elements *= ShapedType::isDynamic(size) ? 1 : size;
      if (access.dependsOn(*tiling.row) &&
          along(access, tiling.lane) == LaneAccess::Contiguous &&
          elements * type.getElementTypeBitWidth() / 8 >= leastBytes)
        tiling.added.push_back(access);
    }
  }
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

/// Asks for what a later step reads. Behind the end of the innermost loop this
/// is the next turn of the loop around it, where those are neighbours.
void TileEmitter::prefetchFar() {
  constexpr int64_t line = 64, stepsAhead = 16;
  unsigned loop = tiling.reductions.back();
  AffineExpr step = getAffineDimExpr(loop, b.getContext());
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (const Access &access : tiling.far) {
    int64_t bytes = llvm::divideCeil(
        getElementTypeOrSelf(access.tensor.getType()).getIntOrFloatBitWidth(),
        8);
    bool alongLane = access.dependsOn(tiling.lane);
    SmallVector<std::pair<unsigned, unsigned>> places; // rows and columns
    for (unsigned column = 0; alongLane && column < columns.size(); ++column)
      if (columns[column].offset * bytes % line == 0)
        places.emplace_back(0, column);
    if (!alongLane)
      places = {{0, 0}, {rows() - 1, 0}};
    for (auto [row, column] : places) {
      Position point = pointOf(row, column, taps);
      Sums place;
      for (AffineExpr expr : atPoint(access.position, point))
        place.push_back(
            reader.at(canonical(expr.replace(step, step + stepsAhead))));
      memref::PrefetchOp::create(b, loc, kernel.memrefOf(access.tensor), place,
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
  }
}

/// Asks for a row of what is added to this tile. The innermost reduction says
/// which: a row takes as many of its steps as there are for each.
void TileEmitter::prefetchAdded() {
  constexpr int64_t line = 64, mostSteps = 8;
  unsigned loop = tiling.reductions.back();
  int64_t steps = staticLoopExtent(root, loop);
  if (ShapedType::isDynamic(steps) || steps < int64_t(rows()))
    return;
  int64_t perRow = llvm::bit_floor(uint64_t(steps / rows()));
  perRow = std::min(perRow, mostSteps);
  Value step = reader.at(getAffineDimExpr(loop, b.getContext()));
  Value row =
      arith::ShRUIOp::create(b, loc, step, kernel.index(llvm::Log2_64(perRow)));
  row = arith::MinUIOp::create(b, loc, row, kernel.index(rows() - 1));
  // A coordinate of its own, which is no loop of the root.
  unsigned down = root.getNumLoops();
  LaneReader::Scope scope(reader);
  reader.bind(down, row);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (const Access &access : tiling.added) {
    int64_t bytes = llvm::divideCeil(
        getElementTypeOrSelf(access.tensor.getType()).getIntOrFloatBitWidth(),
        8);
    for (unsigned column = 0; column < columns.size(); ++column) {
      if (columns[column].offset * bytes % line != 0)
        continue;
      Position point = pointOf(0, column, taps);
      point[*tiling.row] =
          point[*tiling.row] + getAffineDimExpr(down, b.getContext());
      Sums place;
      for (AffineExpr expr : atPoint(access.position, point))
        place.push_back(reader.at(expr));
      memref::PrefetchOp::create(b, loc, kernel.memrefOf(access.tensor), place,
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
  }
}

} // namespace keratin
