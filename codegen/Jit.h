//===- Jit.h - objects loaded into this process -----------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_JIT_H
#define KERATIN_CODEGEN_JIT_H

#include "keratin/abi.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace keratin {

/// The code of one object, as long as this lives.
class LoadedObject {
public:
  /// Loads the object of the model `name`, whose weights are outside of it.
  static llvm::Expected<std::unique_ptr<LoadedObject>>
  load(std::unique_ptr<llvm::MemoryBuffer> object, llvm::StringRef name,
       const void *weights);
  ~LoadedObject();

  const ktn_model_info_t &info() const { return descriptor; }

private:
  LoadedObject();
  std::unique_ptr<llvm::orc::LLJIT> jit;
  ktn_model_info_t descriptor = {};
};

} // namespace keratin

#endif // KERATIN_CODEGEN_JIT_H
