//===- Config.cpp - keras.json and what overrides it ----------------------===//
#include "keratin/config.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

using nlohmann::json;

namespace keratin::backend {

namespace {

struct Config {
  DType floatx = DType::Float32;
  double epsilon = 1e-7;
  std::string imageDataFormat = "channels_last";
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
  return config;
}

Config load() {
  std::filesystem::path path = configFile();
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

/// Calls `use` on the configuration, read first where it was not.
template <typename Use> auto withConfig(Use use) {
  std::lock_guard<std::mutex> lock(configMutex);
  if (!current)
    current = load();
  return use(*current);
}

} // namespace

DType floatx() {
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
  return withConfig([](Config &config) { return config.epsilon; });
}

void set_epsilon(double value) {
  checkedEpsilon(value);
  withConfig([&](Config &config) { config.epsilon = value; });
}

std::string image_data_format() {
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

void reload_config() {
  Config config = load();
  std::lock_guard<std::mutex> lock(configMutex);
  current = config;
}

} // namespace keratin::backend
