//===- ArenaLayout.h - buffers that share one arena -------------*- C++ -*-===//
#ifndef KERATIN_PASSES_ARENALAYOUT_H
#define KERATIN_PASSES_ARENALAYOUT_H

#include "passes/BatchSizes.h"

#include "mlir/Support/LLVM.h"

#include <optional>

namespace keratin {

/// From the first write to the last read, both included, in program order.
struct BufferLife {
  unsigned first = 0;
  unsigned last = 0;

  bool overlaps(BufferLife other) const {
    return first <= other.last && other.first <= last;
  }
};

struct ArenaRequest {
  BatchSize bytes;
  BufferLife life;
  /// An earlier request that it may lie over, though their lives overlap, from
  /// `bytesBehind` behind the beginning of that on; both of sizes that do not
  /// depend on the batch.
  std::optional<unsigned> over = {};
  int64_t bytesBehind = 0;
};

struct ArenaLayout {
  BatchSize bytes; ///< of the whole arena
  /// What is needed at the same time, at the moment when that is most for a
  /// batch of 1: no layout takes less.
  BatchSize least;
  llvm::SmallVector<BatchSize> offsets; ///< one a request
  /// Whether requests that may lie over others do: all of them, or none where
  /// they take less room beside them.
  bool liesOver = false;
};

/// Places every request at a multiple of `alignment` so that requests whose
/// lives overlap share no byte, for every batch of 1 or more. Greedy in the
/// best of a few orders, of which by size is the first (Pisarchyk and Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", 2020), and of
/// some hundred changes to it. What the batch scales stands behind all that it
/// does not. Fails when a size overflows.
llvm::FailureOr<ArenaLayout> layoutArena(llvm::ArrayRef<ArenaRequest> requests,
                                         int64_t alignment);

} // namespace keratin

#endif // KERATIN_PASSES_ARENALAYOUT_H
