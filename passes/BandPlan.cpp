//===- BandPlan.cpp - which bands chains of kernels go by -----------------===//
#include "passes/BandPlan.h"
#include "passes/Bands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// FLOPs that a core does while a byte goes to the third cache or comes back.
static constexpr int64_t flopsOfByte = 4;
/// Bands that are done at the same time: enough for few threads, more where
/// their buffers are a part of what whole images would take.
static constexpr int64_t fewestPieces = 4, mostPieces = 16, partOfWhole = 2;

int64_t bytesOf(RankedTensorType type) {
  uint64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t extent : type.getShape())
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  return int64_t(std::min<uint64_t>(bytes, uint64_t(1) << 60));
}

/// Whether bands of so many rows leave the tiles of `link` as they are, and
/// what each of them reads of weights stays in the second cache.
static bool keepsTiles(Link &link, int64_t count) {
  constexpr int64_t rowsOfTile = 4, mostWeights = 640 << 10;
  if (!link.inTiles)
    return true;
  int64_t weights = 0, rows = link.rows.rows();
  for (unsigned number = 0; number + 1 < link.call.getNumOperands(); ++number)
    if (link.rows.access(number).row < 0)
      weights += bytesOf(link.rows.typeOf(number, 1));
  return weights <= mostWeights &&
         (count == rows || (count % rowsOfTile == 0 && rows % count == 0));
}

/// Rows that each link computes for `count` rows of the last.
static SmallVector<int64_t> rowsOfLinks(Chain &chain, int64_t count) {
  SmallVector<int64_t> rows(chain.size(), count);
  for (size_t link = chain.size() - 1; link-- > 0;) {
    Link &next = chain[link + 1];
    rows[link] =
        std::min(next.rows.access(next.input).window.count(rows[link + 1]),
                 chain[link].rows.rows());
  }
  return rows;
}

/// What a row of `link` takes when it is computed alone, for each that it takes
/// as one of many: the tiles at its end, and a call.
static double costOfRowAlone(Link &link) {
  constexpr double wastedPixels = 3;
  uint64_t pixels = 1;
  for (int64_t extent : link.type().getShape().drop_front(2).drop_back())
    pixels = llvm::SaturatingMultiply<uint64_t>(pixels, extent);
  return 1 + wastedPixels / double(std::max<uint64_t>(pixels, 1));
}

/// Whether `kept` rows of `link` are moved in less time than it takes to
/// compute them, for each of `bands` bands that has `others`.
static bool canKeepRows(Link &link, int64_t kept, int64_t others,
                        int64_t bands) {
  constexpr int64_t flopsOfMovedByte = 6;
  constexpr double threads = 2; // each begins with a band
  KernelRows &rows = link.rows;
  double alone =
      (others + threads / double(bands) * kept) * costOfRowAlone(link);
  return !link.inTiles && alone < double(others + kept) &&
         rows.flopsOfRow() / flopsOfMovedByte >=
             link.bytesOf(2) - link.bytesOf(1) &&
         (!rows.hasBorder() ||
          rows.borderValue().getDefiningOp<arith::ConstantOp>());
}

/// Keeps the rows of links that the band before has computed.
static void keepRows(Chain &chain, BandPlan &plan) {
  plan.kept.assign(chain.size(), 0);
  int64_t others = plan.rows.back(); // from a band to the next
  for (size_t number = chain.size() - 1; number-- > 0;) {
    Link &link = chain[number], &next = chain[number + 1];
    RowWindow window = next.rows.access(next.input).window;
    int64_t rows = plan.rows[number];
    others *= window.factor;
    int64_t kept = rows - others;
    // All rows of an image are those of one band.
    if (rows == window.count(plan.rows[number + 1]) &&
        rows < link.rows.rows() && kept > 0 && kept <= others &&
        canKeepRows(link, kept, others, plan.bands))
      plan.kept[number] = kept;
  }
}

/// Quarters of the FLOPs that link `number` takes for a band.
static uint64_t quartersOf(Chain &chain, const BandPlan &plan, size_t number) {
  Link &link = chain[number];
  int64_t rows = plan.rows[number], kept = plan.kept[number];
  uint64_t ofRow = link.rows.flopsOfRow();
  // A little more than its rows, such as those of tiles that are not full.
  if (kept == 0)
    return llvm::SaturatingMultiply<uint64_t>(4 * rows + 1, ofRow);
  constexpr double most = 1e18;
  double moved = flopsOfByte * double(link.bytesOf(kept) - link.bytesOf(0));
  double made = double(rows - kept) * double(ofRow) * costOfRowAlone(link);
  return uint64_t(std::min(4 * (made + moved), most));
}

std::optional<BandPlan> planBands(Chain &chain, int64_t bandBytes) {
  int64_t rows = chain.back().rows.rows();
  int64_t images = chain.back().type().getDimSize(0);
  // An image of an unknown number may be the only one.
  if (ShapedType::isDynamic(images))
    images = 1;
  int64_t between = 0;
  for (Link &link : chain)
    if (&link != &chain.back())
      between += link.bytesOf(link.rows.rows());
  constexpr int64_t mostRows = 1 << 20;
  if (rows > mostRows ||
      between > INT64_MAX / 64 / std::max<int64_t>(images, 1) ||
      between * images < largeBytesBetween)
    return std::nullopt;

  std::optional<BandPlan> best;
  uint64_t least = 0;
  for (int64_t count = 1; count <= rows; ++count) {
    BandPlan plan{rowsOfLinks(chain, count), (rows + count - 1) / count, {}};
    keepRows(chain, plan);
    int64_t bytes = 0;
    uint64_t quarters = 0; // of FLOPs of a band
    for (size_t link = 0; link < chain.size(); ++link) {
      quarters = llvm::SaturatingAdd(quarters, quartersOf(chain, plan, link));
      if (link + 1 != chain.size())
        bytes += chain[link].bytesOf(plan.rows[link]);
    }
    if (bytes > bandBytes)
      break;
    int64_t turns = plan.bands * images;
    bool fits = llvm::all_of(llvm::zip_equal(chain, plan.rows), [](auto pair) {
      auto [link, part] = pair;
      return keepsTiles(link, part);
    });
    if (turns < 2 || !fits)
      continue;
    // Threads have the same number of bands each; what is computed does not
    // depend on whether there are any.
    uint64_t time =
        llvm::SaturatingMultiply<uint64_t>(quarters, llvm::alignTo(turns, 4));
    if (!best || time <= least) {
      best = std::move(plan);
      least = time;
    }
  }
  if (!best)
    return std::nullopt;
  int64_t again = 0;
  for (auto [link, part, kept] : llvm::zip_equal(chain, best->rows, best->kept))
    again += link.rows.flopsOfRow() *
             ((part - kept) * best->bands + kept - link.rows.rows());
  // Each byte goes there and back; half of that should be won.
  if (again > between * flopsOfByte)
    return std::nullopt;
  return best;
}

int64_t piecesOf(Chain &chain, const BandPlan &plan) {
  int64_t ofBand = 1, ofImage = 0;
  for (auto [link, part] : llvm::zip_equal(chain, plan.rows))
    if (&link != &chain.back()) {
      ofBand += link.bytesOf(part);
      ofImage += link.bytesOf(link.rows.rows());
    }
  int64_t images = chain.back().type().getDimSize(0);
  if (ShapedType::isDynamic(images))
    return mostPieces;
  uint64_t bands = llvm::SaturatingMultiply<uint64_t>(plan.bands, images);
  uint64_t pieces = llvm::SaturatingMultiply<uint64_t>(ofImage, images) /
                    ofBand / partOfWhole;
  pieces = std::clamp<uint64_t>(llvm::alignDown(pieces, fewestPieces),
                                fewestPieces, mostPieces);
  return int64_t(std::min(pieces, bands));
}

} // namespace keratin
