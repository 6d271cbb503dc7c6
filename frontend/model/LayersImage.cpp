//===- LayersImage.cpp - image preprocessing layers -----------------------===//
#include "Layer.h"

using namespace keratin;
using namespace keratin::model;

/// Augmentations happen in training only; their generators' states are of no
/// use.
static K::Tensors augmentation(LayerContext &layer) {
  layer.skipWeights();
  return {K::cast(layer.input(), layer.dtype())};
}

static K::Tensors resizing(LayerContext &layer) {
  const Config &config = layer.config();
  K::Ints size = {config.integer("height", 1), config.integer("width", 1)};
  std::string interpolation =
      config.choice("interpolation", {"bilinear", "nearest"}, "bilinear");
  for (const char *option :
       {"antialias", "crop_to_aspect_ratio", "pad_to_aspect_ratio"})
    if (config.flag(option, false))
      config.wrong(option, "false");
  K::Tensor x = K::cast(layer.inputOfRank(4), layer.dtype());
  return {K::resize(x, size, interpolation, dataFormat(layer))};
}

static K::Tensors centerCrop(LayerContext &layer) {
  int64_t size[] = {layer.config().integer("height", 1),
                    layer.config().integer("width", 1)};
  K::Tensor x = K::cast(layer.inputOfRank(4), layer.dtype());
  size_t begin = dataFormat(layer) == "channels_first" ? 2 : 1;
  std::vector<K::Index> indices(4, K::Slice());
  for (size_t i = 0; i < 2; ++i) {
    int64_t extent = layer.channels(x, int64_t(begin + i));
    if (extent < size[i])
      layer.fail("crops to " + std::to_string(size[i]) + " of the " +
                 std::to_string(extent) + " elements of axis " +
                 std::to_string(begin + i) +
                 ", but enlarging is not supported: use Resizing");
    int64_t start = (extent - size[i]) / 2;
    indices[begin + i] = K::Slice{start, start + size[i], 1};
  }
  return {K::getitem(x, indices)};
}

std::span<const LayerEntry> model::imageLayers() {
  static const LayerEntry entries[] = {
      {"Resizing", resizing},
      {"CenterCrop", centerCrop},
      {"RandomBrightness", augmentation},
      {"RandomColorJitter", augmentation},
      {"RandomContrast", augmentation},
      {"RandomFlip", augmentation},
      {"RandomHue", augmentation},
      {"RandomRotation", augmentation},
      {"RandomSaturation", augmentation},
      {"RandomShear", augmentation},
      {"RandomTranslation", augmentation},
      {"RandomZoom", augmentation},
  };
  return entries;
}
