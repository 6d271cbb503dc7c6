//===- KernelInfo.h - kernels as the API tells of them ----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_KERNELINFO_H
#define KERATIN_FRONTEND_KERNELINFO_H

#include "codegen/Compile.h"
#include "keratin/function.h"

namespace keratin::backend {

/// The kernels of `model`, in the order of their calls.
std::vector<KernelInfo> kernelsOf(const CompiledModel &model);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_KERNELINFO_H
