//===- Config.cpp - keras.json and what overrides it ----------------------===//
#include "Config.h"

#include "codegen/Compile.h"
#include "keratin/cache.h"
#include "keratin/config.h"
#include "keratin/runtime.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

using nlohmann::json;

namespace keratin::backend {

namespace {

struct Config {
  DType floatx = DType::Float32;
  double epsilon = 1e-7;
  std::string imageDataFormat = "channels_last";
  std::string backend;           ///< of the file; empty for none
  std::string target = "native"; ///< of the file
  std::optional<std::string> setTarget;
  std::string precision = "f32"; ///< of the file
  std::optional<std::string> setPrecision;
  /// Of the file, and what was set since; empty for none.
  std::optional<std::string> cacheDirectory, setCacheDirectory;
  int32_t threads = 0; ///< 0: the default
};

std::mutex configMutex;
std::optional<Config> current;

[[noreturn]] void refuse(const std::string &key, const std::string &value,
                         const std::string &allowed) {
  throw Error(key + " is " + value + " but must be " + allowed);
}

DType checkedFloatx(DType dtype) {
  if (!isFloat(dtype))
    refuse("floatx", "'" + std::string(dtypeName(dtype)) + "'",
           "'float16', 'bfloat16', 'float32' or 'float64'");
  return dtype;
}

DType parseFloatx(const std::string &name) {
  for (DType dtype :
       {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64})
    if (dtypeName(dtype) == name)
      return dtype;
  refuse("floatx", "'" + name + "'",
         "'float16', 'bfloat16', 'float32' or 'float64'");
}

double checkedEpsilon(double value) {
  if (!(value > 0 && value < 1))
    refuse("epsilon", std::to_string(value), "a number between 0 and 1");
  return value;
}

std::string checkedDataFormat(const std::string &name) {
  if (name != "channels_last" && name != "channels_first")
    refuse("image_data_format", "'" + name + "'",
           "'channels_last' or 'channels_first'");
  return name;
}

std::string checkedTarget(const std::string &name) {
  if (llvm::Error error = checkTarget(name))
    throw Error(llvm::toString(std::move(error)));
  return name;
}

std::string checkedPrecision(const char *key, const std::string &name) {
  if (!parsePrecision(name))
    refuse(key, "'" + name + "'", "'f32', 'bf16' or 'f16'");
  return name;
}

std::filesystem::path configFile() {
  if (const char *home = std::getenv("KERAS_HOME"); home && *home)
    return std::filesystem::path(home) / "keras.json";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".keras" / "keras.json";
  return {};
}

/// The string at `key`, if there is one.
std::optional<std::string> readString(const json &object, const char *key,
                                      const char *allowed) {
  if (!object.contains(key))
    return std::nullopt;
  if (!object[key].is_string())
    refuse(key, object[key].dump(), allowed);
  return object[key].get<std::string>();
}

/// The section `"keratin": {…}`.
void parseKeratin(const json &section, Config &config) {
  if (!section.is_object())
    refuse("keratin", section.dump(), "an object");
  for (const auto &[key, value] : section.items())
    if (key != "target" && key != "precision" && key != "threads" &&
        key != "cache")
      throw Error("keratin has the key '" + key + "', which is " +
                  value.dump() +
                  ", but takes 'target', 'precision', 'threads' and 'cache'");
  if (section.contains("target")) {
    const json &target = section["target"];
    if (!target.is_string())
      refuse("keratin.target", target.dump(), "a string");
    try {
      config.target = checkedTarget(target.get<std::string>());
    } catch (const Error &error) {
      throw Error("keratin.target is " + target.dump() + ": " + error.what());
    }
  }
  if (section.contains("precision")) {
    const json &precision = section["precision"];
    if (!precision.is_string())
      refuse("keratin.precision", precision.dump(), "'f32', 'bf16' or 'f16'");
    config.precision =
        checkedPrecision("keratin.precision", precision.get<std::string>());
  }
  if (section.contains("threads")) {
    const json &threads = section["threads"];
    if (!threads.is_number_unsigned() || threads < 1 ||
        threads > KTN_MAX_THREADS)
      refuse("keratin.threads", threads.dump(),
             "a number from 1 to " + std::to_string(KTN_MAX_THREADS));
    config.threads = threads.get<int32_t>();
  }
  if (!section.contains("cache"))
    return;
  const json &cache = section["cache"];
  bool isAbsolute =
      cache.is_string() &&
      std::filesystem::path(cache.get<std::string>()).is_absolute();
  if (!isAbsolute && !cache.is_null())
    refuse("keratin.cache", cache.dump(), "an absolute path or null");
  config.cacheDirectory = isAbsolute ? cache.get<std::string>() : "";
}

Config parse(const json &object) {
  Config config;
  if (!object.is_object())
    throw Error("the file holds no JSON object");
  if (auto name = readString(object, "floatx", "a string"))
    config.floatx = parseFloatx(*name);
  if (auto name = readString(object, "image_data_format", "a string"))
    config.imageDataFormat = checkedDataFormat(*name);
  if (object.contains("epsilon")) {
    if (!object["epsilon"].is_number())
      refuse("epsilon", object["epsilon"].dump(), "a number between 0 and 1");
    config.epsilon = checkedEpsilon(object["epsilon"].get<double>());
  }
  config.backend = readString(object, "backend", "a string").value_or("");
  if (object.contains("keratin"))
    parseKeratin(object["keratin"], config);
  return config;
}

Config load() {
  std::filesystem::path path = configFile();
  std::error_code isNone;
  if (std::filesystem::is_directory(path, isNone))
    throw Error(path.string() + ": is a directory, not a file");
  std::ifstream file(path);
  if (path.empty() || !file)
    return {};
  try {
    return parse(json::parse(file));
  } catch (const json::exception &error) {
    throw Error(path.string() + ": not valid JSON: " + error.what());
  } catch (const Error &error) {
    throw Error(path.string() + ": " + error.what());
  }
}

std::shared_ptr<const ConfigSource> configSource;

/// What another source says. It is asked without the lock: it may wait for its
/// own.
template <typename T>
std::optional<T>
fromSource(std::function<std::optional<T>()> ConfigSource::*setting) {
  std::shared_ptr<const ConfigSource> source;
  {
    std::lock_guard<std::mutex> lock(configMutex);
    source = configSource;
  }
  return source ? ((*source).*setting)() : std::nullopt;
}

std::optional<std::string> environmentVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

/// ~/.cache/keratin and its like; empty for a user without a home. The XDG
/// specification wants relative paths ignored.
std::string defaultDirectory() {
  for (auto [variable, below] : {std::pair("XDG_CACHE_HOME", "/keratin"),
                                 std::pair("HOME", "/.cache/keratin")})
    if (std::optional<std::string> base = environmentVariable(variable);
        base && std::filesystem::path(*base).is_absolute())
      return *base + below;
  return "";
}

/// Makes `config` the configuration. Threads are of the runtime, which code
/// that was compiled asks; its own variable in the environment goes before the
/// file.
void adopt(const Config &config) {
  std::string threads = environmentVariable("KTN_NUM_THREADS").value_or("");
  if (threads.find_first_not_of("0123456789") != std::string::npos ||
      (!threads.empty() && threads.find_first_not_of('0') == std::string::npos))
    throw Error("$KTN_NUM_THREADS is '" + threads +
                "' but must be a number of at least 1");
  current = config;
  ktn_set_num_threads(threads.empty() ? config.threads : 0);
}

/// Calls `use` on the configuration, read first where it was not.
template <typename Use> auto withConfig(Use use) {
  std::lock_guard<std::mutex> lock(configMutex);
  if (!current)
    adopt(load());
  return use(*current);
}

} // namespace

DType floatx() {
  if (auto other = fromSource(&ConfigSource::floatx))
    return *other;
  return withConfig([](Config &config) { return config.floatx; });
}

void set_floatx(DType dtype) {
  checkedFloatx(dtype);
  withConfig([&](Config &config) { config.floatx = dtype; });
}

void set_floatx(std::string_view name) {
  set_floatx(parseFloatx(std::string(name)));
}

double epsilon() {
  if (auto other = fromSource(&ConfigSource::epsilon))
    return *other;
  return withConfig([](Config &config) { return config.epsilon; });
}

void set_epsilon(double value) {
  checkedEpsilon(value);
  withConfig([&](Config &config) { config.epsilon = value; });
}

std::string image_data_format() {
  if (auto other = fromSource(&ConfigSource::image_data_format))
    return *other;
  return withConfig([](Config &config) { return config.imageDataFormat; });
}

void set_image_data_format(std::string_view name) {
  std::string checked = checkedDataFormat(std::string(name));
  withConfig([&](Config &config) { config.imageDataFormat = checked; });
}

std::string normalize_data_format(std::string_view name) {
  if (name.empty())
    return image_data_format();
  if (name != "channels_last" && name != "channels_first")
    refuse("data_format", "'" + std::string(name) + "'",
           "'channels_last' or 'channels_first'");
  return std::string(name);
}

int64_t num_threads() {
  return withConfig([](Config &) { return ktn_num_threads(); });
}

void set_num_threads(int64_t number) {
  if (number < 0)
    refuse("num_threads", std::to_string(number), "0 or more");
  withConfig([&](Config &) {
    ktn_set_num_threads(
        static_cast<int32_t>(std::min<int64_t>(number, KTN_MAX_THREADS)));
  });
}

std::string compile_target() {
  return withConfig(
      [](Config &config) { return config.setTarget.value_or(config.target); });
}

void set_compile_target(std::string_view target) {
  std::optional<std::string> name;
  if (!target.empty())
    name = checkedTarget(std::string(target));
  withConfig([&](Config &config) { config.setTarget = name; });
}

std::string compute_precision() {
  return withConfig([](Config &config) {
    return config.setPrecision.value_or(config.precision);
  });
}

void set_compute_precision(std::string_view precision) {
  std::optional<std::string> name;
  if (!precision.empty())
    name = checkedPrecision("compute_precision", std::string(precision));
  withConfig([&](Config &config) { config.setPrecision = name; });
}

/// As Keras, which takes an empty variable for none.
std::string backend() {
  std::optional<std::string> name = environmentVariable("KERAS_BACKEND");
  if (!name || name->empty())
    name = withConfig([](Config &config) { return config.backend; });
  bool isOurs = *name == "keratin" || name->starts_with("keratin.");
  return isOurs ? *name : "keratin";
}

std::optional<std::string> cache_directory() {
  Config config = withConfig([](Config &config) { return config; });
  std::optional<std::string> directory = config.setCacheDirectory;
  if (!directory) {
    directory = environmentVariable("KERATIN_CACHE_DIR");
    if (directory && !directory->empty() &&
        !std::filesystem::path(*directory).is_absolute())
      throw Error("$KERATIN_CACHE_DIR is '" + *directory +
                  "' but must be an absolute path, or empty for none");
  }
  if (!directory)
    directory = config.cacheDirectory;
  if (!directory)
    directory = defaultDirectory();
  return directory->empty() ? std::nullopt : directory;
}

void overrideCacheDirectory(const std::optional<std::string> &directory) {
  // The process may go elsewhere.
  std::string path = directory.value_or("");
  if (!path.empty())
    path = std::filesystem::absolute(path).string();
  withConfig([&](Config &config) { config.setCacheDirectory = path; });
}

void set_config_source(std::shared_ptr<const ConfigSource> source) {
  std::lock_guard<std::mutex> lock(configMutex);
  configSource = std::move(source);
}

void reload_config() {
  Config config = load();
  std::lock_guard<std::mutex> lock(configMutex);
  adopt(config);
}

} // namespace keratin::backend
