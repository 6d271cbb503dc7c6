//===- TileTaps.cpp - the order of the taps of a tile ---------------------===//
//
// A sum waits for the last product that it got, which takes as long as eight
// products of others. Values in the order of memory, each multiplied for all
// that want it, are few reads, but a window of three has six sums under way at
// most, and two at the border of a tile. Many registers hold more sums.
//
// In turns each sum gets one product before any gets the next one. They are
// those of one tap beside the longer side of the tile, and along it of values
// that are as many apart as there are taps, for of these each sum has one:
//
//   values of three rows of sums   0 1 2 3 4     turns   0: 0 . . 3 .
//   first row, of three taps       0 1 2                 1: . 1 . . 4
//   second row                       0 1 2               2: . . 2 . .
//   third row                          0 1 2
//
// So a value meets all its taps along, while these stay in registers, and is
// read again for those beside.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/TileLoops.h"

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

/// The taps for all rows of the tile in turns, each with the tap beside the
/// longer side of the tile, the turn, and the row, in front.
SmallVector<TileEmitter::Tap> TileEmitter::tapsInTurns() {
  SmallVector<Tap> all;
  const auto &[outer, inner] = *tiling.turns;
  bool alongInner = !outer.tap || (inner.tap && innerRows > outerRows);
  const WindowWay &along = alongInner ? inner : outer,
                  &beside = alongInner ? outer : inner;
  forEachTap([&](ArrayRef<AffineExpr> taps) {
    auto tapOf = [&](const WindowWay &way) -> int64_t {
      return way.tap ? cast<AffineConstantExpr>(taps[*way.tap]).getValue() : 0;
    };
    for (unsigned row = 0; row < rows(); ++row) {
      int64_t down = row / innerRows, across = row % innerRows;
      auto [near, far] =
          alongInner ? std::pair(across, down) : std::pair(down, across);
      int64_t place = near * along.step / along.tapStep + tapOf(along);
      all.push_back({SmallVector<AffineExpr>(taps),
                     row,
                     all.size(),
                     {tapOf(beside), place % along.taps, far, near}});
    }
  });
  sortByPlace(all);
  return all;
}

/// A step of a window whose taps come in turns.
void TileEmitter::multiplyInTurns(MutableArrayRef<Value> sums) {
  SmallVector<Tap> taps = tapsInTurns();
  Value lane = reader.at(getAffineDimExpr(tiling.lane, b.getContext()));
  for (ArrayRef<Tap> rest = taps; !rest.empty();) {
    ArrayRef<Tap> beside = rest.take_while([&](const Tap &tap) {
      return tap.place.front() == rest.front().place.front();
    });
    {
      LaneReader::Scope scope(reader);
      reader.bind(tiling.lane, lane);
      for (const Tap &tap : beside)
        multiply(tap, sums);
    }
    rest = rest.drop_front(beside.size());
    // LLVM would keep in memory of its own what it knows to be read again.
    lane = hidden(kernel, lane);
  }
}

} // namespace keratin
