//===- DotPrefetch.cpp - asking for what dot products will need -----------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/DotLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Of a right factor that no cache near holds each tile of rows fetches its
/// share of the next block. Behind the last block are the weights of what comes
/// next. In tile registers a share is some runs of lines, one behind the other:
/// what fetches ahead by itself sees those as it sees reads, and needs less
/// asking. With vectors it is what the steps have, some lines of each.
void DotEmitter::startPrefetch(Value first, Value last, Value group,
                               Value start) {
  constexpr int64_t leastBytes = 1 << 20, line = 32, unknownTurns = 4;
  constexpr int64_t mostRuns = 8;
  linesOfStep = 0;
  int64_t bytes = 2 * parts() * depth() *
                  (plan.split ? blocksOfAll() * plan.block : plan.columns);
  if (plan.panel || bytes < leastBytes)
    return;
  std::optional<int64_t> begin = getConstantIntValue(first),
                         end = getConstantIntValue(last);
  int64_t turns = begin && end
                      ? int64_t(llvm::divideCeil(*end - *begin, mostTiles()))
                      : unknownTurns;
  int64_t lines = elementsOfStep() / line;
  linesOfStep = int64_t(llvm::divideCeil(lines, turns));
  Value turn = over(Value(arith::SubIOp::create(b, loc, group, first)),
                    kernel.index(mostTiles()), /*rest=*/false);
  askedRuns = usesTiles() && turns > 1 ? mostRuns : 1;
  linesOfStep = int64_t(llvm::alignTo(linesOfStep, askedRuns));
  Value share = times(kernel.least(turn, kernel.index(turns - 1)),
                      linesOfStep * line * (askedRuns > 1 ? turnsOfSum() : 1));
  // Where each block is read once, they are one run, or some, and near is soon
  // enough.
  constexpr int64_t nearElements = 16 << 10, stepsAhead = 2;
  int64_t ahead = elementsOfBlock();
  if (runs > 1)
    ahead = stepsAhead * elementsOfStep();
  else if (turns == 1)
    ahead = std::min(ahead, nearElements);
  nextBlock = kernel.plus(kernel.plus(start, kernel.index(ahead)), share);
}

void DotEmitter::prefetch(Value step) {
  constexpr int64_t line = 32;
  if (linesOfStep == 0)
    return;
  int64_t perRun = linesOfStep / askedRuns;
  int64_t inRun = askedRuns > 1 ? perRun * line : elementsOfStep();
  Value place = kernel.plus(nextBlock, times(step, inRun));
  for (int64_t number = 0; number < perRun; ++number)
    for (int64_t run = 0; run < askedRuns; ++run) {
      int64_t ahead = (run * perRun * turnsOfSum() + number) * line;
      LLVM::Prefetch::create(
          b, loc, address(rightMemory, kernel.plus(place, kernel.index(ahead))),
          /*rw=*/0, /*hint=*/2, /*cache=*/1);
    }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// What a tile in vectors asks for while it sums up: where it writes, and what
/// it reads then, of memrefs that no near cache holds. Stores wait for their
/// lines as loads do. Tiles in registers of their own are finished in the steps
/// of the next ones, which wait for nothing.
void DotEmitter::findAsked() {
  constexpr int64_t leastBytes = 256 << 10, line = 64;
  if (usesTiles())
    return;
  auto add = [&](Value memref, const Position &position, bool isWrite) {
    auto type = cast<MemRefType>(memref.getType());
    if (bytesOfElement(type) == 0 || bytesOf(memref) < leastBytes ||
        laneAccess(type, position, plan.lane) != LaneAccess::Contiguous)
      return;
    int64_t row = type.getShape().back();
    bool hasWholeLines =
        !ShapedType::isDynamic(row) && row * bytesOfElement(type) % line == 0;
    asked.push_back({memref, position, isWrite, hasWholeLines});
  };
  for (const Output &output : outputs)
    add(output.destination, output.place, /*isWrite=*/true);
  for (const Access &access : readWithSums(kernel, root))
    if (llvm::any_of(plan.rows,
                     [&](unsigned loop) { return access.dependsOn(loop); }))
      add(kernel.memrefOf(access.tensor), access.position, /*isWrite=*/false);
}

/// Asks for what belongs to row `row` of the present tile.
void DotEmitter::askForRow(Value row, int64_t columns) {
  LaneReader::Scope scope(reader);
  bindLoops(outerRows(), present.outer);
  bindLoops(runRows(), kernel.plus(present.first, row));
  for (const Asked &what : asked) {
    Position place = atPoint(what.position, pointAt(0));
    reader.prefetch(what.memref, place, /*ahead=*/0, unsigned(columns),
                    what.isWrite);
    // Of columns that begin within a line the last ones are in one more.
    if (!what.hasWholeLines)
      reader.prefetch(what.memref, place, /*ahead=*/unsigned(columns - 1),
                      /*width=*/1, what.isWrite);
  }
}

/// A loop of so many `turns`, some rows in each of which, or some turns after
/// each row, are asked for.
DotEmitter::Values
DotEmitter::loopAsking(int64_t turns, int64_t columns, ValueRange start,
                       llvm::function_ref<Values(Value, ValueRange)> turn) {
  Value zero = kernel.index(0), one = kernel.index(1);
  int64_t each = turns / height;
  if (each == 0) {
    auto rows = int64_t(llvm::divideCeil(height, turns));
    return emitLoop(b, loc, zero, kernel.index(turns), one, start,
                    [&](Value iv, ValueRange sums) {
                      for (int64_t row = 0; row < rows; ++row)
                        askForRow(kernel.least(kernel.plus(times(iv, rows),
                                                           kernel.index(row)),
                                               kernel.index(height - 1)),
                                  columns);
                      return turn(iv, sums);
                    });
  }
  Values sums =
      emitLoop(b, loc, zero, kernel.index(height), one, start,
               [&](Value row, ValueRange before) {
                 askForRow(row, columns);
                 if (each == 1)
                   return turn(row, before);
                 Value first = times(row, each);
                 return emitLoop(b, loc, zero, kernel.index(each), one, before,
                                 [&](Value iv, ValueRange inner) {
                                   return turn(kernel.plus(first, iv), inner);
                                 });
               });
  if (turns % height == 0)
    return sums;
  return emitLoop(b, loc, kernel.index(height * each), kernel.index(turns), one,
                  sums, turn);
}

} // namespace keratin
