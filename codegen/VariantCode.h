//===- VariantCode.h - code that finds out what machine it runs on -*- C++ -*-//
#ifndef KERATIN_CODEGEN_VARIANTCODE_H
#define KERATIN_CODEGEN_VARIANTCODE_H

#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace keratin {

/// Whether a function can be compiled for several of them, of which programs
/// choose: an x86-64 level.
bool canBeVariant(llvm::StringRef cpu);

/// Adds `int32_t name(void)`: the index of the last of `cpus`, each of which
/// can be a variant, whose instructions this machine has and its system lets
/// programs use; -1 when it has those of none. Asks the CPU once, and depends
/// on nothing.
llvm::Function *buildVariantFunction(llvm::Module &module,
                                     llvm::ArrayRef<std::string> cpus,
                                     const llvm::Twine &name);

} // namespace keratin

#endif // KERATIN_CODEGEN_VARIANTCODE_H
