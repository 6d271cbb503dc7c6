//===- Winograd.h - convolutions by tiles -----------------------*- C++ -*-===//
//
// A convolution whose window has several taps along two axes is computed as
// F(m x m, r x r) of codegen/cpu/WinogradMath.h: tiles of inputs are
// transformed, each of the (m+r-1)^2 positions of a tile is one product
// [tiles x C] [C x K] with weights that were transformed at compile time, or
// are by the kernel where they are not known by then, and the products are
// transformed to m x m outputs. The kernel goes over blocks of tiles whose
// transforms stay in the second cache. With one such axis it is F(m, r), of
// tiles of m pixels.
//
// Windows that are larger are cut in pieces of r taps, with zeros where they
// end before that. Of one that moves by more than one pixel a piece has the
// taps that meet every second pixel, or as it moves. Pieces, and taps along
// axes that are not transformed, are as many channels more: products sum them
// up, and outputs are transformed once. Places along those axes are images
// more.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WINOGRAD_H
#define KERATIN_CODEGEN_CPU_WINOGRAD_H

#include "codegen/cpu/TileEmitter.h"
#include "codegen/cpu/WinogradMath.h"
#include "passes/Pipelines.h"

#include "llvm/ADT/SmallVector.h"

namespace keratin {

/// An axis along which tiles are transformed: stride * w + dilation * j for its
/// loops w and j, of which one factor is 1. One that is none has one place and
/// one tap.
struct TransformedAxis {
  std::optional<unsigned> loop, tap;
  int64_t extent = 1, taps = 1; ///< turns of the loops
  int64_t stride = 1, dilation = 1;
  int64_t inputExtent = 1; ///< of x, which has what each sum reads
  bool isThere() const { return loop.has_value(); }
};

/// Another one. Loops of one turn are none.
struct OuterAxis {
  std::optional<unsigned> loop, tap;
  int64_t extent, taps;
};

/// A root that is a sum over windows of x: a convolution,
///
///     y[n, h, w, k] = sum over i, j, c of x[n, h + i, w + j, c] * g[i, j, c,
///     k]
///
/// where w + j may be w + e j or e w + j, as h + i may, n may be images and
/// places along other axes, and c channels and taps along those,
///
///     y[n, d, h, w, k] = sum over t, i, j, c of x[n, z(d, t), h + i, w + j, c]
///     * g[t, i, j, c, k]
///
/// or its gradient by g, of that by y (codegen/cpu/WinogradGradient.h),
///
///     g[i, j, c, k] = sum over n, h, w of x[n, h + i, w + j, c] * y[n, h, w,
///     k]
///
/// Factors of bf16 are widened before they are transformed. What is named after
/// an axis is the number of its loop.
struct WindowConv {
  mlir::OpOperand *input;
  mlir::OpOperand *factor;       ///< what meets it
  std::optional<unsigned> image; ///< n, where there is more than one
  TransformedAxis down, across; ///< h and w; only the latter where there is one
  llvm::SmallVector<OuterAxis, 2> outer; ///< as z(d, t), from the outermost on
  unsigned filter, channel;
  int64_t filters, channels;
  std::optional<int64_t>
      images;           ///< with places along outer axes, if n is known
  bool hasKnownWeights; ///< constants
  llvm::SmallVector<int64_t, 2> weightAxes; ///< of g: those of `down`, `across`

  /// Of all outer axes together.
  int64_t outerPlaces() const;
  int64_t outerTaps() const;
};

/// The tiles that it goes over.
struct WindowTiling {
  WindowConv conv;
  TileForm form;
  int64_t block; ///< tiles that are transformed before they are multiplied
  unsigned lanes;
  int64_t line;  ///< elements of a cache line
  TileSize size; ///< of the products
  /// What an image has at least whose lines are asked for tile by tile.
  int64_t farBytes;

  /// Along an axis of a tile: of y, of the transforms, and of the window.
  int64_t pixels(const TransformedAxis &axis) const {
    return axis.isThere() ? form.m : 1;
  }
  int64_t positions(const TransformedAxis &axis) const {
    return axis.isThere() ? form.inputs() : 1;
  }
  int64_t taps(const TransformedAxis &axis) const {
    return axis.isThere() ? form.taps : 1;
  }
  int64_t points() const {
    return positions(conv.down) * positions(conv.across);
  }
  int64_t piecesAlong(const TransformedAxis &axis) const {
    return axis.isThere() ? form.piecesOf(axis.taps, axis.stride) : 1;
  }
  int64_t pieces() const {
    return conv.outerTaps() * piecesAlong(conv.down) * piecesAlong(conv.across);
  }
  /// Those of one piece are side by side.
  int64_t pieceChannels() const { return pieces() * conv.channels; }
  int64_t panelWidth() const { return int64_t(size.vectors) * lanes; }
  int64_t tilesAlong(const TransformedAxis &axis) const;
  int64_t tilesOfImage() const {
    return tilesAlong(conv.down) * tilesAlong(conv.across);
  }
  /// Of all images, where their number is not known of one.
  int64_t knownTiles() const {
    return tilesOfImage() * conv.images.value_or(conv.outerPlaces());
  }
  /// Whether every block is known to have all of its tiles.
  bool hasWholeBlocks() const { return knownTiles() % block == 0; }
  /// From the elements of a tile to those of the next: a cache line more than
  /// there are, so that what one tile has in all slices does not meet in few
  /// sets of the cache.
  int64_t rowStride(int64_t elements) const;
};

/// How a convolution is computed. The transforms of a block of tiles are in a
/// ring of slices, one a position in a tile and one more, each
/// [tiles][channels]; rows of products are tiles.
struct WinogradPlan : WindowTiling {
  /// What parts of the kernel share: blocks, each part with a ring of its own;
  /// or, of a single block, in three turns, the tiles of inputs, the positions
  /// and the tiles of outputs, which is for what one image has where it is not
  /// known how many there are. Null without parts, or with little to share.
  enum class Shared { Blocks, Positions };
  std::optional<Shared> shared;
  int64_t mostParts = 1;
  bool inPairs = false; ///< products of f32 (codegen/cpu/PairedProduct.h)

  int64_t panels() const;
  /// From slice to slice, a line more as well.
  int64_t sliceStride() const;
  int64_t ringElements() const { return (points() + 1) * sliceStride(); }
  /// The same of weights that the kernel transforms: [panel][channel][..].
  int64_t weightStride() const {
    return panels() * pieceChannels() * panelWidth() + line;
  }
  int64_t weightElements() const { return points() * weightStride(); }
  /// With parts of the positions, products are behind the ring: a slice of
  /// inputs may not have been multiplied when that of products is written.
  int64_t sharedElements() const {
    return ringElements() + points() * sliceStride();
  }
  /// What there is to know of rows that are multiplied in pairs, behind the
  /// others: two numbers for each tile of each position.
  int64_t measureElements() const { return inPairs ? 2 * points() * block : 0; }
  /// Of each part where it is not known which of both is needed.
  int64_t pieceElements() const;
};

/// Reads `root` as a convolution, or as the gradient of one.
std::optional<WindowConv> readConvolution(Kernel &kernel,
                                          mlir::linalg::GenericOp root);
std::optional<WindowConv> readWindowGradient(Kernel &kernel,
                                             mlir::linalg::GenericOp root);

/// How `root` is computed by tiles; null when it is not such a convolution, or
/// sums are expected to be faster, those of bf16 by `dots`, and `choice` leaves
/// that open.
std::optional<WinogradPlan> planWinograd(Kernel &kernel,
                                         mlir::linalg::GenericOp root,
                                         const VectorUnit &unit,
                                         Winograd choice, DotUnit dots);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitWinograd(Kernel &kernel, mlir::linalg::GenericOp root,
                  const WinogradPlan &plan, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WINOGRAD_H
