//===- Link.cpp - objects become libraries and programs -------------------===//
#include "codegen/Link.h"

#include "codegen/EmbeddedText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace keratin {

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// LLVM's error with the file it is about.
static Error aboutFile(Error error, StringRef path) {
  return createStringError("cannot write " + path + ": " +
                           toString(std::move(error)));
}

static Error aboutTemporaryFile(std::error_code code) {
  SmallString<128> folder;
  sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  return aboutFile(errorCodeToError(code), "a temporary file in " +
                                               folder.str().str() +
                                               " (TMPDIR names another)");
}

/// What went wrong when `stream` was written, such as a full disk. A stream
/// that is destroyed with an error which nobody took ends the process.
static std::error_code takeError(raw_fd_ostream &stream) {
  std::error_code code = stream.error();
  stream.clear_error();
  return code;
}

Error writeFile(StringRef path, ArrayRef<char> bytes) {
  Error error = writeToOutput(path, [&](raw_ostream &stream) {
    stream.write(bytes.data(), bytes.size());
    stream.flush();
    // A file or stdout: it is never another kind of stream.
    return errorCodeToError(takeError(static_cast<raw_fd_ostream &>(stream)));
  });
  if (!error)
    return Error::success();
  // Without LLVM's own mention of the path.
  std::error_code code = errorToErrorCode(std::move(error));
  return createStringError("cannot write " + path + ": " + code.message());
}

Expected<TemporaryFile> TemporaryFile::create(StringRef suffix,
                                              ArrayRef<char> bytes) {
  int descriptor;
  SmallString<128> path;
  if (std::error_code code =
          sys::fs::createTemporaryFile("keratin", suffix, descriptor, path))
    return aboutTemporaryFile(code);
  TemporaryFile file(path.str().str());
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream.write(bytes.data(), bytes.size());
  stream.close();
  if (std::error_code code = takeError(stream))
    return aboutFile(errorCodeToError(code), path);
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (!path.empty())
    (void)sys::fs::remove(path);
}

OutputFiles::~OutputFiles() {
  for (const File &file : files)
    (void)sys::fs::remove(file.temporary);
}

Error OutputFiles::add(StringRef path, function_ref<Error(StringRef)> write) {
  SmallString<128> temporary;
  std::error_code code =
      sys::fs::is_directory(path)
          ? std::make_error_code(std::errc::is_a_directory)
          : sys::fs::createUniqueFile(path + ".%%%%%%.tmp", temporary);
  if (code)
    return aboutFile(errorCodeToError(code), path);
  files.push_back({path.str(), temporary.str().str()});
  return write(temporary);
}

Error OutputFiles::add(StringRef path, ArrayRef<char> bytes) {
  return add(path, [&](StringRef temporary) {
    std::error_code code;
    raw_fd_ostream stream(temporary, code);
    if (!code) {
      stream.write(bytes.data(), bytes.size());
      stream.close();
      code = takeError(stream);
    }
    return code ? aboutFile(errorCodeToError(code), path) : Error::success();
  });
}

Error OutputFiles::commit() {
  for (const File &file : files)
    if (std::error_code code = sys::fs::rename(file.temporary, file.path))
      return aboutFile(errorCodeToError(code), file.path);
  files.clear();
  return Error::success();
}

Error writeLibrary(StringRef path, StringRef member, StringRef object) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> bytes = MemoryBuffer::getFile(
      object, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return aboutFile(errorCodeToError(bytes.getError()), path);
  NewArchiveMember entry(MemoryBufferRef((*bytes)->getBuffer(), member));
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return aboutFile(errorCodeToError(code), path);
  // Nothing of the day or the user is written: equal inputs, equal bytes.
  Error error = writeArchiveToStream(
      stream, entry, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false);
  stream.close();
  code = takeError(stream);
  if (!error && code)
    error = aboutFile(errorCodeToError(code), path);
  return error;
}

//===----------------------------------------------------------------------===//
// Linkers
//===----------------------------------------------------------------------===//

static bool isHost(const Triple &triple) {
  Triple host(sys::getProcessTriple());
  return triple.getArch() == host.getArch() && triple.getOS() == host.getOS();
}

/// C compilers that can link for the triple, best first.
static std::vector<std::string> compilersFor(const Triple &triple) {
  if (isHost(triple))
    return {"cc", "clang-22", "clang", "gcc"};
  std::string prefix = (triple.getArchName() + "-" + triple.getOSName() + "-" +
                        (triple.getEnvironment() == Triple::UnknownEnvironment
                             ? StringRef("gnu")
                             : triple.getEnvironmentName()))
                           .str();
  return {prefix + "-gcc"};
}

static std::optional<std::string> findFirst(ArrayRef<std::string> programs) {
  for (const std::string &program : programs)
    if (ErrorOr<std::string> path = sys::findProgramByName(program))
      return *path;
  return std::nullopt;
}

/// Runs a program; its messages become the error.
static Error runProgram(ArrayRef<std::string> command) {
  Expected<TemporaryFile> messages = TemporaryFile::create("log", {});
  if (!messages)
    return messages.takeError();
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(""), messages->name(),
                                          messages->name()};
  std::string problem;
  int status = sys::ExecuteAndWait(command[0], arguments, std::nullopt,
                                   redirects, /*SecondsToWait=*/0,
                                   /*MemoryLimit=*/0, &problem);
  if (status == 0)
    return Error::success();
  if (ErrorOr<std::unique_ptr<MemoryBuffer>> text =
          MemoryBuffer::getFile(messages->name()))
    problem += (*text)->getBuffer().trim().str();
  return createStringError(command[0] + " failed: " + problem);
}

static std::string hashOf(StringRef bytes) {
  XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(bytes));
  return utohexstr(hash.high64, /*LowerCase=*/true, /*Width=*/16) +
         utohexstr(hash.low64, /*LowerCase=*/true, /*Width=*/16);
}

/// Hashes of the parts of a file, each of which is in memory in its turn.
static Expected<std::string> hashesOfFile(StringRef path) {
  constexpr uint64_t part = 4 << 20;
  uint64_t size = 0;
  std::error_code code = sys::fs::file_size(path, size);
  std::string hashes;
  for (uint64_t at = 0; at < size && !code; at += part) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> bytes =
        MemoryBuffer::getFileSlice(path, std::min(part, size - at), at);
    code = bytes.getError();
    if (bytes)
      hashes += hashOf((*bytes)->getBuffer());
  }
  if (code)
    return aboutFile(errorCodeToError(code), path);
  return hashes;
}

/// The option that gives what is linked an identity: a hash of `object` and of
/// what else it is made from. Linkers, left to themselves, hash all that they
/// have written with SHA-1, which takes longer than to link large weights.
static Expected<std::string> buildId(StringRef object,
                                     ArrayRef<StringRef> others) {
  Expected<std::string> hashes = hashesOfFile(object);
  if (!hashes)
    return hashes.takeError();
  for (StringRef other : others)
    *hashes += hashOf(other);
  return "--build-id=0x" + hashOf(*hashes);
}

Error linkShared(StringRef path, StringRef soname, StringRef object,
                 const Target &target) {
  const Triple &triple = target.machine->getTargetTriple();
  std::vector<std::string> compilers = compilersFor(triple);
  std::optional<std::string> compiler = findFirst(compilers);
  std::optional<std::string> linker = findFirst({"ld.lld-22", "ld.lld"});
  if (!compiler && !linker)
    return createStringError("no linker found for " + triple.str() +
                             ": looked for " + join(compilers, ", ") +
                             ", ld.lld-22 and ld.lld");
  Expected<std::string> id = buildId(object, soname);
  if (!id)
    return id.takeError();
  std::vector<std::string> command = {compiler ? *compiler : *linker, "-shared",
                                      "-o", path.str(), object.str()};
  if (compiler)
    // libm only where -O0 code calls it.
    // A name may have a comma, which would end it behind -Wl.
    llvm::append_values(command, "-Xlinker", "-soname", "-Xlinker",
                        soname.str(), "-Wl," + *id, "-Wl,--as-needed", "-lm");
  else
    llvm::append_values(command, "-soname", soname.str(), *id);
  return runProgram(command);
}

namespace {
/// A directory that is removed with this object.
struct TemporaryDirectory {
  SmallString<128> path;
  std::error_code error = sys::fs::createUniqueDirectory("keratin", path);
  ~TemporaryDirectory() {
    if (!error)
      (void)sys::fs::remove_directories(path);
  }

  Error write(StringRef name, StringRef text) {
    SmallString<128> file = path;
    sys::path::append(file, name);
    if (std::error_code code =
            sys::fs::create_directories(sys::path::parent_path(file)))
      return aboutFile(errorCodeToError(code), file);
    return writeFile(file, ArrayRef(text.data(), text.size()));
  }
};
} // namespace

Error linkProgram(StringRef path, StringRef name, int threads, StringRef object,
                  const Target &target) {
  const Triple &triple = target.machine->getTargetTriple();
  std::vector<std::string> compilers = compilersFor(triple);
  std::optional<std::string> compiler = findFirst(compilers);
  if (!compiler)
    return createStringError("no C compiler found to make a program for " +
                             triple.str() + ": looked for " +
                             join(compilers, ", "));
  TemporaryDirectory sources;
  if (sources.error)
    return aboutTemporaryFile(sources.error);
  const std::pair<StringRef, StringRef> files[] = {
      {"Main.c", embeddedMain},
      {"Pool.c", embeddedPool},
      {"Cpus.c", embeddedCpus},
      {"Hash.c", embeddedHash},
      {"Pages.c", embeddedPages},
      {"Weights.c", embeddedWeights},
      {"Cpus.h", embeddedCpusHeader},
      {"keratin/abi.h", embeddedAbiHeader},
      {"keratin/dtype.h", embeddedDtypeHeader},
      {"keratin/hooks.h", embeddedHooksHeader},
      {"keratin/runtime.h", embeddedRuntimeHeader},
      {"keratin/status.h", embeddedStatusHeader}};
  std::string threadCount = std::to_string(threads);
  SmallVector<StringRef> contents = {name, threadCount};
  for (auto [name, text] : files) {
    if (Error error = sources.write(name, text))
      return error;
    contents.push_back(text);
  }
  Expected<std::string> id = buildId(object, contents);
  if (!id)
    return id.takeError();
  std::string directory = sources.path.str().str();
  return runProgram({*compiler, "-std=c11", "-O2", "-pthread", "-I" + directory,
                     ("-DKERATIN_MODEL=" + name + "_model_info").str(),
                     "-DKERATIN_THREADS=" + threadCount, directory + "/Main.c",
                     directory + "/Pool.c", directory + "/Cpus.c",
                     directory + "/Hash.c", directory + "/Pages.c",
                     directory + "/Weights.c", object.str(), "-o", path.str(),
                     "-Wl," + *id, "-lm"});
}

} // namespace keratin
