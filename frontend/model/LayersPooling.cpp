//===- LayersPooling.cpp - pooling layers ---------------------------------===//
#include "Layer.h"

using namespace keratin;
using namespace keratin::model;

/// MaxPooling2D has two spatial axes: the digit before the last letter.
static size_t spatialRank(const LayerContext &layer) {
  const std::string &name = layer.className();
  return size_t(name[name.size() - 2] - '0');
}

static K::Tensors pooling(LayerContext &layer, std::string_view mode) {
  size_t rank = spatialRank(layer);
  const Config &config = layer.config();
  std::vector<int64_t> size = config.integers("pool_size", rank, 1);
  std::vector<int64_t> strides = config.integers("strides", rank, 1, size);
  std::string padding = config.choice("padding", {"valid", "same"}, "valid");
  K::Tensor x = layer.inputOfRank(int64_t(rank) + 2);
  return {K::pool(x, size, strides, padding, dataFormat(layer), mode)};
}

static K::Tensors maxPooling(LayerContext &layer) {
  return pooling(layer, "max");
}

static K::Tensors averagePooling(LayerContext &layer) {
  return pooling(layer, "avg");
}

static K::Tensors globalPooling(LayerContext &layer, std::string_view mode) {
  K::Tensor x = layer.inputOfRank(int64_t(spatialRank(layer)) + 2);
  bool keepdims = layer.config().flag("keepdims", false);
  return {K::global_pool(x, dataFormat(layer), mode, keepdims)};
}

static K::Tensors globalMaxPooling(LayerContext &layer) {
  return globalPooling(layer, "max");
}

static K::Tensors globalAveragePooling(LayerContext &layer) {
  return globalPooling(layer, "avg");
}

/// The mean of the steps that the mask keeps.
static K::Tensors globalAveragePooling1D(LayerContext &layer) {
  K::Tensor mask = layer.mask();
  if (!mask)
    return globalAveragePooling(layer);
  K::Tensor x = layer.inputOfRank(3);
  bool last = dataFormat(layer) == "channels_last";
  int64_t steps = last ? 1 : 2;
  bool keepdims = layer.config().flag("keepdims", false);
  K::Tensor kept = K::expand_dims(K::cast(mask, K::dtype(x)), last ? 2 : 1);
  return {K::sum(x * kept, steps, keepdims) / K::sum(kept, steps, keepdims)};
}

std::span<const LayerEntry> model::poolingLayers() {
  static const LayerEntry entries[] = {
      {"MaxPooling1D", maxPooling},
      {"MaxPooling2D", maxPooling},
      {"MaxPooling3D", maxPooling},
      {"AveragePooling1D", averagePooling},
      {"AveragePooling2D", averagePooling},
      {"AveragePooling3D", averagePooling},
      {"GlobalMaxPooling1D", globalMaxPooling},
      {"GlobalMaxPooling2D", globalMaxPooling},
      {"GlobalMaxPooling3D", globalMaxPooling},
      {"GlobalAveragePooling1D", globalAveragePooling1D},
      {"GlobalAveragePooling2D", globalAveragePooling},
      {"GlobalAveragePooling3D", globalAveragePooling},
  };
  return entries;
}
