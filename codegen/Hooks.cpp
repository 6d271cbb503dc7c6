//===- Hooks.cpp - weak defaults of what programs may replace -------------===//
#include "codegen/Hooks.h"

#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace keratin {

static Function *hook(Module &module, StringRef name, Type *result,
                      ArrayRef<Type *> parameters) {
  auto *type = FunctionType::get(result, parameters, /*isVarArg=*/false);
  return cast<Function>(module.getOrInsertFunction(name, type).getCallee());
}

Function *parallelForHook(Module &module) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  return hook(module, "ktn_parallel_for", Type::getVoidTy(context),
              {pointer, pointer, Type::getInt64Ty(context)});
}

static Function *allocateHook(Module &module) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  Type *size = module.getDataLayout().getIntPtrType(context);
  return hook(module, "ktn_allocate", pointer, {size, size, pointer});
}

static Function *releaseHook(Module &module) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  return hook(module, "ktn_release", Type::getVoidTy(context),
              {pointer, pointer});
}

Function *errorHook(Module &module) {
  LLVMContext &context = module.getContext();
  return hook(module, "ktn_error", Type::getVoidTy(context),
              {PointerType::get(context, 0), Type::getInt32Ty(context)});
}

/// Makes the body of a hook of what `emit` leaves. Weak and visible: one
/// definition serves all models of a program, and that of the program wins.
static void define(Function *function,
                   function_ref<void(IRBuilder<> &b)> emit) {
  function->setLinkage(GlobalValue::WeakAnyLinkage);
  function->addFnAttr(Attribute::NoUnwind);
  IRBuilder<> b(BasicBlock::Create(function->getContext(), "start", function));
  emit(b);
}

void defineHooks(Module &module) {
  LLVMContext &context = module.getContext();
  Type *none = Type::getVoidTy(context),
       *pointer = PointerType::get(context, 0);
  Type *size = module.getDataLayout().getIntPtrType(context);
  Type *count = Type::getInt64Ty(context);

  Function *parallelFor = parallelForHook(module);
  define(parallelFor, [&](IRBuilder<> &b) {
    b.CreateCall(
        FunctionType::get(none, {pointer, count, count}, false),
        parallelFor->getArg(0),
        {parallelFor->getArg(1), b.getInt64(0), parallelFor->getArg(2)});
    b.CreateRetVoid();
  });
  Function *allocate = allocateHook(module);
  define(allocate, [&](IRBuilder<> &b) {
    b.CreateRet(b.CreateCall(FunctionType::get(pointer, {size, size}, false),
                             allocate->getArg(2),
                             {allocate->getArg(0), allocate->getArg(1)}));
  });
  Function *release = releaseHook(module);
  define(release, [&](IRBuilder<> &b) {
    b.CreateCall(FunctionType::get(none, {pointer}, false), release->getArg(1),
                 {release->getArg(0)});
    b.CreateRetVoid();
  });
  define(errorHook(module), [](IRBuilder<> &b) { b.CreateRetVoid(); });
}

} // namespace keratin
