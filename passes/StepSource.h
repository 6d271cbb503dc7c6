//===- StepSource.h - what the steps of a loop follow from ------*- C++ -*-===//
#ifndef KERATIN_PASSES_STEPSOURCE_H
#define KERATIN_PASSES_STEPSOURCE_H

#include "ir/Ktn.h"

namespace keratin {

/// What the slices of a loop are computed from, entry by entry.
struct StepSource {
  mlir::Value value;
  int64_t axis = 0; ///< whose entries the steps take
  /// The ops in between, from the last one on, and the axes of their results.
  llvm::SmallVector<std::pair<ktn::StepwiseOpInterface, int64_t>> ops;

  /// Goes on to what the value follows from; false where nothing is known of
  /// that.
  bool advance();
};

/// What axis 0 of the stack is that `slice` is taken of.
StepSource sourceOf(ktn::ScanOp scan, mlir::BlockArgument slice);

/// Lets each step take an entry of `source` for `slice`, which becomes that,
/// and emits what it was before by `b`, in the body of `scan`. What reads
/// `slice` is left to the caller.
mlir::Value takeFrom(const StepSource &source, ktn::ScanOp scan,
                     mlir::BlockArgument slice, mlir::OpBuilder &b);

} // namespace keratin

#endif // KERATIN_PASSES_STEPSOURCE_H
