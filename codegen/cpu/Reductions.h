//===- Reductions.h - partial results and how they are joined ---*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_REDUCTIONS_H
#define KERATIN_CODEGEN_CPU_REDUCTIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace keratin {

/// The associative operation that joins the partial results of a reduction.
/// Always in the same order, so that equal inputs give equal bits.
class Combiner {
public:
  /// The combiner of result `number` of `op`; null for other reductions.
  static std::optional<Combiner> of(mlir::linalg::GenericOp op,
                                    unsigned number);

  mlir::Value join(mlir::OpBuilder &b, mlir::Value lhs, mlir::Value rhs) const;
  /// Pairs of `parts`, then pairs of those, and so on.
  mlir::Value joinAll(mlir::OpBuilder &b,
                      llvm::SmallVector<mlir::Value> parts) const;
  /// The halves of a vector, the halves of that, down to a scalar. The number
  /// of lanes is a power of two.
  mlir::Value joinLanes(mlir::OpBuilder &b, mlir::Value vector) const;
  /// The value that changes nothing, `width` times; 0 is a scalar.
  mlir::Value identity(mlir::OpBuilder &b, unsigned width) const;

private:
  Combiner(mlir::Operation *op, mlir::TypedAttr neutral)
      : op(op), neutral(neutral) {}

  mlir::Operation *op;
  mlir::TypedAttr neutral;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_REDUCTIONS_H
