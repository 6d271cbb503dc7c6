//===- CompiledFiles.cpp - a compiled model as files and text -------------===//
#include "codegen/Compiled.h"

#include "codegen/Header.h"
#include "codegen/Link.h"
#include "codegen/Object.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace keratin {

llvm::Expected<std::string> Compiled::makeText(Emit emit,
                                               llvm::StringRef weightsFile) {
  ArtefactOptions artefact = artefactOptions();
  artefact.embedsWeights = embedsWeights();
  llvm::LLVMContext llvmContext;
  llvm::Expected<std::unique_ptr<llvm::Module>> module =
      wholeModule(artefact, llvmContext);
  if (!module)
    return module.takeError();
  std::string weightsText;
  if (artefact.embedsWeights)
    weightsText = embedFile(options.name, signature.weightsBytes, weightsFile,
                            targets[0].machine->getTargetTriple());
  if (emit == Emit::Llvm) {
    (*module)->appendModuleInlineAsm(weightsText);
    std::string text;
    llvm::raw_string_ostream(text) << **module;
    return text;
  }
  // Appended as text: LLVM would print the bytes of the file in its place.
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream stream(assembly);
  if (llvm::Error error = emitCode(**module, targets[0],
                                   llvm::CodeGenFileType::AssemblyFile, stream))
    return std::move(error);
  return assembly.str().str() + weightsText;
}

FailureOr<std::string> Compiled::text(Emit emit) {
  llvm::Expected<std::string> text = makeText(emit, options.name + ".weights");
  if (!text)
    return report(loc, text.takeError());
  return std::move(*text);
}

/// The text refers to the weights by the name of a file beside it.
llvm::Error Compiled::writeText(Emit emit, llvm::StringRef prefix) {
  bool toStdout = prefix == "-";
  std::string weightsFile = (toStdout ? llvm::StringRef(options.name)
                                      : llvm::sys::path::filename(prefix))
                                .str() +
                            ".weights";
  llvm::Expected<std::string> text = makeText(emit, weightsFile);
  if (!text)
    return text.takeError();
  if (toStdout)
    return writeFile("-", *text);
  OutputFiles files;
  if (!weightBytes().empty())
    if (llvm::Error error =
            files.add((prefix + ".weights").str(), weightBytes()))
      return error;
  if (llvm::Error error = files.add(
          (prefix + (emit == Emit::Llvm ? ".ll" : ".s")).str(), *text))
    return error;
  return files.commit();
}

/// The header and the file of external weights.
llvm::Error Compiled::addCompanions(OutputFiles &files,
                                    llvm::StringRef prefix) {
  HeaderOptions header;
  header.name = options.name;
  header.target = artefactOptions().target;
  header.externalWeights = options.weights == WeightsPlacement::External;
  if (header.externalWeights && !weightBytes().empty())
    if (llvm::Error error =
            files.add((prefix + ".weights").str(), weightBytes()))
      return error;
  return files.add((prefix + ".h").str(), makeHeader(signature, header));
}

/// Streams the object to a file: large weights are not gathered in memory once
/// more.
llvm::Error Compiled::writeObject(const ArtefactOptions &artefact,
                                  llvm::StringRef path) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (code)
    return llvm::createStringError("cannot write " + path + ": " +
                                   code.message());
  if (llvm::Error error = emitObject(artefact, stream))
    return error;
  stream.close();
  if (stream.has_error()) {
    code = stream.error();
    stream.clear_error();
    return llvm::createStringError("cannot write " + path + ": " +
                                   code.message());
  }
  auto object = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!object)
    return llvm::errorCodeToError(object.getError());
  return checkObject((*object)->getMemBufferRef());
}

/// The object, or what is linked from it.
llvm::Error Compiled::addCode(OutputFiles &files, Emit emit,
                              const std::string &prefix,
                              const ArtefactOptions &artefact) {
  if (emit == Emit::Obj)
    return files.add(prefix + ".o", [&](llvm::StringRef path) {
      return writeObject(artefact, path);
    });
  llvm::Expected<TemporaryFile> object = TemporaryFile::create("o", {});
  if (!object)
    return object.takeError();
  if (llvm::Error error = writeObject(artefact, object->name()))
    return error;
  std::string name = llvm::sys::path::filename(prefix).str();
  if (emit == Emit::Lib)
    return files.add(prefix + ".a", [&](llvm::StringRef path) {
      return writeLibrary(path, name + ".o", object->name());
    });
  if (emit == Emit::So)
    return files.add(prefix + ".so", [&](llvm::StringRef path) {
      return linkShared(path, name + ".so", object->name(), targets[0]);
    });
  return files.add(prefix, [&](llvm::StringRef path) {
    return linkProgram(path, options.name, options.threads, object->name(),
                       targets[0]);
  });
}

llvm::Error Compiled::writeProduct(Emit emit, llvm::StringRef prefix) {
  if (prefix == "-")
    return llvm::createStringError(
        "'-' as a prefix is for text; this product is a file");
  ArtefactOptions artefact = artefactOptions();
  artefact.exportModel = emit == Emit::So;
  artefact.embedsWeights = embedsWeights();
  OutputFiles files;
  if (llvm::Error error = addCode(files, emit, prefix.str(), artefact))
    return error;
  if (llvm::Error error = addCompanions(files, prefix))
    return error;
  return files.commit();
}

LogicalResult Compiled::write(Emit emit, llvm::StringRef prefix) {
  if (stageOf(emit))
    return emitError(loc) << "the stage '"
                          << emitNames()[static_cast<unsigned>(emit)]
                          << "' is past: the model is compiled";
  bool isText = emit == Emit::Llvm || emit == Emit::Asm;
  llvm::Error error =
      isText ? writeText(emit, prefix) : writeProduct(emit, prefix);
  return error ? report(loc, std::move(error)) : success();
}

} // namespace keratin
