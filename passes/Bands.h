//===- Bands.h - loops over bands of rows -----------------------*- C++ -*-===//
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

} // namespace keratin

#endif // KERATIN_PASSES_BANDS_H
