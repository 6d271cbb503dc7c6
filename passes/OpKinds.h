//===- OpKinds.h - what an op of a kernel computes --------------*- C++ -*-===//
#ifndef KERATIN_PASSES_OPKINDS_H
#define KERATIN_PASSES_OPKINDS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// Whether `op` computes each element of its results by itself, at the position
/// of the element.
bool isElementwise(mlir::Operation *op);

/// Whether `value` is computed element by element from a product or a window
/// whose kernel it can be part of, for one reader.
bool followsRoot(mlir::Value value);

/// Whether `generic` sums up products of its two inputs.
bool isProduct(mlir::linalg::GenericOp generic);

/// Channels from which on a sum over windows that overlap may be computed by
/// tiles of the image, with fewer multiplications; of fewer it is made as it
/// is.
inline constexpr int64_t fewestChannelsOfTiles = 8;

/// Whether the body of `generic` reads tensors at computed positions.
bool readsElsewhere(mlir::linalg::GenericOp generic);

/// The kind of a kernel that is `op` alone: "matmul", "elementwise" …
llvm::StringRef kindOf(mlir::Operation *op);

/// A single-result reduction over the trailing loops of an input that is read
/// in order, with one value a row.
bool isRowReduction(mlir::Operation *op);

/// Whether `op` reduces what it reads of `operand` over outer axes: all of it,
/// neighbours along the last axis to neighbours.
bool reducesOuterAxes(mlir::linalg::GenericOp op, mlir::OpOperand *operand);

/// The loops of ops that are computed together row by row: the first `rows` of
/// `extents` are of the rows, the others go along each of them.
class RowShape {
public:
  RowShape(llvm::ArrayRef<int64_t> extents, unsigned rows)
      : extents(extents), rows(rows) {}

  llvm::ArrayRef<int64_t> row() const {
    return llvm::ArrayRef(extents).drop_front(rows);
  }
  /// Bytes of a row of the widest elements; INT64_MAX where it is not known.
  int64_t bytes() const;

  /// Whether `generic` has all the loops.
  bool isWhole(mlir::linalg::GenericOp generic) const;
  /// Whether `generic` computes one value for each row.
  bool isPerRow(mlir::linalg::GenericOp generic) const;
  /// Whether `generic` can be computed row by row with the ops that `isMember`
  /// tells: it reads their values in its own row.
  bool fits(mlir::linalg::GenericOp generic,
            llvm::function_ref<bool(mlir::Operation *)> isMember) const;

private:
  bool leadsToRow(mlir::linalg::GenericOp generic, mlir::AffineMap map) const;

  llvm::SmallVector<int64_t> extents;
  unsigned rows;
};

} // namespace keratin

#endif // KERATIN_PASSES_OPKINDS_H
