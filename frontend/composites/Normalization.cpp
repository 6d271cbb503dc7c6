//===- Normalization.cpp - zero mean and unit variance --------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

/// Statistics of narrow floats are computed in float32, as Keras does.
static bool isNarrow(const Tensor &x) {
  return dtype(x) == DType::Float16 || dtype(x) == DType::BFloat16;
}

static Tensor widen(const Tensor &x) {
  return x && isNarrow(x) ? cast(x, DType::Float32) : x;
}

/// One element a channel, also of parameters that are shaped to broadcast.
static Tensor channelVector(const Tensor &parameter) {
  return parameter && ndim(parameter) != 1 ? flatten(parameter) : parameter;
}

Tensor batch_normalization(const Tensor &x, const Tensor &mean,
                           const Tensor &var, const Tensor &beta,
                           const Tensor &gamma, int64_t axis, double epsilon) {
  CalledAs function("batch_normalization");
  requireTensor(x, "batch_normalization", "x");
  requireTensor(mean, "batch_normalization", "mean");
  requireTensor(var, "batch_normalization", "var");
  return emit("batch_norm",
              {x, channelVector(mean), channelVector(var), channelVector(gamma),
               channelVector(beta)},
              {{"axis", normalizeAxis(axis, ndim(x), "batch_normalization")},
               {"epsilon", epsilon}},
              /*required=*/3);
}

/// `parameter`, which has the extents of `axes`, shaped to broadcast with x;
/// None where it is.
static Tensor alongAxes(std::string_view name, const Tensor &parameter,
                        const Tensor &x, const std::vector<int64_t> &axes) {
  if (!parameter)
    return parameter;
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < ndim(x); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      others.push_back(axis);
  Shape extents, given = int_shape(parameter);
  for (int64_t axis : axes)
    extents.push_back(int_shape(x)[axis]);
  if (extents.size() != given.size() ||
      !std::equal(given.begin(), given.end(), extents.begin(),
                  [](int64_t a, int64_t b) {
                    return a == b || a == None || b == None;
                  }))
    throw Error(std::string(CalledAs::current("normalization")) + ": " +
                std::string(name) + " has shape " + shapeName(given) +
                " but the normalized axes of x have the extents " +
                shapeName(extents));
  return others.empty() ? parameter : expand_dims(parameter, others);
}

static Tensor scaleAndShift(const Tensor &x, const Tensor &gamma,
                            const Tensor &beta) {
  Tensor y = gamma ? x * gamma : x;
  return beta ? y + beta : y;
}

BatchStatistics normalize_batch_in_training(const Tensor &x,
                                            const Tensor &gamma,
                                            const Tensor &beta,
                                            const Axes &reduction_axes,
                                            double epsilon) {
  CalledAs function("normalize_batch_in_training");
  std::vector<int64_t> axes =
      normalizeAxes(reduction_axes, ndim(x), "normalize_batch_in_training");
  std::vector<int64_t> kept;
  for (int64_t axis = 0; axis < ndim(x); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      kept.push_back(axis);
  Tensor scale = alongAxes("gamma", gamma, x, kept);
  Tensor shift = alongAxes("beta", beta, x, kept);
  Tensor centre = mean(x, axes, /*keepdims=*/true);
  Tensor spread = var(x, axes, /*keepdims=*/true);
  Tensor average = squeeze(centre, axes), variance = squeeze(spread, axes);
  auto isLike = [&](const Tensor &parameter) {
    return !parameter || dtype(parameter) == dtype(x);
  };
  if (kept.size() == 1 && isLike(gamma) && isLike(beta))
    return {batch_normalization(x, average, variance, beta, gamma, kept[0],
                                epsilon),
            average, variance};
  Tensor scaled = (x - centre) * rsqrt(spread + epsilon);
  return {scaleAndShift(scaled, scale, shift), average, variance};
}

Tensor layer_normalization(const Tensor &x, const Tensor &gamma,
                           const Tensor &beta, const Axes &axis,
                           double epsilon) {
  CalledAs function("layer_normalization");
  requireTensor(x, "layer_normalization", "x");
  if (isNarrow(x))
    return cast(
        layer_normalization(widen(x), widen(gamma), widen(beta), axis, epsilon),
        dtype(x));
  std::vector<int64_t> axes =
      normalizeAxes(axis, ndim(x), "layer_normalization");
  Tensor centred = x - mean(x, axes, /*keepdims=*/true);
  Tensor spread = mean(square(centred), axes, /*keepdims=*/true);
  return scaleAndShift(centred * rsqrt(spread + epsilon),
                       alongAxes("gamma", gamma, x, axes),
                       alongAxes("beta", beta, x, axes));
}

Tensor rms_normalization(const Tensor &x, const Tensor &gamma, const Axes &axis,
                         double epsilon) {
  CalledAs function("rms_normalization");
  requireTensor(x, "rms_normalization", "x");
  if (isNarrow(x))
    return cast(rms_normalization(widen(x), widen(gamma), axis, epsilon),
                dtype(x));
  std::vector<int64_t> axes = normalizeAxes(axis, ndim(x), "rms_normalization");
  Tensor power = mean(square(x), axes, /*keepdims=*/true);
  return scaleAndShift(x * rsqrt(power + epsilon),
                       alongAxes("gamma", gamma, x, axes), {});
}

/// The mean of each of `groups` groups of a number a channel, at every channel.
static Tensor meanOfGroups(const Tensor &x, int64_t groups, int64_t axis) {
  int64_t inGroup = int_shape(x)[axis] / groups;
  if (inGroup == 1)
    return x;
  if (groups == 1)
    return mean(x, axis, /*keepdims=*/true);
  std::vector<Dim> split, whole;
  for (int64_t i = 0; i < ndim(x); ++i) {
    whole.push_back(extent(x, i));
    if (i == axis)
      split.push_back(groups);
    split.push_back(i == axis ? Dim(inGroup) : extent(x, i));
  }
  Tensor y = mean(reshape(x, split), axis + 1, /*keepdims=*/true);
  return reshape(broadcast_to(y, split), whole);
}

Tensor group_normalization(const Tensor &x, int64_t groups, const Tensor &gamma,
                           const Tensor &beta, int64_t axis, double epsilon) {
  CalledAs function("group_normalization");
  requireTensor(x, "group_normalization", "x");
  if (isNarrow(x))
    return cast(group_normalization(widen(x), groups, widen(gamma), widen(beta),
                                    axis, epsilon),
                dtype(x));
  axis = normalizeAxis(axis, ndim(x), "group_normalization");
  int64_t channels = int_shape(x)[axis];
  if (groups < 1 || channels == None || channels % groups != 0)
    throw Error("group_normalization: axis " + std::to_string(axis) +
                " of a tensor of shape " + shapeName(int_shape(x)) +
                " is not " + std::to_string(groups) + " equal groups");

  // First a mean for each channel: all channels of a place are neighbours, the
  // few of a group are not worth a vector.
  std::vector<int64_t> places;
  for (int64_t i = 1; i < ndim(x); ++i)
    if (i != axis)
      places.push_back(i);
  auto average = [&](const Tensor &y) {
    Tensor ofChannels = places.empty() ? y : mean(y, places, /*keepdims=*/true);
    return meanOfGroups(ofChannels, groups, axis);
  };
  Tensor centred = x - average(x);
  Tensor spread = average(square(centred));
  return scaleAndShift(centred * rsqrt(spread + epsilon),
                       alongAxes("gamma", gamma, x, {axis}),
                       alongAxes("beta", beta, x, {axis}));
}

} // namespace keratin::backend
