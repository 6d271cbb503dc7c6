//===- KernelLimits.h - how large a kernel becomes --------------*- C++ -*-===//
//
// What fuses ops makes their code anew each time, and what emits a kernel looks
// at all of it at once. A kernel of bounded size keeps the time that a chain
// takes in proportion to its length, whoever wrote it.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_PASSES_KERNELLIMITS_H
#define KERATIN_PASSES_KERNELLIMITS_H

#include "mlir/IR/Operation.h"

namespace keratin {

/// Scalar operations and tensors read that ops are joined up to. An op that has
/// more of its own stays as it is.
inline constexpr size_t mostScalarOps = 256, mostInputs = 64;

/// Operations in the regions of `op`.
inline size_t countScalarOps(mlir::Operation *op) {
  size_t count = 0;
  for (mlir::Region &region : op->getRegions())
    for (mlir::Block &block : region)
      count += block.getOperations().size();
  return count;
}

} // namespace keratin

#endif // KERATIN_PASSES_KERNELLIMITS_H
