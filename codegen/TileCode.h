//===- TileCode.h - code that asks the system for tile registers -*- C++ -*-==//
#ifndef KERATIN_CODEGEN_TILECODE_H
#define KERATIN_CODEGEN_TILECODE_H

#include "codegen/Signature.h"

#include "llvm/IR/Module.h"

namespace keratin {

/// Whether kernels of the model use the tile registers of AMX.
bool usesTiles(const ModelSignature &model);

/// Adds `int32_t name(void)`: 1 when this process may use tile registers, 0
/// when the machine has none or Linux refuses them. Linux gives them to a
/// process that asks, for all of its threads; without that the first use is
/// SIGILL. Asks once, and depends on nothing.
llvm::Function *buildTileFunction(llvm::Module &module,
                                  const llvm::Twine &name);

} // namespace keratin

#endif // KERATIN_CODEGEN_TILECODE_H
