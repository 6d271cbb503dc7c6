//===- WinogradCosts.h - what sums over windows cost ------------*- C++ -*-===//
//
// Costs are in issue slots of FMAs, as those of TileSizes. What the transforms
// of the vectors of a tile take was measured, with their loads and stores.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H
#define KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H

#include "codegen/cpu/Winograd.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>

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
    return tiles * tiling.pieces() * vectors(conv.channels) *
           costOfTransform(tiling, {120, 400, 800}, {15, 30, 45});
  }
  /// Of a vector of a tile of products, and of a window.
  int64_t costOfOutputTile(const WindowTiling &tiling) const {
    return costOfTransform(tiling, {80, 240, 450}, {12, 25, 40});
  }
  int64_t costOfWindow(const WindowTiling &tiling) const {
    return costOfTransform(tiling, {60, 160, 350}, {15, 25, 40});
  }
  /// For tiles of four, six and eight inputs along two axes, and along one.
  int64_t costOfTransform(const WindowTiling &tiling,
                          std::array<int64_t, 3> square,
                          std::array<int64_t, 3> line) const {
    auto size = size_t(tiling.form.inputs() / 2 - 2);
    return conv.down.isThere() ? square[size] : line[size];
  }

  /// What all plans of `conv` have.
  WindowTiling tilingOf(TileForm form) const {
    WindowTiling tiling;
    tiling.conv = conv;
    tiling.form = form;
    tiling.lanes = unsigned(lanes);
    tiling.line = 64 / bytes;
    tiling.farBytes = unit.secondCache() / 2;
    return tiling;
  }

  const WindowConv &conv;
  const VectorUnit &unit;
  int64_t lanes, bytes;
};

/// Those that `choice` leaves open, from that which rounds least on.
llvm::SmallVector<TileForm> formsOf(const WindowConv &conv, Winograd choice);

/// Of `forms`, from that which rounds least on, the one that is expected to be
/// fastest, by `costOf`; null where plain sums take `sums` and are. Those need
/// no memory, and what rounds less goes where it is nearly as fast.
inline std::optional<TileForm>
fastestForm(llvm::ArrayRef<TileForm> forms,
            llvm::function_ref<int64_t(TileForm)> costOf,
            std::optional<int64_t> sums) {
  std::optional<TileForm> best;
  int64_t bestCost = 0, leastCost = 0;
  for (TileForm form : forms) {
    int64_t cost = costOf(form);
    leastCost = best ? std::min(leastCost, cost) : cost;
    if (best && cost >= bestCost / 20 * 19)
      continue;
    best = form;
    bestCost = cost;
  }
  return sums && leastCost > *sums / 10 * 9 ? std::nullopt : best;
}

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADCOSTS_H
