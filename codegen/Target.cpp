//===- Target.cpp - the machine that is compiled for ----------------------===//
#include "codegen/Target.h"

#include "codegen/Compile.h"
#include "codegen/VariantCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace llvm;

namespace keratin {

namespace {
/// What LLVM wants to know, as text.
struct TargetNames {
  Triple triple;
  std::string cpu, features;
};
} // namespace

static void initializeLlvmTargets() {
  // Initialised once, thread-safe: the value of a static.
  static const bool done = [] {
    InitializeAllTargetInfos();
    InitializeAllTargets();
    InitializeAllTargetMCs();
    InitializeAllAsmPrinters();
    InitializeAllAsmParsers(); // weights are embedded by an assembler directive
    return true;
  }();
  (void)done;
}

/// Whether the system gives this process the tile registers that the CPU has
/// (TileCode.cpp): a sandbox may not, and code with them would be refused.
static bool grantsTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, request, tileData) == 0;
#else
  return false;
#endif
}

/// Asked once: on a virtual machine each question to the CPU takes long.
static const StringMap<bool, MallocAllocator> &hostFeatures() {
  static const StringMap<bool, MallocAllocator> features = [] {
    StringMap<bool, MallocAllocator> all = sys::getHostCPUFeatures();
    if (all.lookup("amx-tile") && !grantsTiles())
      for (auto &feature : all)
        if (feature.first().starts_with("amx-"))
          feature.second = false;
    return all;
  }();
  return features;
}

/// The features of the host as differences from those of `cpu`: LLVM reads the
/// list again for each object, and all of them are some hundred words. All of
/// them where that does not come to the same.
static std::string featuresBeyond(const Triple &triple, StringRef cpu) {
  std::vector<std::string> all, beyond;
  for (const auto &feature : hostFeatures())
    all.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(all);
  std::string problem;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, problem);
  if (!target)
    return join(all, ",");
  auto facts = [&](StringRef features) {
    return std::unique_ptr<MCSubtargetInfo>(
        target->createMCSubtargetInfo(triple, cpu, features));
  };
  auto plain = facts(""), wanted = facts(join(all, ","));
  if (!plain || !wanted)
    return join(all, ",");
  for (const SubtargetFeatureKV &feature : wanted->getAllProcessorFeatures()) {
    bool has = wanted->getFeatureBits()[feature.Value];
    if (has != plain->getFeatureBits()[feature.Value])
      beyond.push_back((has ? "+" : "-") + std::string(feature.Key));
  }
  auto reached = facts(join(beyond, ","));
  bool same = reached && reached->getFeatureBits() == wanted->getFeatureBits();
  return join(same ? beyond : all, ",");
}

static const TargetNames &nativeNames() {
  static const TargetNames names = [] {
    Triple triple(sys::getProcessTriple());
    std::string cpu = sys::getHostCPUName().str();
    return TargetNames{triple, cpu, featuresBeyond(triple, cpu)};
  }();
  return names;
}

static Expected<TargetNames> splitName(StringRef name) {
  if (name == "native")
    return nativeNames();
  if (is_contained({"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}, name))
    return TargetNames{Triple("x86_64-unknown-linux-gnu"), name.str(), ""};
  if (name == "aarch64-linux-gnu")
    return TargetNames{Triple("aarch64-unknown-linux-gnu"), "generic", "+neon"};
  auto [triple, rest] = name.split(',');
  auto [cpu, features] = rest.split(',');
  if (cpu.empty() || triple.empty())
    return createStringError(
        "unknown target '" + name +
        "': expected native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, "
        "aarch64-linux-gnu, or TRIPLE,CPU[,FEATURES]; of the levels of x86-64 "
        "also several, with commas between");
  return TargetNames{Triple(Triple::normalize(triple)), cpu.str(),
                     features.str()};
}

/// LLVM warns on stderr of names it does not know and goes on; so ask first.
static Error checkNames(const llvm::Target &target, const TargetNames &names) {
  std::unique_ptr<MCSubtargetInfo> facts(
      target.createMCSubtargetInfo(names.triple, "", ""));
  if (!facts)
    return createStringError("LLVM has no code generator for '" +
                             names.triple.str() + "'");
  if (!facts->isCPUStringValid(names.cpu)) {
    std::vector<StringRef> known;
    for (const SubtargetSubTypeKV &cpu : facts->getAllProcessorDescriptions())
      known.push_back(cpu.Key);
    return createStringError("unknown CPU '" + names.cpu + "' for " +
                             names.triple.str() + ": expected one of " +
                             join(known, ", "));
  }
  for (StringRef feature : split(names.features, ',')) {
    if (feature.empty())
      continue;
    bool known = any_of(facts->getAllProcessorFeatures(),
                        [&](const SubtargetFeatureKV &candidate) {
                          return candidate.Key == feature.drop_front();
                        });
    if (!StringRef("+-").contains(feature[0]) || !known)
      return createStringError(
          "unknown feature '" + feature + "' for " + names.triple.str() +
          ": expected +NAME or -NAME with a feature name of LLVM");
  }
  return Error::success();
}

/// Of those that LLVM knows, what objects are joined for (JoinObjects.cpp), in
/// which pointers have 64 bits. Objects of others need sections of their own,
/// or LLVM ends the process that asks it for some operations.
static Error checkTriple(const Triple &triple) {
  bool isKnown = is_contained(
      {Triple::x86_64, Triple::aarch64, Triple::loongarch64}, triple.getArch());
  bool hasShortPointers =
      triple.isX32() || triple.getEnvironment() == Triple::GNUILP32;
  if (isKnown && !hasShortPointers && triple.isOSBinFormatELF())
    return Error::success();
  return createStringError("target '" + triple.str() +
                           "': code is generated for ELF objects of x86-64, "
                           "AArch64 and LoongArch with pointers of 64 bits, "
                           "such as x86_64-linux-gnu or aarch64-linux-gnu");
}

/// Whether the units of a machine have half the width of its vectors.
static bool hasHalfUnits(StringRef cpu, unsigned vectorBits) {
  return (cpu == "znver4" && vectorBits == 512) ||
         (cpu == "znver1" && vectorBits == 256);
}

/// Servers of Intel since Sapphire Rapids, of which one was measured.
static bool isRecentXeon(const Target &target) {
  return target.vectorBits == 512 &&
         !target.machine->getTargetCPU().starts_with("znver") &&
         target.machine->getMCSubtargetInfo()->checkFeatures("+avx512fp16");
}

/// What the shape of the code depends on.
static void measureVectors(Target &target) {
  const Triple &triple = target.machine->getTargetTriple();
  const MCSubtargetInfo &facts = *target.machine->getMCSubtargetInfo();
  if (triple.isAArch64()) {
    target.vectorRegisters = 32;
    target.halves = true;
    return;
  }
  if (!triple.isX86())
    return;
  target.halves = facts.checkFeatures("+f16c");
  target.fma = facts.checkFeatures("+fma");
  target.rounding = facts.checkFeatures("+sse4.1");
  if (facts.checkFeatures("+avx512f,+avx512bw,+avx512dq,+avx512vl")) {
    target.vectorBits = 512;
    target.vectorRegisters = 32;
    target.avx512 = true;
    // Of 16 floats Zen 5 has the quotients in 2.5 cycles. On Zen 4 they take as
    // long as 3 products, a reciprocal and what makes a quotient of it as long
    // as 4. Others take 10 to 16 cycles.
    StringRef cpu = target.machine->getTargetCPU();
    if (cpu == "znver4" || cpu == "znver5") {
      target.divides = true;
      target.secondCacheKiB = 1024;
    } else if (isRecentXeon(target)) {
      target.secondCacheKiB = 2048;
    }
    // A Granite Rapids takes two cycles for what two FMAs of widened numbers do
    // in one: 32 rows of an LSTM 15.5 ms, and 10.0 with those. Others of Intel
    // that have arithmetic of f16 are taken to be like it.
    if (facts.checkFeatures("+avx512bf16") && !isRecentXeon(target))
      target.dots = DotUnit::Vectors;
    // Linux alone lets a program ask for tiles the way our code does.
    if (facts.checkFeatures("+avx512bf16,+amx-tile,+amx-bf16") &&
        triple.isOSLinux())
      target.dots = DotUnit::Tiles;
  } else if (facts.checkFeatures("+avx2,+fma")) {
    target.vectorBits = 256;
    // In a cycle on Zen 3, and by LLVM's tables on machines of Intel. Zen 1
    // and 2, of which tables differ, were not measured.
    StringRef cpu = target.machine->getTargetCPU();
    target.permutes = cpu != "znver1" && cpu != "znver2";
  }
  // Where it is asked, other loads wait: relu of 4 MB takes 1.17 times as long,
  // of 16 MB, in memory, 1.7 times. On Zen 5 relu takes 1.06 times as long, and
  // most kernels the same.
  target.fetchesAhead = target.machine->getTargetCPU() == "znver4";
  // One row reads 64 MiB of weights in 1.54 ms as one run and in 1.84 to 2.06
  // as four side by side, 5 MB at the end of a model in 45 us and 46 to 64.
  target.oneRun = target.machine->getTargetCPU() == "znver5";
  target.halfUnits =
      hasHalfUnits(target.machine->getTargetCPU(), target.vectorBits);
  // Four multiplications and four sums of vectors take a Zen 4 the time of four
  // multiplications: products in pairs have 1.4 to 1.48 times its peak. Zen 5
  // has such units as well, but was not measured.
  target.sumsBeside =
      target.machine->getTargetCPU() == "znver4" && target.vectorBits == 512;
  // One row times 256 KB takes a Zen 4 1.23 times less time so than as f32, 786
  // KB 1.25 times, 3 MB 1.32 and what comes from memory 1.46. An Emerald Rapids
  // takes 1.18 times longer for 256 KB, and for 2.7 MB 1.5 times less. Was not
  // measured on others.
  if (target.machine->getTargetCPU() == "znver4" && target.vectorBits == 512)
    target.weights24 = Weights24::All;
  else if (isRecentXeon(target))
    target.weights24 = Weights24::Far;
  // MobileNetV2 asks for 3 MB of the weights of its last layer: a Zen 4 has
  // them sooner by .05 to .1 ms, an Emerald Rapids by .015, and the products in
  // front take .02 to .03 and .04 ms more.
  target.asksForLater = !isRecentXeon(target);
  // Rows of 32 elements from the second cache take an Emerald Rapids 1.19 times
  // less time so, of 64 1.04 times. Was not measured on others.
  target.asksNextRows = isRecentXeon(target);
  // A store of 512 bits takes two cycles. Products wait behind 24 in a row for
  // 42 cycles, behind 12 for 3, and for none where two are between two stores.
  if (target.machine->getTargetCPU() == "znver4" && target.vectorBits == 512)
    target.storesAtOnce = 12;
}

/// Whether the host has every feature that the code may use. Features that the
/// host detection knows nothing of are tuning, and harmless.
static bool runsOnHost(const TargetMachine &machine) {
  Triple host(sys::getProcessTriple());
  if (machine.getTargetTriple().getArch() != host.getArch() ||
      machine.getTargetTriple().getOS() != host.getOS())
    return false;
  const StringMap<bool, MallocAllocator> &known = hostFeatures();
  const MCSubtargetInfo &facts = *machine.getMCSubtargetInfo();
  return none_of(facts.getEnabledProcessorFeatures(),
                 [&](const SubtargetFeatureKV &feature) {
                   auto found = known.find(feature.Key);
                   return found != known.end() && !found->second;
                 });
}

//===----------------------------------------------------------------------===//
// Machines that are kept
//===----------------------------------------------------------------------===//

namespace {
/// Machines that serve nobody at the moment. A machine knows what its CPU can
/// do and how code is selected for it, which it finds out at its first use.
class KeptMachines {
public:
  /// Null where there is none like that.
  MachinePtr take(const Triple &triple, StringRef cpu, StringRef features,
                  CodeGenOptLevel level) {
    std::lock_guard<std::mutex> lock(mutex);
    auto *found = llvm::find_if(machines, [&](const auto &machine) {
      return machine->getTargetTriple() == triple &&
             machine->getTargetCPU() == cpu &&
             machine->getTargetFeatureString() == features &&
             machine->getOptLevel() == level;
    });
    if (found == machines.end())
      return nullptr;
    MachinePtr result(found->release());
    machines.erase(found);
    return result;
  }

  void keep(std::unique_ptr<TargetMachine> machine) {
    constexpr size_t most = 8;
    std::lock_guard<std::mutex> lock(mutex);
    if (machines.size() < most)
      machines.push_back(std::move(machine));
  }

private:
  std::mutex mutex;
  SmallVector<std::unique_ptr<TargetMachine>, 8> machines;
};
} // namespace

/// Never destroyed: what is static may give machines back as it goes.
static KeptMachines &keptMachines() {
  static auto &machines = *new KeptMachines;
  return machines;
}

void KeepMachine::operator()(TargetMachine *machine) const {
  std::unique_ptr<TargetMachine> owned(machine);
  // Without optimisation LLVM selects instructions in a way that the machine
  // remembers.
  if (owned->getOptLevel() != CodeGenOptLevel::None)
    keptMachines().keep(std::move(owned));
}

/// A machine that is kept, or a new one; null when LLVM has none.
static MachinePtr machineFor(const llvm::Target &target, const Triple &triple,
                             StringRef cpu, StringRef features,
                             CodeGenOptLevel level) {
  if (MachinePtr kept = keptMachines().take(triple, cpu, features, level))
    return kept;
  return MachinePtr(target.createTargetMachine(triple, cpu, features,
                                               TargetOptions(), Reloc::PIC_,
                                               CodeModel::Small, level));
}

std::string Target::description() const {
  std::string text =
      machine->getTargetTriple().str() + ", " + machine->getTargetCPU().str();
  return shape.empty() ? text : text + " in the shape of " + shape;
}

Target Target::clone() const {
  Target copy;
  copy.machine = machineFor(
      machine->getTarget(), machine->getTargetTriple(), machine->getTargetCPU(),
      machine->getTargetFeatureString(), machine->getOptLevel());
  static_cast<CodeShape &>(copy) = *this;
  copy.runsHere = runsHere;
  copy.shape = shape;
  copy.emulatesTiles = emulatesTiles;
  return copy;
}

Error checkTarget(StringRef name) {
  return parseTargets(name, /*optimize=*/true).takeError();
}

static Expected<Target> parseMachine(StringRef name, bool optimize) {
  initializeLlvmTargets();
  Expected<TargetNames> names = splitName(name);
  if (!names)
    return names.takeError();
  std::string problem;
  const llvm::Target *llvmTarget =
      TargetRegistry::lookupTarget(names->triple, problem);
  if (!llvmTarget)
    return createStringError("unknown target '" + name +
                             "': LLVM has no code generator for '" +
                             names->triple.str() + "'");
  if (Error error = checkTriple(names->triple))
    return std::move(error);
  if (Error error = checkNames(*llvmTarget, *names))
    return std::move(error);

  Target target;
  target.machine =
      machineFor(*llvmTarget, names->triple, names->cpu, names->features,
                 optimize ? CodeGenOptLevel::Default : CodeGenOptLevel::Less);
  if (!target.machine)
    return createStringError("LLVM cannot generate code for '" + name + "'");
  measureVectors(target);
  target.runsHere = runsOnHost(*target.machine);
  return target;
}

/// Gives `target` the vectors of `shape`. What that takes for granted, without
/// being able to name it, the machine must have: LLVM would call a library.
static Error takeShape(Target &target, const Target &shape) {
  auto refuse = [&](const Twine &what) {
    return createStringError("code in the shape of " + shape.description() +
                             " cannot run on " + target.description() +
                             ", which has no " + what);
  };
  if (shape.fma && !target.fma)
    return refuse("fused multiply-add");
  if (shape.rounding && !target.rounding)
    return refuse("instruction that rounds to integers");
  if (shape.halves && !target.halves)
    return refuse("conversions of f16");
  target.emulatesTiles =
      shape.dots == DotUnit::Tiles && target.dots != DotUnit::Tiles;
  static_cast<CodeShape &>(target) = shape;
  target.shape = shape.description();
  return Error::success();
}

/// `SHAPE@MACHINE`.
static Expected<Target> parseShaped(StringRef shapeName, StringRef machineName,
                                    bool optimize) {
  Expected<Target> shape = parseMachine(shapeName, optimize);
  if (!shape)
    return shape.takeError();
  Expected<Target> target = parseMachine(machineName, optimize);
  if (!target)
    return target.takeError();
  if (Error error = takeShape(*target, *shape))
    return std::move(error);
  return target;
}

Expected<Target> parseTarget(StringRef name, bool optimize) {
  auto [shape, machine] = name.split('@');
  return machine.empty() ? parseMachine(name, optimize)
                         : parseShaped(shape, machine, optimize);
}

Expected<std::vector<Target>> parseTargets(StringRef names, bool optimize) {
  std::vector<Target> targets;
  auto add = [&](StringRef name) -> Error {
    Expected<Target> target = parseTarget(name, optimize);
    if (!target)
      return target.takeError();
    targets.push_back(std::move(*target));
    return Error::success();
  };
  SmallVector<StringRef> list;
  names.split(list, ',');
  // The first word of TRIPLE,CPU is no level.
  if (list.size() == 1 || !canBeVariant(list[0])) {
    if (Error error = add(names))
      return std::move(error);
    return targets;
  }
  // The names of levels are in the order of levels.
  llvm::sort(list);
  for (auto [index, name] : enumerate(list)) {
    if (!canBeVariant(name))
      return createStringError("'" + name + "' in the list of targets '" +
                               names +
                               "' is not x86-64, x86-64-v2, x86-64-v3 or "
                               "x86-64-v4");
    if (index > 0 && name == list[index - 1])
      return createStringError(
          "'" + name + "' is twice in the list of targets '" + names + "'");
    if (Error error = add(name))
      return std::move(error);
  }
  return targets;
}

} // namespace keratin
