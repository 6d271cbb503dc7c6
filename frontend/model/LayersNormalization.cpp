//===- LayersNormalization.cpp - normalization and scaling layers ---------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

/// The axes that `key` names, counted from the front and sorted.
static std::vector<int64_t> axesOf(LayerContext &layer, const K::Tensor &x,
                                   const std::string &key = "axis") {
  int64_t rank = K::ndim(x);
  std::vector<int64_t> axes =
      layer.config().integers(key, 0, -16, std::vector<int64_t>{-1});
  for (int64_t &axis : axes) {
    if (axis < -rank || axis >= rank)
      layer.fail("has '" + key + "': " + std::to_string(axis) +
                 ", but its input has rank " + std::to_string(rank));
    axis = axis < 0 ? axis + rank : axis;
  }
  std::sort(axes.begin(), axes.end());
  if (axes.empty() ||
      std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    layer.fail("has '" + key + "' without an axis, or with one given twice");
  return axes;
}

static K::Shape extentsOf(LayerContext &layer, const K::Tensor &x,
                          const std::vector<int64_t> &axes) {
  K::Shape shape;
  for (int64_t axis : axes)
    shape.push_back(layer.channels(x, axis));
  return shape;
}

static K::Tensors batchNormalization(LayerContext &layer) {
  const Config &config = layer.config();
  K::Tensor x = layer.input();
  std::vector<int64_t> axes = axesOf(layer, x);
  if (axes.size() != 1)
    layer.fail("has several axes in 'axis', but one is expected");
  if (config.flag("renorm", false))
    layer.problem("has 'renorm': true, which is not supported: train without "
                  "it");
  double epsilon = config.number("epsilon", 1e-3);
  K::Shape shape = extentsOf(layer, x, axes);
  K::DType wide = wideType(layer.dtype());
  K::Tensor gamma, beta;
  if (config.flag("scale", true))
    gamma = layer.weight("gamma", shape, wide);
  if (config.flag("center", true))
    beta = layer.weight("beta", shape, wide);
  K::Tensor mean = layer.weight("moving_mean", shape, wide);
  K::Tensor variance = layer.weight("moving_variance", shape, wide);
  K::Tensor y = K::batch_normalization(K::cast(x, wide), mean, variance, beta,
                                       gamma, axes[0], epsilon);
  return {K::cast(y, layer.dtype())};
}

static K::Tensors layerNormalization(LayerContext &layer) {
  const Config &config = layer.config();
  K::Tensor x = layer.input();
  std::vector<int64_t> axes = axesOf(layer, x);
  double epsilon = config.number("epsilon", 1e-3);
  K::Shape shape = extentsOf(layer, x, axes);
  K::DType wide = wideType(layer.dtype());
  bool rms = config.flag("rms_scaling", false);
  // Keras sorts the axes as they are stated, those from the end in front, and
  // takes the elements of a weight in the order of the axes all the same.
  std::vector<int64_t> stated =
      config.integers("axis", 0, -16, std::vector<int64_t>{-1});
  std::sort(stated.begin(), stated.end());
  auto weight = [&, stored = extentsOf(layer, x, stated)](const char *name) {
    return K::reshape(layer.weight(name, stored, wide), shape);
  };
  K::Tensor gamma, beta;
  if (rms || config.flag("scale", true))
    gamma = weight("gamma");
  if (!rms && config.flag("center", true))
    beta = weight("beta");
  K::Tensor input = K::cast(x, wide);
  if (!rms)
    return {K::cast(K::layer_normalization(input, gamma, beta, axes, epsilon),
                    layer.dtype())};
  // x / sqrt(var + epsilon) * gamma: not centred, unlike the variance.
  K::Tensor scale = K::rsqrt(K::var(input, axes, /*keepdims=*/true) + epsilon);
  K::Shape broadcast(size_t(K::ndim(x)), 1);
  for (size_t i = 0; i < axes.size(); ++i)
    broadcast[size_t(axes[i])] = shape[i];
  return {K::cast(input * scale * K::reshape(gamma, broadcast), layer.dtype())};
}

static K::Tensors rmsNormalization(LayerContext &layer) {
  K::Tensor x = layer.input();
  std::vector<int64_t> axes = axesOf(layer, x);
  double epsilon = layer.config().number("epsilon", 1e-6);
  K::DType wide = wideType(layer.dtype());
  K::Tensor scale = layer.weight("scale", extentsOf(layer, x, axes), wide);
  return {K::cast(K::rms_normalization(K::cast(x, wide), scale, axes, epsilon),
                  layer.dtype())};
}

static K::Tensors groupNormalization(LayerContext &layer) {
  const Config &config = layer.config();
  K::Tensor x = layer.input();
  std::vector<int64_t> axes = axesOf(layer, x);
  if (axes.size() != 1)
    layer.fail("has several axes in 'axis', but one is expected");
  K::Shape shape = extentsOf(layer, x, axes);
  int64_t groups = config.integer("groups", -1, 32);
  groups = groups == -1 ? shape[0] : groups;
  if (groups < 1 || shape[0] % groups)
    layer.fail("has 'groups': " + std::to_string(groups) +
               ", which must divide its " + std::to_string(shape[0]) +
               " channels");
  double epsilon = config.number("epsilon", 1e-3);
  K::DType wide = wideType(layer.dtype());
  K::Tensor gamma, beta;
  if (config.flag("scale", true))
    gamma = layer.weight("gamma", shape, wide);
  if (config.flag("center", true))
    beta = layer.weight("beta", shape, wide);
  K::Tensor y = K::group_normalization(K::cast(x, wide), groups, gamma, beta,
                                       axes[0], epsilon);
  return {K::cast(y, layer.dtype())};
}

/// x / max(|x|, 1e-12)
static K::Tensors unitNormalization(LayerContext &layer) {
  K::Tensor x = layer.input();
  std::vector<int64_t> axes = axesOf(layer, x);
  K::Tensor norm = K::sqrt(K::sum(K::square(x), axes, /*keepdims=*/true));
  return {x / K::maximum(norm, 1e-12)};
}

/// Inference uses the kernel as it is: the wrapped layer.
static K::Tensors spectralNormalization(LayerContext &layer) {
  const Json *wrapped = layer.config().layer("layer");
  if (!wrapped)
    return {};
  InnerCall inner{wrapped, "layer", layer.weightScope().attribute("layer"), {}};
  inner.call.args.push_back(Argument::of(layer.inputs().front()));
  K::Tensors outputs;
  for (const Value &value : layer.buildInner(inner))
    outputs.push_back(value.tensor);
  layer.skipWeights();
  return outputs;
}

//===----------------------------------------------------------------------===//
// Scaling
//===----------------------------------------------------------------------===//

/// Statistics that the configuration states, in the shape `broadcast`.
static K::Tensor statedStatistic(LayerContext &layer, const std::string &key,
                                 const K::Shape &broadcast) {
  std::optional<Array> numbers =
      numbersOf(layer.config().at(key), DType::Float32);
  int64_t elements = 1;
  for (int64_t extent : broadcast)
    elements *= extent;
  if (!numbers || (numbers->size() != 1 && numbers->size() != elements)) {
    layer.config().wrong(key, "one number, or " + std::to_string(elements) +
                                  " as its input has");
    return K::ones(broadcast, layer.dtype());
  }
  K::Shape shape =
      numbers->size() == 1 ? K::Shape(broadcast.size(), 1) : broadcast;
  return K::cast(K::reshape(K::constant(*numbers, key), shape), layer.dtype());
}

/// (x - mean) / max(sqrt(variance), epsilon), or its inverse.
static K::Tensors normalization(LayerContext &layer) {
  const Config &config = layer.config();
  K::Tensor x = layer.input();
  if (!isFloat(K::dtype(x)))
    x = K::cast(x, layer.dtype());
  std::vector<int64_t> axes;
  if (config.has("axis") &&
      !(config.at("axis").is_array() && config.at("axis").empty()))
    axes = axesOf(layer, x);
  K::Shape shape = extentsOf(layer, x, axes);
  K::Shape broadcast(size_t(K::ndim(x)), 1);
  for (size_t i = 0; i < axes.size(); ++i)
    broadcast[size_t(axes[i])] = shape[i];
  K::Tensor mean, variance;
  if (config.has("mean")) {
    mean = statedStatistic(layer, "mean", broadcast);
    variance = statedStatistic(layer, "variance", broadcast);
  } else {
    mean = K::reshape(layer.weight("mean", shape), broadcast);
    variance = K::reshape(layer.weight("variance", shape), broadcast);
  }
  layer.skipWeights(); // a count that only old files need
  K::Tensor deviation = K::maximum(K::sqrt(variance), 1e-7);
  if (config.flag("invert", false))
    return {mean + x * deviation};
  return {(x - mean) / deviation};
}

static K::Tensor statedTensor(LayerContext &layer, const std::string &key,
                              double fallback) {
  const Json &value = layer.config().at(key);
  if (!value.is_array())
    return layer.config().number(key, fallback);
  if (std::optional<Array> numbers = numbersOf(value, DType::Float32))
    return K::cast(K::constant(*numbers, key), layer.dtype());
  layer.config().wrong(key, "a number or a list of numbers");
  return fallback;
}

static K::Tensors rescaling(LayerContext &layer) {
  K::Tensor x = K::cast(layer.input(), layer.dtype());
  K::Tensor scale = statedTensor(layer, "scale", 1);
  K::Tensor offset = statedTensor(layer, "offset", 0);
  return {x * scale + offset};
}

/// keras.applications.convnext: x * gamma.
static K::Tensors layerScale(LayerContext &layer) {
  int64_t channels = layer.config().integer("projection_dim", 1);
  return {layer.input() * layer.weight("gamma", {channels})};
}

/// keras.applications.inception_resnet_v2: inputs[0] + inputs[1] * scale.
static K::Tensors customScale(LayerContext &layer) {
  std::vector<Value> inputs = layer.inputs();
  if (inputs.size() != 2)
    layer.fail("is called with " + std::to_string(inputs.size()) +
               " inputs, but 2 are expected");
  return {inputs[0].tensor +
          inputs[1].tensor * K::Tensor(layer.config().number("scale"))};
}

std::span<const LayerEntry> model::normalizationLayers() {
  static const LayerEntry entries[] = {
      {"BatchNormalization", batchNormalization, Masking::Passes},
      {"SyncBatchNormalization", batchNormalization, Masking::Passes},
      {"LayerNormalization", layerNormalization, Masking::Passes},
      {"RMSNormalization", rmsNormalization, Masking::Drops},
      {"GroupNormalization", groupNormalization, Masking::Passes},
      {"UnitNormalization", unitNormalization, Masking::Passes},
      {"SpectralNormalization", spectralNormalization, Masking::Passes},
      {"Normalization", normalization},
      {"Rescaling", rescaling, Masking::Passes},
      {"LayerScale", layerScale},
      {"CustomScaleLayer", customScale},
  };
  return entries;
}
