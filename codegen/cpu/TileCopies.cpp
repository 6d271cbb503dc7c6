//===- TileCopies.cpp - rows in the order in which tiles read them --------===//
//
// Each step of the product of a transposed matrix reads some neighbours of a
// row of it. Rows that are far apart share the ways of the caches and each has
// a page of its own, so what a tile has read is gone when the tile beside it
// reads the rest of the same lines. Rows of a product that is not transposed
// are as many runs of memory, which a first cache that another thread shares
// does not hold together. Before the columns begin, all rows of tiles are
// copied to memory of the arena, tile by tile: [tile][step][row of tile].
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/TileLoops.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Rows and steps of the squares that are transposed.
static constexpr int64_t squareOfCopy = 8;

//===----------------------------------------------------------------------===//
// Whether it pays
//===----------------------------------------------------------------------===//

/// The reduction that a tile goes along in the same dimension of `access` as
/// `loop` does, and in no other, as pixels and windows in the gradient of a
/// kernel: where it is there is the sum of both.
std::optional<unsigned> Classifier::reductionBeside(const Access &access,
                                                    unsigned loop) {
  if (loop == tiling.row ||
      along(access, *tiling.row) != LaneAccess::Contiguous)
    return std::nullopt; // rows are squares of a copy
  const AffineExpr *place = nullptr;
  for (const AffineExpr &expr : access.position)
    if (expr.isFunctionOfDim(loop)) {
      if (place)
        return std::nullopt;
      place = &expr;
    }
  AffineExpr own = getAffineDimExpr(loop, root.getContext());
  for (unsigned reduction :
       ArrayRef(tiling.reductions).drop_front(tiling.outerReductions)) {
    AffineExpr other = getAffineDimExpr(reduction, root.getContext());
    bool isSum = place && extent(loop) &&
                 (*place == own + other || *place == other + own);
    if (isSum && llvm::count_if(access.position, [&](AffineExpr expr) {
                   return expr.isFunctionOfDim(reduction);
                 }) == 1)
      return reduction;
  }
  return std::nullopt;
}

/// The most rows that are gone through for a block of columns: all of them, or
/// a block. Null where they are not known, or not inside of the columns with
/// nothing but loops that go along what is copied of `access`.
std::optional<int64_t> Classifier::rowsOfColumns(const Access &access) {
  std::optional<int64_t> rows = extent(*tiling.row);
  bool inside = false;
  for (const Tiling::Level &level : tiling.levels) {
    if (level.kind == Tiling::Kind::Columns)
      inside = true;
    else if (inside && level.kind != Tiling::Kind::Rows &&
             extent(level.loop) != 1 && !reductionBeside(access, level.loop))
      return std::nullopt;
    else if (level.kind == Tiling::Kind::Blocks && level.loop == *tiling.row)
      rows = std::min(rows.value_or(level.step), level.step);
    else if (level.kind == Tiling::Kind::Rows && !inside)
      return std::nullopt;
  }
  return rows;
}

/// The loops inside of the columns that go along `access` beside a reduction:
/// those reductions, and the loops.
SmallVector<std::pair<unsigned, unsigned>>
Classifier::offsetsInColumns(const Access &access) {
  SmallVector<std::pair<unsigned, unsigned>> offsets;
  auto *columns = llvm::find_if(tiling.levels, [](const Tiling::Level &level) {
    return level.kind == Tiling::Kind::Columns;
  });
  for (const Tiling::Level &level :
       llvm::make_range(columns, tiling.levels.end()))
    if (auto reduction = level.kind == Tiling::Kind::Single
                             ? reductionBeside(access, level.loop)
                             : std::nullopt)
      offsets.emplace_back(*reduction, level.loop);
  return offsets;
}

/// Whether copying what rows multiply, `access`, costs less than it gains where
/// `blocks` blocks of columns read `steps` steps of it. Neighbours of a row are
/// copied as they are, where steps are far apart, and sooner beside a panel in
/// the first cache; rows that are far apart are transposed in squares, where
/// one thread does all.
bool Classifier::paysToCopy(const Access &access, int64_t blocks,
                            int64_t steps) {
  constexpr int64_t farBytes = 2048, someBytes = 512;
  constexpr int64_t fewSteps = 32, someSteps = 256;
  constexpr int64_t fewBlocks = 2, someBlocks = 8;
  unsigned loop = tiling.reductions.back(), row = *tiling.row;
  auto isFar = [&](unsigned way, int64_t bytes) {
    return std::abs(bytesApart(access, way)) >= bytes;
  };
  if (along(access, row) == LaneAccess::Contiguous)
    return isFar(loop, nearPanel ? someBytes : farBytes) &&
           blocks >= fewBlocks && steps >= fewSteps;
  bool inBlocks = tiling.blockStep != 0 &&
                  tiling.outerReductions + 1 == tiling.reductions.size();
  // Each of several threads would copy all rows for a share of the columns.
  return !kernel.hasParts() && along(access, loop) == LaneAccess::Contiguous &&
         isFar(row, farBytes) && blocks >= someBlocks && steps >= someSteps &&
         *extent(loop) % squareOfCopy == 0 &&
         (!inBlocks || tiling.blockStep % squareOfCopy == 0) &&
         getElementTypeOrSelf(access.tensor).isF32();
}

/// What rows multiply is copied where that pays.
void Classifier::pickCopied() {
  constexpr int64_t mostBytes = 1 << 20;
  if (!tiling.row || tiling.outerRow || !tiling.taps.empty() ||
      tiling.reducesLanes || tiling.reductions.empty() || tiling.widened ||
      (tiling.packsAll && tiling.inBlocks()) || unit.littleCode)
    return;
  int64_t block = int64_t(tiling.size.vectors) * tiling.lanes;
  auto isOpen = [&](unsigned loop) { return !extent(loop); };
  if (isOpen(tiling.lane) ||
      llvm::any_of(
          ArrayRef(tiling.reductions).drop_front(tiling.outerReductions),
          isOpen))
    return;
  int64_t blocks = llvm::divideCeil(*extent(tiling.lane), block);
  for (const Access &access : accesses) {
    std::optional<int64_t> rows = rowsOfColumns(access);
    if (!rows)
      continue;
    auto offsets = offsetsInColumns(access);
    int64_t steps = 1;
    for (unsigned reduction :
         ArrayRef(tiling.reductions).drop_front(tiling.outerReductions)) {
      int64_t turns = turnsInBlock(reduction);
      for (auto [beside, loop] : offsets)
        if (beside == reduction)
          turns += *extent(loop) - 1;
      steps = llvm::SaturatingMultiply<uint64_t>(steps, turns);
    }
    auto type = cast<RankedTensorType>(access.tensor.getType());
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    if (access.operand == tiling.blocked || !access.direct ||
        access.dependsOn(tiling.lane) || !access.dependsOn(*tiling.row) ||
        !kernel.memrefOf(access.tensor) || !paysToCopy(access, blocks, steps) ||
        *rows * steps > mostBytes / bytes)
      continue;
    tiling.copied = access;
    tiling.elementsCopied = *rows * steps;
    tiling.offsetsOfCopied = offsets;
    if (tiling.rowsAhead && tiling.rowsAhead->operand == access.operand)
      tiling.rowsAhead.reset();
    llvm::erase_if(tiling.far, [&](const Access &far) {
      return far.operand == access.operand;
    });
    return;
  }
}

//===----------------------------------------------------------------------===//
// Copying
//===----------------------------------------------------------------------===//

/// Memory for the rows that a call goes through at a time.
void TileEmitter::layOutCopies() {
  constexpr int64_t mostBytes = 4 << 20, fewest = 4, most = 64, line = 64;
  Type element = getElementTypeOrSelf(tiling.copied->tensor.getType());
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  int64_t count = llvm::alignTo(tiling.elementsCopied, line / bytes);
  std::tie(copies, firstOfCopies) = kernel.addScratch(
      element, count,
      std::clamp<int64_t>(mostBytes / (count * bytes), fewest, most));
}

/// Which of the steps of a tile this is, and how many there are; with `offsets`
/// that are beside reductions, of all that tiles make in the turns of those.
std::pair<Value, int64_t>
TileEmitter::stepOfTile(ArrayRef<std::pair<unsigned, unsigned>> offsets) {
  Value step = kernel.index(0);
  int64_t steps = 1;
  for (unsigned loop :
       ArrayRef(tiling.reductions).drop_front(tiling.outerReductions)) {
    AffineExpr place = getAffineDimExpr(loop, b.getContext());
    int64_t turns = staticLoopExtent(root, loop), further = 0;
    for (auto [reduction, offset] : offsets)
      if (reduction == loop) {
        place = place + getAffineDimExpr(offset, b.getContext());
        further += staticLoopExtent(root, offset) - 1;
      }
    Value at = reader.at(canonical(place));
    if (isFromBlockToBlock(loop)) {
      at = arith::SubIOp::create(b, loc, at, block.first);
      turns = ShapedType::isDynamic(turns) ? tiling.blockStep
                                           : std::min(turns, tiling.blockStep);
    }
    turns += further;
    step = arith::MulIOp::create(b, loc, step, kernel.index(turns));
    step = arith::AddIOp::create(b, loc, step, at);
    steps *= turns;
  }
  return {step, steps};
}

/// Where the copy has what the first row of this tile reads in this step; that
/// of the other rows is behind it.
Value TileEmitter::placeOfCopy() {
  auto [step, steps] = stepOfTile(tiling.offsetsOfCopied);
  Value row = reader.at(getAffineDimExpr(*tiling.row, b.getContext()));
  row = arith::SubIOp::create(b, loc, row, firstRowCopied);
  Value place = arith::MulIOp::create(b, loc, row, kernel.index(steps));
  step = arith::MulIOp::create(b, loc, step, kernel.index(innerRows));
  place = arith::AddIOp::create(b, loc, place, step);
  return arith::AddIOp::create(b, loc, firstOfCopies, place);
}

/// Copies what the tiles within the columns read: step by step, where a step is
/// a run of neighbours, or tile by tile.
void TileEmitter::copyRows() {
  unsigned loop = *tiling.row;
  auto isRows = [&](std::optional<unsigned> level) {
    return level && tiling.levels[*level].kind == Tiling::Kind::Rows;
  };
  // With two shared levels the rows of a block of columns are not known here.
  bool shared = isRows(tiling.shared) && !tiling.sharedWith;
  firstRowCopied = range(loop, tiling.size.rows, shared).first;
  LaneReader::Scope scope(reader);
  auto loops = ArrayRef(tiling.reductions).drop_front(tiling.outerReductions);
  auto type = cast<ShapedType>(tiling.copied->tensor.getType());
  if (laneAccess(type, tiling.copied->position, loop) == LaneAccess::Contiguous)
    return copySteps(loops, shared);
  emitRows(loop, shared, [&] {
    LaneReader::Scope scope(reader);
    copyTile(loops);
  });
}

/// Copies squares of the rows of a tile, of which the last may have fewer, and
/// what is beside them one by one.
void TileEmitter::copyTile(ArrayRef<unsigned> loops) {
  constexpr unsigned fewestRows = 3;
  Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
  if (isFromBlockToBlock(loops[0]))
    std::tie(from, to) = block;
  if (loops.size() > 1)
    return span(loops[0], from, to, 1, [&] { copyTile(loops.drop_front()); });
  Value memref = kernel.memrefOf(tiling.copied->tensor);
  unsigned whole = innerRows / squareOfCopy * squareOfCopy;
  if (innerRows - whole >= fewestRows)
    whole = innerRows;
  if (whole != 0)
    span(loops[0], from, to, squareOfCopy, [&] {
      Value start = placeOfCopy();
      for (unsigned first = 0; first < whole; first += squareOfCopy)
        copySquare(start, first,
                   std::min<unsigned>(squareOfCopy, whole - first));
    });
  if (whole != innerRows)
    span(loops[0], from, to, 1, [&] {
      Value start = placeOfCopy();
      for (unsigned number = whole; number < innerRows; ++number) {
        Value value =
            memref::LoadOp::create(b, loc, memref, placeToCopy(number, 0));
        Value at = arith::AddIOp::create(b, loc, start, kernel.index(number));
        memref::StoreOp::create(b, loc, value, copies, at);
      }
    });
}

/// Where what is copied has the row `row` of this tile, so many steps on.
TileEmitter::Sums TileEmitter::placeToCopy(unsigned row, unsigned step) {
  unsigned loop = tiling.reductions.back();
  AffineExpr rows = getAffineDimExpr(*tiling.row, b.getContext());
  AffineExpr steps = getAffineDimExpr(loop, b.getContext());
  Sums place;
  for (AffineExpr expr : tiling.copied->position)
    place.push_back(reader.at(
        canonical(expr.replace({{rows, rows + row}, {steps, steps + step}}))));
  return place;
}

/// Copies a square of which `count` rows are there, from the row `first` on.
/// Half of the steps of two rows make one vector, so that what is left is done
/// within halves, between which elements move slowly.
void TileEmitter::copySquare(Value start, unsigned first, unsigned count) {
  constexpr int64_t half = squareOfCopy / 2;
  Value memref = kernel.memrefOf(tiling.copied->tensor);
  auto type = VectorType::get(
      half, cast<MemRefType>(memref.getType()).getElementType());
  auto load = [&](unsigned row, unsigned step) -> Value {
    return vector::LoadOp::create(b, loc, type, memref,
                                  placeToCopy(first + row, step));
  };
  auto both = llvm::to_vector(llvm::seq<int64_t>(squareOfCopy));
  for (unsigned begin = 0; begin < squareOfCopy; begin += half) {
    SmallVector<Value> rows;
    for (unsigned row = 0; row < half; ++row) {
      Value low = row < count ? load(row, begin) : rows[0];
      if (row < count) {
        Value high = row + half < count ? load(row + half, begin) : low;
        low = vector::ShuffleOp::create(b, loc, low, high, both);
      }
      rows.push_back(low);
    }
    for (auto [step, value] :
         llvm::enumerate(transposed(b, loc, std::move(rows)))) {
      if (count < squareOfCopy)
        value = vector::ExtractStridedSliceOp::create(
            b, loc, value, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{count},
            ArrayRef<int64_t>{1});
      Value at = kernel.index(int64_t(begin + step) * innerRows + first);
      at = arith::AddIOp::create(b, loc, start, at);
      vector::StoreOp::create(b, loc, value, copies, at);
    }
  }
}

void TileEmitter::copySteps(ArrayRef<unsigned> loops, bool shared) {
  if (!loops.empty()) {
    Value from = kernel.index(0), to = kernel.loopExtent(root, loops[0]);
    if (isFromBlockToBlock(loops[0]))
      std::tie(from, to) = block;
    for (auto [reduction, offset] : tiling.offsetsOfCopied)
      if (reduction == loops[0]) {
        reader.bind(offset, kernel.index(0));
        to = kernel.plus(to, kernel.index(staticLoopExtent(root, offset) - 1));
      }
    return span(loops[0], from, to, 1,
                [&] { copySteps(loops.drop_front(), shared); });
  }
  emitRows(*tiling.row, shared, [&] {
    LaneReader::Scope scope(reader);
    Value memref = kernel.memrefOf(tiling.copied->tensor);
    Sums place;
    for (AffineExpr expr : tiling.copied->position)
      place.push_back(reader.at(expr));
    auto type = VectorType::get(
        innerRows, cast<MemRefType>(memref.getType()).getElementType());
    Value row = vector::LoadOp::create(b, loc, type, memref, place);
    vector::StoreOp::create(b, loc, row, copies, placeOfCopy());
  });
}

/// Lets `count` rows of the tile, from `first` on, read what they multiply from
/// the copy.
void TileEmitter::readCopies(unsigned first, unsigned count) {
  Value place = placeOfCopy();
  SmallVector<AffineExpr> taps(root.getNumLoops());
  AffineMap map = root.getMatchingIndexingMap(tiling.copied->operand);
  for (unsigned row = first; row < first + count; ++row) {
    Value at = arith::AddIOp::create(b, loc, place, kernel.index(row));
    Value element = memref::LoadOp::create(b, loc, copies, at);
    reader.remember(tiling.copied->tensor,
                    atPoint(map.getResults(), pointOf(row, 0, taps)),
                    /*width=*/0, {element, {}});
  }
}

} // namespace keratin
