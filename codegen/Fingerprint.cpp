//===- Fingerprint.cpp - what tells one compilation from another ----------===//
#include "codegen/Artefact.h"
#include "codegen/Compile.h"
#include "codegen/Target.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

#include <elf.h>
#include <link.h>

using namespace mlir;

namespace keratin {

namespace {
/// The loaded file that holds an address, and its build id.
struct FileQuery {
  uintptr_t address;
  std::optional<std::string> buildId;
};
} // namespace

static std::optional<std::string> buildIdOf(llvm::ArrayRef<uint8_t> notes) {
  auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t(3); };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    uint64_t name = padded(header.n_namesz), value = padded(header.n_descsz);
    notes = notes.drop_front(sizeof header);
    if (name > notes.size() || value > notes.size() - name)
      break;
    if (header.n_type == NT_GNU_BUILD_ID)
      return llvm::toHex(notes.slice(name, header.n_descsz));
    notes = notes.drop_front(name + value);
  }
  return std::nullopt;
}

static int visitFile(dl_phdr_info *info, size_t, void *data) {
  auto &query = *static_cast<FileQuery *>(data);
  llvm::ArrayRef<ElfW(Phdr)> segments(info->dlpi_phdr, info->dlpi_phnum);
  bool holdsAddress = llvm::any_of(segments, [&](const ElfW(Phdr) & segment) {
    return segment.p_type == PT_LOAD &&
           query.address - (info->dlpi_addr + segment.p_vaddr) <
               segment.p_memsz;
  });
  if (!holdsAddress)
    return 0;
  for (const ElfW(Phdr) &segment : segments)
    if (segment.p_type == PT_NOTE && !query.buildId)
      query.buildId = buildIdOf(llvm::ArrayRef(
          reinterpret_cast<const uint8_t *>(info->dlpi_addr + segment.p_vaddr),
          segment.p_memsz));
  return 1;
}

/// The build id, which the linker makes of the content, of the file in which a
/// function is. A version number would not tell two builds of a developer.
static std::optional<std::string> buildIdAround(uintptr_t function) {
  FileQuery query = {function, std::nullopt};
  dl_iterate_phdr(visitFile, &query);
  return query.buildId;
}

/// This library, LLVM and MLIR are where the code comes from.
const std::optional<std::string> &compilerIdentity() {
  static const std::optional<std::string> identity =
      []() -> std::optional<std::string> {
    std::string text = compilerVersion().str();
    for (uintptr_t function :
         {reinterpret_cast<uintptr_t>(&compilerVersion),
          reinterpret_cast<uintptr_t>(&llvm::sys::getHostCPUName),
          reinterpret_cast<uintptr_t>(
              static_cast<LogicalResult (*)(Operation *, bool)>(&verify))}) {
      std::optional<std::string> id = buildIdAround(function);
      if (!id)
        return std::nullopt;
      text += '\n' + *id;
    }
    return text;
  }();
  return identity;
}

FailureOr<std::string> compilationFingerprint(Location loc,
                                              const CompileOptions &options) {
  llvm::Expected<std::vector<Target>> targets =
      parseTargets(options.target, options.optimize);
  if (!targets)
    return emitError(loc) << llvm::toString(targets.takeError());
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Target &target : *targets)
    os << target.description() << '\n'
       << target.machine->getTargetFeatureString() << '\n';
  os << "optimize " << options.optimize << " quick " << options.quick
     << " trusted " << options.trusted << " profile " << options.profile
     << " single thread " << (options.threads == 1) << " winograd "
     << static_cast<int>(options.winograd) << " tiles " << options.tiles
     << " weights24 " << options.weights24 << " strassen " << options.strassen
     << " pairs " << options.pairs << " fold lookups " << options.foldLookups
     << " precision " << static_cast<int>(options.precision) << " unroll "
     << options.unrollFactor << " checkpoint " << options.checkpointEvery
     << '\n';
  for (const std::vector<int64_t> &shape : options.inputShapes) {
    for (int64_t extent : shape)
      os << extent << ' ';
    os << '\n';
  }
  return text;
}

} // namespace keratin
