//===- Descriptor.h - what an artefact says of itself -----------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_DESCRIPTOR_H
#define KERATIN_CODEGEN_DESCRIPTOR_H

#include "codegen/Artefact.h"

namespace keratin {

/// What a descriptor refers to besides tables of its own.
struct DescriptorLinks {
  llvm::Constant *weights;
  llvm::Function *run;
  llvm::Function *setProfile; ///< may be null
};

/// Adds the constant `name`, the ktn_model_info_t (keratin/abi.h) of a function
/// of `model`. Names of its tables begin with `prefix`.
llvm::GlobalVariable *
buildDescriptor(llvm::Module &module, const ModelSignature &model,
                const Signature &signature, const ArtefactOptions &options,
                const llvm::Twine &prefix, const llvm::Twine &name,
                const DescriptorLinks &links);

} // namespace keratin

#endif // KERATIN_CODEGEN_DESCRIPTOR_H
