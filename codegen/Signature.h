//===- Signature.h - what the artefact knows of the compiled function -----===//
#ifndef KERATIN_CODEGEN_SIGNATURE_H
#define KERATIN_CODEGEN_SIGNATURE_H

#include "codegen/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace keratin {

/// One input or output.
struct TensorSignature {
  std::string name;
  ktn_dtype_t dtype;
  std::vector<int64_t> shape; ///< -1 is the batch

  /// Bytes for one unit of the batch when it has one, in all otherwise.
  int64_t unitBytes() const;
  bool hasBatch() const;
};

/// Read from the attributes of the function at the stage `loops`, told in
/// docs/ARCHITECTURE.md.
struct Signature {
  std::string function; ///< its symbol
  std::vector<TensorSignature> inputs, outputs;
  std::vector<KernelRow> kernels;
  int64_t arenaBytes[2] = {0, 0}; ///< fixed + per batch; never 0
  int64_t weightsBytes = 0;
  uint64_t weightsHash = 0;
  int64_t batch = -1; ///< the only one accepted, or -1

  /// The largest batch for which no size overflows.
  int64_t maxBatch() const;
};

/// The function that the module is compiled for: the public one with a body.
/// Null, with a diagnostic, when there is none or more than one.
mlir::func::FuncOp findFunction(mlir::ModuleOp module);

/// Diagnostics when an attribute is missing or is not of its form.
llvm::FailureOr<Signature> readSignature(mlir::func::FuncOp function);

} // namespace keratin

#endif // KERATIN_CODEGEN_SIGNATURE_H
