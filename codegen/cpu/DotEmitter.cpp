//===- DotEmitter.cpp - sums of products of bf16 --------------------------===//
//
// For a block of rows, which stay in the second cache, and a block of columns:
// tiles of rows by columns are summed up in registers, written to a square of
// scratch memory, and read from there row by row for the epilogue.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/DotLoops.h"

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
// Arithmetic on positions
//===----------------------------------------------------------------------===//

void DotEmitter::loop(Value from, Value to, int64_t step, Then body) {
  emitTurns(kernel, reader, from, to, step, body);
}

/// How many turns all of `loops` have together.
Value DotEmitter::extentOf(ArrayRef<unsigned> loops) {
  Value product = kernel.index(1);
  for (unsigned loop : loops)
    product = times(product, kernel.loopExtent(root, loop));
  return product;
}

/// Binds `loops` to what the turn `number` of all of them is.
void DotEmitter::bindLoops(ArrayRef<unsigned> loops, Value number) {
  for (size_t index = loops.size(); index-- > 0;) {
    if (index == 0) {
      reader.bind(loops[0], number);
      continue;
    }
    Value turns = kernel.loopExtent(root, loops[index]);
    reader.bind(loops[index], over(number, turns, /*rest=*/true));
    number = over(number, turns, /*rest=*/false);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void DotEmitter::layOut() {
  if (!plan.panel)
    kernel.setPackedArgument(
        cast<BlockArgument>(plan.right->get()).getArgNumber(), plan.packing);
  leftMemory = kernel.memrefOf(plan.left->get());
  rightMemory = rightSource = kernel.memrefOf(plan.right->get());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  auto allocate = [&](ArrayRef<int64_t> sizes, Type element) {
    return memref::AllocaOp::create(b, loc, MemRefType::get(sizes, element),
                                    b.getI64IntegerAttr(64));
  };
  square = allocate({mostTiles() * plan.height, plan.block}, b.getF32Type());
  if (usesTiles()) {
    shape = allocateTileShape(kernel);
    kept = allocate({mostTiles(), wordsOfTile}, b.getIndexType());
  }
  if (plan.split)
    allocateSplit();
  if (plan.panel)
    rightMemory = allocate({depth() * plan.block}, b.getBF16Type());
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void DotEmitter::run() {
  StringRef kind = plan.split ? "tiles6" : usesTiles() ? "tiles" : "dots";
  kernel.to()->setAttr(kernelAttr, b.getStringAttr(kind));
  if (plan.split)
    pickSplitBlocks();
  layOut();
  findAsked();
  // Neighbouring columns read the same rows, so those are shared last.
  SmallVector<int64_t> turns;
  for (unsigned loop : plan.outer)
    turns.push_back(extent(loop));
  // Rows that are split are the outermost loop: each is split once.
  size_t ofRows = plan.split ? 0 : turns.size();
  turns.insert(turns.begin() + ofRows, ShapedType::kDynamic);
  std::optional<int64_t> known = plan.runRows;
  for (unsigned loop : outerRows())
    known = known && !ShapedType::isDynamic(extent(loop))
                ? std::optional(*known * extent(loop))
                : std::nullopt;
  if (known)
    turns[ofRows] =
        int64_t(llvm::divideCeil(*known, plan.height * mostTiles()));
  runs = runsOfSteps(known);
  turns.push_back(int64_t(llvm::divideCeil(plan.columns, plan.block)));
  std::optional<unsigned> shared = kernel.pickShared(turns);
  // Few weights are better read by each thread than rows split by each.
  constexpr int64_t enoughTurns = 4, fewBytes = 1 << 20;
  if (shared && plan.split && turns[ofRows] >= enoughTurns &&
      2 * parts() * depth() * blocksOfAll() * plan.block <= fewBytes)
    shared = ofRows;
  sharesRows = shared == ofRows;
  sharesColumns = shared == plan.outer.size() + 1;
  if (shared && !sharesRows && !sharesColumns)
    sharedOuter = plan.split ? *shared - 1 : *shared;
  auto emit = [&] {
    if (plan.runRows)
      return emitHeight(plan.height);
    // Fewer rows than a tile has go one by one.
    Value rows = extentOf(runRows());
    Value many = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, rows,
                                       kernel.index(plan.height));
    auto branch = scf::IfOp::create(b, loc, many, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool first : {true, false}) {
      b.setInsertionPointToStart(first ? branch.thenBlock()
                                       : branch.elseBlock());
      LaneReader::Scope scope(reader);
      emitHeight(first ? plan.height : 1);
    }
  };
  if (shared)
    emit();
  else
    kernel.emitOnce([&] {
      LaneReader::Scope scope(reader);
      emit();
    });
  if (usesTiles())
    releaseTiles(kernel);
}

void DotEmitter::emitHeight(int64_t rows) {
  height = rows;
  if (usesTiles()) {
    configureTiles(kernel, shape, height, plan.step);
    forgetKept();
  }
  Value left = kernel.index(plan.start), right = kernel.index(plan.rightStart);
  // Rows that are split are split once for all columns.
  if (plan.split)
    return emitBlocks(left, right);
  emitOuter(plan.outer, left, right,
            [&](Value left, Value right) { emitBlocks(left, right); });
}

/// Loops outside of rows and columns; `left` and `right` are where the elements
/// of both factors are, but for a packed factor `right` is its number.
void DotEmitter::emitOuter(ArrayRef<unsigned> loops, Value left, Value right,
                           llvm::function_ref<void(Value, Value)> body) {
  if (loops.empty())
    return body(left, right);
  unsigned outer = loops[0];
  Value turns = kernel.loopExtent(root, outer);
  std::pair<Value, Value> range = {kernel.index(0), turns};
  if (sharedOuter && plan.outer[*sharedOuter] == outer)
    range = kernel.share(turns, 1);
  loop(range.first, range.second, 1, [&](Value iv) {
    reader.bind(outer, iv);
    emitOuter(
        loops.drop_front(), kernel.plus(left, times(iv, plan.strides[outer])),
        plan.panel ? kernel.plus(right, times(iv, plan.rightStrides[outer]))
                   : kernel.plus(times(right, extent(outer)), iv),
        body);
  });
}

/// Elements of a sum, in whole pairs, or steps where they are split.
int64_t DotEmitter::depth() {
  int64_t elements = 1;
  for (unsigned loop : plan.sums)
    elements *= extent(loop);
  return int64_t(llvm::alignTo(elements, plan.split ? splitDepth : 2));
}

/// Tiles of rows in blocks that stay in the second cache while all columns go
/// by. Where that holds the right factor as well they are small: what is
/// computed is written in order.
int64_t DotEmitter::tilesAtOnce() {
  constexpr int64_t cacheBytes = 1 << 20, smallBytes = 512 << 10;
  if (plan.split)
    return splitTiles;
  int64_t tiles = cacheBytes / (2 * depth() * height);
  if (2 * depth() * plan.columns <= smallBytes)
    tiles = 2 * mostTiles();
  // A panel is filled once for all of them.
  if (plan.panel)
    tiles = int64_t(1) << 30;
  return std::max<int64_t>(tiles / mostTiles(), 1) * mostTiles();
}

void DotEmitter::emitBlocks(Value left, Value right) {
  int64_t groups = tilesAtOnce();
  if (sharesRows && !plan.split)
    groups = std::min<int64_t>(groups, 4 * mostTiles());
  Value perRun = kernel.index(1);
  if (plan.runRows)
    perRun = kernel.index(int64_t(llvm::divideCeil(*plan.runRows, height)));
  else
    perRun = over(kernel.plus(extentOf(runRows()), kernel.index(height - 1)),
                  kernel.index(height), /*rest=*/false);
  Value all = times(extentOf(outerRows()), perRun);
  std::pair<Value, Value> range = {kernel.index(0), all};
  // Threads get equal shares of tiles, whatever the blocks are.
  if (sharesRows)
    range = kernel.share(all, plan.split ? mostTiles() : groups);
  Value end = range.second;
  loop(range.first, end, groups, [&](Value first) {
    Value last = kernel.least(kernel.plus(first, kernel.index(groups)), end);
    if (plan.split)
      emitSplitBlocks(first, last, left);
    else
      emitColumns(first, last, left, right);
  });
  if (plan.columns % plan.block == 0)
    finishKept(plan.block);
}

void DotEmitter::emitColumns(Value first, Value last, Value left, Value right) {
  int64_t whole = plan.columns / plan.block, rest = plan.columns % plan.block;
  int64_t blocks = blocksOfColumns();
  std::pair<Value, Value> range = {kernel.index(0), kernel.index(blocks)};
  if (sharesColumns)
    range = kernel.share(range.second, 1);
  auto block = [&](Value number, int64_t columns) {
    reader.bind(plan.lane, times(number, plan.block));
    Value start = kernel.index(0);
    if (plan.panel) {
      Value place = times(number, plan.block * plan.rightStrides[plan.lane]);
      fillPanel(kernel.plus(right, place), columns);
    } else {
      start =
          times(kernel.plus(times(right, blocks), number), elementsOfBlock());
      if (plan.split)
        start = kernel.plus(start,
                            times(blockOfSum, stepsAtOnce * elementsOfStep()));
    }
    int64_t most = mostTiles();
    auto tiles = [&](Value from, Value to, int64_t count) {
      loop(from, to, count, [&](Value group) {
        startPrefetch(first, last, group, start);
        emitTiles(group, count, columns, left, start);
      });
    };
    Value turns = arith::SubIOp::create(b, loc, last, first);
    if (auto end = getConstantIntValue(last))
      if (auto begin = getConstantIntValue(first))
        turns = kernel.index(*end - *begin);
    Value full =
        kernel.plus(first, times(over(turns, kernel.index(most), false), most));
    if (getConstantIntValue(turns) && getConstantIntValue(first))
      full = kernel.index(*getConstantIntValue(first) +
                          *getConstantIntValue(turns) / most * most);
    tiles(first, full, most);
    if (most != 1)
      tiles(full, last, 1);
  };
  loop(range.first, kernel.least(range.second, kernel.index(whole)), 1,
       [&](Value number) { block(number, plan.block); });
  if (rest == 0)
    return;
  Value from = kernel.index(whole);
  if (!isZeroInteger(range.first))
    from = arith::MaxUIOp::create(b, loc, range.first, from);
  // What was kept has as many columns as what comes next.
  if (whole != 0)
    finishKept(plan.block);
  loop(from, range.second, 1, [&](Value) { block(kernel.index(whole), rest); });
  finishKept(rest);
}

/// The tile of rows `number`. Where all have one height the last tile of a run
/// begins early enough to be whole; what it has in common with the one before
/// is not stored again.
DotEmitter::Tile DotEmitter::tileAt(Value number) {
  Value run = plan.runRows ? kernel.index(*plan.runRows) : extentOf(runRows());
  Value perRun = over(kernel.plus(run, kernel.index(height - 1)),
                      kernel.index(height), false);
  if (plan.runRows)
    perRun = kernel.index(int64_t(llvm::divideCeil(*plan.runRows, height)));
  Value outer = over(number, perRun, /*rest=*/false);
  Value first = times(over(number, perRun, /*rest=*/true), height);
  if (plan.runRows && *plan.runRows % height == 0)
    return {outer, first, kernel.index(0)};
  if (plan.lowTiles != 0) {
    Value inRun = over(number, perRun, /*rest=*/true);
    Value high =
        arith::SubIOp::create(b, loc, perRun, kernel.index(plan.lowTiles));
    Value isLow =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, inRun, high);
    Value before = arith::SubIOp::create(
        b, loc, arith::MaxUIOp::create(b, loc, inRun, high), high);
    first = arith::SubIOp::create(b, loc, first, before);
    return {outer, first, kernel.index(0), isLow};
  }
  Value latest =
      plan.runRows
          ? kernel.index(*plan.runRows - height)
          : Value(arith::SubIOp::create(b, loc, run, kernel.index(height)));
  Value early = kernel.least(first, latest);
  return {outer, early, arith::SubIOp::create(b, loc, first, early)};
}

/// Where the left factor is at the present turns of `loops`, when `left` is
/// where it is at their first ones.
Value DotEmitter::placeAt(ArrayRef<unsigned> loops, Value left) {
  for (unsigned loop : loops)
    left = kernel.plus(left,
                       times(reader.at(getAffineDimExpr(loop, b.getContext())),
                             plan.strides[loop]));
  return left;
}

/// Where the left factor has the first row of `tile`.
Value DotEmitter::placeOf(const Tile &tile, Value left) {
  LaneReader::Scope scope(reader);
  bindLoops(outerRows(), tile.outer);
  left = placeAt(outerRows(), left);
  if (plan.run == 0)
    return left;
  return kernel.plus(left, times(tile.first, plan.strides[plan.rows.back()]));
}

/// `tiles` tiles of rows from number `group` on, of one block of columns.
void DotEmitter::emitTiles(Value group, int64_t tiles, int64_t columns,
                           Value left, Value right) {
  SmallVector<Tile> places;
  Values lefts;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Value number = kernel.plus(group, kernel.index(tile));
    places.push_back(tileAt(number));
    if (!plan.split)
      lefts.push_back(placeOf(places.back(), left));
  }
  if (plan.split)
    return sumUpSplit(group, places, right, columns);
  Value isLow = places[0].isLow;
  if (!isLow)
    return emitTiles(places, lefts, right, columns);
  auto branch = scf::IfOp::create(b, loc, isLow, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool low : {true, false}) {
    b.setInsertionPointToStart(low ? branch.thenBlock() : branch.elseBlock());
    LaneReader::Scope scope(reader);
    height = plan.height - low;
    emitTiles(places, lefts, right, columns);
  }
}

/// Those of `height` rows at `places`, which `lefts` are where the left factor
/// has.
void DotEmitter::emitTiles(ArrayRef<Tile> places, ArrayRef<Value> lefts,
                           Value right, int64_t columns) {
  auto tiles = int64_t(places.size());
  present = places[0];
  int64_t vectors = int64_t(llvm::divideCeil(columns, dotLanes));
  Values sums;
  if (usesTiles()) {
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t column = 0; column < vectors; ++column)
        zeroTile(kernel, tile * 2 + column);
  } else {
    auto type = VectorType::get(dotLanes, b.getF32Type());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    sums.assign(size_t(height * vectors), zero);
  }
  sums = sumUp(plan.sums, lefts, right, kernel.index(0), columns, sums);
  if (usesTiles())
    return keepTiles(places, vectors);
  for (int64_t column = 0; column < vectors; ++column)
    for (int64_t row = 0; row < height; ++row)
      vector::StoreOp::create(
          b, loc, sums[row * vectors + column], square,
          ValueRange{kernel.index(row), kernel.index(column * dotLanes)});
  finishTile(places[0], columns);
}

bool emitDots(Kernel &kernel, linalg::GenericOp root, const DotPlan &plan,
              ArrayRef<Output> outputs) {
  DotEmitter emitter(kernel, root, plan, outputs);
  emitter.run();
  return emitter.hasSharedColumns();
}

} // namespace keratin
