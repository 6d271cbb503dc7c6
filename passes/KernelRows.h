//===- KernelRows.h - which rows a kernel reads and writes ------*- C++ -*-===//
#ifndef KERATIN_PASSES_KERNELROWS_H
#define KERATIN_PASSES_KERNELROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <optional>

namespace keratin {

/// For `count` rows of a result from `first` on, `factor * (count - 1) +
/// extent` rows of something that it is computed from, from `factor * first`
/// on.
struct RowWindow {
  int64_t factor = 1, extent = 1;

  int64_t count(int64_t rows) const { return factor * (rows - 1) + extent; }
  bool isSame() const { return factor == 1 && extent == 1; }
  bool operator==(const RowWindow &) const = default;
};

/// How a kernel reads a tensor when it computes rows of one image: one position
/// of the axis `batch`, the rows `window` of the axis `row`; all of an axis
/// that is neither. An axis that there is not is -1.
struct RowAccess {
  int64_t batch = -1, row = -1;
  RowWindow window;
  bool operator==(const RowAccess &) const = default;
};

/// A kernel with one result, of images of rows, axes 0 and 1, whose rows can be
/// computed by themselves.
class KernelRows {
public:
  /// Nothing for a kernel in which a row follows from all of an image, or that
  /// asks where it is.
  static std::optional<KernelRows> of(mlir::func::FuncOp kernel);

  mlir::func::FuncOp kernel() { return source; }
  /// Rows of the result that are computed, without a border.
  int64_t rows() { return core(1); }
  /// Rows of the border in front of them and behind; 0 where there is none.
  int64_t low() { return border ? border.getStaticLow()[1] : 0; }
  int64_t high() { return border ? border.getStaticHigh()[1] : 0; }
  bool hasBorder() { return bool(border); }
  /// How argument `number`, which is no destination, is read.
  const RowAccess &access(unsigned number) const { return accesses[number]; }
  /// Scalar operations for a row of one image; elementary functions count by
  /// the time they take.
  int64_t flopsOfRow() const { return flops; }

  /// The value of the border.
  mlir::Value borderValue() { return border.getConstantPaddingValue(); }

  /// The type of argument `number`, which may be the destination, of the kernel
  /// for `count` rows of one image. The border is around any rows, or only
  /// beside them.
  mlir::RankedTensorType typeOf(unsigned number, int64_t count,
                                bool onlyBeside = false);
  /// The kernel for `count` rows of one image, in no module yet.
  mlir::func::FuncOp clone(int64_t count, bool onlyBeside = false);

private:
  explicit KernelRows(mlir::func::FuncOp kernel) : source(kernel) {}

  int64_t core(unsigned axis);
  bool analyze();
  bool visit(mlir::linalg::GenericOp op);
  bool read(mlir::Value value, const RowAccess &access);
  bool isStatic();

  mlir::func::FuncOp source;
  mlir::tensor::PadOp border;
  llvm::SmallVector<RowAccess> accesses;
  llvm::SmallVector<bool> isRead;
  llvm::DenseMap<mlir::Value, RowWindow> windows; ///< of values within
  int64_t flops = 0;
};

} // namespace keratin

#endif // KERATIN_PASSES_KERNELROWS_H
