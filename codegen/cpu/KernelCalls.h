//===- KernelCalls.h - calls follow their kernels to memrefs ----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_KERNELCALLS_H
#define KERATIN_CODEGEN_CPU_KERNELCALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace keratin {

/// Rewrites each call of a kernel that now takes memrefs: operands are cast to
/// memrefs, a result is its destination cast back to a tensor. The casts are
/// what `ktn-plan-memory` gives places to.
void adaptKernelCalls(mlir::ModuleOp module);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_KERNELCALLS_H
