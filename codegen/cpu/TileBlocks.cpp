//===- TileBlocks.cpp - the operand that tiles read in blocks -------------===//
//
// Weights are packed ahead of time, and a block is asked for while the one
// before it is computed. What is only known when the code runs is copied to a
// panel of one block.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// The operand in blocks has its dimensions that other parallel loops go along
/// outside of the blocks, so that a block is contiguous.
Packing TileEmitter::packingOfBlocks() {
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  Packing packing = {};
  packing.block = int64_t(tiling.size.vectors) * tiling.lanes / tiling.streams;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      continue;
    if (loop.getPosition() == tiling.lane)
      packing.dim = dim;
    else if ((!tiling.panel || tiling.widened) &&
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
  packing = packingOfBlocks();
  if (!tiling.panel || tiling.widened)
    kernel.setPackedArgument(cast<BlockArgument>(tensor).getArgNumber(),
                             packing);
  if (!tiling.panel || panel)
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  Type element = tiling.widened ? b.getF32Type() : type.getElementType();
  if (tiling.packsAll) {
    SmallVector<int64_t> shape = blocksShape(kernel, root, tiling);
    Value memory = kernel.addSharedScratch(element, llvm::product_of(shape));
    ReassociationIndices all(llvm::to_vector(llvm::seq<int64_t>(shape.size())));
    panel = memref::ExpandShapeOp::create(
        b, loc, MemRefType::get(shape, element), memory,
        ArrayRef<ReassociationIndices>(all));
    return;
  }
  auto panelType = MemRefType::get(panelShape(), element);
  panel = memref::AllocaOp::create(b, loc, panelType, b.getI64IntegerAttr(64));
}

/// One block of what the tiles read: the reductions; other loops have one
/// position.
SmallVector<int64_t> TileEmitter::panelShape() {
  packing = packingOfBlocks();
  auto type = cast<RankedTensorType>(tiling.blocked->get().getType());
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
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
  return shape;
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

/// Copies the columns of the block `number` to the panel, in the order of the
/// tile.
void TileEmitter::fillPanel(Value number) {
  Value tensor = tiling.blocked->get();
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  if (tiling.widened)
    reader.setPacked(tensor, {kernel.memrefOf(tensor), number, packing});
  else
    reader.forgetPacked(tensor);
  SmallVector<unsigned> loops;
  for (AffineExpr expr : map.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(expr);
        loop && isInBlock(loop.getPosition()))
      loops.push_back(loop.getPosition());
  Sums starts = startsInPanel();
  if (firstTileWidens()) {
    startOfPanel = starts;
    return;
  }
  {
    LaneReader::Scope scope(reader);
    fillPanelLoops(loops, starts);
  }
  readPanel(starts);
}

/// Whether weights are widened by the first tile of rows that reads them, for
/// the others: its products hide most of the time that this takes.
bool TileEmitter::firstTileWidens() {
  if (!tiling.widened || tiling.outerRow)
    return false;
  // Rows right inside of the columns.
  size_t last = tiling.levels.size() - 1, around = last;
  while (around-- > 0)
    if (staticLoopExtent(root, tiling.levels[around].loop) != 1)
      break;
  const Tiling::Level &rows = tiling.levels.back();
  if (around > last || tiling.levels[around].kind != Tiling::Kind::Columns ||
      rows.kind != Tiling::Kind::Rows || tiling.shared == last ||
      tiling.sharedWith == last || goesBackwards(rows.loop))
    return false;
  // Where blocks of rows are around, each is to have a whole tile.
  int64_t extent = staticLoopExtent(root, rows.loop);
  return !ShapedType::isDynamic(extent) && extent >= tiling.size.rows &&
         (!blocksAround.contains(rows.loop) ||
          extent % tiling.size.rows == 0) &&
         llvm::none_of(root.getDpsInputs(), [](Value input) {
           return input.getDefiningOp<tensor::PadOp>() != nullptr;
         });
}

/// The first tile of rows, which begins at `from`. From then on reads go to the
/// panel.
void TileEmitter::emitWideningTile(unsigned loop, Value from, Then then) {
  widens = true;
  {
    LaneReader::Scope scope(reader);
    reader.bind(loop, from);
    then();
  }
  widens = false;
  readPanel(startOfPanel);
}

/// Where the part of the operand that the panel has starts: in the present
/// block of the reduction.
TileEmitter::Sums TileEmitter::startsInPanel() {
  Sums starts;
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  for (AffineExpr expr : map.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    bool blockwise = loop && isFromBlockToBlock(loop.getPosition());
    starts.push_back(blockwise ? block.first : Value());
  }
  return starts;
}

/// Reads of the operand go to the panel, which starts at `starts`.
void TileEmitter::readPanel(ArrayRef<Value> starts) {
  Packing inPanel = packing;
  if (tiling.panel)
    inPanel.outer.clear(); // of which it has one position
  reader.setPacked(tiling.blocked->get(),
                   {panel, blockInPanel, inPanel, SmallVector<Value>(starts)});
}

void TileEmitter::fillPanelLoops(ArrayRef<unsigned> loops,
                                 ArrayRef<Value> starts) {
  if (loops.empty())
    return storeColumns(starts);
  Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
  if (isFromBlockToBlock(loops[0]))
    std::tie(from, to) = block;
  if (loops.size() == 1 && transposes(loops[0])) {
    Value whole;
    std::optional<int64_t> first = getConstantIntValue(from);
    std::optional<int64_t> last = getConstantIntValue(to);
    if (first && last) {
      whole =
          kernel.index(*first + (*last - *first) / tiling.lanes * tiling.lanes);
    } else {
      Value lanes = kernel.index(tiling.lanes);
      Value turns = arith::SubIOp::create(b, loc, to, from);
      turns = arith::DivUIOp::create(b, loc, turns, lanes);
      whole = arith::MulIOp::create(b, loc, turns, lanes);
      whole = arith::AddIOp::create(b, loc, from, whole);
    }
    span(loops[0], from, whole, tiling.lanes,
         [&] { storeTransposed(loops[0], starts); });
    from = whole;
  }
  span(loops[0], from, to, 1,
       [&] { fillPanelLoops(loops.drop_front(), starts); });
}

/// Whether the operand is contiguous along the reduction `loop` and not along
/// the columns, which are all whole vectors.
bool TileEmitter::transposes(unsigned loop) {
  Value tensor = tiling.blocked->get();
  auto type = cast<ShapedType>(tensor.getType());
  ArrayRef<AffineExpr> position =
      root.getMatchingIndexingMap(tiling.blocked).getResults();
  return !tiling.widened && llvm::isPowerOf2_32(tiling.lanes) &&
         kernel.memrefOf(tensor) && type.getElementType().isFloat() &&
         laneAccess(type, position, loop) == LaneAccess::Contiguous &&
         laneAccess(type, position, tiling.lane) == LaneAccess::Gather &&
         llvm::all_of(columns, [&](const Column &column) {
           return column.width == tiling.lanes;
         });
}

/// Where in the panel the column `column` of the present step is.
TileEmitter::Sums TileEmitter::placeInPanel(ArrayRef<Value> starts,
                                            int64_t column) {
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  auto type = cast<MemRefType>(panel.getType());
  Sums place = {blockInPanel};
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (dim == packing.dim)
      continue;
    if (type.getDimSize(place.size()) == 1) {
      place.push_back(kernel.index(0));
      continue;
    }
    Value value = reader.at(expr);
    if (starts[dim])
      value = arith::SubIOp::create(b, loc, value, starts[dim]);
    place.push_back(value);
  }
  place.push_back(kernel.index(column));
  return place;
}

void TileEmitter::storeColumns(ArrayRef<Value> starts) {
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (auto [number, column] : llvm::enumerate(columns)) {
    Lanes lanes = reader.read(
        tiling.blocked->get(),
        atPoint(map.getResults(), pointOf(0, number, taps)), column.width);
    Sums place = placeInPanel(starts, column.offset);
    Value value = reader.materialize(lanes, column.width);
    if (tiling.widened)
      value = arith::ExtFOp::create(
          b, loc, VectorType::get(column.width, b.getF32Type()), value);
    if (column.width == 0)
      memref::StoreOp::create(b, loc, value, panel, place);
    else
      vector::StoreOp::create(b, loc, value, panel, place);
  }
}

/// Copies squares of one vector each way.
void TileEmitter::storeTransposed(unsigned loop, ArrayRef<Value> starts) {
  Value tensor = tiling.blocked->get(), memref = kernel.memrefOf(tensor);
  auto type = VectorType::get(
      tiling.lanes, cast<MemRefType>(memref.getType()).getElementType());
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  AffineExpr lane = getAffineDimExpr(tiling.lane, b.getContext());
  AffineExpr step = getAffineDimExpr(loop, b.getContext());
  for (const Column &column : columns) {
    SmallVector<Value> square;
    for (int64_t number = 0; number < tiling.lanes; ++number) {
      Sums place;
      for (AffineExpr expr : map.getResults())
        place.push_back(reader.at(
            canonical(expr.replace(lane, lane + column.offset + number))));
      square.push_back(
          vector::LoadOp::create(b, loc, type, memref, place).getResult());
    }
    Value start = reader.at(step);
    for (auto [number, value] :
         llvm::enumerate(transposed(b, loc, std::move(square)))) {
      LaneReader::Scope scope(reader);
      reader.bind(loop, arith::AddIOp::create(b, loc, start,
                                              kernel.index(int64_t(number))));
      vector::StoreOp::create(b, loc, value, panel,
                              placeInPanel(starts, column.offset));
    }
  }
}

/// Asks for a part of the rows of the next tile: each step of the reduction
/// goes on by as many elements as a tile has rows.
void TileEmitter::prefetchRows() {
  const Access &access = *tiling.rowsAhead;
  Value memref = kernel.memrefOf(access.tensor);
  ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
  ReassociationIndices all;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    all.push_back(dim);
  Value flat, end;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.to().front());
    flat = memref::CollapseShapeOp::create(b, loc, memref,
                                           ArrayRef<ReassociationIndices>(all));
    end = memref::DimOp::create(b, loc, flat, 0);
  }
  Value start = kernel.index(0), step = kernel.index(0);
  auto add = [&](Value &sum, Value value, int64_t factor) {
    Value term = arith::MulIOp::create(b, loc, value, kernel.index(factor));
    sum = arith::AddIOp::create(b, loc, sum, term);
  };
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    AffineExpr expr = access.position[dim];
    bool isReduced = llvm::any_of(tiling.reductions, [&](unsigned loop) {
      return expr.isFunctionOfDim(loop);
    });
    add(isReduced ? step : start, reader.at(expr), stride);
    if (expr.isFunctionOfDim(*tiling.row))
      add(start, kernel.index(rows()), stride);
    if (dim > 0) // the outermost one may be open
      stride *= shape[dim];
  }
  add(start, step, rows());
  // Behind the last tile is nothing to ask for.
  Value last = arith::SubIOp::create(b, loc, end, kernel.index(1));
  start = arith::MinUIOp::create(b, loc, start, last);
  memref::PrefetchOp::create(b, loc, flat, start, /*isWrite=*/false,
                             /*localityHint=*/tiling.rowsAreShort ? 3 : 2,
                             /*isDataCache=*/true);
}

/// All blocks: the packed argument, or the panel that this kernel fills first.
Value TileEmitter::blocksInMemory() {
  return tiling.packsAll ? panel : kernel.memrefOf(tiling.blocked->get());
}

/// The block behind `number`; behind the last one comes the first, where that
/// is read again.
void TileEmitter::findNextBlock(Value number) {
  ArrayRef<int64_t> shape =
      cast<MemRefType>(blocksInMemory().getType()).getShape();
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
  auto isEnd = [&](Value at, Value end) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, at, end);
  };
  // What is behind the last column of this call is for another one, unless the
  // call ends there: a thread goes on where it stopped.
  bool once = tiling.levels.front().kind == Tiling::Kind::Columns &&
              tiling.blockStep == 0 && tiling.outerReductions == 0;
  Value next = arith::AddIOp::create(b, loc, number, kernel.index(1)), isLast;
  if (sharedColumns.first && !once) {
    isLast = isEnd(next, sharedColumns.second);
    next = arith::SelectOp::create(b, loc, isLast, sharedColumns.first, next);
    add(next, shape[outside]);
    nextBlock = place;
  } else {
    add(next, shape[outside]);
    isLast = isEnd(
        place, kernel.index(llvm::product_of(shape.take_front(outside + 1))));
    // Weights are in memory in the order of calls: behind the last of these are
    // those of the next product.
    nextBlock = place;
    if (!once || tiling.panel)
      nextBlock =
          arith::SelectOp::create(b, loc, isLast, kernel.index(0), place);
  }
  // Behind the last column is the next block of the reduction.
  nextStart = {};
  if (tiling.blockStep == 0 ||
      tiling.levels.front().kind != Tiling::Kind::Columns)
    return;
  unsigned loop = tiling.reductions[tiling.outerReductions];
  Value extent = kernel.loopExtent(root, loop);
  Value start = arith::SelectOp::create(b, loc, isEnd(block.second, extent),
                                        kernel.index(0), block.second);
  nextStart = arith::SelectOp::create(b, loc, isLast, start, block.first);
}

/// Which of the tiles of a block this one is, at most `most`: of a block of
/// columns, or of the reduction.
Value TileEmitter::numberOfTile(int64_t most, bool ofColumns) {
  Value number = kernel.index(0);
  for (const Tiling::Level &level : tiling.levels) {
    if (level.kind == Tiling::Kind::Columns && ofColumns) {
      number = kernel.index(0);
      continue;
    }
    if (level.kind == Tiling::Kind::Blocks && !ofColumns)
      continue;
    auto [from, to] =
        ofColumns
            ? range(level.loop, 1, /*shared=*/false)
            : std::pair(kernel.index(0), kernel.loopExtent(root, level.loop));
    Value at = reader.at(getAffineDimExpr(level.loop, b.getContext()));
    Value turns = arith::SubIOp::create(b, loc, to, from);
    at = arith::SubIOp::create(b, loc, at, from);
    if (int64_t step = stepOf(level); step != 1) {
      turns = arith::CeilDivUIOp::create(b, loc, turns, kernel.index(step));
      at = arith::DivUIOp::create(b, loc, at, kernel.index(step));
    }
    number = arith::MulIOp::create(b, loc, number, turns);
    number = arith::AddIOp::create(b, loc, number, at);
  }
  return least(number, most);
}

/// The packed weights in one dimension.
Value TileEmitter::flattened(Value memref) {
  if (!flatWeights) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(memref);
    auto rank = cast<MemRefType>(memref.getType()).getRank();
    ReassociationIndices all(llvm::to_vector(llvm::seq<int64_t>(rank)));
    flatWeights = memref::CollapseShapeOp::create(
        b, loc, memref, ArrayRef<ReassociationIndices>(all));
  }
  return flatWeights;
}

/// Asks for a part of the next block: each tile has its share of it, and each
/// step of the reduction goes on by a few elements.
void TileEmitter::prefetch() {
  Value memref = blocksInMemory();
  auto type = cast<MemRefType>(memref.getType());
  ArrayRef<int64_t> shape = type.getShape();
  auto add = [&](Value &sum, Value value, int64_t factor) {
    Value term = arith::MulIOp::create(b, loc, value, kernel.index(factor));
    sum = arith::AddIOp::create(b, loc, sum, term);
  };
  ArrayRef<int64_t> inBlock = shape.drop_front(packing.outer.size() + 1);
  Value start = kernel.index(0), share = kernel.index(0);
  add(start, nextBlock, llvm::product_of(inBlock));
  int64_t block = inBlock.back(), stride = 1, depth = 1;
  int64_t step = llvm::divideCeil(block, tiling.tilesOfPrefetch);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  Position position =
      atPoint(root.getMatchingIndexingMap(tiling.blocked).getResults(),
              pointOf(0, 0, taps));
  size_t next = inBlock.size() - 1;
  for (int64_t dim = position.size(); dim-- > 0;) {
    if (dim == int64_t(packing.dim) || llvm::is_contained(packing.outer, dim))
      continue;
    int64_t extent = inBlock[--next];
    auto loop = dyn_cast<AffineDimExpr>(position[dim]);
    if (tiling.packsAll && !(loop && isInBlock(loop.getPosition())))
      continue; // of which the panel has one position
    Value value = reader.at(position[dim]);
    if (loop && isInBlock(loop.getPosition())) {
      add(share, value, stride * step);
      if (isFromBlockToBlock(loop.getPosition()))
        add(start, this->block.first, stride * (block - step));
      if (isFromBlockToBlock(loop.getPosition()) && nextStart)
        add(start, arith::SubIOp::create(b, loc, nextStart, this->block.first),
            stride * block);
      depth *=
          isFromBlockToBlock(loop.getPosition()) ? tiling.blockStep : extent;
    } else {
      add(start, value, stride * block);
    }
    stride *= extent;
  }
  add(share, numberOfTile(tiling.tilesOfPrefetch - 1, /*ofColumns=*/true),
      depth * step);
  int64_t line = 64 / llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t ahead = 0; ahead < step; ahead += line) {
    Value place = arith::AddIOp::create(b, loc, share, kernel.index(ahead));
    if (tiling.runs > 1) {
      place = arith::DivUIOp::create(b, loc, place, kernel.index(line));
      place = sideBySide(kernel, place, depth * block / line, tiling.runs);
      place = arith::MulIOp::create(b, loc, place, kernel.index(line));
    }
    place = arith::AddIOp::create(b, loc, start, place);
    // Into the second cache: the first has enough to hold.
    memref::PrefetchOp::create(b, loc, flattened(memref), place,
                               /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
}

} // namespace keratin
