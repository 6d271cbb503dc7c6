//===- EmitTiles.cpp - kernels as register tiles --------------------------===//
#include "codegen/cpu/CpuPasses.h"
#include "codegen/cpu/KernelCalls.h"
#include "codegen/cpu/PlainLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EMITTILES
#include "codegen/cpu/CpuPasses.h.inc"

namespace {
struct EmitTiles : impl::EmitTilesBase<EmitTiles> {
  using Base::Base;
  void runOnOperation() override {
    for (func::FuncOp func : kernelsOf(getOperation())) {
      if (failed(verifyKernel(func)))
        return signalPassFailure();
      Kernel kernel(func);
      if (failed(emitPlainLoops(kernel)))
        return signalPassFailure();
      kernel.finish();
    }
    adaptKernelCalls(getOperation());
  }
};
} // namespace

} // namespace keratin
