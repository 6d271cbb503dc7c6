//===- Local.cpp - convolutions whose kernel differs from place to place --===//
#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

namespace {

/// A local convolution: at each place of the result the window of x, flat, is
/// multiplied with a matrix of that place.
struct LocalConvolution {
  std::string_view function;
  Tensor x, kernel;
  Ints size, strides, places;
  bool channelsFirst;

  size_t spatial() const { return size.size(); }
  void check() const;
  Tensor window(const Ints &place) const;
  Tensor compute() const;
};

void LocalConvolution::check() const {
  auto require = [&](bool holds, const std::string &what) {
    if (!holds)
      throw Error(std::string(function) + ": " + what);
  };
  size_t rank = spatial() + 2;
  require(int_shape(x).size() == rank,
          "inputs have shape " + shapeName(int_shape(x)) + " and kernel_size " +
              std::to_string(spatial()) + " elements but inputs must have " +
              std::to_string(rank) + " axes");
  Shape given = int_shape(kernel);
  require(given.size() == 3,
          "kernel has shape " + shapeName(given) + " but must have 3 axes");
  require(strides.size() == spatial() && places.size() == spatial(),
          "kernel_size has " + std::to_string(spatial()) +
              " elements but strides " + std::to_string(strides.size()) +
              " and output_shape " + std::to_string(places.size()));
  int64_t count = 1, features = int_shape(x)[channelsFirst ? 1 : rank - 1];
  for (size_t i = 0; i < spatial(); ++i) {
    require(size[i] >= 1 && strides[i] >= 1 && places[i] >= 1,
            "kernel_size, strides and output_shape must be 1 or more");
    int64_t extent = int_shape(x)[i + (channelsFirst ? 2 : 1)];
    int64_t needed = (places[i] - 1) * strides[i] + size[i];
    require(extent == None || extent >= needed,
            "inputs have shape " + shapeName(int_shape(x)) +
                " but the windows reach over " + std::to_string(needed) +
                " elements of spatial axis " + std::to_string(i));
    count *= places[i];
    features = features == None ? None : features * size[i];
  }
  require(given[0] == count && (features == None || given[1] == features),
          "kernel has shape " + shapeName(given) + " but there are " +
              std::to_string(count) + " places and a window has " +
              (features == None ? "an unknown number of"
                                : std::to_string(features)) +
              " elements");
}

/// (1, batch, features)
Tensor LocalConvolution::window(const Ints &place) const {
  std::vector<Index> indices{Slice{}};
  if (channelsFirst)
    indices.push_back(Slice{});
  for (size_t i = 0; i < spatial(); ++i) {
    int64_t begin = place[i] * strides[i];
    indices.push_back(Slice{begin, begin + size[i]});
  }
  return reshape(getitem(x, indices), {1, -1, int_shape(kernel)[1]});
}

Tensor LocalConvolution::compute() const {
  CalledAs called(function);
  check();
  Tensors windows;
  Ints place(spatial(), 0);
  for (int64_t count = int_shape(kernel)[0]; count > 0; --count) {
    windows.push_back(window(place));
    for (size_t i = spatial(); i-- > 0;) {
      if (++place[i] < places[i])
        break;
      place[i] = 0;
    }
  }
  // (places, batch, filters), and then the places as axes of the image.
  Tensor y = batch_dot(concatenate(windows, 0), kernel);
  std::vector<Dim> shape(places.begin(), places.end());
  shape.push_back(extent(x, 0));
  shape.push_back(int_shape(kernel)[2]);
  auto batch = static_cast<int64_t>(spatial());
  std::vector<int64_t> order{batch};
  for (int64_t i = 0; i < batch; ++i)
    order.push_back(i);
  order.insert(channelsFirst ? order.begin() + 1 : order.end(), batch + 1);
  return permute_dimensions(reshape(y, shape), order);
}

} // namespace

Tensor local_conv1d(const Tensor &inputs, const Tensor &kernel,
                    const Ints &kernel_size, const Ints &strides,
                    std::string_view data_format) {
  requireTensor(inputs, "local_conv1d", "inputs");
  requireTensor(kernel, "local_conv1d", "kernel");
  // As in Keras, either format means (batch, steps, features).
  normalize_data_format(data_format);
  Ints places;
  if (ndim(kernel) > 0)
    places.push_back(int_shape(kernel)[0]);
  return LocalConvolution{
      "local_conv1d",         inputs, kernel, kernel_size, strides, places,
      /*channelsFirst=*/false}
      .compute();
}

Tensor local_conv2d(const Tensor &inputs, const Tensor &kernel,
                    const Ints &kernel_size, const Ints &strides,
                    const Ints &output_shape, std::string_view data_format) {
  requireTensor(inputs, "local_conv2d", "inputs");
  requireTensor(kernel, "local_conv2d", "kernel");
  bool first = normalize_data_format(data_format) == "channels_first";
  return LocalConvolution{"local_conv2d", inputs,       kernel, kernel_size,
                          strides,        output_shape, first}
      .compute();
}

} // namespace keratin::backend
