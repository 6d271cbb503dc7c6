//===- OneRow.h - one row times weights of 24 bits --------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_ONEROW_H
#define KERATIN_CODEGEN_CPU_ONEROW_H

#include "codegen/cpu/TileEmitter.h"
#include "codegen/cpu/Weights24.h"

namespace keratin {

/// How a product of one row with known weights is computed that are integers of
/// 24 bits. Loops are by their number in the root.
struct OneRowPlan {
  mlir::OpOperand *row, *weights;
  unsigned lane;                    ///< along the columns
  llvm::SmallVector<unsigned> sums; ///< outermost first
  int64_t blocks;
  int64_t blocksOfTile; ///< that are read side by side
  bool asksAhead;       ///< for what comes from memory
  Packing24 packing;
};

/// Null where `root` is no such product, or that gains nothing.
std::optional<OneRowPlan> planOneRow(Kernel &kernel,
                                     mlir::linalg::GenericOp root,
                                     const VectorUnit &unit);

/// Emits `root` as `plan` says, and `outputs`, which follow from it.
void emitOneRow(Kernel &kernel, mlir::linalg::GenericOp root,
                const OneRowPlan &plan, llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ONEROW_H
