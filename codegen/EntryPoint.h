//===- EntryPoint.h - functions of an artefact being written ----*- C++ -*-===//
#ifndef KERATIN_CODEGEN_ENTRYPOINT_H
#define KERATIN_CODEGEN_ENTRYPOINT_H

#include "codegen/Hooks.h"
#include "keratin/abi.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace keratin {

/// A function being written: checks tell the error hook of a status and return
/// it.
class EntryPoint {
public:
  EntryPoint(llvm::Module &module, const llvm::Twine &name,
             llvm::ArrayRef<llvm::Type *> parameters,
             llvm::GlobalValue::LinkageTypes linkage =
                 llvm::GlobalValue::ExternalLinkage)
      : b(module.getContext()) {
    function = llvm::Function::Create(
        llvm::FunctionType::get(b.getInt32Ty(), parameters, /*isVarArg=*/false),
        linkage, name, module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    b.SetInsertPoint(block("entry"));
  }

  llvm::IRBuilder<> b;
  llvm::Function *function;

  llvm::Value *argument(unsigned index) { return function->getArg(index); }
  llvm::BasicBlock *block(const llvm::Twine &name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  }

  void returnIf(llvm::Value *condition, ktn_status_t status) {
    if (!refuse)
      addRefusal();
    llvm::BasicBlock *next = block("next");
    this->status->addIncoming(b.getInt32(status), b.GetInsertBlock());
    b.CreateCondBr(condition, refuse, next);
    b.SetInsertPoint(next);
  }
  void returnIfNull(llvm::Value *pointer) {
    returnIf(b.CreateIsNull(pointer), KTN_INVALID_ARGUMENT);
  }
  void returnIfMisaligned(llvm::Value *pointer) {
    llvm::Value *address = b.CreatePtrToInt(pointer, b.getInt64Ty());
    llvm::Value *low = b.CreateAnd(address, b.getInt64(KTN_ALIGNMENT - 1));
    returnIf(b.CreateIsNotNull(low), KTN_ARENA_MISALIGNED);
  }
  void finish() { b.CreateRet(b.getInt32(KTN_OK)); }

  llvm::Value *at(llvm::Value *base, uint64_t offset) {
    return b.CreateConstGEP1_64(b.getInt8Ty(), base, offset);
  }
  llvm::Value *load(llvm::Type *type, llvm::Value *base, uint64_t offset) {
    return b.CreateLoad(type, at(base, offset));
  }
  void store(llvm::Value *value, llvm::Value *base, uint64_t offset) {
    b.CreateStore(value, at(base, offset));
  }

private:
  void addRefusal() {
    llvm::BasicBlock *entry = b.GetInsertBlock();
    refuse = block("refuse");
    b.SetInsertPoint(refuse);
    status = b.CreatePHI(b.getInt32Ty(), 4);
    b.CreateCall(errorHook(*function->getParent()),
                 {b.CreateGlobalString(function->getName()), status});
    b.CreateRet(status);
    b.SetInsertPoint(entry);
  }

  llvm::BasicBlock *refuse = nullptr; // where there are checks
  llvm::PHINode *status = nullptr;    // what is refused with
};

/// Offsets of the fields of the header's `NAME_t`; `state` is there when the
/// model has any.
struct ModelFields {
  static constexpr uint64_t weights = 0, arena = 8, arenaBytes = 16, state = 24;
};

/// A function `uint64_t (const void *data)`: ktn_hash (runtime/Hash.c) of
/// `bytes` bytes, a multiple of 32. Internal to the module.
llvm::Function *buildHash(llvm::Module &module, const llvm::Twine &name,
                          int64_t bytes);

} // namespace keratin

#endif // KERATIN_CODEGEN_ENTRYPOINT_H
