//===- Weights.cpp - where a layer finds its variables --------------------===//
#include "Weights.h"

#include <cctype>

using namespace keratin;
using namespace keratin::model;

namespace {

bool isUpper(char c) { return std::isupper(static_cast<unsigned char>(c)); }
bool isLower(char c) { return std::islower(static_cast<unsigned char>(c)); }

/// Whether one of the '/'-separated parts of `path` is `part`.
bool hasPart(std::string_view path, std::string_view part) {
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == part)
      return true;
    begin = end + 1;
  }
  return false;
}

} // namespace

// keras.src.utils.naming.to_snake_case, of two regular expressions:
// "(.)([A-Z][a-z]+)" and "([a-z])([A-Z])", both to "\1_\2".
std::string model::snakeCase(const std::string &className) {
  std::string word;
  for (char c : className)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      word += c;
  std::string first;
  for (size_t i = 0; i < word.size();) {
    bool starts = i > 0 && isUpper(word[i]) && i + 1 < word.size() &&
                  isLower(word[i + 1]);
    if (!starts) {
      first += word[i++];
      continue;
    }
    first += '_';
    do
      first += word[i++];
    while (i < word.size() && isLower(word[i]));
    // The character before the next match must lie outside of this one.
    if (i < word.size() && isUpper(word[i]))
      first += word[i++];
  }
  std::string result;
  for (size_t i = 0; i < first.size(); ++i) {
    if (i > 0 && isLower(first[i - 1]) && isUpper(first[i]))
      result += '_';
    result += char(std::tolower(static_cast<unsigned char>(first[i])));
  }
  return result;
}

std::shared_ptr<const WeightFiles> WeightFiles::of(Hdf5File file) {
  std::vector<Hdf5File> one;
  one.push_back(std::move(file));
  return std::make_shared<WeightFiles>(std::move(one));
}

const Hdf5File *WeightFiles::find(const std::string &path) const {
  for (const Hdf5File &shard : shards)
    if (shard.has(path))
      return &shard;
  return nullptr;
}

Array WeightFiles::dataset(const std::string &path) const {
  const Hdf5File *shard = find(path);
  return (shard ? *shard : shards.front()).dataset(path);
}

std::optional<std::string>
WeightFiles::text(const std::string &path, const std::string &attribute) const {
  const Hdf5File *shard = find(path);
  return (shard ? *shard : shards.front()).text(path, attribute);
}

std::optional<std::vector<std::string>>
WeightFiles::texts(const std::string &path,
                   const std::string &attribute) const {
  const Hdf5File *shard = find(path);
  return (shard ? *shard : shards.front()).texts(path, attribute);
}

WeightScope WeightScope::keras3(std::shared_ptr<const WeightFiles> file,
                                std::string path) {
  WeightScope scope;
  scope.file = std::move(file);
  scope.path = std::move(path);
  return scope;
}

WeightScope WeightScope::legacy(std::shared_ptr<const WeightFiles> file) {
  WeightScope scope = keras3(std::move(file), "model_weights");
  scope.isLegacy = true;
  return scope;
}

WeightScope WeightScope::attribute(const std::string &attribute) const {
  WeightScope scope = *this;
  scope.index = 0;
  if (!file || isLegacy)
    return scope; // the names of inner layers are in the same list
  std::string prefix = path.empty() ? "" : path + "/";
  scope.path = prefix + attribute;
  // Keras 2 does not strip the underscore of a private attribute.
  if (!file->has(scope.path) && file->has(prefix + "_" + attribute))
    scope.path = prefix + "_" + attribute;
  return scope;
}

WeightScope WeightScope::layer(const std::string &group,
                               const std::string &name) const {
  if (!file)
    return {};
  if (!isLegacy)
    return attribute("layers").attribute(group);
  WeightScope scope = *this;
  scope.legacyList = std::make_shared<Legacy>();
  if (legacyList) {
    // A layer of a nested model: its variables are those named after it.
    for (const std::string &variable : legacyList->paths)
      if (hasPart(std::string_view(variable).substr(path.size() + 1), name))
        scope.legacyList->paths.push_back(variable);
    return scope;
  }
  scope.path = path + "/" + name;
  if (auto names = file->texts(scope.path, "weight_names"))
    for (const std::string &variable : *names)
      scope.legacyList->paths.push_back(scope.path + "/" + variable);
  return scope;
}

std::string WeightScope::next() const {
  if (!file)
    return "";
  if (legacyList)
    return legacyList->next < legacyList->paths.size()
               ? legacyList->paths[legacyList->next]
               : "";
  std::string variable = path + "/vars/" + std::to_string(index);
  return file->has(variable) ? variable : "";
}

Array WeightScope::take() {
  std::string variable = next();
  ++(legacyList ? legacyList->next : index);
  return file->dataset(variable);
}

size_t WeightScope::left() const {
  if (!file)
    return 0;
  if (legacyList)
    return legacyList->paths.size() - legacyList->next;
  size_t count = 0;
  while (file->has(path + "/vars/" + std::to_string(index + count)))
    ++count;
  return count;
}

std::string WeightScope::writer() const {
  if (!file || isLegacy)
    return "";
  return file->text(path + "/vars", "name").value_or("");
}
