//===- PairedSteps.cpp - pairs with weights that are not known ------------===//
//
// Calls share each of two or three steps: rows of A whose elements are far
// apart are copied. Of few rows all are measured, and then panels of weights
// are packed, each before all blocks of rows meet it. Of more than the second
// cache has, all panels are packed before blocks of rows meet them, as they
// meet weights that are known.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/PairedLoops.h"
#include "codegen/cpu/PairedPanels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Memory that all calls have: of facts, copies, and which blocks are read
/// there; or of the packed weights; and of transposed rows.
void PairedEmitter::layOutSteps() {
  constexpr int64_t mostParts = 16, ofLine = 16;
  int64_t rows = plan.rows.turns(), used = 0;
  struct Part {
    Value &memref;
    SmallVector<int64_t> sizes;
    int64_t stride, begin = 0; ///< of what is in a row
  };
  SmallVector<Part> parts;
  if (plan.measuresFirst) {
    parts.push_back({facts, {rows, 2}, 2});
    parts.push_back({copied, {rows, plan.depth()}, plan.copiedStride});
    parts.push_back({areCopied, {plan.blocks(), 1}, 1});
  } else {
    int64_t inPanel = plan.depth() + rowsBehindPaired;
    parts.push_back(
        {weights, {plan.panels(), inPanel, plan.width()}, plan.width()});
  }
  if (plan.transposesLeft)
    parts.push_back({given, {rows, plan.depth()}, plan.leftStride});
  for (Part &part : parts) {
    part.begin = used;
    int64_t all = llvm::product_of(ArrayRef(part.sizes).drop_back());
    used += int64_t(llvm::alignTo(all * part.stride, ofLine));
  }
  Value scratch = kernel.addSharedScratch(b.getF32Type(), used);
  for (Part &part : parts) {
    SmallVector<int64_t> strides = {part.stride, 1};
    if (part.sizes.size() == 3)
      strides.insert(strides.begin(), part.sizes[1] * part.stride);
    auto layout = StridedLayoutAttr::get(b.getContext(), part.begin, strides);
    part.memref = memref::ReinterpretCastOp::create(
        b, loc, MemRefType::get(part.sizes, b.getF32Type(), layout), scratch,
        part.begin, part.sizes, strides);
  }
  if (kernel.hasParts())
    kernel.allowTurns(plan.transposesLeft ? 3 : 2, mostParts);
}

/// The steps, each after the one before.
void PairedEmitter::emitSteps() {
  struct Step {
    Value count;
    std::function<void(Range)> body;
    Range share = {};
  };
  SmallVector<Step> steps;
  if (plan.transposesLeft)
    steps.push_back(
        {kernel.index(int64_t(llvm::divideCeil(plan.rows.turns(), plan.lanes))),
         [&](Range groups) { transposeRows(groups); }});
  if (plan.measuresFirst)
    steps.push_back({blocks(), [&](Range range) {
                       loop(range.first, range.second, 1,
                            [&](Value block) { measureBlock(block); });
                     }});
  else
    steps.push_back({kernel.index(plan.panels()),
                     [&](Range panels) { packPanels(panels); }});
  steps.push_back({times(blocks(), plan.panels()), [&](Range share) {
                     plan.measuresFirst ? emitPanels(share) : emitShare(share);
                   }});
  for (Step &step : steps)
    step.share = kernel.hasParts() ? kernel.share(step.count, 1)
                                   : Range(kernel.index(0), step.count);
  for (auto [number, step] : llvm::enumerate(steps)) {
    auto body = [&, &step = step] {
      LaneReader::Scope scope(reader);
      step.body(step.share);
    };
    if (kernel.hasParts())
      kernel.emitTurn(int64_t(number) + 1, body);
    else
      body();
  }
}

/// Copies groups of rows, as many as a vector has lanes, whose elements at one
/// place of a sum are neighbours.
void PairedEmitter::transposeRows(Range groups) {
  PairedPanels panels(kernel, pairs, plan.depth(), plan.lanes);
  MatrixPlace place = {elementsOf(*plan.left), plan.leftPlace->first,
                       *stepOf(*plan.leftPlace, plan.rows),
                       *stepOf(*plan.leftPlace, plan.sums)};
  int64_t lanes = plan.lanes, rows = plan.rows.turns(), whole = rows / lanes;
  auto copy = [&](Value group, int64_t width) {
    panels.copyRows(place, times(group, lanes), given, unsigned(width));
  };
  loop(groups.first, kernel.least(groups.second, kernel.index(whole)), 1,
       [&](Value group) { copy(group, lanes); });
  if (rows % lanes == 0)
    return;
  Value first =
      arith::MaxUIOp::create(b, loc, groups.first, kernel.index(whole));
  loop(first, groups.second, 1,
       [&](Value group) { copy(group, rows % lanes); });
}

/// Measures a block, and writes whether it is read from its copy.
void PairedEmitter::measureBlock(Value block) {
  Value wants = measureRows(rowsOf(block));
  Value number = arith::SelectOp::create(b, loc, wants, real(1), real(0));
  memref::StoreOp::create(b, loc, number, areCopied,
                          ValueRange{block, kernel.index(0)});
}

/// Packs panel number `panel` where panels are, as number `place`.
void PairedEmitter::packPanel(Value panel, Value place,
                              ArrayRef<unsigned> widths) {
  PairedPanels panels(kernel, pairs, plan.depth(), plan.lanes);
  MatrixPlace source = {elementsOf(*plan.weights), plan.weightsPlace->first,
                        *stepOf(*plan.weightsPlace, plan.sums),
                        *stepOf(*plan.weightsPlace, plan.columns)};
  panels.pack(source, times(panel, plan.width()), weights, place, widths);
}

void PairedEmitter::packPanels(Range panels) {
  forPanels(panels, [&](Value panel, ArrayRef<unsigned> widths) {
    packPanel(panel, panel, widths);
  });
}

/// What a call has of the blocks of all panels, one panel after the other.
void PairedEmitter::emitPanels(Range share) {
  auto [from, to] = share;
  int64_t count = plan.blocks();
  Value ofBlocks = kernel.index(count);
  Range range = {kernel.over(from, ofBlocks, /*rest=*/false),
                 kernel.over(plus(to, count - 1), ofBlocks, /*rest=*/false)};
  forPanels(range, [&, from = from, to = to](Value panel,
                                             ArrayRef<unsigned> widths) {
    packPanel(panel, kernel.index(0), widths);
    Value before = times(panel, count);
    Value first = minus(arith::MaxUIOp::create(b, loc, from, before), before);
    loop(first, kernel.least(minus(to, before), ofBlocks), 1, [&](Value block) {
      Value number = memref::LoadOp::create(b, loc, areCopied,
                                            ValueRange{block, kernel.index(0)});
      Value isCopied = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE,
                                             number, real(0));
      Rows rows = rowsOf(block);
      multiplyTiles(rows, whereRowsAre(rows, isCopied), panel, widths);
    });
  });
}

} // namespace keratin
