//===- Objects.cpp - what the objects in a model file say -----------------===//
#include "Objects.h"

#include "Layer.h"
#include "Weights.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

namespace {
constexpr size_t maxRank = 16;
/// Elements of one tensor with a batch of one.
constexpr int64_t maxElements = int64_t(1) << 34;
} // namespace

bool model::isObjectWithConfig(const Json &object) {
  return object.is_object() && object.contains("class_name") &&
         object["class_name"].is_string() && object.contains("config") &&
         object["config"].is_object();
}

std::string model::textOf(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

std::string model::nameOf(const Json &object) {
  std::string name = textOf(object, "name");
  return name.empty() ? textOf(object["config"], "name") : name;
}

std::string model::join(const std::string &path, const std::string &name) {
  return path.empty() ? name : path + "/" + name;
}

bool model::isClass(const Json &object, std::string_view name) {
  return textOf(object, "class_name") == name;
}

bool model::isTensor(const Json &value) {
  return value.is_object() && isClass(value, "__keras_tensor__");
}

bool model::holdsTensor(const Json &value) {
  if (isTensor(value))
    return true;
  return value.is_structured() &&
         std::any_of(value.begin(), value.end(), holdsTensor);
}

bool model::isCustom(const Json &object) {
  std::string module = textOf(object, "module");
  bool builtIn = module.starts_with("keras") || module.starts_with("tf_keras");
  if (module.empty())
    return !textOf(object, "registered_name").empty() ||
           textOf(object, "class_name").find('>') != std::string::npos;
  return !builtIn;
}

bool model::isOperator(const Json &object) {
  std::string module = textOf(object, "module");
  if (!module.empty())
    return module.starts_with("keras.src.ops") ||
           module.starts_with("keras.ops");
  // Legacy files do not say; an operator has no layer's properties.
  const Json &config = object["config"];
  return !config.contains("trainable") && !config.contains("dtype") &&
         findLayer(textOf(object, "class_name"), /*isOperator=*/true);
}

std::string model::unsupported(const Json &object) {
  std::string name = textOf(object, "class_name");
  if (name == "Lambda")
    return "holds Python bytecode, which is never run: replace it by layers or "
           "keras.ops calls and save the model again";
  if (isCustom(object)) {
    std::string registered = textOf(object, "registered_name");
    return "is of the custom class '" +
           (registered.empty() ? name : registered) +
           "', whose code is not in the file: build it from Keras layers and "
           "keras.ops calls in a functional model and save that";
  }
  if (isOperator(object))
    return "is an operator that is not supported: express it by other "
           "keras.ops calls";
  return "is of a class that is not supported: replace it by other Keras "
         "layers, or leave it out of the saved model and do its work before";
}

std::optional<K::Shape> model::shapeOf(const Json &value) {
  if (!value.is_array() || value.size() > maxRank)
    return std::nullopt;
  K::Shape shape;
  for (const Json &extent : value) {
    std::optional<int64_t> known = asInteger(extent);
    if (!extent.is_null() && (!known || *known < 0 || *known > maxExtent))
      return std::nullopt;
    shape.push_back(known.value_or(K::None));
  }
  return shape;
}

bool model::isTooLarge(const K::Shape &shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (extent > 0 && (__builtin_mul_overflow(elements, extent, &elements) ||
                       elements > maxElements))
      return true;
  return false;
}

bool model::isModel(const Json &object) {
  const Json &config = object["config"];
  auto layers = config.find("layers");
  return layers != config.end() && layers->is_array() && !isCustom(object);
}

static void collect(const Json &value, const std::string &key,
                    std::vector<Leaf> &leaves) {
  bool isLeaf = value.is_array() && value.size() >= 3 && value[0].is_string();
  if (isLeaf || !value.is_structured()) {
    leaves.push_back({&value, key});
    return;
  }
  if (value.is_array())
    for (const Json &item : value)
      collect(item, key, leaves);
  else
    for (const auto &[name, item] : value.items())
      collect(item, name, leaves);
}

std::vector<Leaf> model::flatten(const Json &value) {
  std::vector<Leaf> leaves;
  collect(value, "", leaves);
  return leaves;
}

std::string GroupNames::next(const std::string &className) {
  // The one layer whose Python class is not named as it is exported.
  std::string group = className == "GroupQueryAttention"
                          ? "grouped_query_attention"
                          : snakeCase(className);
  size_t before = used[group]++;
  return before ? group + "_" + std::to_string(before) : group;
}
