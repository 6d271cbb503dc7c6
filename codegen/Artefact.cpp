//===- Artefact.cpp - entry points of a model -----------------------------===//
#include "codegen/Artefact.h"

#include "codegen/Descriptor.h"
#include "codegen/EntryPoint.h"
#include "codegen/Hooks.h"
#include "codegen/StateCode.h"
#include "codegen/TileCode.h"
#include "codegen/VariantCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace keratin {

StringRef compilerVersion() { return "keratin " KERATIN_VERSION; }

Error checkModelName(StringRef name) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  if (name.empty() || isDigit(name[0]) || !all_of(name, isWord))
    return createStringError("the model name '" + name +
                             "' is not a C identifier: choose another name");
  if (name.starts_with("ktn") || name.starts_with("keratin") ||
      name.starts_with("_"))
    return createStringError("the model name '" + name +
                             "' begins with 'ktn', 'keratin' or '_', which "
                             "are reserved: choose another name");
  return Error::success();
}

Error checkEntryName(StringRef name) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  if (name.empty() || !all_of(name, isWord))
    return createStringError("the function name '" + name +
                             "' is not a C identifier");
  // What the header says of every model.
  static constexpr StringRef taken[] = {
      "init",         "run",          "create",       "destroy",
      "model_info",   "state_export", "state_import", "t",
      "weights",      "hash",         "state_hash",   "set_profile",
      "profile_hook", "profile_user"};
  if (is_contained(taken, name) || name.ends_with("_run") ||
      name.ends_with("_info"))
    return createStringError("the function name '" + name +
                             "' is one that every model has");
  return Error::success();
}

namespace {

class ArtefactBuilder {
public:
  ArtefactBuilder(Module &module, const ModelSignature &model,
                  const ArtefactOptions &options)
      : module(module), model(model), options(options), b(module.getContext()) {
  }

  void build();

private:
  bool hasWeights() const { return model.weightsBytes > 0; }
  bool hasCode() const;

  GlobalVariable *declareWeights();
  void buildInit();
  void buildEntry(const Signature &signature);
  Function *buildRun(const Signature &signature, const Twine &name);
  Function *buildSetProfile();
  void defineProfileFunction(GlobalVariable *hook, GlobalVariable *user);

  void checkBatch(EntryPoint &entry, const Signature &signature, Value *batch);
  void checkTiles(EntryPoint &entry);
  Value *arenaBytes(EntryPoint &entry, const Signature &signature,
                    Value *batch);
  void callFunction(EntryPoint &entry, const Signature &signature,
                    Value *weights, Value *arena, Value *batch,
                    ArrayRef<Value *> tensors);
  Function *codeOf(const Twine &function, FunctionType *type);

  Module &module;
  const ModelSignature &model;
  const ArtefactOptions &options;
  IRBuilder<> b;                       // for types and constants
  Function *variantFunction = nullptr; // where there are variants
  Function *tileFunction = nullptr;    // where kernels use tile registers
};

} // namespace

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void ArtefactBuilder::checkBatch(EntryPoint &entry, const Signature &signature,
                                 Value *batch) {
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

/// Refuses to run where tile registers are missing.
void ArtefactBuilder::checkTiles(EntryPoint &entry) {
  if (tileFunction)
    entry.returnIf(entry.b.CreateIsNull(entry.b.CreateCall(tileFunction)),
                   KTN_CPU_UNSUPPORTED);
}

Value *ArtefactBuilder::arenaBytes(EntryPoint &entry,
                                   const Signature &signature, Value *batch) {
  IRBuilder<> &b = entry.b;
  return b.CreateAdd(b.getInt64(signature.arenaBytes[0]),
                     b.CreateMul(batch, b.getInt64(signature.arenaBytes[1])));
}

/// Whether the compiled functions are in this module, or else in others.
bool ArtefactBuilder::hasCode() const {
  return llvm::all_of(model.functions, [&](const Signature &signature) {
    Function *code = module.getFunction(signature.function + ".main");
    return code && !code->isDeclaration();
  });
}

/// The compiled function, which may be in another module.
Function *ArtefactBuilder::codeOf(const Twine &function, FunctionType *type) {
  auto *code = cast<Function>(
      module.getOrInsertFunction((function + ".main").str(), type).getCallee());
  if (code->isDeclaration()) {
    code->setVisibility(GlobalValue::HiddenVisibility);
    code->setDSOLocal(true);
  } else {
    code->setVisibility(GlobalValue::DefaultVisibility);
    code->setLinkage(GlobalValue::InternalLinkage);
  }
  return code;
}

void ArtefactBuilder::callFunction(EntryPoint &entry,
                                   const Signature &signature, Value *weights,
                                   Value *arena, Value *batch,
                                   ArrayRef<Value *> tensors) {
  // Null weights stay null: a function without any does not look at them.
  if (signature.weightsOffset > 0 && signature.weightsBytes > 0)
    weights = entry.at(weights, signature.weightsOffset);
  SmallVector<Value *> arguments = {weights, arena, batch};
  llvm::append_range(arguments, tensors);
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  auto *type = FunctionType::get(b.getVoidTy(), types, /*isVarArg=*/false);
  checkTiles(entry);
  if (model.variants.empty()) {
    entry.b.CreateCall(codeOf(signature.function, type), arguments);
    return;
  }
  // One call for each variant, of which the first that fits is made.
  IRBuilder<> &b = entry.b;
  Value *variant = b.CreateCall(variantFunction);
  entry.returnIf(b.CreateICmpSLT(variant, b.getInt32(0)), KTN_CPU_UNSUPPORTED);
  BasicBlock *done = entry.block("done"), *last = nullptr;
  for (unsigned index = model.variants.size(); index-- > 0;) {
    last = entry.block(model.variants[index]);
    BasicBlock *next = index ? entry.block("next") : done;
    if (index) {
      b.CreateCondBr(b.CreateICmpEQ(variant, b.getInt32(index)), last, next);
    } else {
      b.CreateBr(last);
    }
    b.SetInsertPoint(last);
    b.CreateCall(codeOf(signature.function + "." + model.variants[index], type),
                 arguments);
    b.CreateBr(done);
    b.SetInsertPoint(next);
  }
}

/// The descriptor's `run`: (weights, arena, batch, inputs, outputs). State is
/// among the inputs and outputs.
Function *ArtefactBuilder::buildRun(const Signature &signature,
                                    const Twine &name) {
  Type *pointer = b.getPtrTy();
  EntryPoint entry(module, name,
                   {pointer, pointer, b.getInt64Ty(), pointer, pointer});
  Value *weights = entry.argument(0), *arena = entry.argument(1),
        *batch = entry.argument(2);
  if (hasWeights() && !options.trusted) {
    entry.returnIfNull(weights);
    entry.returnIfMisaligned(weights);
  }
  if (!options.trusted) {
    entry.returnIfNull(arena);
    entry.returnIfMisaligned(arena);
    checkBatch(entry, signature, batch);
  }
  SmallVector<Value *> tensors;
  auto loadAll = [&](Value *list, size_t count) {
    if (count && !options.trusted)
      entry.returnIfNull(list);
    for (size_t index = 0; index < count; ++index) {
      tensors.push_back(entry.load(pointer, list, 8 * index));
      if (!options.trusted)
        entry.returnIfNull(tensors.back());
    }
  };
  loadAll(entry.argument(3), signature.inputs.size());
  loadAll(entry.argument(4), signature.outputs.size());
  callFunction(entry, signature, weights, arena, batch, tensors);
  entry.finish();
  return entry.function;
}

/// NAME_predict(model, batch, input…, output…). Variables are read where they
/// are; their new values are written there by code that reads the old ones no
/// more, or take their places when all are computed.
void ArtefactBuilder::buildEntry(const Signature &signature) {
  Type *pointer = b.getPtrTy();
  SmallVector<Type *> parameters = {pointer, b.getInt64Ty()};
  parameters.append(signature.callerInputs().size() +
                        signature.callerOutputs().size(),
                    pointer);
  EntryPoint entry(module, options.name + "_" + signature.entry, parameters);
  Value *instance = entry.argument(0), *batch = entry.argument(1);
  entry.returnIfNull(instance);
  Value *arena = entry.load(pointer, instance, ModelFields::arena);
  entry.returnIfNull(arena);
  checkBatch(entry, signature, batch);
  Value *available =
      entry.load(b.getInt64Ty(), instance, ModelFields::arenaBytes);
  Value *used = arenaBytes(entry, signature, batch);
  Value *needed =
      entry.b.CreateAdd(used, entry.b.getInt64(signature.updateBytes));
  entry.returnIf(entry.b.CreateICmpULT(available, needed), KTN_ARENA_TOO_SMALL);
  Value *state = model.hasState()
                     ? entry.load(pointer, instance, ModelFields::state)
                     : nullptr;

  unsigned next = 2;
  SmallVector<Value *> tensors;
  auto fromCaller = [&] {
    Value *given = entry.argument(next++);
    entry.returnIfNull(given);
    tensors.push_back(given);
  };
  for (size_t index = 0; index < signature.inputs.size(); ++index)
    if (int variable = signature.stateOfInput(index); variable < 0)
      fromCaller();
    else
      tensors.push_back(entry.at(state, model.state[variable].offset));
  struct Update {
    Value *from, *to;
    int64_t bytes;
  };
  SmallVector<Update> updates;
  Value *fresh =
      entry.b.CreateGEP(entry.b.getInt8Ty(), arena, used); // aligned: `used` is
  for (size_t index = 0; index < signature.outputs.size(); ++index)
    if (int variable = signature.stateOfOutput(index); variable < 0) {
      fromCaller();
    } else if (signature.updatesInPlace(index)) {
      tensors.push_back(entry.at(state, model.state[variable].offset));
    } else {
      updates.push_back({fresh, entry.at(state, model.state[variable].offset),
                         model.state[variable].tensor.unitBytes()});
      tensors.push_back(fresh);
      fresh = entry.at(fresh, alignTo(updates.back().bytes, KTN_ALIGNMENT));
    }
  Value *weights = entry.load(pointer, instance, ModelFields::weights);
  callFunction(entry, signature, weights, arena, batch, tensors);
  for (const Update &update : updates)
    entry.b.CreateMemCpy(update.to, Align(KTN_ALIGNMENT), update.from,
                         Align(KTN_ALIGNMENT), update.bytes);
  entry.finish();
}

/// NAME_init(model, [weights, weights_size,] [state, state_size,] arena,
/// arena_size).
void ArtefactBuilder::buildInit() {
  Type *pointer = b.getPtrTy(), *size = b.getInt64Ty();
  bool external = hasWeights() && !options.embedsWeights;
  SmallVector<Type *> parameters = {pointer};
  if (external)
    parameters.append({pointer, size});
  if (model.hasState())
    parameters.append({pointer, size});
  parameters.append({pointer, size});
  EntryPoint entry(module, options.name + "_init", parameters);
  unsigned next = 0;
  Value *instance = entry.argument(next++);
  entry.returnIfNull(instance);
  // A model whose init failed is refused by predict.
  entry.store(Constant::getNullValue(pointer), instance, ModelFields::arena);
  // Sooner than at the first call.
  if (variantFunction)
    entry.returnIf(entry.b.CreateICmpSLT(entry.b.CreateCall(variantFunction),
                                         b.getInt32(0)),
                   KTN_CPU_UNSUPPORTED);
  checkTiles(entry);
  Value *weights = Constant::getNullValue(pointer);
  if (external) {
    weights = entry.argument(next++);
    Value *weightsBytes = entry.argument(next++);
    entry.returnIfNull(weights);
    entry.returnIfMisaligned(weights);
    entry.returnIf(entry.b.CreateICmpNE(weightsBytes,
                                        entry.b.getInt64(model.weightsBytes)),
                   KTN_WEIGHTS_MISMATCH);
    Value *hash = entry.b.CreateCall(
        buildHash(module, options.name + "_hash", model.weightsBytes),
        {weights});
    entry.returnIf(
        entry.b.CreateICmpNE(hash, entry.b.getInt64(model.weightsHash)),
        KTN_WEIGHTS_MISMATCH);
  } else if (hasWeights()) {
    weights = module.getNamedGlobal(weightsSymbol(options.name));
  }
  Value *state = nullptr;
  if (model.hasState()) {
    state = entry.argument(next++);
    Value *stateSize = entry.argument(next++);
    entry.returnIfNull(state);
    entry.returnIfMisaligned(state);
    entry.returnIf(
        entry.b.CreateICmpULT(stateSize, entry.b.getInt64(model.stateBytes)),
        KTN_STATE_TOO_SMALL);
  }
  Value *arena = entry.argument(next++), *arenaSize = entry.argument(next++);
  entry.returnIfNull(arena);
  entry.returnIfMisaligned(arena);
  // Each function asks for more where it needs more.
  Value *smallest = nullptr;
  for (const Signature &signature : model.functions) {
    Value *bytes =
        arenaBytes(entry, signature,
                   b.getInt64(signature.batch >= 0 ? signature.batch : 1));
    bytes = entry.b.CreateAdd(bytes, entry.b.getInt64(signature.updateBytes));
    smallest = smallest ? entry.b.CreateBinaryIntrinsic(Intrinsic::umin,
                                                        smallest, bytes)
                        : bytes;
  }
  entry.returnIf(entry.b.CreateICmpULT(arenaSize, smallest),
                 KTN_ARENA_TOO_SMALL);
  if (state) {
    entry.b.CreateMemCpy(state, Align(KTN_ALIGNMENT),
                         entry.at(weights, model.initialState),
                         Align(KTN_ALIGNMENT), model.stateBytes);
    entry.store(state, instance, ModelFields::state);
  }
  entry.store(weights, instance, ModelFields::weights);
  entry.store(arenaSize, instance, ModelFields::arenaBytes);
  entry.store(arena, instance, ModelFields::arena);
  entry.finish();
}

//===----------------------------------------------------------------------===//
// Profiling
//===----------------------------------------------------------------------===//

/// Calls the hook, if one is set, with (user, kernel, isEnd).
void ArtefactBuilder::defineProfileFunction(GlobalVariable *hook,
                                            GlobalVariable *user) {
  LLVMContext &context = module.getContext();
  Type *i32 = b.getInt32Ty();
  auto *type = FunctionType::get(b.getVoidTy(), {i32, i32}, /*isVarArg=*/false);
  auto *function = cast<Function>(
      module.getOrInsertFunction(profileFunction, type).getCallee());
  if (hasCode()) {
    function->setLinkage(GlobalValue::InternalLinkage);
  } else { // joined, it is local to the object
    function->setVisibility(GlobalValue::HiddenVisibility);
    function->setDSOLocal(true);
  }
  auto *start = BasicBlock::Create(context, "start", function);
  auto *call = BasicBlock::Create(context, "call", function);
  auto *end = BasicBlock::Create(context, "end", function);
  IRBuilder<> b(start);
  Value *target = b.CreateLoad(b.getPtrTy(), hook);
  b.CreateCondBr(b.CreateIsNull(target), end, call);
  b.SetInsertPoint(call);
  b.CreateCall(
      FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32}, false), target,
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
// The whole
//===----------------------------------------------------------------------===//

/// x86-64 reaches 2 GiB around an instruction. What might be further is laid
/// behind the rest of the program and addressed in full; others reach further.
static bool isLarge(int64_t weightsBytes, const Triple &triple) {
  return triple.isX86() && hasLargeWeights(weightsBytes);
}

bool hasLargeWeights(int64_t weightsBytes) {
  return weightsBytes > (int64_t(1) << 30);
}

std::string weightsSymbol(StringRef name) { return (name + "_weights").str(); }

std::string embedFile(StringRef name, int64_t bytes, StringRef path,
                      const Triple &triple) {
  std::string symbol = weightsSymbol(name);
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
      module, ArrayType::get(b.getInt8Ty(), model.weightsBytes),
      /*isConstant=*/true, GlobalValue::ExternalLinkage,
      /*Initializer=*/nullptr, weightsSymbol(options.name));
  weights->setVisibility(GlobalValue::HiddenVisibility);
  weights->setDSOLocal(true);
  weights->setAlignment(Align(KTN_ALIGNMENT));
  if (isLarge(model.weightsBytes, module.getTargetTriple()))
    weights->setCodeModel(CodeModel::Large);
  return weights;
}

void ArtefactBuilder::build() {
  Constant *weights = Constant::getNullValue(b.getPtrTy());
  if (hasWeights() && options.embedsWeights)
    weights = declareWeights();
  if (!model.variants.empty())
    variantFunction =
        buildVariantFunction(module, model.variants, options.name + "_variant");
  if (options.asksForTiles && usesTiles(model))
    tileFunction = buildTileFunction(module, options.name + "_tiles");
  Function *setProfile = options.profile ? buildSetProfile() : nullptr;
  for (const Signature &signature : model.functions) {
    if (!options.descriptorOnly)
      buildEntry(signature);
    bool isFirst = &signature == &model.functions[0];
    std::string prefix =
        isFirst ? options.name : options.name + "_" + signature.entry;
    Function *run = buildRun(signature, prefix + "_run");
    GlobalVariable *info =
        buildDescriptor(module, model, signature, options, prefix,
                        prefix + (isFirst ? "_model_info" : "_info"),
                        {weights, run, setProfile});
    if (isFirst && options.exportModel)
      GlobalAlias::create("keratin_model", info);
  }
  if (!options.descriptorOnly) {
    buildInit();
    if (model.hasState())
      addStateFunctions(module, model, options.name);
  }
  defineHooks(module);
  // A program may call them all, this process what the code calls, where that
  // is here.
  if (options.descriptorOnly && hasCode())
    for (Function &function : make_early_inc_range(module))
      if (function.hasWeakAnyLinkage() && function.use_empty())
        function.eraseFromParent();
}

void addArtefact(Module &module, const ModelSignature &model,
                 const ArtefactOptions &options) {
  ArtefactBuilder(module, model, options).build();
}

} // namespace keratin
