//===- Diagnostics.cpp - MLIR's diagnostics as error messages -------------===//
#include "Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <algorithm>

using namespace mlir;

namespace keratin::backend {

/// The layer path that a location carries; empty without one.
static std::string layerOf(Location location) {
  std::string layer;
  location->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    layer = named.getName().str();
    return WalkResult::interrupt();
  });
  return layer;
}

/// "'ktn.add' op lhs has …" as "add: lhs has …", in one line.
static std::string plainText(const Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  llvm::StringRef rest = text;
  std::string plain;
  if (rest.consume_front("'ktn.")) {
    auto [mnemonic, message] = rest.split("' op ");
    plain = message.empty() ? text : (mnemonic + ": " + message).str();
  } else {
    plain = text;
  }
  std::replace(plain.begin(), plain.end(), '\n', ' ');
  return plain;
}

Diagnostics::Diagnostics(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return success();
        std::string text = plainText(diagnostic);
        for (Diagnostic &note : diagnostic.getNotes())
          // MLIR's own note shows the op, which users have not written.
          if (std::string told = plainText(note);
              !llvm::StringRef(told).starts_with("see current operation"))
            text += " (" + told + ")";
        if (errors.empty())
          layer = layerOf(diagnostic.getLocation());
        errors.push_back(std::move(text));
        return success();
      }) {}

std::string Diagnostics::message(llvm::StringRef fallback) const {
  std::string text = errors.empty() ? fallback.str() : errors.front();
  // Ops outside of any layer have their own name as location.
  if (layer.empty() || llvm::StringRef(text).starts_with(layer + ": "))
    return text;
  return layer + ": " + text;
}

std::string Diagnostics::message(llvm::StringRef fallback,
                                 llvm::StringRef mnemonic,
                                 llvm::StringRef subject) const {
  std::string text = errors.empty() ? fallback.str() : errors.front();
  llvm::StringRef rest = text;
  rest.consume_front((mnemonic + ": ").str());
  std::string named = (subject + ": " + rest).str();
  return layer.empty() || layer == mnemonic ? named : layer + ": " + named;
}

} // namespace keratin::backend
