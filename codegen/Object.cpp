//===- Object.cpp - from the LLVM dialect to machine code -----------------===//
#include "codegen/Object.h"

#include "codegen/CarryBf16.h"
#include "codegen/Emulation.h"
#include "codegen/Tasks.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace keratin {

void markFunction(Function &function, const Target &target) {
  function.addFnAttr(Attribute::NoUnwind);
  function.addFnAttr("target-cpu", target.machine->getTargetCPU());
  function.addFnAttr("target-features",
                     target.machine->getTargetFeatureString());
  // By default LLVM splits 512-bit vectors on CPUs whose clock they lowered.
  if (target.machine->getTargetTriple().isX86())
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
}

/// Inlined, a kernel would lose its name in profiles and its registers to its
/// neighbours.
static void keepKernels(Function &entry) {
  for (Instruction &instruction : instructions(entry))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (Function *callee = call->getCalledFunction())
        if (!callee->isDeclaration())
          callee->addFnAttr(Attribute::NoInline);
}

Expected<std::unique_ptr<Module>>
translate(mlir::ModuleOp module, const CodeUnits &units, unsigned index,
          const Target &target, LLVMContext &context) {
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(module, context, unitEntry);
  if (!result)
    return createStringError("translation to LLVM IR failed");
  result->setTargetTriple(target.machine->getTargetTriple());
  result->setDataLayout(target.machine->createDataLayout());
  result->setPICLevel(PICLevel::BigPIC);
  emulateMissing(*result, *target.machine);
  Function *main = index == 0 ? result->getFunction(unitEntry) : nullptr;
  if (index == 0) {
    if (!main)
      return createStringError("the function '" + units.entry + "' was lost");
    keepKernels(*main);
    callKernelsInParts(*main);
  }
  for (Function &function : *result) {
    bool isShared = units.isShared(index, function.getName());
    if (!function.isDeclaration())
      markFunction(function, target);
    if (&function == main || (function.isDeclaration() && !isShared))
      continue;
    if (isShared) {
      // Joined, they are local to the object.
      function.setVisibility(GlobalValue::HiddenVisibility);
      function.setDSOLocal(true);
    } else {
      function.setLinkage(GlobalValue::InternalLinkage);
    }
    function.setName(unitPrefix + function.getName());
  }
  if (main)
    main->setName(unitEntrySymbol);
  for (GlobalVariable &global : result->globals())
    if (!global.isDeclaration())
      global.setLinkage(GlobalValue::InternalLinkage);
  return result;
}

/// Emitters unroll and vectorise themselves: what is left is to simplify their
/// addresses, to take them out of loops, and to find the same ones again. About
/// a quarter of the time of all passes.
static ModulePassManager littleEffort(PassBuilder &builder) {
  ModulePassManager passes;
  cantFail(builder.parsePassPipeline(
      passes, "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,"
              "simplifycfg,loop-mssa(loop-rotate,licm<allowspeculation>),"
              "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
              "separate-const-offset-from-gep,early-cse),globaldce"));
  return passes;
}

void optimizeCode(Module &module, const Target &target, Effort effort) {
  TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  for (LibFunc known : {LibFunc_memcpy, LibFunc_memmove, LibFunc_memset})
    library.setAvailable(known);

  // The reference of tests and validation: its many short loops would be most
  // of the time that it takes to compile if they were unrolled.
  PipelineTuningOptions tuning;
  tuning.LoopUnrolling = effort == Effort::Full;
  PassBuilder builder(target.machine.get(), tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes =
      effort == Effort::Little
          ? littleEffort(builder)
          : builder.buildPerModuleDefaultPipeline(effort == Effort::Full
                                                      ? OptimizationLevel::O2
                                                      : OptimizationLevel::O1);
  // The places of a tile are constants behind the first of them, which an
  // instruction adds by itself. Where an index serves several arguments, each
  // place would have an index of its own instead, computed and spilled. What is
  // left of the indices are sums again, of which some become constants, others
  // go out of the loop.
  if (effort == Effort::Full)
    cantFail(builder.parsePassPipeline(
        passes, "function(separate-const-offset-from-gep,early-cse,"
                "instcombine<no-verify-fixpoint>,loop-mssa(licm),"
                "separate-const-offset-from-gep,early-cse)"));
  passes.run(module, modules);
  carryBf16AsIntegers(module);
}

/// The only call of a function that nobody else sees, or null.
static CallInst *onlyCall(Function &function) {
  if (function.isDeclaration() || !function.hasLocalLinkage() ||
      !function.hasOneUse())
    return nullptr;
  auto *call = dyn_cast<CallInst>(*function.user_begin());
  return call && call->getCalledFunction() == &function ? call : nullptr;
}

void joinFunctions(Module &module) {
  // Registers are given to the values of a function in more than linear time.
  constexpr unsigned mostInstructions = 3000;
  if (module.getInstructionCount() > mostInstructions)
    return;
  for (Function &function : make_early_inc_range(module))
    if (CallInst *call = onlyCall(function)) {
      InlineFunctionInfo info;
      if (InlineFunction(*call, info).isSuccess())
        function.eraseFromParent();
    }
}

/// Keeps the first error that LLVM reports, which would end the process.
namespace {
class ErrorKeeper {
public:
  explicit ErrorKeeper(LLVMContext &context) : context(context) {
    context.setDiagnosticHandlerCallBack(keep, &message);
  }
  ~ErrorKeeper() { context.setDiagnosticHandlerCallBack(nullptr, nullptr); }

  Error take() {
    return message.empty() ? Error::success() : createStringError(message);
  }

private:
  static void keep(const DiagnosticInfo *info, void *message) {
    auto &text = *static_cast<std::string *>(message);
    if (info->getSeverity() != DS_Error || !text.empty())
      return;
    raw_string_ostream stream(text);
    DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
  }

  LLVMContext &context;
  std::string message;
};
} // namespace

Error emitCode(Module &module, const Target &target, CodeGenFileType fileType,
               raw_pwrite_stream &stream) {
  legacy::PassManager passes;
  passes.add(createTargetTransformInfoWrapperPass(
      target.machine->getTargetIRAnalysis()));
  if (target.machine->addPassesToEmitFile(passes, stream, nullptr, fileType))
    return createStringError("LLVM cannot emit this kind of file for " +
                             target.description());
  ErrorKeeper errors(module.getContext());
  passes.run(module);
  return errors.take();
}

Error checkUndefinedSymbols(MemoryBufferRef object) {
  Expected<std::unique_ptr<object::ObjectFile>> file =
      object::ObjectFile::createObjectFile(object);
  if (!file)
    return file.takeError();
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined) ||
        (*flags & object::SymbolRef::SF_FormatSpecific))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    // The last one is every linker's own: what may be further than 2 GiB is
    // addressed from there.
    if (!is_contained(
            {"memcpy", "memmove", "memset", "", "_GLOBAL_OFFSET_TABLE_"},
            *name))
      return createStringError("the generated code calls '" + *name +
                               "', which a -O2 object must not: the target "
                               "lacks an instruction that the model needs");
  }
  return Error::success();
}

} // namespace keratin
