//===- RowEmitter.h - kernels computed row by row ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_ROWEMITTER_H
#define KERATIN_CODEGEN_CPU_ROWEMITTER_H

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/TileSizes.h"

namespace keratin {

/// Emits a kernel of the form `rows`: generics that share their leading
/// parallel loops and reduce over, or broadcast along, the trailing ones.
/// False, with nothing emitted, for any other form.
bool emitRows(Kernel &kernel, const VectorUnit &unit);

/// Some rows of a panel, which is memory for a part of what rows follow from.
struct RowBlock {
  llvm::SmallVector<mlir::linalg::GenericOp> ops; ///< in order
  mlir::Value given;  ///< what they follow from, which the panel holds
  mlir::Value result; ///< the one that takes its place
  unsigned axis = 0;  ///< of both that the rows of the panel go along
  mlir::Value panel;  ///< rows from `from` on by their elements
  /// The rows, and where on the other leading axes they are.
  mlir::Value from, to;
  llvm::SmallVector<mlir::Value> around;
  /// Where along a row the panel starts, and how many elements it has of it;
  /// null and 0 for all of the row.
  mlir::Value first;
  int64_t count = 0;
  /// What there is one of in a row, with memory for the rows from `from` on:
  /// what is there before, and what of that kind is to be kept, written after
  /// all of it is computed.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> known, kept;
};

/// Whether `emitRowBlock` knows how to compute `block`, of which no places need
/// be known.
bool fitsRowBlock(Kernel &kernel, const RowBlock &block,
                  const VectorUnit &unit);
/// Emits the rows of `block` one after the other.
void emitRowBlock(Kernel &kernel, const RowBlock &block,
                  const VectorUnit &unit);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ROWEMITTER_H
