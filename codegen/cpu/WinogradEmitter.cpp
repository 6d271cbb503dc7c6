//===- WinogradEmitter.cpp - convolutions of 3x3 windows by tiles ---------===//
//
// In the ring of slices, slice p of the products overwrites slice p-1 of the
// inputs, which has been multiplied by then:
//
//     slice      0    1    2   ...  P-1   P
//     inputs          0    1   ...  P-2  P-1     [tiles][C]
//     products   0    1    2   ...  P-1          [tiles][K]
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/Winograd.h"
#include "codegen/cpu/WinogradAhead.h"
#include "codegen/cpu/WinogradMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
class WinogradEmitter {
public:
  WinogradEmitter(Kernel &kernel, linalg::GenericOp root,
                  const WinogradPlan &plan, ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), conv(plan.conv), outputs(outputs),
        element(getElementTypeOrSelf(root.getResult(0))) {}

  void run();

private:
  using Then = llvm::function_ref<void(Value)>;
  using AlongVectors = llvm::function_ref<void(Value, unsigned)>;
  /// Along one axis of a tile or window.
  using Transform =
      llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>;
  /// A half-open range of tiles or positions.
  using Range = std::pair<Value, Value>;

  Value plus(Value value, int64_t offset);
  Value least(Value value, int64_t bound);
  void loop(Value from, Value to, int64_t step, Then body);
  void alongVectors(int64_t extent, AlongVectors body);

  void layOut();
  Value packedWeights();
  Value ownWeights();
  Value slices(int64_t elements, Value scratch, Value begin);
  Value allTiles();
  Range shareOfTiles();
  void emitTurn(int64_t number, Range range,
                llvm::function_ref<void(Range)> step);
  void emitBlocks(Range all);
  void emitBlocksInTurn();
  void emitInTurns();
  void emitBlock(Value firstTile, Value tiles);
  void transformWeights(Range channels);
  TileCorner cornerOf(Value tile);
  void placeTile(Value tile);
  AffineExpr placeInput(unsigned loop, Value start, int64_t offset,
                        int64_t reach, int64_t extent);
  void transformTile(int64_t size, Transform transform,
                     llvm::function_ref<Value(int64_t, int64_t)> element,
                     llvm::function_ref<void(int64_t, ValueRange)> then);
  void transformInputs(Value firstTile, Range tiles);
  void multiply(Range points, Value tiles);
  void multiplyPanel(Value point, Value panel, Value tiles, unsigned vectors);
  Value firstStep(Value row);
  void prefetchWeights(Value point, Value panel, Value step);
  void multiplyRows(Value point, Value panel, Value row, unsigned rows,
                    unsigned vectors);
  void transformOutputs(Value firstTile, Range tiles);
  void ifInside(Value position, int64_t offset, int64_t reach, int64_t extent,
                llvm::function_ref<void()> then);
  void finish(int64_t i, int64_t j, Value sum, unsigned width);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const WinogradPlan &plan;
  const WindowConv &conv;
  ArrayRef<Output> outputs;
  Type element;

  Value weights, inputs, products; ///< the latter [point][tile][..]
  Value row, column;               ///< of the first output of the tile
};
} // namespace

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value WinogradEmitter::plus(Value value, int64_t offset) {
  return kernel.plus(value, kernel.index(offset));
}

Value WinogradEmitter::least(Value value, int64_t bound) {
  return kernel.least(value, kernel.index(bound));
}

void WinogradEmitter::loop(Value from, Value to, int64_t step, Then body) {
  emitTurns(kernel, reader, from, to, step, body);
}

/// Full vectors of `extent` elements, and what is left of them.
void WinogradEmitter::alongVectors(int64_t extent, AlongVectors body) {
  int64_t whole = extent / plan.lanes * plan.lanes;
  loop(kernel.index(0), kernel.index(whole), plan.lanes,
       [&](Value at) { body(at, plan.lanes); });
  if (whole != extent)
    body(kernel.index(whole), unsigned(extent - whole));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// [point][tile][elements] in slices from `begin` on.
Value WinogradEmitter::slices(int64_t elements, Value scratch, Value begin) {
  SmallVector<int64_t> sizes = {plan.points(), plan.block, elements};
  SmallVector<int64_t> strides = {plan.sliceStride(), plan.rowStride(elements),
                                  1};
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get(sizes, element, layout), scratch,
      OpFoldResult(begin), getAsIndexOpFoldResult(b.getContext(), sizes),
      getAsIndexOpFoldResult(b.getContext(), strides));
}

/// Weights that were transformed before.
Value WinogradEmitter::packedWeights() {
  Value tensor = conv.weights->get();
  auto type = cast<RankedTensorType>(tensor.getType());
  RankedTensorType wanted = transformedType(type, plan.m, plan.panelWidth());
  kernel.setPackedArgument(
      cast<BlockArgument>(tensor).getArgNumber(),
      MemRefType::get(wanted.getShape(), wanted.getElementType()),
      b.getDictionaryAttr(
          {b.getNamedAttr("block", b.getI64IntegerAttr(plan.panelWidth())),
           b.getNamedAttr("winograd", b.getI64IntegerAttr(plan.m))}));
  return kernel.memrefOf(tensor);
}

/// A place for those that the kernel transforms. From point to point there is a
/// cache line more than they have, as from slice to slice.
Value WinogradEmitter::ownWeights() {
  Value scratch = kernel.addSharedScratch(element, plan.weightElements());
  SmallVector<int64_t> sizes = {plan.points(), plan.panels(), conv.channels,
                                plan.panelWidth()};
  SmallVector<int64_t> strides = {plan.weightStride(),
                                  conv.channels * plan.panelWidth(),
                                  plan.panelWidth(), 1};
  auto layout = StridedLayoutAttr::get(b.getContext(), /*offset=*/0, strides);
  return memref::ReinterpretCastOp::create(
      b, loc, MemRefType::get(sizes, element, layout), scratch,
      /*offset=*/0, sizes, strides);
}

void WinogradEmitter::layOut() {
  weights = conv.hasKnownWeights ? packedWeights() : ownWeights();
  Value scratch, ring, ofProducts;
  if (plan.shared == WinogradPlan::Shared::Positions) {
    scratch = kernel.addSharedScratch(element, plan.sharedElements());
    kernel.allowTurns(3, plan.mostParts);
    ring = kernel.index(0);
    ofProducts = arith::SelectOp::create(b, loc, kernel.doesAllTurns(), ring,
                                         kernel.index(plan.ringElements()));
  } else {
    std::tie(scratch, ring) =
        kernel.addScratch(element, plan.ringElements(), plan.mostParts);
    ofProducts = ring;
    if (plan.shared && !conv.hasKnownWeights)
      kernel.allowTurns(2, plan.mostParts);
  }
  products =
      slices(llvm::alignTo(conv.filters, plan.lanes), scratch, ofProducts);
  inputs = slices(conv.channels, scratch, plus(ring, plan.sliceStride()));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void WinogradEmitter::run() {
  kernel.to()->setAttr(kernelAttr,
                       b.getStringAttr("winograd" + llvm::Twine(plan.m)));
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
      transformWeights({kernel.index(0), kernel.index(conv.channels)});
    emitBlocks({kernel.index(0), allTiles()});
  });
}

Value WinogradEmitter::allTiles() {
  Value tiles = kernel.index(plan.tilesOfImage());
  if (!conv.image)
    return tiles;
  return arith::MulIOp::create(b, loc, kernel.loopExtent(root, *conv.image),
                               tiles);
}

WinogradEmitter::Range WinogradEmitter::shareOfTiles() {
  return kernel.share(allTiles(), plan.block);
}

/// The blocks, in a turn behind that of the weights.
void WinogradEmitter::emitBlocksInTurn() {
  Range tiles = shareOfTiles();
  emitTurn(1, kernel.share(kernel.index(conv.channels), 1),
           [&](Range channels) { transformWeights(channels); });
  emitTurn(2, tiles, [&](Range tiles) { emitBlocks(tiles); });
}

void WinogradEmitter::emitTurn(int64_t number, Range range,
                               llvm::function_ref<void(Range)> step) {
  kernel.emitTurn(number, [&] {
    LaneReader::Scope scope(reader);
    step(range);
  });
}

void WinogradEmitter::emitBlocks(Range all) {
  loop(all.first, all.second, plan.block, [&](Value firstTile) {
    Value tiles = kernel.index(plan.block);
    if (!plan.hasWholeBlocks())
      tiles = arith::MinUIOp::create(
          b, loc, tiles, arith::SubIOp::create(b, loc, all.second, firstTile));
    emitBlock(firstTile, tiles);
  });
}

void WinogradEmitter::emitBlock(Value firstTile, Value tiles) {
  Value first = kernel.index(0);
  transformInputs(firstTile, {first, tiles});
  multiply({first, kernel.index(plan.points())}, tiles);
  transformOutputs(firstTile, {first, tiles});
}

/// The only block, where calls share each of the three steps.
void WinogradEmitter::emitInTurns() {
  Value first = kernel.index(0), tiles = kernel.index(plan.block);
  if (!conv.hasKnownWeights)
    emitTurn(1, kernel.share(kernel.index(conv.channels), 1),
             [&](Range channels) { transformWeights(channels); });
  Range share = kernel.share(tiles, 1);
  emitTurn(1, share, [&](Range tiles) { transformInputs(first, tiles); });
  emitTurn(2, kernel.share(kernel.index(plan.points()), 1),
           [&](Range points) { multiply(points, tiles); });
  emitTurn(3, share, [&](Range tiles) { transformOutputs(first, tiles); });
}

/// Tiles are numbered image by image, row by row.
TileCorner WinogradEmitter::cornerOf(Value tile) {
  Value ofImage = kernel.index(plan.tilesOfImage());
  Value across = kernel.index(plan.tilesAcross()), m = kernel.index(plan.m);
  TileCorner corner;
  if (conv.image) {
    corner.image = arith::DivUIOp::create(b, loc, tile, ofImage);
    tile = arith::RemUIOp::create(b, loc, tile, ofImage);
  }
  Value down = arith::DivUIOp::create(b, loc, tile, across);
  Value right = arith::RemUIOp::create(b, loc, tile, across);
  corner.row = arith::MulIOp::create(b, loc, down, m);
  corner.column = arith::MulIOp::create(b, loc, right, m);
  return corner;
}

void WinogradEmitter::placeTile(Value tile) {
  TileCorner corner = cornerOf(tile);
  if (conv.image)
    reader.bind(*conv.image, corner.image);
  row = corner.row;
  column = corner.column;
  reader.bind(conv.row, row);
  reader.bind(conv.column, column);
}

/// Transforms the columns of the square of `size` that `element` reads, then
/// one row after the other, with which `then` goes on.
void WinogradEmitter::transformTile(
    int64_t size, Transform transform,
    llvm::function_ref<Value(int64_t, int64_t)> element,
    llvm::function_ref<void(int64_t, ValueRange)> then) {
  SmallVector<SmallVector<Value>> columns;
  for (int64_t j = 0; j < size; ++j) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(element(i, j));
    columns.push_back(transform(b, loc, values));
  }
  for (size_t i = 0; i < columns[0].size(); ++i) {
    SmallVector<Value> values;
    for (ArrayRef<Value> column : columns)
      values.push_back(column[i]);
    then(int64_t(i), transform(b, loc, values));
  }
}

/// Where the input of a tile is that begins at `start` of the loop `loop`, of
/// tiles that reach to `reach`. What would be outside is read at the edge: no
/// output that is kept depends on it.
AffineExpr WinogradEmitter::placeInput(unsigned loop, Value start,
                                       int64_t offset, int64_t reach,
                                       int64_t extent) {
  if (reach - plan.m - 1 + offset <= extent)
    return getAffineDimExpr(loop, b.getContext()) + offset;
  return reader.symbol(least(plus(start, offset), extent - 1));
}

void WinogradEmitter::transformInputs(Value firstTile, Range tiles) {
  int64_t size = plan.m + 2;
  AffineMap map = root.getMatchingIndexingMap(conv.input);
  reader.setLane(conv.channel);
  TilesAhead ahead(kernel, reader, root, plan, conv.channel);
  ahead.addInputs();
  loop(tiles.first, tiles.second, 1, [&](Value number) {
    Value tile = arith::AddIOp::create(b, loc, firstTile, number);
    placeTile(tile);
    TileCorner next = ahead.empty() ? TileCorner() : cornerOf(plus(tile, 1));
    SmallVector<AffineExpr> down, right;
    for (int64_t i = 0; i < size; ++i) {
      down.push_back(placeInput(conv.row, row, i, plan.tilesDown() * plan.m + 2,
                                conv.inputHeight));
      right.push_back(placeInput(conv.column, column, i,
                                 plan.tilesAcross() * plan.m + 2,
                                 conv.inputWidth));
    }
    auto read = [&](int64_t i, int64_t j, unsigned width) -> Value {
      Position point;
      for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
        point.push_back(loop == conv.row      ? down[i]
                        : loop == conv.column ? right[j]
                        : loop == conv.channel || loop == conv.image
                            ? getAffineDimExpr(loop, b.getContext())
                            : getAffineConstantExpr(0, b.getContext()));
      Position position;
      for (AffineExpr expr : map.getResults())
        position.push_back(canonical(expr.replaceDims(point)));
      Value value = reader.materialize(
          reader.read(conv.input->get(), position, width), width);
      if (getElementTypeOrSelf(value) == element)
        return value;
      return arith::ExtFOp::create(b, loc, VectorType::get(width, element),
                                   value);
    };
    alongVectors(conv.channels, [&](Value channel, unsigned width) {
      reader.bind(conv.channel, channel);
      ahead.ask(next);
      transformTile(
          size, emitInputTransform,
          [&](int64_t i, int64_t j) { return read(i, j, width); },
          [&](int64_t i, ValueRange row) {
            for (auto [j, value] : llvm::enumerate(row))
              vector::StoreOp::create(
                  b, loc, value, inputs,
                  ValueRange{kernel.index(i * size + j), number, channel});
          });
    });
  });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// What is behind the last filter in its vector is zero: products of it are
/// computed, and must not be slow.
void WinogradEmitter::transformWeights(Range channels) {
  int64_t size = plan.m + 2, windowSize = 3;
  auto type = VectorType::get(plan.lanes, element);
  AffineMap map = root.getMatchingIndexingMap(conv.weights);
  auto read = [&](int64_t i, int64_t j, unsigned width) -> Value {
    Position position = {getAffineConstantExpr(i, b.getContext()),
                         getAffineConstantExpr(j, b.getContext()),
                         map.getResult(2), map.getResult(3)};
    Value value = reader.materialize(
        reader.read(conv.weights->get(), position, width), width);
    if (getElementTypeOrSelf(value) != element)
      value = arith::ExtFOp::create(b, loc, VectorType::get(width, element),
                                    value);
    if (width == plan.lanes)
      return value;
    return vector::InsertStridedSliceOp::create(
        b, loc, value,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type)),
        ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
  };
  reader.setLane(conv.filter);
  loop(channels.first, channels.second, 1, [&](Value channel) {
    reader.bind(conv.channel, channel);
    alongVectors(conv.filters, [&](Value filter, unsigned width) {
      reader.bind(conv.filter, filter);
      Value panelWidth = kernel.index(plan.panelWidth());
      Value panel = kernel.over(filter, panelWidth, /*rest=*/false);
      Value column = kernel.over(filter, panelWidth, /*rest=*/true);
      transformTile(
          windowSize,
          [&](OpBuilder &b, Location loc, ValueRange taps) {
            return emitWindowTransform(b, loc, taps, plan.m);
          },
          [&](int64_t i, int64_t j) { return read(i, j, width); },
          [&](int64_t i, ValueRange row) {
            for (auto [j, value] : llvm::enumerate(row))
              vector::StoreOp::create(
                  b, loc, value, weights,
                  ValueRange{kernel.index(i * size + int64_t(j)), panel,
                             channel, column});
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

/// Where the next panel of weights begins to be fetched while `row` and what
/// follows are multiplied. The weights are one stream that comes from beyond
/// the second cache; so that it comes all the time, each step of a panel
/// fetches its share of the next.
Value WinogradEmitter::firstStep(Value row) {
  Value number =
      arith::DivUIOp::create(b, loc, row, kernel.index(plan.size.rows));
  return arith::MulIOp::create(b, loc, number, kernel.index(conv.channels));
}

/// Fetches for the panel behind `panel`, which in memory may be the first one
/// of the next point.
void WinogradEmitter::prefetchWeights(Value point, Value panel, Value step) {
  Value next = plus(panel, 1);
  int64_t turns = int64_t(llvm::divideCeil(plan.block, plan.size.rows));
  int64_t vectors = plan.size.vectors;
  Value vector = arith::DivUIOp::create(
      b, loc, arith::MulIOp::create(b, loc, step, kernel.index(vectors)),
      kernel.index(turns));
  int64_t inPanel = conv.channels * vectors;
  for (int64_t turn = 0; turn * turns < vectors; ++turn) {
    Value place = plus(vector, turn);
    if (plan.block <= rowsOfRuns && inPanel % runsAtOnce == 0)
      place = sideBySide(kernel, place, inPanel, runsAtOnce);
    place = arith::MulIOp::create(b, loc, place, kernel.index(plan.lanes));
    memref::PrefetchOp::create(
        b, loc, weights, ValueRange{point, next, kernel.index(0), place},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  }
}

/// A tile of sums in registers: rows by vectors of columns.
void WinogradEmitter::multiplyRows(Value point, Value panel, Value row,
                                   unsigned rows, unsigned vectors) {
  auto type = VectorType::get(plan.lanes, element);
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  SmallVector<Value> start(size_t(rows) * vectors, zero), places;
  for (unsigned i = 0; i < rows; ++i)
    places.push_back(plus(row, i));
  Value step = firstStep(row);
  SmallVector<Value> sums = emitLoop(
      b, loc, kernel.index(0), kernel.index(conv.channels), kernel.index(1),
      start, [&](Value channel, ValueRange before) {
        SmallVector<Value> factors, after;
        prefetchWeights(point, panel,
                        arith::AddIOp::create(b, loc, step, channel));
        for (unsigned j = 0; j < vectors; ++j)
          factors.push_back(vector::LoadOp::create(
              b, loc, type, weights,
              ValueRange{point, panel, channel,
                         kernel.index(int64_t(j) * plan.lanes)}));
        for (unsigned i = 0; i < rows; ++i) {
          Value scalar = memref::LoadOp::create(
              b, loc, inputs, ValueRange{point, places[i], channel});
          Value value = vector::BroadcastOp::create(b, loc, type, scalar);
          for (unsigned j = 0; j < vectors; ++j) {
            Value product =
                arith::MulFOp::create(b, loc, value, factors[j], fused);
            after.push_back(arith::AddFOp::create(
                b, loc, before[i * vectors + j], product, fused));
          }
        }
        return after;
      });
  Value columns =
      arith::MulIOp::create(b, loc, panel, kernel.index(plan.panelWidth()));
  for (unsigned i = 0; i < rows; ++i)
    for (unsigned j = 0; j < vectors; ++j)
      vector::StoreOp::create(
          b, loc, sums[i * vectors + j], products,
          ValueRange{point, places[i], plus(columns, int64_t(j) * plan.lanes)});
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void WinogradEmitter::transformOutputs(Value firstTile, Range tiles) {
  int64_t size = plan.m + 2;
  auto type = VectorType::get(plan.lanes, element);
  reader.setLane(conv.filter);
  TilesAhead ahead(kernel, reader, root, plan, conv.filter);
  ahead.addOutputs(outputs);
  loop(tiles.first, tiles.second, 1, [&](Value number) {
    Value tile = arith::AddIOp::create(b, loc, firstTile, number);
    placeTile(tile);
    TileCorner next = ahead.empty() ? TileCorner() : cornerOf(plus(tile, 1));
    alongVectors(conv.filters, [&](Value filter, unsigned width) {
      reader.bind(conv.filter, filter);
      ahead.ask(next);
      transformTile(
          size, emitOutputTransform,
          [&](int64_t i, int64_t j) -> Value {
            return vector::LoadOp::create(
                b, loc, type, products,
                ValueRange{kernel.index(i * size + j), number, filter});
          },
          [&](int64_t i, ValueRange sums) {
            ifInside(row, i, plan.tilesDown() * plan.m, conv.height, [&] {
              for (int64_t j = 0; j < plan.m; ++j)
                ifInside(column, j, plan.tilesAcross() * plan.m, conv.width,
                         [&] { finish(i, j, sums[j], width); });
            });
          });
    });
  });
}

/// What `then` emits is done for `position + offset < extent`, of tiles that
/// reach to `reach`.
void WinogradEmitter::ifInside(Value position, int64_t offset, int64_t reach,
                               int64_t extent,
                               llvm::function_ref<void()> then) {
  if (reach - plan.m + offset < extent)
    return then();
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                            plus(position, offset), kernel.index(extent));
  auto condition = scf::IfOp::create(b, loc, inside, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(condition.thenBlock());
  LaneReader::Scope scope(reader);
  then();
}

/// Computes and stores what follows from the output (i, j) of the tile.
void WinogradEmitter::finish(int64_t i, int64_t j, Value sum, unsigned width) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (loop == conv.row)
      expr = expr + i;
    else if (loop == conv.column)
      expr = expr + j;
    else if (loop != conv.image && loop != conv.filter)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  if (width != plan.lanes)
    sum = vector::ExtractStridedSliceOp::create(
        b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
        ArrayRef<int64_t>{1});
  storeOutputs(reader, root, outputs, point, width, sum);
}

void emitWinograd(Kernel &kernel, linalg::GenericOp root,
                  const WinogradPlan &plan, ArrayRef<Output> outputs) {
  WinogradEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
