//===- WinogradEmitter.cpp - convolutions by tiles ------------------------===//
//
// In the ring of slices, slice p of the products overwrites slice p-1 of the
// inputs, which has been multiplied by then:
//
//     slice      0    1    2   ...  P-1   P
//     inputs          0    1   ...  P-2  P-1     [tiles][C]
//     products   0    1    2   ...  P-1          [tiles][K]
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/PairedTiles.h"
#include "codegen/cpu/WinogradMath.h"
#include "codegen/cpu/WinogradTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
class WinogradEmitter : WindowTiles {
public:
  WinogradEmitter(Kernel &kernel, linalg::GenericOp root,
                  const WinogradPlan &plan, ArrayRef<Output> outputs)
      : WindowTiles(kernel, root, plan), plan(plan), outputs(outputs),
        pairs(kernel, plan.pieceChannels(), plan.lanes) {}

  void run();

private:
  void layOut();
  Value packedWeights();
  Value ownWeights();
  Value slices(int64_t elements, Value scratch, Value begin);
  Range allChannels() { return {kernel.index(0), kernel.index(conv.channels)}; }
  Range shareOfTiles();
  void emitBlocks(Range all);
  void emitBlocks(Range all, llvm::function_ref<void(Value, Value)> body);
  void emitBlocksInTurn();
  void emitInTurns();
  void emitOpenInTurns();
  void emitBlock(Value firstTile, Value tiles);
  Value allWeights() {
    return kernel.index(plan.panels() * plan.pieceChannels());
  }
  void transformWeights(Range range);
  Value readTap(int64_t i, int64_t j, unsigned width);
  void multiply(Range points, Value tiles);
  void multiplyPanel(Value point, Value panel, Value tiles, unsigned vectors);
  void measureTiles(Value point, Value tiles);
  Value firstStep(Value row);
  void prefetchWeights(Value point, Value panel, Value step, int64_t steps);
  void multiplyRows(Value point, Value panel, Value row, unsigned rows,
                    unsigned vectors);
  SmallVector<Value> sumsOf(Value point, Value panel, Value row, unsigned rows,
                            unsigned vectors);
  SmallVector<Value> sumsOfPairs(Value point, Value panel, Value row,
                                 unsigned rows, unsigned vectors);
  Value weightsAt(Value point, Value panel, Value channel, unsigned vector);
  void transformOutputs(Value firstTile, Range tiles);
  void finish(int64_t i, int64_t j, Value sum, unsigned width);

  const WinogradPlan &plan;
  ArrayRef<Output> outputs;

  PairedTiles pairs;

  Value weights, inputs, products; ///< the latter [point][tile][..]
  /// [point][tile][what is subtracted, what is multiplied by], of rows that are
  /// multiplied in pairs.
  Value measures;
  /// Whether calls share each of the three steps: of blocks whose number is not
  /// known, there is one.
  Value sharesSteps;
};
} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// [point][tile][elements] in slices from `begin` on.
Value WinogradEmitter::slices(int64_t elements, Value scratch, Value begin) {
  return viewOf(kernel, scratch, begin, {plan.points(), plan.block, elements},
                {plan.sliceStride(), plan.rowStride(elements), 1});
}

/// Weights that were transformed before.
Value WinogradEmitter::packedWeights() {
  Value tensor = conv.factor->get();
  auto type = cast<RankedTensorType>(tensor.getType());
  WindowTransform transform = {plan.form, conv.weightAxes, {}, plan.inPairs};
  for (const TransformedAxis &axis : {conv.down, conv.across})
    if (axis.isThere())
      transform.strides.push_back(axis.stride);
  RankedTensorType wanted = transformedType(type, transform, plan.panelWidth());
  SmallVector<NamedAttribute> order = {
      b.getNamedAttr("axes", b.getDenseI64ArrayAttr(transform.axes)),
      b.getNamedAttr("block", b.getI64IntegerAttr(plan.panelWidth())),
      b.getNamedAttr("strides", b.getDenseI64ArrayAttr(transform.strides)),
      b.getNamedAttr("taps", b.getI64IntegerAttr(plan.form.taps)),
      b.getNamedAttr("winograd", b.getI64IntegerAttr(plan.form.m))};
  if (plan.inPairs)
    order.push_back(b.getNamedAttr("pairs", b.getUnitAttr()));
  kernel.setPackedArgument(
      cast<BlockArgument>(tensor).getArgNumber(),
      MemRefType::get(wanted.getShape(), wanted.getElementType()),
      b.getDictionaryAttr(order));
  return kernel.memrefOf(tensor);
}

/// A place for those that the kernel transforms. From point to point there is a
/// cache line more than they have, as from slice to slice.
Value WinogradEmitter::ownWeights() {
  Value scratch = kernel.addSharedScratch(element, plan.weightElements());
  return viewOf(
      kernel, scratch, kernel.index(0),
      {plan.points(), plan.panels(), plan.pieceChannels(), plan.panelWidth()},
      {plan.weightStride(), plan.pieceChannels() * plan.panelWidth(),
       plan.panelWidth(), 1});
}

void WinogradEmitter::layOut() {
  weights = conv.hasKnownWeights ? packedWeights() : ownWeights();
  Value scratch, ring, ofProducts;
  Value zero = kernel.index(0), behind = kernel.index(plan.ringElements());
  Value last = behind;
  if (plan.shared != WinogradPlan::Shared::Positions) {
    std::tie(scratch, ring) = kernel.addScratch(
        element, plan.ringElements() + plan.measureElements(), plan.mostParts);
    ofProducts = ring;
    last = plus(ring, plan.ringElements());
    if (plan.shared && !conv.hasKnownWeights)
      kernel.allowTurns(2, plan.mostParts);
  } else if (conv.images) {
    scratch = kernel.addSharedScratch(element, plan.sharedElements() +
                                                   plan.measureElements());
    last = kernel.index(plan.sharedElements());
    kernel.allowTurns(3, plan.mostParts);
    ring = zero;
    ofProducts =
        arith::SelectOp::create(b, loc, kernel.doesAllTurns(), zero, behind);
  } else {
    // The pieces of all calls, or as one.
    std::tie(scratch, ring) =
        kernel.addScratch(element, plan.pieceElements(), plan.mostParts);
    kernel.allowTurns(3, plan.mostParts);
    Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule,
                                        allTiles(), kernel.index(plan.block));
    Value never = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    sharesSteps =
        arith::SelectOp::create(b, loc, kernel.doesAllTurns(), never, isOne);
    ring = arith::SelectOp::create(b, loc, sharesSteps, zero, ring);
    ofProducts = arith::SelectOp::create(b, loc, sharesSteps, behind, ring);
    last = arith::SelectOp::create(b, loc, sharesSteps,
                                   kernel.index(plan.sharedElements()),
                                   plus(ring, plan.ringElements()));
  }
  products =
      slices(llvm::alignTo(conv.filters, plan.lanes), scratch, ofProducts);
  inputs =
      slices(plan.pieceChannels(), scratch, plus(ring, plan.sliceStride()));
  if (plan.inPairs)
    measures = viewOf(kernel, scratch, last, {plan.points(), plan.block, 2},
                      {2 * plan.block, 2, 1});
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void WinogradEmitter::run() {
  kernel.to()->setAttr(
      kernelAttr, b.getStringAttr("winograd" + llvm::Twine(plan.form.name())));
  layOut();
  if (plan.shared == WinogradPlan::Shared::Positions)
    return emitInTurns();
  if (plan.shared && conv.hasKnownWeights)
    return emitBlocks(shareOfTiles());
  if (plan.shared)
    return emitBlocksInTurn();
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    if (!conv.hasKnownWeights)
      transformWeights({kernel.index(0), allWeights()});
    emitBlocks({kernel.index(0), allTiles()});
  });
}

WindowTiles::Range WinogradEmitter::shareOfTiles() {
  return kernel.share(allTiles(), plan.block);
}

/// The blocks, in a turn behind that of the weights.
void WinogradEmitter::emitBlocksInTurn() {
  Range tiles = shareOfTiles();
  emitTurn(1, kernel.share(allWeights(), 1),
           [&](Range range) { transformWeights(range); });
  emitTurn(2, tiles, [&](Range tiles) { emitBlocks(tiles); });
}

void WinogradEmitter::emitBlocks(Range all) {
  emitBlocks(
      all, [&](Value firstTile, Value tiles) { emitBlock(firstTile, tiles); });
}

/// Calls `body` with the first tile of each block and how many it has.
void WinogradEmitter::emitBlocks(Range all,
                                 llvm::function_ref<void(Value, Value)> body) {
  loop(all.first, all.second, plan.block, [&](Value firstTile) {
    Value tiles = kernel.index(plan.block);
    if (!plan.hasWholeBlocks())
      tiles = arith::MinUIOp::create(
          b, loc, tiles, arith::SubIOp::create(b, loc, all.second, firstTile));
    body(firstTile, tiles);
  });
}

void WinogradEmitter::emitBlock(Value firstTile, Value tiles) {
  Value first = kernel.index(0);
  transformInputs(inputs, firstTile, {first, tiles}, allChannels());
  multiply({first, kernel.index(plan.points())}, tiles);
  transformOutputs(firstTile, {first, tiles});
}

/// The only block, where calls share each of the three steps.
void WinogradEmitter::emitInTurns() {
  Value first = kernel.index(0), tiles = kernel.index(plan.block);
  if (!conv.hasKnownWeights)
    emitTurn(1, kernel.share(allWeights(), 1),
             [&](Range range) { transformWeights(range); });
  if (!conv.images)
    return emitOpenInTurns();
  Range share = kernel.share(tiles, 1);
  emitTurn(1, share, [&](Range tiles) {
    transformInputs(inputs, first, tiles, allChannels());
  });
  emitTurn(2, kernel.share(kernel.index(plan.points()), 1),
           [&](Range points) { multiply(points, tiles); });
  emitTurn(3, share, [&](Range tiles) { transformOutputs(first, tiles); });
}

/// Blocks whose number is not known. Of a single one calls share each of the
/// three steps, and several they share in the second turn. Loops are the same.
void WinogradEmitter::emitOpenInTurns() {
  Value zero = kernel.index(0), all = allTiles();
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, condition, x, y);
  };
  // What this call does of a step that has a turn of its own.
  auto inTurn = [&](int64_t number, Range share, Value whole) -> Range {
    Value end = select(kernel.isTurn(number), share.second, share.first);
    return {select(sharesSteps, share.first, zero),
            select(sharesSteps, end, whole)};
  };
  Range tiles = kernel.share(all, 1), blocks = shareOfTiles();
  Value points = kernel.index(plan.points());
  Range ofPoints = inTurn(2, kernel.share(points, 1), points);
  Value isTheirs =
      arith::OrIOp::create(b, loc, kernel.doesAllTurns(), kernel.isTurn(2));
  Value end = select(isTheirs, blocks.second, blocks.first);
  emitBlocks(
      {select(sharesSteps, zero, blocks.first), select(sharesSteps, all, end)},
      [&](Value firstTile, Value count) {
        Range inputTiles = inTurn(1, tiles, count);
        Range outputTiles = inTurn(3, tiles, count);
        transformInputs(inputs, firstTile, inputTiles, allChannels());
        multiply(ofPoints, count);
        transformOutputs(firstTile, outputTiles);
      });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Tap (i, j) of the piece that is bound: zero where the window has ended.
Value WinogradEmitter::readTap(int64_t i, int64_t j, unsigned width) {
  Position point = pointOfWindow(i, j);
  auto isThere = [&](const TransformedAxis &axis, Value first, int64_t number) {
    Value condition = hasTap(axis, first, number);
    if (condition)
      point[*axis.tap] = reader.symbol(
          least(plus(first, number * axis.stride), axis.taps - 1));
    return condition;
  };
  Value condition = both(isThere(conv.down, firstDown, i),
                         isThere(conv.across, firstAcross, j));
  return zeroUnless(condition,
                    withZeros(readFactor(conv.factor, point, width), width));
}

/// A range of the channels of all panels, one panel after the other: each
/// position is written in one run, which is fetched ahead. What is behind the
/// last filter in its vector is zero: products of it are computed, and must not
/// be slow.
void WinogradEmitter::transformWeights(Range range) {
  reader.setLane(conv.filter);
  loop(range.first, range.second, 1, [&](Value number) {
    Value channels = kernel.index(plan.pieceChannels());
    Value panel = kernel.over(number, channels, /*rest=*/false);
    Value channel = kernel.over(number, channels, /*rest=*/true);
    Value ofPiece = kernel.index(conv.channels);
    bindPiece(kernel.over(channel, ofPiece, /*rest=*/false));
    reader.bind(conv.channel, kernel.over(channel, ofPiece, /*rest=*/true));
    Value first = kernel.times(panel, plan.panelWidth());
    Range filters = {first,
                     least(plus(first, plan.panelWidth()), conv.filters)};
    alongVectors(filters, conv.filters, [&](Value filter, unsigned width) {
      reader.bind(conv.filter, filter);
      Value column = arith::SubIOp::create(b, loc, filter, first);
      transform(
          taps(),
          [&](OpBuilder &b, Location loc, ValueRange taps) {
            return emitWindowTransform(b, loc, taps, plan.form);
          },
          [&](int64_t i, int64_t j) { return readTap(i, j, width); },
          [&](int64_t i, ValueRange row) {
            for (auto [j, value] : llvm::enumerate(row))
              vector::StoreOp::create(
                  b, loc, value, weights,
                  ValueRange{kernel.index(i * positions().columns + int64_t(j)),
                             panel, channel, column});
          });
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void WinogradEmitter::multiply(Range points, Value tiles) {
  int64_t vectors = llvm::divideCeil(conv.filters, plan.lanes);
  int64_t whole = vectors / plan.size.vectors;
  auto rest = unsigned(vectors % plan.size.vectors);
  loop(points.first, points.second, 1, [&](Value point) {
    if (plan.inPairs)
      measureTiles(point, tiles);
    loop(kernel.index(0), kernel.index(whole), 1, [&](Value panel) {
      multiplyPanel(point, panel, tiles, plan.size.vectors);
    });
    if (rest != 0)
      multiplyPanel(point, kernel.index(whole), tiles, rest);
  });
}

/// Rows of an unfinished block are multiplied as they are: nobody reads them.
void WinogradEmitter::multiplyPanel(Value point, Value panel, Value tiles,
                                    unsigned vectors) {
  unsigned rows = plan.size.rows;
  int64_t whole = plan.block / rows * rows;
  loop(kernel.index(0), least(tiles, whole), rows,
       [&](Value row) { multiplyRows(point, panel, row, rows, vectors); });
  if (whole != plan.block)
    loop(kernel.index(whole), tiles, plan.block, [&](Value row) {
      multiplyRows(point, panel, row, unsigned(plan.block - whole), vectors);
    });
}

/// Finds out what is to know of the rows of a position, and makes those that
/// are of another size than weights as large as these.
void WinogradEmitter::measureTiles(Value point, Value tiles) {
  loop(kernel.index(0), tiles, 1, [&](Value tile) {
    auto load = [&](Value place, unsigned width) -> Value {
      return vector::LoadOp::create(b, loc, VectorType::get(width, element),
                                    inputs, ValueRange{point, tile, place});
    };
    Value place[] = {point, tile};
    PairedTiles::Measures ofTile = pairs.measure(load);
    auto branch = scf::IfOp::create(b, loc, pairs.isLikeWeights(ofTile),
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    pairs.storeFacts(pairs.factsOf(ofTile), measures, place);
    b.setInsertionPointToStart(branch.elseBlock());
    PairedTiles::Facts scaled =
        pairs.scaleRow(load, [&](Value vector, Value channel) {
          vector::StoreOp::create(b, loc, vector, inputs,
                                  ValueRange{point, tile, channel});
        });
    pairs.storeFacts(scaled, measures, place);
  });
}

/// Where the next panel of weights begins to be fetched while `row` and what
/// follows are multiplied. The weights are one stream that comes from beyond
/// the second cache; so that it comes all the time, each step of a panel
/// fetches its share of the next.
Value WinogradEmitter::firstStep(Value row) {
  Value number =
      arith::DivUIOp::create(b, loc, row, kernel.index(plan.size.rows));
  return arith::MulIOp::create(b, loc, number,
                               kernel.index(plan.pieceChannels()));
}

/// Fetches for the panel behind `panel`, which in memory may be the first one
/// of the next point: lines for so many `steps` from `step` on.
void WinogradEmitter::prefetchWeights(Value point, Value panel, Value step,
                                      int64_t steps) {
  Value next = plus(panel, 1);
  int64_t turns = int64_t(llvm::divideCeil(plan.block, plan.size.rows));
  int64_t ofStep = plan.panelWidth(), inPanel = plan.pieceChannels() * ofStep;
  // Where a vector is less than a line, lines.
  constexpr int64_t bytesOfLine = 64, bytesOfF32 = 4;
  int64_t line = std::max<int64_t>(plan.lanes, bytesOfLine / bytesOfF32);
  int64_t lines = int64_t(llvm::divideCeil(inPanel, line));
  Value first = kernel.over(kernel.times(step, ofStep),
                            kernel.index(line * turns), /*rest=*/false);
  for (int64_t more = 0; more * line * turns < steps * ofStep; ++more) {
    Value place = plus(first, more);
    if (plan.block <= rowsOfRuns && lines % runsAtOnce == 0)
      place = sideBySide(kernel, place, lines, runsAtOnce);
    place = kernel.times(place, line);
    memref::PrefetchOp::create(
        b, loc, weights, ValueRange{point, next, kernel.index(0), place},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  }
}

/// A vector of weights of a channel, or of what is behind them.
Value WinogradEmitter::weightsAt(Value point, Value panel, Value channel,
                                 unsigned vector) {
  return vector::LoadOp::create(
      b, loc, vectorType, weights,
      ValueRange{point, panel, channel,
                 kernel.index(int64_t(vector) * plan.lanes)});
}

/// The sums of a tile in registers, row by row.
SmallVector<Value> WinogradEmitter::sumsOf(Value point, Value panel, Value row,
                                           unsigned rows, unsigned vectors) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  SmallVector<Value> start(size_t(rows) * vectors, zero);
  Value step = firstStep(row);
  int64_t channels = plan.pieceChannels();
  int64_t together = stepsOfQuestion(plan.lanes, channels);
  return emitSteps(
      kernel, kernel.index(0), kernel.index(channels), together, start,
      [&](Value channel) {
        prefetchWeights(point, panel, kernel.plus(step, channel), together);
      },
      [&](Value channel, ValueRange before) {
        SmallVector<Value> factors;
        for (unsigned j = 0; j < vectors; ++j)
          factors.push_back(weightsAt(point, panel, channel, j));
        return addProducts(before, factors, [&](unsigned i) -> Value {
          return memref::LoadOp::create(
              b, loc, inputs, ValueRange{point, plus(row, i), channel});
        });
      });
}

/// The same in pairs.
SmallVector<Value> WinogradEmitter::sumsOfPairs(Value point, Value panel,
                                                Value row, unsigned rows,
                                                unsigned vectors) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, inputs);
  int64_t stride = plan.rowStride(plan.pieceChannels());
  Value place = kernel.plus(kernel.times(point, plan.sliceStride()),
                            kernel.times(row, stride));
  Value first = addressOf(kernel, metadata.getBaseBuffer(),
                          kernel.plus(metadata.getOffset(), place));
  Value step = firstStep(row);
  SmallVector<unsigned> lanes(vectors, plan.lanes);
  SmallVector<Value> sums = pairs.multiply(
      {first, stride, rows, lanes},
      [&](Value channel, unsigned vector) {
        return weightsAt(point, panel, channel, vector);
      },
      [&](Value channel) {
        for (int64_t number = 0; number < stepOfPairs; ++number)
          prefetchWeights(point, panel,
                          kernel.plus(step, plus(channel, number)), 1);
      });
  Value behind = kernel.index(plan.pieceChannels() + rowsBehindPaired - 1);
  for (unsigned i = 0; i < rows; ++i) {
    Value place[] = {point, plus(row, i)};
    PairedTiles::Facts ofSums = pairs.loadFacts(measures, place);
    for (unsigned j = 0; j < vectors; ++j) {
      Value &sum = sums[i * vectors + j];
      sum = pairs.complete(sum, weightsAt(point, panel, behind, j), ofSums);
    }
  }
  return sums;
}

/// A tile of products: rows by vectors of columns.
void WinogradEmitter::multiplyRows(Value point, Value panel, Value row,
                                   unsigned rows, unsigned vectors) {
  SmallVector<Value> sums = plan.inPairs
                                ? sumsOfPairs(point, panel, row, rows, vectors)
                                : sumsOf(point, panel, row, rows, vectors);
  Value columns =
      arith::MulIOp::create(b, loc, panel, kernel.index(plan.panelWidth()));
  for (unsigned i = 0; i < rows; ++i)
    for (unsigned j = 0; j < vectors; ++j)
      vector::StoreOp::create(
          b, loc, sums[i * vectors + j], products,
          ValueRange{point, plus(row, i),
                     plus(columns, int64_t(j) * plan.lanes)});
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void WinogradEmitter::transformOutputs(Value firstTile, Range tiles) {
  reader.setLane(conv.filter);
  TilesAhead ahead(kernel, reader, root, plan, conv.filter);
  ahead.addOutputs(outputs);
  overTiles(firstTile, tiles, ahead, [&](Value number, const TileCorner &next) {
    alongVectors(conv.filters, [&](Value filter, unsigned width) {
      reader.bind(conv.filter, filter);
      ahead.ask(next);
      transform(
          positions(),
          [&](OpBuilder &b, Location loc, ValueRange sums) {
            return emitOutputTransform(b, loc, sums, plan.form);
          },
          [&](int64_t i, int64_t j) -> Value {
            return vector::LoadOp::create(
                b, loc, vectorType, products,
                ValueRange{kernel.index(i * positions().columns + j), number,
                           filter});
          },
          [&](int64_t i, ValueRange sums) {
            onlyIf(isInside(conv.down, row, i), [&] {
              for (int64_t j = 0; j < plan.form.m; ++j)
                onlyIf(isInside(conv.across, column, j),
                       [&] { finish(i, j, sums[j], width); });
            });
          });
    });
  });
}

/// Computes and stores what follows from the output (i, j) of the tile.
void WinogradEmitter::finish(int64_t i, int64_t j, Value sum, unsigned width) {
  Position point = pointOfImage();
  point[conv.filter] = getAffineDimExpr(conv.filter, b.getContext());
  if (conv.down.isThere())
    point[*conv.down.loop] = pixelAt(conv.down, i);
  point[*conv.across.loop] = pixelAt(conv.across, j);
  storeOutputs(reader, root, outputs, point, width, withoutRest(sum, width));
}

void emitWinograd(Kernel &kernel, linalg::GenericOp root,
                  const WinogradPlan &plan, ArrayRef<Output> outputs) {
  WinogradEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
