//===- Artefact.cpp - entry points and descriptor of a model --------------===//
#include "codegen/Artefact.h"

#include "codegen/Hooks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"

#include <cstddef>

using namespace llvm;

namespace keratin {

StringRef compilerVersion() { return "keratin " KERATIN_VERSION; }

Error checkModelName(StringRef name) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  if (name.empty() || isDigit(name[0]) || !all_of(name, isWord))
    return createStringError("the model name '" + name +
                             "' is not a C identifier");
  if (name.starts_with("ktn") || name.starts_with("keratin") ||
      name.starts_with("_"))
    return createStringError("the model name '" + name +
                             "' begins with 'ktn', 'keratin' or '_', which "
                             "are reserved");
  return Error::success();
}

namespace {

/// A function being written: checks tell the error hook of a status and return
/// it.
class EntryPoint {
public:
  EntryPoint(Module &module, const Twine &name, ArrayRef<Type *> parameters,
             GlobalValue::LinkageTypes linkage = GlobalValue::ExternalLinkage)
      : b(module.getContext()) {
    function = Function::Create(
        FunctionType::get(b.getInt32Ty(), parameters, /*isVarArg=*/false),
        linkage, name, module);
    function->addFnAttr(Attribute::NoUnwind);
    BasicBlock *entry = block("entry");
    refuse = block("refuse");
    b.SetInsertPoint(refuse);
    status = b.CreatePHI(b.getInt32Ty(), 4);
    b.CreateCall(errorHook(module), {b.CreateGlobalString(name.str()), status});
    b.CreateRet(status);
    b.SetInsertPoint(entry);
  }

  IRBuilder<> b;
  Function *function;

  Value *argument(unsigned index) { return function->getArg(index); }
  BasicBlock *block(const Twine &name) {
    return BasicBlock::Create(b.getContext(), name, function);
  }
  Type *pointer() { return b.getPtrTy(); }

  void returnIf(Value *condition, ktn_status_t status) {
    BasicBlock *next = block("next");
    this->status->addIncoming(b.getInt32(status), b.GetInsertBlock());
    b.CreateCondBr(condition, refuse, next);
    b.SetInsertPoint(next);
  }
  void returnIfNull(Value *pointer) {
    returnIf(b.CreateIsNull(pointer), KTN_INVALID_ARGUMENT);
  }
  void returnIfMisaligned(Value *pointer) {
    Value *address = b.CreatePtrToInt(pointer, b.getInt64Ty());
    Value *low = b.CreateAnd(address, b.getInt64(KTN_ALIGNMENT - 1));
    returnIf(b.CreateIsNotNull(low), KTN_ARENA_MISALIGNED);
  }
  void finish() { b.CreateRet(b.getInt32(KTN_OK)); }

  Value *load(Type *type, Value *base, uint64_t offset) {
    return b.CreateLoad(type,
                        b.CreateConstGEP1_64(b.getInt8Ty(), base, offset));
  }
  void store(Value *value, Value *base, uint64_t offset) {
    b.CreateStore(value, b.CreateConstGEP1_64(b.getInt8Ty(), base, offset));
  }

private:
  BasicBlock *refuse;
  PHINode *status; // what is refused with
};

/// The fields of the header's `NAME_t`.
struct ModelState {
  static constexpr uint64_t weights = 0, arena = 8, arenaBytes = 16;
};

class ArtefactBuilder {
public:
  ArtefactBuilder(Module &module, const Signature &signature,
                  const ArtefactOptions &options)
      : module(module), signature(signature), options(options),
        compiled(module.getFunction(signature.function)),
        b(module.getContext()) {}

  void build();

private:
  bool hasWeights() const { return signature.weightsBytes > 0; }

  GlobalVariable *declareWeights();
  Function *buildHash();
  Function *buildInit();
  Function *buildPredict();
  Function *buildRun();
  Function *buildSetProfile();
  void defineProfileFunction(GlobalVariable *hook, GlobalVariable *user);

  void checkBatch(EntryPoint &entry, Value *batch);
  Value *arenaBytes(EntryPoint &entry, Value *batch);
  void callFunction(EntryPoint &entry, Value *weights, Value *arena,
                    Value *batch, ArrayRef<Value *> tensors);
  std::vector<TensorSignature> allTensors() const;

  Constant *text(StringRef value);
  Constant *pair(const int64_t (&values)[2]);
  Constant *table(ArrayRef<Constant *> rows, const Twine &name);
  Constant *tensorTable(ArrayRef<TensorSignature> tensors, const Twine &name);
  Constant *kernelTable();
  GlobalVariable *buildInfo(Constant *weights, Function *run,
                            Function *setProfile);

  Module &module;
  const Signature &signature;
  const ArtefactOptions &options;
  Function *compiled; // what the entry points call
  IRBuilder<> b;      // for types and constants
};

} // namespace

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void ArtefactBuilder::checkBatch(EntryPoint &entry, Value *batch) {
  IRBuilder<> &b = entry.b;
  if (signature.batch >= 0) {
    entry.returnIf(b.CreateICmpNE(batch, b.getInt64(signature.batch)),
                   KTN_BATCH_OUT_OF_RANGE);
    return;
  }
  // One unsigned comparison for 1 <= batch <= largest.
  Value *fromZero = b.CreateSub(batch, b.getInt64(1));
  entry.returnIf(b.CreateICmpUGE(fromZero, b.getInt64(signature.maxBatch())),
                 KTN_BATCH_OUT_OF_RANGE);
}

Value *ArtefactBuilder::arenaBytes(EntryPoint &entry, Value *batch) {
  IRBuilder<> &b = entry.b;
  return b.CreateAdd(b.getInt64(signature.arenaBytes[0]),
                     b.CreateMul(batch, b.getInt64(signature.arenaBytes[1])));
}

std::vector<TensorSignature> ArtefactBuilder::allTensors() const {
  std::vector<TensorSignature> tensors = signature.inputs;
  llvm::append_range(tensors, signature.outputs);
  return tensors;
}

void ArtefactBuilder::callFunction(EntryPoint &entry, Value *weights,
                                   Value *arena, Value *batch,
                                   ArrayRef<Value *> tensors) {
  SmallVector<Value *> arguments = {weights, arena, batch};
  llvm::append_range(arguments, tensors);
  entry.b.CreateCall(compiled, arguments);
}

/// NAME_run(weights, arena, batch, inputs, outputs): the descriptor's `run`.
Function *ArtefactBuilder::buildRun() {
  Type *pointer = b.getPtrTy();
  EntryPoint entry(module, options.name + "_run",
                   {pointer, pointer, b.getInt64Ty(), pointer, pointer});
  Value *weights = entry.argument(0), *arena = entry.argument(1),
        *batch = entry.argument(2);
  if (hasWeights()) {
    entry.returnIfNull(weights);
    entry.returnIfMisaligned(weights);
  }
  entry.returnIfNull(arena);
  entry.returnIfMisaligned(arena);
  checkBatch(entry, batch);
  SmallVector<Value *> tensors;
  auto loadAll = [&](Value *list, size_t count) {
    if (count)
      entry.returnIfNull(list);
    for (size_t index = 0; index < count; ++index) {
      tensors.push_back(entry.load(pointer, list, 8 * index));
      entry.returnIfNull(tensors.back());
    }
  };
  loadAll(entry.argument(3), signature.inputs.size());
  loadAll(entry.argument(4), signature.outputs.size());
  callFunction(entry, weights, arena, batch, tensors);
  entry.finish();
  return entry.function;
}

/// NAME_predict(model, batch, input…, output…).
Function *ArtefactBuilder::buildPredict() {
  Type *pointer = b.getPtrTy();
  std::vector<TensorSignature> tensors = allTensors();
  SmallVector<Type *> parameters = {pointer, b.getInt64Ty()};
  parameters.append(tensors.size(), pointer);
  EntryPoint entry(module, options.name + "_predict", parameters);
  Value *model = entry.argument(0), *batch = entry.argument(1);
  entry.returnIfNull(model);
  Value *arena = entry.load(pointer, model, ModelState::arena);
  entry.returnIfNull(arena);
  checkBatch(entry, batch);
  Value *available = entry.load(b.getInt64Ty(), model, ModelState::arenaBytes);
  entry.returnIf(entry.b.CreateICmpULT(available, arenaBytes(entry, batch)),
                 KTN_ARENA_TOO_SMALL);
  SmallVector<Value *> data;
  for (size_t index = 0; index < tensors.size(); ++index) {
    data.push_back(entry.argument(2 + index));
    entry.returnIfNull(data.back());
  }
  Value *weights = entry.load(pointer, model, ModelState::weights);
  callFunction(entry, weights, arena, batch, data);
  entry.finish();
  return entry.function;
}

/// NAME_init(model, [weights, weights_size,] arena, arena_size).
Function *ArtefactBuilder::buildInit() {
  Type *pointer = b.getPtrTy(), *size = b.getInt64Ty();
  bool external = hasWeights() && !options.embedsWeights;
  SmallVector<Type *> parameters = {pointer};
  if (external)
    parameters.append({pointer, size});
  parameters.append({pointer, size});
  EntryPoint entry(module, options.name + "_init", parameters);
  unsigned next = 0;
  Value *model = entry.argument(next++);
  entry.returnIfNull(model);
  // A model whose init failed is refused by predict.
  entry.store(Constant::getNullValue(pointer), model, ModelState::arena);
  Value *weights = Constant::getNullValue(pointer);
  if (external) {
    weights = entry.argument(next++);
    Value *weightsBytes = entry.argument(next++);
    entry.returnIfNull(weights);
    entry.returnIfMisaligned(weights);
    entry.returnIf(entry.b.CreateICmpNE(
                       weightsBytes, entry.b.getInt64(signature.weightsBytes)),
                   KTN_WEIGHTS_MISMATCH);
    Value *hash = entry.b.CreateCall(buildHash(), {weights});
    entry.returnIf(
        entry.b.CreateICmpNE(hash, entry.b.getInt64(signature.weightsHash)),
        KTN_WEIGHTS_MISMATCH);
  } else if (hasWeights()) {
    weights = module.getNamedGlobal(options.name + "_weights");
  }
  Value *arena = entry.argument(next++), *arenaSize = entry.argument(next++);
  entry.returnIfNull(arena);
  entry.returnIfMisaligned(arena);
  Value *smallest =
      arenaBytes(entry, b.getInt64(signature.batch >= 0 ? signature.batch : 1));
  entry.returnIf(entry.b.CreateICmpULT(arenaSize, smallest),
                 KTN_ARENA_TOO_SMALL);
  entry.store(weights, model, ModelState::weights);
  entry.store(arenaSize, model, ModelState::arenaBytes);
  entry.store(arena, model, ModelState::arena);
  entry.finish();
  return entry.function;
}

/// `ktn_hash` (runtime/Hash.c) of weightsBytes bytes, a multiple of 32.
Function *ArtefactBuilder::buildHash() {
  constexpr uint64_t factor = 0x9E3779B97F4A7C15u;
  auto *function = Function::Create(
      FunctionType::get(b.getInt64Ty(), {b.getPtrTy()}, false),
      GlobalValue::InternalLinkage, options.name + "_hash", module);
  function->addFnAttr(Attribute::NoUnwind);
  LLVMContext &context = module.getContext();
  auto *start = BasicBlock::Create(context, "start", function);
  auto *loop = BasicBlock::Create(context, "loop", function);
  auto *end = BasicBlock::Create(context, "end", function);
  Value *data = function->getArg(0);

  IRBuilder<> b(start);
  auto *lanesType = FixedVectorType::get(b.getInt64Ty(), 4);
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  PHINode *offset = b.CreatePHI(b.getInt64Ty(), 2);
  PHINode *lanes = b.CreatePHI(lanesType, 2);
  Value *block = b.CreateAlignedLoad(
      lanesType, b.CreateGEP(b.getInt8Ty(), data, offset), Align(32));
  Value *mixed = b.CreateMul(b.CreateXor(lanes, block),
                             ConstantInt::get(lanesType, factor));
  mixed = b.CreateXor(mixed, b.CreateLShr(mixed, 29));
  Value *nextOffset = b.CreateAdd(offset, b.getInt64(32));
  offset->addIncoming(b.getInt64(0), start);
  offset->addIncoming(nextOffset, loop);
  lanes->addIncoming(
      ConstantDataVector::get(context, ArrayRef<uint64_t>{1, 2, 3, 4}), start);
  lanes->addIncoming(mixed, loop);
  b.CreateCondBr(
      b.CreateICmpULT(nextOffset, b.getInt64(signature.weightsBytes)), loop,
      end);

  b.SetInsertPoint(end);
  Value *hash = b.getInt64(signature.weightsBytes);
  for (unsigned lane = 0; lane < 4; ++lane) {
    Value *word = b.CreateExtractElement(mixed, lane);
    hash = b.CreateMul(b.CreateXor(hash, word), b.getInt64(factor));
    hash = b.CreateXor(hash, b.CreateLShr(hash, 32));
  }
  b.CreateRet(hash);
  return function;
}

//===----------------------------------------------------------------------===//
// Profiling
//===----------------------------------------------------------------------===//

/// Calls the hook, if one is set, with (user, kernel, isEnd).
void ArtefactBuilder::defineProfileFunction(GlobalVariable *hook,
                                            GlobalVariable *user) {
  Function *function = module.getFunction(profileFunction);
  if (!function)
    return; // a model without kernels
  function->setLinkage(GlobalValue::InternalLinkage);
  LLVMContext &context = module.getContext();
  auto *start = BasicBlock::Create(context, "start", function);
  auto *call = BasicBlock::Create(context, "call", function);
  auto *end = BasicBlock::Create(context, "end", function);
  IRBuilder<> b(start);
  Value *target = b.CreateLoad(b.getPtrTy(), hook);
  b.CreateCondBr(b.CreateIsNull(target), end, call);
  b.SetInsertPoint(call);
  auto *type = FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}, false);
  b.CreateCall(type, target,
               {b.CreateLoad(b.getPtrTy(), user), function->getArg(0),
                function->getArg(1)});
  b.CreateBr(end);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
}

Function *ArtefactBuilder::buildSetProfile() {
  auto variable = [&](const Twine &name) {
    return new GlobalVariable(module, b.getPtrTy(), /*isConstant=*/false,
                              GlobalValue::InternalLinkage,
                              Constant::getNullValue(b.getPtrTy()), name);
  };
  GlobalVariable *hook = variable(options.name + "_profile_hook");
  GlobalVariable *user = variable(options.name + "_profile_user");
  defineProfileFunction(hook, user);
  auto *function = Function::Create(
      FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false),
      GlobalValue::InternalLinkage, options.name + "_set_profile", module);
  IRBuilder<> body(BasicBlock::Create(module.getContext(), "start", function));
  body.CreateStore(function->getArg(0), hook);
  body.CreateStore(function->getArg(1), user);
  body.CreateRetVoid();
  return function;
}

//===----------------------------------------------------------------------===//
// Descriptor
//===----------------------------------------------------------------------===//

Constant *ArtefactBuilder::text(StringRef value) {
  Constant *bytes = ConstantDataArray::getString(module.getContext(), value);
  auto *global =
      new GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                         GlobalValue::PrivateLinkage, bytes, "text");
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

Constant *ArtefactBuilder::pair(const int64_t (&values)[2]) {
  return ConstantDataArray::get(module.getContext(), ArrayRef<int64_t>(values));
}

Constant *ArtefactBuilder::table(ArrayRef<Constant *> rows, const Twine &name) {
  if (rows.empty())
    return Constant::getNullValue(b.getPtrTy());
  auto *type = ArrayType::get(rows[0]->getType(), rows.size());
  return new GlobalVariable(module, type, /*isConstant=*/true,
                            GlobalValue::InternalLinkage,
                            ConstantArray::get(type, rows), name);
}

Constant *ArtefactBuilder::tensorTable(ArrayRef<TensorSignature> tensors,
                                       const Twine &name) {
  SmallVector<Constant *> rows;
  for (const TensorSignature &tensor : tensors) {
    std::vector<int64_t> shape = tensor.shape;
    shape.resize(KTN_MAX_RANK);
    rows.push_back(ConstantStruct::getAnon(
        {text(tensor.name), b.getInt32(tensor.dtype),
         b.getInt32(tensor.shape.size()),
         ConstantDataArray::get(module.getContext(),
                                ArrayRef<int64_t>(shape))}));
  }
  return table(rows, name);
}

Constant *ArtefactBuilder::kernelTable() {
  SmallVector<Constant *> rows;
  for (const KernelRow &kernel : signature.kernels)
    rows.push_back(
        ConstantStruct::getAnon({text(kernel.name), text(kernel.op),
                                 pair(kernel.flops), pair(kernel.bytes)}));
  return table(rows, options.name + "_kernels");
}

/// The fields of ktn_model_info_t, one by one. On a 64-bit target they lie as
/// they do here; the assertions notice a field that was added to only one.
GlobalVariable *ArtefactBuilder::buildInfo(Constant *weights, Function *run,
                                           Function *setProfile) {
  static_assert(sizeof(ktn_model_info_t) == 144 &&
                offsetof(ktn_model_info_t, num_inputs) == 40 &&
                offsetof(ktn_model_info_t, batch) == 80 &&
                offsetof(ktn_model_info_t, set_profile) == 136);
  static_assert(sizeof(ktn_tensor_info_t) == 16 + 8 * KTN_MAX_RANK &&
                sizeof(ktn_kernel_info_t) == 48);
  Constant *null = Constant::getNullValue(b.getPtrTy());
  Constant *info = ConstantStruct::getAnon(
      {b.getInt32(KTN_ABI_VERSION),
       b.getInt32(sizeof(ktn_model_info_t)),
       text(options.name),
       text(compilerVersion()),
       text(options.target),
       text(options.options),
       b.getInt32(signature.inputs.size()),
       b.getInt32(signature.outputs.size()),
       b.getInt32(signature.kernels.size()),
       b.getInt32(0),
       tensorTable(signature.inputs, options.name + "_inputs"),
       tensorTable(signature.outputs, options.name + "_outputs"),
       kernelTable(),
       b.getInt64(signature.batch),
       pair(signature.arenaBytes),
       b.getInt64(signature.weightsBytes),
       b.getInt64(signature.weightsHash),
       weights,
       run,
       setProfile ? static_cast<Constant *>(setProfile) : null});
  return new GlobalVariable(module, info->getType(), /*isConstant=*/true,
                            GlobalValue::ExternalLinkage, info,
                            options.name + "_model_info");
}

/// x86-64 reaches 2 GiB around an instruction. What might be further is laid
/// behind the rest of the program and addressed in full; others reach further.
static bool isLarge(int64_t weightsBytes, const Triple &triple) {
  return triple.isX86() && weightsBytes > (int64_t(1) << 30);
}

std::string embedFile(StringRef name, int64_t bytes, StringRef path,
                      const Triple &triple) {
  std::string symbol = (name + "_weights").str();
  StringRef section = isLarge(bytes, triple) ? ".lrodata" : ".rodata";
  StringRef flags = isLarge(bytes, triple) ? "al" : "a";
  std::string assembly;
  raw_string_ostream os(assembly);
  os << "\t.section " << section << '.' << symbol << ",\"" << flags
     << "\",@progbits\n\t.p2align 6\n\t.type " << symbol << ",@object\n"
     << symbol << ":\n\t.incbin \"";
  os.write_escaped(path);
  os << "\"\n\t.size " << symbol << ", " << bytes << "\n\t.text\n";
  return assembly;
}

/// The symbol that `embedFile` defines.
GlobalVariable *ArtefactBuilder::declareWeights() {
  auto *weights = new GlobalVariable(
      module, ArrayType::get(b.getInt8Ty(), signature.weightsBytes),
      /*isConstant=*/true, GlobalValue::ExternalLinkage,
      /*Initializer=*/nullptr, options.name + "_weights");
  weights->setVisibility(GlobalValue::HiddenVisibility);
  weights->setDSOLocal(true);
  weights->setAlignment(Align(KTN_ALIGNMENT));
  if (isLarge(signature.weightsBytes, module.getTargetTriple()))
    weights->setCodeModel(CodeModel::Large);
  return weights;
}

void ArtefactBuilder::build() {
  AttributeSet target(compiled->getAttributes().getFnAttrs());
  compiled->setLinkage(GlobalValue::InternalLinkage);
  // `NAME` itself may be a name of the user's program.
  compiled->setName(signature.function + ".main");

  Constant *weights = Constant::getNullValue(b.getPtrTy());
  if (hasWeights() && options.embedsWeights)
    weights = declareWeights();
  Function *run = buildRun();
  buildPredict();
  buildInit();
  Function *setProfile = options.profile ? buildSetProfile() : nullptr;
  GlobalVariable *info = buildInfo(weights, run, setProfile);
  if (options.exportModel)
    GlobalAlias::create("keratin_model", info);
  defineHooks(module);
  // The same machine for all of the object, or vectors would change registers
  // between caller and callee.
  for (Function &other : module)
    if (!other.isDeclaration())
      for (StringRef key :
           {"target-cpu", "target-features", "prefer-vector-width"})
        if (target.hasAttribute(key))
          other.addFnAttr(target.getAttribute(key));
}

void addArtefact(Module &module, const Signature &signature,
                 const ArtefactOptions &options) {
  ArtefactBuilder(module, signature, options).build();
}

} // namespace keratin
