//===- WinogradAhead.cpp - asking for the next tile -----------------------===//
#include "codegen/cpu/WinogradAhead.h"
#include "codegen/cpu/Classifier.h"

using namespace mlir;

namespace keratin {

/// A point of the loops of the root, with `lane` and the taps along outer axes
/// as they are.
Position TilesAhead::pointAt(const Place &place) {
  const WindowConv &conv = plan.conv;
  MLIRContext *context = root.getContext();
  Position point(root.getNumLoops(), getAffineConstantExpr(0, context));
  auto put = [&](std::optional<unsigned> loop, AffineExpr expr) {
    if (loop)
      point[*loop] = expr;
  };
  put(conv.image, place.image);
  for (auto [axis, expr] : llvm::zip_equal(conv.outer, place.outer)) {
    put(axis.loop, expr);
    if (axis.tap)
      put(axis.tap, getAffineDimExpr(*axis.tap, context));
  }
  put(conv.down.loop, place.row);
  put(conv.across.loop, place.column);
  point[lane] = getAffineDimExpr(lane, context);
  return point;
}

void TilesAhead::add(Pixels pixels) {
  auto type =
      pixels.memref ? cast<MemRefType>(pixels.memref.getType()) : nullptr;
  if (type && !type.isDynamicDim(type.getRank() - 1) &&
      bytesOfElement(type) != 0 && bytesOf(pixels.memref) >= plan.farBytes &&
      laneAccess(type, pixels.position, lane) == LaneAccess::Contiguous)
    far.push_back(std::move(pixels));
}

void TilesAhead::addInputs() {
  const TransformedAxis &across = plan.conv.across;
  addFactor(plan.conv.input, plan.positions(plan.conv.down),
            plan.positions(across),
            /*shared=*/across.dilation == 1 ? plan.form.taps - 1 : 0);
}

void TilesAhead::addSlopes() {
  addFactor(plan.conv.factor, plan.pixels(plan.conv.down),
            plan.pixels(plan.conv.across), /*shared=*/0);
}

void TilesAhead::addFactor(OpOperand *factor, int64_t rows, int64_t columns,
                           int64_t shared) {
  const WindowConv &conv = plan.conv;
  auto loop = [&](std::optional<unsigned> number) {
    return number ? getAffineDimExpr(*number, root.getContext()) : AffineExpr();
  };
  Place place = {
      loop(conv.image), loop(conv.down.loop), loop(conv.across.loop), {}};
  for (const OuterAxis &axis : conv.outer)
    place.outer.push_back(loop(axis.loop));
  add({kernel.memrefOf(factor->get()),
       atPoint(root.getMatchingIndexingMap(factor).getResults(),
               pointAt(place)),
       rows, shared, columns, /*isWritten=*/false});
}

void TilesAhead::addOutputs(ArrayRef<Output> outputs) {
  const WindowConv &conv = plan.conv;
  int64_t rows = plan.pixels(conv.down), columns = plan.pixels(conv.across);
  auto dependsOn = [](const Access &access, const TransformedAxis &axis) {
    return !axis.isThere() || access.dependsOn(*axis.loop);
  };
  for (const Output &output : outputs)
    add({output.destination, output.place, rows, 0, columns,
         /*isWritten=*/true});
  for (const Access &access : readWithSums(kernel, root))
    if (dependsOn(access, conv.down) && dependsOn(access, conv.across))
      add({kernel.memrefOf(access.tensor), access.position, rows, 0, columns,
           /*isWritten=*/false});
}

void TilesAhead::ask(const TileCorner &corner) {
  // A first cache has room for few pixels beside what is transformed.
  constexpr int64_t lineBytes = 64, nearBytes = 8 << 10;
  auto where = [&](Value number) {
    return number ? reader.symbol(number) : AffineExpr();
  };
  auto at = [&](Value first, const TransformedAxis &axis, int64_t offset) {
    Value pixels = kernel.index(offset * axis.dilation);
    return where(axis.isThere() ? kernel.plus(first, pixels) : Value());
  };
  Place place;
  place.image = where(corner.image);
  for (Value number : corner.outer)
    place.outer.push_back(where(number));
  for (const Pixels &pixels : far) {
    auto type = cast<MemRefType>(pixels.memref.getType());
    int64_t bytes = bytesOfElement(type) * type.getShape().back();
    int64_t ofTile = pixels.rows * (pixels.end - pixels.begin) * bytes;
    unsigned locality = ofTile <= nearBytes ? 3 : 2;
    // Pixels of less than a line are in lines of others.
    int64_t step = std::max<int64_t>(lineBytes / bytes, 1);
    for (int64_t i = 0; i < pixels.rows; ++i)
      for (int64_t j = pixels.begin; j < pixels.end; j += step) {
        place.row = at(corner.row, plan.conv.down, i);
        place.column = at(corner.column, plan.conv.across, j);
        reader.prefetch(pixels.memref, atPoint(pixels.position, pointAt(place)),
                        /*ahead=*/0, /*width=*/1, pixels.isWritten, locality);
      }
  }
}

} // namespace keratin
