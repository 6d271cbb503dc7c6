//===- WinogradGradient.cpp - gradients by windows ------------------------===//
#include "codegen/cpu/WinogradGradient.h"
#include "codegen/cpu/InPlace.h"
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
class GradientEmitter : WindowTiles {
public:
  GradientEmitter(Kernel &kernel, linalg::GenericOp root,
                  const GradientPlan &plan, ArrayRef<Output> outputs)
      : WindowTiles(kernel, root, plan), plan(plan), outputs(outputs) {}

  void run();

private:
  void layOut();
  Range tilesOfGroup(Value group);
  void addUp(Value group, Range channels);
  void overPieceRows(llvm::function_ref<void(Value, Value)> ofPiece);
  void clear(Value group, Range channels);
  void transformSlopes(Value firstTile, Range tiles);
  Value readSlope(int64_t i, int64_t j, unsigned width);
  void multiply(Value group, Value isFirst, Value tiles, Range channels);
  void multiplyPanel(ArrayRef<Value> place, Value isFirst, Value tiles,
                     Range channels, unsigned vectors);
  void multiplyRows(ArrayRef<Value> place, Value channel, Value isFirst,
                    Value tiles, unsigned rows, unsigned vectors);
  void finish(Range channels);
  Value sumOfGroups(int64_t i, int64_t j, Value row, Value filter);
  void storeTap(int64_t i, int64_t j, Value tap, unsigned width);

  const GradientPlan &plan;
  ArrayRef<Output> outputs;

  Value inputs, slopes; ///< [point][tile][..]
  Value sums;           ///< [group][point][channel][column]
};
} // namespace

//===----------------------------------------------------------------------===//
// What calls do
//===----------------------------------------------------------------------===//

void GradientEmitter::layOut() {
  // A part of the channels transforms few of the inputs.
  constexpr int64_t mostScratchBytes = 32 << 20, mostParts = 16;
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t parts = std::clamp<int64_t>(
      mostScratchBytes / (plan.blockElements() * bytes), 2, mostParts);
  auto [scratch, begin] =
      kernel.addScratch(element, plan.blockElements(), parts);
  if (plan.groups > 1 && kernel.hasParts())
    kernel.allowTurns(2, parts);
  inputs = viewOf(
      kernel, scratch, begin, {plan.points(), plan.block, plan.pieceChannels()},
      {plan.inputStride(), plan.rowStride(plan.pieceChannels()), 1});
  slopes =
      viewOf(kernel, scratch, plus(begin, plan.points() * plan.inputStride()),
             {plan.points(), plan.block, plan.columns()},
             {plan.slopeStride(), plan.rowStride(plan.columns()), 1});
  Value memory = kernel.addSharedScratch(element, plan.sumElements());
  sums = viewOf(
      kernel, memory, kernel.index(0),
      {plan.groups, plan.points(), plan.pieceChannels(), plan.columns()},
      {plan.points() * plan.sumStride(), plan.sumStride(), plan.columns(), 1});
}

void GradientEmitter::run() {
  kernel.to()->setAttr(
      kernelAttr, b.getStringAttr("winograd" + llvm::Twine(plan.form.name())));
  layOut();
  Value first = kernel.index(0), groups = kernel.index(plan.groups);
  Range all = {first, kernel.index(conv.channels)};
  if (plan.groups == 1) {
    Range channels = kernel.share(all.second, plan.lanes);
    addUp(first, channels);
    finish(channels);
    return;
  }
  auto addUpGroups = [&](Range range) {
    loop(range.first, range.second, 1, [&](Value group) { addUp(group, all); });
  };
  if (!kernel.hasParts()) {
    addUpGroups({first, groups});
    finish(all);
    return;
  }
  emitTurn(1, kernel.share(groups, 1), addUpGroups);
  emitTurn(2, kernel.share(all.second, plan.lanes),
           [&](Range channels) { finish(channels); });
}

/// Whole blocks, as equal in number as they can be.
WindowTiles::Range GradientEmitter::tilesOfGroup(Value group) {
  Value tiles = allTiles();
  if (plan.groups == 1)
    return {kernel.index(0), tiles};
  int64_t ofTurn = plan.groups * plan.block;
  Value blocks = kernel.over(plus(tiles, ofTurn - 1), kernel.index(ofTurn),
                             /*rest=*/false);
  Value ofGroup = kernel.times(blocks, plan.block);
  Value begin = kernel.times(group, ofGroup);
  return {kernel.least(begin, tiles),
          kernel.least(kernel.plus(begin, ofGroup), tiles)};
}

/// The sums of the tiles of a group, of `channels`.
void GradientEmitter::addUp(Value group, Range channels) {
  Range tiles = tilesOfGroup(group);
  if (!conv.images) {
    Value isEmpty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          tiles.first, tiles.second);
    onlyIf(isEmpty, [&] { clear(group, channels); });
  }
  loop(tiles.first, tiles.second, plan.block, [&](Value firstTile) {
    Value count = kernel.index(plan.block);
    if (!plan.hasWholeBlocks())
      count = arith::MinUIOp::create(
          b, loc, count,
          arith::SubIOp::create(b, loc, tiles.second, firstTile));
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          firstTile, tiles.first);
    Range range = {kernel.index(0), count};
    transformInputs(inputs, firstTile, range, channels);
    transformSlopes(firstTile, range);
    multiply(group, isFirst, count, channels);
  });
}

/// Goes over the pieces of a window, and the rows that their channels begin at.
void GradientEmitter::overPieceRows(
    llvm::function_ref<void(Value, Value)> ofPiece) {
  loop(kernel.index(0), kernel.index(plan.pieces()), 1, [&](Value piece) {
    ofPiece(piece, kernel.times(piece, conv.channels));
  });
}

/// Without tiles sums are zero.
void GradientEmitter::clear(Value group, Range channels) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  loop(kernel.index(0), kernel.index(plan.points()), 1, [&](Value point) {
    overPieceRows([&](Value, Value firstRow) {
      loop(channels.first, channels.second, 1, [&](Value channel) {
        alongVectors(plan.columns(), [&](Value column, unsigned) {
          vector::StoreOp::create(
              b, loc, zero, sums,
              ValueRange{group, point, kernel.plus(firstRow, channel), column});
        });
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Gradients by outputs
//===----------------------------------------------------------------------===//

/// That of pixel (i, j) of the tile; zero outside of the image.
Value GradientEmitter::readSlope(int64_t i, int64_t j, unsigned width) {
  Value down = isInside(conv.down, row, i);
  Value right = isInside(conv.across, column, j);
  Position point = pointOfImage();
  point[conv.filter] = getAffineDimExpr(conv.filter, b.getContext());
  auto place = [&](const TransformedAxis &axis, Value start, int64_t offset,
                   bool isKnown) {
    if (axis.isThere())
      point[*axis.loop] =
          isKnown ? pixelAt(axis, offset)
                  : reader.symbol(least(plus(start, offset * axis.dilation),
                                        axis.extent - 1));
  };
  place(conv.down, row, i, !down);
  place(conv.across, column, j, !right);
  Value value = withZeros(readFactor(conv.factor, point, width), width);
  return zeroUnless(both(down, right), value);
}

void GradientEmitter::transformSlopes(Value firstTile, Range tiles) {
  reader.setLane(conv.filter);
  TilesAhead ahead(kernel, reader, root, plan, conv.filter);
  ahead.addSlopes();
  overTiles(firstTile, tiles, ahead, [&](Value number, const TileCorner &next) {
    alongVectors(conv.filters, [&](Value filter, unsigned width) {
      reader.bind(conv.filter, filter);
      ahead.ask(next);
      transformTo(
          slopes, number, filter, pixels(),
          [&](OpBuilder &b, Location loc, ValueRange slopes) {
            return emitSlopeTransform(b, loc, slopes, plan.form);
          },
          [&](int64_t i, int64_t j) { return readSlope(i, j, width); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void GradientEmitter::multiply(Value group, Value isFirst, Value tiles,
                               Range channels) {
  int64_t whole = plan.columns() / plan.panelWidth() * plan.panelWidth();
  auto rest = unsigned((plan.columns() - whole) / plan.lanes);
  loop(kernel.index(0), kernel.index(plan.points()), 1, [&](Value point) {
    overPieceRows([&](Value, Value firstRow) {
      loop(kernel.index(0), kernel.index(whole), plan.panelWidth(),
           [&](Value column) {
             multiplyPanel({group, point, firstRow, column}, isFirst, tiles,
                           channels, plan.size.vectors);
           });
      if (rest != 0)
        multiplyPanel({group, point, firstRow, kernel.index(whole)}, isFirst,
                      tiles, channels, rest);
    });
  });
}

/// `place` is a group, a point, the row of the first channel, and the first
/// column.
void GradientEmitter::multiplyPanel(ArrayRef<Value> place, Value isFirst,
                                    Value tiles, Range channels,
                                    unsigned vectors) {
  unsigned rows = plan.size.rows;
  int64_t whole = conv.channels / rows * rows;
  auto multiply = [&](unsigned count) {
    return [&, count](Value channel) {
      multiplyRows(place, channel, isFirst, tiles, count, vectors);
    };
  };
  loop(channels.first, least(channels.second, whole), rows, multiply(rows));
  if (whole != conv.channels)
    loop(kernel.index(whole), channels.second, rows,
         multiply(unsigned(conv.channels - whole)));
}

/// Adds to a tile of sums what the tiles of a block have in registers.
void GradientEmitter::multiplyRows(ArrayRef<Value> place, Value channel,
                                   Value isFirst, Value tiles, unsigned rows,
                                   unsigned vectors) {
  Value group = place[0], point = place[1], column = place[3];
  Value firstRow = kernel.plus(place[2], channel);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType));
  SmallVector<Value> start(size_t(rows) * vectors, zero), rowsOf, columnsOf;
  for (unsigned i = 0; i < rows; ++i)
    rowsOf.push_back(plus(firstRow, i));
  for (unsigned j = 0; j < vectors; ++j)
    columnsOf.push_back(plus(column, int64_t(j) * plan.lanes));
  for (Value row : rowsOf)
    for (Value column : columnsOf)
      memref::PrefetchOp::create(b, loc, sums,
                                 ValueRange{group, point, row, column},
                                 /*isWrite=*/true, /*localityHint=*/3,
                                 /*isDataCache=*/true);
  SmallVector<Value> added = emitLoop(
      b, loc, kernel.index(0), tiles, kernel.index(1), start,
      [&](Value tile, ValueRange before) {
        SmallVector<Value> factors;
        for (Value column : columnsOf)
          factors.push_back(vector::LoadOp::create(
              b, loc, vectorType, slopes, ValueRange{point, tile, column}));
        return addProducts(before, factors, [&](unsigned row) -> Value {
          return memref::LoadOp::create(b, loc, inputs,
                                        ValueRange{point, tile, rowsOf[row]});
        });
      });
  auto store = [&](bool adds) {
    for (unsigned i = 0; i < rows; ++i)
      for (unsigned j = 0; j < vectors; ++j) {
        SmallVector<Value> at = {group, point, rowsOf[i], columnsOf[j]};
        Value sum = added[i * vectors + j];
        if (adds)
          sum = arith::AddFOp::create(
              b, loc, vector::LoadOp::create(b, loc, vectorType, sums, at),
              sum);
        vector::StoreOp::create(b, loc, sum, sums, at);
      }
  };
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  store(/*adds=*/false);
  b.setInsertionPointToStart(branch.elseBlock());
  store(/*adds=*/true);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Transforms the sums of `channels`, and computes and stores what follows.
void GradientEmitter::finish(Range channels) {
  reader.setLane(conv.filter);
  overPieceRows([&](Value piece, Value firstRow) {
    bindPiece(piece);
    loop(channels.first, channels.second, 1, [&](Value channel) {
      reader.bind(conv.channel, channel);
      Value row = kernel.plus(firstRow, channel);
      alongVectors(conv.filters, [&](Value filter, unsigned width) {
        reader.bind(conv.filter, filter);
        transform(
            positions(),
            [&](OpBuilder &b, Location loc, ValueRange sums) {
              return emitWindowSums(b, loc, sums, plan.form);
            },
            [&](int64_t i, int64_t j) {
              return sumOfGroups(i, j, row, filter);
            },
            [&](int64_t i, ValueRange taps) {
              for (auto [j, tap] : llvm::enumerate(taps))
                storeTap(i, int64_t(j), tap, width);
            });
      });
    });
  });
}

/// Of position (i, j).
Value GradientEmitter::sumOfGroups(int64_t i, int64_t j, Value row,
                                   Value filter) {
  Value sum;
  for (int64_t group = 0; group < plan.groups; ++group) {
    Value ofGroup = vector::LoadOp::create(
        b, loc, vectorType, sums,
        ValueRange{kernel.index(group),
                   kernel.index(i * positions().columns + j), row, filter});
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, ofGroup)) : ofGroup;
  }
  return sum;
}

/// Stores what follows from tap (i, j) of a piece, where the window has it.
void GradientEmitter::storeTap(int64_t i, int64_t j, Value tap,
                               unsigned width) {
  Value condition = both(hasTap(conv.down, firstDown, i),
                         hasTap(conv.across, firstAcross, j));
  onlyIf(condition, [&] {
    storeOutputs(reader, root, outputs, pointOfWindow(i, j), width,
                 withoutRest(tap, width));
  });
}

void emitGradient(Kernel &kernel, linalg::GenericOp root,
                  const GradientPlan &plan, ArrayRef<Output> outputs) {
  GradientEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
