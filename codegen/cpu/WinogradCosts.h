//===- WinogradCosts.h - what sums over windows cost ------------*- C++ -*-===//
//
// Costs are in issue slots of FMAs, as those of TileSizes. What the transforms
// of the vectors of a tile take was measured, with their loads and stores.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H
#define KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H

#include "codegen/cpu/Winograd.h"

#include "llvm/Support/MathExtras.h"

namespace keratin {

/// What planners of convolutions and of their gradients share.
class WindowCosts {
protected:
  WindowCosts(const WindowConv &conv, unsigned bits, const VectorUnit &unit)
      : conv(conv), unit(unit), lanes(unit.bits / bits), bytes(bits / 8) {}

  /// What the second cache holds of weights, and of them and other memory.
  static constexpr int64_t cachedWeightBytes = 1 << 20, cacheBytes = 5 << 18;
  static constexpr int64_t mostVectors = 8; ///< of a tile
  /// Sums begin with zeros and are stored, which takes as long as some steps.
  static constexpr int64_t stepsOfEnds = 3;

  int64_t vectors(int64_t elements) const {
    return int64_t(llvm::divideCeil(elements, lanes));
  }
  /// What arrives in a slot from memory, and from the third cache, where little
  /// is. Slots are longer where a vector takes two turns of a unit.
  int64_t farBytesOfSlot() const { return unit.halfUnits ? 4 : 2; }
  int64_t cachedBytesOfSlot() const { return 2 * farBytesOfSlot(); }
  /// The second cache brings 32 bytes a cycle, in which there are two slots.
  int64_t nearBytesOfSlot() const { return 8 * farBytesOfSlot(); }
  /// What `times` times as much as the second cache does not hold of `used`
  /// bytes takes to move.
  int64_t costOutside(int64_t used, int64_t held, int64_t times) const {
    return std::max<int64_t>(used - held, 0) * times / cachedBytesOfSlot();
  }

  int64_t costOfInputs(const WindowTiling &tiling, int64_t tiles) const {
    int64_t ofVector = conv.down.isThere() ? (tiling.m == 2 ? 120 : 400)
                                           : (tiling.m == 2 ? 15 : 30);
    return tiles * conv.pieces() * vectors(conv.channels) * ofVector;
  }
  /// Of the vectors of a tile of products, and of a window.
  int64_t costOfOutputTile(const WindowTiling &tiling) const {
    return conv.down.isThere() ? (tiling.m == 2 ? 80 : 240)
                               : (tiling.m == 2 ? 12 : 25);
  }
  int64_t costOfWindow(const WindowTiling &tiling) const {
    return conv.down.isThere() ? (tiling.m == 2 ? 60 : 160)
                               : (tiling.m == 2 ? 15 : 25);
  }

  /// What all plans of `conv` have.
  WindowTiling tilingOf(int64_t m) const {
    WindowTiling tiling;
    tiling.conv = conv;
    tiling.m = m;
    tiling.lanes = unsigned(lanes);
    tiling.line = 64 / bytes;
    tiling.farBytes = unit.secondCache() / 2;
    return tiling;
  }

  const WindowConv &conv;
  const VectorUnit &unit;
  int64_t lanes, bytes;
};

/// Whether F(2x2, 3x3) or F(4x4, 3x3) is expected to be fastest, given what
/// they and plain sums take: m, or null for the sums. Those need no memory, and
/// smaller tiles round less: they go where they are nearly as fast.
inline std::optional<int64_t> fastestTile(int64_t two, int64_t four,
                                          int64_t sums) {
  if (std::min(two, four) > sums / 10 * 9)
    return std::nullopt;
  return four < two / 20 * 19 ? 4 : 2;
}

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H
