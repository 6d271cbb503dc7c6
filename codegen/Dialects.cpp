//===- Dialects.cpp - what parsing and compiling need ---------------------===//
#include "codegen/Dialects.h"
#include "codegen/Compile.h"
#include "ir/Ktn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace keratin {

void registerDialects(DialectRegistry &registry) {
  // Also the interfaces that dialects implement for each other; what is not
  // used is not loaded.
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registry.insert<ktn::KtnDialect>();
  registerPatternStore(registry);
  registerLlvmPatterns(registry);
}

void loadDialects(MLIRContext *context) {
  static const DialectRegistry &registry = []() -> const DialectRegistry & {
    auto &all = *new DialectRegistry; // some hundred names, asked for often
    registerDialects(all);
    return all;
  }();
  context->appendDialectRegistry(registry);
  context->loadDialect<
      ktn::KtnDialect, affine::AffineDialect, arith::ArithDialect,
      cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
      LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
      scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect>();
}

} // namespace keratin
