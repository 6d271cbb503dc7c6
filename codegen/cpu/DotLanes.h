//===- DotLanes.h - dot products in the lanes of vectors --------*- C++ -*-===//
//
// AVX512_BF16: a lane multiplies two pairs of neighbours of bf16 and adds both
// products to its sum of f32.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_DOTLANES_H
#define KERATIN_CODEGEN_CPU_DOTLANES_H

#include "codegen/cpu/Kernel.h"

namespace keratin {

/// Sums of an instruction, and of a vector.
inline constexpr int64_t dotLanes = 16;

/// The address of the first element of `memref` plus `element` elements.
mlir::Value addressOf(Kernel &kernel, mlir::Value memref, mlir::Value element);

/// The pairs of bf16 of each lane, one after the other from there on.
mlir::Value loadPairs(Kernel &kernel, mlir::Value memref, mlir::Value element);

/// The pair of bf16 there, in every lane; with `isHalf` the one that is there,
/// and zero.
mlir::Value spreadPair(Kernel &kernel, mlir::Value memref, mlir::Value element,
                       bool isHalf = false);

/// `sums` and the products of `left` and `right`. Numbers below 2^-126 count
/// as zero.
mlir::Value addDots(Kernel &kernel, mlir::Value sums, mlir::Value left,
                    mlir::Value right);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_DOTLANES_H
