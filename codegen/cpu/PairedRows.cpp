//===- PairedRows.cpp - rows that are multiplied in pairs -----------------===//
#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/PairedLoops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

/// Elements of a row of A, computed where that is not in memory.
Value PairedEmitter::leftAt(const Rows &rows, Value row, Value place,
                            unsigned width) {
  LaneReader::Scope scope(reader);
  unsigned ofSum = plan.sums.loops.back();
  reader.setLane(ofSum);
  reader.bind(ofSum, place);
  Coordinates ofRow =
      coordinatesOf(kernel, reader, plan.rows, kernel.plus(rows.first, row));
  if (plan.sample)
    ofRow.push_back({*plan.sample, reader.symbol(rows.sample)});
  Position position =
      atPoint(root.getMatchingIndexingMap(plan.left).getResults(),
              pointAt(root, ofRow));
  return reader.materialize(reader.read(plan.left->get(), position, width),
                            width);
}

/// Copies a row that is in memory, run by run.
void PairedEmitter::copyRuns(const Rows &rows, Value row) {
  LaneReader::Scope scope(reader);
  Coordinates ofRow =
      coordinatesOf(kernel, reader, plan.rows, kernel.plus(rows.first, row));
  if (plan.sample)
    ofRow.push_back({*plan.sample, reader.symbol(rows.sample)});
  const LinearPlace &place = *plan.leftPlace;
  AffineExpr first = getAffineConstantExpr(place.first, b.getContext());
  for (auto [loop, turn] : ofRow)
    first = first + turn * place.steps[loop];
  LoopGroup run = plan.run();
  int64_t length = run.turns();
  Value copy = inMemory(rows, row);
  auto copyRun = [&](Value from, Value to) {
    pairs.forVectors(length, [&](Value number, unsigned width) {
      Value vector = vector::LoadOp::create(
          b, loc, VectorType::get(width, b.getF32Type()), elements,
          ValueRange{kernel.plus(from, number)});
      vector::StoreOp::create(b, loc, vector, copied,
                              ValueRange{copy, kernel.plus(to, number)});
    });
  };
  // The loops around a run, outermost first.
  size_t around = plan.sums.loops.size() - run.loops.size();
  auto copyTurns = [&](auto &&self, size_t number, Value from,
                       Value to) -> void {
    if (number == around)
      return copyRun(from, to);
    int64_t extent = plan.sums.extents[number], behind = length;
    for (size_t inner = number + 1; inner < around; ++inner)
      behind *= plan.sums.extents[inner];
    loop(kernel.index(0), kernel.index(extent), 1, [&](Value turn) {
      int64_t step = place.steps[plan.sums.loops[number]];
      self(self, number + 1, kernel.plus(from, times(turn, step)),
           kernel.plus(to, times(turn, behind)));
    });
  };
  copyTurns(copyTurns, 0, reader.at(first), kernel.index(0));
}

/// Copies the rows as they are.
void PairedEmitter::copyRows(const Rows &rows) {
  loop(kernel.index(0), rows.count, 1, [&](Value row) {
    if (elements)
      return copyRuns(rows, row);
    pairs.forVectors(plan.depth(), [&](Value place, unsigned width) {
      vector::StoreOp::create(b, loc, leftAt(rows, row, place, width), copied,
                              ValueRange{inMemory(rows, row), place});
    });
  });
}

/// Where what is known of a row of a block is, and its copy.
Value PairedEmitter::inMemory(const Rows &rows, Value row) {
  return plan.measuresFirst ? kernel.plus(rows.first, row) : row;
}

/// Finds out what is to know of the rows. Returns whether they are to be read
/// from a copy, where they are as large as the weights: one of them was not.
Value PairedEmitter::measureRows(const Rows &rows) {
  if (!given)
    copyRows(rows);
  auto load = [&](Value row) {
    Value at = given ? kernel.plus(rows.before, row) : inMemory(rows, row);
    return [&, at](Value place, unsigned width) -> Value {
      return vector::LoadOp::create(
          b, loc, VectorType::get(width, b.getF32Type()),
          given ? given : copied, ValueRange{at, place});
    };
  };
  Value no = constant(b.getBoolAttr(false));
  Values wants = emitLoop(
      b, loc, kernel.index(0), rows.count, kernel.index(1), no,
      [&](Value row, ValueRange before) {
        PairedTiles::Measures measures = pairs.measure(load(row));
        pairs.storeFacts(pairs.factsOf(measures), facts, inMemory(rows, row));
        Value yes = constant(b.getBoolAttr(true));
        Value isOther =
            arith::XOrIOp::create(b, loc, pairs.isLikeWeights(measures), yes);
        return Values{arith::OrIOp::create(b, loc, before[0], isOther)};
      });
  auto branch = scf::IfOp::create(b, loc, wants[0], /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  loop(kernel.index(0), rows.count, 1, [&](Value row) {
    Value at = inMemory(rows, row);
    auto store = [&](Value vector, Value place) {
      vector::StoreOp::create(b, loc, vector, copied, ValueRange{at, place});
    };
    pairs.storeFacts(pairs.scaleRow(load(row), store), facts, at);
  });
  return wants[0];
}

/// The address of the first row of a block.
Value PairedEmitter::whereRowsAre(const Rows &rows, Value areCopied) {
  auto begin = [&](Value memref, int64_t stride, Value row) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
    Value first = kernel.plus(metadata.getOffset(), times(row, stride));
    return addressOf(kernel, metadata.getBaseBuffer(), first);
  };
  Value copy =
      begin(copied, plan.copiedStride, inMemory(rows, kernel.index(0)));
  if (!given)
    return copy;
  return arith::SelectOp::create(b, loc, areCopied, copy,
                                 begin(given, plan.leftStride, rows.before));
}

} // namespace keratin
