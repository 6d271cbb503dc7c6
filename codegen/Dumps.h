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

/// Writes the IR after each pass that is asked for to a numbered file
/// `007-pass-name[.function].mlir`, weights elided.
class DumpAfterPass : public mlir::PassInstrumentation {
public:
  /// `pass` is a pass argument or "all".
  DumpAfterPass(std::string pass, std::string directory,
                std::atomic<unsigned> &counter)
      : pass(std::move(pass)), directory(std::move(directory)),
        counter(counter) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  std::string pass, directory;
  std::atomic<unsigned> &counter; // numbers go on from stage to stage
};

} // namespace keratin

#endif // KERATIN_CODEGEN_DUMPS_H
