//===- KernelForm.h - what a kernel may look like ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_KERNELFORM_H
#define KERATIN_CODEGEN_CPU_KERNELFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace keratin {

/// Whether `kernel` has the form of the stage `kernels` (docs/ARCHITECTURE.md),
/// so that emitters need not look. A diagnostic says what has not: somebody may
/// have written the kernel by hand.
llvm::LogicalResult verifyKernel(mlir::func::FuncOp kernel);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_KERNELFORM_H
