//===- Object.h - from the LLVM dialect to machine code ---------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_OBJECT_H
#define KERATIN_CODEGEN_OBJECT_H

#include "codegen/Target.h"
#include "codegen/Units.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace keratin {

/// LLVM IR of the unit `index`, whose LLVM dialect is `module`, for `target`.
/// The entry is the only function that is visible from outside, the kernels
/// that it calls stay functions of their own. Units may be translated at the
/// same time.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, const CodeUnits &units, unsigned index,
          const Target &target, llvm::LLVMContext &context);

/// Says in the attributes of `function` what machine it is compiled for.
void markFunction(llvm::Function &function, const Target &target);

/// How much LLVM does for the speed of code.
enum class Effort {
  Reference, ///< what -O0 is compiled with
  Little,    ///< what costs little time and matters to tiles: see `quick`
  Full
};

/// Runs LLVM's optimiser. No loop becomes a call of anything but memcpy,
/// memmove and memset.
void optimizeCode(llvm::Module &module, const Target &target, Effort effort);

/// Makes each function that is called in one place part of its caller, for code
/// of little effort: each function takes LLVM some hundred microseconds,
/// whatever is in it.
void joinFunctions(llvm::Module &module);

/// Machine code: an object file, or assembler text. A target serves one thread
/// at a time.
llvm::Error emitCode(llvm::Module &module, const Target &target,
                     llvm::CodeGenFileType fileType,
                     llvm::raw_pwrite_stream &stream);

/// Errors, naming it, when the object refers to a symbol that it does not
/// define and that is not memcpy, memmove or memset.
llvm::Error checkUndefinedSymbols(llvm::MemoryBufferRef object);

} // namespace keratin

#endif // KERATIN_CODEGEN_OBJECT_H
