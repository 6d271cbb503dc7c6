//===- PairedSteps.cpp - pairs with weights that are not known ------------===//
//
// Calls share each of two steps. First rows of A whose elements are far apart
// are copied. Of few rows all are measured then, and in the second step panels
// of weights are packed, each before all blocks of rows meet it. Of more than
// the second cache has, all panels are packed in the first step, and blocks of
// rows meet them as they meet weights that are known.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/PairedLoops.h"
#include "codegen/cpu/PairedPanels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <set>

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
    part.memref =
        viewOf(kernel, scratch, kernel.index(part.begin), part.sizes, strides);
  }
  if (kernel.hasParts())
    kernel.allowTurns(2, mostParts);
}

/// Both steps, each shared by all calls.
void PairedEmitter::emitSteps() {
  Value panels = kernel.index(plan.panels());
  Value all = times(blocks(), plan.panels());
  Range ofBlocks = kernel.share(blocks(), 1),
        ofPanels = kernel.share(panels, 1), share = kernel.share(all, 1);
  auto arrange = [&] {
    LaneReader::Scope scope(reader);
    if (plan.transposesLeft || plan.measuresFirst)
      loop(ofBlocks.first, ofBlocks.second, 1, [&](Value block) {
        Rows rows = rowsOf(block);
        if (plan.transposesLeft)
          transposeRows(rows);
        if (plan.measuresFirst)
          measureBlock(block, rows);
      });
    if (!plan.measuresFirst)
      packPanels(ofPanels);
  };
  auto multiply = [&] {
    LaneReader::Scope scope(reader);
    plan.measuresFirst ? emitPanels(share) : emitShare(share);
  };
  if (kernel.hasParts()) {
    kernel.emitTurn(1, arrange);
    kernel.emitTurn(2, multiply);
  } else {
    arrange();
    multiply();
  }
}

/// Copies the rows of a block, whose elements at one place of a sum are
/// neighbours: as many at a time as a vector has lanes.
void PairedEmitter::transposeRows(const Rows &rows) {
  PairedPanels panels(kernel, pairs, plan.depth(), plan.lanes);
  MatrixPlace place = {elementsOf(*plan.left), plan.leftPlace->first,
                       *stepOf(*plan.leftPlace, plan.rows),
                       *stepOf(*plan.leftPlace, plan.sums)};
  int64_t lanes = plan.lanes;
  Value rest = kernel.over(rows.count, kernel.index(lanes), /*rest=*/true);
  Value whole = minus(rows.count, rest);
  auto copy = [&](Value row, int64_t width) {
    panels.copyRows(place, kernel.plus(rows.first, row), given,
                    unsigned(width));
  };
  loop(kernel.index(0), whole, lanes, [&](Value row) { copy(row, lanes); });
  // Of a block, and of the last one.
  int64_t last = plan.rows.turns() % plan.block % lanes;
  for (int64_t width : std::set<int64_t>{plan.block % lanes, last}) {
    if (width == 0)
      continue;
    Value isThis = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest,
                                         kernel.index(width));
    auto branch = scf::IfOp::create(b, loc, isThis, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    LaneReader::Scope scope(reader);
    copy(whole, width);
  }
}

/// Measures a block, and writes whether it is read from its copy.
void PairedEmitter::measureBlock(Value block, const Rows &rows) {
  Value wants = measureRows(rows);
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
