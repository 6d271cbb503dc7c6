//===- NarrowProducts.cpp - products of few columns -----------------------===//
#include "codegen/cpu/NarrowProducts.h"
#include "codegen/cpu/InPlace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Each turn makes one vector of two: where it has lanes of the first, the
/// halves of those are added, elsewhere those of the second.
Value sumsOfLanes(OpBuilder &b, Location loc, SmallVector<Value> vectors) {
  auto lanes = cast<VectorType>(vectors[0].getType()).getNumElements();
  auto shuffled = [&](Value first, Value second, bool upper,
                      int64_t half) -> Value {
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool ofSecond = (lane & half) != 0;
      int64_t from = (lane & ~half) + (upper ? half : 0);
      mask.push_back(ofSecond ? lanes + from : from);
    }
    return vector::ShuffleOp::create(b, loc, first, second, mask);
  };
  vectors.resize(size_t(lanes));
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    for (int64_t number = 0; number < half; ++number) {
      Value &first = vectors[size_t(number)];
      Value second = vectors[size_t(number + half)], lower = first;
      if (!first)
        continue;
      if (second)
        lower = shuffled(first, second, /*upper=*/false, half);
      Value upper =
          shuffled(first, second ? second : first, /*upper=*/true, half);
      first = arith::AddFOp::create(b, loc, lower, upper);
    }
  }
  return vectors[0];
}

namespace {
class NarrowEmitter {
public:
  NarrowEmitter(Kernel &kernel, linalg::GenericOp root, const NarrowPlan &plan,
                ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), plan(plan), outputs(outputs) {}

  void run();

private:
  using Sums = SmallVector<Value>;
  using Then = llvm::function_ref<void()>;
  /// A level of the loops that threads may share.
  enum Level : unsigned { Columns, Rows };

  Packing packing();
  std::pair<Value, Value> range(size_t level, Value extent, int64_t step);
  void emitOuter(size_t number);
  void emitColumns(Then then);
  void emitRows(Then then);
  void emitTile();
  Sums reduce(ArrayRef<unsigned> loops, Sums sums);
  Sums alongLane(Sums sums);
  void findRowsAhead();
  void prefetchRows();
  void prefetchRun();
  void copyWeights();
  void copyBlocks(SmallVector<Value> place);
  void collapseColumns();
  void spread();
  Value loadColumns(const Position &place);
  Sums step(Sums sums);
  void padRest(int64_t rest);
  void finish(Sums sums);
  void finishColumns(Sums sums);
  int64_t vectors() const { return columns / plan.across; } ///< of a row
  Position pointOf(int64_t row, int64_t column, int64_t tap = 0);
  int64_t taps() { return plan.tap ? staticLoopExtent(root, *plan.tap) : 1; }
  Type element() { return getElementTypeOrSelf(root.getResult(0)); }

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const NarrowPlan &plan;
  ArrayRef<Output> outputs;
  std::optional<unsigned> shared; ///< of outer loops, then columns, then rows

  // The tile that is being emitted.
  int64_t rows = 1, columns = 1;
  SmallVector<AffineExpr> rowsAhead; ///< that are asked for
  /// The packed factor, with what is along the sum beside its columns, and
  /// where it is copied to.
  Value weights, copy;
};
} // namespace

void NarrowEmitter::run() {
  if (plan.packed && !plan.copied)
    kernel.setPackedArgument(
        cast<BlockArgument>(plan.packed->get()).getArgNumber(), packing());
  SmallVector<int64_t> turns;
  for (unsigned loop : plan.outer)
    turns.push_back(staticLoopExtent(root, loop));
  turns.push_back(int64_t(
      llvm::divideCeil(staticLoopExtent(root, plan.column), plan.columns)));
  int64_t turnsOfRows = plan.row ? staticLoopExtent(root, *plan.row) : 1;
  if (!ShapedType::isDynamic(turnsOfRows))
    turnsOfRows = int64_t(llvm::divideCeil(turnsOfRows, plan.rows));
  turns.push_back(turnsOfRows);
  shared = kernel.pickShared(turns);
  auto emit = [&] {
    if (plan.copied)
      copyWeights();
    emitOuter(0);
  };
  if (shared)
    return emit();
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    emit();
  });
}

/// Copies a factor that is not known before to scratch memory, in blocks.
void NarrowEmitter::copyWeights() {
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    auto type = cast<RankedTensorType>(plan.packed->get().getType());
    type = packedType(type, packing());
    copy = memref::AllocaOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()),
        b.getI64IntegerAttr(64));
    collapseColumns();
  }
  copyBlocks({});
}

/// The loops of the copy inside of those that are at `place` of the blocks.
void NarrowEmitter::copyBlocks(SmallVector<Value> place) {
  ArrayRef<int64_t> shape = cast<MemRefType>(copy.getType()).getShape();
  if (place.size() + 1 < shape.size()) {
    emitLoop(b, loc, kernel.index(0), kernel.index(shape[place.size()]),
             kernel.index(1), {}, [&](Value at, ValueRange) -> Sums {
               place.push_back(at);
               copyBlocks(place);
               return {};
             });
    return;
  }
  // Blocks come first, then the other dimensions in order.
  Packing blocks = packing();
  SmallVector<Value> from(ArrayRef(place).drop_front());
  Value first = kernel.times(place.front(), blocks.block);
  from.insert(from.begin() + blocks.dim, first);
  place.push_back(nullptr);
  for (int64_t number = 0; number < blocks.block; ++number) {
    place.back() = kernel.index(number);
    from[blocks.dim] = kernel.plus(first, place.back());
    Value element = memref::LoadOp::create(
        b, loc, kernel.memrefOf(plan.packed->get()), from);
    memref::StoreOp::create(b, loc, element, copy, place);
  }
}

/// The blocks with what is along the sum beside its columns.
void NarrowEmitter::collapseColumns() {
  Value blocks = plan.copied ? copy : kernel.memrefOf(plan.packed->get());
  int64_t rank = cast<MemRefType>(blocks.getType()).getRank();
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim + 1 < rank; ++dim)
    groups.push_back({dim});
  groups.back().push_back(rank - 1);
  weights = memref::CollapseShapeOp::create(b, loc, blocks, groups);
}

/// Blocks of a vector along the sum. Where a tile has a part of the columns,
/// which all rows read, what it reads is in one piece: of a piece of each step
/// every other line may be of the other columns, and half of the sets of the
/// first cache would hold them all.
Packing NarrowEmitter::packing() {
  AffineMap map = root.getMatchingIndexingMap(plan.packed);
  auto dimOf = [&](unsigned loop) {
    return map.getResultPosition(getAffineDimExpr(loop, b.getContext()));
  };
  Packing packing = {*dimOf(plan.lane), plan.along()};
  std::optional<unsigned> columns = dimOf(plan.column);
  if (columns && !plan.rowsOutside &&
      plan.columns < staticLoopExtent(root, plan.column))
    packing.outer.push_back(*columns);
  return packing;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

std::pair<Value, Value> NarrowEmitter::range(size_t level, Value extent,
                                             int64_t step) {
  if (level == shared)
    return kernel.share(extent, step);
  return {kernel.index(0), extent};
}

void NarrowEmitter::emitOuter(size_t number) {
  if (number == plan.outer.size())
    return plan.rowsOutside
               ? emitRows([&] { emitColumns([&] { emitTile(); }); })
               : emitColumns([&] { emitRows([&] { emitTile(); }); });
  unsigned loop = plan.outer[number];
  auto [from, to] = range(number, kernel.loopExtent(root, loop), 1);
  emitTurns(kernel, reader, from, to, 1, [&](Value at) {
    reader.bind(loop, at);
    emitOuter(number + 1);
  });
}

/// Full tiles along the columns, then the exact rest.
void NarrowEmitter::emitColumns(Then then) {
  int64_t extent = staticLoopExtent(root, plan.column);
  int64_t whole = extent / plan.columns * plan.columns;
  auto [from, to] =
      range(plan.outer.size() + Columns, kernel.index(extent), plan.columns);
  auto some = [&](Value from, Value to, int64_t width) {
    columns = width;
    emitTurns(kernel, reader, from, to, width, [&](Value at) {
      reader.bind(plan.column, at);
      then();
    });
  };
  Value end = kernel.index(whole);
  some(from, kernel.least(to, end), plan.columns);
  if (whole == extent)
    return;
  if (shared == plan.outer.size() + Columns)
    from = arith::MaxUIOp::create(b, loc, from, end);
  else
    from = end;
  some(from, to, extent - whole);
}

/// Full tiles along the rows, then a tile of the exact rest; of rows of unknown
/// number tiles of half the rows, and so on.
void NarrowEmitter::emitRows(Then then) {
  rows = 1;
  if (!plan.row)
    return then();
  int64_t extent = staticLoopExtent(root, *plan.row);
  auto [from, all] = range(plan.outer.size() + Rows,
                           kernel.loopExtent(root, *plan.row), plan.rows);
  auto some = [&](Value from, Value to) {
    emitTurns(kernel, reader, from, to, rows, [&](Value at) {
      reader.bind(*plan.row, at);
      then();
    });
  };
  if (!ShapedType::isDynamic(extent)) {
    int64_t whole = extent / plan.rows * plan.rows;
    rows = plan.rows;
    Value end = kernel.index(whole);
    some(from, kernel.least(all, end));
    rows = extent - whole;
    if (rows == 0)
      return;
    if (shared == plan.outer.size() + Rows)
      end = arith::MaxUIOp::create(b, loc, from, end);
    return some(end, all);
  }
  for (int64_t high = plan.rows; high != 0; high /= 2) {
    Value to = all;
    if (high > 1) {
      Value height = kernel.index(high);
      Value left = arith::SubIOp::create(b, loc, all, from);
      Value tiles = arith::DivUIOp::create(b, loc, left, height);
      to = arith::AddIOp::create(b, loc, from,
                                 arith::MulIOp::create(b, loc, tiles, height));
    }
    rows = high;
    some(from, to);
    from = to;
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The loops of the root at a row and a column of the tile, and at a tap.
Position NarrowEmitter::pointOf(int64_t row, int64_t column, int64_t tap) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (staticLoopExtent(root, loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    else if (loop == plan.tap)
      expr = getAffineConstantExpr(tap, b.getContext());
    else if (loop == plan.column)
      expr = expr + column;
    else if (loop == plan.row)
      expr = expr + row;
    point.push_back(expr);
  }
  return point;
}

void NarrowEmitter::emitTile() {
  LaneReader::Scope scope(reader);
  auto type = VectorType::get(plan.lanes, element());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  if (plan.far && plan.across == 1)
    findRowsAhead();
  reader.setLane(plan.lane);
  Sums sums = reduce(plan.sums, Sums(size_t(rows * vectors()), zero));
  reader.setLane(plan.column);
  if (plan.across > 1)
    finishColumns(std::move(sums));
  else
    finish(std::move(sums));
}

NarrowEmitter::Sums NarrowEmitter::reduce(ArrayRef<unsigned> loops, Sums sums) {
  if (loops.empty())
    return alongLane(std::move(sums));
  return emitLoop(b, loc, kernel.index(0), kernel.loopExtent(root, loops[0]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loops[0], iv);
                    return reduce(loops.drop_front(), Sums(inner));
                  });
}

/// Whole vectors along the sum, and one that zeros are behind.
NarrowEmitter::Sums NarrowEmitter::alongLane(Sums sums) {
  int64_t extent = staticLoopExtent(root, plan.lane);
  int64_t whole = extent / plan.along();
  auto block = [&](Value number) {
    reader.bind(plan.lane, arith::MulIOp::create(b, loc, number,
                                                 kernel.index(plan.along())));
    if (!plan.packed)
      return;
    Value tensor = plan.packed->get();
    Value blocks = plan.copied ? copy : kernel.memrefOf(tensor);
    reader.setPacked(tensor, {blocks, number, packing()});
  };
  sums = emitLoop(b, loc, kernel.index(0), kernel.index(whole), kernel.index(1),
                  sums, [&](Value number, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    block(number);
                    prefetchRows();
                    spread();
                    return step(Sums(inner));
                  });
  if (int64_t rest = extent % plan.along()) {
    LaneReader::Scope scope(reader);
    block(kernel.index(whole));
    padRest(rest);
    sums = step(std::move(sums));
  }
  return sums;
}

/// The rows of a tile to come; behind the last one is nothing to ask for.
void NarrowEmitter::findRowsAhead() {
  constexpr int64_t tilesAhead = 2;
  Value last = arith::SubIOp::create(b, loc, kernel.loopExtent(root, *plan.row),
                                     kernel.index(1));
  AffineExpr first = getAffineDimExpr(*plan.row, b.getContext());
  rowsAhead.clear();
  for (int64_t row = 0; row < rows; ++row) {
    Value next = reader.at(first + (tilesAhead * rows + row));
    rowsAhead.push_back(
        reader.symbol(arith::MinUIOp::create(b, loc, next, last)));
  }
}

/// Asks for a part of the rows of the next tile, which are behind those of this
/// one: each step goes on by as many elements as it reads. A line of those is
/// enough, if they are more: asking for all takes longer.
void NarrowEmitter::prefetchRun() {
  Value memref = kernel.memrefOf(plan.far->get());
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getLayout().isIdentity())
    return;
  ArrayRef<int64_t> shape = type.getShape();
  Position place = atPoint(root.getMatchingIndexingMap(plan.far).getResults(),
                           pointOf(rows, 0));
  AffineExpr start = getAffineConstantExpr(0, b.getContext());
  for (auto [dim, expr] : llvm::enumerate(place))
    start = dim == 0 ? expr : start * shape[dim] + expr;
  start = start + getAffineDimExpr(plan.lane, b.getContext()) * (rows - 1);
  Value flat;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    ReassociationIndices all(llvm::to_vector(llvm::seq<int64_t>(shape.size())));
    flat = memref::CollapseShapeOp::create(b, loc, memref,
                                           ArrayRef<ReassociationIndices>(all));
  }
  // Behind the last tile is nothing to ask for.
  Value last = arith::SubIOp::create(
      b, loc, memref::DimOp::create(b, loc, flat, 0), kernel.index(1));
  Value at = arith::MinUIOp::create(b, loc, reader.at(canonical(start)), last);
  memref::PrefetchOp::create(b, loc, flat, at, /*isWrite=*/false,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

/// Asks for what this step of those rows reads.
void NarrowEmitter::prefetchRows() {
  if (plan.far && plan.across > 1)
    return prefetchRun();
  for (AffineExpr row : rowsAhead) {
    Position point = pointOf(0, 0);
    point[*plan.row] = row;
    SmallVector<Value> place;
    for (AffineExpr expr :
         atPoint(root.getMatchingIndexingMap(plan.far).getResults(), point))
      place.push_back(reader.at(expr));
    memref::PrefetchOp::create(b, loc, kernel.memrefOf(plan.far->get()), place,
                               /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }
}

/// The columns of a vector that begins at `place` of the packed factor,
/// which has what is along the sum as its innermost dimension, and columns
/// around that.
Value NarrowEmitter::loadColumns(const Position &place) {
  const LaneReader::Packed &packed = reader.packedOf(plan.packed->get());
  if (!weights) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    collapseColumns();
  }
  SmallVector<Value> indices = reader.placeOf(packed, place);
  indices.pop_back();
  indices.back() = kernel.times(indices.back(), plan.along());
  auto type = VectorType::get(plan.lanes, element());
  return vector::LoadOp::create(b, loc, type, weights, indices);
}

/// Makes some elements of each row a vector, which has them again for each of
/// its columns, and loads the columns.
void NarrowEmitter::spread() {
  if (plan.across == 1)
    return;
  auto remember = [&](OpOperand *input, const Position &place, Value vector) {
    reader.remember(input->get(), place, plan.lanes, {vector, {}});
  };
  for (OpOperand *input : root.getDpsInputOperands()) {
    ArrayRef<AffineExpr> map = root.getMatchingIndexingMap(input).getResults();
    bool isPacked = input == plan.packed;
    for (int64_t number = 0; number < (isPacked ? vectors() : rows); ++number) {
      Position place = atPoint(map, isPacked ? pointOf(0, number * plan.across)
                                             : pointOf(number, 0));
      if (isPacked) {
        remember(input, place, loadColumns(place));
        continue;
      }
      unsigned count = plan.along();
      Value some =
          reader.materialize(reader.read(input->get(), place, count), count);
      SmallVector<int64_t> mask;
      for (unsigned lane = 0; lane < plan.lanes; ++lane)
        mask.push_back(lane % count);
      remember(input, place,
               vector::ShuffleOp::create(b, loc, some, some, mask));
    }
  }
}

/// One vector of the sum for all rows and columns, and taps of a step. What a
/// pixel has meets the taps of all rows that read it.
NarrowEmitter::Sums NarrowEmitter::step(Sums sums) {
  auto add = [&](int64_t row, int64_t column, int64_t tap) {
    Value &sum = sums[size_t(row * vectors() + column)];
    Position point = pointOf(row, column * plan.across, tap);
    Lanes next = reader.evaluate(root, point, {{sum, {}}}, plan.lanes)[0];
    sum = reader.materialize(next, plan.lanes);
  };
  if (!plan.tap) {
    // Of rows and columns, those of which there are fewer stay in registers,
    // the others come by.
    bool rowsStay = rows <= vectors();
    int64_t inner = std::min(rows, vectors());
    for (int64_t number = 0; number < rows * vectors(); ++number)
      rowsStay ? add(number % inner, number / inner, 0)
               : add(number / inner, number % inner, 0);
    return sums;
  }
  for (int64_t pixel = 0; pixel < rows + taps() - 1; ++pixel)
    for (int64_t tap = 0; tap < taps(); ++tap)
      for (int64_t column = 0; column < vectors(); ++column)
        if (int64_t row = pixel - tap; row >= 0 && row < rows)
          add(row, column, tap);
  return sums;
}

/// Makes the last `rest` elements of each factor a vector with zeros behind
/// them, which a packed one has.
void NarrowEmitter::padRest(int64_t rest) {
  for (OpOperand *input : root.getDpsInputOperands()) {
    if (input == plan.packed)
      continue;
    auto type = VectorType::get(plan.lanes, getElementTypeOrSelf(input->get()));
    // LLVM joins integers where it does not join bf16.
    Type word = b.getIntegerType(type.getElementTypeBitWidth());
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type.clone(word)));
    AffineMap map = root.getMatchingIndexingMap(input);
    llvm::SmallDenseSet<AffineMap> seen;
    int64_t all = columns * rows * taps();
    for (int64_t number = 0; number < all; ++number) {
      int64_t row = number % rows, column = number / rows % columns;
      Position place = atPoint(map.getResults(),
                               pointOf(row, column, number / rows / columns));
      if (!seen.insert(
                   AffineMap::get(root.getNumLoops(), 0, place, b.getContext()))
               .second)
        continue;
      Value part = reader.materialize(
          reader.read(input->get(), place, unsigned(rest)), unsigned(rest));
      auto partType = cast<VectorType>(part.getType()).clone(word);
      part = vector::BitCastOp::create(b, loc, partType, part);
      part = vector::InsertStridedSliceOp::create(
          b, loc, part, zero, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
      part = vector::BitCastOp::create(b, loc, type, part);
      reader.remember(input->get(), place, plan.lanes, {part, {}});
    }
  }
}

/// The sums of neighbouring lanes, those of `second` behind those of `first`;
/// half as many where there is no second.
static Value sumsOfNeighbours(OpBuilder &b, Location loc, Value first,
                              Value second) {
  int64_t lanes = cast<VectorType>(first.getType()).getNumElements();
  SmallVector<int64_t> even, odd;
  for (int64_t lane = 0; lane < (second ? 2 * lanes : lanes); lane += 2) {
    even.push_back(lane);
    odd.push_back(lane + 1);
  }
  if (!second)
    second = first;
  return arith::AddFOp::create(
      b, loc, vector::ShuffleOp::create(b, loc, first, second, even),
      vector::ShuffleOp::create(b, loc, first, second, odd));
}

/// Adds up what each column has in a vector, and stores what follows.
void NarrowEmitter::finishColumns(Sums sums) {
  for (int64_t row = 0; row < rows; ++row) {
    Sums parts(ArrayRef(sums).slice(size_t(row * vectors()), vectors()));
    for (unsigned left = plan.along(); left > 1; left /= 2) {
      Sums joined;
      for (size_t number = 0; number < parts.size(); ++number) {
        bool isPair = number + 1 < parts.size() &&
                      parts[number].getType() == parts[number + 1].getType();
        joined.push_back(sumsOfNeighbours(
            b, loc, parts[number], isPair ? parts[number + 1] : Value()));
        number += isPair;
      }
      parts = std::move(joined);
    }
    int64_t column = 0;
    for (Value part : parts) {
      auto width = cast<VectorType>(part.getType()).getNumElements();
      storeOutputs(reader, root, outputs, pointOf(row, column), unsigned(width),
                   part);
      column += width;
    }
  }
}

/// Adds up the lanes of all sums, some rows at a time, and stores what follows.
void NarrowEmitter::finish(Sums sums) {
  int64_t width = llvm::PowerOf2Ceil(uint64_t(columns));
  int64_t atOnce = plan.lanes / width;
  for (int64_t first = 0; first < rows; first += atOnce) {
    int64_t count = std::min(atOnce, rows - first);
    Sums vectors(size_t(plan.lanes));
    for (int64_t row = 0; row < count; ++row)
      for (int64_t column = 0; column < columns; ++column)
        vectors[size_t(row * width + column)] =
            sums[size_t((first + row) * columns + column)];
    Value totals = sumsOfLanes(b, loc, std::move(vectors));
    for (int64_t row = first; row < first + count; ++row) {
      Position point = pointOf(row, 0);
      int64_t offset = (row - first) * width;
      Value total =
          columns == 1
              ? vector::ExtractOp::create(b, loc, totals, offset).getResult()
              : vector::ExtractStridedSliceOp::create(
                    b, loc, totals, ArrayRef<int64_t>{offset},
                    ArrayRef<int64_t>{columns}, ArrayRef<int64_t>{1})
                    .getResult();
      storeOutputs(reader, root, outputs, point,
                   unsigned(columns == 1 ? 0 : columns), total);
    }
  }
}

void emitNarrow(Kernel &kernel, linalg::GenericOp root, const NarrowPlan &plan,
                ArrayRef<Output> outputs) {
  NarrowEmitter(kernel, root, plan, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
