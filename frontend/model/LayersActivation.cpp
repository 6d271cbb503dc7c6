//===- LayersActivation.cpp - activations as layers and as functions ------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// By name
//===----------------------------------------------------------------------===//

namespace {
struct NamedActivation {
  std::string_view name;
  K::Tensor (*function)(const K::Tensor &);
};
} // namespace

static K::Tensor sparsemax(const K::Tensor &) {
  throw Error("the activation 'sparsemax' is not supported: use 'softmax'");
}

static constexpr NamedActivation namedActivations[] = {
    {"linear", [](const K::Tensor &x) { return x; }},
    {"relu", [](const K::Tensor &x) { return K::relu(x); }},
    {"relu6", K::relu6},
    {"leaky_relu", [](const K::Tensor &x) { return K::leaky_relu(x); }},
    {"elu", [](const K::Tensor &x) { return K::elu(x); }},
    {"celu", [](const K::Tensor &x) { return K::celu(x); }},
    {"selu", K::selu},
    {"gelu", [](const K::Tensor &x) { return K::gelu(x); }},
    {"glu", [](const K::Tensor &x) { return K::glu(x); }},
    {"silu", K::silu},
    {"swish", K::silu},
    {"mish", K::mish},
    {"sigmoid", [](const K::Tensor &x) { return K::sigmoid(x); }},
    {"hard_sigmoid", K::hard_sigmoid3},
    {"hard_silu", K::hard_silu},
    {"hard_swish", K::hard_silu},
    {"hard_tanh", K::hard_tanh},
    {"hard_shrink", [](const K::Tensor &x) { return K::hard_shrink(x); }},
    {"soft_shrink", [](const K::Tensor &x) { return K::soft_shrink(x); }},
    {"tanh", [](const K::Tensor &x) { return K::tanh(x); }},
    {"tanh_shrink", K::tanh_shrink},
    {"softplus", K::softplus},
    {"softsign", K::softsign},
    {"squareplus", [](const K::Tensor &x) { return K::squareplus(x); }},
    {"sparse_plus", K::sparse_plus},
    {"sparse_sigmoid", K::sparse_sigmoid},
    {"log_sigmoid", K::log_sigmoid},
    {"exponential", [](const K::Tensor &x) { return K::exp(x); }},
    {"softmax", [](const K::Tensor &x) { return K::softmax(x); }},
    {"log_softmax", [](const K::Tensor &x) { return K::log_softmax(x); }},
    {"sparsemax", sparsemax},
};

//===----------------------------------------------------------------------===//
// Layers without weights: a function for a configuration
//===----------------------------------------------------------------------===//

/// Keras 2 and 3 differ in the name of the slope.
static double slope(const Config &config, double fallback) {
  const char *key = config.has("alpha") ? "alpha" : "negative_slope";
  if (config.at(key).is_array()) { // of Keras 2: an array of one
    const Json &list = config.at(key);
    if (list.size() == 1 && list[0].is_number())
      return list[0].get<double>();
  }
  return config.number(key, fallback);
}

static Activation reluOf(const Config &config) {
  K::Tensor most;
  if (std::optional<double> value = config.optionalNumber("max_value"))
    most = *value;
  double negative = config.number("negative_slope", 0);
  double threshold = config.number("threshold", 0);
  return
      [=](const K::Tensor &x) { return K::relu(x, negative, most, threshold); };
}

static Activation leakyReluOf(const Config &config) {
  double negative = slope(config, 0.3);
  return [=](const K::Tensor &x) { return K::leaky_relu(x, negative); };
}

static Activation eluOf(const Config &config) {
  double alpha = config.number("alpha", 1);
  return [=](const K::Tensor &x) { return K::elu(x, alpha); };
}

static Activation thresholdedReluOf(const Config &config) {
  double theta = config.number("theta", 1);
  return [=](const K::Tensor &x) { return K::threshold(x, theta, 0); };
}

static Activation softmaxOf(const Config &config) {
  std::vector<int64_t> axes =
      config.integers("axis", 0, -16, std::vector<int64_t>{-1});
  return [=](const K::Tensor &x) {
    if (axes.size() == 1)
      return K::softmax(x, axes[0]);
    return K::exp(x - K::logsumexp(x, axes, /*keepdims=*/true));
  };
}

using ActivationMaker = Activation (*)(const Config &);

static ActivationMaker makerOf(std::string_view className) {
  static const std::pair<std::string_view, ActivationMaker> makers[] = {
      {"ReLU", reluOf},       {"LeakyReLU", leakyReluOf},
      {"ELU", eluOf},         {"ThresholdedReLU", thresholdedReluOf},
      {"Softmax", softmaxOf},
  };
  for (auto [name, maker] : makers)
    if (name == className)
      return maker;
  return nullptr;
}

static K::Tensors activationLayer(LayerContext &layer) {
  return {makerOf(layer.className())(layer.config())(layer.input())};
}

/// Masked positions get no weight: they are pushed far below all others. Keras
/// 3 also sees to it that all are zero where all are masked.
static K::Tensors softmaxLayer(LayerContext &layer) {
  K::Tensor x = layer.input();
  Activation softmax = softmaxOf(layer.config());
  K::Tensor mask = layer.tensor(1, "mask");
  if (!mask)
    return {softmax(x)};
  double far = K::dtype(x) == K::DType::Float16 ? -3e4 : -1e9;
  if (layer.isKeras2())
    return {softmax(x + (K::Tensor(1) - K::cast(mask, K::dtype(x))) *
                            K::Tensor(far))};
  if (isFloat(K::dtype(mask)))
    mask = K::greater(mask, 0.5);
  mask = K::cast(mask, K::DType::Bool);
  K::Tensor weights = softmax(K::where(mask, x, K::full_like(x, far)));
  return {K::where(mask, weights, K::full_like(weights, 0))};
}

/// max(x, 0) + alpha * min(x, 0), with an alpha that is learnt.
static K::Tensors prelu(LayerContext &layer) {
  K::Tensor x = layer.input();
  K::Shape shape = K::int_shape(x);
  shape.erase(shape.begin());
  for (int64_t axis :
       layer.config().integers("shared_axes", 0, 1, std::vector<int64_t>()))
    if (axis - 1 < int64_t(shape.size()))
      shape[size_t(axis - 1)] = 1;
  K::Tensor alpha = layer.weight("alpha", shape);
  return {K::relu(x) - alpha * K::relu(-x)};
}

static K::Tensors activationByConfig(LayerContext &layer) {
  return {activate(layer, layer.input())};
}

//===----------------------------------------------------------------------===//
// The value of a key "activation"
//===----------------------------------------------------------------------===//

static Activation named(const LayerContext &layer, const std::string &key,
                        const std::string &name) {
  if (name == "hard_sigmoid" && layer.isKeras2())
    return K::hard_sigmoid;
  for (const NamedActivation &candidate : namedActivations)
    if (candidate.name == name)
      return candidate.function;
  layer.problem("has '" + key + "': '" + name +
                "', which is no activation of Keras: build the function from "
                "keras.ops calls or Keras layers");
  return [](const K::Tensor &x) { return x; };
}

Activation model::activation(const LayerContext &layer, const Config &config,
                             const std::string &key,
                             const std::string &fallback) {
  const Json &value = config.at(key);
  if (!config.raw().contains(key))
    return named(layer, key, fallback);
  if (value.is_null())
    return named(layer, key, "linear");
  if (value.is_string())
    return named(layer, key, value.get<std::string>());
  if (value.is_object() && value.contains("class_name") &&
      value["class_name"].is_string() && value.contains("config")) {
    std::string className = value["class_name"].get<std::string>();
    const Json &inner = value["config"];
    if (className == "function" && inner.is_string())
      return named(layer, key, inner.get<std::string>());
    if (className == "Activation" && inner.is_object() &&
        inner.contains("activation") && inner["activation"].is_string())
      return named(layer, key, inner["activation"].get<std::string>());
    if (ActivationMaker maker = makerOf(className); maker && inner.is_object())
      return maker(Config(inner, [&layer](const std::string &message) {
        layer.problem("has an activation that " + message);
      }));
  }
  config.wrong(key, "the name of an activation");
  return [](const K::Tensor &x) { return x; };
}

std::span<const LayerEntry> model::activationLayers() {
  static const LayerEntry entries[] = {
      {"Activation", activationByConfig, Masking::Passes},
      {"ReLU", activationLayer, Masking::Passes},
      {"LeakyReLU", activationLayer, Masking::Passes},
      {"ELU", activationLayer, Masking::Passes},
      {"ThresholdedReLU", activationLayer, Masking::Passes},
      {"Softmax", softmaxLayer, Masking::Passes},
      {"PReLU", prelu, Masking::Passes},
  };
  return entries;
}
