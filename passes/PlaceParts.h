//===- PlaceParts.h - parts of a tensor are made in their places *- C++ -*-===//
#ifndef KERATIN_PASSES_PLACEPARTS_H
#define KERATIN_PASSES_PLACEPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace keratin {

/// On an argument of a kernel: the distances between its elements along each
/// axis, in elements. An argument without it is dense.
inline constexpr llvm::StringLiteral stridesAttr = "ktn.strides";
/// On an argument of a kernel: a part of a buffer that the kernel writes.
inline constexpr llvm::StringLiteral slotAttr = "ktn.slot";

/// Whether a tensor of this type can be a part of rows of a larger one: it has
/// elements, neighbours along the last axis, and strides that are known.
bool canBeSlice(mlir::RankedTensorType type);

/// The distances between elements of a dense tensor of `shape`, of which only
/// the first extent may be open.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

/// The strides of a tensor of `shape` that is a view of one with `strides`,
/// each axis of which stands for the axes of a group. Of a group only the first
/// extent may be open.
llvm::SmallVector<int64_t>
expandedStrides(llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<mlir::ReassociationIndices> reassociation,
                llvm::ArrayRef<int64_t> strides);

/// Rewrites `function`, a list of calls of kernels, so that what kernels only
/// join (`tensor.concat`) or put a border around (`tensor.pad`) is written in
/// its place in the whole right away, and read there by others as well. The
/// buffer of the whole is a `tensor.empty` with an attribute `ktn.buffer`; its
/// slots are slices of it, and a kernel that writes or reads one that is not
/// dense is a variant with `ktn.strides`.
void placeParts(mlir::func::FuncOp function);

} // namespace keratin

#endif // KERATIN_PASSES_PLACEPARTS_H
