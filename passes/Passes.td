//===- Passes.td - the passes and their documentation -----*- tablegen -*-===//
#ifndef KERATIN_PASSES_TD
#define KERATIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernels : Pass<"ktn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Partition the function into kernels";
  let description = [{
    Turns each function at the `linalg` stage into calls of private functions
    with the attribute `ktn.kernel`, which compute, and views, loops and sizes,
    which do not. With `fuse` a kernel holds a root (a product, a window, a
    reduction) with the elementwise ops that can share its loops, or all ops over one row
    (softmax, layer normalisation); without it each op is a kernel. Kernels of the same
    structure are one function, named after the layer that came first.

    Requires: `ktn-lower-to-linalg`.
  }];
  let options = [Option<"fuse", "fuse", "bool", /*default=*/"true",
                        "compute several ops in one kernel">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PlanMemory : Pass<"ktn-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every buffer a place in the arena";
  let description = [{
    Rewrites the function that calls kernels, which already take memrefs, to
    take bytes: weights, arena, batch, inputs and outputs (docs/ARCHITECTURE.md,
    stage `loops`). Buffers whose lives do not overlap share bytes of the
    arena: first fit in the order of size. A batch that is not known scales all
    offsets that depend on it.

    Requires: `ktn-form-kernels` and a pass that emits the kernels on memrefs.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def ExpandMath : Pass<"ktn-expand-math"> {
  let summary = "Expand elementary functions to plain arithmetic";
  let description = [{
    Rewrites `math.exp`, `expm1`, `log`, `log1p`, `tanh`, `erf`, `sin`, `cos`,
    `powf` and `fpowi` and `arith.remf`, on scalars and on vectors of any width, to
    polynomials in `arith` and `math.fma` (passes/VectorMath.h states the
    errors), so that the object needs no libm. f16 and bf16 are computed in f32. A
    `math.exp` with the attribute `ktn.flush` has no positive argument and may
    give 0 where the result is subnormal. Any other function that would become a call
    is an error reported at that op.

    Requires: loops; vectors have their final width.
  }];
  let options = [
    Option<"hasFma", "has-fma", "bool", /*default=*/"true",
           "the target fuses multiply and add">,
    Option<"hasRounding", "has-rounding", "bool", /*default=*/"true",
           "the target has floor, ceil, trunc and round to even">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // KERATIN_PASSES_TD
