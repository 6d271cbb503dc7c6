//===- Bands.h - loops that are functions of their own ----------*- C++ -*-===//
#ifndef KERATIN_PASSES_BANDS_H
#define KERATIN_PASSES_BANDS_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace keratin {

/// Bytes between kernels from which on they go by bands: less than that is in a
/// second cache anyway.
inline constexpr int64_t largeBytesBetween = 3 << 19;

/// On a loop whose turns compute bands of rows: a dictionary of `pieces`, how
/// many of them may be done at the same time, each in buffers of its own, and
/// for the table of kernels `name`, `flops` and `bytes`.
inline constexpr llvm::StringLiteral bandsAttr = "ktn.bands";

/// On a call in such a loop: a dictionary (BandStart) that says where a turn
/// begins anew. In others what the call makes is there already, from the turn
/// before: where it belongs, as nothing else writes to it, or farther back.
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

/// A turn begins anew where a thread or an image does, and where the rows that
/// it shares with the one before are not so far apart in their buffers that
/// they can be moved.
struct BandStart {
  int64_t bands = 0; ///< of an image; 0 where there is one image
  /// Leads from the number of a band to its first row, the last kernel first;
  /// nothing where none are shared.
  llvm::SmallVector<FirstRow> steps;
  int64_t apart = 0; ///< fewest rows from the first of a turn to the next
  int64_t moved = 0; ///< rows in place of the call, from what it makes on

  mlir::DictionaryAttr toAttr(mlir::OpBuilder &b) const;
  /// Nothing where that is no such dictionary.
  static std::optional<BandStart> of(mlir::DictionaryAttr fields);
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
