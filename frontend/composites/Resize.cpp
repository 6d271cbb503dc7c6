//===- Resize.cpp - images of another size --------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <cmath>

namespace keratin::backend {

namespace {

/// Where on an axis of the source element i of the result lies.
using Position = std::function<double(int64_t i)>;

int64_t knownExtent(const Tensor &x, int64_t axis) {
  int64_t extent = int_shape(x)[axis];
  if (extent == None)
    throw Error(std::string(CalledAs::current("resize")) +
                ": the extent of axis " + std::to_string(axis) +
                " of a tensor of shape " + shapeName(int_shape(x)) +
                " must be known");
  return extent;
}

Tensor positions(const std::vector<int32_t> &values) {
  return constant(
      Array::of<int32_t>({static_cast<int64_t>(values.size())}, values));
}

Tensor nearestAxis(const Tensor &x, int64_t axis, int64_t size,
                   const Position &position) {
  int64_t last = knownExtent(x, axis) - 1;
  std::vector<int32_t> source;
  for (int64_t i = 0; i < size; ++i)
    source.push_back(static_cast<int32_t>(std::clamp(
        static_cast<int64_t>(std::floor(position(i))), int64_t(0), last)));
  return gather(x, positions(source), axis);
}

/// Between the two neighbours of the position, which ends at the edges.
Tensor linearAxis(const Tensor &x, int64_t axis, int64_t size,
                  const Position &position) {
  int64_t last = knownExtent(x, axis) - 1;
  std::vector<int32_t> below, above;
  Shape shape(static_cast<size_t>(ndim(x)), 1);
  shape[axis] = size;
  Array weights(dtype(x), shape);
  for (int64_t i = 0; i < size; ++i) {
    double at = std::clamp(position(i), 0.0, static_cast<double>(last));
    auto low = static_cast<int64_t>(std::floor(at));
    below.push_back(static_cast<int32_t>(low));
    above.push_back(static_cast<int32_t>(std::min(low + 1, last)));
    weights.set(i, at - static_cast<double>(low));
  }
  Tensor low = gather(x, positions(below), axis);
  Tensor high = gather(x, positions(above), axis);
  return low + (high - low) * constant(weights);
}

Tensor resizeAxis(const Tensor &x, int64_t axis, int64_t size,
                  std::string_view interpolation, const Position &position) {
  if (interpolation == "nearest")
    return nearestAxis(x, axis, size, position);
  if (interpolation == "bilinear")
    return linearAxis(x, axis, size, position);
  throw Error(std::string(CalledAs::current("resize")) +
              ": interpolation is '" + std::string(interpolation) +
              "' but must be 'nearest' or 'bilinear'");
}

int64_t firstSpatialAxis(const Tensor &x, int64_t spatial,
                         std::string_view data_format) {
  if (ndim(x) != spatial + 2)
    throw Error(std::string(CalledAs::current("resize")) +
                ": the tensor has shape " + shapeName(int_shape(x)) +
                " but must have " + std::to_string(spatial + 2) + " axes");
  return normalize_data_format(data_format) == "channels_first" ? 2 : 1;
}

} // namespace

Tensor resize_images(const Tensor &x, int64_t height_factor,
                     int64_t width_factor, std::string_view data_format,
                     std::string_view interpolation) {
  CalledAs function("resize_images");
  int64_t axis = firstSpatialAxis(x, 2, data_format);
  if (interpolation == "nearest")
    return repeat_elements(repeat_elements(x, height_factor, axis),
                           width_factor, axis + 1);
  Tensor y = x;
  for (int64_t factor : {height_factor, width_factor}) {
    y = resizeAxis(
        y, axis, knownExtent(x, axis) * factor, interpolation, [&](int64_t i) {
          return static_cast<double>(i) / static_cast<double>(factor);
        });
    ++axis;
  }
  return y;
}

Tensor resize_volumes(const Tensor &x, int64_t depth_factor,
                      int64_t height_factor, int64_t width_factor,
                      std::string_view data_format) {
  CalledAs function("resize_volumes");
  int64_t axis = firstSpatialAxis(x, 3, data_format);
  Tensor y = repeat_elements(x, depth_factor, axis);
  y = repeat_elements(y, height_factor, axis + 1);
  return repeat_elements(y, width_factor, axis + 2);
}

Tensor resize(const Tensor &x, const Ints &size, std::string_view interpolation,
              std::string_view data_format) {
  int64_t axis = firstSpatialAxis(x, 2, data_format);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    throw Error(std::string(CalledAs::current("resize")) +
                ": size must be two numbers of 1 or more");
  Tensor y = x;
  for (int64_t extent : size) {
    double scale =
        static_cast<double>(knownExtent(x, axis)) / static_cast<double>(extent);
    double centre = interpolation == "nearest" ? 0 : 0.5;
    y = resizeAxis(y, axis, extent, interpolation, [&](int64_t i) {
      return (static_cast<double>(i) + 0.5) * scale - centre;
    });
    ++axis;
  }
  return y;
}

} // namespace keratin::backend
