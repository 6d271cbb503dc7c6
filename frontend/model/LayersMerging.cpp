//===- LayersMerging.cpp - layers of several inputs -----------------------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

/// The inputs, brought to one rank by axes of extent 1 after the batch.
static K::Tensors aligned(LayerContext &layer) {
  std::vector<Value> inputs = layer.inputs();
  if (inputs.size() < 2)
    layer.fail("is called with 1 input, but at least 2 are expected");
  int64_t rank = 0;
  for (const Value &value : inputs)
    rank = std::max(rank, K::ndim(value.tensor));
  K::Tensors tensors;
  for (const Value &value : inputs) {
    K::Tensor x = value.tensor;
    while (K::ndim(x) < rank)
      x = K::expand_dims(x, 1);
    tensors.push_back(x);
  }
  return tensors;
}

/// Keras 3 keeps what any input keeps, Keras 2 what all do.
static void mergeMasks(LayerContext &layer) {
  K::Tensor merged;
  for (const Value &value : layer.inputs()) {
    if (!value.mask)
      return;
    if (!merged)
      merged = value.mask;
    else if (layer.isKeras2())
      merged = K::logical_and(merged, value.mask);
    else
      merged = K::logical_or(merged, value.mask);
  }
  layer.setMask(merged);
}

template <typename Combine>
static K::Tensors merge(LayerContext &layer, Combine combine) {
  K::Tensors inputs = aligned(layer);
  mergeMasks(layer);
  K::Tensor result = inputs.front();
  for (size_t i = 1; i < inputs.size(); ++i)
    result = combine(result, inputs[i]);
  return {result};
}

static K::Tensors addLayer(LayerContext &layer) {
  return merge(layer, [](auto a, auto b) { return a + b; });
}

static K::Tensors multiplyLayer(LayerContext &layer) {
  return merge(layer, [](auto a, auto b) { return a * b; });
}

static K::Tensors averageLayer(LayerContext &layer) {
  double count = double(layer.inputs().size());
  K::Tensors sum = addLayer(layer);
  return {sum.front() / K::Tensor(count)};
}

static K::Tensors maximumLayer(LayerContext &layer) {
  return merge(layer, [](auto a, auto b) { return K::maximum(a, b); });
}

static K::Tensors minimumLayer(LayerContext &layer) {
  return merge(layer, [](auto a, auto b) { return K::minimum(a, b); });
}

static K::Tensors subtractLayer(LayerContext &layer) {
  if (layer.inputs().size() != 2)
    layer.fail("is called with " + std::to_string(layer.inputs().size()) +
               " inputs, but 2 are expected");
  return merge(layer, [](auto a, auto b) { return a - b; });
}

/// The mask of a concatenation: that of the parts, spread over their features.
static void concatenateMasks(LayerContext &layer,
                             const std::vector<Value> &inputs, int64_t axis) {
  bool any = std::any_of(inputs.begin(), inputs.end(),
                         [](const Value &value) { return bool(value.mask); });
  if (!any)
    return;
  K::Tensors masks;
  for (const Value &value : inputs) {
    K::Tensor ones = K::ones_like(value.tensor, K::DType::Bool);
    K::Tensor mask = value.mask;
    if (mask && K::ndim(mask) < K::ndim(value.tensor))
      mask = K::logical_and(K::expand_dims(mask, -1), ones);
    masks.push_back(mask ? mask : ones);
  }
  layer.setMask(K::any(K::concatenate(masks, axis), -1));
}

static K::Tensors concatenateLayer(LayerContext &layer) {
  std::vector<Value> inputs = layer.inputs();
  int64_t axis = layer.config().integer("axis", -16, -1);
  concatenateMasks(layer, inputs, axis);
  K::Tensors tensors;
  for (const Value &value : inputs)
    tensors.push_back(value.tensor);
  return {K::concatenate(tensors, axis)};
}

static K::Tensor unit(const K::Tensor &x, int64_t axis) {
  K::Tensor norm = K::sqrt(K::sum(K::square(x), axis, /*keepdims=*/true));
  return x / K::maximum(norm, 1e-7);
}

static K::Tensors dotLayer(LayerContext &layer) {
  std::vector<Value> inputs = layer.inputs();
  if (inputs.size() != 2)
    layer.fail("is called with " + std::to_string(inputs.size()) +
               " inputs, but 2 are expected");
  K::Tensor x = inputs[0].tensor, y = inputs[1].tensor;
  std::vector<int64_t> axes = layer.config().integers("axes", 2, -16);
  axes[0] += axes[0] < 0 ? K::ndim(x) : 0;
  axes[1] += axes[1] < 0 ? K::ndim(y) : 0;
  if (layer.config().flag("normalize", false)) {
    x = unit(x, axes[0]);
    y = unit(y, axes[1]);
  }
  return {K::batch_dot(x, y, axes)};
}

std::span<const LayerEntry> model::mergingLayers() {
  static const LayerEntry entries[] = {
      {"Add", addLayer, Masking::Sets},
      {"Subtract", subtractLayer, Masking::Sets},
      {"Multiply", multiplyLayer, Masking::Sets},
      {"Average", averageLayer, Masking::Sets},
      {"Maximum", maximumLayer, Masking::Sets},
      {"Minimum", minimumLayer, Masking::Sets},
      {"Concatenate", concatenateLayer, Masking::Sets},
      {"Dot", dotLayer},
  };
  return entries;
}
