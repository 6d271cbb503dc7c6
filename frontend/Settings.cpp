//===- Settings.cpp - settings of the API as options of the compiler ------===//
#include "Settings.h"

#include "Cache.h"
#include "Pages.h"
#include "keratin/backend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

namespace keratin::backend {

std::string identifier(llvm::StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) ? c : '_';
  if (result.empty() || llvm::isDigit(result[0]))
    result = "f" + result;
  return result;
}

/// The value of a setting, or an Error that lists those that there are.
template <typename Value>
static Value require(std::optional<Value> value, const char *setting,
                     const std::string &given, const char *allowed) {
  if (!value)
    throw Error(std::string(setting) + " is '" + given + "', not " + allowed);
  return *value;
}

/// Of what is "auto" or "off".
static bool isAuto(const char *setting, const std::string &given) {
  if (given != "auto" && given != "off")
    throw Error(std::string(setting) + " is '" + given +
                "' but must be auto or off");
  return given == "auto";
}

static int64_t requireCount(const char *setting, int64_t value) {
  if (value < 0)
    throw Error(std::string(setting) + " is " + std::to_string(value) +
                " but must be 0 or more");
  return value;
}

static WeightsPlacement parsePlacement(const std::string &name) {
  if (name == "embed")
    return WeightsPlacement::Embed;
  if (name == "external")
    return WeightsPlacement::External;
  throw Error("weights are '" + name + "' but must be 'embed' or 'external'");
}

CompileOptions compileOptions(const CompileSettings &settings,
                              llvm::StringRef name) {
  CompileOptions options;
  options.name = identifier(name);
  options.target = settings.target.empty() ? compile_target() : settings.target;
  options.optimize = settings.optimize;
  options.winograd = require(parseWinograd(settings.winograd), "winograd",
                             settings.winograd, "one of auto, off, 2, 4, 8");
  options.tiles = isAuto("tiles", settings.tiles);
  options.weights24 = isAuto("weights24", settings.weights24);
  options.strassen = isAuto("strassen", settings.strassen);
  options.pairs = isAuto("pairs", settings.pairs);
  options.foldLookups = isAuto("fold_lookups", settings.foldLookups);
  std::string precision =
      settings.precision.empty() ? compute_precision() : settings.precision;
  options.precision = require(parsePrecision(precision), "precision", precision,
                              "f32, bf16 or f16");
  options.threads = int(requireCount("threads", settings.threads));
  options.unrollFactor = requireCount("unrollFactor", settings.unrollFactor);
  options.checkpointEvery =
      requireCount("checkpointEvery", settings.checkpointEvery);
  options.profile = settings.profile;
  options.dumpAfter = settings.dumpAfter;
  options.dumpDirectory = settings.dumpDirectory;
  options.timePasses = settings.timePasses;
  if (settings.progress)
    options.progress = [progress = settings.progress](
                           llvm::StringRef what, unsigned done,
                           unsigned total) { progress(what, done, total); };
  if (settings.arena)
    options.arena = [tell = settings.arena](const ArenaUse &use) {
      tell({{use.bytes[0], use.bytes[1]}, {use.least[0], use.least[1]}});
    };
  options.release = [](llvm::ArrayRef<char> bytes) {
    releasePages(bytes.data(), bytes.size());
  };
  return options;
}

CompileOptions compileOptions(const SaveOptions &settings,
                              const std::string &prefix, llvm::StringRef name) {
  if (!settings.name.empty() && identifier(settings.name) != settings.name)
    throw Error("name '" + settings.name + "' is not a C identifier");
  std::string made;
  if (!settings.name.empty()) {
    name = settings.name;
  } else if (!prefix.empty() && prefix != "-") {
    // Of letters that C does not have nothing is left; names that begin with
    // '_' are reserved.
    made = identifier(llvm::sys::path::filename(prefix));
    name = llvm::StringRef(made).ltrim('_');
  }
  CompileOptions options =
      compileOptions(static_cast<const CompileSettings &>(settings), name);
  options.weights = parsePlacement(settings.weights);
  // Times and dumps are of all that is done.
  if (!options.timePasses && options.dumpAfter.empty())
    options.store = codeStore();
  return options;
}

void checkSettings(const std::string &caller, const CompileSettings &settings) {
  try {
    CompileOptions options = compileOptions(settings, "");
    if (llvm::Error error = checkTarget(options.target))
      throw Error(llvm::toString(std::move(error)));
  } catch (const Error &error) {
    throw Error(caller + ": " + error.what());
  }
}

} // namespace keratin::backend
