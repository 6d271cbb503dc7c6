//===- InPlace.h - what a kernel may be written over ------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_INPLACE_H
#define KERATIN_CODEGEN_CPU_INPLACE_H

#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// Gives the attribute `ktn.in_place` to those arguments of which each element
/// is read before any result at the same position is written, and not after:
/// the destination of a result may be the same memory. For a kernel that
/// computes all its results together, at a position all that it reads before
/// anything that it writes there, from the sums of `root` if there is one: its
/// sum there, or, with `severalSums`, those that readers know as theirs.
void markInPlace(Kernel &kernel, mlir::linalg::GenericOp root = {},
                 bool severalSums = false);

/// Gives the attribute `ktn.behind` to an argument over which the result may be
/// written from so many bytes behind its beginning on: a window that goes from
/// the last rows to the first has read by then what was there. Not for kernels
/// that are done in parts, which are not in that order.
void markBehind(Kernel &kernel, mlir::linalg::GenericOp root,
                const Tiling &tiling, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_INPLACE_H
