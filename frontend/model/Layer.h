//===- Layer.h - one call of one layer --------------------------*- C++ -*-===//
//
// A layer is a function from its configuration, weights and arguments to calls
// of the backend API. The files Layers*.cpp have them by family; adding one is
// a function and a line in its family's table.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_MODEL_LAYER_H
#define KERATIN_FRONTEND_MODEL_LAYER_H

#include "Config.h"
#include "Json.h"
#include "Problems.h"
#include "Weights.h"

#include "keratin/backend.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace keratin::model {

namespace K = keratin::backend;

/// A tensor, and the Keras mask that travels with it (or None).
struct Value {
  K::Tensor tensor;
  K::Tensor mask;
};

/// An argument of a call: a tensor, a list of arguments, or a constant of the
/// file. Dictionaries are lists in the order of their keys, as Keras flattens
/// them.
struct Argument {
  enum class Kind { None, Tensor, List, Constant };
  Kind kind = Kind::None;
  Value value;
  std::vector<Argument> items;
  std::vector<std::string> keys; // of a dictionary
  const Json *constant = nullptr;

  static Argument of(Value value);
  static Argument list(std::vector<Argument> items);
  bool isTensor() const { return kind == Kind::Tensor; }
};

struct Call {
  std::vector<Argument> args;
  std::map<std::string, Argument> kwargs;
};

class LayerContext;
/// Builds a layer; returns its outputs.
using LayerFunction = K::Tensors (*)(LayerContext &layer);

/// What a layer does with the mask of its input.
enum class Masking {
  Drops,  ///< its outputs have none
  Passes, ///< its outputs have its first input's
  Sets,   ///< it calls LayerContext::setMask
  Takes,  ///< like Sets, and in Keras 3 later readers of its inputs see none
};

struct LayerEntry {
  std::string_view className;
  LayerFunction build;
  Masking masking = Masking::Drops;
};

/// The tables, by family.
std::span<const LayerEntry> coreLayers();
std::span<const LayerEntry> activationLayers();
std::span<const LayerEntry> convolutionLayers();
std::span<const LayerEntry> poolingLayers();
std::span<const LayerEntry> normalizationLayers();
std::span<const LayerEntry> mergingLayers();
std::span<const LayerEntry> reshapingLayers();
std::span<const LayerEntry> imageLayers();
std::span<const LayerEntry> recurrentLayers();
std::span<const LayerEntry> attentionLayers();
/// Nodes of the graph that are functions of keras.ops.
std::span<const LayerEntry> elementwiseOperators();
std::span<const LayerEntry> reduceOperators();
std::span<const LayerEntry> shapeOperators();
std::span<const LayerEntry> attentionOperators();

/// The entry of a layer class or null. `isOperator` chooses between the two
/// name spaces: `Add` is a layer of a list and an operator of two arguments.
const LayerEntry *findLayer(std::string_view className, bool isOperator);

/// Weights as graph constants: a layer that is called twice has them once.
using WeightCache = std::unordered_map<std::string, K::Tensor>;

/// What all layers of a file have in common.
struct Shared {
  Problems &problems;
  WeightCache cache;
  /// The file is of Keras 2 (or tf_keras), where a few formulas differ.
  bool isKeras2 = false;
};

/// What an inner layer is called with.
struct InnerCall {
  const Json *layer;
  std::string name;
  WeightScope weights;
  Call call;
};

/// One call of one layer: its configuration, its weights, its arguments, and
/// where its problems go.
class LayerContext {
public:
  LayerContext(const Json &object, std::string path, const Call &call,
               WeightScope weights, Shared &shared);

  /// "encoder/dense", for messages.
  const std::string &path() const { return layerPath; }
  const std::string &className() const { return layerClass; }
  const Config &config() const { return settings; }
  /// Records a problem of this layer and goes on.
  void problem(const std::string &message) const;
  /// Gives up on this layer.
  [[noreturn]] void fail(const std::string &message) const;
  bool failed() const { return failures > 0; }

  // Types.

  /// What the layer computes in; float arguments are cast to it.
  K::DType dtype() const { return computeType; }
  /// "int8", "int4", "float8", … of a quantised layer, else empty.
  const std::string &quantization() const { return quantizationMode; }
  void castArguments();

  // Arguments.

  size_t argumentCount() const { return call.args.size(); }
  /// The first argument.
  K::Tensor input();
  /// The argument at `position`, or the one named `name`; None if not given.
  K::Tensor tensor(size_t position, const std::string &name);
  const Argument *argument(size_t position, const std::string &name) const;
  /// The first argument as a list.
  std::vector<Value> inputs();
  /// The mask of the call: given as `mask`, or the one of the first input.
  K::Tensor mask();
  /// Requires an input of this rank.
  K::Tensor inputOfRank(int64_t rank);
  /// The channel extent of `x`, which must be known.
  int64_t channels(const K::Tensor &x, int64_t axis);

  // Weights.

  /// The next variable, which must have `shape` (-1 matches any extent), in
  /// the compute dtype.
  K::Tensor weight(const std::string &name, const K::Shape &shape) {
    return weight(name, shape, computeType);
  }
  K::Tensor weight(const std::string &name, const K::Shape &shape,
                   K::DType dtype);
  /// The same in the dtype of the file.
  Array weightArray(const std::string &name, const K::Shape &shape);
  size_t weightsLeft() const { return weights.left(); }
  /// What is left is of no use to inference.
  void skipWeights() { weights = WeightScope(); }
  /// Weights of a part of this layer, kept in the Python attribute.
  template <typename Body>
  auto inside(const std::string &attribute, Body &&body) {
    WeightScope outer = weights;
    weights = outer.attribute(attribute);
    auto result = body();
    weights = std::move(outer);
    return result;
  }
  const WeightScope &weightScope() const { return weights; }

  // Other layers.

  /// Builds a layer that this one wraps. Set by the graph reader.
  std::function<std::vector<Value>(const InnerCall &)> buildInner;
  bool isKeras2() const { return shared.isKeras2; }

  // Results.

  void setMask(K::Tensor mask) { outputMask = std::move(mask); }
  const K::Tensor &maskOut() const { return outputMask; }

private:
  void readPolicy(const Json &policy);

  std::string layerPath;
  std::string layerClass;
  Call call;
  WeightScope weights;
  Shared &shared;
  mutable size_t failures = 0;
  Config settings;
  K::DType computeType;
  std::string quantizationMode;
  K::Tensor outputMask;
};

using Activation = std::function<K::Tensor(const K::Tensor &)>;

/// The activation that the configuration names under `key`; `fallback` when
/// there is none, and linear for null.
Activation activation(const LayerContext &layer, const Config &config,
                      const std::string &key = "activation",
                      const std::string &fallback = "linear");
inline K::Tensor activate(const LayerContext &layer, const K::Tensor &x,
                          const std::string &key = "activation") {
  return activation(layer, layer.config(), key)(x);
}

/// The layer's `data_format`, channels_last where the file does not say.
std::string dataFormat(const LayerContext &layer);
/// Where the channels of a tensor of `rank` are.
int64_t channelAxis(const std::string &dataFormat, int64_t rank);
/// The numbers of a (nested) list in row-major order, and its extents; nothing
/// when it holds something else or is ragged.
std::optional<Array> numbersOf(const Json &value, K::DType dtype);
/// float32 for the half-precision types, which sums would overflow.
K::DType wideType(K::DType dtype);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_LAYER_H
