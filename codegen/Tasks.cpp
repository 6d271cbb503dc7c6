//===- Tasks.cpp - large kernels on several threads -----------------------===//
//
// A call kernel(a, b, …, 0, count, count) of several parts becomes
//
//   work = {a, b, …, count};
//   ktn_parallel_for(kernel.task, &work, count);
//
// where kernel.task(work, begin, end) calls kernel(a, b, …, begin, end, count).
//
// A kernel of several turns has the number of the turn before begin: `work` has
// it, and ktn_parallel_for is called for one turn after the other. Who is given
// all parts of the first turn does the other turns as well, and leaves a 0.
//
// A kernel that takes a piece of scratch memory has its number before begin,
// and before the turn. In `work` that is a set of bits, at first none: the
// pieces that are taken. A task takes the first that is free, so that few
// threads work in few pieces, which stay in their caches.
//
//===----------------------------------------------------------------------===//
#include "codegen/Tasks.h"

#include "codegen/Hooks.h"
#include "codegen/cpu/Kernel.h"
#include "keratin/abi.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace keratin {

/// What a task is told: the arguments of the kernel but for begin and end.
static StructType *workType(const Function &kernel) {
  SmallVector<Type *> fields(kernel.getFunctionType()->params());
  fields.pop_back_n(3);
  fields.push_back(Type::getInt64Ty(kernel.getContext()));
  return StructType::get(kernel.getContext(), fields);
}

/// Adds the first number that is not in the set at `taken`, and returns it.
static Value *takePiece(IRBuilder<> &b, Value *taken) {
  Type *i64 = b.getInt64Ty();
  Function *task = b.GetInsertBlock()->getParent();
  auto *look = BasicBlock::Create(b.getContext(), "look", task);
  auto *found = BasicBlock::Create(b.getContext(), "found", task);
  b.CreateBr(look);
  b.SetInsertPoint(look);
  LoadInst *before = b.CreateAlignedLoad(i64, taken, Align(8));
  before->setAtomic(AtomicOrdering::Monotonic);
  Value *piece = b.CreateBinaryIntrinsic(Intrinsic::cttz, b.CreateNot(before),
                                         b.getFalse());
  Value *bit = b.CreateShl(b.getInt64(1), piece);
  Value *exchange =
      b.CreateAtomicCmpXchg(taken, before, b.CreateOr(before, bit), Align(8),
                            AtomicOrdering::Acquire, AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateExtractValue(exchange, 1), found, look);
  b.SetInsertPoint(found);
  return piece;
}

/// In how many turns the kernel is done, each by all threads.
static uint64_t turnsOf(const Function &kernel) {
  return kernel.getFnAttributeAsParsedInteger(turnsMark, 1);
}

/// The turn to do, where `place` has that of all tasks: all, if this one has
/// all parts of the first.
static Value *chooseTurn(IRBuilder<> &b, Value *place, Value *count) {
  Function *task = b.GetInsertBlock()->getParent();
  Value *turn = b.CreateLoad(b.getInt64Ty(), place);
  Value *here = b.CreateSub(task->getArg(2), task->getArg(1));
  Value *isFirst = b.CreateICmpEQ(turn, b.getInt64(1));
  Value *all = b.CreateAnd(b.CreateICmpEQ(here, count), isFirst);
  auto *only = BasicBlock::Create(b.getContext(), "only", task);
  auto *chosen = BasicBlock::Create(b.getContext(), "chosen", task);
  b.CreateCondBr(all, only, chosen);
  b.SetInsertPoint(only);
  b.CreateStore(b.getInt64(0), place);
  b.CreateBr(chosen);
  b.SetInsertPoint(chosen);
  return b.CreateSelect(all, b.getInt64(0), turn);
}

static void releasePiece(IRBuilder<> &b, Value *taken, Value *piece) {
  Value *bit = b.CreateShl(b.getInt64(1), piece);
  b.CreateAtomicRMW(AtomicRMWInst::And, taken, b.CreateNot(bit), Align(8),
                    AtomicOrdering::Release);
}

/// kernel.task, made at the first call.
static Function *taskOf(Function &kernel) {
  Module &module = *kernel.getParent();
  std::string name = (kernel.getName() + ".task").str();
  if (Function *known = module.getFunction(name))
    return known;
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0),
       *i64 = Type::getInt64Ty(context);
  auto *task = Function::Create(
      FunctionType::get(Type::getVoidTy(context), {pointer, i64, i64}, false),
      GlobalValue::InternalLinkage, name, module);
  StructType *type = workType(kernel);
  IRBuilder<> b(BasicBlock::Create(context, "start", task));
  SmallVector<Value *> arguments;
  for (unsigned field = 0; field < type->getNumElements(); ++field)
    arguments.push_back(
        b.CreateLoad(type->getElementType(field),
                     b.CreateStructGEP(type, task->getArg(0), field)));
  Value *count = arguments.pop_back_val(), *taken = nullptr, *piece = nullptr;
  bool inTurns = turnsOf(kernel) > 1;
  size_t turn = arguments.size() - 1, number = inTurns ? turn - 1 : turn;
  if (kernel.hasFnAttribute(pieceMark)) {
    taken = b.CreateStructGEP(type, task->getArg(0), unsigned(number));
    arguments[number] = piece = takePiece(b, taken);
  }
  if (inTurns)
    arguments[turn] = chooseTurn(
        b, b.CreateStructGEP(type, task->getArg(0), unsigned(turn)), count);
  arguments.append({task->getArg(1), task->getArg(2), count});
  b.CreateCall(&kernel, arguments);
  if (taken)
    releasePiece(b, taken, piece);
  b.CreateRetVoid();
  return task;
}

/// `work` has room for the arguments of any kernel.
static void callInParts(CallInst *call, Value *work) {
  Function &kernel = *call->getCalledFunction();
  SmallVector<Value *> arguments(call->args());
  Value *count = arguments.back();
  arguments.pop_back_n(3);
  arguments.push_back(count);
  StructType *type = workType(kernel);
  IRBuilder<> b(call);
  Instruction *few, *many;
  SplitBlockAndInsertIfThenElse(b.CreateICmpULE(count, b.getInt64(1)),
                                call->getIterator(), &few, &many);
  call->moveBefore(few->getIterator());
  b.SetInsertPoint(many);
  for (auto [field, argument] : enumerate(arguments))
    b.CreateStore(argument, b.CreateStructGEP(type, work, field));
  auto forAll = [&] {
    b.CreateCall(parallelForHook(*kernel.getParent()),
                 {taskOf(kernel), work, count});
  };
  uint64_t turns = turnsOf(kernel);
  if (turns == 1)
    return forAll();
  Value *place = b.CreateStructGEP(type, work, arguments.size() - 2);
  b.CreateStore(b.getInt64(1), place);
  forAll();
  Value *left = b.CreateIsNotNull(b.CreateLoad(b.getInt64Ty(), place));
  b.SetInsertPoint(SplitBlockAndInsertIfThen(left, many->getIterator(), false));
  for (uint64_t turn = 2; turn <= turns; ++turn) {
    b.CreateStore(b.getInt64(turn), place);
    forAll();
  }
}

void callKernelsInParts(Function &entry) {
  SmallVector<CallInst *> calls;
  uint64_t bytes = 0;
  const DataLayout &layout = entry.getDataLayout();
  for (Instruction &instruction : instructions(entry))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (Function *callee = call->getCalledFunction())
        if (callee->hasFnAttribute(partsMark)) {
          calls.push_back(call);
          bytes = std::max<uint64_t>(
              bytes, layout.getTypeAllocSize(workType(*callee)));
        }
  if (calls.empty())
    return;
  IRBuilder<> b(&*entry.getEntryBlock().begin());
  auto *work = b.CreateAlloca(ArrayType::get(b.getInt8Ty(), bytes));
  work->setAlignment(Align(KTN_ALIGNMENT));
  for (CallInst *call : calls)
    callInParts(call, work);
}

} // namespace keratin
