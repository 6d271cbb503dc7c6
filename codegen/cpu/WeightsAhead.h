//===- WeightsAhead.h - weights that a kernel asks for ahead ----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_WEIGHTSAHEAD_H
#define KERATIN_CODEGEN_CPU_WEIGHTSAHEAD_H

#include "codegen/cpu/Kernel.h"

#include "llvm/ADT/StringMap.h"

namespace keratin {

/// What a kernel asks for while it multiplies: `bytes` from `from` on of the
/// weights of a later kernel, argument `argument` of `reader`.
struct WeightsAhead {
  mlir::Value weights;
  std::string reader;
  unsigned argument;
  int64_t from, bytes;
};

/// The weights that one row meets, each of them once, and that no near cache
/// holds, by the names of the kernels in front that have time to ask for them.
/// Nothing else could hide how long memory takes to bring them. `weights24`:
/// those of f32 will have 24 bits. Kernels are on tensors yet.
llvm::StringMap<WeightsAhead> findWeightsAhead(mlir::ModuleOp module,
                                               bool weights24);

/// Gives what kernels have asked for the form in which it is read. All kernels
/// are on memrefs.
void typeWeightsAhead(mlir::ModuleOp module,
                      const llvm::StringMap<WeightsAhead> &ahead);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WEIGHTSAHEAD_H
