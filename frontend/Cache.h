//===- Cache.h - code that was compiled before ------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_CACHE_H
#define KERATIN_FRONTEND_CACHE_H

#include "codegen/Compile.h"

namespace keratin::backend {

/// Code in this process for the one public function of `module`: from memory,
/// from a file, or compiled now. Null, with a diagnostic, when it cannot be
/// compiled or loaded; such failures are not kept.
///
/// The code may have been made for another module that differs in names: those
/// in its descriptor say nothing of this one, unless options.profile.
std::shared_ptr<const LoadedCode>
compileCached(mlir::OwningOpRef<mlir::ModuleOp> module,
              const CompileOptions &options);

/// The files of cache_directory() as a store of pieces of code, which counts
/// what is found there; null where there is none.
std::shared_ptr<CodeStore> codeStore();

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_CACHE_H
