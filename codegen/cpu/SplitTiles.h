//===- SplitTiles.h - products of f32 in tile registers ---------*- C++ -*-===//
//
// A number of f32 has 24 bits of significand, and is the sum of three of bf16
// with 8 each. Of the nine products of two such sums the six largest are added
// up, all of them exact: what is left out is less than 2^-22 of the product, as
// much as one sum of f32 is rounded by (Henry, Tang and Heinecke, "Leveraging
// the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations", ARITH 2019). Weights are split when they are packed, each part
// to the nearest number (codegen/cpu/PairPacking.h); the parts of rows, split
// where they are multiplied, are the bits of a number, 8 at a time.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_SPLITTILES_H
#define KERATIN_CODEGEN_CPU_SPLITTILES_H

#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/LaneReader.h"

namespace keratin {

/// Whether steps of a sum of `depth` elements would be mostly full.
bool fillsSplitSteps(int64_t depth);

/// Bytes of split rows that all calls of a kernel have together, if it is done
/// in more than two parts.
inline constexpr int64_t mostSplitBytes = 4 << 20;
/// `Kernel::addScratch` for so many numbers of bf16 in each call.
std::pair<mlir::Value, mlir::Value> addSplitScratch(Kernel &kernel,
                                                    int64_t elements);

/// `width` elements, and zeros behind them.
mlir::Value loadPadded(Kernel &kernel, mlir::Value memref, mlir::Value place,
                       mlir::Type element, int64_t width, int64_t padded);

/// Splits `elements` elements of f32, `splitDepth` at most, and zeros behind
/// them: the first part goes to `to` of the bf16 `split`, each other one
/// `apart` elements behind.
void splitStep(Kernel &kernel, mlir::Value memref, mlir::Value place,
               mlir::Value split, mlir::Value to, int64_t apart,
               int64_t elements);

/// The same for a row of `depth` elements, whose steps are `splitParts * apart`
/// apart.
void splitRow(Kernel &kernel, LaneReader &reader, mlir::Value memref,
              mlir::Value place, mlir::Value split, mlir::Value to,
              int64_t apart, int64_t depth);

/// One step of some tiles of rows, two at most, by some of columns. Loads take
/// the number of a tile and of a part, and a register.
struct SplitStep {
  int64_t rows, columns;
  llvm::function_ref<void(int64_t row, int64_t part, int64_t tile)> loadRow;
  llvm::function_ref<void(int64_t column, int64_t part, int64_t tile)>
      loadColumn;
  /// The register of the sums of both.
  llvm::function_ref<int64_t(int64_t row, int64_t column)> sums;
};
/// Adds up the products of parts in an order in which few tiles are loaded
/// again.
void addSplitDots(Kernel &kernel, const SplitStep &step);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_SPLITTILES_H
