//===- Bands.h - loops that are functions of their own ----------*- C++ -*-===//
#ifndef KERATIN_PASSES_BANDS_H
#define KERATIN_PASSES_BANDS_H

#include "llvm/ADT/StringRef.h"

namespace keratin {

/// On a loop whose turns compute bands of rows: a dictionary of `pieces`, how
/// many of them may be done at the same time, each in buffers of its own, and
/// for the table of kernels `name`, `flops` and `bytes`.
inline constexpr llvm::StringLiteral bandsAttr = "ktn.bands";

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
