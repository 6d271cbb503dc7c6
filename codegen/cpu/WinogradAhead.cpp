//===- WinogradAhead.cpp - asking for the next tile -----------------------===//
#include "codegen/cpu/WinogradAhead.h"
#include "codegen/cpu/Classifier.h"

using namespace mlir;

namespace keratin {

/// A point of the loops of the root, with `lane` and the tap along the depth as
/// they are.
Position TilesAhead::pointAt(AffineExpr image, AffineExpr depth, AffineExpr row,
                             AffineExpr column) {
  const WindowConv &conv = plan.conv;
  MLIRContext *context = root.getContext();
  Position point(root.getNumLoops(), getAffineConstantExpr(0, context));
  if (conv.image)
    point[*conv.image] = image;
  if (conv.depth)
    point[*conv.depth] = depth;
  if (conv.tapDepth)
    point[*conv.tapDepth] = getAffineDimExpr(*conv.tapDepth, context);
  point[conv.row] = row;
  point[conv.column] = column;
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

void TilesAhead::addFactor(OpOperand *factor, int64_t size, int64_t shared) {
  const WindowConv &conv = plan.conv;
  auto loop = [&](std::optional<unsigned> number) {
    return number ? getAffineDimExpr(*number, root.getContext()) : AffineExpr();
  };
  Position point = pointAt(loop(conv.image), loop(conv.depth), loop(conv.row),
                           loop(conv.column));
  add({kernel.memrefOf(factor->get()),
       atPoint(root.getMatchingIndexingMap(factor).getResults(), point), size,
       shared, size, /*isWritten=*/false});
}

void TilesAhead::addOutputs(ArrayRef<Output> outputs) {
  const WindowConv &conv = plan.conv;
  for (const Output &output : outputs)
    add({output.destination, output.place, plan.m, 0, plan.m,
         /*isWritten=*/true});
  for (const Access &access : readWithSums(kernel, root))
    if (access.dependsOn(conv.row) && access.dependsOn(conv.column))
      add({kernel.memrefOf(access.tensor), access.position, plan.m, 0, plan.m,
           /*isWritten=*/false});
}

void TilesAhead::ask(const TileCorner &corner) {
  // A first cache has room for few pixels beside what is transformed.
  constexpr int64_t lineBytes = 64, nearBytes = 8 << 10;
  auto at = [&](Value first, int64_t offset) {
    return reader.symbol(kernel.plus(first, kernel.index(offset)));
  };
  auto where = [&](Value number) {
    return number ? reader.symbol(number) : AffineExpr();
  };
  AffineExpr image = where(corner.image), depth = where(corner.depth);
  for (const Pixels &pixels : far) {
    auto type = cast<MemRefType>(pixels.memref.getType());
    int64_t bytes = bytesOfElement(type) * type.getShape().back();
    int64_t ofTile = pixels.rows * (pixels.end - pixels.begin) * bytes;
    unsigned locality = ofTile <= nearBytes ? 3 : 2;
    // Pixels of less than a line are in lines of others.
    int64_t step = std::max<int64_t>(lineBytes / bytes, 1);
    for (int64_t i = 0; i < pixels.rows; ++i)
      for (int64_t j = pixels.begin; j < pixels.end; j += step)
        reader.prefetch(
            pixels.memref,
            atPoint(pixels.position,
                    pointAt(image, depth, at(corner.row, i),
                            at(corner.column, j))),
            /*ahead=*/0, /*width=*/1, pixels.isWritten, locality);
  }
}

} // namespace keratin
