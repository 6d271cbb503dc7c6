//===- KernelCalls.h - calls follow their kernels to memrefs ----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_KERNELCALLS_H
#define KERATIN_CODEGEN_CPU_KERNELCALLS_H

#include "codegen/cpu/WeightsAhead.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LogicalResult.h"

namespace keratin {

/// For each kernel how many parts its largest call is worth: 1 where the work
/// is done before another thread has begun. A call of unknown batch may be
/// worth any number.
llvm::StringMap<int64_t> mostPartsOfKernels(mlir::ModuleOp module);

/// How many parts all turns of `calls`, of known work, are worth together.
int64_t partsOfAll(llvm::ArrayRef<mlir::func::CallOp> calls);

/// Whether all calls of kernels in `module`, at the stage `kernels`, take less
/// than some 100 microseconds of one core together. Not so of a call of unknown
/// batch.
bool hasLittleWork(mlir::ModuleOp module);

/// Rewrites each call of a kernel that now takes memrefs: operands are cast to
/// memrefs, a result is its destination cast back to a tensor. The casts are
/// what `ktn-plan-memory` gives places to. A kernel that can be done in parts
/// is asked for all of them. A destination that is no `tensor.empty` is an
/// error. `ahead` has what kernels ask for.
llvm::LogicalResult
adaptKernelCalls(mlir::ModuleOp module,
                 const llvm::StringMap<WeightsAhead> &ahead = {});

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_KERNELCALLS_H
