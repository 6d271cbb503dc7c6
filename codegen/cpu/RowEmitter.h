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
