//===- TileCode.cpp - code that asks the system for tile registers --------===//
//
// arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), see
// Documentation/arch/x86/xstate.rst of Linux.
//
//===----------------------------------------------------------------------===//
#include "codegen/TileCode.h"

#include "passes/Pipelines.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace keratin {

bool usesTiles(const ModelSignature &model) {
  return any_of(model.functions, [](const Signature &function) {
    return any_of(function.kernels, [](const KernelRow &kernel) {
      return isInTileRegisters(kernel.op);
    });
  });
}

Function *buildTileFunction(Module &module, const Twine &name) {
  LLVMContext &context = module.getContext();
  IRBuilder<> b(context);
  Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  auto *function = Function::Create(FunctionType::get(i32, /*isVarArg=*/false),
                                    GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(Attribute::NoUnwind);
  // 0 is not asked yet, else one more than the answer, whoever writes it.
  auto *known = new GlobalVariable(module, i32, /*isConstant=*/false,
                                   GlobalValue::InternalLinkage, b.getInt32(0),
                                   name + "_known");
  auto *start = BasicBlock::Create(context, "start", function);
  auto *ask = BasicBlock::Create(context, "ask", function);
  auto *end = BasicBlock::Create(context, "end", function);
  b.SetInsertPoint(start);
  LoadInst *last = b.CreateAlignedLoad(i32, known, Align(4));
  last->setAtomic(AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateIsNull(last), ask, end);

  b.SetInsertPoint(ask);
  constexpr uint64_t archPrctl = 158, request = 0x1023, tileData = 18;
  auto *type = FunctionType::get(i64, {i64, i64, i64}, /*isVarArg=*/false);
  auto *code = InlineAsm::get(type, "syscall",
                              "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},"
                              "~{dirflag},~{fpsr},~{flags}",
                              /*hasSideEffects=*/true);
  Value *error = b.CreateCall(
      type, code,
      {b.getInt64(archPrctl), b.getInt64(request), b.getInt64(tileData)});
  Value *fresh =
      b.CreateSelect(b.CreateIsNull(error), b.getInt32(2), b.getInt32(1));
  StoreInst *store = b.CreateAlignedStore(fresh, known, Align(4));
  store->setAtomic(AtomicOrdering::Monotonic);
  b.CreateBr(end);

  b.SetInsertPoint(end);
  PHINode *answer = b.CreatePHI(i32, 2);
  answer->addIncoming(last, start);
  answer->addIncoming(fresh, ask);
  b.CreateRet(b.CreateSub(answer, b.getInt32(1)));
  return function;
}

} // namespace keratin
