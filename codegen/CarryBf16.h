//===- CarryBf16.h - vectors of bf16 between blocks -------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CARRYBF16_H
#define KERATIN_CODEGEN_CARRYBF16_H

#include "llvm/IR/Module.h"

namespace keratin {

/// Lets vectors of bf16 that are parts of a register, such as four, be integers
/// from one basic block to another. For x86 LLVM would part them into numbers,
/// widen these to f32, and call a library to round them again. Those that are
/// registers and one number more, such as 25, are integers where they only
/// move: LLVM ends the process over that number. To be done last: the optimiser
/// takes conversions of bits for nothing.
void carryBf16AsIntegers(llvm::Module &module);

} // namespace keratin

#endif // KERATIN_CODEGEN_CARRYBF16_H
