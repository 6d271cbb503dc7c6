//===- Strassen.h - products of fewer multiplications -----------*- C++ -*-===//
//
// A product C = A B, of which each matrix is cut into 2 x 2 blocks, takes seven
// products of blocks in place of eight (V. Strassen, Gaussian elimination is
// not optimal, Numerische Mathematik 13, 1969):
//
//     M0 = (A11 + A22) (B11 + B22)      C11 = M0 + M3 - M4 + M6
//     M1 = (A21 + A22) B11              C12 = M2 + M4
//     M2 = A11 (B12 - B22)              C21 = M1 + M3
//     M3 = A22 (B21 - B11)              C22 = M0 - M1 + M2 + M5
//     M4 = (A11 + A12) B22
//     M5 = (A21 - A11) (B11 + B12)
//     M6 = (A12 - A22) (B21 + B22)
//
// B are weights. The sums of blocks of A are made once, those of B by the first
// tile of rows that meets them, so that weights are stored and come from memory
// as they are. The seven products of a panel of columns stay in the cache until
// C is made of them.
//
// The upper blocks have other rows than the lower ones, and a row of C is
// rounded as the larger of the two is that it is computed with. Both are of one
// sample: no sample depends on what else is in its batch.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_STRASSEN_H
#define KERATIN_CODEGEN_CPU_STRASSEN_H

#include "codegen/cpu/MatrixProduct.h"
#include "codegen/cpu/TileEmitter.h"

namespace keratin {

/// How a product with known weights is computed so. Rows of a sample that
/// follow each other are a segment. Row r of its first half and row r of its
/// second half are a pair; where it has fewer rows than others, or their number
/// is odd, the halves overlap: the rows in the middle are computed in two
/// pairs, and kept where they are upper ones. Columns and sums are halved along
/// their outermost loops.
struct StrassenPlan : MatrixProduct {
  unsigned lanes;
  int64_t line;          ///< elements of a cache line
  int64_t rowsOfSegment; ///< the last one of a sample may have fewer
  /// Pairs whose sums are made before they are multiplied: those of a segment,
  /// or of several samples of one segment each.
  int64_t block;
  TileSize size;  ///< of the products; its rows are pairs
  int64_t steps;  ///< of a sum at a time, whose weights stay in the cache
  bool asksAhead; ///< for weights
  int64_t stepsOfQuestion; ///< for weights
  unsigned chains;         ///< of functions of outputs, side by side
  /// Whether each vector of columns reads what it is multiplied with for
  /// itself, as an operand from memory (TileEmitter::readsForEach).
  bool readsForEach;

  int64_t segments() const; ///< of a sample
  int64_t rowsOfLast() const {
    return rows.turns() - (segments() - 1) * rowsOfSegment;
  }
  int64_t pairsOfSegment() const { return (rowsOfSegment + 1) / 2; }
  int64_t pairsOfSample() const { return segments() * pairsOfSegment(); }
  /// Of one sample, where their number is not known.
  int64_t pairs() const { return samples.value_or(1) * pairsOfSample(); }
  int64_t blocks() const; ///< likewise
  bool blocksAreSegments() const { return block == pairsOfSegment(); }
  int64_t depth() const { return sums.turns() / 2; } ///< of a block of A
  int64_t width() const { return int64_t(size.vectors) * lanes; }
  /// Of a half of the columns.
  int64_t panels() const { return columns.turns() / 2 / width(); }
  /// From a row of the sums of A to the next: a cache line more than there
  /// are, so that rows do not meet in few sets of the cache.
  int64_t rowStride() const;
  /// How many blocks of A are stored.
  int64_t storedLeft() const { return leftStride != 0 ? 5 : 7; }
  int64_t leftElements() const { return storedLeft() * block * rowStride(); }
  /// Sums of weights, and the products of a panel.
  int64_t panelElements() const { return steps * width(); }
  int64_t productElements() const { return 7 * block * width(); }
};

/// How `root` is computed by seven products; null where it is no such product,
/// or eight are expected to be nearly as fast.
std::optional<StrassenPlan> planStrassen(Kernel &kernel,
                                         mlir::linalg::GenericOp root,
                                         const VectorUnit &unit);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitStrassen(Kernel &kernel, mlir::linalg::GenericOp root,
                  const StrassenPlan &plan, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_STRASSEN_H
