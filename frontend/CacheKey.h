//===- CacheKey.h - what makes two compilations the same --------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_CACHEKEY_H
#define KERATIN_FRONTEND_CACHEKEY_H

#include "mlir/IR/BuiltinOps.h"

#include <array>

namespace keratin::backend {

/// A hash that no two different compilations share in practice (BLAKE3).
using CacheKey = std::array<uint8_t, 32>;

/// The key of `module` compiled with what `fingerprint` tells. Structure,
/// types, attributes and the elements of constants count. Names do not:
/// locations, `ktn.name`, the symbols of public functions, the keys of
/// resources.
CacheKey cacheKey(mlir::ModuleOp module, llvm::StringRef fingerprint);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_CACHEKEY_H
