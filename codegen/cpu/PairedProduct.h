//===- PairedProduct.h - two products by one multiplication -----*- C++ -*-===//
//
// Two products of a sum take one multiplication and two sums (S. Winograd, A
// new algorithm for inner product, IEEE Transactions on Computers C-17, 1968):
//
//     a b + a' b' = (a + b') (a' + b) - a a' - b b'
//                 = b b' + a a' - (a - b') (a' - b)
//
// Where a core has units for sums beside those for products, four products of
// six are made so and two as they are: four multiplications and four sums, in
// the time of four products. What is subtracted follows from a row of A alone
// and from a column of the weights alone. It is of one sign for one pair and of
// the other for the next, so that partial sums stay as small as they are.
//
// Rounding errors are those of a sum of products as long as the numbers of a
// row are as large as those of a column. So each column is stored multiplied by
// a power of two that makes the mean of its squares about one, and a row whose
// mean is far from that is copied, multiplied by another. No row depends on
// others.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_PAIREDPRODUCT_H
#define KERATIN_CODEGEN_CPU_PAIREDPRODUCT_H

#include "codegen/cpu/MatrixProduct.h"
#include "codegen/cpu/PairedWeights.h"
#include "codegen/cpu/TileEmitter.h"

namespace keratin {

/// How a product is computed so. Rows of all samples are one group where their
/// number is known.
struct PairedPlan : MatrixProduct {
  unsigned lanes;
  TileSize size;
  int64_t block;        ///< rows that are measured before they are multiplied
  int64_t copiedStride; ///< elements from a row that is copied to the next
  bool stays;           ///< all weights, in the second cache
  bool asksAhead;       ///< for weights
  bool hasFunctions;    ///< of what is computed from the sums
  /// With weights that are not known: whether all rows are measured before
  /// panels are packed one by one, or all panels packed before.
  bool measuresFirst;
  bool transposesLeft; ///< to a copy of all rows, whose stride is leftStride

  int64_t depth() const { return sums.turns(); }
  int64_t steps() const { return depth() / stepOfPairs; }
  int64_t width() const { return int64_t(size.vectors) * lanes; }
  int64_t panels() const; ///< the last one may have fewer columns
  int64_t blocks() const; ///< of a sample, or of all where they are known
  /// The innermost loops of sums whose elements follow each other in A, where
  /// that has a place.
  LoopGroup run() const;
  PairedPacking packing(mlir::linalg::GenericOp root) const {
    return {depth(), columns.turns(), width(), haveColumnsInside(root, *this)};
  }
};

/// How `root` is computed in pairs; null where it is no such product, or that
/// is not expected to be faster.
std::optional<PairedPlan> planPaired(Kernel &kernel,
                                     mlir::linalg::GenericOp root,
                                     llvm::ArrayRef<Output> outputs,
                                     const VectorUnit &unit);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitPaired(Kernel &kernel, mlir::linalg::GenericOp root,
                const PairedPlan &plan, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIREDPRODUCT_H
