//===- EmbeddedText.h - source files, as text -------------------*- C++ -*-===//
//
// The build makes EmbeddedText.cpp of them (codegen/CMakeLists.txt), so that
// headers and executables are generated without looking for installed files.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_EMBEDDEDTEXT_H
#define KERATIN_CODEGEN_EMBEDDEDTEXT_H

#include "llvm/ADT/StringRef.h"

namespace keratin {

extern const llvm::StringRef embeddedStatusHeader;  ///< keratin/status.h
extern const llvm::StringRef embeddedHooksHeader;   ///< keratin/hooks.h
extern const llvm::StringRef embeddedAbiHeader;     ///< keratin/abi.h
extern const llvm::StringRef embeddedDtypeHeader;   ///< keratin/dtype.h
extern const llvm::StringRef embeddedRuntimeHeader; ///< keratin/runtime.h
extern const llvm::StringRef embeddedPool;          ///< runtime/Pool.c
extern const llvm::StringRef embeddedCpus;          ///< runtime/Cpus.c
extern const llvm::StringRef embeddedCpusHeader;    ///< runtime/Cpus.h
extern const llvm::StringRef embeddedHash;          ///< runtime/Hash.c
extern const llvm::StringRef embeddedPages;         ///< runtime/Pages.c
extern const llvm::StringRef embeddedWeights;       ///< runtime/Weights.c
extern const llvm::StringRef embeddedMain;          ///< runtime/Main.c
extern const llvm::StringRef embeddedEmulation;     ///< codegen/Emulation.ll

} // namespace keratin

#endif // KERATIN_CODEGEN_EMBEDDEDTEXT_H
