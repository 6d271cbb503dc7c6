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

/// Registers and one number more, which LLVM parts from them as a number and
/// then does not know how to compute with.
static bool isOneMore(Type *type) {
  constexpr unsigned ofRegister = 8;
  auto *vector = dyn_cast<FixedVectorType>(type);
  return vector && vector->getElementType()->isBFloatTy() &&
         vector->getNumElements() > ofRegister &&
         vector->getNumElements() % ofRegister == 1;
}

/// What only moves numbers moves integers.
static void moveIntegers(Instruction &mover) {
  IRBuilder<> b(&mover);
  auto bits = [&](Value *value) {
    return b.CreateBitCast(value, asIntegers(value->getType()));
  };
  Value *moved;
  if (auto *load = dyn_cast<LoadInst>(&mover))
    moved = b.CreateAlignedLoad(asIntegers(load->getType()),
                                load->getPointerOperand(), load->getAlign());
  else if (auto *select = dyn_cast<SelectInst>(&mover))
    moved = b.CreateSelect(select->getCondition(), bits(select->getTrueValue()),
                           bits(select->getFalseValue()));
  else if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&mover))
    moved = b.CreateShuffleVector(bits(shuffle->getOperand(0)),
                                  bits(shuffle->getOperand(1)),
                                  shuffle->getShuffleMask());
  else
    return;
  mover.replaceAllUsesWith(b.CreateBitCast(moved, mover.getType()));
  mover.eraseFromParent();
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
    for (Instruction &instruction :
         make_early_inc_range(instructions(function)))
      if (isOneMore(instruction.getType()) ||
          (isa<ShuffleVectorInst>(instruction) &&
           isOneMore(instruction.getOperand(0)->getType())))
        moveIntegers(instruction);
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
