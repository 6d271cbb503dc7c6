//===- Settings.h - settings of the API as options of the compiler -*-C++-*-==//
#ifndef KERATIN_FRONTEND_SETTINGS_H
#define KERATIN_FRONTEND_SETTINGS_H

#include "codegen/Compile.h"
#include "keratin/function.h"

namespace keratin::backend {

/// A C identifier like `name`.
std::string identifier(llvm::StringRef name);

/// The options that `settings` stand for, by the name `name` or one like it.
/// Throws Error for a value that is not among the allowed ones.
CompileOptions compileOptions(const CompileSettings &settings,
                              llvm::StringRef name);

/// The same for what is written to PREFIX.o and so on: the name is that of
/// `settings`, else one like the file's, else like `name` where `prefix` is
/// empty or "-". Shapes of inputs are left to the caller.
CompileOptions compileOptions(const SaveOptions &settings,
                              const std::string &prefix, llvm::StringRef name);

/// Throws Error, "CALLER: …", for a value of `settings` that is not among the
/// allowed ones.
void checkSettings(const std::string &caller, const CompileSettings &settings);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_SETTINGS_H
