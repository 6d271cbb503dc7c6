//===- Diagnostics.cpp - MLIR's diagnostics as error messages -------------===//
#include "Diagnostics.h"

#include "keratin/array.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

#include <algorithm>
#include <regex>

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

/// The element type of MLIR in Keras' words; itself when it is none.
static std::string dtypeWord(const std::string &type) {
  static const std::pair<const char *, const char *> words[] = {
      {"f16", "float16"}, {"bf16", "bfloat16"}, {"f32", "float32"},
      {"f64", "float64"}, {"i1", "bool"},       {"i8", "int8"},
      {"i16", "int16"},   {"i32", "int32"},     {"i64", "int64"},
      {"ui8", "uint8"}};
  for (auto [name, word] : words)
    if (type == name)
      return word;
  return type;
}

/// "?x3" or "?, 3" as "(None, 3)".
static std::string shapeWords(const std::string &extents) {
  static const std::regex extent("[0-9]+|[?]");
  std::vector<int64_t> shape;
  for (std::sregex_iterator it(extents.begin(), extents.end(), extent), end;
       it != end; ++it)
    shape.push_back(it->str() == "?" ? -1 : std::stoll(it->str()));
  return shapeName(shape);
}

/// Types, lists of extents and element types as Keras writes them.
static std::string inKerasWords(const std::string &text) {
  static const std::regex pattern(
      "'?tensor<((?:(?:[0-9]{1,18}|[?])x)*)([a-z]+[0-9]+)>'?"
      "|\\[((?:[0-9]{1,18}|[?])(?:, (?:[0-9]{1,18}|[?]))*)\\]"
      "|\\b(?:b?f|u?i)[0-9]+\\b");
  std::string result;
  auto from = text.begin();
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end;
       it != end; ++it) {
    result.append(from, (*it)[0].first);
    if ((*it)[2].matched)
      result += shapeWords((*it)[1]) + " " + dtypeWord((*it)[2]);
    else if ((*it)[3].matched)
      result += shapeWords((*it)[3]);
    else
      result += dtypeWord(it->str());
    from = (*it)[0].second;
  }
  return result.append(from, text.end());
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
  // Every tensor of a graph has a rank.
  static constexpr llvm::StringRef constraint = "must be ranked tensor of";
  if (size_t at = plain.find(constraint); at != std::string::npos)
    plain.replace(at, constraint.size(), "must be a tensor of");
  // A list in a file may be of any length; a message need not be, and
  // std::regex recurses along what it matches.
  constexpr size_t maxLength = 1000;
  if (plain.size() > maxLength)
    plain.replace(maxLength, std::string::npos, " …");
  return inKerasWords(plain);
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
