//===- TileEmitter.cpp - register tiles of outputs ------------------------===//
//
// A tile keeps rows times vectors of accumulators in registers over the whole
// reduction. Per step it loads the vectors of columns, broadcasts a scalar for
// each row, and issues one FMA for each pair. Edges are smaller tiles of the
// exact rest, not masks.
//
// A reduction in blocks goes over all tiles for each block; the output holds
// the sums between them.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileEmitter.h"

#include "codegen/cpu/Packing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {

/// Columns of a tile: where each vector starts and how wide it is; width 0 is
/// a scalar.
struct Column {
  int64_t offset;
  unsigned width;
};

class TileEmitter {
public:
  TileEmitter(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
              ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), tiling(tiling), outputs(outputs) {
    reader.setLane(tiling.lane);
  }

  void run();

private:
  using Then = llvm::function_ref<void()>;
  using Sums = SmallVector<Value>;

  Packing packingOfBlocks();
  void layOutBlocks();
  bool isInBlock(unsigned loop);
  bool isFromBlockToBlock(unsigned loop);
  void emitLevel(unsigned number);
  std::pair<Value, Value> range(unsigned loop, int64_t step, bool shared);
  void emitBlocksOf(const Tiling::Level &level, bool shared, Then then);
  Value numberOfTile();
  void prefetch();
  Value least(Value value, int64_t bound);
  Value most(Value value, Value bound);
  void emitColumns(bool shared, Then then);
  void emitRows(unsigned loop, bool shared, Then then);
  void emitRowLadder(bool shared, Then then);
  void span(unsigned loop, Value from, Value to, int64_t step, Then then);
  void inBlock(Value number, ArrayRef<Column> vectors, Then then);
  void findNextBlock(Value number);
  void fillPanel();
  void fillPanelLoops(ArrayRef<unsigned> loops, ArrayRef<Value> starts);

  Value isAtEnd(bool last);
  void emitBlocks(ArrayRef<unsigned> outer);
  void emitTile();
  Sums startSums();
  Sums readSums();
  void writeSums(ValueRange sums);
  Value destinationTensor();
  Sums reduce(ArrayRef<unsigned> loops, ValueRange sums);
  Sums step(ValueRange sums);
  struct Tap {
    SmallVector<AffineExpr> taps;
    unsigned row;
    size_t number;
    SmallVector<int64_t> place; ///< what it reads
  };
  SmallVector<Tap> tapsOfRows();
  void forEachTap(llvm::function_ref<void(ArrayRef<AffineExpr>)> body);
  Position pointOf(unsigned row, unsigned column, ArrayRef<AffineExpr> taps);
  void finishTile(ValueRange sums);
  bool sumsWholeVectors();
  unsigned sumWidth(unsigned column);
  unsigned rows() const { return innerRows * outerRows; }
  Position at(ArrayRef<AffineExpr> position, ArrayRef<AffineExpr> point);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const Tiling &tiling;
  ArrayRef<Output> outputs;

  // The tile that is being emitted.
  unsigned innerRows = 1, outerRows = 1;
  SmallVector<Column> columns;
  Value panel;
  Packing packing = {}; ///< of the operand in blocks

  // A reduction in blocks.
  std::pair<Value, Value> block; ///< of the loop that goes from block to block

  /// Where the blocks of loops that are emitted start and end.
  llvm::DenseMap<unsigned, std::pair<Value, Value>> blocksAround;
  Value nextBlock;   ///< of columns
  Value flatWeights; ///< the packed operand in one dimension
};

} // namespace

void TileEmitter::run() {
  if (tiling.blocked)
    layOutBlocks();
  auto emit = [&] {
    emitBlocks(ArrayRef(tiling.reductions).take_front(tiling.outerReductions));
  };
  if (tiling.shared)
    return emit();
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    emit();
  });
}

void TileEmitter::emitBlocks(ArrayRef<unsigned> outer) {
  if (!outer.empty())
    return span(outer[0], kernel.index(0), kernel.loopExtent(root, outer[0]), 1,
                [&] { emitBlocks(outer.drop_front()); });
  if (tiling.blockStep == 0)
    return emitLevel(0);
  unsigned loop = tiling.reductions[tiling.outerReductions];
  Value extent = kernel.loopExtent(root, loop);
  Value step = kernel.index(tiling.blockStep);
  emitLoop(b, loc, kernel.index(0), extent, step, {},
           [&](Value from, ValueRange) -> Sums {
             LaneReader::Scope scope(reader);
             Value to = arith::AddIOp::create(b, loc, from, step);
             block = {from, arith::MinUIOp::create(b, loc, to, extent)};
             emitLevel(0);
             return {};
           });
}

/// The operand in blocks has its dimensions that other parallel loops go along
/// outside of the blocks, so that a block is contiguous.
Packing TileEmitter::packingOfBlocks() {
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  Packing packing = {};
  packing.block = int64_t(tiling.size.vectors) * tiling.lanes;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      continue;
    if (loop.getPosition() == tiling.lane)
      packing.dim = dim;
    else if (!tiling.panel &&
             root.getIteratorTypesArray()[loop.getPosition()] ==
                 utils::IteratorType::parallel)
      packing.outer.push_back(dim);
  }
  return packing;
}

/// Gives the operand in blocks its memory: the packed argument, or a panel of
/// one block.
void TileEmitter::layOutBlocks() {
  Value tensor = tiling.blocked->get();
  auto type = cast<RankedTensorType>(tensor.getType());
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  packing = packingOfBlocks();
  if (!tiling.panel) {
    RankedTensorType wanted = packedType(type, packing);
    SmallVector<NamedAttribute> order = {
        b.getNamedAttr("dim", b.getI64IntegerAttr(packing.dim)),
        b.getNamedAttr("block", b.getI64IntegerAttr(packing.block))};
    if (!packing.outer.empty())
      order.push_back(
          b.getNamedAttr("outer", b.getDenseI64ArrayAttr(packing.outer)));
    kernel.setPackedArgument(
        cast<BlockArgument>(tensor).getArgNumber(),
        MemRefType::get(wanted.getShape(), wanted.getElementType()),
        b.getDictionaryAttr(order));
    return;
  }
  // Only what a block reads: the reductions; other loops have one position.
  SmallVector<int64_t> shape = {1};
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (axis == packing.dim)
      continue;
    int64_t turns = 1;
    if (loop && isInBlock(loop.getPosition())) {
      turns = type.getDimSize(axis);
      if (isFromBlockToBlock(loop.getPosition()))
        turns = ShapedType::isDynamic(turns)
                    ? tiling.blockStep
                    : std::min(turns, tiling.blockStep);
    }
    shape.push_back(turns);
  }
  shape.push_back(packing.block);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  auto panelType = MemRefType::get(shape, type.getElementType());
  panel = memref::AllocaOp::create(b, loc, panelType, b.getI64IntegerAttr(64));
}

/// Whether `loop` is a reduction that a tile goes along, and whether it does so
/// in blocks.
bool TileEmitter::isInBlock(unsigned loop) {
  return llvm::is_contained(
      ArrayRef(tiling.reductions).drop_front(tiling.outerReductions), loop);
}

bool TileEmitter::isFromBlockToBlock(unsigned loop) {
  return tiling.blockStep != 0 &&
         tiling.reductions[tiling.outerReductions] == loop;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// `for coordinate loop = from to to step step`, without a loop for one turn.
void TileEmitter::span(unsigned loop, Value from, Value to, int64_t step,
                       Then then) {
  LaneReader::Scope scope(reader);
  std::optional<int64_t> first = getConstantIntValue(from);
  std::optional<int64_t> last = getConstantIntValue(to);
  if (first && last && *last <= *first)
    return;
  if (first && last && *last <= *first + step) {
    reader.bind(loop, from);
    then();
    return;
  }
  emitLoop(b, loc, from, to, kernel.index(step), {},
           [&](Value iv, ValueRange) -> Sums {
             reader.bind(loop, iv);
             then();
             return {};
           });
}

void TileEmitter::emitLevel(unsigned number) {
  if (number == tiling.levels.size())
    return emitTile();
  auto then = [&] { emitLevel(number + 1); };
  const Tiling::Level &level = tiling.levels[number];
  bool shared = number == tiling.shared;
  switch (level.kind) {
  case Tiling::Kind::Single: {
    auto [from, to] = range(level.loop, 1, shared);
    return span(level.loop, from, to, 1, then);
  }
  case Tiling::Kind::Columns:
    return emitColumns(shared, then);
  case Tiling::Kind::Rows:
    return emitRows(level.loop, shared, then);
  case Tiling::Kind::Blocks:
    return emitBlocksOf(level, shared, then);
  }
}

/// Where a loop starts and ends: in the block around it, or that of a shared
/// level in steps of full tiles.
std::pair<Value, Value> TileEmitter::range(unsigned loop, int64_t step,
                                           bool shared) {
  if (auto known = blocksAround.find(loop); known != blocksAround.end())
    return known->second;
  Value extent = kernel.loopExtent(root, loop);
  if (shared)
    return kernel.share(extent, step);
  return {kernel.index(0), extent};
}

void TileEmitter::emitBlocksOf(const Tiling::Level &level, bool shared,
                               Then then) {
  auto [from, to] = range(level.loop, level.step, shared);
  Value step = kernel.index(level.step), end = to;
  emitLoop(b, loc, from, to, step, {}, [&](Value iv, ValueRange) -> Sums {
    LaneReader::Scope scope(reader);
    Value next = arith::AddIOp::create(b, loc, iv, step);
    blocksAround[level.loop] = {iv, arith::MinUIOp::create(b, loc, next, end)};
    then();
    blocksAround.erase(level.loop);
    return {};
  });
}

Value TileEmitter::least(Value value, int64_t bound) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return kernel.index(std::min(*known, bound));
  return arith::MinUIOp::create(b, loc, value, kernel.index(bound));
}

Value TileEmitter::most(Value value, Value bound) {
  if (isZeroInteger(value))
    return bound;
  return arith::MaxUIOp::create(b, loc, value, bound);
}

void TileEmitter::inBlock(Value number, ArrayRef<Column> vectors, Then then) {
  columns.assign(vectors.begin(), vectors.end());
  if (panel)
    fillPanel();
  else if (tiling.blocked)
    reader.setPacked(tiling.blocked->get(),
                     {kernel.memrefOf(tiling.blocked->get()), number, packing});
  if (tiling.tilesOfPrefetch != 0)
    findNextBlock(number);
  then();
}

/// The block behind `number`; behind the last one comes the first.
void TileEmitter::findNextBlock(Value number) {
  ArrayRef<int64_t> shape =
      cast<ShapedType>(kernel.memrefOf(tiling.blocked->get()).getType())
          .getShape();
  size_t outside = packing.outer.size();
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  Value place;
  auto add = [&](Value value, int64_t extent) {
    if (place) {
      place = arith::MulIOp::create(b, loc, place, kernel.index(extent));
      value = arith::AddIOp::create(b, loc, place, value);
    }
    place = value;
  };
  for (auto [dim, extent] :
       llvm::zip_equal(packing.outer, shape.take_front(outside)))
    if (extent != 1)
      add(reader.at(map.getResult(dim)), extent);
  add(number, shape[outside]);
  int64_t last = llvm::product_of(shape.take_front(outside + 1)) - 1;
  Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, place,
                                       kernel.index(last));
  place = arith::AddIOp::create(b, loc, place, kernel.index(1));
  nextBlock = arith::SelectOp::create(b, loc, isLast, kernel.index(0), place);
}

/// Full blocks, then the exact rest; columns of unknown number go vector by
/// vector and then one by one.
void TileEmitter::emitColumns(bool shared, Then then) {
  unsigned loop = tiling.lane, lanes = tiling.lanes;
  int64_t block = int64_t(tiling.size.vectors) * lanes;
  SmallVector<Column> full;
  for (unsigned vector = 0; vector < tiling.size.vectors; ++vector)
    full.push_back({int64_t(vector) * lanes, lanes});

  int64_t extent = staticLoopExtent(root, loop);
  if (ShapedType::isDynamic(extent)) {
    auto [from, to] = range(loop, block, shared);
    // From a multiple of a block on, so that only the last share has a rest.
    Value width = kernel.index(block);
    Value whole = arith::MulIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, to, width), width);
    span(loop, from, whole, block, [&] { inBlock({}, full, then); });
    span(loop, most(from, whole), to, 1,
         [&] { inBlock({}, {Column{0, 0}}, then); });
    return;
  }
  // The loop counts blocks, which is how packed operands are addressed.
  auto blockAt = [&](Value number, ArrayRef<Column> vectors) {
    Value start =
        getConstantIntValue(number)
            ? kernel.index(*getConstantIntValue(number) * block)
            : arith::MulIOp::create(b, loc, number, kernel.index(block));
    reader.bind(loop, start);
    inBlock(number, vectors, then);
  };
  int64_t blocks = extent / block, rest = extent % block;
  Value number = kernel.index(blocks + (rest != 0));
  auto [from, to] =
      shared ? kernel.share(number, 1) : std::pair(kernel.index(0), number);
  auto turns = [&](Value from, Value to, llvm::function_ref<void(Value)> body) {
    std::optional<int64_t> first = getConstantIntValue(from);
    std::optional<int64_t> last = getConstantIntValue(to);
    if (first && last && *last <= *first + 1) {
      LaneReader::Scope scope(reader);
      if (*last > *first)
        body(from);
      return;
    }
    emitLoop(b, loc, from, to, kernel.index(1), {},
             [&](Value number, ValueRange) -> Sums {
               LaneReader::Scope scope(reader);
               body(number);
               return {};
             });
  };
  turns(from, least(to, blocks), [&](Value number) { blockAt(number, full); });
  if (rest == 0)
    return;
  SmallVector<Column> last;
  for (int64_t offset = 0; offset < rest; offset += lanes)
    last.push_back({offset, unsigned(std::min<int64_t>(lanes, rest - offset))});
  turns(most(from, kernel.index(blocks)), to,
        [&](Value) { blockAt(kernel.index(blocks), last); });
}

void TileEmitter::emitRows(unsigned loop, bool shared, Then then) {
  bool outer = loop == tiling.outerRow;
  unsigned full = outer ? tiling.size.outerRows : tiling.size.rows;
  int64_t extent = staticLoopExtent(root, loop);
  if (ShapedType::isDynamic(extent))
    return emitRowLadder(shared, then);
  unsigned &height = outer ? outerRows : innerRows;
  auto [from, to] = range(loop, full, shared);
  int64_t whole = extent / full * full;
  height = full;
  span(loop, from, least(to, whole), full, then);
  if (whole == extent)
    return;
  height = extent - whole;
  span(loop, most(from, kernel.index(whole)), to, height, then);
}

/// Rows of unknown number: full tiles, then tiles of half the rows, and so on.
void TileEmitter::emitRowLadder(bool shared, Then then) {
  unsigned loop = *tiling.row;
  auto [from, all] = range(loop, tiling.size.rows, shared);
  for (unsigned height = tiling.size.rows; height != 0; height /= 2) {
    Value to = all, step = kernel.index(height);
    if (height > 1) {
      Value left = arith::SubIOp::create(b, loc, all, from);
      Value tiles = arith::DivUIOp::create(b, loc, left, step);
      to = arith::AddIOp::create(b, loc, from,
                                 arith::MulIOp::create(b, loc, tiles, step));
    }
    innerRows = height;
    span(loop, from, to, height, then);
    from = to;
  }
}

/// Copies the columns of the block to the panel, in the order of the tile.
void TileEmitter::fillPanel() {
  Value tensor = tiling.blocked->get();
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  reader.forgetPacked(tensor);
  SmallVector<unsigned> loops;
  SmallVector<Value> starts;
  for (AffineExpr expr : map.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    bool blockwise = loop && isFromBlockToBlock(loop.getPosition());
    starts.push_back(blockwise ? block.first : Value());
    if (loop && isInBlock(loop.getPosition()))
      loops.push_back(loop.getPosition());
  }
  {
    LaneReader::Scope scope(reader);
    fillPanelLoops(loops, starts);
  }
  reader.setPacked(tensor, {panel, kernel.index(0), packing, starts});
}

void TileEmitter::fillPanelLoops(ArrayRef<unsigned> loops,
                                 ArrayRef<Value> starts) {
  if (!loops.empty()) {
    Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
    if (isFromBlockToBlock(loops[0]))
      std::tie(from, to) = block;
    return span(loops[0], from, to, 1,
                [&] { fillPanelLoops(loops.drop_front(), starts); });
  }
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  auto panelType = cast<MemRefType>(panel.getType());
  for (auto [number, column] : llvm::enumerate(columns)) {
    Lanes lanes = reader.read(tiling.blocked->get(),
                              at(map.getResults(), pointOf(0, number, taps)),
                              column.width);
    SmallVector<Value> place = {kernel.index(0)};
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      if (dim == packing.dim)
        continue;
      if (panelType.getDimSize(place.size()) == 1) {
        place.push_back(kernel.index(0));
        continue;
      }
      Value value = reader.at(expr);
      if (starts[dim])
        value = arith::SubIOp::create(b, loc, value, starts[dim]);
      place.push_back(value);
    }
    place.push_back(kernel.index(column.offset));
    Value value = reader.materialize(lanes, column.width);
    if (column.width == 0)
      memref::StoreOp::create(b, loc, value, panel, place);
    else
      vector::StoreOp::create(b, loc, value, panel, place);
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Position TileEmitter::at(ArrayRef<AffineExpr> position,
                         ArrayRef<AffineExpr> point) {
  Position result;
  for (AffineExpr expr : position)
    result.push_back(canonical(expr.replaceDims(point)));
  return result;
}

/// The loops of the root at a row, the first lane of a column, and a tap.
Position TileEmitter::pointOf(unsigned row, unsigned column,
                              ArrayRef<AffineExpr> taps) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (taps[loop])
      expr = taps[loop];
    else if (loop == tiling.lane)
      expr = expr + columns[column].offset;
    else if (loop == tiling.row)
      expr = expr + row % innerRows;
    else if (loop == tiling.outerRow)
      expr = expr + row / innerRows;
    else if (staticLoopExtent(root, loop) == 1)
      expr = getAffineConstantExpr(0, b.getContext());
    point.push_back(expr);
  }
  return point;
}

void TileEmitter::forEachTap(
    llvm::function_ref<void(ArrayRef<AffineExpr>)> body) {
  SmallVector<int64_t> extents;
  for (unsigned loop : tiling.taps)
    extents.push_back(staticLoopExtent(root, loop));
  int64_t number = llvm::product_of(extents);
  for (int64_t tap = 0; tap < number; ++tap) {
    SmallVector<AffineExpr> taps(root.getNumLoops());
    int64_t rest = tap;
    for (unsigned axis = extents.size(); axis-- > 0;) {
      taps[tiling.taps[axis]] =
          getAffineConstantExpr(rest % extents[axis], b.getContext());
      rest /= extents[axis];
    }
    body(taps);
  }
}

/// Blocks hold zeros after their last column, so sums may be of whole vectors
/// when nothing else is read along the lane.
bool TileEmitter::sumsWholeVectors() {
  if (!tiling.blocked || tiling.panel || tiling.inBlocks())
    return false;
  for (OpOperand &operand : root->getOpOperands()) {
    if (&operand == tiling.blocked ||
        root.getMatchingBlockArgument(&operand).use_empty())
      continue;
    bool uniform =
        !root.getMatchingIndexingMap(&operand).isFunctionOfDim(tiling.lane);
    if (!uniform && !operand.get().getDefiningOp<linalg::FillOp>())
      return false;
  }
  return llvm::none_of(
             root.getBody()->getOps<linalg::IndexOp>(),
             [&](linalg::IndexOp op) { return op.getDim() == tiling.lane; }) &&
         llvm::none_of(*root.getBody(), [](Operation &op) {
           // What traps on zeros, and what reads where a lane says.
           return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                      arith::RemUIOp, tensor::ExtractOp>(op);
         });
}

unsigned TileEmitter::sumWidth(unsigned column) {
  return sumsWholeVectors() ? tiling.lanes : columns[column].width;
}

/// Whether a block of the reductions is the first one, or the last one.
Value TileEmitter::isAtEnd(bool last) {
  Value all;
  auto add = [&](Value left, Value right) {
    Value equal =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, left, right);
    all = all ? arith::AndIOp::create(b, loc, all, equal) : equal;
  };
  for (unsigned loop :
       ArrayRef(tiling.reductions).take_front(tiling.outerReductions)) {
    Value at = reader.at(getAffineDimExpr(loop, b.getContext()));
    Value end = kernel.loopExtent(root, loop);
    if (last)
      at = arith::AddIOp::create(b, loc, at, kernel.index(1));
    add(at, last ? end : kernel.index(0));
  }
  if (tiling.blockStep != 0) {
    unsigned loop = tiling.reductions[tiling.outerReductions];
    add(last ? block.second : block.first,
        last ? kernel.loopExtent(root, loop) : kernel.index(0));
  }
  return all;
}

/// A tile of a reduction in blocks goes on from what is in the output, and
/// leaves its sums there until they are complete.
void TileEmitter::emitTile() {
  LaneReader::Scope scope(reader);
  auto reductions =
      ArrayRef(tiling.reductions).drop_front(tiling.outerReductions);
  if (!tiling.inBlocks())
    return finishTile(reduce(reductions, startSums()));
  auto either = [&](bool last, TypeRange types, llvm::function_ref<Sums()> then,
                    llvm::function_ref<Sums()> otherwise) {
    auto branch = scf::IfOp::create(b, loc, types, isAtEnd(last),
                                    /*withElseRegion=*/true);
    for (bool first : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      LaneReader::Scope inner(reader);
      Block &body = first ? *branch.thenBlock() : *branch.elseBlock();
      b.setInsertionPointToStart(&body);
      Sums results = first ? then() : otherwise();
      b.setInsertionPointToEnd(&body);
      if (!results.empty())
        scf::YieldOp::create(b, loc, results);
    }
    return Sums(branch.getResults());
  };
  Type element = getElementTypeOrSelf(root.getResult(0));
  SmallVector<Type> types;
  for (unsigned row = 0; row < rows(); ++row)
    for (const Column &column : columns)
      types.push_back(
          column.width == 0 ? element : VectorType::get(column.width, element));
  Sums sums = either(
      /*last=*/false, types, [&] { return startSums(); },
      [&] { return readSums(); });
  sums = reduce(reductions, sums);
  either(
      /*last=*/true, {}, [&] { return finishTile(sums), Sums(); },
      [&] { return writeSums(sums), Sums(); });
}

/// The initial sums, rows by columns by results.
TileEmitter::Sums TileEmitter::startSums() {
  Sums sums;
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column)
      for (OpOperand &init : root.getDpsInitsMutable()) {
        unsigned width = sumWidth(column);
        Lanes start =
            reader.read(init.get(),
                        at(root.getMatchingIndexingMap(&init).getResults(),
                           pointOf(row, column, taps)),
                        width);
        sums.push_back(reader.materialize(start, width));
      }
  return sums;
}

/// The argument of the kernel on tensors that the output is written to.
Value TileEmitter::destinationTensor() {
  auto memref = cast<BlockArgument>(outputs[0].destination);
  return kernel.from().getArgument(memref.getArgNumber());
}

/// The sums so far, which are in the output.
TileEmitter::Sums TileEmitter::readSums() {
  const Output &output = outputs[0];
  Sums sums;
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column) {
      unsigned width = columns[column].width;
      Lanes lanes =
          reader.read(destinationTensor(),
                      at(output.place, pointOf(row, column, taps)), width);
      sums.push_back(reader.materialize(lanes, width));
    }
  return sums;
}

void TileEmitter::writeSums(ValueRange sums) {
  const Output &output = outputs[0];
  auto next = sums.begin();
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column)
      reader.write({*next++, {}}, output.destination,
                   at(output.place, pointOf(row, column, taps)),
                   columns[column].width);
}

TileEmitter::Sums TileEmitter::reduce(ArrayRef<unsigned> loops,
                                      ValueRange sums) {
  if (loops.empty())
    return step(sums);
  Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
  if (isFromBlockToBlock(loops[0]))
    std::tie(from, to) = block;
  return emitLoop(b, loc, from, to, kernel.index(1), sums,
                  [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loops[0], iv);
                    return reduce(loops.drop_front(), inner);
                  });
}

/// The taps for all rows of the tile. Those of a window come in the order of
/// what they read, so that a value is soon done with.
SmallVector<TileEmitter::Tap> TileEmitter::tapsOfRows() {
  SmallVector<Tap> all;
  forEachTap([&](ArrayRef<AffineExpr> taps) {
    for (unsigned row = 0; row < rows(); ++row)
      all.push_back({SmallVector<AffineExpr>(taps), row, all.size(), {}});
  });
  if (tiling.taps.empty() || !tiling.row)
    return all;
  for (Tap &tap : all)
    for (AffineMap map : root.getIndexingMapsArray())
      for (AffineExpr expr :
           at(map.getResults(), pointOf(tap.row, 0, tap.taps))) {
        auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
        auto constant = dyn_cast<AffineConstantExpr>(sum ? sum.getRHS() : expr);
        tap.place.push_back(constant ? constant.getValue() : 0);
      }
  llvm::sort(all, [](const Tap &left, const Tap &right) {
    return std::tie(left.place, left.number) <
           std::tie(right.place, right.number);
  });
  return all;
}

/// Which of the tiles of a block this one is.
Value TileEmitter::numberOfTile() {
  Value number = kernel.index(0);
  for (const Tiling::Level &level : tiling.levels) {
    if (level.kind == Tiling::Kind::Columns) {
      number = kernel.index(0);
      continue;
    }
    auto [from, to] = range(level.loop, 1, /*shared=*/false);
    Value at = reader.at(getAffineDimExpr(level.loop, b.getContext()));
    Value turns = arith::SubIOp::create(b, loc, to, from);
    at = arith::SubIOp::create(b, loc, at, from);
    if (level.kind == Tiling::Kind::Rows) {
      Value rows = kernel.index(tiling.size.rows);
      turns = arith::CeilDivUIOp::create(b, loc, turns, rows);
      at = arith::DivUIOp::create(b, loc, at, rows);
    }
    number = arith::MulIOp::create(b, loc, number, turns);
    number = arith::AddIOp::create(b, loc, number, at);
  }
  return least(number, tiling.tilesOfPrefetch - 1);
}

/// Asks for a part of the next block: each tile has its share of it, and each
/// step of the reduction goes on by a few elements.
void TileEmitter::prefetch() {
  Value memref = kernel.memrefOf(tiling.blocked->get());
  ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
  if (!flatWeights) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    ReassociationIndices all;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      all.push_back(dim);
    flatWeights = memref::CollapseShapeOp::create(
        b, loc, memref, ArrayRef<ReassociationIndices>(all));
  }
  Value place = kernel.index(0);
  auto add = [&](Value value, int64_t factor) {
    Value term = arith::MulIOp::create(b, loc, value, kernel.index(factor));
    place = arith::AddIOp::create(b, loc, place, term);
  };
  ArrayRef<int64_t> inBlock = shape.drop_front(packing.outer.size() + 1);
  add(nextBlock, llvm::product_of(inBlock));
  int64_t block = inBlock.back(), stride = 1, depth = 1;
  int64_t step = llvm::divideCeil(block, tiling.tilesOfPrefetch);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  Position position =
      at(root.getMatchingIndexingMap(tiling.blocked).getResults(),
         pointOf(0, 0, taps));
  size_t next = inBlock.size() - 1;
  for (int64_t dim = position.size(); dim-- > 0;) {
    if (dim == int64_t(packing.dim) || llvm::is_contained(packing.outer, dim))
      continue;
    int64_t extent = inBlock[--next];
    auto loop = dyn_cast<AffineDimExpr>(position[dim]);
    Value value = reader.at(position[dim]);
    if (loop && isInBlock(loop.getPosition())) {
      add(value, stride * step);
      if (isFromBlockToBlock(loop.getPosition()))
        add(this->block.first, stride * (block - step));
      depth *=
          isFromBlockToBlock(loop.getPosition()) ? tiling.blockStep : extent;
    } else {
      add(value, stride * block);
    }
    stride *= extent;
  }
  add(numberOfTile(), depth * step);
  // Into the second cache: the first has enough to hold.
  memref::PrefetchOp::create(b, loc, flatWeights, place, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

/// One step of the reduction: all taps for all rows and columns.
TileEmitter::Sums TileEmitter::step(ValueRange start) {
  Sums sums(start);
  unsigned results = root.getNumResults();
  if (tiling.tilesOfPrefetch != 0)
    prefetch();
  for (const Tap &tap : tapsOfRows()) {
    auto next = sums.begin() + tap.row * columns.size() * results;
    for (unsigned column = 0; column < columns.size(); ++column) {
      SmallVector<Lanes> old;
      for (unsigned result = 0; result < results; ++result)
        old.push_back({next[result], {}});
      unsigned width = sumWidth(column);
      SmallVector<Lanes> values =
          reader.evaluate(root, pointOf(tap.row, column, tap.taps), old, width);
      for (const Lanes &value : values)
        *next++ = reader.materialize(value, width);
    }
  }
  return sums;
}

/// Computes the outputs from the sums, while those are in registers.
void TileEmitter::finishTile(ValueRange sums) {
  auto next = sums.begin();
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (unsigned row = 0; row < rows(); ++row)
    for (unsigned column = 0; column < columns.size(); ++column) {
      Position point = pointOf(row, column, taps);
      unsigned width = columns[column].width;
      for (OpResult result : root->getResults()) {
        Value sum = *next++;
        if (width != 0 && sumWidth(column) != width)
          sum = vector::ExtractStridedSliceOp::create(
              b, loc, sum, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
              ArrayRef<int64_t>{1});
        AffineMap map = root.getIndexingMapMatchingResult(result);
        reader.remember(result, at(map.getResults(), point), width, {sum, {}});
      }
      for (const Output &output : outputs) {
        Lanes lanes =
            reader.read(output.tensor, at(output.position, point), width);
        reader.write(lanes, output.destination, at(output.place, point), width);
      }
    }
}

bool holdsSums(linalg::GenericOp root, ArrayRef<Output> outputs) {
  if (outputs.size() != 1 || root.getNumResults() != 1 ||
      getElementTypeOrSelf(outputs[0].tensor) !=
          getElementTypeOrSelf(root.getResult(0)))
    return false;
  for (auto [loop, kind] : llvm::enumerate(root.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel &&
        staticLoopExtent(root, loop) != 1 &&
        llvm::none_of(outputs[0].place, [&](AffineExpr expr) {
          return expr.isFunctionOfDim(loop);
        }))
      return false;
  return true;
}

void emitTiles(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
               ArrayRef<Output> outputs) {
  TileEmitter(kernel, root, tiling, outputs).run();
}

} // namespace keratin
