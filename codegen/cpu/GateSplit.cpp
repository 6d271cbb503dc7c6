//===- GateSplit.cpp - sums of gates of f32 -------------------------------===//
//
// All rows are split when a call begins, since each block of units meets them:
// [tile][step][part][row][splitDepth]. Weights are [gate][block of units][step]
// [part][pair][unit].
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/GateLoops.h"
#include "codegen/cpu/PairPacking.h"
#include "codegen/cpu/SplitTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

int64_t GateEmitter::splitSteps() const {
  return int64_t(
      llvm::divideCeil(staticLoopExtent(root, reductions.back()), splitDepth));
}

/// Of one gate of a block of units.
int64_t GateEmitter::elementsOfSplitBlock() const {
  return splitSteps() * splitParts * splitDepth * dotLanes;
}

int64_t GateEmitter::elementsOfSplitTile() const {
  return splitSteps() * splitParts * splitDepth * tileRows;
}

void GateEmitter::allocateSplit() {
  auto tiles =
      int64_t(llvm::divideCeil(staticLoopExtent(root, gate - 1), tileRows));
  int64_t elements = tiles * elementsOfSplitTile();
  firstOfSplit = kernel.index(0);
  // Threads that share rows share nothing else.
  if (canShareRows()) {
    splitMemory = memref::AllocaOp::create(
        b, loc, MemRefType::get({elements}, b.getBF16Type()),
        b.getI64IntegerAttr(64));
    return;
  }
  std::tie(splitMemory, firstOfSplit) = addSplitScratch(kernel, elements);
}

/// Splits the rows of all tiles. The last one ends with the last row, as in
/// `emitTilesOf`.
void GateEmitter::splitRows() {
  int64_t extent = staticLoopExtent(root, gate - 1);
  Value begin = kernel.index(0);
  Value end = kernel.index(int64_t(llvm::divideCeil(extent, tileRows)));
  if (sharedFrom) {
    auto tileOf = [&](Value row) {
      return reader.at(canonical(reader.symbol(row).floorDiv(tileRows)));
    };
    begin = tileOf(sharedFrom);
    end = tileOf(sharedTo);
  }
  emitTurns(kernel, reader, begin, end, 1, [&](Value tile) {
    Value at = reader.at(canonical(reader.symbol(tile) * tileRows));
    Value first = kernel.least(at, kernel.index(extent - tileRows));
    Value to = reader.at(canonical(reader.symbol(tile) * elementsOfSplitTile() +
                                   reader.symbol(firstOfSplit)));
    emitTurns(kernel, reader, kernel.index(0), kernel.index(tileRows), 1,
              [&](Value row) {
                Position place = point(0, 0, 0);
                place[gate - 1] = reader.symbol(kernel.plus(first, row));
                place[reductions.back()] =
                    getAffineConstantExpr(0, b.getContext());
                Value inTile =
                    reader.at(canonical(reader.symbol(row) * splitDepth));
                splitRow(kernel, reader, kernel.memrefOf(factor->get()),
                         reader.at(elementOfFactor(place)), splitMemory,
                         kernel.plus(to, inTile), tileRows * splitDepth,
                         staticLoopExtent(root, reductions.back()));
              });
  });
}

/// All steps of the gates from `from` to before `to`, of which the tiles of
/// rows begin with `firsts`.
void GateEmitter::addSplitSteps(
    ArrayRef<Value> firsts, int64_t from, int64_t to,
    llvm::function_ref<int64_t(int64_t, int64_t)> tileOf) {
  int64_t ofStep = splitParts * splitDepth;
  auto blocks = int64_t(llvm::divideCeil(units, dotLanes));
  emitTurns(kernel, reader, kernel.index(0), kernel.index(splitSteps()), 1,
            [&](Value step) {
              AffineExpr number = reader.symbol(step);
              auto loadRow = [&](int64_t row, int64_t part, int64_t tile) {
                // A tile that ends with the last row is the one behind the
                // others.
                AffineExpr place =
                    reader.symbol(firsts[size_t(row)]).ceilDiv(tileRows) *
                        elementsOfSplitTile() +
                    number * (ofStep * tileRows) +
                    part * tileRows * splitDepth + reader.symbol(firstOfSplit);
                loadTile(kernel, tile, splitMemory, reader.at(canonical(place)),
                         splitDepth * 2);
              };
              auto loadColumn = [&](int64_t column, int64_t part,
                                    int64_t tile) {
                AffineExpr place =
                    reader.symbol(start) +
                    (from + column) * blocks * elementsOfSplitBlock() +
                    number * (ofStep * dotLanes) + part * splitDepth * dotLanes;
                loadTile(kernel, tile, kernel.memrefOf(weights->get()),
                         reader.at(canonical(place)), dotLanes * 4);
              };
              auto sums = [&](int64_t row, int64_t column) {
                return tileOf(row, from + column);
              };
              addSplitDots(kernel, {int64_t(firsts.size()), to - from, loadRow,
                                    loadColumn, sums});
              if (from == 0 && overlaps())
                finishSome(step);
            });
}

} // namespace keratin
