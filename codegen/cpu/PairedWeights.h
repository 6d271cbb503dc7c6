//===- PairedWeights.h - weights that are multiplied in pairs ---*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_PAIREDWEIGHTS_H
#define KERATIN_CODEGEN_CPU_PAIREDWEIGHTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"

namespace keratin {

/// Products of a step: a pair whose multiplication is added, one whose is
/// subtracted, and two that are added as they are. Those behind the last whole
/// step are as they are.
inline constexpr int64_t stepOfPairs = 6;

/// What the pair that element `number` of a sum is in counts for: 1 or -1, and
/// 0 where it is in none. `depth`: of the sum.
int signOfPair(int64_t number, int64_t depth);

/// How weights of f32, a matrix, are packed for `codegen/cpu/PairedProduct.h`.
struct PairedPacking {
  int64_t sums, columns;
  int64_t block;      ///< columns of a panel
  bool columnsInside; ///< neighbours in memory are neighbours in a row
};

/// Rows of a panel behind those of its weights: the sums begin with the first
/// one, and are multiplied by the second one when they are complete.
inline constexpr int64_t rowsBehindPaired = 2;

/// [panels, sums + rowsBehindPaired, block] of f32.
mlir::RankedTensorType packedType(mlir::MLIRContext *context,
                                  const PairedPacking &packing);

/// Whether all weights are finite, and neither a column so large nor so small
/// that it cannot be scaled.
bool canBePaired(llvm::ArrayRef<char> source, const PairedPacking &packing);

/// Multiplies the columns of a panel, of which `sums` rows are there, each by a
/// power of two, and writes those behind them.
void scalePairedPanel(llvm::MutableArrayRef<float> panel, int64_t sums,
                      int64_t block);

/// Copies `source` to `destination` in the order of `packedType`, each column
/// times a power of two. Columns behind the last one are zeros.
void packPaired(llvm::ArrayRef<char> source, const PairedPacking &packing,
                llvm::MutableArrayRef<char> destination);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIREDWEIGHTS_H
