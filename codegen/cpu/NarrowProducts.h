//===- NarrowProducts.h - products of few columns ---------------*- C++ -*-===//
//
// A register tile has its vectors along the columns of a product. Of few
// columns most lanes are empty, and where there are few rows as well, each step
// waits for the sum of the one before. Such a product has its vectors along the
// sum instead: a tile keeps a vector for each pair of a row and a column, which
// are multiplied element by element, and the lanes of all are added up at the
// end, together.
//
// Rows that are neighbours in an image read what each other's windows have.
// Where loads are more than products, as with one column, a step takes all taps
// along the row of a window, and what several rows read is loaded once.
//
// Of 24 columns a quarter of the lanes of two vectors is empty. Eight columns
// with two elements of the sum each fill a vector, as do four with four: a load
// spreads so many neighbours of a row over all of a vector.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_NARROWPRODUCTS_H
#define KERATIN_CODEGEN_CPU_NARROWPRODUCTS_H

#include "codegen/cpu/TileEmitter.h"

namespace keratin {

/// How such a root is computed. Loops are by their number in the root.
struct NarrowPlan {
  unsigned lane;                    ///< of the sum, along the vectors
  llvm::SmallVector<unsigned> sums; ///< the other ones, outermost first
  unsigned column;                  ///< the innermost loop of the output
  std::optional<unsigned> row;      ///< of the factor that has no columns
  /// A sum all of which each step takes: of it a row reads at tap t + 1 what
  /// the next one reads at t.
  std::optional<unsigned> tap;
  llvm::SmallVector<unsigned> outer; ///< the other parallel loops
  unsigned lanes;                    ///< of a vector
  unsigned across = 1;               ///< columns of a vector
  int64_t columns, rows;             ///< of a tile
  bool rowsOutside = false; ///< of columns, all of which stay in a near cache
  /// A factor that is wanted in blocks of `along()` along the sum: a constant,
  /// or what each call copies.
  mlir::OpOperand *packed = nullptr;
  bool copied = false;
  /// A factor whose rows no near cache holds: those of the tiles to come are
  /// asked for.
  mlir::OpOperand *far = nullptr;

  /// Elements of a sum in a vector.
  unsigned along() const { return lanes / across; }
};

/// How `root` is computed in that way; null when that does not apply, or is not
/// faster than register tiles. Depends on the shapes of `root` and on the
/// registers alone, for it decides in which order numbers are added: not on
/// threads, nor on how much code is wanted.
std::optional<NarrowPlan> planNarrow(Kernel &kernel,
                                     mlir::linalg::GenericOp root,
                                     const VectorUnit &unit);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitNarrow(Kernel &kernel, mlir::linalg::GenericOp root,
                const NarrowPlan &plan, llvm::ArrayRef<Output> outputs);

/// A vector whose lane `i` is the sum of the lanes of the `i`th of `vectors`,
/// added in halves. There are as many as lanes, a power of two, at most; a lane
/// means nothing where a vector is null. Where one is null, so are those at
/// larger numbers that have the same bits and more.
mlir::Value sumsOfLanes(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::SmallVector<mlir::Value> vectors);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_NARROWPRODUCTS_H
