//===- Objects.h - what the objects in a model file say ---------*- C++ -*-===//
//
// A layer, an operator and a model are objects with `class_name` and `config`;
// a tensor is a reference to a call of one of them.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_MODEL_OBJECTS_H
#define KERATIN_FRONTEND_MODEL_OBJECTS_H

#include "Json.h"

#include "keratin/backend.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace keratin::model {

namespace K = keratin::backend;

/// Whether `object` has a `class_name` and a `config`. The other functions on
/// objects require it.
bool isObjectWithConfig(const Json &object);
/// The string at `key`, or an empty one.
std::string textOf(const Json &object, const char *key);
std::string nameOf(const Json &object);
bool isClass(const Json &object, std::string_view name);
/// Whether the class is none of Keras': its code is not in the file.
bool isCustom(const Json &object);
/// Whether it is a call of keras.ops.
bool isOperator(const Json &object);
/// Whether it is a model that says what it computes: it lists its layers.
bool isModel(const Json &object);
/// Why a layer cannot be read, and the way out.
std::string unsupported(const Json &object);

/// Whether `value` is a tensor, or has one inside.
bool isTensor(const Json &value);
bool holdsTensor(const Json &value);

/// The shape a file states, `null` being unknown. Nothing when it is none.
std::optional<K::Shape> shapeOf(const Json &value);
/// Whether a batch of one has more elements than any tensor should.
bool isTooLarge(const K::Shape &shape);

/// "outer/inner"; `path` may be empty.
std::string join(const std::string &path, const std::string &name);

/// A reference in `input_layers` or `output_layers`.
struct Leaf {
  const Json *reference;
  std::string key; // of a dictionary
};
/// References in the order in which Keras flattens them.
std::vector<Leaf> flatten(const Json &value);

/// Counts the layers of each class, as Keras does to name their weights.
class GroupNames {
public:
  std::string next(const std::string &className);

private:
  std::unordered_map<std::string, size_t> used;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_OBJECTS_H
