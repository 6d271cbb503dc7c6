//===- Dots.h - sums of products of bf16 ------------------------*- C++ -*-===//
//
// A root whose factors are bf16 and whose sums are f32 is computed by
// instructions that multiply pairs of neighbours along the sum: in tiles (AMX:
// 16 rows by 16 columns by 16 pairs) or in lanes of vectors (AVX512_BF16: one
// row by 16 columns by a pair). Both read the left factor, which has the rows,
// where it is, and the right one, which has the columns, in blocks of pairs
// (codegen/cpu/PairPacking.h), packed ahead of time or into a panel.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_DOTS_H
#define KERATIN_CODEGEN_CPU_DOTS_H

#include "codegen/cpu/PairPacking.h"
#include "codegen/cpu/TileEmitter.h"
#include "passes/Pipelines.h"

namespace keratin {

/// How such a root is computed. Loops are by their number in the root.
struct DotPlan {
  DotUnit unit;
  mlir::OpOperand *left, *right;
  unsigned lane;                     ///< along the columns
  int64_t columns;                   ///< how many there are
  llvm::SmallVector<unsigned> outer; ///< parallel ones of both factors
  llvm::SmallVector<unsigned> rows;  ///< of the left one alone
  /// The last of `rows` that are rows at one distance, and how many rows those
  /// are, where it is known.
  unsigned run = 0;
  std::optional<int64_t> runRows;
  /// Rows of the run from one turn of the last loop but one to the next, if
  /// that is more than the last loop has turns: the rows between are computed
  /// as well, and left out. Else 0.
  int64_t pitch = 0;
  llvm::SmallVector<unsigned> sums; ///< outermost first
  /// The last of `sums` that are neighbours in the left factor, how many
  /// elements those are, and how many of them a step takes; in vectors one may
  /// be left if they are all.
  unsigned inner = 0;
  int64_t depth = 1, step = 0;
  /// Elements between neighbours along each loop, in the left factor, and
  /// where its first element is.
  llvm::SmallVector<int64_t> strides;
  int64_t start = 0;
  int64_t height; ///< rows of a tile
  /// How many of the last tiles of a run have a row less. In tile registers,
  /// which have one shape, none has.
  int64_t lowTiles = 0;
  int64_t block;       ///< columns of a tile
  PairPacking packing; ///< of a right factor that is constant
  /// Another one is copied to a panel of one block of columns where it is used;
  /// its strides, and whether its pairs are neighbours in memory: else its
  /// columns are.
  bool panel = false;
  llvm::SmallVector<int64_t> rightStrides;
  int64_t rightStart = 0;
  bool hasPairs = false;
  /// Whether the factors are f32, and split into sums of bf16
  /// (codegen/cpu/SplitTiles.h). The run has all rows whose number is known,
  /// at whatever distances.
  bool split = false;
};

/// How `root` is computed by what `unit` has; null when that does not apply or
/// is not worth it, beside what `vectors` do.
std::optional<DotPlan> planDots(Kernel &kernel, mlir::linalg::GenericOp root,
                                DotUnit unit, const VectorUnit &vectors);

/// Emits `root` as `plan` says, and `outputs`, which follow from it. Says
/// whether threads share the columns.
bool emitDots(Kernel &kernel, mlir::linalg::GenericOp root, const DotPlan &plan,
              llvm::ArrayRef<Output> outputs);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_DOTS_H
