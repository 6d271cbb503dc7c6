//===- JoinVectors.h - equal computations on one long vector ----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_JOINVECTORS_H
#define KERATIN_CODEGEN_CPU_JOINVECTORS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace keratin {

/// The vectors one behind the other.
mlir::Value concatenated(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<mlir::Value> vectors);

/// Vectors that were computed by the same operations from different operands,
/// computed again as one vector: on the machine the parts of each operation
/// are neighbours, so that the latency of one hides behind the others.
class VectorJoiner {
public:
  VectorJoiner(mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), loc(loc) {}

  /// `parts` one behind the other; all of one type, two or more. Operations
  /// that are not alike, and those in front of them, stay as they are.
  mlir::Value join(llvm::ArrayRef<mlir::Value> parts);

private:
  mlir::Value build(llvm::ArrayRef<mlir::Value> parts);
  mlir::Value joinUniform(mlir::Value part, mlir::VectorType wide);

  mlir::OpBuilder &b;
  mlir::Location loc;
  /// By the first part, which determines the others nearly always.
  llvm::DenseMap<
      mlir::Value,
      llvm::SmallVector<std::pair<llvm::SmallVector<mlir::Value>, mlir::Value>>>
      joined;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_JOINVECTORS_H
