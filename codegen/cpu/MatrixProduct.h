//===- MatrixProduct.h - a product of two matrices --------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_MATRIXPRODUCT_H
#define KERATIN_CODEGEN_CPU_MATRIXPRODUCT_H

#include "codegen/cpu/LaneReader.h"

namespace keratin {

/// Loops of a root that together are one dimension of a matrix, outermost
/// first.
struct LoopGroup {
  llvm::SmallVector<unsigned> loops;
  llvm::SmallVector<int64_t> extents;

  void add(unsigned loop, int64_t extent) {
    loops.push_back(loop);
    extents.push_back(extent);
  }
  /// Of all loops, or saturated.
  int64_t turns() const;
};

/// Where a tensor is read, counted in elements of its memory: at `first` in the
/// first turns of all loops, and so many behind that in the next one of each.
struct LinearPlace {
  int64_t first = 0;
  llvm::SmallVector<int64_t> steps;
};

/// C = A B of f32, where B are weights.
struct MatrixProduct {
  mlir::OpOperand *left = nullptr, *weights = nullptr;
  bool hasKnownWeights = false;   ///< constants
  std::optional<unsigned> sample; ///< the loop, where there are several
  std::optional<int64_t> samples; ///< where their number is known
  LoopGroup rows, columns, sums;  ///< rows are those of a sample
  /// Elements from a row of A to the next, where rows follow each other so in
  /// memory, those of all samples, and a row's elements are neighbours; else 0.
  int64_t leftStride = 0;
  /// Where A is in memory and read so, and where weights are that are not
  /// known.
  std::optional<LinearPlace> leftPlace, weightsPlace;

  /// Of all samples, or of one where their number is not known.
  int64_t knownRows() const { return samples.value_or(1) * rows.turns(); }
};

/// The number of elements from each turn of `group` to the next at `place`, as
/// of one loop; null where that is not the same for all.
std::optional<int64_t> stepOf(const LinearPlace &place, const LoopGroup &group);

/// Plain ones have known weights and no element in two rows, and neighbours of
/// a row are neighbours in A. Others may have windows for rows; with weights
/// that are not known all is in memory, in rows or in columns.
enum class Products { Plain, All };

/// The product that `root` is, of which neighbours of columns are neighbours in
/// the output; null where it is none.
std::optional<MatrixProduct>
readProduct(Kernel &kernel, mlir::linalg::GenericOp root, Products kind);

/// Whether neighbours in memory of the weights are those of columns, and not of
/// sums.
bool haveColumnsInside(mlir::linalg::GenericOp root,
                       const MatrixProduct &product);

/// Coordinates of loops of a root.
using Coordinates = llvm::SmallVector<std::pair<unsigned, mlir::AffineExpr>>;

/// The loops of `group` at its turn `turn`.
Coordinates coordinatesOf(Kernel &kernel, LaneReader &reader,
                          const LoopGroup &group, mlir::Value turn);

/// A point of the loops of `root`; other loops are where the reader is, or have
/// one turn.
Position pointAt(mlir::linalg::GenericOp root,
                 llvm::ArrayRef<Coordinates> coordinates);

/// A as a matrix of the rows of all samples, where it has a stride.
mlir::Value rowsOfLeft(Kernel &kernel, mlir::linalg::GenericOp root,
                       const MatrixProduct &product);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_MATRIXPRODUCT_H
