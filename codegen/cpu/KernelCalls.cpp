//===- KernelCalls.cpp - calls follow their kernels to memrefs ------------===//
#include "codegen/cpu/KernelCalls.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace keratin {

static void adaptCall(func::CallOp call, func::FuncOp kernel) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  auto cast = [&](Value value, Type type) -> Value {
    return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
  };
  SmallVector<Value> operands;
  for (auto [operand, type] :
       llvm::zip_equal(call.getOperands(), kernel.getArgumentTypes()))
    operands.push_back(operand.getType() == type ? operand
                                                 : cast(operand, type));
  auto adapted = func::CallOp::create(b, loc, kernel, operands);
  adapted->setDiscardableAttrs(call->getDiscardableAttrDictionary());

  ArrayRef<Value> destinations =
      ArrayRef(operands).take_back(call.getNumResults());
  for (auto [result, destination] :
       llvm::zip_equal(call.getResults(), destinations))
    result.replaceAllUsesWith(cast(destination, result.getType()));
  call.erase();
}

void adaptKernelCalls(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<func::CallOp> calls;
  module.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    if (kernel && kernel->hasAttr("ktn.kernel") &&
        kernel.getNumResults() != call.getNumResults())
      adaptCall(call, kernel);
  }
}

} // namespace keratin
