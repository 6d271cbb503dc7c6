//===- Emulation.cpp - instructions that a machine lacks ------------------===//
//
// Emulation.ll has what they compute.
//
//===----------------------------------------------------------------------===//
#include "codegen/Emulation.h"

#include "codegen/EmbeddedText.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace keratin {

namespace {
/// An instruction, by the name of its intrinsic behind `llvm.x86.`, and the
/// feature that has it.
struct NamedInstruction {
  StringRef name, feature;
  bool isOfTiles = false;
};
} // namespace

/// All that emitters and the vector mathematics name.
static constexpr NamedInstruction namedInstructions[] = {
    {"avx2.permps", "+avx2"},
    {"avx512.rcp14.ps.512", "+avx512f"},
    {"avx512.mask.reduce.ps.512", "+avx512dq"},
    {"avx512.mask.scalef.ps.512", "+avx512f"},
    {"avx512.vpermi2var.ps.512", "+avx512f"},
    {"avx512bf16.dpbf16ps.512", "+avx512bf16"},
    {"ldtilecfg", "+amx-tile", true},
    {"tilezero", "+amx-tile", true},
    {"tileloadd64", "+amx-tile", true},
    {"tilestored64", "+amx-tile", true},
    {"tilerelease", "+amx-tile", true},
    {"tdpbf16ps", "+amx-bf16", true}};

namespace {
/// Memory that stands for the tile registers of a function, which no code of
/// ours has across functions.
class TileFile {
public:
  explicit TileFile(Function &function) {
    IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
    constexpr uint64_t configuration = 64, tile = 1024, tiles = 8;
    memory = b.CreateAlloca(
        ArrayType::get(b.getInt8Ty(), configuration + tiles * tile));
    memory->setAlignment(Align(64));
  }

  /// `call` becomes one of `name`, which is also told where the tiles are.
  void replace(CallInst &call, const Twine &name) const {
    IRBuilder<> b(&call);
    SmallVector<Value *> arguments = {memory};
    append_range(arguments, call.args());
    SmallVector<Type *> types;
    for (Value *argument : arguments)
      types.push_back(argument->getType());
    FunctionCallee callee = call.getModule()->getOrInsertFunction(
        name.str(),
        FunctionType::get(b.getVoidTy(), types, /*isVarArg=*/false));
    b.CreateCall(callee, arguments);
    call.eraseFromParent();
  }

private:
  AllocaInst *memory;
};
} // namespace

/// Calls of the instruction, which `declared` is, become calls of what is.
static void emulate(Function &declared, const NamedInstruction &instruction,
                    DenseMap<Function *, TileFile> &files) {
  std::string name = ("emulated." + instruction.name).str();
  if (!instruction.isOfTiles)
    return declared.setName(name);
  for (User *user : make_early_inc_range(declared.users())) {
    auto *call = cast<CallInst>(user);
    Function *caller = call->getFunction();
    files.try_emplace(caller, *caller).first->second.replace(*call, name);
  }
  declared.eraseFromParent();
}

/// Defines the functions `emulated.NAME` that the module declares.
static void defineBodies(Module &module) {
  SMDiagnostic problem;
  std::unique_ptr<Module> text =
      parseAssemblyString(embeddedEmulation, problem, module.getContext());
  assert(text && "what emulates instructions is no LLVM IR");
  text->setTargetTriple(module.getTargetTriple());
  text->setDataLayout(module.getDataLayout());
  bool failed =
      Linker::linkModules(module, std::move(text), Linker::LinkOnlyNeeded);
  assert(!failed && "what emulates instructions cannot be joined");
  (void)failed;
}

/// What the instruction `name` leaves in `last`, the operand that it writes.
static Value *compute(IRBuilder<> &b, StringRef name, Value *first,
                      Value *second, Value *last) {
  if (name == "vaddps")
    return b.CreateFAdd(second, first);
  if (name == "vsubps")
    return b.CreateFSub(second, first);
  if (name == "vfnmadd231ps")
    second = b.CreateFNeg(second);
  else
    assert(name == "vfmadd231ps" && "an instruction that nobody emulates");
  return b.CreateIntrinsic(Intrinsic::fma, last->getType(),
                           {first, second, last});
}

namespace {
/// Instructions with three operands, the last of which they write, in inline
/// assembly (codegen/cpu/PairedTiles.cpp). `$n` is a result or, behind those,
/// an argument, the last of which are what results begin as; `D($n){1toN}` is
/// the number D bytes behind an address, for N lanes; others are names of
/// registers.
class Assembly {
public:
  explicit Assembly(CallInst &call) : call(call), b(&call) {
    auto *type = dyn_cast<StructType>(call.getType());
    results = type ? type->getNumElements() : 1;
    auto add = [&](Value *value) { operand(operands.size()) = value; };
    for_each(drop_begin(call.args(), call.arg_size() - results), add);
    for_each(call.args(), add);
  }

  void replace(StringRef text) {
    SmallVector<StringRef> lines, names;
    text.split(lines, "\n\t");
    for (StringRef line : lines) {
      auto [name, rest] = line.split(' ');
      names.clear();
      rest.split(names, ", ");
      Value *first = read(names[0]), *second = read(names[1]);
      Value *&written = operands[names[2]];
      written = compute(b, name, first, second, written);
    }
    Value *result = operand(0);
    if (call.getType()->isStructTy()) {
      result = PoisonValue::get(call.getType());
      for (unsigned number = 0; number < results; ++number)
        result = b.CreateInsertValue(result, operand(number), number);
    }
    call.replaceAllUsesWith(result);
    call.eraseFromParent();
  }

private:
  Value *&operand(unsigned number) {
    return operands["$" + std::to_string(number)];
  }

  Value *read(StringRef name) {
    unsigned offset = 0, lanes = 0;
    if (name.consumeInteger(10, offset))
      return operands.lookup(name);
    auto [address, rest] = name.drop_front().split("){1to");
    rest.consumeInteger(10, lanes);
    Value *place =
        b.CreateConstGEP1_64(b.getInt8Ty(), operands.lookup(address), offset);
    return b.CreateVectorSplat(lanes, b.CreateLoad(b.getFloatTy(), place));
  }

  CallInst &call;
  IRBuilder<> b;
  unsigned results;
  StringMap<Value *> operands;
};
} // namespace

/// All of it, but for what is empty.
static void emulateAssembly(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
          assembly && !assembly->getAsmString().empty())
        Assembly(*call).replace(assembly->getAsmString());
}

/// The nearest bf16, as `passes/RoundToBf16` has it: LLVM would call a library.
static Value *roundToBf16(IRBuilder<> &b, Value *number, Type *type) {
  Type *i32 = number->getType()->getWithNewType(b.getInt32Ty());
  Value *bits = b.CreateSelect(b.CreateFCmpUNO(number, number),
                               ConstantInt::get(i32, 0x7fc00000),
                               b.CreateBitCast(number, i32));
  Value *odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value *sum =
      b.CreateAdd(b.CreateAdd(bits, ConstantInt::get(i32, 0x7fff)), odd);
  Type *i16 = number->getType()->getWithNewType(b.getInt16Ty());
  return b.CreateBitCast(b.CreateTrunc(b.CreateLShr(sum, 16), i16), type);
}

/// Conversions to bf16.
static void emulateRounding(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *conversion = dyn_cast<FPTruncInst>(&instruction);
        conversion && conversion->getDestTy()->getScalarType()->isBFloatTy()) {
      IRBuilder<> b(conversion);
      conversion->replaceAllUsesWith(
          roundToBf16(b, conversion->getOperand(0), conversion->getDestTy()));
      conversion->eraseFromParent();
    }
}

void emulateMissing(Module &module, const TargetMachine &machine) {
  auto has = [&](StringRef feature) {
    return machine.getTargetTriple().isX86() &&
           machine.getMCSubtargetInfo()->checkFeatures(feature);
  };
  bool any = false;
  DenseMap<Function *, TileFile> files;
  for (const NamedInstruction &instruction : namedInstructions) {
    Function *declared =
        module.getFunction(("llvm.x86." + instruction.name).str());
    if (!declared || has(instruction.feature))
      continue;
    emulate(*declared, instruction, files);
    any = true;
  }
  if (any)
    defineBodies(module);
  if (!has("+avx512vl"))
    for (Function &function : module)
      emulateAssembly(function);
  if (!has("+avx512bf16"))
    for (Function &function : module)
      emulateRounding(function);
}

} // namespace keratin
