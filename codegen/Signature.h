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

/// A variable that lives in the memory of each instance of a model.
struct StateVariable {
  TensorSignature tensor;
  int64_t offset; ///< in that memory, a multiple of KTN_ALIGNMENT
};

/// One function of a model. Read from the attributes of the function at the
/// stage `loops`, told in docs/ARCHITECTURE.md.
struct Signature {
  std::string function; ///< its symbol
  std::vector<TensorSignature> inputs, outputs;
  std::vector<KernelRow> kernels;
  int64_t arenaBytes[2] = {0, 0}; ///< fixed + per batch; never 0
  /// What buffers that are in use at the same time take, likewise: no arena
  /// could be smaller. 0 when nobody has said so.
  int64_t arenaLeast[2] = {0, 0};
  int64_t weightsBytes = 0;
  int64_t weightsOffset = 0; ///< in the weights of the model
  int64_t batch = -1;        ///< the only one accepted, or -1

  std::string entry = "predict"; ///< the symbol is NAME_predict
  /// The variable of the state that an input or output is, or -1. Empty: all
  /// are the caller's.
  std::vector<int> inputState, outputState;
  /// The input that an output may be written over, or -1. Empty: none.
  std::vector<int> inPlace;
  /// Bytes behind the arena for the new values of variables that are not
  /// written in place, until all are computed.
  int64_t updateBytes = 0;

  int stateOfInput(size_t index) const {
    return inputState.empty() ? -1 : inputState[index];
  }
  int stateOfOutput(size_t index) const {
    return outputState.empty() ? -1 : outputState[index];
  }
  bool updatesState() const;
  /// Whether an output is the new value of a variable, and the code writes it
  /// over the old one.
  bool updatesInPlace(size_t output) const;
  /// Inputs or outputs that are the caller's.
  std::vector<TensorSignature> callerInputs() const;
  std::vector<TensorSignature> callerOutputs() const;
  /// The largest batch for which no size overflows.
  int64_t maxBatch() const;
};

/// A model: functions that share weights and state.
struct ModelSignature {
  std::vector<Signature> functions; ///< at least one
  /// CPUs that there is code for, from the least to the most capable; empty
  /// when there is one.
  std::vector<std::string> variants;
  std::vector<StateVariable> state;
  int64_t stateBytes = 0;   ///< of all variables, a multiple of KTN_ALIGNMENT
  int64_t initialState = 0; ///< where the weights hold its first values
  uint64_t stateHash = 0;   ///< of names, shapes and types of the state
  int64_t weightsBytes = 0;
  uint64_t weightsHash = 0;

  bool hasState() const { return !state.empty(); }
};

/// Type and shape of a tensor; a diagnostic at `loc` for what an artefact
/// cannot take.
llvm::FailureOr<TensorSignature> tensorSignature(mlir::Location loc,
                                                 llvm::StringRef name,
                                                 mlir::RankedTensorType type);

/// The function that the module is compiled for: the public one with a body.
/// Null, with a diagnostic, when there is none or more than one.
mlir::func::FuncOp findFunction(mlir::ModuleOp module);

/// Diagnostics when an attribute is missing or is not of its form.
llvm::FailureOr<Signature> readSignature(mlir::func::FuncOp function);

} // namespace keratin

#endif // KERATIN_CODEGEN_SIGNATURE_H
