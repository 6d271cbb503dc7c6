//===- KernelGroups.h - which ops are computed together ---------*- C++ -*-===//
#ifndef KERATIN_PASSES_KERNELGROUPS_H
#define KERATIN_PASSES_KERNELGROUPS_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace keratin {

/// Operations of one block that become one kernel, in block order.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  /// "matmul", "conv" …: the value of `ktn.kernel`.
  llvm::StringRef kind;
};

/// Bytes of a row that a `rows` kernel may keep in a scratch buffer.
inline constexpr int64_t maxRowBytes = int64_t(64) * 1024;

/// Whether `op` is computed by a kernel, and not a view, a size or a constant.
bool isKernelOp(mlir::Operation *op);

/// Partitions the kernel ops of `block`. Without `fuse` each is alone. Merging
/// a group into one call never creates a cycle, but may need a reordering of
/// the block.
llvm::SmallVector<KernelGroup> formKernelGroups(mlir::Block &block, bool fuse);

} // namespace keratin

#endif // KERATIN_PASSES_KERNELGROUPS_H
