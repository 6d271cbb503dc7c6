//===- VariantCode.cpp - code that finds out what machine it runs on ------===//
//
// The levels are those of the x86-64 psABI. What a bit means is in the Intel
// SDM, volume 2A, CPUID.
//
//===----------------------------------------------------------------------===//
#include "codegen/VariantCode.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace keratin {

namespace {
/// The words of CPUID that features are in, and that of XGETBV.
enum Word { Leaf1Ecx, Leaf7Ebx, Extended1Ecx, Xcr0, NumWords };

/// Bits that a level needs beside those of the level below.
struct Level {
  StringRef cpu;
  uint32_t bits[NumWords];
};
} // namespace

static constexpr uint32_t bit(unsigned index) { return uint32_t(1) << index; }

static const Level levels[] = {
    {"x86-64", {0, 0, 0, 0}},
    {"x86-64-v2",
     // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
     {bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23), 0, bit(0), 0}},
    {"x86-64-v3",
     // FMA, MOVBE, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT; the system
     // keeps the registers of SSE and AVX
     {bit(12) | bit(22) | bit(27) | bit(28) | bit(29), bit(3) | bit(5) | bit(8),
      bit(5), bit(1) | bit(2)}},
    {"x86-64-v4",
     // AVX512F, DQ, CD, BW, VL; the system keeps masks and all of their
     // registers
     {0, bit(16) | bit(17) | bit(28) | bit(30) | bit(31), 0,
      bit(5) | bit(6) | bit(7)}}};

static const Level *findLevel(StringRef cpu) {
  const auto *found =
      find_if(levels, [&](const Level &level) { return level.cpu == cpu; });
  return found == std::end(levels) ? nullptr : found;
}

bool canBeVariant(StringRef cpu) { return findLevel(cpu); }

namespace {
/// Writes the function that asks.
class VariantBuilder {
public:
  VariantBuilder(Module &module, const Twine &name)
      : b(module.getContext()),
        function(Function::Create(FunctionType::get(b.getInt32Ty(), false),
                                  GlobalValue::InternalLinkage, name, module)) {
    function->addFnAttr(Attribute::NoUnwind);
  }

  BasicBlock *block(const Twine &name) {
    return BasicBlock::Create(b.getContext(), name, function);
  }

  /// The word `index` of eax, ebx, ecx, edx.
  Value *cpuid(uint32_t leaf, unsigned index) {
    Type *i32 = b.getInt32Ty();
    auto *type = FunctionType::get(StructType::get(i32, i32, i32, i32),
                                   {i32, i32}, /*isVarArg=*/false);
    auto *code = InlineAsm::get(
        type, "cpuid",
        "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}",
        /*hasSideEffects=*/true);
    Value *words = b.CreateCall(type, code, {b.getInt32(leaf), b.getInt32(0)});
    return b.CreateExtractValue(words, index);
  }

  /// Which registers the system keeps for programs. Only where CPUID says that
  /// there is the instruction.
  Value *xcr0() {
    Type *i32 = b.getInt32Ty();
    auto *type = FunctionType::get(StructType::get(i32, i32), {i32},
                                   /*isVarArg=*/false);
    auto *code = InlineAsm::get(type, "xgetbv",
                                "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}",
                                /*hasSideEffects=*/true);
    return b.CreateExtractValue(b.CreateCall(type, code, {b.getInt32(0)}), 0);
  }

  /// A word that is there from the leaf `leaf` on, else zero.
  Value *cpuidFrom(Value *largest, uint32_t leaf, unsigned index) {
    return when(b.CreateICmpUGE(largest, b.getInt32(leaf)),
                [&] { return cpuid(leaf, index); });
  }

  Value *when(Value *condition, function_ref<Value *()> emit) {
    BasicBlock *before = b.GetInsertBlock(), *then = block("ask"),
               *after = block("asked");
    b.CreateCondBr(condition, then, after);
    b.SetInsertPoint(then);
    Value *value = emit();
    BasicBlock *end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    PHINode *merged = b.CreatePHI(value->getType(), 2);
    merged->addIncoming(b.getInt32(0), before);
    merged->addIncoming(value, end);
    return merged;
  }

  IRBuilder<> b;
  Function *function;
};
} // namespace

Function *buildVariantFunction(Module &module, ArrayRef<std::string> cpus,
                               const Twine &name) {
  VariantBuilder builder(module, name);
  IRBuilder<> &b = builder.b;
  Type *i32 = b.getInt32Ty();
  // 0 is not asked yet, else one more than the answer, whoever writes it.
  auto *known = new GlobalVariable(module, i32, /*isConstant=*/false,
                                   GlobalValue::InternalLinkage, b.getInt32(0),
                                   name + "_known");
  BasicBlock *start = builder.block("start"), *ask = builder.block("first"),
             *end = builder.block("end");
  b.SetInsertPoint(start);
  LoadInst *last = b.CreateAlignedLoad(i32, known, Align(4));
  last->setAtomic(AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateIsNull(last), ask, end);

  b.SetInsertPoint(ask);
  Value *largest = builder.cpuid(0, 0),
        *largestExtended = builder.cpuid(0x80000000, 0);
  Value *words[NumWords];
  words[Leaf1Ecx] = builder.cpuidFrom(largest, 1, 2);
  words[Leaf7Ebx] = builder.cpuidFrom(largest, 7, 1);
  words[Extended1Ecx] = builder.cpuidFrom(largestExtended, 0x80000001, 2);
  constexpr uint32_t osxsave = bit(27);
  words[Xcr0] = builder.when(
      b.CreateIsNotNull(b.CreateAnd(words[Leaf1Ecx], b.getInt32(osxsave))),
      [&] { return builder.xcr0(); });

  Value *answer = b.getInt32(0);
  for (auto [index, cpu] : enumerate(cpus)) {
    uint32_t needed[NumWords] = {};
    for (const Level *level = levels; level <= findLevel(cpu); ++level)
      for (unsigned word = 0; word < NumWords; ++word)
        needed[word] |= level->bits[word];
    Value *fits = b.getTrue();
    for (unsigned word = 0; word < NumWords; ++word)
      fits = b.CreateAnd(fits,
                         b.CreateICmpEQ(b.CreateAnd(words[word], needed[word]),
                                        b.getInt32(needed[word])));
    answer = b.CreateSelect(fits, b.getInt32(index + 1), answer);
  }
  // Distinct from 0 where nothing fits.
  answer = b.CreateSelect(b.CreateIsNull(answer), b.getInt32(-1), answer);
  StoreInst *keep = b.CreateAlignedStore(answer, known, Align(4));
  keep->setAtomic(AtomicOrdering::Monotonic);
  BasicBlock *asked = b.GetInsertBlock();
  b.CreateBr(end);

  b.SetInsertPoint(end);
  PHINode *result = b.CreatePHI(i32, 2);
  result->addIncoming(last, start);
  result->addIncoming(answer, asked);
  // -1 stays what it is.
  Value *none = b.CreateICmpSLT(result, b.getInt32(0));
  b.CreateRet(
      b.CreateSelect(none, b.getInt32(-1), b.CreateSub(result, b.getInt32(1))));
  return builder.function;
}

} // namespace keratin
