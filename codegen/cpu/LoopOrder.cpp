//===- LoopOrder.cpp - the order of the loops of a root -------------------===//
//
// What is read again stays in a cache until then: loops are ordered and cut in
// blocks for that, and weights that no cache near holds are asked for ahead.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Turns of a loop that are taken for those of an unknown number.
static constexpr int64_t manyTurns = 64;

/// Turns of `loop`, of a reduction those in one block.
int64_t Classifier::turnsInBlock(unsigned loop) {
  auto *place = llvm::find(tiling.reductions, loop);
  size_t number = place - tiling.reductions.begin();
  if (place != tiling.reductions.end() && number < tiling.outerReductions)
    return 1;
  int64_t turns = extent(loop).value_or(manyTurns);
  if (place != tiling.reductions.end() && tiling.blockStep != 0 &&
      number == tiling.outerReductions)
    return std::min(turns, tiling.blockStep);
  return turns;
}

/// Bytes that `access` brings to the caches in all turns of `loops` and of the
/// reductions. Steps over whole pixels leave those between where they are, but
/// for the beginning, which is fetched ahead.
int64_t Classifier::bytesRead(const Access &access, ArrayRef<unsigned> loops) {
  constexpr int64_t fetchedAhead = 1 << 10;
  auto type = cast<ShapedType>(access.tensor.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    AffineExpr expr = access.position[dim];
    int64_t range = 1, places = 1;
    for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
      if (expr.isFunctionOfDim(loop) &&
          (isReduction(loop) || llvm::is_contained(loops, loop))) {
        int64_t turns = turnsInBlock(loop);
        range += std::abs(laneStep(expr, loop).value_or(1)) * (turns - 1);
        places = llvm::SaturatingMultiply<uint64_t>(places, turns);
      }
    if (!type.isDynamicDim(dim))
      range = std::min(range, type.getDimSize(dim));
    range = std::max<int64_t>(range, 1);
    int64_t next = llvm::SaturatingMultiply<uint64_t>(bytes, range);
    if (places < range)
      next = std::min<uint64_t>(next, llvm::SaturatingMultiply<uint64_t>(
                                          bytes + fetchedAhead, places));
    bytes = std::min<uint64_t>(next, INT64_MAX / 4);
  }
  return bytes;
}

/// The same for all that is broadcast along the lane.
int64_t Classifier::bytesOfScalars(ArrayRef<unsigned> loops) {
  int64_t bytes = 0;
  for (const Access &access : accesses)
    if (!access.dependsOn(tiling.lane))
      bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesRead(access, loops));
  return std::min<uint64_t>(bytes, INT64_MAX / 4);
}

/// Whether all of what rows share is at most `most` bytes.
bool Classifier::holdsShared(int64_t most) {
  int64_t bytes = 0;
  for (const Access &access : accesses) {
    if (!access.dependsOn(tiling.lane) || access.dependsOn(*tiling.row))
      continue;
    auto type = cast<ShapedType>(access.tensor.getType());
    if (!type.hasStaticShape())
      return false;
    bytes += type.getNumElements() *
             int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  }
  return bytes <= most;
}

/// Whether the second cache holds all that rows share, and each row is read as
/// it is in memory: then there is no need to keep in the first cache what tiles
/// read.
bool Classifier::holdsWeights() {
  return holdsShared(weightBlockBytes()) &&
         llvm::none_of(accesses, [&](const Access &access) {
           return access.dependsOn(*tiling.row) &&
                  along(access, *tiling.row) == LaneAccess::Contiguous;
         });
}

/// The reductions that are loops.
void Classifier::pickReductions() {
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop) &&
        (loop == tiling.longTap || !llvm::is_contained(tiling.taps, loop)) &&
        !(tiling.reducesLanes && loop == tiling.lane))
      tiling.reductions.push_back(loop);
}

/// Columns of which the first cache holds what a tile of a window reads and
/// writes until its neighbour reads a part of that again; 0 where it holds all
/// of them anyway, where there is no such part, and where runs of memory should
/// be as long as they can.
int64_t Classifier::columnsOfWindows() {
  constexpr int64_t firstCache = 32 << 10, secondCache = 1536 << 10, fewest = 4;
  std::optional<int64_t> columns = extent(tiling.lane);
  if (!tiling.outerRow || !tiling.reductions.empty() || !columns)
    return 0;
  std::optional<WindowWay> ways[2] = {windowAlong(*tiling.outerRow),
                                      windowAlong(*tiling.row)};
  int64_t heights[2] = {tiling.size.outerRows, tiling.size.rows};
  int64_t read = 1, all = bytesOf(root->getResult(0));
  for (auto [way, height] : llvm::zip_equal(ways, heights)) {
    if (!way || !way->extent)
      return 0;
    read *= (height - 1) * way->step + (way->taps - 1) * way->tapStep + 1;
  }
  for (const Access &access : accesses)
    all = llvm::SaturatingAdd<uint64_t>(all, bytesOf(access.tensor));
  bool overlaps = (ways[1]->taps - 1) * ways[1]->tapStep >= ways[1]->step &&
                  *ways[1]->extent > heights[1];
  int64_t vector = int64_t(tiling.size.vectors) * tiling.lanes;
  int64_t bytes =
      vector *
      llvm::divideCeil(
          getElementTypeOrSelf(root->getResult(0)).getIntOrFloatBitWidth(), 8);
  int64_t most = firstCache / (bytes * (read + heights[0] * heights[1]));
  int64_t vectors = llvm::divideCeil(*columns, vector);
  if (!overlaps || all > secondCache || most < fewest || vectors <= most)
    return 0;
  // Blocks of about one size, and as many for each of some threads.
  int64_t blocks = llvm::divideCeil(vectors, most);
  if (kernel.hasParts())
    blocks = llvm::alignTo(blocks, 4);
  return llvm::divideCeil(vectors, blocks) * vector;
}

/// Whether rows of the result are so far apart that they share few sets of the
/// first cache.
bool Classifier::rowsShareSets() {
  OpOperand *init = root.getDpsInitOperand(0);
  Access output = {init, root->getResult(0),
                   Position(root.getMatchingIndexingMap(init).getResults()),
                   /*direct=*/true};
  return shareFewSets(bytesApart(output, *tiling.row));
}

/// What rows share stays in the cache, so it is outside of them: first the
/// loops that it depends on, then the columns, then the other loops. Where all
/// columns stay in the cache, the other loops are outside: what they read is
/// read once.
void Classifier::orderLoops() {
  using Level = Tiling::Level;
  SmallVector<Level> before, after;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (isReduction(loop) || loop == tiling.lane || loop == tiling.row ||
        loop == tiling.outerRow)
      continue;
    bool outside = llvm::any_of(accesses, [&](const Access &access) {
      return tiling.row && access.dependsOn(tiling.lane) &&
             !access.dependsOn(*tiling.row) && access.dependsOn(loop);
    });
    outside |= tiling.panel && blockedDependsOn(loop);
    (outside ? before : after).push_back({Tiling::Kind::Single, loop});
  }
  Level rows = {Tiling::Kind::Rows, tiling.row.value_or(0)};
  Level columns = {Tiling::Kind::Columns, tiling.lane};
  if (tiling.row && (tiling.outerRow || !tiling.taps.empty())) {
    // Neighbouring channels are neighbours in memory.
    tiling.levels = before;
    tiling.levels.append(after);
    bool copies = copyWindows();
    if (tiling.outerRow && !copies)
      tiling.levels.push_back({Tiling::Kind::Rows, *tiling.outerRow});
    if (int64_t step = copies ? 0 : columnsOfWindows())
      tiling.levels.push_back({Tiling::Kind::Blocks, tiling.lane, step});
    tiling.levels.push_back(rows);
    tiling.levels.push_back(columns);
    return;
  }
  bool shared = llvm::any_of(accesses, [&](const Access &access) {
    return tiling.row && access.dependsOn(tiling.lane) &&
           !access.dependsOn(*tiling.row);
  });
  // The second cache has room beside what one turn of the other loops reads,
  // the first one beside what a tile reads. Where many rows that are written
  // one below the other want the ways of few sets, what is near is enough.
  constexpr int64_t firstCache = 24 << 10, near = 72 << 10;
  bool inside = shared && !tiling.panel && holdsShared(unit.secondCache() / 8);
  if (inside) {
    // What the other loops read is read once, too, by turns of those that it
    // does not depend on.
    auto repeats = [&](const Level &level) {
      return llvm::none_of(accesses, [&](const Access &access) {
        return !access.dependsOn(tiling.lane) && access.dependsOn(level.loop);
      });
    };
    llvm::copy_if(before, std::back_inserter(after), repeats);
    llvm::erase_if(before, repeats);
  }
  tiling.levels = before;
  if (shared && tiling.row && !inside) {
    after.push_back(rows);
    return orderBlocked(after);
  }
  // Then what is written is written in order.
  bool innermost =
      inside && tiling.row && holdsShared(rowsShareSets() ? near : firstCache);
  if (inside)
    tiling.levels.append(after);
  if ((shared || tiling.blocked) && !innermost)
    tiling.levels.push_back(columns);
  if (!inside)
    tiling.levels.append(after);
  if (tiling.row)
    tiling.levels.push_back(rows);
  if (innermost || (!shared && !tiling.blocked && !tiling.reducesLanes))
    tiling.levels.push_back(columns);
}

/// How much of what `loops` read, the rows among them, stays in the second
/// cache from column to column.
int64_t Classifier::bytesOfRows(ArrayRef<unsigned> loops) {
  // Each block reads all that rows share again: what is more than this comes
  // from memory where a model has many weights.
  constexpr int64_t mostShared = 1 << 20, largeBlock = 896 << 10;
  constexpr int64_t largeCache = 1280 << 10;
  int64_t cache = unit.secondCache();
  if (holdsShared(mostShared))
    return cache / 16 * 7;
  // A small cache, beside blocks of weights. Windows, and pixels that are some
  // apart, come too slowly from the third one: nothing fetches them ahead. Nor
  // does that serve rows again that are much more than the second one holds. A
  // panel would be filled for each block.
  bool inRuns = llvm::all_of(accesses, [&](const Access &access) {
    return access.dependsOn(tiling.lane) ||
           llvm::all_of(access.position,
                        llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
  });
  if (cache > largeCache || (tiling.panel && !tiling.packsAll) ||
      !holdsShared(4 * mostShared) ||
      (inRuns && bytesOfScalars(loops) < 2 * cache))
    return largeBlock;
  return inRuns ? cache / 16 * 7 : cache / 4;
}

/// The largest block of at most `most` of `turns`, in whole `unit`s, of which
/// two and four threads have nearly the most equal shares.
static int64_t evenBlocks(int64_t turns, int64_t unit, int64_t most) {
  constexpr int64_t many = 64; // one more or less does not matter
  if (turns / most >= many)
    return most;
  auto unevenness = [&](int64_t step) {
    int64_t blocks = llvm::divideCeil(turns, step), sum = 0;
    for (int64_t threads : {2, 4})
      sum += threads * mostOfThread(turns, step, blocks, threads);
    return sum;
  };
  int64_t best = most;
  for (int64_t step = most; step >= 2 * unit; step -= unit)
    if (unevenness(step) * 25 < unevenness(best) * 24)
      best = step;
  return best;
}

/// Columns outside of the loops `inner`, of which the last are the rows: what
/// those read stays in the second cache from column to column. Where it is too
/// much, blocks of a loop are outside.
void Classifier::orderBlocked(ArrayRef<Tiling::Level> inner) {
  SmallVector<unsigned> loops;
  for (const Tiling::Level &level : inner)
    loops.push_back(level.loop);
  int64_t cacheBytes = bytesOfRows(loops), all = bytesOfScalars(loops);
  // Two threads have half of all rows.
  bool isShared = kernel.hasParts() && sharesRows();
  if (isShared && all <= 2 * cacheBytes)
    cacheBytes = all;
  size_t first = 0; // of those that are all inside
  while (first < inner.size() &&
         bytesOfScalars(ArrayRef(loops).drop_front(first)) > cacheBytes)
    ++first;
  if (first > 0) {
    tiling.levels.append(inner.begin(), inner.begin() + first - 1);
    const Tiling::Level &cut = inner[first - 1];
    int64_t unit = cut.kind == Tiling::Kind::Rows ? tiling.size.rows : 1;
    int64_t turn = bytesOfScalars(ArrayRef(loops).drop_front(first));
    int64_t step = cacheBytes / std::max<int64_t>(turn, 1) / unit * unit;
    int64_t turns = extent(cut.loop).value_or(INT64_MAX);
    if (step >= 2 * unit && step < turns) {
      if (turns != INT64_MAX && isShared) {
        step = evenBlocks(turns, unit, step);
      } else if (turns != INT64_MAX) {
        // Blocks of about one size.
        int64_t blocks = llvm::divideCeil(turns, step);
        step = llvm::alignTo(llvm::divideCeil(turns, blocks), unit);
      }
      tiling.levels.push_back({Tiling::Kind::Blocks, cut.loop, step});
      --first;
    } else if (cut.kind != Tiling::Kind::Rows) {
      tiling.levels.push_back(cut);
    } else {
      --first;
    }
  }
  tiling.levels.push_back({Tiling::Kind::Columns, tiling.lane});
  tiling.levels.append(inner.begin() + first, inner.end());
}

/// Bytes of what `access` reads, or of the cache lines that hold it, while one
/// tile walks along the whole reduction.
int64_t Classifier::bytesWalked(const Access &access) {
  constexpr int64_t line = 64;
  auto type = cast<ShapedType>(access.tensor.getType());
  int64_t bytes = access.dependsOn(tiling.lane)
                      ? int64_t(tiling.size.vectors) * tiling.lanes *
                            llvm::divideCeil(type.getElementTypeBitWidth(), 8)
                      : line;
  for (unsigned loop : tiling.reductions)
    if (access.dependsOn(loop))
      bytes = llvm::SaturatingMultiply<uint64_t>(
          bytes, extent(loop).value_or(manyTurns));
  return bytes;
}

/// The most bytes that a block of the operand in blocks has for the columns of
/// a tile.
int64_t Classifier::bytesOfBlock() {
  // Not half of the first cache: 4 rows of 56 pixels, 16 of 14.
  constexpr int64_t nearPanelBytes = 14 << 10;
  if (tiling.widened)
    return widenedBytes;
  if (!tiling.panel || tiling.packsAll)
    return weightBlockBytes();
  return nearPanel ? nearPanelBytes : panelBytes;
}

/// Where the cache does not hold what a tile reads until the next tile reads it
/// again, as in the gradient of a kernel, which is a sum over all images; and
/// where it does not hold a block of weights beside the next one.
void Classifier::blockReductions() {
  constexpr int64_t cacheBytes = 96 << 10, manySums = 1 << 20;
  // Of many sums, which go to the third cache and back, in fewer blocks.
  int64_t bytes = 0,
          depthOfBlock = bytesOf(root->getResult(0)) < manySums ? 256 : 448;
  for (const Access &access : accesses)
    bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesWalked(access));
  if (tiling.blocked) {
    int64_t row = int64_t(tiling.size.vectors) * tiling.lanes * bytesInBlock();
    int64_t most = bytesOfBlock();
    depthOfBlock = most / row;
    bytes = 0;
    for (const Access &access : accesses)
      if (access.operand == tiling.blocked)
        bytes = bytesWalked(access) * (tiling.widened ? 2 : 1);
    // A panel has its place before anything is known.
    if (bytes <= most && (!tiling.panel || tiling.packsAll || panelFits()))
      return;
  } else if (bytes <= cacheBytes ||
             (bytes <= weightBlockBytes() && holdsWeights())) {
    return;
  }
  int64_t depth = 1, below = 1;
  unsigned inner = tiling.reductions.size();
  while (inner > 0 && depth < depthOfBlock) {
    below = depth;
    depth *= extent(tiling.reductions[--inner]).value_or(manyTurns);
  }
  tiling.outerReductions = inner;
  // Blocks of about one size.
  int64_t turns = extent(tiling.reductions[inner]).value_or(INT64_MAX / 2);
  int64_t step = std::max<int64_t>(depthOfBlock / below, 1);
  if (turns > step)
    tiling.blockStep = llvm::divideCeil(turns, llvm::divideCeil(turns, step));
}

/// Bytes of an element of the operand in blocks where tiles read it.
int64_t Classifier::bytesInBlock() {
  auto type = cast<ShapedType>(tiling.blocked->get().getType());
  return tiling.widened ? 4
                        : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Whether the panel has a known size that the stack has room for.
bool Classifier::panelFits() {
  int64_t bytes = int64_t(tiling.size.vectors) * tiling.lanes * bytesInBlock();
  for (unsigned loop : tiling.reductions) {
    if (!blockedDependsOn(loop))
      continue;
    bool blockwise = tiling.blockStep != 0 &&
                     loop == tiling.reductions[tiling.outerReductions];
    if (!extent(loop) && !blockwise && turnsInBlock(loop) != 1)
      return false;
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, blockwise && !extent(loop)
                                                          ? tiling.blockStep
                                                          : turnsInBlock(loop));
  }
  return bytes <= 2 * panelBytes;
}

/// The product of a vector and a matrix whose rows are far apart: some of its
/// rows at a time, along all columns, for runs are fetched ahead.
void Classifier::blockRows() {
  constexpr int64_t rowsAtOnce = 16;
  bool far = llvm::any_of(accesses, [&](const Access &access) {
    return access.dependsOn(tiling.lane) && stepsFar(access);
  });
  if (far && !tiling.blocked && tiling.reductions.size() == 1)
    tiling.blockStep = rowsAtOnce;
}

/// Tiles along a level inside of the columns, in one block of its loop.
int64_t Classifier::tilesOf(const Tiling::Level &level) {
  int64_t turns = extent(level.loop).value_or(manyTurns);
  for (const Tiling::Level &outer : tiling.levels)
    if (outer.kind == Tiling::Kind::Blocks && outer.loop == level.loop)
      turns = std::min(turns, outer.step);
  return level.kind == Tiling::Kind::Rows
             ? llvm::divideCeil(turns, tiling.size.rows)
             : turns;
}

/// A row times weights that the second cache holds in part only: when each call
/// begins where the one before it ended, it finds that part. What is a little
/// larger than a cache, and read in the same order again and again, is never in
/// it; of much larger weights too small a part is to gain anything.
void Classifier::pickDirection() {
  constexpr int64_t leastBytes = 256 << 10, mostBytes = 16 << 20;
  if (!tiling.blocked || tiling.panel || tiling.row || tiling.inBlocks() ||
      !extent(tiling.lane))
    return;
  for (const Tiling::Level &level : tiling.levels)
    if (level.kind != Tiling::Kind::Columns && extent(level.loop) != 1)
      return;
  int64_t bytes = bytesOf(tiling.blocked->get());
  tiling.alternates = bytes >= leastBytes && bytes <= mostBytes;
}

/// Functions of the sums of a tile are chains that nothing hides at the end:
/// the products of the next tile are behind more of them than a core looks
/// ahead. The sums of some tiles stay in the first cache until then. With 32
/// registers a tile has so many of them that its end is little of it.
void Classifier::pickGroups() {
  constexpr int64_t cacheBytes = 4 << 10, mostProducts = 256;
  constexpr unsigned fewRegisters = 16;
  if (unit.littleCode || unit.registers > fewRegisters || !tiling.row ||
      tiling.panel || tiling.copied || tiling.inBlocks() ||
      tiling.reducesLanes || tiling.levels.empty())
    return;
  const Tiling::Level &innermost = tiling.levels.back();
  bool isRow = innermost.kind == Tiling::Kind::Rows &&
               innermost.loop == tiling.row && !tiling.outerRow;
  std::optional<int64_t> turns = extent(innermost.loop);
  if (!turns || (!isRow && innermost.kind != Tiling::Kind::Columns))
    return;
  int64_t rows = int64_t(tiling.size.rows) * tiling.size.outerRows;
  int64_t columns = int64_t(tiling.size.vectors) * tiling.lanes, bytes = 0;
  // Loops of more products were not measured: LLVM may order them so that all
  // weights are on the stack.
  int64_t products = rows * tiling.size.vectors;
  for (unsigned tap : tiling.taps)
    products *= tapsAtOnce(tap);
  if (products > mostProducts)
    return;
  for (Value result : root->getResults())
    bytes += rows * columns *
             llvm::divideCeil(
                 getElementTypeOrSelf(result).getIntOrFloatBitWidth(), 8);
  for (const Tiling::Level &level : tiling.levels)
    if (level.kind == Tiling::Kind::Blocks && level.loop == innermost.loop)
      turns = std::min(*turns, level.step);
  int64_t tiles = llvm::divideCeil(*turns, isRow ? tiling.size.rows : columns);
  if (rows == 1 || tiles < 2 || bytes > cacheBytes / 2)
    return;
  // Groups of about one size.
  int64_t groups = llvm::divideCeil(tiles, cacheBytes / bytes);
  tiling.tilesOfGroup = llvm::divideCeil(tiles, groups);
}

int64_t bytesOf(Value tensor) {
  auto type = cast<ShapedType>(tensor.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      bytes = llvm::SaturatingMultiply<uint64_t>(bytes, size);
  return std::min<uint64_t>(bytes, INT64_MAX / 4);
}

} // namespace keratin
