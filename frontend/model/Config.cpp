//===- Config.cpp - checked access to a layer's configuration -------------===//
#include "Config.h"

#include <algorithm>
#include <cmath>

using namespace keratin;
using namespace keratin::model;

std::optional<int64_t> model::asInteger(const Json &value) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() <= uint64_t(INT64_MAX)
               ? std::optional<int64_t>(value.get<int64_t>())
               : std::nullopt;
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (!value.is_number_float())
    return std::nullopt;
  double number = value.get<double>();
  bool whole = number == std::floor(number) && std::abs(number) < 9e15;
  return whole ? std::optional<int64_t>(int64_t(number)) : std::nullopt;
}

static std::string rangeText(int64_t least, int64_t most) {
  std::string text = "an integer of at least " + std::to_string(least);
  if (most != std::numeric_limits<int64_t>::max())
    text += " and at most " + std::to_string(most);
  return text;
}

const Json &Config::at(const std::string &key) const {
  static const Json null;
  auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool Config::has(const std::string &key) const { return !at(key).is_null(); }

void Config::wrong(const std::string &key, const std::string &expected) const {
  report("has '" + key + "': " + describeJson(at(key)) + ", but " + expected +
         " is expected");
}

int64_t Config::integer(const std::string &key, int64_t least,
                        std::optional<int64_t> fallback, int64_t most) const {
  if (fallback && !has(key))
    return *fallback;
  std::optional<int64_t> value = asInteger(at(key));
  if (value && *value >= least && *value <= most)
    return *value;
  wrong(key, rangeText(least, most));
  return fallback.value_or(std::max<int64_t>(least, 1));
}

double Config::number(const std::string &key,
                      std::optional<double> fallback) const {
  if (fallback && !has(key))
    return *fallback;
  if (at(key).is_number())
    return at(key).get<double>();
  wrong(key, "a number");
  return fallback.value_or(1);
}

std::optional<double> Config::optionalNumber(const std::string &key) const {
  if (!has(key))
    return std::nullopt;
  return number(key);
}

bool Config::flag(const std::string &key, bool fallback) const {
  if (!has(key))
    return fallback;
  if (at(key).is_boolean())
    return at(key).get<bool>();
  wrong(key, "true or false");
  return fallback;
}

std::string Config::text(const std::string &key,
                         const std::string &fallback) const {
  if (!has(key))
    return fallback;
  if (at(key).is_string())
    return at(key).get<std::string>();
  wrong(key, "a string");
  return fallback;
}

std::string Config::choice(const std::string &key,
                           std::initializer_list<std::string_view> allowed,
                           const std::string &fallback) const {
  if (!fallback.empty() && !has(key))
    return fallback;
  if (at(key).is_string()) {
    const std::string &value = at(key).get_ref<const std::string &>();
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end())
      return value;
  }
  std::string names;
  for (std::string_view name : allowed)
    names += (names.empty() ? "'" : " or '") + std::string(name) + "'";
  wrong(key, names);
  return fallback.empty() ? std::string(*allowed.begin()) : fallback;
}

std::vector<int64_t>
Config::integers(const std::string &key, size_t count, int64_t least,
                 std::optional<std::vector<int64_t>> fallback) const {
  if (fallback && !has(key))
    return *fallback;
  const Json &value = at(key);
  std::vector<int64_t> result;
  bool right = true;
  auto append = [&](const Json &item) {
    std::optional<int64_t> integer = asInteger(item);
    right &= integer && *integer >= least && *integer <= maxExtent;
    result.push_back(integer.value_or(least));
  };
  if (value.is_array())
    for (const Json &item : value)
      append(item);
  else
    append(value);
  if (count && result.size() == 1)
    result.resize(count, result.front());
  right &= count == 0 || result.size() == count;
  if (right)
    return result;
  wrong(key, "a list of " +
                 (count ? std::to_string(count) + " " : std::string()) +
                 "integers of at least " + std::to_string(least));
  return fallback.value_or(
      std::vector<int64_t>(count, std::max<int64_t>(least, 1)));
}

const Json *Config::layer(const std::string &key) const {
  const Json &value = at(key);
  auto name = value.is_object() ? value.find("class_name") : value.end();
  auto config = value.is_object() ? value.find("config") : value.end();
  if (value.is_object() && name != value.end() && name->is_string() &&
      config != value.end() && config->is_object())
    return &value;
  wrong(key, "a layer with 'class_name' and 'config'");
  return nullptr;
}
