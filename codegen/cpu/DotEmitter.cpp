//===- DotEmitter.cpp - sums of products of bf16 --------------------------===//
//
// For a block of rows, which stay in the second cache, and a block of columns:
// tiles of rows by columns are summed up in registers, written to a square of
// scratch memory, and read from there row by row for the epilogue.
//
// Tile registers are named here, not by LLVM: 0 to 3 hold sums, 4 and 5 rows of
// the left factor, 6 and 7 columns of the right one. All of one kind have one
// shape in a kernel, so they are configured once.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Dots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
/// Columns of an instruction, and of a vector of sums.
constexpr int64_t lanes = 16;

class DotEmitter {
public:
  DotEmitter(Kernel &kernel, linalg::GenericOp root, const DotPlan &plan,
             ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), outputs(outputs), height(plan.height) {
    reader.setLane(plan.lane);
  }

  void run();

private:
  using Then = llvm::function_ref<void(Value)>;
  using Values = SmallVector<Value>;

  bool usesTiles() const { return plan.unit == DotUnit::Tiles; }
  /// Tiles of rows that are summed up at once.
  int64_t mostTiles() const { return usesTiles() ? 2 : 1; }
  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }
  ArrayRef<unsigned> outerRows() {
    return ArrayRef(plan.rows).drop_back(plan.run);
  }
  ArrayRef<unsigned> runRows() {
    return ArrayRef(plan.rows).take_back(plan.run);
  }

  Value plus(Value left, Value right);
  Value times(Value value, int64_t factor);
  Value over(Value value, Value divisor, bool rest);
  Value least(Value value, Value bound);
  void loop(Value from, Value to, int64_t step, Then body);

  Value address(Value memref, Value element);
  void call(llvm::StringRef name, ValueRange arguments = {});
  Value number(int64_t tile);
  void configure();

  void layOut();
  void emitHeight(int64_t rows);
  void emitOuter(ArrayRef<unsigned> loops, Value left, Value right);
  void emitBlocks(Value left, Value right);
  void emitColumns(Value first, Value last, Value left, Value right);
  void emitTiles(Value group, int64_t tiles, int64_t columns, Value left,
                 Value right);
  void bindLoops(ArrayRef<unsigned> loops, Value number);
  Value extentOf(ArrayRef<unsigned> loops);

  Values sumUp(ArrayRef<unsigned> loops, ArrayRef<Value> left, Value right,
               Value number, int64_t columns, ValueRange sums);
  void stepOfTiles(ArrayRef<Value> left, Value right, int64_t columns);
  Values stepOfVectors(Value left, Value right, int64_t columns,
                       ValueRange sums);
  void finishRows(int64_t tile, Value first, Value skipped, int64_t columns);
  void finish(int64_t column, unsigned width, Value sum);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const DotPlan &plan;
  ArrayRef<Output> outputs;

  int64_t height; ///< rows of a tile
  Value leftMemory, rightMemory;
  Value square; ///< [tiles * height][block] sums
  Value shape;  ///< of the tile registers
  bool sharesColumns = false, sharesRows = false;
  std::optional<unsigned> sharedOuter;
};
} // namespace

//===----------------------------------------------------------------------===//
// Arithmetic on positions
//===----------------------------------------------------------------------===//

Value DotEmitter::plus(Value left, Value right) {
  if (isZeroInteger(left))
    return right;
  if (isZeroInteger(right))
    return left;
  return arith::AddIOp::create(b, loc, left, right);
}

Value DotEmitter::times(Value value, int64_t factor) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return kernel.index(*known * factor);
  if (factor == 1)
    return value;
  return arith::MulIOp::create(b, loc, value, kernel.index(factor));
}

/// The quotient, or the rest.
Value DotEmitter::over(Value value, Value divisor, bool rest) {
  std::optional<int64_t> known = getConstantIntValue(value),
                         by = getConstantIntValue(divisor);
  if (by == 1)
    return rest ? kernel.index(0) : value;
  if (known && by)
    return kernel.index(rest ? *known % *by : *known / *by);
  if (rest)
    return arith::RemUIOp::create(b, loc, value, divisor);
  return arith::DivUIOp::create(b, loc, value, divisor);
}

Value DotEmitter::least(Value value, Value bound) {
  std::optional<int64_t> first = getConstantIntValue(value),
                         second = getConstantIntValue(bound);
  if (first && second)
    return kernel.index(std::min(*first, *second));
  return arith::MinUIOp::create(b, loc, value, bound);
}

/// `for iv = from to to step step`, without a loop for one turn.
void DotEmitter::loop(Value from, Value to, int64_t step, Then body) {
  LaneReader::Scope scope(reader);
  std::optional<int64_t> first = getConstantIntValue(from);
  std::optional<int64_t> last = getConstantIntValue(to);
  if (first && last && *last <= *first)
    return;
  if (first && last && *last <= *first + step)
    return body(from);
  emitLoop(b, loc, from, to, kernel.index(step), {},
           [&](Value iv, ValueRange) -> Values {
             body(iv);
             return {};
           });
}

/// How many turns all of `loops` have together.
Value DotEmitter::extentOf(ArrayRef<unsigned> loops) {
  Value product = kernel.index(1);
  for (unsigned loop : loops) {
    Value turns = kernel.loopExtent(root, loop);
    if (std::optional<int64_t> known = getConstantIntValue(turns))
      product = times(product, *known);
    else if (std::optional<int64_t> before = getConstantIntValue(product))
      product = times(turns, *before);
    else
      product = arith::MulIOp::create(b, loc, product, turns);
  }
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
// Instructions
//===----------------------------------------------------------------------===//

/// The address of `memref` plus that many elements.
Value DotEmitter::address(Value memref, Value element) {
  int64_t bytes =
      cast<MemRefType>(memref.getType()).getElementTypeBitWidth() / 8;
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  base = arith::AddIOp::create(b, loc, base, times(element, bytes));
  base = arith::IndexCastOp::create(b, loc, b.getI64Type(), base);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), base);
}

void DotEmitter::call(llvm::StringRef name, ValueRange arguments) {
  LLVM::CallIntrinsicOp::create(
      b, loc, b.getStringAttr("llvm.x86." + name.str()), arguments);
}

/// A tile register.
Value DotEmitter::number(int64_t tile) {
  return LLVM::ConstantOp::create(b, loc, b.getI8Type(),
                                  b.getI8IntegerAttr(int8_t(tile)));
}

/// Tells the machine the rows and the bytes of a row of each tile register
/// (Intel SDM, volume 1, 18.2).
void DotEmitter::configure() {
  constexpr size_t size = 64, bytesAt = 16, rowsAt = 48;
  std::array<int8_t, size> bytes = {1}; // the palette
  auto set = [&](unsigned tile, int64_t rows, int64_t rowBytes) {
    bytes[bytesAt + 2 * size_t(tile)] = int8_t(rowBytes);
    bytes[rowsAt + tile] = int8_t(rows);
  };
  for (unsigned tile = 0; tile < 4; ++tile)
    set(tile, height, lanes * 4);
  for (unsigned tile : {4, 5})
    set(tile, height, plan.step * 2);
  for (unsigned tile : {6, 7})
    set(tile, plan.step / 2, lanes * 4);
  auto type = VectorType::get(int64_t(size), b.getI8Type());
  Value table = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  vector::StoreOp::create(b, loc, table, shape, ValueRange{kernel.index(0)});
  call("ldtilecfg", address(shape, kernel.index(0)));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void DotEmitter::layOut() {
  Value tensor = plan.right->get();
  auto type = cast<RankedTensorType>(tensor.getType());
  RankedTensorType wanted = pairedType(type, plan.packing);
  auto numbers = [&](llvm::StringRef name, ArrayRef<int64_t> values) {
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
  };
  kernel.setPackedArgument(
      cast<BlockArgument>(tensor).getArgNumber(),
      MemRefType::get(wanted.getShape(), wanted.getElementType()),
      b.getDictionaryAttr(
          {b.getNamedAttr("block", b.getI64IntegerAttr(plan.packing.block)),
           b.getNamedAttr("dim", b.getI64IntegerAttr(plan.packing.dim)),
           numbers("outer", plan.packing.outer),
           numbers("pairs", plan.packing.sums)}));
  leftMemory = kernel.memrefOf(plan.left->get());
  rightMemory = kernel.memrefOf(tensor);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  IntegerAttr aligned = b.getI64IntegerAttr(64);
  square = memref::AllocaOp::create(
      b, loc,
      MemRefType::get({mostTiles() * plan.height, plan.block}, b.getF32Type()),
      aligned);
  if (usesTiles())
    shape = memref::AllocaOp::create(
        b, loc, MemRefType::get({64}, b.getI8Type()), aligned);
}

void DotEmitter::run() {
  kernel.to()->setAttr(kernelAttr,
                       b.getStringAttr(usesTiles() ? "tiles" : "dots"));
  layOut();
  // Neighbouring columns read the same rows, so those are shared last.
  SmallVector<int64_t> turns;
  for (unsigned loop : plan.outer)
    turns.push_back(extent(loop));
  turns.push_back(ShapedType::kDynamic);
  std::optional<int64_t> known = plan.runRows;
  for (unsigned loop : outerRows())
    known = known && !ShapedType::isDynamic(extent(loop))
                ? std::optional(*known * extent(loop))
                : std::nullopt;
  if (known)
    turns.back() = int64_t(llvm::divideCeil(*known, plan.height * mostTiles()));
  turns.push_back(int64_t(llvm::divideCeil(plan.columns, plan.block)));
  std::optional<unsigned> shared = kernel.pickShared(turns);
  if (shared && *shared < plan.outer.size())
    sharedOuter = *shared;
  sharesRows = shared == plan.outer.size();
  sharesColumns = shared == plan.outer.size() + 1;
  auto emit = [&] {
    if (plan.runRows)
      return emitHeight(plan.height);
    // Fewer rows than a tile has go one by one.
    Value rows = kernel.loopExtent(root, plan.rows.back());
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
    call("tilerelease");
}

void DotEmitter::emitHeight(int64_t rows) {
  height = rows;
  if (usesTiles())
    configure();
  emitOuter(plan.outer, kernel.index(plan.start), kernel.index(0));
}

/// Loops that both factors have; `left` is where the left one is, `right` the
/// number of the right one.
void DotEmitter::emitOuter(ArrayRef<unsigned> loops, Value left, Value right) {
  if (loops.empty())
    return emitBlocks(left, right);
  unsigned outer = loops[0];
  Value turns = kernel.loopExtent(root, outer);
  std::pair<Value, Value> range = {kernel.index(0), turns};
  if (sharedOuter && plan.outer[*sharedOuter] == outer)
    range = kernel.share(turns, 1);
  loop(range.first, range.second, 1, [&](Value iv) {
    reader.bind(outer, iv);
    // All but the first of them are of known extent, as the right factor is.
    emitOuter(loops.drop_front(), plus(left, times(iv, plan.strides[outer])),
              plus(times(right, extent(outer)), iv));
  });
}

/// Blocks of rows that stay in the second cache while all columns go by.
void DotEmitter::emitBlocks(Value left, Value right) {
  constexpr int64_t cacheBytes = 512 << 10;
  int64_t rowBytes = 2;
  for (unsigned loop : plan.sums)
    rowBytes *= extent(loop);
  int64_t groups = cacheBytes / (rowBytes * height);
  groups = std::max<int64_t>(groups / mostTiles(), 1) * mostTiles();
  if (sharesRows)
    groups = std::min<int64_t>(groups, 4 * mostTiles());
  Value perRun = kernel.index(1);
  if (plan.runRows)
    perRun = kernel.index(int64_t(llvm::divideCeil(*plan.runRows, height)));
  else
    perRun = over(plus(kernel.loopExtent(root, plan.rows.back()),
                       kernel.index(height - 1)),
                  kernel.index(height), /*rest=*/false);
  Value all = extentOf(outerRows());
  if (std::optional<int64_t> known = getConstantIntValue(perRun))
    all = times(all, *known);
  else if (std::optional<int64_t> known = getConstantIntValue(all))
    all = times(perRun, *known);
  else
    all = arith::MulIOp::create(b, loc, all, perRun);
  std::pair<Value, Value> range = {kernel.index(0), all};
  if (sharesRows)
    range = kernel.share(all, groups);
  Value end = range.second;
  loop(range.first, end, groups, [&](Value first) {
    Value last = least(plus(first, kernel.index(groups)), end);
    emitColumns(first, last, left, right);
  });
}

void DotEmitter::emitColumns(Value first, Value last, Value left, Value right) {
  int64_t whole = plan.columns / plan.block, rest = plan.columns % plan.block;
  int64_t blocks = whole + (rest != 0);
  std::pair<Value, Value> range = {kernel.index(0), kernel.index(blocks)};
  if (sharesColumns)
    range = kernel.share(range.second, 1);
  int64_t depth = 1;
  for (unsigned loop : plan.sums)
    depth *= extent(loop);
  auto block = [&](Value number, int64_t columns) {
    reader.bind(plan.lane, times(number, plan.block));
    Value start = times(plus(times(right, blocks), number), depth * plan.block);
    int64_t most = mostTiles();
    auto tiles = [&](Value from, Value to, int64_t count) {
      loop(from, to, count,
           [&](Value group) { emitTiles(group, count, columns, left, start); });
    };
    Value turns = arith::SubIOp::create(b, loc, last, first);
    if (auto end = getConstantIntValue(last))
      if (auto begin = getConstantIntValue(first))
        turns = kernel.index(*end - *begin);
    Value full =
        plus(first, times(over(turns, kernel.index(most), false), most));
    if (getConstantIntValue(turns) && getConstantIntValue(first))
      full = kernel.index(*getConstantIntValue(first) +
                          *getConstantIntValue(turns) / most * most);
    tiles(first, full, most);
    if (most != 1)
      tiles(full, last, 1);
  };
  loop(range.first, least(range.second, kernel.index(whole)), 1,
       [&](Value number) { block(number, plan.block); });
  if (rest == 0)
    return;
  Value from = kernel.index(whole);
  if (!isZeroInteger(range.first))
    from = arith::MaxUIOp::create(b, loc, range.first, from);
  loop(from, range.second, 1, [&](Value) { block(kernel.index(whole), rest); });
}

/// `tiles` tiles of rows from number `group` on, of one block of columns. The
/// last tile of a run begins early enough to be whole; what it has in common
/// with the one before is not stored again.
void DotEmitter::emitTiles(Value group, int64_t tiles, int64_t columns,
                           Value left, Value right) {
  Value run = plan.runRows ? kernel.index(*plan.runRows)
                           : kernel.loopExtent(root, plan.rows.back());
  Value perRun =
      over(plus(run, kernel.index(height - 1)), kernel.index(height), false);
  if (plan.runRows)
    perRun = kernel.index(int64_t(llvm::divideCeil(*plan.runRows, height)));
  bool overlaps = !plan.runRows || *plan.runRows % height != 0;
  struct Tile {
    Value outer, first, skipped;
  };
  SmallVector<Tile> places;
  Values lefts;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Value at = plus(group, kernel.index(tile));
    Value outer = over(at, perRun, /*rest=*/false);
    Value first = times(over(at, perRun, /*rest=*/true), height);
    Value skipped = kernel.index(0);
    if (overlaps) {
      Value latest =
          plan.runRows
              ? kernel.index(*plan.runRows - height)
              : Value(arith::SubIOp::create(b, loc, run, kernel.index(height)));
      Value early = least(first, latest);
      skipped = arith::SubIOp::create(b, loc, first, early);
      first = early;
    }
    Value place = left;
    {
      LaneReader::Scope scope(reader);
      bindLoops(outerRows(), outer);
      for (unsigned loop : outerRows())
        place =
            plus(place, times(reader.at(getAffineDimExpr(loop, b.getContext())),
                              plan.strides[loop]));
    }
    if (plan.run != 0)
      place = plus(place, times(first, plan.strides[plan.rows.back()]));
    places.push_back({outer, first, skipped});
    lefts.push_back(place);
  }

  int64_t vectors = int64_t(llvm::divideCeil(columns, lanes));
  Values sums;
  if (usesTiles()) {
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t column = 0; column < vectors; ++column)
        call("tilezero", number(tile * 2 + column));
  } else {
    auto type = VectorType::get(lanes, b.getF32Type());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    sums.assign(size_t(height * vectors), zero);
  }
  sums = sumUp(plan.sums, lefts, right, kernel.index(0), columns, sums);
  Value stride = LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                          b.getI64IntegerAttr(plan.block * 4));
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t column = 0; column < vectors; ++column) {
      if (usesTiles()) {
        Value place = kernel.index(tile * height * plan.block + column * lanes);
        call("tilestored64",
             {number(tile * 2 + column), address(square, place), stride});
        continue;
      }
      for (int64_t row = 0; row < height; ++row)
        vector::StoreOp::create(
            b, loc, sums[row * vectors + column], square,
            ValueRange{kernel.index(row), kernel.index(column * lanes)});
    }
  for (auto [tile, place] : llvm::enumerate(places)) {
    LaneReader::Scope scope(reader);
    bindLoops(outerRows(), place.outer);
    finishRows(int64_t(tile), place.first, place.skipped, columns);
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// The loops of the sum, outermost first, and below them the steps. `number`
/// counts turns of those that are done.
DotEmitter::Values DotEmitter::sumUp(ArrayRef<unsigned> loops,
                                     ArrayRef<Value> left, Value right,
                                     Value number, int64_t columns,
                                     ValueRange sums) {
  bool steps = loops.size() == plan.inner;
  int64_t turns = steps ? plan.depth / plan.step : extent(loops[0]);
  int64_t stride = steps ? plan.step : plan.strides[loops[0]];
  auto turn = [&](Value iv, ValueRange inner) -> Values {
    Values places;
    for (Value place : left)
      places.push_back(plus(place, times(iv, stride)));
    Value at = plus(times(number, turns), iv);
    if (!steps)
      return sumUp(loops.drop_front(), places, right, at, columns, inner);
    Value place = plus(right, times(at, plan.step * plan.block));
    if (usesTiles()) {
      stepOfTiles(places, place, columns);
      return {};
    }
    return stepOfVectors(places[0], place, columns, inner);
  };
  if (turns == 1)
    return turn(kernel.index(0), sums);
  return emitLoop(b, loc, kernel.index(0), kernel.index(turns), kernel.index(1),
                  sums, turn);
}

void DotEmitter::stepOfTiles(ArrayRef<Value> left, Value right,
                             int64_t columns) {
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  };
  int64_t apart = plan.run != 0 ? plan.strides[plan.rows.back()] : 0;
  int64_t vectors = int64_t(llvm::divideCeil(columns, lanes));
  for (int64_t column = 0; column < vectors; ++column)
    call("tileloadd64",
         {number(6 + column),
          address(rightMemory, plus(right, kernel.index(column * lanes * 2))),
          constant(plan.block * 4)});
  for (auto [tile, place] : llvm::enumerate(left)) {
    auto row = int64_t(tile);
    call("tileloadd64",
         {number(4 + row), address(leftMemory, place), constant(apart * 2)});
    for (int64_t column = 0; column < vectors; ++column)
      call("tdpbf16ps",
           {number(row * 2 + column), number(4 + row), number(6 + column)});
  }
}

DotEmitter::Values DotEmitter::stepOfVectors(Value left, Value right,
                                             int64_t columns, ValueRange sums) {
  auto pairs = VectorType::get(lanes * 2, b.getBF16Type());
  auto words = VectorType::get(lanes, b.getI32Type());
  auto results = VectorType::get(lanes, b.getF32Type());
  int64_t vectors = int64_t(llvm::divideCeil(columns, lanes));
  int64_t apart = plan.run != 0 ? plan.strides[plan.rows.back()] : 0;
  auto load = [&](Type type, Value memref, Value place) -> Value {
    return LLVM::LoadOp::create(b, loc, type, address(memref, place),
                                /*alignment=*/2);
  };
  Values factors, next;
  for (int64_t column = 0; column < vectors; ++column)
    factors.push_back(load(pairs, rightMemory,
                           plus(right, kernel.index(column * lanes * 2))));
  for (int64_t row = 0; row < height; ++row) {
    Value pair =
        load(b.getI32Type(), leftMemory, plus(left, kernel.index(row * apart)));
    pair = vector::BroadcastOp::create(b, loc, words, pair);
    pair = vector::BitCastOp::create(b, loc, pairs, pair);
    for (int64_t column = 0; column < vectors; ++column)
      next.push_back(
          LLVM::CallIntrinsicOp::create(
              b, loc, results,
              b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
              ValueRange{sums[row * vectors + column], pair, factors[column]})
              .getResult(0));
  }
  return next;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Rows of a tile, from `skipped` on, of which the first is row `first` of the
/// run.
void DotEmitter::finishRows(int64_t tile, Value first, Value skipped,
                            int64_t columns) {
  loop(skipped, kernel.index(height), 1, [&](Value row) {
    bindLoops(runRows(), plus(first, row));
    Value place = plus(row, kernel.index(tile * height));
    for (int64_t column = 0; column < columns;) {
      int64_t width = std::min<int64_t>(
          columns - column, columns == plan.block ? plan.block : lanes);
      auto type = VectorType::get(width, b.getF32Type());
      Value sum = vector::LoadOp::create(
          b, loc, type, square, ValueRange{place, kernel.index(column)});
      finish(column, unsigned(width), sum);
      column += width;
    }
  });
}

/// Computes and stores what follows from the sums of columns.
void DotEmitter::finish(int64_t column, unsigned width, Value sum) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (loop == plan.lane)
      expr = expr + column;
    else if (llvm::is_contained(plan.sums, loop) || extent(loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  auto at = [&](ArrayRef<AffineExpr> position) {
    Position result;
    for (AffineExpr expr : position)
      result.push_back(canonical(expr.replaceDims(point)));
    return result;
  };
  OpResult result = root->getResult(0);
  AffineMap map = root.getIndexingMapMatchingResult(result);
  reader.remember(result, at(map.getResults()), width, {sum, {}});
  for (const Output &output : outputs) {
    Lanes value = reader.read(output.tensor, at(output.position), width);
    reader.write(value, output.destination, at(output.place), width);
  }
}

void emitDots(Kernel &kernel, linalg::GenericOp root, const DotPlan &plan,
              ArrayRef<Output> outputs) {
  DotEmitter(kernel, root, plan, outputs).run();
}

} // namespace keratin
