//===- Config.h - checked access to a layer's configuration -----*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_CONFIG_H
#define KERATIN_FRONTEND_MODEL_CONFIG_H

#include "Json.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keratin::model {

/// The largest extent or count that a model may state.
inline constexpr int64_t maxExtent = int64_t(1) << 31;

/// The `config` object of a layer. Each accessor checks the type and range; a
/// value that is wrong is reported and a harmless one takes its place, so that
/// one reading finds all that is wrong.
class Config {
public:
  using Report = std::function<void(const std::string &)>;

  /// `object` and what `report` refers to outlive the configuration.
  Config(const Json &object, Report report)
      : object(object), report(std::move(report)) {}

  bool has(const std::string &key) const;
  /// The value, or null when there is none.
  const Json &at(const std::string &key) const;

  int64_t integer(const std::string &key, int64_t least,
                  std::optional<int64_t> fallback = std::nullopt,
                  int64_t most = maxExtent) const;
  double number(const std::string &key,
                std::optional<double> fallback = std::nullopt) const;
  /// Nothing for null and for a missing key.
  std::optional<double> optionalNumber(const std::string &key) const;
  bool flag(const std::string &key, bool fallback) const;
  std::string text(const std::string &key, const std::string &fallback) const;
  std::string choice(const std::string &key,
                     std::initializer_list<std::string_view> allowed,
                     const std::string &fallback = "") const;
  /// A list of integers; `count` of them unless it is 0, one integer stands
  /// for all.
  std::vector<int64_t>
  integers(const std::string &key, size_t count, int64_t least,
           std::optional<std::vector<int64_t>> fallback = std::nullopt) const;
  /// An object that describes a layer: it has `class_name` and `config`.
  const Json *layer(const std::string &key) const;
  const Json &raw() const { return object; }

  /// Reports that `key` has a value where `expected` would be right.
  void wrong(const std::string &key, const std::string &expected) const;
  /// Reports a problem of the layer.
  void problem(const std::string &message) const { report(message); }

private:
  const Json &object;
  Report report;
};

/// Whether `value` is an integer that int64_t holds; Python writes 3.0 for
/// some.
std::optional<int64_t> asInteger(const Json &value);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_CONFIG_H
