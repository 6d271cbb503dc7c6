//===- CopyEmitter.h - loops that compute the elements of a box -*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_COPYEMITTER_H
#define KERATIN_CODEGEN_CPU_COPYEMITTER_H

#include "codegen/cpu/TileEmitter.h"

namespace keratin {

/// Part of a destination; its sizes are values of the new function.
struct Box {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
};

/// Emits the loops that store the elements of `copies`, all of one shape, to
/// `box` of their destinations; nothing for an empty box. `axis` is the one
/// that other parts of a whole are shared along.
void emitBox(Kernel &kernel, const Box &box, llvm::ArrayRef<Copy> copies,
             const VectorUnit &unit,
             std::optional<unsigned> axis = std::nullopt);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_COPYEMITTER_H
