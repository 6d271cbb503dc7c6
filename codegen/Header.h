//===- Header.h - the typed C header of a model -----------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_HEADER_H
#define KERATIN_CODEGEN_HEADER_H

#include "codegen/Signature.h"

namespace keratin {

/// What the header says beside the signature.
struct HeaderOptions {
  std::string name;   ///< prefix of the symbols
  std::string target; ///< for people
  bool externalWeights = false;
};

/// The text of NAME.h: self-contained C11 and C++.
std::string makeHeader(const ModelSignature &model,
                       const HeaderOptions &options);

/// `names` as C parameter names: identifiers, no keywords of C or C++,
/// different from each other and from the words that the header uses itself.
std::vector<std::string> parameterNames(llvm::ArrayRef<std::string> names);

} // namespace keratin

#endif // KERATIN_CODEGEN_HEADER_H
