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

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_ROWEMITTER_H
