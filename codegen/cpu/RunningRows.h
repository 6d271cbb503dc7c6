//===- RunningRows.h - a softmax over blocks of a row -----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_RUNNINGROWS_H
#define KERATIN_CODEGEN_CPU_RUNNINGROWS_H

#include "codegen/cpu/Attention.h"

namespace keratin {

/// What is kept of the blocks of keys so far: tensors that the ops of attention
/// read, of which somebody has to say where they are.
struct RunningRows {
  mlir::Value most;  ///< the largest score of a row
  mlir::Value total; ///< the sum of the powers of a row
  mlir::Value sums;  ///< the values, weighed by powers, of a row
  /// What the next block makes of them, in an order in which they can be
  /// written: `factor` is what the old sums were multiplied by.
  mlir::Value factor, nextTotal, nextMost;
  mlir::Value least; ///< where `most` starts; the others start from zero
};

/// Changes the ops of `attention`, which are a softmax, so that they go on from
/// the blocks before: with m' = max(m, scores), f = e^(m - m'),
///
///     powers = e^(scores - m'), total' = f total + sum(powers),
///     sums' = f sums + powers values
///
/// Sums of the last block are still to be divided by `total`. While all scores
/// are -inf so is m', and 0 takes its place: powers and f are 0 then.
RunningRows makeRunning(Kernel &kernel, Attention &attention);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_RUNNINGROWS_H
