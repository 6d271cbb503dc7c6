//===- TileSizes.h - how large a register tile is ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_TILESIZES_H
#define KERATIN_CODEGEN_CPU_TILESIZES_H

#include <cstdint>
#include <optional>

namespace keratin {

/// The vector unit that tiles are made for.
struct VectorUnit {
  unsigned bits, registers;
  /// Whether code that is compiled soon is worth more than code that is fast:
  /// half the sums at most, and extents in equal tiles.
  bool littleCode = false;
  /// Bytes of the second cache, where the target tells of it; else 0.
  int64_t knownSecondCache = 0;
  /// Of others: where vectors have 512 bits it is 1 to 2 MiB, elsewhere mostly
  /// 512 KiB.
  int64_t secondCache() const {
    if (knownSecondCache != 0)
      return knownSecondCache;
    return int64_t(bits >= 512 ? 2048 : 512) << 10;
  }
  /// Whether runs of memory are fetched soon enough without being asked for.
  bool fetchesAhead = false;
  /// Whether weights that one row of a product meets come as one run of memory
  /// sooner than as several side by side.
  bool oneRun = false;
  /// Whether rows that the second cache has come sooner where the tile in front
  /// of theirs asks for them.
  bool asksNextRows = false;
  /// Whether half a vector takes half the time of a vector.
  bool halfUnits = false;
  /// Whether weights that one row meets in this kernel arrive sooner as
  /// integers of 24 bits than they would as f32 (codegen/cpu/Weights24.h).
  bool weights24 = false;
  /// Whether products may be made of fewer multiplications, and other rounding
  /// errors (codegen/cpu/Strassen.h).
  bool strassen = false;
  /// Whether two products may be made by one multiplication and two sums, for
  /// which there are units of their own (codegen/cpu/PairedProduct.h).
  bool pairs = false;
  /// How many stores one after the other do not hold up the products behind
  /// them; 0 for any number.
  unsigned storesAtOnce = 0;
  uint64_t bytesOfWeights = 0; ///< of all kernels
  /// Whether a third cache does not hold them, so that each call gets its own
  /// from memory.
  bool farWeights() const { return bytesOfWeights > 32 << 20; }
  /// Whether they are so few that a third cache has them in each call.
  bool nearWeights() const { return bytesOfWeights <= 4 << 20; }
  /// Or that the second one has them.
  bool nearestWeights() const {
    return bytesOfWeights <= uint64_t(secondCache());
  }
};

/// Rows times vectors of accumulators; of a window, rows of rows.
struct TileSize {
  unsigned rows = 1, vectors = 1, outerRows = 1;
};

/// The tile of a product: each of `rows` broadcast scalars meets each of the
/// vectors. `rows` without a value is only known when the code runs;
/// `vectors` is how many vectors the columns fill; neither side of the tile
/// exceeds `most`. `far`: each vector of each step is a line of its own, which
/// makes few of them worth more than few loads.
struct MostOfTile {
  int64_t rows, vectors;
};
TileSize productTile(std::optional<int64_t> rows,
                     std::optional<int64_t> vectors, MostOfTile most,
                     const VectorUnit &unit, bool far = false);

/// Tiles of `full` rows and one of the rest, which has too few sums to hide the
/// latency of an FMA: the rows of the first of two tiles that take so much less
/// than the last of both that all `rows` do; 0 where none do.
int64_t evenRows(int64_t rows, int64_t full, int64_t vectors);

/// How many rows that are `stride` bytes apart stay in the first cache
/// together while a tile walks along them.
int64_t cachedRows(int64_t stride);

/// The most of `all` that one of `threads` has which share it in `parts` of
/// whole turns of `step`.
int64_t mostOfThread(int64_t all, int64_t step, int64_t parts, int64_t threads);

/// Whether rows that are written, `stride` bytes apart, want the ways of so few
/// sets of the first cache that lines leave it before they are whole.
bool shareFewSets(int64_t stride);

/// What a tile costs over all `rows` and `vectors`, in issue slots a step.
int64_t productCost(int64_t rows, int64_t vectors, TileSize tile);

/// One way that a window goes: an element reads at `step` times its number plus
/// `tapStep` times the number of a tap.
struct WindowWay {
  std::optional<int64_t> extent; ///< elements
  int64_t step = 1, taps = 1, tapStep = 1;
  std::optional<unsigned> tap = {}; ///< the loop of its taps
};

/// The tile of windows over one channel, `outer` rows of rows: the one that
/// reads least, its neighbours sharing what they read. An extent that is only
/// known when the code runs is taken to be large.
TileSize windowTile(const WindowWay &outer, const WindowWay &inner,
                    const VectorUnit &unit);

/// How many vectors a reduction over outer dimensions keeps at once.
unsigned columnVectors(std::optional<int64_t> vectors);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_TILESIZES_H
