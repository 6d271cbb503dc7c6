//===- TileTaps.cpp - the order of the taps of a tile ---------------------===//
//
// A sum waits for the last product that it got, which takes as long as eight
// products of others. Values in the order of memory, each multiplied for all
// that want it, are few reads, but a window of three has six sums under way at
// most, and two at the ends of a tile. Many registers hold more sums.
//
// In turns each sum gets one product before any gets the next one. A row is as
// many turns behind the row before as that one reads in front of it, so that
// both meet the same value:
//
//   turn         0  1  2  3  4  5
//   first row    0  1  2  0' 1' 2'     its taps along, then beside those the
//   second row      0  1  2  0' 1'     next ones
//   third row          0  1  2  0'
//   values       0  1  2  3  4  0' ..
//
// Few weights are in registers at once. Values are read again for the taps that
// are beside. A sum adds up its taps column by column, whatever the tile is and
// wherever in it the sum.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"

#include <cstdlib>

using namespace mlir;

namespace keratin {

void TileEmitter::forEachTap(
    llvm::function_ref<void(ArrayRef<AffineExpr>)> body) {
  SmallVector<int64_t> extents;
  for (unsigned loop : tiling.taps)
    extents.push_back(loop == tiling.longTap ? tapsOfStep
                                             : staticLoopExtent(root, loop));
  int64_t number = llvm::product_of(extents);
  for (int64_t tap = 0; tap < number; ++tap) {
    SmallVector<AffineExpr> taps(root.getNumLoops());
    int64_t rest = tap;
    for (unsigned axis = extents.size(); axis-- > 0;) {
      unsigned loop = tiling.taps[axis];
      AffineExpr at =
          getAffineConstantExpr(rest % extents[axis], b.getContext());
      taps[loop] = loop == tiling.longTap
                       ? getAffineDimExpr(loop, b.getContext()) + at
                       : at;
      rest /= extents[axis];
    }
    body(taps);
  }
}

void TileEmitter::sortByPlace(MutableArrayRef<Tap> taps) {
  llvm::sort(taps, [](const Tap &left, const Tap &right) {
    return std::tie(left.place, left.number) <
           std::tie(right.place, right.number);
  });
}

/// The taps for all rows of the tile. Those of a window come in the order of
/// what they read, so that a value is soon done with: for each row that is the
/// order of the taps, wherever in a tile it is.
SmallVector<TileEmitter::Tap> TileEmitter::tapsOfRows() {
  SmallVector<Tap> all;
  forEachTap([&](ArrayRef<AffineExpr> taps) {
    for (unsigned row = 0; row < rows(); ++row)
      all.push_back({SmallVector<AffineExpr>(taps), row, all.size(), {}});
  });
  if (tiling.taps.empty() || !tiling.row)
    return all;
  // Rows that share no places share weights: those of one column are together.
  bool shareRows = false;
  for (AffineMap map : root.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults())
      for (unsigned tap : tiling.taps)
        shareRows |= tiling.outerRow &&
                     expr.isFunctionOfDim(*tiling.outerRow) &&
                     expr.isFunctionOfDim(tap);
  for (Tap &tap : all) {
    SmallVector<int64_t> ofRow, ofLane;
    for (AffineMap map : root.getIndexingMapsArray())
      for (auto [place, expr] : llvm::zip_equal(
               map.getResults(),
               atPoint(map.getResults(), pointOf(tap.row, 0, tap.taps)))) {
        auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
        if (sum && sum.getKind() != AffineExprKind::Add)
          sum = nullptr; // the first place, at a step of more than one
        auto constant = dyn_cast<AffineConstantExpr>(sum ? sum.getRHS() : expr);
        bool isOfRow = tiling.outerRow && !shareRows &&
                       place.isFunctionOfDim(*tiling.outerRow);
        // Of what lanes of several groups of channels read, each channel with a
        // few weights, before the next one with others.
        bool isOfLane = isa<AffineBinaryOpExpr>(place) &&
                        place.isFunctionOfDim(tiling.lane);
        (isOfRow    ? ofRow
         : isOfLane ? ofLane
                    : tap.place)
            .push_back(constant ? constant.getValue() : 0);
      }
    tap.place.insert(tap.place.begin(), ofLane.begin(), ofLane.end());
    tap.place.append(ofRow);
  }
  sortByPlace(all);
  return all;
}

/// How many turns the place `row` is behind the first one of a tile, or in
/// front where taps go backwards. More than some would want the weights of as
/// many taps at once.
static int64_t turnsBehind(const WindowWay &way, int64_t row) {
  constexpr int64_t most = 3;
  int64_t together = (most + 1) * std::abs(way.tapStep) - 1;
  int64_t rows = together / std::abs(way.step) + 1;
  return row % rows * way.step / way.tapStep;
}

static int64_t tapOf(const WindowWay &way, ArrayRef<AffineExpr> taps) {
  return way.tap ? cast<AffineConstantExpr>(taps[*way.tap]).getValue() : 0;
}

/// The taps for all rows of the tile, by turns.
SmallVector<TileEmitter::Tap> TileEmitter::tapsInTurns() {
  SmallVector<Tap> all;
  const auto &[along, beside, alongInner] = *tiling.turns;
  forEachTap([&](ArrayRef<AffineExpr> taps) {
    int64_t tap = tapOf(beside, taps) * along.taps + tapOf(along, taps);
    for (unsigned row = 0; row < rows(); ++row) {
      int64_t down = row / innerRows, across = row % innerRows;
      int64_t near = alongInner ? across : down;
      int64_t far = alongInner ? down : across;
      all.push_back({SmallVector<AffineExpr>(taps),
                     row,
                     all.size(),
                     {tap + turnsBehind(along, near), far, near}});
    }
  });
  sortByPlace(all);
  return all;
}

/// A step of a window whose taps come in turns.
void TileEmitter::multiplyInTurns(MutableArrayRef<Value> sums) {
  // LLVM would keep in memory of its own what it knows to be read again.
  Sums lanes = {reader.at(getAffineDimExpr(tiling.lane, b.getContext()))};
  const WindowWay &beside = tiling.turns->beside;
  while (int64_t(lanes.size()) < beside.taps)
    lanes.push_back(hidden(kernel, lanes.back()));
  SmallVector<LaneReader::Memory> read(lanes.size());
  for (const Tap &tap : tapsInTurns()) {
    int64_t number = tapOf(beside, tap.taps);
    LaneReader::Scope scope(reader, &read[number]);
    reader.bind(tiling.lane, lanes[number]);
    multiply(tap, sums);
  }
}

} // namespace keratin
