//===- EntryPoint.cpp - functions of an artefact being written ------------===//
#include "codegen/EntryPoint.h"

using namespace llvm;

namespace keratin {

Function *buildHash(Module &module, const Twine &name, int64_t bytes) {
  IRBuilder<> b(module.getContext());
  constexpr uint64_t factor = 0x9E3779B97F4A7C15u;
  auto *function =
      Function::Create(FunctionType::get(b.getInt64Ty(), {b.getPtrTy()}, false),
                       GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(Attribute::NoUnwind);
  LLVMContext &context = module.getContext();
  auto *start = BasicBlock::Create(context, "start", function);
  auto *loop = BasicBlock::Create(context, "loop", function);
  auto *end = BasicBlock::Create(context, "end", function);
  Value *data = function->getArg(0);

  b.SetInsertPoint(start);
  auto *lanesType = FixedVectorType::get(b.getInt64Ty(), 4);
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  PHINode *offset = b.CreatePHI(b.getInt64Ty(), 2);
  PHINode *lanes = b.CreatePHI(lanesType, 2);
  Value *block = b.CreateAlignedLoad(
      lanesType, b.CreateGEP(b.getInt8Ty(), data, offset), Align(1));
  Value *mixed = b.CreateMul(b.CreateXor(lanes, block),
                             ConstantInt::get(lanesType, factor));
  mixed = b.CreateXor(mixed, b.CreateLShr(mixed, 29));
  Value *nextOffset = b.CreateAdd(offset, b.getInt64(32));
  offset->addIncoming(b.getInt64(0), start);
  offset->addIncoming(nextOffset, loop);
  lanes->addIncoming(
      ConstantDataVector::get(context, ArrayRef<uint64_t>{1, 2, 3, 4}), start);
  lanes->addIncoming(mixed, loop);
  b.CreateCondBr(b.CreateICmpULT(nextOffset, b.getInt64(bytes)), loop, end);

  b.SetInsertPoint(end);
  Value *hash = b.getInt64(bytes);
  for (unsigned lane = 0; lane < 4; ++lane) {
    Value *word = b.CreateExtractElement(mixed, lane);
    hash = b.CreateMul(b.CreateXor(hash, word), b.getInt64(factor));
    hash = b.CreateXor(hash, b.CreateLShr(hash, 32));
  }
  b.CreateRet(hash);
  return function;
}

} // namespace keratin
