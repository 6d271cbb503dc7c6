//===- Evaluate.h - constant expressions, compiled and run ------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_EVALUATE_H
#define KERATIN_CODEGEN_EVALUATE_H

#include "codegen/Compile.h"
#include "passes/Pipelines.h"

#include "llvm/ADT/StringSet.h"

namespace keratin {

/// Computes constants of one compilation, and knows which elements are its own:
/// those of a model may be gigabytes.
class FoldedConstants {
public:
  /// Of `options` it takes what is to be told of bytes that were read, and
  /// where code is kept.
  explicit FoldedConstants(const CompileOptions &options)
      : release(options.release), store(options.store) {}

  /// The ConstantEvaluator of Pipelines.h: compiles `@evaluate` for this
  /// machine, at -O0 but for tables of products, which would take seconds, and
  /// runs it on the elements where they are. Problems are
  /// diagnostics.
  llvm::FailureOr<llvm::SmallVector<mlir::ElementsAttr>>
  evaluate(mlir::ModuleOp module);

  /// Gives back the memory of all that was computed and is not in `used`.
  void keepOnly(llvm::ArrayRef<mlir::ElementsAttr> used);
  /// The elements of `value` will not be read again in this compilation.
  void giveBack(mlir::ElementsAttr value);

private:
  mlir::ElementsAttr keep(mlir::RankedTensorType type,
                          mlir::AsmResourceBlob blob);

  std::function<void(llvm::ArrayRef<char>)> release;
  std::shared_ptr<CodeStore> store;
  mlir::MLIRContext *context = nullptr; // of the keys
  llvm::StringSet<> keys;               // of the resources that are its own
};

/// An evaluator that calls `constants`.
ConstantEvaluator evaluatorOf(std::shared_ptr<FoldedConstants> constants);

} // namespace keratin

#endif // KERATIN_CODEGEN_EVALUATE_H
