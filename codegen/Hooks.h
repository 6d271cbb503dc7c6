//===- Hooks.h - weak defaults of what programs may replace -----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_HOOKS_H
#define KERATIN_CODEGEN_HOOKS_H

#include "llvm/IR/Module.h"

namespace keratin {

/// The functions of keratin/hooks.h in `module`, declared at the first call.
llvm::Function *parallelForHook(llvm::Module &module);
llvm::Function *errorHook(llvm::Module &module);

/// Defines all of keratin/hooks.h weakly in `module`, with the defaults told
/// there. They refer to nothing.
void defineHooks(llvm::Module &module);

} // namespace keratin

#endif // KERATIN_CODEGEN_HOOKS_H
