//===- SharedLoops.cpp - which loops of a root threads share --------------===//
//
// Calls of a kernel in parts have shares of one loop, or of the turns of two,
// such that few threads have about as much work each.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/SharedNest.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Turns of the loop of a level; ShapedType::kDynamic where not known.
int64_t Classifier::turnsOf(const Tiling::Level &level) {
  std::optional<int64_t> known = extent(level.loop);
  if (!known)
    return ShapedType::kDynamic;
  bool inBlocks = llvm::any_of(tiling.levels, [&](const Tiling::Level &outer) {
    return outer.kind == Tiling::Kind::Blocks && outer.loop == level.loop;
  });
  int64_t step = level.step;
  if (inBlocks && level.kind != Tiling::Kind::Blocks)
    return 1; // blocks are shared, not what is in them
  if (level.kind == Tiling::Kind::Columns)
    step = int64_t(tiling.size.vectors) * tiling.lanes;
  else if (level.kind == Tiling::Kind::Rows)
    step = level.loop == tiling.outerRow ? tiling.size.outerRows
                                         : tiling.size.rows;
  return llvm::divideCeil(*known, step);
}

/// Whether threads should share rows where they could share columns. Threads
/// that share columns each read all rows, and most of them from the cache of
/// another, as do those that read the outputs next; threads that share rows
/// each read all weights, in turn with each of their pieces of the work.
bool Classifier::sharesRows() {
  constexpr int64_t cacheBytes = 1 << 20;
  if (!tiling.row || tiling.panel)
    return false;
  int64_t weights = 0, rows = bytesOf(root->getResult(0));
  for (const Access &access : accesses) {
    if (!access.dependsOn(tiling.lane))
      rows += bytesOf(access.tensor);
    else if (!access.dependsOn(*tiling.row))
      weights += bytesOf(access.tensor);
  }
  return weights < 2 * rows && weights <= cacheBytes;
}

/// Whether a window goes over images whose columns threads shared: each has
/// written all that its columns read.
bool Classifier::isWindowOfColumns() {
  return tiling.outerRow && llvm::any_of(accesses, [&](const Access &access) {
           return access.dependsOn(tiling.lane) &&
                  access.dependsOn(*tiling.row) &&
                  kernel.hasSharedColumns(access.tensor);
         });
}

/// The rows of images that a window goes over: those before and behind it share
/// them as well, so that a thread finds most of what it reads, and the lines
/// that it writes, in its own cache. None where they are one turn.
std::optional<unsigned> Classifier::pickRowsOfImages(ArrayRef<int64_t> turns) {
  if (!tiling.outerRow || !canShareTwo())
    return std::nullopt;
  for (auto [number, level] : llvm::enumerate(tiling.levels)) {
    bool isKnown = !ShapedType::isDynamic(turns[number]);
    if (isKnown && turns[number] > 1 && level.kind != Tiling::Kind::Blocks)
      return unsigned(number);
    if (level.loop == tiling.outerRow)
      break;
  }
  return std::nullopt;
}

/// The level that threads share.
std::optional<unsigned> Classifier::pickShared() {
  constexpr int64_t fewestTurns = 6;
  if (!kernel.hasParts())
    return std::nullopt;
  SmallVector<int64_t> turns, ofRows, ofColumns;
  for (const Tiling::Level &level : tiling.levels) {
    bool columns = level.kind == Tiling::Kind::Columns;
    ofColumns.push_back(level.loop == tiling.lane ? turnsOf(level) : 1);
    // Each thread packs its columns.
    turns.push_back(tiling.packsAll && !columns ? 1 : turnsOf(level));
    ofRows.push_back(columns ? 1 : turns.back());
  }
  if (isWindowOfColumns())
    if (std::optional<unsigned> level = kernel.pickShared(ofColumns))
      return level;
  if (sharesRows()) {
    if (std::optional<unsigned> level = pickRowsOfImages(ofRows))
      return level;
    std::optional<unsigned> level = kernel.pickShared(ofRows);
    if (level && !ShapedType::isDynamic(ofRows[*level]) &&
        ofRows[*level] >= fewestTurns)
      return level;
  }
  std::optional<unsigned> level = kernel.pickShared(turns);
  if (level && ShapedType::isDynamic(turns[*level]))
    level = pickOfKnown(turns).value_or(*level);
  // Few blocks of columns in equal shares, with some of the rows.
  for (auto [number, turns] : llvm::enumerate(turns))
    if (level && tiling.levels[*level].kind == Tiling::Kind::Rows &&
        tiling.levels[number].kind == Tiling::Kind::Columns && tiling.blocked &&
        turns > 1 && canShareTwo())
      level = unsigned(number);
  return level;
}

/// A level in the place of one whose turns are not known and may be one, that
/// of a batch.
std::optional<unsigned> Classifier::pickOfKnown(ArrayRef<int64_t> turns) {
  constexpr int64_t enoughTurns = 4;
  if (!canShareTwo()) {
    const auto *most = llvm::max_element(turns);
    return *most >= enoughTurns ? std::optional<unsigned>(most - turns.begin())
                                : std::nullopt;
  }
  SmallVector<int64_t> known(turns);
  for (auto [count, level] : llvm::zip_equal(known, tiling.levels))
    if (level.kind == Tiling::Kind::Blocks)
      count = 1; // of which no second level is shared
  return pickKnownLoop(known);
}

/// Whether turns of two levels can be shared.
bool Classifier::canShareTwo() {
  return !tiling.panel && !tiling.alternates && !tiling.reducesLanes &&
         llvm::none_of(tiling.levels, [&](const Tiling::Level &level) {
           return level.kind == Tiling::Kind::Blocks &&
                  level.loop != tiling.lane;
         });
}

/// Where shares of the picked level may not be equal, a second one makes them
/// so: the columns of rows, or the rows of columns.
void Classifier::pickSharedWith() {
  auto isBlocks = [&](unsigned number) {
    return tiling.levels[number].kind == Tiling::Kind::Blocks;
  };
  if (!tiling.shared || !canShareTwo() || isBlocks(*tiling.shared))
    return;
  SmallVector<int64_t> turns;
  for (auto [number, level] : llvm::enumerate(tiling.levels)) {
    // Where a turn begins is not known within blocks.
    bool isAround = isBlocks(number) && number < *tiling.shared;
    turns.push_back(isAround ? 1 : turnsOf(level));
  }
  // What is packed is so for all of a batch.
  if (tiling.packsAll && ShapedType::isDynamic(turns[*tiling.shared]))
    return;
  tiling.sharedWith = pickSecondLoop(turns, *tiling.shared);
  if (tiling.sharedWith)
    tiling.turnsWith = turns[*tiling.sharedWith];
}

} // namespace keratin
