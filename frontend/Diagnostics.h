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
  /// The first error with its notes and layer in one line, `fallback` without
  /// one; `subject` is what the error is about, where it does not say so.
  std::string message(llvm::StringRef fallback,
                      llvm::StringRef subject = "") const;

private:
  std::vector<std::string> errors;
  std::string layer;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_DIAGNOSTICS_H
