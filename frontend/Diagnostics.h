//===- Diagnostics.h - MLIR's diagnostics as error messages -----*- C++ -*-===//
#ifndef KERATIN_FRONTEND_DIAGNOSTICS_H
#define KERATIN_FRONTEND_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace keratin::backend {

/// Collects the diagnostics of a context while it lives.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext &context);
  /// The first error with its notes and layer in one line; `fallback` without
  /// one.
  std::string message(llvm::StringRef fallback) const;
  /// The same of one op, which is called `subject`.
  std::string message(llvm::StringRef fallback, llvm::StringRef mnemonic,
                      llvm::StringRef subject) const;

private:
  std::vector<std::string> errors;
  std::string layer;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_DIAGNOSTICS_H
