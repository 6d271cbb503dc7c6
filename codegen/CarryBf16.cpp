//===- CarryBf16.cpp - vectors of bf16 between blocks ---------------------===//
#include "codegen/CarryBf16.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace keratin {

static bool isPartOfRegister(Type *type) {
  constexpr uint64_t registerBits = 128;
  auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getElementType()->isBFloatTy() &&
         vector->getPrimitiveSizeInBits() % registerBits != 0;
}

static Type *asIntegers(Type *type) {
  return type->getWithNewType(Type::getInt16Ty(type->getContext()));
}

/// A choice by where control comes from becomes one of integers; returns what
/// that is as bf16.
static Instruction *carryChoice(PHINode &phi) {
  Type *type = asIntegers(phi.getType());
  IRBuilder<> b(&phi);
  PHINode *bits = b.CreatePHI(type, phi.getNumIncomingValues());
  for (auto [value, block] : zip(phi.incoming_values(), phi.blocks())) {
    // A block may come in several ways, with one value.
    Value *same = bits->getBasicBlockIndex(block) >= 0
                      ? bits->getIncomingValueForBlock(block)
                      : nullptr;
    b.SetInsertPoint(block->getTerminator());
    bits->addIncoming(same ? same : b.CreateBitCast(value, type), block);
  }
  b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  auto *result = CastInst::Create(Instruction::BitCast, bits, phi.getType());
  b.Insert(result);
  phi.replaceAllUsesWith(result);
  phi.eraseFromParent();
  return result;
}

/// Users in other blocks read integers.
static void carry(Instruction &vector) {
  Value *bits = nullptr;
  for (Use &use : make_early_inc_range(vector.uses())) {
    auto *user = cast<Instruction>(use.getUser());
    if (user->getParent() == vector.getParent())
      continue;
    if (!bits) {
      IRBuilder<> b(vector.getNextNode());
      bits = b.CreateBitCast(&vector, asIntegers(vector.getType()));
    }
    IRBuilder<> b(user);
    use.set(b.CreateBitCast(bits, vector.getType()));
  }
}

void carryBf16AsIntegers(Module &module) {
  for (Function &function : module) {
    SmallVector<Instruction *> vectors;
    for (Instruction &instruction : instructions(function))
      if (isPartOfRegister(instruction.getType()))
        vectors.push_back(&instruction);
    // Choices first: then no user is one.
    for (Instruction *&vector : vectors)
      if (auto *phi = dyn_cast<PHINode>(vector))
        vector = carryChoice(*phi);
    for (Instruction *vector : vectors)
      carry(*vector);
  }
}

} // namespace keratin
