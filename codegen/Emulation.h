//===- Emulation.h - instructions that a machine lacks ----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_EMULATION_H
#define KERATIN_CODEGEN_EMULATION_H

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace keratin {

/// What code asks for by the name of an instruction, as that of AVX-512 does,
/// and `machine` lacks becomes a call of a function that computes it in other
/// ones, or, in inline assembly, those. All else LLVM makes of what there is: a
/// vector of 512 bits becomes two of 256.
void emulateMissing(llvm::Module &module, const llvm::TargetMachine &machine);

} // namespace keratin

#endif // KERATIN_CODEGEN_EMULATION_H
