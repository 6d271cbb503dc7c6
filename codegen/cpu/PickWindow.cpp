//===- PickWindow.cpp - what the rows of a window's tiles are -------------===//
#include "codegen/cpu/Classifier.h"
#include "ir/UnrolledTaps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Whether `loop` is one of those whose sum is a position of an access.
bool Classifier::slides(unsigned loop) {
  return llvm::any_of(accesses, [&](const Access &access) {
    return llvm::any_of(access.position, [&](AffineExpr expr) {
      return !isa<AffineDimExpr>(expr) && expr.isFunctionOfDim(loop);
    });
  });
}

/// Whether `loop`, which slides, goes through an image of which the results are
/// taps, as in the gradient of a kernel: it has more turns than the results
/// have places, and twice as many where nothing else is summed up. Of more
/// places than a tile has rows (pickTapRows) it is the other way round: the
/// image is a long window.
bool Classifier::goesThroughImage(unsigned loop) {
  bool sumsMore = false;
  int64_t places = 1;
  for (unsigned other = 0; other < root.getNumLoops(); ++other)
    sumsMore |= isReduction(other) && !slides(other) && extent(other) != 1;
  for (const Access &access : accesses)
    for (AffineExpr expr : access.position)
      for (unsigned other = 0; other < root.getNumLoops(); ++other)
        if (expr.isFunctionOfDim(loop) && expr.isFunctionOfDim(other) &&
            !isReduction(other))
          places = std::max(places, extent(other).value_or(1));
  return places > 1 && places <= mostTapRows() &&
         extent(loop).value_or(0) > (sumsMore ? places : 2 * places - 1);
}

/// Reductions that move a window over a parallel loop are its taps. A window
/// over one channel is unrolled, so that neighbours share what they read; of a
/// large one the inner taps, and some at a time where those are too many: in
/// parts of about one length, of which the last one is code of its own.
void Classifier::pickWindow() {
  constexpr int64_t mostAtOnce = 12;
  int64_t number = 1;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    if (!isReduction(loop) || !slides(loop) || goesThroughImage(loop))
      continue;
    number = extent(loop) ? number * *extent(loop) : mostUnrolledTaps + 1;
    if (number > mostUnrolledTaps) {
      if (tiling.taps.empty() && extent(loop)) {
        tiling.taps.push_back(loop);
        tiling.longTap = loop;
        tiling.tapsAtOnce =
            llvm::divideCeil(number, llvm::divideCeil(number, mostAtOnce));
      }
      break;
    }
    tiling.taps.insert(tiling.taps.begin(), loop);
  }
}

/// How many taps of `loop` are unrolled.
int64_t Classifier::tapsAtOnce(unsigned loop) {
  return loop == tiling.longTap ? tiling.tapsAtOnce : *extent(loop);
}

/// How the window goes along `loop`; null when it does not, or when the steps
/// are not the same everywhere.
std::optional<WindowWay> Classifier::windowAlong(unsigned loop) {
  if (isReduction(loop) || extent(loop) == 1)
    return std::nullopt;
  for (const Access &access : accesses)
    for (AffineExpr expr : access.position)
      for (unsigned tap : tiling.taps)
        if (expr.isFunctionOfDim(loop) && expr.isFunctionOfDim(tap)) {
          auto step = laneStep(expr, loop), tapStep = laneStep(expr, tap);
          if (!step || !tapStep)
            return std::nullopt;
          return WindowWay{extent(loop), *step, tapsAtOnce(tap), *tapStep, tap};
        }
  return std::nullopt;
}

/// Whether windows that go these ways read nothing that another one reads, and
/// have no weights to share.
bool Classifier::windowsAreApart(ArrayRef<WindowWay> ways) {
  return llvm::all_of(ways,
                      [](const WindowWay &way) {
                        return way.step > (way.taps - 1) * way.tapStep;
                      }) &&
         llvm::all_of(accesses, [&](const Access &access) {
           return access.dependsOn(*tiling.row) ||
                  !access.dependsOn(tiling.lane);
         });
}

/// The two innermost loops that the window goes along. Windows that share
/// nothing are computed one by one, all of their channels, which are one run of
/// memory. False where a window goes along none.
bool Classifier::pickWindowRows() {
  WindowWay ways[2] = {{1}, {1}};
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    std::optional<WindowWay> way = windowAlong(loop);
    if (!way || (tiling.row && !way->extent))
      continue;
    ways[tiling.row ? 0 : 1] = *way;
    (tiling.row ? tiling.outerRow : tiling.row) = loop;
    if (tiling.outerRow)
      break;
  }
  if (!tiling.row)
    return false;
  if (!unit.littleCode && tiling.size.vectors > 1 && windowsAreApart(ways)) {
    tiling.row.reset();
    tiling.outerRow.reset();
    return true;
  }
  tiling.size = windowTile(ways[0], ways[1], unit);
  if (tiling.size.outerRows == 1)
    tiling.outerRow.reset();
  if (!tiling.outerRow)
    pickRowsOfWideWindow();
  if (takesTurns(ways)) {
    bool inner = !ways[0].tap;
    tiling.turns = {ways[inner], ways[!inner], inner};
  }
  return true;
}

/// Whether the taps of windows that go these ways come in turns. More taps have
/// sums enough under way in any order.
bool Classifier::takesTurns(ArrayRef<WindowWay> ways) {
  constexpr unsigned fewRegisters = 16;
  constexpr int64_t mostTaps = 5;
  bool shareWeightsAlone = tiling.outerRow && !ways[0].tap;
  return unit.registers <= fewRegisters && !tiling.longTap &&
         !shareWeightsAlone &&
         llvm::all_of(
             ways, [](const WindowWay &way) { return way.taps <= mostTaps; }) &&
         llvm::all_of(tiling.taps, [&](unsigned tap) {
           return tap == ways[0].tap || tap == ways[1].tap;
         });
}

/// Of a window of which a loop goes along the outer taps, the rows of a tile
/// share the weights alone. With 16 registers 8 sums are as many as there are
/// under way, so that nothing may come late: two more are worth it, which are
/// the next row's, as a wider tile wants all weights at once. Lanes of several
/// groups meet the weights of one channel at a time, so that four more fit.
void Classifier::pickRowsOfWideWindow() {
  constexpr int64_t fewRegisters = 16, sumsUnderWay = 8;
  std::optional<unsigned> outer = outerLoopOfWindow();
  if (unit.littleCode || unit.registers > fewRegisters || !outer ||
      windowAlong(*outer) || !extent(*outer) || !extent(*tiling.row))
    return;
  bool ofGroups = llvm::any_of(accesses, [&](const Access &access) {
    return llvm::any_of(access.position, [&](AffineExpr expr) {
      return expr.isFunctionOfDim(tiling.lane) &&
             llvm::any_of(tiling.taps, [&](unsigned tap) {
               return expr.isFunctionOfDim(tap);
             });
    });
  });
  int64_t mostSums = ofGroups ? 12 : 10;
  // Turns in which each unit does a product for all taps of a row, and one for
  // what is around them.
  auto turnsOfTile = [&](int64_t high, int64_t wide) {
    return high * wide == 0 ? 0 : std::max(high * wide, sumsUnderWay) + 2;
  };
  auto turns = [&](int64_t high, int64_t wide) {
    int64_t rows = *extent(*outer), columns = *extent(*tiling.row);
    auto ofRow = [&](int64_t high) {
      return columns / wide * turnsOfTile(high, wide) +
             turnsOfTile(high, columns % wide);
    };
    return rows / high * ofRow(high) + ofRow(rows % high);
  };
  int64_t best = turns(1, tiling.size.rows);
  for (int64_t high = 2; high <= std::min<int64_t>(*extent(*outer), 3); ++high)
    for (int64_t wide = 2;
         wide <= std::min(*extent(*tiling.row), mostSums / high); ++wide)
      if (int64_t cost = turns(high, wide); cost < best) {
        best = cost;
        tiling.outerRow = outer;
        tiling.size = {unsigned(wide), 1, unsigned(high)};
      }
}

/// A sum over all places of a window, as the gradient of the kernel of a
/// depthwise convolution: its taps are rows, so that what they share is read
/// once for all of them.
void Classifier::pickTapRows(std::optional<int64_t> vectors) {
  int64_t rows = 1, most = mostTapRows();
  SmallVector<unsigned> loops;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    int64_t turns = extent(loop).value_or(most + 1);
    // The lanes of groups have a position that is a quotient.
    if (slides(loop) && !isReduction(loop) && loop != tiling.lane &&
        turns > 1 && rows * turns <= most && loops.size() < 2) {
      loops.push_back(loop);
      rows *= turns;
    }
  }
  if (loops.empty())
    return;
  tiling.row = loops[0];
  tiling.size.rows = unsigned(*extent(loops[0]));
  if (loops.size() > 1) {
    tiling.outerRow = loops[1];
    tiling.size.outerRows = unsigned(*extent(loops[1]));
  }
  // A register for what rows share and one for what they do not.
  int64_t fitting = (int64_t(unit.registers) - 2) / (rows + 1);
  tiling.size.vectors = unsigned(std::clamp<int64_t>(
      vectors.value_or(1), 1, std::max<int64_t>(fitting, 1)));
}

} // namespace keratin
