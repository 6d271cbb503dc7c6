//===- LayersReshaping.cpp - layers that move elements --------------------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

static K::Tensors flatten(LayerContext &layer) {
  K::Tensor x = layer.input();
  int64_t rank = K::ndim(x);
  if (dataFormat(layer) == "channels_first" && rank > 2)
    x = K::moveaxis(x, 1, rank - 1);
  if (rank == 1)
    return {K::expand_dims(x, -1)};
  return {K::batch_flatten(x)};
}

/// Replaces the -1 of `target` where the input says what it is: all axes but
/// the batch are known.
static void resolveTarget(LayerContext &layer, const K::Shape &shape,
                          std::vector<int64_t> &target) {
  int64_t have = 1, rest = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    if (shape[i] < 0 || __builtin_mul_overflow(have, shape[i], &have))
      return;
  for (int64_t extent : target)
    if (extent >= 0 && __builtin_mul_overflow(rest, extent, &rest))
      rest = 0;
  int64_t unknown = std::count(target.begin(), target.end(), -1);
  bool fits = unknown == 0 ? rest == have
                           : unknown == 1 && rest > 0 && have % rest == 0;
  if (!fits)
    layer.fail("has 'target_shape': " + shapeName(target) +
               ", which does not fit the " + std::to_string(have) +
               " elements of its input " + shapeName(shape));
  std::replace(target.begin(), target.end(), int64_t(-1),
               have / std::max<int64_t>(rest, 1));
}

static K::Tensors reshape(LayerContext &layer) {
  std::vector<int64_t> target = layer.config().integers("target_shape", 0, -1);
  K::Tensor x = layer.input();
  resolveTarget(layer, K::int_shape(x), target);
  // Only one extent can be deduced: the batch, unless the target has one.
  bool deduced = std::find(target.begin(), target.end(), -1) != target.end();
  std::vector<K::Dim> dims = {deduced ? K::Dim(K::extent(x, 0)) : K::Dim(-1)};
  dims.insert(dims.end(), target.begin(), target.end());
  return {K::reshape(x, dims)};
}

static K::Tensors permute(LayerContext &layer) {
  std::vector<int64_t> dims = layer.config().integers("dims", 0, 1);
  K::Tensor x = layer.inputOfRank(int64_t(dims.size()) + 1);
  std::vector<int64_t> pattern = {0};
  pattern.insert(pattern.end(), dims.begin(), dims.end());
  return {K::permute_dimensions(x, pattern)};
}

static K::Tensors repeatVector(LayerContext &layer) {
  int64_t count = layer.config().integer("n", 1);
  return {K::repeat(layer.inputOfRank(2), count)};
}

/// Pairs {before, after} of each spatial axis from what Keras stores: a number,
/// a number or a pair for each axis.
static std::vector<K::PadPair> pairsOf(LayerContext &layer,
                                       const std::string &key, size_t rank) {
  const Json &value = layer.config().at(key);
  auto pairOf = [](const Json &item) -> std::optional<K::PadPair> {
    auto inRange = [](std::optional<int64_t> number) {
      return number && *number >= 0 && *number <= maxExtent;
    };
    if (std::optional<int64_t> both = asInteger(item); inRange(both))
      return K::PadPair{*both, *both};
    if (!item.is_array() || item.size() != 2)
      return std::nullopt;
    std::optional<int64_t> before = asInteger(item[0]);
    std::optional<int64_t> after = asInteger(item[1]);
    if (!inRange(before) || !inRange(after))
      return std::nullopt;
    return K::PadPair{*before, *after};
  };
  std::vector<K::PadPair> pairs;
  // One pair of numbers is that of the only axis.
  bool perAxis = value.is_array() && value.size() == rank && rank > 1;
  for (size_t axis = 0; axis < rank; ++axis)
    if (std::optional<K::PadPair> pair = pairOf(perAxis ? value[axis] : value))
      pairs.push_back(*pair);
  bool stated = perAxis || asInteger(value) || rank == 1;
  if (pairs.size() == rank && stated)
    return pairs;
  layer.config().wrong(key, "a pair of numbers of at least 0 for each of " +
                                std::to_string(rank) + " axes");
  return std::vector<K::PadPair>(rank);
}

/// The first spatial axis.
static size_t spatialBegin(const std::string &format) {
  return format == "channels_first" ? 2 : 1;
}

template <size_t rank> static K::Tensors zeroPadding(LayerContext &layer) {
  std::vector<K::PadPair> pairs = pairsOf(layer, "padding", rank);
  K::Tensor x = layer.inputOfRank(rank + 2);
  std::vector<K::PadPair> all(rank + 2);
  std::copy(pairs.begin(), pairs.end(),
            all.begin() + ptrdiff_t(spatialBegin(dataFormat(layer))));
  return {K::pad(x, all)};
}

template <size_t rank> static K::Tensors cropping(LayerContext &layer) {
  std::vector<K::PadPair> pairs = pairsOf(layer, "cropping", rank);
  K::Tensor x = layer.inputOfRank(rank + 2);
  K::Shape shape = K::int_shape(x);
  std::vector<K::Index> indices(rank + 2, K::Slice());
  size_t begin = spatialBegin(dataFormat(layer));
  for (size_t i = 0; i < rank; ++i) {
    auto [before, after] = pairs[i];
    int64_t extent = shape[begin + i];
    if (extent >= 0 && before + after >= extent)
      layer.fail("crops " + std::to_string(before + after) + " of the " +
                 std::to_string(extent) + " elements of axis " +
                 std::to_string(begin + i));
    K::Slice slice;
    slice.start = before;
    if (after)
      slice.stop = -after;
    indices[begin + i] = slice;
  }
  return {K::getitem(x, indices)};
}

template <size_t rank> static K::Tensors upSampling(LayerContext &layer) {
  std::vector<int64_t> factors = layer.config().integers("size", rank, 1);
  K::Tensor x = layer.inputOfRank(rank + 2);
  std::string format = rank == 1 ? "channels_last" : dataFormat(layer);
  std::string interpolation =
      rank == 2 ? layer.config().choice("interpolation",
                                        {"nearest", "bilinear", "bicubic",
                                         "lanczos3", "lanczos5"},
                                        "nearest")
                : "nearest";
  size_t begin = spatialBegin(format);
  if (interpolation == "nearest") {
    for (size_t i = 0; i < rank; ++i)
      x = K::repeat_elements(x, factors[i], int64_t(begin + i));
    return {x};
  }
  if (interpolation != "bilinear")
    layer.fail("has 'interpolation': '" + interpolation +
               "', but 'nearest' and 'bilinear' are supported");
  K::Ints size = {layer.channels(x, int64_t(begin)) * factors[0],
                  layer.channels(x, int64_t(begin) + 1) *
                      factors[size_t(rank > 1)]};
  return {K::resize(x, size, "bilinear", format)};
}

std::span<const LayerEntry> model::reshapingLayers() {
  static const LayerEntry entries[] = {
      {"Flatten", flatten},
      {"Reshape", reshape},
      {"Permute", permute},
      {"RepeatVector", repeatVector},
      {"Cropping1D", cropping<1>},
      {"Cropping2D", cropping<2>},
      {"Cropping3D", cropping<3>},
      {"ZeroPadding1D", zeroPadding<1>},
      {"ZeroPadding2D", zeroPadding<2>},
      {"ZeroPadding3D", zeroPadding<3>},
      {"UpSampling1D", upSampling<1>},
      {"UpSampling2D", upSampling<2>},
      {"UpSampling3D", upSampling<3>},
  };
  return entries;
}
