//===- PlainLoops.h - kernels as scalar loops -------------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_PLAINLOOPS_H
#define KERATIN_CODEGEN_CPU_PLAINLOOPS_H

#include "codegen/cpu/Kernel.h"

namespace keratin {

/// Emits the body of `kernel` as scalar loops; any kernel will do. A problem
/// is a diagnostic at the op that is outside the form of a kernel.
llvm::LogicalResult emitPlainLoops(Kernel &kernel);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PLAINLOOPS_H
