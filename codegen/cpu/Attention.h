//===- Attention.h - attention without a matrix of scores -------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_ATTENTION_H
#define KERATIN_CODEGEN_CPU_ATTENTION_H

#include "codegen/cpu/RowEmitter.h"
#include "ir/RowSoftmax.h"

#include <optional>

namespace keratin {

/// A kernel that multiplies queries by keys, makes weights of each row of these
/// scores, and sums up values by them.
struct Attention {
  mlir::linalg::GenericOp scores, values;                 ///< the products
  mlir::OpOperand *queries = nullptr, *keys = nullptr;    ///< of `scores`
  mlir::OpOperand *weights = nullptr, *vectors = nullptr; ///< of `values`
  RowBlock rows; ///< what makes weights of scores; its axis is of the queries
  unsigned column = 0; ///< the loop of `values` along what a value consists of
  /// What `rows` are, if they are a softmax that can be computed in blocks.
  std::optional<RowSoftmax> softmax;

  /// Axes of the scores.
  unsigned axes() const;
  /// The loop of either product along `axis` of the scores.
  unsigned scoresLoop(unsigned axis) const;
  unsigned valuesLoop(unsigned axis) const;
  /// That of an op with a loop for each axis.
  unsigned axisItself(unsigned axis) const { return axis; }
  /// Static numbers, or ShapedType::kDynamic.
  int64_t queryCount() const;
  int64_t keyCount() const;
};

/// The parts of `kernel`; null when it is something else.
std::optional<Attention> attentionOf(Kernel &kernel, const VectorUnit &unit);

/// Gives the keys a name of their own where the queries are the same tensor:
/// reads of one of them go to a panel.
void renameKeys(Kernel &kernel, Attention &attention);

/// Emits the loops around blocks of `step` queries, shared among threads where
/// the kernel is: `attention.rows.around` says where they are, and `body` gets
/// the first query and the end of those that a call has, which begin at a
/// multiple of `step` and end at one or with all of them.
void emitAroundQueries(
    Kernel &kernel, Attention &attention, int64_t step,
    llvm::function_ref<void(mlir::Value from, mlir::Value to)> body);

/// Emits `kernel` if it is attention: a block of queries at a time goes through
/// all three steps, and its scores are in a panel that the second cache holds.
/// Of more than `mostKeys` keys a block of queries sees some at a time, if its
/// rows are a softmax. False, with nothing emitted, for any other kernel.
bool emitAttention(Kernel &kernel, const VectorUnit &unit, int64_t mostKeys);

/// Emits `attention`, whose rows are a softmax of f32, with vectors along
/// queries: a block of a few vectors of them sees some keys after the other.
/// False, with nothing emitted, where that does not fit, or where too few lanes
/// would have a query.
bool emitLaneAttention(Kernel &kernel, const VectorUnit &unit,
                       const Attention &attention);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ATTENTION_H
