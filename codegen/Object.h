//===- Object.h - from the LLVM dialect to machine code ---------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_OBJECT_H
#define KERATIN_CODEGEN_OBJECT_H

#include "codegen/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace keratin {

/// LLVM IR of a module of the LLVM dialect, for `target`. All but `entry` is
/// internal, the kernels that `entry` calls stay functions of their own.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::StringRef entry, const Target &target,
          llvm::LLVMContext &context);

/// Runs LLVM's optimiser. No loop becomes a call of anything but memcpy,
/// memmove and memset.
void optimizeCode(llvm::Module &module, const Target &target, bool optimize);

/// Machine code: an object file, or assembler text.
llvm::Error emitCode(llvm::Module &module, const Target &target,
                     llvm::CodeGenFileType fileType,
                     llvm::raw_pwrite_stream &stream);

/// Errors, naming it, when the object refers to a symbol that it does not
/// define and that is not memcpy, memmove or memset.
llvm::Error checkUndefinedSymbols(llvm::MemoryBufferRef object);

} // namespace keratin

#endif // KERATIN_CODEGEN_OBJECT_H
