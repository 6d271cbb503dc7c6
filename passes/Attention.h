//===- Attention.h - products with weights of rows between ------*- C++ -*-===//
#ifndef KERATIN_PASSES_ATTENTION_H
#define KERATIN_PASSES_ATTENTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// The ops of attention that ends in the product `values`, which is the last of
/// them: a product of queries and keys, the scores; what follows from each row
/// of scores, weights as by a softmax; and the sum of values by those weights.
/// Nothing if `values` is no such product, if something else needs the scores
/// or what follows from them, or if it is better to compute them as a whole:
/// few queries, constant keys or values, which are packed ahead of time, and
/// factors that are not what is summed up. `isFree` says of an op whether it is
/// no part of a kernel yet.
llvm::SmallVector<mlir::Operation *>
findAttention(mlir::linalg::GenericOp values,
              llvm::function_ref<bool(mlir::Operation *)> isFree);

} // namespace keratin

#endif // KERATIN_PASSES_ATTENTION_H
