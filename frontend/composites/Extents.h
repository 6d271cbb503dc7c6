//===- Extents.h - shapes that are computed in the graph --------*- C++ -*-===//
//
// What composites that take a `Dims` share. Private.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_COMPOSITES_EXTENTS_H
#define KERATIN_FRONTEND_COMPOSITES_EXTENTS_H

#include "keratin/tensor.h"

#include <functional>

namespace keratin::backend {

/// The extents of x as one int64 tensor.
Tensor extentsOf(const Tensor &x);

/// `dims` with numbers in place of tensors whose value follows from the shapes
/// that the graph knows.
Dims resolve(const Dims &dims);

/// The extents as numbers; `None` where a tensor tells.
Shape knownExtents(const Dims &dims);
bool hasTensors(const Dims &dims);

/// The extents as one int64 tensor; `None` ones are those of `fallback`.
Tensor extentsTensor(const Dims &dims,
                     const std::function<Tensor(size_t axis)> &fallback);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_COMPOSITES_EXTENTS_H
