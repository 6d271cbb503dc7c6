//===- SplitPools.cpp - large images are reduced band by band -------------===//
//
//   x = relu(product(...))
//   y[n, c] = max over h, w of x[n, h, w, c]
//
// becomes
//
//   x = relu(product(...))
//   z[n, b, c] = max over i < rows, w of x[n, b * rows + i, w, c]
//   y[n, c]    = max over b of z[n, b, c]
//
// A row of z is a window over some rows of x, which BandKernels computes for it
// right before: they are reduced while the second cache has them, and most of x
// is never in memory. The rows of a band follow from the shapes, so that sums
// are the same for any number of threads.
//
//===----------------------------------------------------------------------===//
#include "ir/FloatProducts.h"
#include "passes/Bands.h"
#include "passes/OpKinds.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_SPLITPOOLS
#include "passes/Passes.h.inc"

namespace {

/// The op that adds an element to what `op` has reduced, where those may come
/// in any groups; null where they may not.
Operation *combinerOf(linalg::GenericOp op) {
  Block *body = op.getBody();
  BlockArgument before = body->getArguments().back();
  Operation *combiner = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !before.hasOneUse() ||
      !llvm::is_contained(combiner->getOperands(), before))
    return nullptr;
  // Each group begins with it: a sum would have it several times.
  auto start = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  bool isSum = isa<arith::AddFOp>(combiner) && startsFromZero(op);
  bool isExtreme = start && isa<arith::MaximumFOp, arith::MinimumFOp,
                                arith::MaxNumFOp, arith::MinNumFOp>(combiner);
  return isSum || isExtreme ? combiner : nullptr;
}

/// Whether `op` reduces images of channels, axes 0 and the last one of its only
/// input, over all else.
bool isGlobalPool(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      readsElsewhere(op) || op.hasIndexSemantics() || !combinerOf(op) ||
      !reducesOuterAxes(op, op.getDpsInputOperand(0)))
    return false;
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  unsigned rank = read.getNumResults();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  auto isParallel = [&](unsigned axis) {
    return kinds[read.getDimPosition(axis)] == utils::IteratorType::parallel;
  };
  return rank >= 3 && isParallel(0) && op.getNumParallelLoops() == 2 &&
         written.isProjectedPermutation() && written.getNumResults() == 2;
}

/// How many rows of an image of `type` are a band: part of the second cache,
/// and enough that what is left of them is little; whole tiles of convolutions,
/// and as many bands for each of some threads, where that can be. 0 where
/// images are small, or have no such part.
int64_t rowsOfBand(RankedTensorType type) {
  constexpr int64_t bandBytes = 256 << 10, fewestPixels = 16, fewestBands = 4;
  constexpr int64_t rowsOfTile = 4, threads = 4;
  ArrayRef<int64_t> shape = type.getShape();
  if (llvm::any_of(shape.drop_front(), ShapedType::isDynamic) ||
      !type.getElementType().isIntOrFloat())
    return 0;
  uint64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8),
           pixels = 1;
  for (int64_t extent : shape.drop_front(2))
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  for (int64_t extent : shape.drop_front(2).drop_back())
    pixels = llvm::SaturatingMultiply<uint64_t>(pixels, extent);
  int64_t rows = shape[1];
  uint64_t images = type.isDynamicDim(0) ? 1 : shape[0];
  uint64_t all = llvm::SaturatingMultiply<uint64_t>(
      llvm::SaturatingMultiply<uint64_t>(bytes, rows), images);
  if (all < largeBytesBetween || bytes > bandBytes)
    return 0;
  using Units = std::pair<int64_t, int64_t>; // of rows and of bands
  for (auto [unit, shares] : {Units(rowsOfTile, threads), Units(rowsOfTile, 1),
                              Units(1, threads), Units(1, 1)})
    for (int64_t band = bandBytes / int64_t(bytes) / unit * unit;
         band > 0 && band * pixels >= fewestPixels; band -= unit)
      if (rows % (band * shares) == 0 && rows / band >= fewestBands)
        return band;
  return 0;
}

/// `op` for bands of so many rows: a value for each of them, along axis 1.
Value reduceBands(OpBuilder &b, linalg::GenericOp op, int64_t rows) {
  Location loc = op.getLoc();
  Value x = op.getDpsInputs()[0];
  auto type = cast<RankedTensorType>(x.getType());
  auto rank = unsigned(type.getRank());
  SmallVector<Value> images;
  if (type.isDynamicDim(0))
    images.push_back(tensor::DimOp::create(b, loc, x, 0));
  Value empty = tensor::EmptyOp::create(
      b, loc,
      {type.getDimSize(0), type.getDimSize(1) / rows, type.getShape().back()},
      getElementTypeOrSelf(op.getResult(0)), images);
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  Value start =
      linalg::FillOp::create(b, loc, fill.getInputs()[0], empty).getResult(0);
  // Images, bands and channels; then rows of a band, and the other axes.
  enum : unsigned { Image, Band, Channel, Row, Others };
  auto dim = [&](unsigned loop) { return b.getAffineDimExpr(loop); };
  unsigned loops = rank + 1;
  SmallVector<AffineExpr> place = {dim(Image), dim(Band) * rows + dim(Row)};
  for (unsigned axis = 2; axis + 1 < rank; ++axis)
    place.push_back(dim(Others + axis - 2));
  place.push_back(dim(Channel));
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::reduction);
  std::fill_n(kinds.begin(), Row, utils::IteratorType::parallel);
  // Says how many rows there are, as for windows of pools.
  Value window = tensor::EmptyOp::create(b, loc, {rows},
                                         getElementTypeOrSelf(op.getResult(0)));
  auto bands = linalg::GenericOp::create(
      b, loc, start.getType(), ValueRange{x, window}, start,
      ArrayRef{AffineMap::get(loops, 0, place, b.getContext()),
               AffineMap::get(loops, 0, dim(Row)),
               b.getMultiDimIdentityMap(loops).getMajorSubMap(Row)},
      kinds, [&](OpBuilder &b, Location loc, ValueRange elements) {
        IRMapping map;
        map.map(op.getBody()->getArgument(0), elements.front());
        map.map(op.getBody()->getArgument(1), elements.back());
        for (Operation &inner : *op.getBody())
          b.clone(inner, map);
      });
  return bands->getResult(0);
}

/// What `op` has for each image, from what it has for `bands`.
Value reduceAll(OpBuilder &b, linalg::GenericOp op, Value bands) {
  enum : unsigned { Image, Channel, Band, All };
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto dim = [&](unsigned loop) { return b.getAffineDimExpr(loop); };
  SmallVector<AffineExpr> place;
  for (unsigned axis = 0; axis < written.getNumResults(); ++axis)
    place.push_back(dim(written.getDimPosition(axis) == read.getDimPosition(0)
                            ? Image
                            : Channel));
  SmallVector<utils::IteratorType> kinds(All, utils::IteratorType::parallel);
  kinds[Band] = utils::IteratorType::reduction;
  Operation *combiner = combinerOf(op);
  Value start = op.getDpsInits()[0];
  auto all = linalg::GenericOp::create(
      b, op.getLoc(), start.getType(), bands, start,
      ArrayRef{AffineMap::get(All, 0, {dim(Image), dim(Band), dim(Channel)},
                              b.getContext()),
               AffineMap::get(All, 0, place, b.getContext())},
      kinds, [&](OpBuilder &b, Location loc, ValueRange elements) {
        Operation *combined = b.clone(*combiner);
        combined->setOperands(elements);
        linalg::YieldOp::create(b, loc, combined->getResults());
      });
  return all->getResult(0);
}

struct SplitPools : impl::SplitPoolsBase<SplitPools> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> pools;
    getOperation().walk([&](linalg::GenericOp op) { pools.push_back(op); });
    for (linalg::GenericOp op : pools) {
      if (!isGlobalPool(op) || !followsRoot(op.getDpsInputs()[0]))
        continue;
      auto type = cast<RankedTensorType>(op.getDpsInputs()[0].getType());
      int64_t rows = rowsOfBand(type);
      if (rows == 0)
        continue;
      OpBuilder b(op);
      Value all = reduceAll(b, op, reduceBands(b, op, rows));
      op->getResult(0).replaceAllUsesWith(all);
      op.erase();
    }
  }
};

} // namespace
} // namespace keratin
