//===- TileSizes.cpp - how large a register tile is -----------------------===//
#include "codegen/cpu/TileSizes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

namespace keratin {

/// Sums that have to be under way at once to hide the latency of an FMA: 4
/// cycles on two units.
static constexpr int64_t sumsInFlight = 8;

/// What `cost` counts for where the tiles of a rest one way, which are as much
/// code again, are dear.
template <typename Cost>
static Cost withRest(Cost cost, bool rest, const VectorUnit &unit) {
  return rest && unit.littleCode ? 2 * cost : cost;
}

/// What one step of a tile takes, in quarters of an issue slot: an FMA each
/// sum, or a load each row and three each vector, which comes from the second
/// cache, and one for the loop. Loads hide behind FMAs where a core is ours
/// alone. Where another thread runs on it they do not: then a tile of 13 by 2
/// takes a tenth longer than one of 8 by 3, which has a fifth less of them for
/// each sum, so they count a little even so.
static int64_t stepCost(int64_t rows, int64_t vectors, bool far) {
  int64_t loads = far ? 0 : rows + 2 * vectors;
  return 4 * std::max({rows * vectors, rows + 3 * vectors, sumsInFlight}) +
         loads + 4;
}

/// Full tiles and one of the exact rest each way.
static int64_t quartersOf(int64_t rows, int64_t vectors, TileSize tile,
                          bool far) {
  auto column = [&](int64_t width) -> int64_t {
    if (width == 0)
      return 0;
    int64_t rest = rows % tile.rows;
    return rows / tile.rows * stepCost(tile.rows, width, far) +
           (rest ? stepCost(rest, width, far) : 0);
  };
  return vectors / tile.vectors * column(tile.vectors) +
         column(vectors % tile.vectors);
}

int64_t productCost(int64_t rows, int64_t vectors, TileSize tile) {
  return llvm::divideCeil(quartersOf(rows, vectors, tile, /*far=*/false), 4);
}

TileSize productTile(std::optional<int64_t> rows,
                     std::optional<int64_t> vectors, MostOfTile most,
                     const VectorUnit &unit, bool far) {
  // Of an unknown number of columns the vectors are taken one by one.
  int64_t columns = vectors.value_or(1);
  TileSize best;
  int64_t bestCost = INT64_MAX;
  for (int64_t width = 1; width <= std::min(columns, most.vectors); ++width) {
    // One register for the broadcast scalar.
    int64_t fitting = (unit.registers - width - 1) / width;
    if (unit.littleCode)
      fitting = std::min(fitting, 2 * sumsInFlight / width);
    for (int64_t height = 1; height <= std::min(most.rows, fitting); ++height) {
      TileSize tile = {unsigned(height), unsigned(width)};
      // Without a known number of rows: many, but often there is one.
      int64_t total = rows ? quartersOf(*rows, columns, tile, far)
                           : quartersOf(64, columns, tile, far) +
                                 4 * quartersOf(1, columns, tile, far);
      if (rows && height > *rows)
        break;
      total = withRest(total, rows.value_or(0) % height != 0, unit);
      total = withRest(total, columns % width != 0, unit);
      // At equal cost the smaller tile, which is less code.
      if (total < bestCost) {
        best = tile;
        bestCost = total;
      }
    }
  }
  return best;
}

int64_t evenRows(int64_t rows, int64_t full, int64_t vectors) {
  constexpr int64_t leastShare = 50; // below that it is code for nothing
  auto cost = [&](int64_t height) {
    return height == 0 ? 0 : std::max(height * vectors, sumsInFlight);
  };
  int64_t rest = rows % full, first = llvm::divideCeil(full + rest, 2);
  int64_t both = cost(full) + cost(rest);
  int64_t gained = both - cost(first) - cost(full + rest - first);
  int64_t all = (rows / full - 1) * cost(full) + both;
  return rest != 0 && rows > full && gained * leastShare >= all ? first : 0;
}

// 32 KiB of 8 ways are common: lines 4096 bytes apart share their ways.
static constexpr int64_t line = 64, sets = 64, ways = 8;

/// How many sets rows use that are so many whole lines apart.
static int64_t setsOfRows(int64_t lines) {
  return sets / std::gcd(lines, sets);
}

int64_t cachedRows(int64_t stride) {
  // A line of the columns that comes between is used once and soon the oldest.
  constexpr int64_t mostRows = 16;
  if (stride % line != 0)
    return mostRows;
  return std::min(mostRows, ways * setsOfRows(stride / line));
}

int64_t mostOfThread(int64_t all, int64_t step, int64_t parts,
                     int64_t threads) {
  auto turns = int64_t(llvm::divideCeil(all, step));
  int64_t most = 0, begin = 0;
  for (int64_t thread = 1; thread <= threads; ++thread) {
    int64_t end =
        std::min(turns * (parts * thread / threads) / parts * step, all);
    most = std::max(most, end - begin);
    begin = end;
  }
  return most;
}

bool shareFewSets(int64_t stride) {
  constexpr int64_t few = 4;
  return stride != 0 && stride % line == 0 && setsOfRows(stride / line) <= few;
}

/// Places that `elements` neighbours read.
static int64_t placesRead(const WindowWay &way, int64_t elements) {
  llvm::SmallDenseSet<int64_t> places;
  for (int64_t element = 0; element < elements; ++element)
    for (int64_t tap = 0; tap < way.taps; ++tap)
      places.insert(element * way.step + tap * way.tapStep);
  return places.size();
}

/// Elements, read in tiles of `height`: how many places are read each time.
static double placesPerElement(const WindowWay &way, int64_t height) {
  constexpr int64_t many = 64;
  int64_t elements = std::max<int64_t>(way.extent.value_or(many), 1);
  int64_t rest = elements % height;
  int64_t places = elements / height * placesRead(way, height) +
                   (rest ? placesRead(way, rest) : 0);
  return double(places) / double(elements);
}

TileSize windowTile(const WindowWay &outer, const WindowWay &inner,
                    const VectorUnit &unit) {
  // The other half is for weights and what is read.
  int64_t mostSums = unit.littleCode ? 4 : unit.registers / 2;
  auto tiles = [](const WindowWay &way, int64_t height) {
    int64_t elements = std::max<int64_t>(way.extent.value_or(64), 1);
    return double(llvm::divideCeil(elements, height)) / double(elements);
  };
  // Of equal ones the highest: rows that two of them share are read again from
  // farther than columns are.
  bool shareRows = (outer.taps - 1) * outer.tapStep >= outer.step;
  TileSize best;
  double bestCost = 0;
  for (int64_t high = 1; high <= mostSums; ++high)
    for (int64_t wide = 1; high * wide <= mostSums; ++wide) {
      if (high > std::max<int64_t>(outer.extent.value_or(1), 1) ||
          (inner.extent && wide > std::max<int64_t>(*inner.extent, 1)))
        continue;
      // Rows of unknown number go down a ladder of powers of two.
      if (!inner.extent && !llvm::isPowerOf2_64(wide))
        continue;
      double cost =
          placesPerElement(outer, high) * placesPerElement(inner, wide) +
          tiles(outer, high) * tiles(inner, wide) * double(outer.taps) *
              double(inner.taps);
      // Tiles of the rest are code.
      bool outerRest = outer.extent.value_or(high) % high != 0;
      bool innerRest = inner.extent.value_or(0) % wide != 0;
      cost *= outerRest || innerRest ? 1.1 : 1;
      cost = withRest(withRest(cost, outerRest, unit), innerRest, unit);
      if (bestCost == 0 || cost < (shareRows ? 1.001 : .999) * bestCost) {
        best = {unsigned(wide), 1, unsigned(high)};
        bestCost = bestCost == 0 ? cost : std::min(cost, bestCost);
      }
    }
  return best;
}

unsigned columnVectors(std::optional<int64_t> vectors) {
  if (!vectors)
    return 1;
  return unsigned(llvm::divideCeil(*vectors, llvm::divideCeil(*vectors, 8)));
}

} // namespace keratin
