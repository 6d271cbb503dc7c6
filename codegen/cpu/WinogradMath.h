//===- WinogradMath.h - the transforms of F(m x m, r x r) -------*- C++ -*-===//
//
// m x m outputs of a 3x3 window g over a tile d of (m+2) x (m+2) inputs are
//
//     A^T [(G g G^T) * (B^T d B)] A
//
// with (m+2)^2 multiplications, * element by element, in place of 9 m^2
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
// The gradient by g of what depends on them, where e is that by the outputs, is
//
//     G^T [(A e A^T) * (B^T d B)] G
//
// For r taps m+r-1 take the place of m+2. Along one axis alone it is
// A^T [(G g) * (B^T d)], with m+r-1 multiplications in place of r m.
//
// The matrices evaluate polynomials at points and at infinity, as many as a
// tile has inputs: four take 0 and +-1; six take 0, +-5/8 and +-3/2, which are
// exact in binary and round to a third of the error of the usual 0, +-1, +-2;
// eight take 0, +-1, +-1/2 and +-2. Inputs are transformed in the same way for
// any number of taps.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRADMATH_H
#define KERATIN_CODEGEN_CPU_WINOGRADMATH_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>

namespace keratin {

/// F(m, r): m outputs of r taps, along each transformed axis.
struct TileForm {
  static constexpr int64_t mostTaps = 5;

  int64_t m = 4, taps = 3;
  int64_t inputs() const { return m + taps - 1; }
  /// In how many pieces of so many taps a window is cut that moves by `stride`.
  /// Taps of a piece are that far apart: of as many neighbours each begins one,
  /// then those that are `taps` times as far on. The last ones may have fewer.
  int64_t piecesOf(int64_t windowTaps, int64_t stride) const {
    int64_t reach = taps * stride, whole = windowTaps / reach;
    return whole * stride + std::min(windowTaps - whole * reach, stride);
  }
  /// What --winograd and names of kernels call it.
  int64_t name() const { return inputs() == 8 ? 8 : inputs() - 2; }
};

/// Whether F(m, r) is known: two to five taps, in tiles of four, six or eight
/// inputs.
bool isKnown(TileForm form);

/// How windows are transformed, along two of their axes or one.
struct WindowTransform {
  TileForm form;
  llvm::SmallVector<int64_t, 2> axes; ///< of the weights, from the outermost on
  llvm::SmallVector<int64_t, 2> strides; ///< of each, 1 or more
  /// Whether products are made in pairs (codegen/cpu/PairedProduct.h); of f32.
  bool inPairs = false;
  /// Positions of a tile.
  int64_t points() const {
    return axes.size() == 2 ? form.inputs() * form.inputs() : form.inputs();
  }
};

/// Emits `B^T x` for the 4, 6 or 8 floats or vectors of floats `x`.
llvm::SmallVector<mlir::Value>
emitInputTransform(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange x);

/// Emits `A^T x` for the 4, 6 or 8 floats or vectors of floats `x`: m values.
llvm::SmallVector<mlir::Value> emitOutputTransform(mlir::OpBuilder &b,
                                                   mlir::Location loc,
                                                   mlir::ValueRange x,
                                                   TileForm form);

/// Emits `A x` for the m floats or vectors of floats `x`: as many as a tile has
/// inputs.
llvm::SmallVector<mlir::Value> emitSlopeTransform(mlir::OpBuilder &b,
                                                  mlir::Location loc,
                                                  mlir::ValueRange x,
                                                  TileForm form);

/// Emits `G^T x` for as many floats or vectors of floats `x` as a tile has
/// inputs: one for each tap.
llvm::SmallVector<mlir::Value> emitWindowSums(mlir::OpBuilder &b,
                                              mlir::Location loc,
                                              mlir::ValueRange x,
                                              TileForm form);

/// Emits `G x` for the floats or vectors of floats `x`, one for each tap: as
/// many as a tile has inputs.
llvm::SmallVector<mlir::Value> emitWindowTransform(mlir::OpBuilder &b,
                                                   mlir::Location loc,
                                                   mlir::ValueRange x,
                                                   TileForm form);

/// `G g G^T` of the window `g`, taps x taps in row-major order, to as many
/// elements of `out` as a tile has inputs along two axes.
void transformWindow(TileForm form, llvm::ArrayRef<double> g,
                     llvm::MutableArrayRef<double> out);

/// The weights r x r x C x K as the products of F(m x m, r x r) read them:
/// [(m+r-1)^2, ceil(K / block), C, block], of f32 for those of bf16. Other
/// windows are as if they had more channels: `piecesOf` times as many for an
/// axis that is transformed, and as often as it has taps for another one.
/// Taps of the latter are outermost, and pieces in row-major order. In pairs
/// there are rowsBehindPaired more.
mlir::RankedTensorType transformedType(mlir::RankedTensorType type,
                                       const WindowTransform &transform,
                                       int64_t block);

/// Writes the transforms of `source`, weights of the static `type`, axes of the
/// window x C x K of f32, f64 or bf16 in row-major order, to `destination`
/// in the order of `transformedType`. They are computed in f64 and rounded
/// once. The rest of the last block is zero.
void transformWeights(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
                      const WindowTransform &transform, int64_t block,
                      llvm::MutableArrayRef<char> destination);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRADMATH_H
