//===- BatchSizes.h - extents as functions of the batch ---------*- C++ -*-===//
#ifndef KERATIN_PASSES_BATCHSIZES_H
#define KERATIN_PASSES_BATCHSIZES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace keratin {

/// `fixed + perBatch * batch`, an extent or a size in bytes.
struct BatchSize {
  int64_t fixed = 0;
  int64_t perBatch = 0;

  bool isStatic() const { return perBatch == 0; }
  bool operator==(const BatchSize &) const = default;
};

/// Nothing when the result is not linear in the batch, or overflows.
std::optional<BatchSize> add(BatchSize a, BatchSize b);
std::optional<BatchSize> multiply(BatchSize a, BatchSize b);
/// `size` rounded up to a multiple of `alignment`, for every batch.
std::optional<BatchSize> alignTo(BatchSize size, int64_t alignment);

/// The value of an index computed by `arith` from constants and the leading
/// extents of function arguments, which all are the batch.
std::optional<BatchSize> evaluateBatchSize(mlir::Value index);

/// The extents of a ranked tensor, each from its type or from the operation
/// that made the tensor. Nothing when one is not linear in the batch.
std::optional<llvm::SmallVector<BatchSize>> evaluateShape(mlir::Value tensor);

/// Number of elements, likewise.
std::optional<BatchSize> evaluateCount(llvm::ArrayRef<BatchSize> shape);

} // namespace keratin

#endif // KERATIN_PASSES_BATCHSIZES_H
