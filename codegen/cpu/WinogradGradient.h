//===- WinogradGradient.h - gradients by windows ----------------*- C++ -*-===//
//
// The gradient of a convolution by its window is a sum over tiles: of each, the
// (m+r-1)^2 positions of the transformed inputs [C] and of the transformed
// gradients by the outputs [K] are multiplied, [C] x [K], and the sums of those
// products are transformed to the r x r of the window at the end
// (codegen/cpu/WinogradMath.h). A block of tiles is transformed at a time, and
// each position of it added up as a product [C x tiles] [tiles x K]. Pieces of
// larger windows (codegen/cpu/Winograd.h) are channels more.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADGRADIENT_H
#define KERATIN_CODEGEN_CPU_WINOGRADGRADIENT_H

#include "codegen/cpu/Winograd.h"

namespace keratin {

/// How such a gradient is computed. Rows of products are channels, piece by
/// piece.
struct GradientPlan : WindowTiling {
  /// Blocks are in so many groups, each of which has sums of its own: parts of
  /// the kernel share the groups. Of one group they share the channels, and
  /// each transforms all gradients by the outputs. How many there are must not
  /// depend on threads, for sums are rounded.
  int64_t groups;

  int64_t columns() const; ///< of sums: the filters in whole vectors
  /// From position to position.
  int64_t inputStride() const {
    return block * rowStride(pieceChannels()) + line;
  }
  int64_t slopeStride() const { return block * rowStride(columns()) + line; }
  int64_t sumStride() const { return pieceChannels() * columns() + line; }
  /// Of the transforms of a block, and of the sums of all groups.
  int64_t blockElements() const {
    return points() * (inputStride() + slopeStride());
  }
  int64_t sumElements() const { return groups * points() * sumStride(); }
};

/// How `root` is computed so; null when it is no such gradient, or sums are
/// expected to be faster and `choice` leaves that open.
std::optional<GradientPlan> planGradient(Kernel &kernel,
                                         mlir::linalg::GenericOp root,
                                         const VectorUnit &unit,
                                         Winograd choice);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitGradient(Kernel &kernel, mlir::linalg::GenericOp root,
                  const GradientPlan &plan, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADGRADIENT_H
