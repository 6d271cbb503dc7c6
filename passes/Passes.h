//===- Passes.h - one pass a file, declared in Passes.td --------*- C++ -*-===//
#ifndef KERATIN_PASSES_PASSES_H
#define KERATIN_PASSES_PASSES_H

#include "passes/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
namespace LLVM {
class LLVMDialect;
}
namespace affine {
class AffineDialect;
}
namespace arith {
class ArithDialect;
}
namespace linalg {
class LinalgDialect;
}
namespace math {
class MathDialect;
}
namespace memref {
class MemRefDialect;
}
namespace scf {
class SCFDialect;
}
namespace tensor {
class TensorDialect;
}
namespace vector {
class VectorDialect;
}
} // namespace mlir

namespace keratin {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// `ktn-fold-constants` with the means to compute; null computes nothing.
std::unique_ptr<mlir::Pass> createFoldConstants(ConstantEvaluator evaluate);
} // namespace keratin

#endif // KERATIN_PASSES_PASSES_H
