//===- StrassenEmitter.cpp - products of fewer multiplications ------------===//
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/Strassen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
/// A block of a matrix, by its halves.
struct Block {
  unsigned row, column;
};
/// `first + sign * second`, or the first alone.
struct BlockSum {
  Block first, second;
  int sign;
};
constexpr Block b11 = {0, 0}, b12 = {0, 1}, b21 = {1, 0}, b22 = {1, 1};
constexpr unsigned products = 7;

/// The factors of the products.
constexpr BlockSum ofLeft[products] = {
    {b11, b22, 1}, {b21, b22, 1},  {b11, b11, 0}, {b22, b22, 0},
    {b11, b12, 1}, {b21, b11, -1}, {b12, b22, -1}};
constexpr BlockSum ofWeights[products] = {
    {b11, b22, 1}, {b11, b11, 0}, {b12, b22, -1}, {b21, b11, -1},
    {b22, b22, 0}, {b11, b12, 1}, {b21, b22, 1}};

class StrassenEmitter {
public:
  StrassenEmitter(Kernel &kernel, linalg::GenericOp root,
                  const StrassenPlan &plan, ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), outputs(outputs) {}

  void run();

private:
  using Then = llvm::function_ref<void(Value)>;
  /// A half-open range of pairs or panels.
  using Range = std::pair<Value, Value>;

  Value plus(Value value, int64_t offset) {
    return kernel.plus(value, kernel.index(offset));
  }
  Value times(Value value, int64_t factor) {
    return kernel.times(value, factor);
  }
  Value over(Value value, int64_t divisor, bool rest) {
    return kernel.over(value, kernel.index(divisor), rest);
  }
  void loop(Value from, Value to, int64_t step, Then body) {
    emitTurns(kernel, reader, from, to, step, body);
  }

  void layOut();
  Value part(Value scratch, Value begin, ArrayRef<int64_t> sizes,
             int64_t stride);
  /// Pairs that are multiplied one beside the other. Where they are a segment,
  /// which it is, and null elsewhere.
  struct Pairs {
    Value first, count;
    Value sample;  ///< 0 where there is one
    Value top;     ///< the first row, in the sample
    Value toLower; ///< from the upper row of a pair to the lower one
  };
  Pairs pairsOf(Value block, Value allPairs);
  void emitBlock(const Pairs &pairs, Range panels);
  /// Where the rows of a pair are, by halves; and whether the lower one is
  /// kept, null where it always is.
  struct Pair {
    Coordinates rows[2];
    Value keepsLower;
  };
  Pair pairAt(const Pairs &pairs, Value number);
  std::optional<int64_t> slotOf(unsigned product);
  void sumLeft(const Pairs &pairs);
  void sumLeft(const Pair &pair, Value number, ArrayRef<unsigned> inner,
               Value place);
  void multiply(const Pairs &pairs, Range panels);
  void multiplyPanel(const Pairs &pairs, Value panel);
  void multiplySteps(const Pairs &pairs, Value panel, Range steps);
  struct Tile {
    const Pairs &pairs;
    Value panel, row;
    Range steps;
    unsigned product, rows;
    bool sumsWeights;
  };
  void multiplyTile(const Tile &tile);
  SmallVector<Value> factorsAt(const Tile &tile, Value step);
  SmallVector<Value> scalarsAt(const Tile &tile, unsigned row,
                               ArrayRef<Value> steps);
  std::optional<Block> asksFor(const Tile &tile);
  void askForWeights(const Tile &tile, Block block, Value step);
  Value weightsAt(Value panel, Value step, Block block, unsigned vector);
  void finish(const Pairs &pairs, Value panel);
  void finish(const Pair &pair, Value number, ArrayRef<Coordinates> columns,
              unsigned vector);
  VectorType vectorType() {
    return VectorType::get(plan.lanes, b.getF32Type());
  }

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const StrassenPlan &plan;
  ArrayRef<Output> outputs;

  Value weights; ///< [panel of both halves][step of both][column]
  Value left;    ///< [product][pair][step], blocks that are stored
  Value given;   ///< [row of all samples][step], A, where others are read
  Value panel;   ///< [step][column], a sum of blocks of weights
  Value sums;    ///< [product][pair][column]
};
} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A part of `scratch` from `begin` on, of three dimensions, of which the
/// innermost one takes `stride`.
Value StrassenEmitter::part(Value scratch, Value begin, ArrayRef<int64_t> sizes,
                            int64_t stride) {
  return viewOf(kernel, scratch, begin, sizes, {sizes[1] * stride, stride, 1});
}

void StrassenEmitter::layOut() {
  Value tensor = plan.weights->get();
  AffineMap map = root.getMatchingIndexingMap(plan.weights);
  auto dimOf = [&](unsigned loop) {
    return *map.getResultPosition(getAffineDimExpr(loop, b.getContext()));
  };
  Packing packing = {dimOf(plan.columns.loops.back()), plan.width()};
  for (unsigned loop : ArrayRef(plan.columns.loops).drop_back())
    packing.outer.push_back(dimOf(loop));
  kernel.setPackedArgument(cast<BlockArgument>(tensor).getArgNumber(), packing);
  Value packed = kernel.memrefOf(tensor);
  int64_t rank = cast<MemRefType>(packed.getType()).getRank();
  auto dims = [](int64_t from, int64_t to) {
    return ReassociationIndices(llvm::to_vector(llvm::seq(from, to)));
  };
  auto outer = int64_t(packing.outer.size() + 1);
  weights = memref::CollapseShapeOp::create(
      b, loc, packed,
      ArrayRef<ReassociationIndices>{dims(0, outer), dims(outer, rank - 1),
                                     dims(rank - 1, rank)});
  // A call makes its sums of A for itself: those of others would have to come
  // from the cache of another core. More parts would make them more often.
  constexpr int64_t fewestParts = 4, mostParts = 8, mostBytes = 8 << 20;
  constexpr int64_t stayingBytes = 1 << 20;
  int64_t count =
      plan.leftElements() + plan.panelElements() + plan.productElements();
  bool stays = kernel.hasParts() && count * 4 <= stayingBytes;
  if (stays)
    count = stayingBytes / 4;
  int64_t parts =
      mostBytes / (count * 4) >= mostParts ? mostParts : fewestParts;
  auto [scratch, begin] =
      kernel.addScratch(b.getF32Type(), count, parts, stays);
  left = part(scratch, begin, {plan.storedLeft(), plan.block, plan.depth()},
              plan.rowStride());
  if (plan.leftStride != 0)
    given = rowsOfLeft(kernel, root, plan);
  begin = plus(begin, plan.leftElements());
  panel = part(scratch, begin, {1, plan.steps, plan.width()}, plan.width());
  begin = plus(begin, plan.panelElements());
  sums =
      part(scratch, begin, {products, plan.block, plan.width()}, plan.width());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void StrassenEmitter::run() {
  kernel.to()->setAttr(kernelAttr, b.getStringAttr("strassen"));
  layOut();
  Value pairs = kernel.index(plan.pairs());
  if (!plan.samples)
    pairs = times(kernel.loopExtent(root, *plan.sample), plan.pairsOfSample());
  // Threads share the panels of all blocks, one block after the other.
  Value blocks = over(plus(pairs, plan.block - 1), plan.block, /*rest=*/false);
  Value panels = kernel.index(plan.panels());
  if (!kernel.hasParts())
    return loop(kernel.index(0), blocks, 1, [&](Value block) {
      emitBlock(pairsOf(block, pairs), {kernel.index(0), panels});
    });
  auto [from, to] = kernel.share(times(blocks, plan.panels()), 1);
  Value last = over(plus(to, plan.panels() - 1), plan.panels(), false);
  loop(over(from, plan.panels(), false), last, 1,
       [&, from = from, to = to](Value block) {
         Value before = times(block, plan.panels());
         Value first = arith::SubIOp::create(
             b, loc, arith::MaxUIOp::create(b, loc, from, before), before);
         Value end = arith::SubIOp::create(b, loc, to, before);
         emitBlock(pairsOf(block, pairs), {first, kernel.least(end, panels)});
       });
}

StrassenEmitter::Pairs StrassenEmitter::pairsOf(Value block, Value allPairs) {
  Pairs pairs = {};
  pairs.first = times(block, plan.block);
  pairs.count = kernel.index(plan.block);
  if (!plan.blocksAreSegments()) {
    if (!plan.samples || plan.pairs() % plan.block != 0)
      pairs.count = kernel.least(
          pairs.count, arith::SubIOp::create(b, loc, allPairs, pairs.first));
    return pairs;
  }
  int64_t segments = plan.segments();
  pairs.sample = over(block, segments, /*rest=*/false);
  Value segment = over(block, segments, /*rest=*/true);
  pairs.top = times(segment, plan.rowsOfSegment);
  pairs.toLower = kernel.index(plan.rowsOfSegment - plan.block);
  if (plan.rowsOfLast() != plan.rowsOfSegment) {
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         segment, kernel.index(segments - 1));
    pairs.toLower = arith::SelectOp::create(
        b, loc, isLast, kernel.index(plan.rowsOfLast() - plan.block),
        pairs.toLower);
  }
  return pairs;
}

/// The panels `panels` of a block of pairs.
void StrassenEmitter::emitBlock(const Pairs &pairs, Range panels) {
  sumLeft(pairs);
  multiply(pairs, panels);
}

StrassenEmitter::Pair StrassenEmitter::pairAt(const Pairs &pairs,
                                              Value number) {
  Value sample = pairs.sample, inSegment = number, top = pairs.top;
  Value toLower = pairs.toLower;
  if (!plan.blocksAreSegments()) {
    Value ofAll = kernel.plus(pairs.first, number);
    sample = over(ofAll, plan.pairsOfSample(), /*rest=*/false);
    inSegment = over(ofAll, plan.pairsOfSample(), /*rest=*/true);
    top = kernel.index(0);
    toLower = kernel.index(plan.rows.turns() / 2);
  }
  Pair pair;
  int64_t count = plan.pairsOfSegment();
  if (std::min(plan.rowsOfLast(), plan.rowsOfSegment) != 2 * count)
    pair.keepsLower = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                            kernel.plus(inSegment, toLower),
                                            kernel.index(count));
  Value upper = kernel.plus(top, inSegment);
  pair.rows[0] = coordinatesOf(kernel, reader, plan.rows, upper);
  pair.rows[1] =
      coordinatesOf(kernel, reader, plan.rows, kernel.plus(upper, toLower));
  if (plan.sample)
    for (Coordinates &rows : pair.rows)
      rows.push_back({*plan.sample, reader.symbol(sample)});
  return pair;
}

//===----------------------------------------------------------------------===//
// Sums of blocks of A
//===----------------------------------------------------------------------===//

/// Where the factors of a product of A are stored; none where they are read in
/// A itself.
std::optional<int64_t> StrassenEmitter::slotOf(unsigned product) {
  auto isRead = [&](unsigned other) {
    return plan.leftStride != 0 && ofLeft[other].sign == 0;
  };
  if (isRead(product))
    return std::nullopt;
  return product - llvm::count_if(llvm::seq(product), isRead);
}

void StrassenEmitter::sumLeft(const Pairs &pairs) {
  reader.setLane(plan.sums.loops.back());
  loop(kernel.index(0), pairs.count, 1, [&](Value number) {
    Pair pair = pairAt(pairs, number);
    sumLeft(pair, number, plan.sums.loops, kernel.index(0));
  });
}

/// Sums of a pair for all turns of the loops `inner` of the first half of the
/// sums, which begin at `place`.
void StrassenEmitter::sumLeft(const Pair &pair, Value number,
                              ArrayRef<unsigned> inner, Value place) {
  unsigned first = plan.sums.loops.front(), loopOfTurns = inner.front();
  int64_t extent = staticLoopExtent(root, loopOfTurns);
  if (loopOfTurns == first)
    extent /= 2;
  if (inner.size() > 1)
    return loop(kernel.index(0), kernel.index(extent), 1, [&](Value turn) {
      reader.bind(loopOfTurns, turn);
      int64_t inside = 1;
      for (unsigned loop : inner.drop_front())
        inside *= staticLoopExtent(root, loop);
      sumLeft(pair, number, inner.drop_front(),
              kernel.plus(place, times(turn, inside)));
    });
  AffineMap map = root.getMatchingIndexingMap(plan.left);
  auto some = [&](Value turn, unsigned width) {
    reader.bind(loopOfTurns, turn);
    Value blocks[2][2];
    for (unsigned row : {0, 1})
      for (unsigned half : {0, 1}) {
        AffineExpr ofHalf = getAffineDimExpr(first, b.getContext());
        if (half == 1)
          ofHalf = ofHalf + staticLoopExtent(root, first) / 2;
        Position point = pointAt(root, {pair.rows[row], {{first, ofHalf}}});
        Position position;
        for (AffineExpr expr : map.getResults())
          position.push_back(canonical(expr.replaceDims(point)));
        blocks[row][half] = reader.materialize(
            reader.read(plan.left->get(), position, width), width);
      }
    for (auto [product, sum] : llvm::enumerate(ofLeft)) {
      std::optional<int64_t> slot = slotOf(unsigned(product));
      if (!slot)
        continue;
      Value value = blocks[sum.first.row][sum.first.column];
      Value other = blocks[sum.second.row][sum.second.column];
      if (sum.sign > 0)
        value = arith::AddFOp::create(b, loc, value, other);
      if (sum.sign < 0)
        value = arith::SubFOp::create(b, loc, value, other);
      SmallVector<Value> to = {kernel.index(*slot), number,
                               kernel.plus(place, turn)};
      vector::StoreOp::create(b, loc, value, left, to);
      // A store has to wait for its cache line as a load has.
      to[1] = plus(number, 1);
      memref::PrefetchOp::create(b, loc, left, to, /*isWrite=*/true,
                                 /*localityHint=*/3, /*isDataCache=*/true);
    }
  };
  int64_t whole = extent / plan.lanes * plan.lanes;
  loop(kernel.index(0), kernel.index(whole), plan.lanes,
       [&](Value turn) { some(turn, plan.lanes); });
  if (whole != extent) {
    LaneReader::Scope scope(reader);
    some(kernel.index(whole), unsigned(extent - whole));
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void StrassenEmitter::multiply(const Pairs &pairs, Range panels) {
  loop(panels.first, panels.second, 1, [&](Value panel) {
    multiplyPanel(pairs, panel);
    finish(pairs, panel);
  });
}

/// Sums begin with zeros in memory where they are made in several turns.
void StrassenEmitter::multiplyPanel(const Pairs &pairs, Value panel) {
  Value begin = kernel.index(0), end = kernel.index(plan.depth());
  if (plan.steps == plan.depth())
    return multiplySteps(pairs, panel, {begin, end});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  loop(begin, kernel.index(products), 1, [&](Value product) {
    loop(begin, pairs.count, 1, [&](Value row) {
      for (unsigned vector = 0; vector < plan.size.vectors; ++vector)
        vector::StoreOp::create(
            b, loc, zero, sums,
            ValueRange{product, row,
                       kernel.index(int64_t(vector) * plan.lanes)});
    });
  });
  loop(begin, end, plan.steps, [&](Value from) {
    multiplySteps(pairs, panel,
                  {from, kernel.least(plus(from, plan.steps), end)});
  });
}

/// Rows of an unfinished block are multiplied as they are: nobody reads them.
void StrassenEmitter::multiplySteps(const Pairs &pairs, Value panel,
                                    Range steps) {
  unsigned rows = plan.size.rows;
  int64_t whole = plan.block / rows * rows;
  auto rest = unsigned(plan.block - whole);
  for (unsigned product = 0; product < products; ++product) {
    Tile tile = {pairs, panel, kernel.index(0), steps, product, rows, true};
    multiplyTile(tile);
    tile.sumsWeights = false;
    auto multiplyAt = [&](Value row) {
      tile.row = row;
      multiplyTile(tile);
    };
    loop(kernel.index(rows), kernel.least(pairs.count, kernel.index(whole)),
         rows, multiplyAt);
    tile.rows = rest;
    if (rest != 0)
      loop(kernel.index(whole), pairs.count, plan.block, multiplyAt);
  }
}

Value StrassenEmitter::weightsAt(Value panel, Value step, Block block,
                                 unsigned vector) {
  return vector::LoadOp::create(
      b, loc, vectorType(), weights,
      ValueRange{plus(panel, block.column * plan.panels()),
                 plus(step, block.row * plan.depth()),
                 kernel.index(int64_t(vector) * plan.lanes)});
}

/// What a step of a tile multiplies with: sums of weights, which the first tile
/// makes for the others.
SmallVector<Value> StrassenEmitter::factorsAt(const Tile &tile, Value step) {
  SmallVector<Value> factors;
  Value inPanel = arith::SubIOp::create(b, loc, step, tile.steps.first);
  const BlockSum &sum = ofWeights[tile.product];
  if (sum.sign == 0) {
    for (unsigned vector = 0; vector < plan.size.vectors; ++vector)
      factors.push_back(weightsAt(tile.panel, step, sum.first, vector));
    return factors;
  }
  for (unsigned vector = 0; vector < plan.size.vectors; ++vector) {
    SmallVector<Value> place = {kernel.index(0), inPanel,
                                kernel.index(int64_t(vector) * plan.lanes)};
    if (!tile.sumsWeights) {
      factors.push_back(
          vector::LoadOp::create(b, loc, vectorType(), panel, place));
      continue;
    }
    Value value = weightsAt(tile.panel, step, sum.first, vector);
    Value other = weightsAt(tile.panel, step, sum.second, vector);
    value = sum.sign > 0
                ? arith::AddFOp::create(b, loc, value, other).getResult()
                : arith::SubFOp::create(b, loc, value, other).getResult();
    vector::StoreOp::create(b, loc, value, panel, place);
    factors.push_back(value);
  }
  return factors;
}

/// What a row multiplies each vector of columns by, which each finds by its own
/// of `steps`, or all by the one.
SmallVector<Value> StrassenEmitter::scalarsAt(const Tile &tile, unsigned row,
                                              ArrayRef<Value> steps) {
  SmallVector<Value> scalars;
  std::optional<int64_t> slot = slotOf(tile.product);
  Block block = ofLeft[tile.product].first;
  Value number = plus(tile.row, row);
  if (!slot) {
    const Pairs &pairs = tile.pairs;
    number = kernel.plus(number, times(pairs.sample, plan.rows.turns()));
    number = kernel.plus(number, pairs.top);
    if (block.row == 1)
      number = kernel.plus(number, pairs.toLower);
  }
  for (Value step : steps) {
    Value scalar;
    if (slot)
      scalar = memref::LoadOp::create(
          b, loc, left, ValueRange{kernel.index(*slot), number, step});
    else
      scalar = memref::LoadOp::create(
          b, loc, given,
          ValueRange{number, plus(step, block.column * plan.depth())});
    scalars.push_back(
        vector::BroadcastOp::create(b, loc, vectorType(), scalar));
  }
  scalars.resize(plan.size.vectors, scalars.back());
  return scalars;
}

/// Tiles behind the first one, which ask for weights.
static int64_t askingTiles(const StrassenPlan &plan) {
  return int64_t(llvm::divideCeil(plan.block, plan.size.rows)) - 1;
}

/// The block of weights that is asked for beside a product: that before the one
/// that meets it first, which for two of them is that of the next turn. The
/// second cache does not keep them for long beside the sums of A.
std::optional<Block> StrassenEmitter::asksFor(const Tile &tile) {
  constexpr std::optional<Block> asked[products] = {
      std::nullopt, b12, b21, std::nullopt, std::nullopt, b11, b22};
  if (!plan.asksAhead || tile.sumsWeights || askingTiles(plan) == 0)
    return std::nullopt;
  return asked[tile.product];
}

/// Asks for lines of `block` in a turn of steps that begins with `step`: for
/// all of them while the tiles go through their steps.
void StrassenEmitter::askForWeights(const Tile &tile, Block block, Value step) {
  Value panel = tile.panel, from = tile.steps.first;
  if (tile.product > 4) {
    // The next steps, or the first ones of the next panel.
    Value isLast =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                              tile.steps.second, kernel.index(plan.depth()));
    panel = arith::SelectOp::create(
        b, loc, isLast,
        kernel.least(plus(panel, 1), kernel.index(plan.panels() - 1)), panel);
    from = arith::SelectOp::create(b, loc, isLast, kernel.index(0),
                                   tile.steps.second);
  }
  Value before = times(plus(over(tile.row, plan.size.rows, /*rest=*/false), -1),
                       plan.steps);
  before = kernel.plus(before,
                       arith::SubIOp::create(b, loc, step, tile.steps.first));
  // Each tile asks for as many elements in its steps as all have there are
  // tiles.
  int64_t elements = askingTiles(plan) * plan.line;
  Value number = over(times(before, plan.width()), elements, /*rest=*/false);
  for (int64_t more = 0; more * elements < plan.stepsOfQuestion * plan.width();
       ++more) {
    Value place = times(plus(number, more), plan.line);
    Value line = kernel.plus(from, over(place, plan.width(), /*rest=*/false));
    line = kernel.least(line, kernel.index(plan.depth() - 1));
    memref::PrefetchOp::create(
        b, loc, weights,
        ValueRange{plus(panel, block.column * plan.panels()),
                   plus(line, block.row * plan.depth()),
                   over(place, plan.width(), /*rest=*/true)},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  }
}

/// A tile of sums in registers: rows by vectors of columns.
void StrassenEmitter::multiplyTile(const Tile &tile) {
  auto fused = arith::FastMathFlagsAttr::get(b.getContext(),
                                             arith::FastMathFlags::contract);
  unsigned vectors = plan.size.vectors;
  auto placeOf = [&](unsigned row, unsigned vector) -> SmallVector<Value> {
    return {kernel.index(tile.product), plus(tile.row, row),
            kernel.index(int64_t(vector) * plan.lanes)};
  };
  SmallVector<Value> start;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vectorType()));
  for (unsigned row = 0; row < tile.rows; ++row)
    for (unsigned vector = 0; vector < vectors; ++vector)
      start.push_back(plan.steps == plan.depth()
                          ? zero
                          : vector::LoadOp::create(b, loc, vectorType(), sums,
                                                   placeOf(row, vector)));
  auto multiplyStep = [&](Value step, ValueRange before) {
    SmallVector<Value> after, steps = {step};
    SmallVector<Value> factors = factorsAt(tile, step);
    while (plan.readsForEach && steps.size() < vectors)
      steps.push_back(hidden(kernel, steps.back()));
    for (unsigned row = 0; row < tile.rows; ++row) {
      SmallVector<Value> scalars = scalarsAt(tile, row, steps);
      for (unsigned vector = 0; vector < vectors; ++vector) {
        Value product = arith::MulFOp::create(b, loc, scalars[vector],
                                              factors[vector], fused);
        after.push_back(arith::AddFOp::create(
            b, loc, before[row * vectors + vector], product, fused));
      }
    }
    return after;
  };
  std::optional<Block> asked = asksFor(tile);
  SmallVector<Value> ends = emitSteps(
      kernel, tile.steps.first, tile.steps.second,
      asked ? plan.stepsOfQuestion : 1, start,
      [&](Value step) {
        if (asked)
          askForWeights(tile, *asked, step);
      },
      multiplyStep);
  for (unsigned row = 0; row < tile.rows; ++row)
    for (unsigned vector = 0; vector < vectors; ++vector)
      vector::StoreOp::create(b, loc, ends[row * vectors + vector], sums,
                              placeOf(row, vector));
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Computes and stores what follows from the products of a panel.
void StrassenEmitter::finish(const Pairs &pairs, Value panel) {
  reader.setLane(plan.columns.loops.back());
  loop(kernel.index(0), pairs.count, 1, [&](Value number) {
    Pair pair = pairAt(pairs, number);
    Coordinates columns[2];
    for (unsigned half : {0, 1})
      columns[half] =
          coordinatesOf(kernel, reader, plan.columns,
                        times(plus(panel, half * plan.panels()), plan.width()));
    for (unsigned vector = 0; vector < plan.size.vectors; ++vector)
      finish(pair, number, columns, vector);
  });
}

void StrassenEmitter::finish(const Pair &pair, Value number,
                             ArrayRef<Coordinates> columns, unsigned vector) {
  SmallVector<Value> m;
  for (unsigned product = 0; product < products; ++product)
    m.push_back(vector::LoadOp::create(
        b, loc, vectorType(), sums,
        ValueRange{kernel.index(product), number,
                   kernel.index(int64_t(vector) * plan.lanes)}));
  auto add = [&](Value left, Value right) -> Value {
    return arith::AddFOp::create(b, loc, left, right);
  };
  auto subtract = [&](Value left, Value right) -> Value {
    return arith::SubFOp::create(b, loc, left, right);
  };
  Value blocks[2][2] = {
      {add(subtract(add(m[0], m[3]), m[4]), m[6]), add(m[2], m[4])},
      {add(m[1], m[3]), add(add(subtract(m[0], m[1]), m[2]), m[5])}};
  auto ofRow = [&](unsigned row) {
    SmallVector<SumsAt> vectors;
    unsigned lane = plan.columns.loops.back();
    for (unsigned half : {0, 1}) {
      Position point = pointAt(root, {pair.rows[row], columns[half]});
      // The lane is a coordinate of the reader, from which its halves are as
      // far as their columns are.
      point[lane] =
          getAffineDimExpr(lane, b.getContext()) + int64_t(vector) * plan.lanes;
      if (half == 1 && plan.columns.loops.size() == 1)
        point[lane] = point[lane] + plan.columns.turns() / 2;
      vectors.push_back({point, {blocks[row][half]}});
    }
    return vectors;
  };
  auto store = [&](ArrayRef<SumsAt> vectors) {
    LaneReader::Scope scope(reader);
    storeOutputs(kernel, reader, root, outputs, vectors, plan.lanes);
  };
  // The first one of a group is the lane.
  reader.bind(plan.columns.loops.back(), reader.at(columns[0].front().second));
  SmallVector<SumsAt> vectors = ofRow(0);
  if (!pair.keepsLower && plan.chains >= 4) {
    vectors.append(ofRow(1));
    return store(vectors);
  }
  store(vectors);
  if (!pair.keepsLower)
    return store(ofRow(1));
  auto branch =
      scf::IfOp::create(b, loc, pair.keepsLower, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  store(ofRow(1));
}

void emitStrassen(Kernel &kernel, linalg::GenericOp root,
                  const StrassenPlan &plan, ArrayRef<Output> outputs) {
  StrassenEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
