//===- AttentionPlan.h - how large the blocks of attention are --*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_ATTENTIONPLAN_H
#define KERATIN_CODEGEN_CPU_ATTENTIONPLAN_H

#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Roles.h"

namespace keratin {

/// How large the blocks of attention are.
struct AttentionPlan {
  Tiling scores, values;
  int64_t queries = 1; ///< in a block
  int64_t keys = 1;    ///< in a block; fewer than all where sums are running
  int64_t stride = 1;  ///< elements from row to row of the panel
  /// Whether keys and values are put in order once for several blocks.
  bool ordersOnce = false;
  /// Whether a block of queries goes over the keys in blocks, each of which
  /// adds to the sums of values so far.
  bool isRunning = false;
};

/// The plan for `attention`, whose results can hold the sums of values if
/// `holdsSums`: rows of more than `mostKeys` scores are gone over in blocks
/// where they are a softmax. Null where queries or keys are of unknown number.
std::optional<AttentionPlan> planAttention(const Attention &attention,
                                           const VectorUnit &unit,
                                           bool holdsSums, int64_t mostKeys);

/// Bytes between the elements that `operand` has for two turns of `loop` of
/// `op`.
int64_t bytesApart(mlir::linalg::GenericOp op, mlir::OpOperand *operand,
                   unsigned loop);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ATTENTIONPLAN_H
