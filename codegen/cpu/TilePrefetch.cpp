//===- TilePrefetch.cpp - asking for what a tile will read ----------------===//
//
// What is added to the sums of a tile, as the other branch of a residual block,
// is read once, when the sums are done; then all of the tile waits for it. The
// product is long enough to ask for it ahead, a row every few steps: the loads
// of the product need the same buffers. So it is with the places of a large
// output.
//
// What is far from step to step is in no run that is fetched ahead by itself.
// Nor is a block of a long reduction, which each tile reads a part of, row by
// row: all of it is asked for while the block before it is computed.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Asks for what a later step reads. Behind the end of the innermost loop this
/// is the next turn of the loop around it, where those are neighbours.
void TileEmitter::prefetchFar() {
  constexpr int64_t line = 64, stepsAhead = 16;
  unsigned loop = tiling.reductions.back();
  AffineExpr step = getAffineDimExpr(loop, b.getContext());
  SmallVector<AffineExpr> taps(root.getNumLoops());
  for (const Access &access : tiling.far) {
    int64_t bytes = llvm::divideCeil(
        getElementTypeOrSelf(access.tensor.getType()).getIntOrFloatBitWidth(),
        8);
    bool alongLane = access.dependsOn(tiling.lane);
    SmallVector<std::pair<unsigned, unsigned>> places; // rows and columns
    for (unsigned column = 0; alongLane && column < columns.size(); ++column)
      if (columns[column].offset * bytes % line == 0)
        places.emplace_back(0, column);
    if (!alongLane)
      places = {{0, 0}, {rows() - 1, 0}};
    for (auto [row, column] : places) {
      Position point = pointOf(row, column, taps);
      Sums place;
      for (AffineExpr expr : atPoint(access.position, point))
        place.push_back(
            reader.at(canonical(expr.replace(step, step + stepsAhead))));
      memref::PrefetchOp::create(b, loc, kernel.memrefOf(access.tensor), place,
                                 /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
  }
}

/// Asks for the part of the next block of the reduction that a step of this
/// tile has.
void TileEmitter::prefetchNextBlocks() {
  unsigned blocked = tiling.outerReductions - (tiling.blockStep == 0 ? 1 : 0);
  unsigned loop = tiling.reductions[blocked];
  auto add = [&](Value left, Value right) -> Value {
    return arith::AddIOp::create(b, loc, left, right);
  };
  auto scaled = [&](Value value, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, value, kernel.index(factor));
  };
  Value end = block.second;
  if (tiling.blockStep == 0)
    end =
        add(reader.at(getAffineDimExpr(loop, b.getContext())), kernel.index(1));
  auto [step, steps] = stepOfTile();
  for (const Tiling::NextBlock &next : tiling.nextBlocks) {
    Value memref = kernel.memrefOf(next.access.tensor);
    ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
    Value flat;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&kernel.to().front());
      ReassociationIndices all(
          llvm::to_vector(llvm::seq<int64_t>(shape.size())));
      flat = memref::CollapseShapeOp::create(
          b, loc, memref, ArrayRef<ReassociationIndices>(all));
    }
    Value place = kernel.index(0);
    int64_t stride = 1;
    bool isOutside = false;
    for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
      AffineExpr expr = next.access.position[dim];
      if (expr.isFunctionOfDim(loop)) {
        place = add(place, scaled(end, *laneStep(expr, loop) * stride));
        isOutside = true;
      } else if (isOutside) {
        place = add(place, scaled(reader.at(expr), stride));
      }
      if (dim == 0) // which may be open
        break;
    }
    Value tile = numberOfTile(next.tiles - 1, /*ofColumns=*/false);
    place = add(place, scaled(tile, steps * next.elements));
    place = add(place, scaled(step, next.elements));
    memref::PrefetchOp::create(b, loc, flat, place, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
}

/// Asks for a line of the next columns of the operand in a panel: each tile has
/// some of the rows, and so many steps for each. The last columns are followed
/// by the first ones.
void TileEmitter::prefetchNextPanel() {
  constexpr int64_t lineBytes = 64;
  Value memref = kernel.memrefOf(tiling.blocked->get());
  int64_t bytes = llvm::divideCeil(
      cast<MemRefType>(memref.getType()).getElementTypeBitWidth(), 8);
  int64_t width = int64_t(tiling.size.vectors) * tiling.lanes;
  int64_t line = std::min(lineBytes / bytes, width);
  unsigned loop = tiling.reductions[0];
  auto [step, steps] = stepOfTile();
  int64_t rows = llvm::divideCeil(steps, tiling.tilesOfPanel);
  int64_t perRow = llvm::bit_floor(uint64_t(steps / rows));
  // Behind the last row of a tile it asks for those of the next one, which does
  // no harm.
  Value row =
      arith::ShRUIOp::create(b, loc, step, kernel.index(llvm::Log2_64(perRow)));
  Value tile = numberOfTile(tiling.tilesOfPanel - 1, /*ofColumns=*/true);
  tile = arith::MulIOp::create(b, loc, tile, kernel.index(rows));
  if (block.first)
    tile = kernel.plus(tile, block.first);
  row = kernel.plus(tile, row);
  Value first =
      kernel.plus(reader.at(getAffineDimExpr(tiling.lane, b.getContext())),
                  kernel.index(width));
  Value isEnd =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, first,
                            kernel.index(staticLoopExtent(root, tiling.lane)));
  first = arith::SelectOp::create(b, loc, isEnd, kernel.index(0), first);
  LaneReader::Scope scope(reader);
  reader.bind(loop, row);
  AffineMap map = root.getMatchingIndexingMap(tiling.blocked);
  forEachLineOf({step, row, perRow}, llvm::divideCeil(width, line), line,
                [&](Value column) {
                  reader.bind(tiling.lane, kernel.plus(first, column));
                  Sums place;
                  for (AffineExpr expr : map.getResults())
                    place.push_back(reader.at(expr));
                  memref::PrefetchOp::create(
                      b, loc, memref, place, /*isWrite=*/false,
                      /*localityHint=*/2, /*isDataCache=*/true);
                });
}

/// The tiles of all calls; null where that is not known.
std::optional<int64_t> TileEmitter::numberOfTiles() {
  int64_t tiles = 1;
  for (const Tiling::Level &level : tiling.levels) {
    int64_t turns = staticLoopExtent(root, level.loop);
    if (ShapedType::isDynamic(turns))
      return std::nullopt;
    if (level.kind != Tiling::Kind::Blocks)
      tiles *= llvm::divideCeil(turns, stepOf(level));
  }
  return tiles;
}

/// Spreads what this kernel asks for of a later one over the steps of its
/// tiles. A step that asks for more than two lines would wait for them.
void TileEmitter::takeWeightsAhead() {
  constexpr int64_t line = 64, mostOfStep = 2;
  std::optional<int64_t> tiles = numberOfTiles();
  int64_t lines = kernel.bytesAhead() / line;
  if (!tiles || lines == 0 || !tiling.row || tiling.outerRow ||
      !tiling.taps.empty() || tiling.reducesLanes || tiling.inBlocks())
    return;
  int64_t steps = 1;
  for (unsigned loop : tiling.reductions) {
    if (ShapedType::isDynamic(staticLoopExtent(root, loop)))
      return;
    steps *= staticLoopExtent(root, loop);
  }
  linesAhead =
      std::min<int64_t>(llvm::divideCeil(lines, *tiles * steps), mostOfStep);
  tilesAhead =
      std::min<int64_t>(*tiles, llvm::divideCeil(lines, linesAhead * steps));
  Value weights = kernel.addWeightsAhead();
  weightsAhead =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, weights);
  weightsAhead = kernel.plus(weightsAhead, kernel.index(kernel.firstAhead()));
}

/// Asks for some lines of the weights of a later kernel.
void TileEmitter::prefetchWeightsAhead() {
  constexpr int64_t line = 64;
  auto [step, steps] = stepOfTile();
  auto times = [&](Value value, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, value, kernel.index(factor));
  };
  auto plus = [&](Value left, Value right) -> Value {
    return arith::AddIOp::create(b, loc, left, right);
  };
  Value tile = numberOfTile(tilesAhead - 1, /*ofColumns=*/false);
  Value place = plus(weightsAhead, times(tile, steps * linesAhead * line));
  place = plus(place, times(step, linesAhead * line));
  for (int64_t number = 0; number < linesAhead; ++number) {
    Value address = arith::IndexCastOp::create(
        b, loc, b.getI64Type(),
        kernel.plus(place, kernel.index(number * line)));
    address = LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
    LLVM::Prefetch::create(b, loc, address, /*rw=*/0, /*hint=*/2, /*cache=*/1);
  }
}

/// The columns at which the lines begin that the step `at` asks for, of the
/// `lines` of its row, `line` elements each: some in each of its steps.
void TileEmitter::forEachLineOf(const StepOfRow &at, int64_t lines,
                                int64_t line,
                                llvm::function_ref<void(Value)> body) {
  int64_t turns = std::min<int64_t>(at.steps, llvm::bit_ceil(uint64_t(lines)));
  Value turn = arith::AndIOp::create(b, loc, at.step, kernel.index(turns - 1));
  for (int64_t ahead = 0; ahead < lines; ahead += turns) {
    Value number = arith::AddIOp::create(b, loc, turn, kernel.index(ahead));
    if (ahead + turns > lines)
      number = least(number, lines - 1);
    body(arith::MulIOp::create(b, loc, number, kernel.index(line)));
  }
}

/// Where the first of a tile's weights for the vector `column` is in memory, in
/// elements of the packed operand.
Value TileEmitter::placeOfWeights(unsigned column) {
  const LaneReader::Packed &packed = reader.packedOf(tiling.blocked->get());
  SmallVector<AffineExpr> taps(root.getNumLoops());
  Position position =
      atPoint(root.getMatchingIndexingMap(tiling.blocked).getResults(),
              pointOf(0, column, taps));
  Value place;
  for (auto [index, extent] :
       llvm::zip_equal(reader.placeOf(packed, position),
                       cast<MemRefType>(packed.memref.getType()).getShape())) {
    if (place)
      place = arith::MulIOp::create(b, loc, place, kernel.index(extent));
    place = place ? arith::AddIOp::create(b, loc, place, index) : index;
  }
  return place;
}

/// Asks for each line of packed weights some lines before it is read: of one
/// block, or of several that are read side by side.
void TileEmitter::prefetchStreams() {
  constexpr int64_t lineBytes = 64;
  Value memref = reader.packedOf(tiling.blocked->get()).memref;
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t ahead = (tiling.asksFirstCache ? 2048 : 1536) / bytes;
  auto ask = [&](Value place) {
    memref::PrefetchOp::create(b, loc, flattened(memref), place,
                               /*isWrite=*/false,
                               /*localityHint=*/tiling.asksFirstCache ? 3 : 2,
                               /*isDataCache=*/true);
  };
  if (tiling.asksFirstCache) {
    int64_t step = packing.block, line = lineBytes / bytes;
    Value place = least(kernel.plus(placeOfWeights(0), kernel.index(ahead)),
                        type.getNumElements() - step);
    for (int64_t offset = 0; offset < step; offset += line)
      ask(kernel.plus(place, kernel.index(offset)));
    return;
  }
  for (unsigned column = 0; column < columns.size(); ++column)
    if (columns[column].offset * bytes % lineBytes == 0)
      ask(least(kernel.plus(placeOfWeights(column), kernel.index(ahead)),
                type.getNumElements() - 1));
}

/// Packed weights are read in the order of memory: while a window of them is,
/// the next one is asked for, as so many runs side by side.
void TileEmitter::prefetchWindow() {
  constexpr int64_t lineBytes = 64, windowBytes = 32 << 10;
  const LaneReader::Packed &packed = reader.packedOf(tiling.blocked->get());
  auto type = cast<MemRefType>(packed.memref.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t line = lineBytes / bytes, window = windowBytes / bytes;
  Value place = placeOfWeights(/*column=*/0);
  Value within = arith::RemUIOp::create(b, loc, place, kernel.index(window));
  Value next = arith::SubIOp::create(b, loc, place, within);
  next = arith::AddIOp::create(b, loc, next, kernel.index(window));
  Value lines = arith::DivUIOp::create(b, loc, within, kernel.index(line));
  for (int64_t ahead = 0; ahead < packed.packing.block; ahead += line) {
    Value number =
        arith::AddIOp::create(b, loc, lines, kernel.index(ahead / line));
    number = sideBySide(kernel, number, window / line, runsAtOnce);
    number = arith::MulIOp::create(b, loc, number, kernel.index(line));
    number = arith::AddIOp::create(b, loc, next, number);
    memref::PrefetchOp::create(b, loc, flattened(packed.memref), number,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

/// Steps that ask for the lines of one row, a line each or several.
int64_t TileEmitter::mostStepsOfRow() {
  constexpr int64_t most = 8, lineBytes = 64;
  const Column &last = columns.back();
  int64_t width = last.offset + std::max(last.width, 1U), lines = 1;
  auto add = [&](Type type) {
    int64_t bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    lines =
        std::max<int64_t>(lines, llvm::divideCeil(width * bits, lineBytes * 8));
  };
  for (const Access &access : tiling.added)
    add(access.tensor.getType());
  for (const Output &output : outputs)
    add(output.destination.getType());
  return std::min<int64_t>(most, llvm::bit_ceil(uint64_t(lines)));
}

/// Which row of this tile a step asks for: each row takes as many of its steps
/// as there are for it. And which of some turns of that row it is. Null where
/// there are fewer steps than rows.
TileEmitter::StepOfRow TileEmitter::stepOfRow() {
  int64_t steps = stepsForPlaces();
  if (steps < int64_t(rows()))
    return {};
  int64_t perRow = llvm::bit_floor(uint64_t(steps) / rows());
  auto rowAt = [&](Value step) -> Value {
    return arith::ShRUIOp::create(b, loc, step,
                                  kernel.index(llvm::Log2_64(perRow)));
  };
  // Behind the rows of this tile come others, which are soon wanted.
  if (tiling.inBlocks()) {
    Value step = stepOfTile().first;
    return {step, rowAt(step), perRow};
  }
  perRow = std::min(perRow, mostStepsOfRow());
  Value step =
      reader.at(getAffineDimExpr(tiling.reductions.back(), b.getContext()));
  return {step, least(rowAt(step), rows() - 1), perRow};
}

/// How many steps of the innermost reduction ask for lines of this tile, where
/// many more do not; 0 otherwise.
int64_t TileEmitter::stepsThatAsk() {
  bool asks =
      !tiling.added.empty() || llvm::any_of(outputs, [&](const Output &output) {
        return asksForPlaces(output);
      });
  int64_t steps = asks && !tiling.inBlocks() ? stepsForPlaces() : 0;
  constexpr int64_t leastOthers = 8;
  int64_t asking = int64_t(rows()) * mostStepsOfRow();
  return steps >= asking + leastOthers ? asking : 0;
}

/// Asks for the lines of a row of this tile in `memref`: some of them, where
/// there are several steps for it.
void TileEmitter::prefetchRow(const StepOfRow &at, Value memref,
                              ArrayRef<AffineExpr> position, bool isWrite) {
  constexpr int64_t lineBytes = 64;
  int64_t bytes = llvm::divideCeil(
      cast<MemRefType>(memref.getType()).getElementTypeBitWidth(), 8);
  const Column &last = columns.back();
  int64_t line = lineBytes / bytes,
          width = last.offset + std::max(last.width, 1U);
  // Coordinates of their own, which are no loops of the root.
  unsigned down = root.getNumLoops(), along = down + 1;
  LaneReader::Scope scope(reader);
  reader.bind(down, at.row);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  Position point = pointOf(0, 0, taps);
  point[*tiling.row] =
      point[*tiling.row] + getAffineDimExpr(down, b.getContext());
  point[tiling.lane] =
      point[tiling.lane] + getAffineDimExpr(along, b.getContext());
  forEachLineOf(at, llvm::divideCeil(width, line), line, [&](Value column) {
    reader.bind(along, column);
    Sums place;
    for (AffineExpr expr : atPoint(position, point))
      place.push_back(reader.at(expr));
    memref::PrefetchOp::create(b, loc, memref, place, isWrite,
                               /*localityHint=*/3, /*isDataCache=*/true);
  });
}

/// Asks for a row of what is added to this tile.
void TileEmitter::prefetchAdded() {
  StepOfRow at = stepOfRow();
  for (const Access &access : tiling.added)
    if (at.row)
      prefetchRow(at, kernel.memrefOf(access.tensor), access.position,
                  /*isWrite=*/false);
}

/// How many steps of a tile ask for where its outputs go, or, where a reduction
/// is in blocks, for the sums that the next tile begins with.
int64_t TileEmitter::stepsForPlaces() {
  if (!tiling.inBlocks())
    return std::max<int64_t>(staticLoopExtent(root, tiling.reductions.back()),
                             0);
  int64_t steps = 1;
  for (unsigned loop :
       ArrayRef(tiling.reductions).drop_front(tiling.outerReductions)) {
    int64_t turns = staticLoopExtent(root, loop);
    if (isFromBlockToBlock(loop))
      turns = ShapedType::isDynamic(turns) ? tiling.blockStep
                                           : std::min(turns, tiling.blockStep);
    if (ShapedType::isDynamic(turns))
      return 0;
    steps *= turns;
  }
  return steps;
}

/// Whether the steps of this tile ask for where `output` goes: a store has to
/// wait for its cache line as a load has, if no cache near holds it. At once
/// they would keep the loads of the next tile from the buffers that those need.
bool TileEmitter::asksForPlaces(const Output &output) {
  constexpr int64_t leastBytes = 1 << 20;
  constexpr unsigned leastRows = 4; // fewer have loads enough to do
  auto type = cast<MemRefType>(output.destination.getType());
  if (!tiling.row || rows() < leastRows || tiling.outerRow ||
      !tiling.taps.empty() || tiling.reducesLanes || isPartOfSums ||
      tiling.inBlocks() != tiling.asksForSums || tiling.reductions.empty() ||
      type.getElementTypeBitWidth() < 8)
    return false;
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  for (int64_t size : type.getShape())
    bytes = llvm::SaturatingMultiply<uint64_t>(
        bytes, ShapedType::isDynamic(size) ? 1 : size);
  SmallVector<AffineExpr> taps(root.getNumLoops());
  return stepsForPlaces() >= int64_t(rows()) && bytes >= leastBytes &&
         laneAccess(type, atPoint(output.place, pointOf(0, 0, taps)),
                    tiling.lane) == LaneAccess::Contiguous;
}

/// Asks for a row of where this tile goes. Sums that are there already are read
/// when a tile begins, so it is the next tile whose rows are asked for.
void TileEmitter::prefetchPlaces() {
  StepOfRow at = {};
  for (const Output &output : outputs) {
    if (!asksForPlaces(output))
      continue;
    if (!at.row) {
      at = stepOfRow();
      if (tiling.inBlocks())
        at.row = arith::AddIOp::create(b, loc, at.row, kernel.index(innerRows));
    }
    prefetchRow(at, output.destination, output.place, /*isWrite=*/true);
  }
}

} // namespace keratin
