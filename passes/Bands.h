//===- Bands.h - loops that are functions of their own ----------*- C++ -*-===//
#ifndef KERATIN_PASSES_BANDS_H
#define KERATIN_PASSES_BANDS_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace keratin {

/// On a loop whose turns compute bands of rows: a dictionary of `pieces`, how
/// many of them may be done at the same time, each in buffers of its own, and
/// for the table of kernels `name`, `flops` and `bytes`.
inline constexpr llvm::StringLiteral bandsAttr = "ktn.bands";

/// On a call in such a loop: a dictionary that says what is there already in a
/// turn, unless that begins a piece or an image: what the call makes, which
/// nothing else writes to, or the `rows` in it that the turn before has
/// computed (KeptRows).
inline constexpr llvm::StringLiteral startAttr = "ktn.start";

/// The first row that a kernel of a band computes, from the first one of the
/// kernel behind it, which reads from `factor` times that on. With a border it
/// is `low` rows before, and from 0 to `most`.
struct FirstRow {
  int64_t factor = 1, low = 0;
  std::optional<int64_t> most;

  mlir::Value read(mlir::OpBuilder &b, mlir::Location loc,
                   mlir::Value behind) const;
  mlir::Value made(mlir::OpBuilder &b, mlir::Location loc,
                   mlir::Value read) const;
};

/// Rows that a turn finds farther back in the buffer of the turn before.
struct KeptRows {
  int64_t bands = 0; ///< of an image; 0 where there is one image
  int64_t rows = 0;  ///< that a call makes, all of which are moved
  int64_t apart = 0; ///< fewest rows from a turn to the next for that
  /// Leads from the number of a band to its first row, the last kernel first.
  llvm::SmallVector<FirstRow> steps;

  mlir::DictionaryAttr toAttr(mlir::OpBuilder &b) const;
  /// Nothing where that is no such dictionary.
  static std::optional<KeptRows> of(mlir::DictionaryAttr fields);
};

/// On an argument of a function of bands: bytes that another function has,
/// without their number.
inline constexpr llvm::StringLiteral basesAttr = "ktn.bases";

/// On a loop over steps whose `rows` threads share, each with all turns for its
/// own: a dictionary of these, `parts`, how many there may be, the `unit`, of
/// whose multiples their first rows are, and for the table of kernels `name`,
/// `flops` and `bytes`. Its calls of kernels have `begin`, `end` and `count` as
/// their last arguments: part p of count begins with row
/// `ceil(rows / unit) * p / count * unit`.
inline constexpr llvm::StringLiteral sharedRowsAttr = "ktn.shared_rows";

} // namespace keratin

#endif // KERATIN_PASSES_BANDS_H
