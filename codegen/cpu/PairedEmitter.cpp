//===- PairedEmitter.cpp - two products by one multiplication -------------===//
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/PairedLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void PairedEmitter::layOut() {
  if (plan.hasKnownWeights) {
    unsigned number = cast<BlockArgument>(plan.weights->get()).getArgNumber();
    kernel.setPackedArgument(number, plan.packing(root));
    weights = kernel.memrefOf(plan.weights->get());
  }
  constexpr int64_t ofLine = 16, fewestParts = 4, mostParts = 8;
  constexpr int64_t mostElements = 2 << 20; // of all parts
  auto aligned = [](int64_t elements) {
    return int64_t(llvm::alignTo(elements, ofLine));
  };
  // A call has a block of rows of its own, or a panel.
  bool ofBlock = !plan.measuresFirst;
  int64_t ofFacts = ofBlock ? aligned(plan.block * 2) : 0;
  int64_t ofCopy = ofBlock ? aligned(plan.block * plan.copiedStride) : 0;
  int64_t inPanel = plan.depth() + rowsBehindPaired;
  int64_t ofPanel = ofBlock ? 0 : inPanel * plan.width();
  int64_t ofSums = plan.hasFunctions ? plan.size.rows * plan.width() : 0;
  int64_t count = ofFacts + ofCopy + ofPanel + ofSums;
  int64_t parts = count * mostParts <= mostElements ? mostParts : fewestParts;
  auto [scratch, begin] = kernel.addScratch(b.getF32Type(), count, parts);
  if (ofBlock) {
    facts = viewOf(kernel, scratch, begin, {plan.block, 2}, {2, 1});
    copied = viewOf(kernel, scratch, plus(begin, ofFacts),
                    {plan.block, plan.depth()}, {plan.copiedStride, 1});
  } else {
    weights = viewOf(kernel, scratch, begin, {1, inPanel, plan.width()},
                     {inPanel * plan.width(), plan.width(), 1});
  }
  if (ofSums != 0)
    sums = viewOf(kernel, scratch, plus(begin, ofFacts + ofCopy + ofPanel),
                  {plan.size.rows, plan.width()}, {plan.width(), 1});
  if (!plan.hasKnownWeights)
    layOutSteps();
  if (given)
    return;
  if (plan.leftStride != 0)
    given = rowsOfLeft(kernel, root, plan);
  else if (plan.leftPlace)
    elements = elementsOf(*plan.left);
}

/// What is in memory, as one dimension.
Value PairedEmitter::elementsOf(OpOperand &operand) {
  Value memref = kernel.memrefOf(operand.get());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, 1);
  Value count = kernel.index(1);
  for (auto [size, stride] :
       llvm::zip_equal(metadata.getSizes(), metadata.getStrides()))
    count =
        kernel.plus(count, arith::MulIOp::create(b, loc, stride,
                                                 minus(size, kernel.index(1))));
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get(ShapedType::kDynamic, b.getF32Type(), layout),
      metadata.getBaseBuffer(), OpFoldResult(metadata.getOffset()),
      ArrayRef<OpFoldResult>{count}, ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void PairedEmitter::run() {
  kernel.to()->setAttr(kernelAttr, b.getStringAttr("paired"));
  layOut();
  takeWeightsAhead();
  if (!plan.hasKnownWeights)
    return emitSteps();
  Value zero = kernel.index(0), panels = kernel.index(plan.panels());
  // Threads share the panels of all blocks, one block after the other.
  if (kernel.hasParts())
    return emitShare(kernel.share(times(blocks(), plan.panels()), 1));
  loop(zero, blocks(), 1,
       [&](Value block) { emitBlock(rowsOf(block, zero), {zero, panels}); });
}

/// The blocks of all samples.
Value PairedEmitter::blocks() {
  Value blocks = kernel.index(plan.blocks());
  return plan.sample
             ? times(kernel.loopExtent(root, *plan.sample), plan.blocks())
             : blocks;
}

/// What a call has of the panels of all blocks.
void PairedEmitter::emitShare(Range share) {
  auto [from, to] = share;
  int64_t panels = plan.panels();
  Value ofPanels = kernel.index(panels);
  Value last = kernel.over(plus(to, panels - 1), ofPanels, /*rest=*/false);
  Value firstBlock = kernel.over(from, ofPanels, /*rest=*/false);
  loop(firstBlock, last, 1, [&, from = from, to = to](Value block) {
    Value before = times(block, panels);
    Value first = minus(arith::MaxUIOp::create(b, loc, from, before), before);
    Value end = kernel.least(minus(to, before), ofPanels);
    emitBlock(rowsOf(block, firstBlock), {first, end});
  });
}

/// Calls `body` with panels, and the widths of their vectors.
void PairedEmitter::forPanels(
    Range panels, llvm::function_ref<void(Value, ArrayRef<unsigned>)> body) {
  int64_t columns = plan.columns.turns(), whole = columns / plan.width();
  SmallVector<unsigned> widths(plan.size.vectors, plan.lanes);
  loop(panels.first, kernel.least(panels.second, kernel.index(whole)), 1,
       [&](Value panel) { body(panel, widths); });
  if (whole == plan.panels())
    return;
  widths.clear();
  for (int64_t rest = columns % plan.width(); rest > 0; rest -= plan.lanes)
    widths.push_back(unsigned(std::min<int64_t>(rest, plan.lanes)));
  Value first =
      arith::MaxUIOp::create(b, loc, panels.first, kernel.index(whole));
  loop(first, panels.second, plan.panels(),
       [&](Value panel) { body(panel, widths); });
}

PairedEmitter::Rows PairedEmitter::rowsOf(Value block, Value firstBlock) {
  Rows rows = {};
  if (firstBlock && (plan.sample || plan.blocks() > 1))
    rows.isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         block, firstBlock);
  rows.before = kernel.index(0);
  if (plan.sample) {
    Value ofSample = kernel.index(plan.blocks());
    rows.sample = kernel.over(block, ofSample, /*rest=*/false);
    block = kernel.over(block, ofSample, /*rest=*/true);
    rows.before = times(rows.sample, plan.rows.turns());
  }
  rows.first = times(block, plan.block);
  rows.before = kernel.plus(rows.before, rows.first);
  rows.count = kernel.index(plan.block);
  if (plan.rows.turns() % plan.block != 0)
    rows.count = kernel.least(
        rows.count, minus(kernel.index(plan.rows.turns()), rows.first));
  return rows;
}

/// The panels `panels` of a block of rows.
void PairedEmitter::emitBlock(const Rows &rows, Range panels) {
  Value left = whereRowsAre(rows, measureRows(rows));
  forPanels(panels, [&](Value panel, ArrayRef<unsigned> widths) {
    multiplyTiles(rows, left, panel, widths);
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The tiles of a block, which are whole but for the last one.
void PairedEmitter::multiplyTiles(const Rows &rows, Value left, Value panel,
                                  ArrayRef<unsigned> widths) {
  int64_t height = plan.size.rows, rest = plan.rows.turns() % height;
  int64_t inBlocks = (plan.blocks() - 1) * plan.block;
  Value end = rows.count;
  if (rest != 0)
    end = minus(end, kernel.over(end, kernel.index(height), /*rest=*/true));
  loop(kernel.index(0), end, height, [&](Value row) {
    multiplyTile({rows, left, row, panel, unsigned(height), widths});
  });
  if (rest == 0)
    return;
  Value first = kernel.index(plan.rows.turns() - inBlocks - rest);
  // No other block ends behind it and within a tile.
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, end, rows.count);
  auto branch = scf::IfOp::create(b, loc, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  LaneReader::Scope scope(reader);
  multiplyTile({rows, left, first, panel, unsigned(rest), widths});
}

/// The lanes of the sums of so many columns: half a vector takes half the time.
unsigned PairedEmitter::lanesOf(unsigned width) {
  return width <= plan.lanes / 2 ? plan.lanes / 2 : plan.lanes;
}

Value PairedEmitter::weightsAt(const Tile &tile, Value place, unsigned vector) {
  return vector::LoadOp::create(
      b, loc, VectorType::get(lanesOf(tile.widths[vector]), b.getF32Type()),
      weights,
      ValueRange{plan.measuresFirst ? kernel.index(0) : tile.panel, place,
                 kernel.index(int64_t(vector) * plan.lanes)});
}

static constexpr int64_t bytesOfLine = 64, bytesOfF32 = 4;

/// Asks the second cache for the line at `address`, a number.
void PairedEmitter::askFor(Value address) {
  address = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  address = LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  LLVM::Prefetch::create(b, loc, address, /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

/// Asks for the weights of the next panel, in all tiles of a block; of those
/// that stay in the second cache in the first block alone.
void PairedEmitter::askForPanel(const Tile &tile, Value step) {
  if (!plan.asksAhead || plan.panels() == 1)
    return;
  OpBuilder::InsertionGuard guard(b);
  if (plan.stays && tile.rows.isFirst)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, loc, tile.rows.isFirst, /*withElseRegion=*/false)
            .thenBlock());
  auto tiles = int64_t(llvm::divideCeil(plan.block, plan.size.rows));
  int64_t ofPanel =
      (plan.depth() + rowsBehindPaired) * plan.width() * bytesOfF32;
  int64_t lines = ofPanel / bytesOfLine;
  auto atOnce = int64_t(llvm::divideCeil(lines, plan.steps() * tiles));
  Value turn = kernel.over(tile.row, kernel.index(plan.size.rows), false);
  Value number =
      kernel.plus(times(turn, plan.steps()),
                  kernel.over(step, kernel.index(stepOfPairs), /*rest=*/false));
  number = kernel.least(times(number, atOnce), kernel.index(lines - atOnce));
  Value panel =
      kernel.least(plus(tile.panel, 1), kernel.index(plan.panels() - 1));
  Value from = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, weights);
  from = kernel.plus(from, times(panel, ofPanel));
  from = kernel.plus(from, times(number, bytesOfLine));
  for (int64_t line = 0; line < atOnce; ++line)
    askFor(plus(from, line * bytesOfLine));
}

/// Takes the weights of a later kernel that this one has time to ask for.
void PairedEmitter::takeWeightsAhead() {
  if (kernel.bytesAhead() < bytesOfLine || plan.sample)
    return;
  ahead = memref::ExtractAlignedPointerAsIndexOp::create(
      b, loc, kernel.addWeightsAhead());
  ahead = plus(ahead, kernel.firstAhead());
}

/// Asks for some of those.
void PairedEmitter::askForLater(const Tile &tile, Value step) {
  if (!ahead)
    return;
  constexpr int64_t mostAtOnce = 2 * stepOfPairs;
  int64_t height = plan.size.rows;
  auto ofPanel = int64_t(llvm::divideCeil(plan.rows.turns(), height));
  int64_t lines = kernel.bytesAhead() / bytesOfLine;
  int64_t steps = plan.panels() * ofPanel * plan.steps();
  int64_t atOnce =
      std::min(int64_t(llvm::divideCeil(lines, steps)), mostAtOnce);
  Value row = kernel.plus(tile.rows.first, tile.row);
  Value turn = kernel.plus(times(tile.panel, ofPanel),
                           kernel.over(row, kernel.index(height), false));
  Value number =
      kernel.plus(times(turn, plan.steps()),
                  kernel.over(step, kernel.index(stepOfPairs), /*rest=*/false));
  // Those of the last turns are asked for more than once.
  number = kernel.least(times(number, atOnce),
                        kernel.index(std::max<int64_t>(lines - atOnce, 0)));
  Value from = kernel.plus(ahead, times(number, bytesOfLine));
  for (int64_t line = 0; line < std::min(atOnce, lines); ++line)
    askFor(plus(from, line * bytesOfLine));
}

/// A tile of sums in registers, and what follows from them.
void PairedEmitter::multiplyTile(const Tile &tile) {
  Value first = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                           times(tile.row, plan.copiedStride));
  Value rows = LLVM::GEPOp::create(b, loc, tile.left.getType(), b.getF32Type(),
                                   tile.left, ArrayRef<LLVM::GEPArg>{first});
  SmallVector<unsigned> lanes;
  for (unsigned width : tile.widths)
    lanes.push_back(lanesOf(width));
  finish(tile, pairs.multiply(
                   {rows, plan.copiedStride, tile.height, lanes},
                   [&](Value place, unsigned vector) {
                     return weightsAt(tile, place, vector);
                   },
                   [&](Value step) {
                     askForPanel(tile, step);
                     askForLater(tile, step);
                   }));
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Makes products of the sums of some rows, whose vectors `factors` are of
/// columns, and stores what follows from them: functions side by side.
void PairedEmitter::storeRows(const Tile &tile, ArrayRef<Value> rows,
                              ArrayRef<Value> sums, ArrayRef<Value> factors) {
  LaneReader::Scope scope(reader);
  unsigned lane = plan.columns.loops.back();
  Coordinates ofColumns = coordinatesOf(kernel, reader, plan.columns,
                                        times(tile.panel, plan.width()));
  reader.setLane(lane);
  // The first one of a group is the lane.
  reader.bind(lane, reader.at(ofColumns.front().second));
  // Those of whole vectors, and of the last one, which may have fewer columns.
  SmallVector<SumsAt> whole, last;
  unsigned widthOfLast = tile.widths.back();
  for (auto [turn, row] : llvm::enumerate(rows)) {
    Value inBlock = kernel.plus(tile.row, row);
    PairedTiles::Facts ofSums =
        pairs.loadFacts(facts, inMemory(tile.rows, inBlock));
    Coordinates ofRow = coordinatesOf(kernel, reader, plan.rows,
                                      kernel.plus(tile.rows.first, inBlock));
    if (plan.sample)
      ofRow.push_back({*plan.sample, reader.symbol(tile.rows.sample)});
    for (auto [number, width] : llvm::enumerate(tile.widths)) {
      Value sum = pairs.complete(sums[turn * tile.widths.size() + number],
                                 factors[number], ofSums);
      if (width != lanesOf(width))
        sum = vector::ExtractStridedSliceOp::create(
            b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
            ArrayRef<int64_t>{1});
      Position point = pointAt(root, {ofRow, ofColumns});
      point[lane] = getAffineDimExpr(lane, b.getContext()) +
                    int64_t(number) * int64_t(plan.lanes);
      (width == plan.lanes ? whole : last).push_back({point, {sum}});
    }
  }
  if (!whole.empty())
    storeOutputs(kernel, reader, root, outputs, whole, plan.lanes);
  if (!last.empty())
    storeOutputs(kernel, reader, root, outputs, last, widthOfLast);
}

/// With functions the sums wait in memory, so that there is code for two rows.
void PairedEmitter::finish(const Tile &tile, ArrayRef<Value> all) {
  size_t vectors = tile.widths.size();
  Values factors;
  for (unsigned vector = 0; vector < vectors; ++vector)
    factors.push_back(weightsAt(tile, kernel.index(plan.depth() + 1), vector));
  auto ofRow = [&](size_t row) { return all.slice(row * vectors, vectors); };
  if (!plan.hasFunctions) {
    for (unsigned row = 0; row < tile.height; ++row)
      storeRows(tile, kernel.index(row), ofRow(row), factors);
    return;
  }
  auto place = [&](Value row, size_t vector) {
    return Values{row, kernel.index(int64_t(vector * plan.lanes))};
  };
  for (unsigned row = 0; row < tile.height; ++row)
    for (auto [vector, sum] : llvm::enumerate(ofRow(row)))
      vector::StoreOp::create(b, loc, sum, sums,
                              place(kernel.index(row), vector));
  auto storeFrom = [&](Value first, int64_t count) {
    Values rows, ofRows;
    for (int64_t row = 0; row < count; ++row) {
      rows.push_back(plus(first, row));
      for (size_t vector = 0; vector < vectors; ++vector)
        ofRows.push_back(vector::LoadOp::create(
            b, loc, all[vector].getType(), sums, place(rows.back(), vector)));
    }
    storeRows(tile, rows, ofRows, factors);
  };
  constexpr int64_t together = 2;
  int64_t whole = tile.height / together * together;
  loop(kernel.index(0), kernel.index(whole), together,
       [&](Value row) { storeFrom(row, together); });
  if (whole != tile.height)
    storeFrom(kernel.index(whole), tile.height - whole);
}

void emitPaired(Kernel &kernel, linalg::GenericOp root, const PairedPlan &plan,
                ArrayRef<Output> outputs) {
  PairedEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
