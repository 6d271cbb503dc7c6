//===- PairedPanels.h - factors of pairs that a call arranges ---*- C++ -*-===//
//
// Weights that are not known when code is compiled are packed by each call, as
// `packPaired` packs those that are: each column times a power of two, and what
// its sums begin with behind it. Rows of A whose elements are far apart are
// copied before they are multiplied.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_PAIREDPANELS_H
#define KERATIN_CODEGEN_CPU_PAIREDPANELS_H

#include "codegen/cpu/PairedTiles.h"

namespace keratin {

/// A matrix of f32 in memory.
struct MatrixPlace {
  mlir::Value elements; ///< a memref of one dimension
  int64_t first, ofRow, ofColumn;
};

class PairedPanels {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  /// Of sums of `depth` elements, and vectors of `lanes`.
  PairedPanels(Kernel &kernel, PairedTiles &pairs, int64_t depth,
               unsigned lanes)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), pairs(pairs),
        depth(depth), lanes(lanes) {}

  /// Packs the columns of `weights`, whose rows are elements of sums and which
  /// are neighbours along rows or along columns, from `column` on into panel
  /// number `panel` of `panels` (`packedType`): a vector of each width.
  void pack(const MatrixPlace &weights, Value column, Value panels, Value panel,
            llvm::ArrayRef<unsigned> widths);

  /// Copies `width` rows of A, of which those at one column are neighbours, to
  /// the same rows of `rows`, a matrix, from `row` on.
  void copyRows(const MatrixPlace &left, Value row, Value rows, unsigned width);

private:
  using Load = llvm::function_ref<Value(unsigned)>;

  mlir::VectorType vectorType(int64_t width) {
    return mlir::VectorType::get(width, b.getF32Type());
  }
  Value plus(Value value, int64_t offset) {
    return kernel.plus(value, kernel.index(offset));
  }
  Value at(const MatrixPlace &matrix, Value row, Value column);
  void ask(const MatrixPlace &matrix, Value row, Value column);
  Values square(unsigned lines, unsigned width, Load load);
  Values copyAndMeasure(const MatrixPlace &weights, Value column, Value panels,
                        Value panel, llvm::ArrayRef<unsigned> widths);
  void scale(Value panels, Value panel, llvm::ArrayRef<Value> factors,
             llvm::ArrayRef<Value> back);

  Kernel &kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  PairedTiles &pairs;
  int64_t depth;
  unsigned lanes;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIREDPANELS_H
