//===- BandPlan.cpp - which bands chains of kernels go by -----------------===//
#include "passes/BandPlan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// Bytes between kernels that stay where they are: less than that is in a
/// second cache anyway.
static constexpr int64_t largeBytes = 3 << 19;
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
      between * images < largeBytes)
    return std::nullopt;

  std::optional<BandPlan> best;
  uint64_t least = 0;
  for (int64_t count = 1; count <= rows; ++count) {
    BandPlan plan{rowsOfLinks(chain, count), (rows + count - 1) / count};
    int64_t bytes = 0;
    uint64_t quarters = 0; // of FLOPs of a band
    for (auto [link, part] : llvm::zip_equal(chain, plan.rows)) {
      // A little more than its rows, such as those of tiles that are not full.
      quarters = llvm::SaturatingMultiplyAdd<uint64_t>(
          4 * part + 1, link.rows.flopsOfRow(), quarters);
      if (&link != &chain.back())
        bytes += link.bytesOf(part);
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
  for (auto [link, part] : llvm::zip_equal(chain, best->rows))
    again += link.rows.flopsOfRow() * (part * best->bands - link.rows.rows());
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
