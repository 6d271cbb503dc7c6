//===- TileEnds.cpp - the last steps of a tile ----------------------------===//
//
// All sums of a tile are complete with its last step. Where a store takes as
// long as two products, so many of them in a row hold up the products of the
// next tile: those find no room to wait in behind stores that wait. So the last
// steps are made row by row, and each row is stored while the ones behind it
// are multiplied. Each sum has its terms in the same order as ever.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// How many of its last steps a tile makes row by row; 0 where that does not
/// pay, and where it may have fewer.
int64_t TileEmitter::stepsByRow() {
  constexpr int64_t steps = 3;        // two products or more for each store
  constexpr uint64_t mostOfNest = 64; // of more steps the last ones matter less
  auto loops = ArrayRef(tiling.reductions).drop_front(tiling.outerReductions);
  size_t stores = rows() * columns.size() * root.getNumResults();
  if (tiling.storesAtOnce == 0 || stores <= tiling.storesAtOnce ||
      rows() == 1 || loops.empty() || !tiling.taps.empty() || widens ||
      isPartOfSums)
    return 0;
  int64_t fewest = staticLoopExtent(root, loops.back());
  bool isNest = false;
  uint64_t all = 1;
  for (unsigned loop : loops) {
    int64_t turns = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(turns))
      return 0;
    isNest |= loop != loops.back() && turns != 1;
    all = llvm::SaturatingMultiply<uint64_t>(all, turns);
  }
  if (isNest && (tiling.inBlocks() || all > mostOfNest))
    return 0;
  if (isFromBlockToBlock(loops.back())) {
    int64_t rest = fewest % tiling.blockStep;
    fewest = rest != 0 ? rest : std::min(fewest, tiling.blockStep);
  }
  return fewest > steps || (fewest == steps && isNest) ? steps : 0;
}

/// The end of the innermost reduction without the steps that are made row by
/// row behind it, which this remembers.
Value TileEmitter::withoutLastSteps(Value end) {
  for (int64_t step = stepsByRow(); step > 0; --step)
    lastSteps.push_back(
        b.createOrFold<arith::SubIOp>(loc, end, kernel.index(step)));
  return lastSteps[0];
}

/// Makes the last steps of a row, in the `sums` of the tile. Those of the first
/// row ask for what they would ask for in the loop. Loops outside of the
/// innermost one are at their last turns.
void TileEmitter::completeRow(unsigned row, Sums &sums) {
  for (Value step : lastSteps) {
    LaneReader::Scope scope(reader);
    reader.bind(tiling.reductions.back(), step);
    if (row == 0)
      askInStep();
    if (copies)
      readCopies(row, 1);
    if (readsForEach())
      multiplyForEach(row, indexForEach(step), sums);
    else
      multiply({SmallVector<AffineExpr>(root.getNumLoops()), row, row, {}},
               sums);
  }
}

/// Keeps what is read for the next rows from being read with this one: all of
/// it has no room in registers.
void TileEmitter::endRow() {
  if (!lastSteps.empty())
    LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel,
                          "singlethread");
}

} // namespace keratin
