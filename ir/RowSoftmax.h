//===- RowSoftmax.h - softmax along rows, in linalg -------------*- C++ -*-===//
#ifndef KERATIN_IR_ROWSOFTMAX_H
#define KERATIN_IR_ROWSOFTMAX_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace keratin {

/// The ops that lead from rows to their softmax:
///
///     largest = max(x), powers = e^(x - largest), total = sum(powers),
///     weights = powers / total
///
/// of which each element may be multiplied by something or replaced by zero.
struct RowSoftmax {
  mlir::linalg::GenericOp largest, powers, total, weights;
  mlir::Value given;                  ///< x
  mlir::OpOperand *subtracted;        ///< `largest`, as read by `powers`
  mlir::OpOperand *divided, *divisor; ///< as read by `weights`
  mlir::Operation *quotient;          ///< in the body of `weights`
};

/// The softmax that ends in `weights`. Null for anything else. Only the bodies
/// are looked at, not along which axes the rows go.
std::optional<RowSoftmax> rowSoftmaxOf(mlir::Value weights);

/// The last of the elementwise ops that follow from `value` one after the
/// other, each of which is alone to read what the one before computes, at the
/// position that it computes. They are added to `ops`.
mlir::Value lastOfChain(mlir::Value value,
                        llvm::SmallVectorImpl<mlir::linalg::GenericOp> &ops);

} // namespace keratin

#endif // KERATIN_IR_ROWSOFTMAX_H
