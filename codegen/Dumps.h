//===- Dumps.h - IR on its way to people ------------------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_DUMPS_H
#define KERATIN_CODEGEN_DUMPS_H

#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <string>

namespace keratin {

/// How IR is printed for people: large constants as `dense_resource<…>` names
/// or elided, no data.
mlir::OpPrintingFlags elidedFlags();

/// An error that lists the passes of `pm`, unless `pass` is one of them or
/// "all".
llvm::Error checkDumpedPass(llvm::StringRef pass, mlir::PassManager &pm);

/// Of all stages of a compilation: numbers go on from one to the next.
struct Dumps {
  std::atomic<unsigned> count = 0;
  std::atomic<bool> hasFailed = false; ///< one could not be written
};

/// Writes the IR after each pass that is asked for to a numbered file
/// `007-pass-name[.function].mlir`, weights elided. The first one that cannot
/// be written is a diagnostic.
class DumpAfterPass : public mlir::PassInstrumentation {
public:
  /// `pass` is a pass argument or "all".
  DumpAfterPass(std::string pass, std::string directory, Dumps &dumps)
      : pass(std::move(pass)), directory(std::move(directory)), dumps(dumps) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  std::string pass, directory;
  Dumps &dumps;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_DUMPS_H
