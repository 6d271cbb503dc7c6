//===- Jit.cpp - objects loaded into this process -------------------------===//
#include "codegen/Jit.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;
using namespace llvm::orc;

namespace keratin {

LoadedObject::LoadedObject() = default;
LoadedObject::~LoadedObject() = default;

/// A JIT that only links: the object code is the one of the artefact.
static Expected<std::unique_ptr<LLJIT>> makeLinker() {
  return LLJITBuilder()
      .setJITTargetMachineBuilder(
          JITTargetMachineBuilder(Triple(sys::getProcessTriple())))
      .setObjectLinkingLayerCreator([](ExecutionSession &session) {
        return std::make_unique<ObjectLinkingLayer>(session);
      })
      .setPlatformSetUp(setUpInactivePlatform)
      // Problems come back as the Error of a lookup; nothing else may print.
      .setPrePlatformSetup([](LLJIT &jit) {
        jit.getExecutionSession().setErrorReporter(consumeError);
        return Error::success();
      })
      .create();
}

Expected<std::unique_ptr<LoadedObject>>
LoadedObject::load(std::unique_ptr<MemoryBuffer> object, StringRef name,
                   const void *weights) {
  std::unique_ptr<LoadedObject> result(new LoadedObject);
  Expected<std::unique_ptr<LLJIT>> jit = makeLinker();
  if (!jit)
    return jit.takeError();
  result->jit = std::move(*jit);
  LLJIT &linker = *result->jit;
  // memcpy and its like; at -O0 also libm.
  auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess(
      linker.getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  linker.getMainJITDylib().addGenerator(std::move(*process));
  // As linking libkeratin_rt would: the object's own definition is weak.
  auto threads = ExecutorSymbolDef(ExecutorAddr::fromPtr(&ktn_parallel_for),
                                   JITSymbolFlags::Exported);
  if (Error error = linker.getMainJITDylib().define(absoluteSymbols(
          {{linker.mangleAndIntern("ktn_parallel_for"), threads}})))
    return std::move(error);
  if (Error error = linker.addObjectFile(std::move(object)))
    return std::move(error);
  auto address = linker.lookup((name + "_model_info").str());
  if (!address)
    return address.takeError();
  result->descriptor = *address->toPtr<const ktn_model_info_t *>();
  result->descriptor.weights = weights;
  return result;
}

} // namespace keratin
