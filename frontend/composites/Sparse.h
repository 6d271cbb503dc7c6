//===- Sparse.h - what looks behind a sparse tensor -------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_COMPOSITES_SPARSE_H
#define KERATIN_FRONTEND_COMPOSITES_SPARSE_H

#include "keratin/tensor.h"

#include <optional>

namespace keratin::backend {

/// The elements of a sparse matrix and where they are: three lists.
struct SparseParts {
  Tensor values, rows, columns;
};

/// None when x is not sparse.
std::optional<SparseParts> sparseParts(const Tensor &x);

/// The product of a sparse matrix of `rows` rows with the dense matrix y.
Tensor sparseDot(const SparseParts &x, const Tensor &y, int64_t rows);

/// Sparse matrices one after another along `axis`, which is 0 or 1.
Tensor joinSparse(const Tensors &tensors, int64_t axis);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_COMPOSITES_SPARSE_H
