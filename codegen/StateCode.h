//===- StateCode.h - the state of a model as bytes --------------*- C++ -*-===//
//
// A file of state is a header and the state as it lies in memory: each variable
// at a multiple of KTN_ALIGNMENT, zeros between, little-endian.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_STATECODE_H
#define KERATIN_CODEGEN_STATECODE_H

#include "codegen/Signature.h"

#include "llvm/IR/Module.h"

namespace keratin {

/// What exported state begins with.
struct StateHeader {
  char magic[8];
  uint64_t version;
  uint64_t signatureHash; ///< ModelSignature::stateHash
  uint64_t stateBytes;
  uint64_t contentHash; ///< ktn_hash of the state
  uint64_t reserved[3];
};
static_assert(sizeof(StateHeader) == KTN_ALIGNMENT);

/// Adds `NAME_state_export` and `NAME_state_import` to the module of a model
/// with state. docs/LINKING.md describes them.
void addStateFunctions(llvm::Module &module, const ModelSignature &model,
                       llvm::StringRef name);

} // namespace keratin

#endif // KERATIN_CODEGEN_STATECODE_H
