//===- Permutation.h - the axes of transposed tensors -----------*- C++ -*-===//
//
// Axis i of `transpose(x, permutation)` is axis `permutation[i]` of x.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_PERMUTATION_H
#define KERATIN_IR_PERMUTATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace keratin::ktn {

llvm::SmallVector<int64_t> inverseOf(llvm::ArrayRef<int64_t> permutation);

/// The values of the axes of x, given those of `transpose(x, permutation)`.
llvm::SmallVector<int64_t> valuesBefore(llvm::ArrayRef<int64_t> values,
                                        llvm::ArrayRef<int64_t> permutation);

/// `axes` of `transpose(x, permutation)` as axes of x, sorted.
llvm::SmallVector<int64_t> axesBefore(llvm::ArrayRef<int64_t> axes,
                                      llvm::ArrayRef<int64_t> permutation);

/// The permutation of the axes that stay when the axes `removed` of x go.
llvm::SmallVector<int64_t>
permutationWithout(llvm::ArrayRef<int64_t> permutation,
                   llvm::ArrayRef<int64_t> removed);

} // namespace keratin::ktn

#endif // KERATIN_IR_PERMUTATION_H
