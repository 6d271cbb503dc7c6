//===- CpuPasses.h - kernels become CPU loops -------------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_CPUPASSES_H
#define KERATIN_CODEGEN_CPU_CPUPASSES_H

#include "passes/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace keratin {
#define GEN_PASS_DECL
#include "codegen/cpu/CpuPasses.h.inc"

/// Appends the emitter that `options` ask for: plain loops at -O0, else tiles.
/// What PipelineOptions::emitKernels is on CPUs.
void addCpuEmitter(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Makes the passes of this folder known to keratin-opt.
void registerCpuPasses();
} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_CPUPASSES_H
