//===- Weights.h - the constants of a model as one block of bytes -*- C++ -*-=//
#ifndef KERATIN_CODEGEN_WEIGHTS_H
#define KERATIN_CODEGEN_WEIGHTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace keratin {

/// Copies the elements, dense and row-major, to `out`: a byte for an i1. Fails
/// when the attribute holds no such data or `out` is of another size.
llvm::LogicalResult copyElements(mlir::ElementsAttr elements,
                                 llvm::MutableArrayRef<char> out);

/// The weights of a function at the stage `loops`, each at the offset that
/// `ktn.weights` gives it and packed as it says; `bytes` in all, aligned to
/// KTN_ALIGNMENT. `done` is told of the value of each entry that is placed.
/// Null, with a diagnostic, when an entry is not of its form.
std::unique_ptr<llvm::WritableMemoryBuffer>
collectWeights(mlir::func::FuncOp function, int64_t bytes,
               llvm::function_ref<void(mlir::ElementsAttr)> done = {});

} // namespace keratin

#endif // KERATIN_CODEGEN_WEIGHTS_H
