//===- PickPanel.cpp - what is packed, and what is copied to panels -------===//
#include "codegen/cpu/Classifier.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Bytes of a second cache that is a small one.
static constexpr int64_t smallCache = 512 << 10;

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

/// Whether `access` is multiplied by what rows of a tile are neighbours in, and
/// goes from line to line with each step of the sum, as in the gradient of a
/// kernel. Both factors come from the second cache then, line by line, for
/// pixels share few sets of the first one: a copy of the one that all rows
/// share stays there.
bool Classifier::isOfGradient(const Access &access) {
  constexpr int64_t leastStride = 256;
  if (unit.littleCode || unit.secondCache() > smallCache || !keepsSums)
    return false;
  int64_t stride = 0; // of the innermost reduction
  bool walksAlong = false;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop))
      stride = std::abs(bytesApart(access, loop));
    else if (extent(loop) != 1)
      walksAlong |= llvm::any_of(accesses, [&](const Access &other) {
        return !other.dependsOn(tiling.lane) &&
               along(other, loop) == LaneAccess::Contiguous;
      });
  return walksAlong && stride >= leastStride;
}

/// How many vectors of columns a panel has room for, each with `depth` rows.
static int64_t vectorsInPanel(int64_t depth, unsigned bits) {
  return panelBytes / std::clamp<int64_t>(depth, 1, INT32_MAX) * 8 / bits;
}

/// Whether packed weights, `access`, of 16 bits are read by so many rows that
/// each block is better widened once, into a panel, than in each tile.
bool Classifier::widensBlocks(const Access &access) {
  constexpr int64_t manyRows = 48;
  Type element = getElementTypeOrSelf(access.tensor);
  if (!(element.isF16() || element.isBF16()) || root.getNumResults() != 1 ||
      !getElementTypeOrSelf(root.getResult(0)).isF32() || !extent(tiling.lane))
    return false;
  int64_t rows = 1, depth = 1;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (isReduction(loop))
      depth *= extent(loop).value_or(INT32_MAX);
    else if (!access.dependsOn(loop))
      rows = llvm::SaturatingMultiply<uint64_t>(rows, extent(loop).value_or(1));
  }
  int64_t widest = vectorsInPanel(depth, unit.bits);
  if (keepsSums)
    widest = std::max<int64_t>(widest, 4);
  if (rows < manyRows || widest == 0)
    return false;
  mostVectors = std::min(mostVectors, widest);
  return true;
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
  int64_t widest = vectorsInPanel(depth, unit.bits);
  if (keepsSums)
    widest = std::max<int64_t>(widest, 4);
  if (!rows || widest == 0 || !canPanel(access, tiling.lane))
    return false;
  tiling.blocked = access.operand;
  tiling.panel = true;
  mostVectors = std::min(mostVectors, widest);
  return true;
}

/// Whether `access`, which is not known ahead of time, is packed as weights
/// are, all of it before the rows begin: that takes as long as some tens of
/// rows, and then rows go through it in blocks that the second cache holds. A
/// large one has room for many rows beside a panel anyway; that of 2 MiB which
/// servers of Intel have gains by it from a factor on that it does not hold.
bool Classifier::paysToPack(const Access &access) {
  constexpr int64_t mostBytes = 16 << 20, fewestVectors = 8;
  constexpr int64_t near = 1 << 20, largeCache = 2 << 20;
  if (unit.secondCache() > smallCache && (unit.knownSecondCache < largeCache ||
                                          bytesOf(access.tensor) <= largeCache))
    return false;
  auto type = cast<ShapedType>(access.tensor.getType());
  std::optional<int64_t> columns = extent(tiling.lane);
  if (unit.littleCode || !columns || !access.dependsOn(tiling.lane) ||
      !canPanel(access, tiling.lane) || !kernel.memrefOf(access.tensor) ||
      !type.hasStaticShape() || !type.getElementType().isF32() ||
      root.getNumResults() != 1)
    return false;
  // Threads share the columns, each of which packs its own.
  if (kernel.hasParts() && *columns * 32 < fewestVectors * unit.bits)
    return false;
  int64_t rows = 1, bytes = bytesOf(access.tensor);
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (isReduction(loop) || loop == tiling.lane || extent(loop) == 1)
      continue;
    // Of a transposed factor neighbouring rows are read, not runs along them.
    if (access.dependsOn(loop) ||
        llvm::any_of(accesses, [&](const Access &other) {
          return !other.dependsOn(tiling.lane) &&
                 along(other, loop) == LaneAccess::Contiguous;
        }))
      return false;
    rows = llvm::SaturatingMultiply<uint64_t>(rows, extent(loop).value_or(1));
  }
  // What is written comes back from a cache behind the second one; and a panel
  // of one block would do nearly as well where steps are far apart.
  bool isNear = bytes <= near;
  int64_t manyRows =
      stepsFar(access) ? (isNear ? 256 : 1024) : (isNear ? 96 : 256);
  return rows >= manyRows && bytes > unit.secondCache() / 8 &&
         bytes <= mostBytes;
}

} // namespace keratin
