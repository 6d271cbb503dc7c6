//===- Tasks.h - large kernels on several threads ---------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_TASKS_H
#define KERATIN_CODEGEN_TASKS_H

#include "llvm/IR/Module.h"

namespace keratin {

/// Lets the calls that `entry` makes of kernels with parts
/// (codegen/cpu/Kernel.h) hand these to ktn_parallel_for. A call of one part
/// stays a call.
void callKernelsInParts(llvm::Function &entry);

} // namespace keratin

#endif // KERATIN_CODEGEN_TASKS_H
