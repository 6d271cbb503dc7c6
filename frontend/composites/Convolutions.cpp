//===- Convolutions.cpp - convolutions and pools --------------------------===//
#include "Extents.h"

#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

namespace {

using Amounts = std::vector<int64_t>; // low, high of each spatial axis

/// A window function's view of its image.
struct Image {
  std::string_view function;
  std::string format;
  Shape shape;
  size_t spatial;

  Image(std::string_view function, const Tensor &x, size_t spatial,
        std::string_view data_format)
      : function(function), format(normalize_data_format(data_format)),
        spatial(spatial) {
    requireTensor(x, function, "x");
    shape = int_shape(x);
    if (shape.size() != spatial + 2)
      throw Error(std::string(function) + ": x has shape " + shapeName(shape) +
                  " but must have " + std::to_string(spatial + 2) +
                  " axes: batch, " + std::to_string(spatial) +
                  " spatial and channels");
  }

  bool channelsFirst() const { return format == "channels_first"; }
  ChannelOrder order() const { return {channelsFirst()}; }
  size_t spatialAxis(size_t i) const { return channelsFirst() ? i + 2 : i + 1; }
  int64_t extent(size_t i) const { return shape[spatialAxis(i)]; }
  size_t channelAxis() const { return channelsFirst() ? 1 : spatial + 1; }
};

void checkPositive(std::string_view function, const char *what,
                   const Ints &values, size_t count) {
  bool positive = std::all_of(values.begin(), values.end(),
                              [](int64_t value) { return value >= 1; });
  if (values.size() == count && positive)
    return;
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  throw Error(std::string(function) + ": " + what + " is (" + text +
              ") but must be " + std::to_string(count) +
              " numbers of 1 or more");
}

/// The padding of TensorFlow's "same": ceil(extent / stride) windows, the odd
/// element at the end. None where it is not known before the extent is.
std::optional<std::pair<int64_t, int64_t>>
samePadding(const Image &image, size_t i, int64_t window, int64_t stride) {
  int64_t extent = image.extent(i), total;
  if (extent != None)
    total = std::max<int64_t>(
        ((extent + stride - 1) / stride - 1) * stride + window - extent, 0);
  else if (stride == 1 || window == 1)
    total = window - 1; // for any extent
  else
    return std::nullopt;
  return std::pair(total / 2, total - total / 2);
}

/// What the ops of windows know of their padding.
struct Paddings {
  Amounts amounts;
  /// The amounts follow from extents that are known later.
  bool same = false;

  void append(std::optional<std::pair<int64_t, int64_t>> pair) {
    same |= !pair;
    amounts.insert(amounts.end(),
                   {pair ? pair->first : 0, pair ? pair->second : 0});
  }
};

/// Attributes, with `same` where it is needed.
Attributes withPadding(Attributes attributes, const Paddings &paddings) {
  attributes.push_back({"padding", paddings.amounts});
  if (paddings.same)
    attributes.push_back({"same", Flag{}});
  return attributes;
}

Paddings resolvePadding(const Image &image, const Padding &padding,
                        const Ints &windows, const Ints &strides) {
  Paddings paddings;
  const std::string &name = padding.name();
  if (name.empty() && padding.amounts().size() != image.spatial)
    throw Error(std::string(image.function) + ": padding has " +
                std::to_string(padding.amounts().size()) +
                " pairs but there are " + std::to_string(image.spatial) +
                " spatial axes");
  for (size_t i = 0; i < image.spatial; ++i) {
    std::optional<std::pair<int64_t, int64_t>> pair = std::pair(0, 0);
    if (name.empty())
      pair = padding.amounts()[i];
    else if (name == "same")
      pair = samePadding(image, i, windows[i], strides[i]);
    else if (name == "causal" && image.spatial == 1)
      pair = {windows[i] - 1, 0};
    else if (name != "valid")
      throw Error(std::string(image.function) + ": padding is '" + name +
                  "' but must be 'valid' or 'same'" +
                  (image.spatial == 1 ? " or 'causal'" : ""));
    paddings.append(pair);
  }
  return paddings;
}

/// The extent that a kernel covers on each spatial axis.
Ints coveredExtents(std::string_view function, const Tensor &kernel,
                    size_t spatial, const Ints &dilation) {
  requireTensor(kernel, function, "kernel");
  Shape shape = int_shape(kernel);
  if (shape.size() != spatial + 2)
    throw Error(std::string(function) + ": kernel has shape " +
                shapeName(shape) + " but must have " +
                std::to_string(spatial + 2) + " axes");
  Ints windows;
  for (size_t i = 0; i < spatial; ++i) {
    if (shape[i] < 1)
      throw Error(std::string(function) + ": kernel has shape " +
                  shapeName(shape) +
                  " but its spatial extents must be known and 1 or more");
    windows.push_back((shape[i] - 1) * dilation[i] + 1);
  }
  return windows;
}

Tensor makeConv(std::string_view function, const Tensor &x,
                const Tensor &kernel, const Ints &strides,
                const Padding &padding, std::string_view data_format,
                const Ints &dilation, int64_t groups) {
  CalledAs called(function);
  Image image(function, x, strides.size(), data_format);
  checkPositive(function, "strides", strides, image.spatial);
  checkPositive(function, "dilation_rate", dilation, image.spatial);
  Ints windows = coveredExtents(function, kernel, image.spatial, dilation);
  return emit("conv", {x, kernel},
              withPadding({{"strides", strides},
                           {"dilation", dilation},
                           {"groups", groups},
                           {"data_format", image.order()}},
                          resolvePadding(image, padding, windows, strides)));
}

} // namespace

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

Tensor conv(const Tensor &x, const Tensor &kernel, const Ints &strides,
            const Padding &padding, std::string_view data_format,
            const Ints &dilation_rate, int64_t groups) {
  return makeConv("conv", x, kernel, strides, padding, data_format,
                  dilation_rate, groups);
}

/// Keras' functions take one or the other; `conv` takes both.
static void checkStridesOrDilation(std::string_view function,
                                   const Ints &strides, const Ints &dilation) {
  auto isOne = [](int64_t step) { return step == 1; };
  if (!std::all_of(strides.begin(), strides.end(), isOne) &&
      !std::all_of(dilation.begin(), dilation.end(), isOne))
    throw Error(std::string(function) + ": strides are " + shapeName(strides) +
                " and dilation_rate is " + shapeName(dilation) +
                " but one of them must be 1");
}

Tensor conv1d(const Tensor &x, const Tensor &kernel, int64_t strides,
              const Padding &padding, std::string_view data_format,
              int64_t dilation_rate, int64_t groups) {
  checkStridesOrDilation("conv1d", {strides}, {dilation_rate});
  return makeConv("conv1d", x, kernel, {strides}, padding, data_format,
                  {dilation_rate}, groups);
}

Tensor conv2d(const Tensor &x, const Tensor &kernel, const Ints &strides,
              const Padding &padding, std::string_view data_format,
              const Ints &dilation_rate, int64_t groups) {
  checkPositive("conv2d", "strides", strides, 2);
  checkStridesOrDilation("conv2d", strides, dilation_rate);
  return makeConv("conv2d", x, kernel, strides, padding, data_format,
                  dilation_rate, groups);
}

Tensor conv3d(const Tensor &x, const Tensor &kernel, const Ints &strides,
              const Padding &padding, std::string_view data_format,
              const Ints &dilation_rate, int64_t groups) {
  checkPositive("conv3d", "strides", strides, 3);
  checkStridesOrDilation("conv3d", strides, dilation_rate);
  return makeConv("conv3d", x, kernel, strides, padding, data_format,
                  dilation_rate, groups);
}

/// Each channel is a group of its own.
static Tensor depthwise(std::string_view function, const Tensor &x,
                        const Tensor &kernel, const Ints &strides,
                        const Padding &padding, std::string_view data_format,
                        const Ints &dilation) {
  CalledAs called(function);
  Image image(function, x, strides.size(), data_format);
  coveredExtents(function, kernel, image.spatial, Ints(image.spatial, 1));
  Shape shape = int_shape(kernel);
  int64_t multiplier = shape.back(), channels = shape[image.spatial];
  int64_t have = image.shape[image.channelAxis()];
  if (have != None && have != channels)
    throw Error(std::string(function) + ": kernel has " +
                std::to_string(channels) + " channels but x has " +
                std::to_string(have) + " on axis " +
                std::to_string(image.channelAxis()));
  shape[image.spatial] = 1;
  shape.back() = channels * multiplier;
  return makeConv(function, x, reshape(kernel, shape), strides, padding,
                  image.format, dilation, channels);
}

Tensor depthwise_conv1d(const Tensor &x, const Tensor &depthwise_kernel,
                        int64_t strides, const Padding &padding,
                        std::string_view data_format, int64_t dilation_rate) {
  checkStridesOrDilation("depthwise_conv1d", {strides}, {dilation_rate});
  return depthwise("depthwise_conv1d", x, depthwise_kernel, {strides}, padding,
                   data_format, {dilation_rate});
}

Tensor depthwise_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Ints &strides, const Padding &padding,
                        std::string_view data_format,
                        const Ints &dilation_rate) {
  checkPositive("depthwise_conv2d", "strides", strides, 2);
  checkStridesOrDilation("depthwise_conv2d", strides, dilation_rate);
  return depthwise("depthwise_conv2d", x, depthwise_kernel, strides, padding,
                   data_format, dilation_rate);
}

Tensor separable_conv1d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel, int64_t strides,
                        const Padding &padding, std::string_view data_format,
                        int64_t dilation_rate) {
  CalledAs function("separable_conv1d");
  Tensor y = depthwise_conv1d(x, depthwise_kernel, strides, padding,
                              data_format, dilation_rate);
  return conv1d(y, pointwise_kernel, 1, "valid", data_format);
}

Tensor separable_conv2d(const Tensor &x, const Tensor &depthwise_kernel,
                        const Tensor &pointwise_kernel, const Ints &strides,
                        const Padding &padding, std::string_view data_format,
                        const Ints &dilation_rate) {
  CalledAs function("separable_conv2d");
  Tensor y = depthwise_conv2d(x, depthwise_kernel, strides, padding,
                              data_format, dilation_rate);
  return conv2d(y, pointwise_kernel, {1, 1}, "valid", data_format);
}

//===----------------------------------------------------------------------===//
// Transposed convolutions
//===----------------------------------------------------------------------===//

/// The padding with which the convolution of an image of extent `out` has the
/// extent `in`. None while that is not known.
static std::optional<std::pair<int64_t, int64_t>>
transposedSame(int64_t in, const Dim &out, int64_t window, int64_t stride) {
  int64_t total;
  if (!out.tensor && out.extent == None) // the result is x's times the stride
    total = window - stride;
  else if (out.tensor || in == None)
    return std::nullopt;
  else
    total = (in - 1) * stride + window - out.extent;
  total = std::max<int64_t>(total, 0);
  return std::pair(total / 2, total - total / 2);
}

/// The spatial extents of the result as one tensor, where one is computed:
/// those that are not given are the least.
static Tensor transposedExtents(const Image &image, const Tensor &x,
                                const std::vector<Dim> &given,
                                const Ints &windows, const Ints &strides,
                                const Amounts &amounts) {
  if (!hasTensors(given))
    return {};
  return extentsTensor(given, [&](size_t i) {
    Dim in = extent(x, static_cast<int64_t>(image.spatialAxis(i)));
    Tensor count = in.tensor ? cast(in.tensor, DType::Int64)
                             : constant(Array::of<int64_t>({}, {in.extent}));
    return (count - 1) * strides[i] +
           (windows[i] - amounts[2 * i] - amounts[2 * i + 1]);
  });
}

static Tensor makeTransposed(std::string_view function, const Tensor &x,
                             const Tensor &kernel, const Dims &output_shape,
                             const Ints &strides, const Padding &padding,
                             std::string_view data_format,
                             const Ints &dilation) {
  CalledAs called(function);
  Image image(function, x, strides.size(), data_format);
  checkPositive(function, "strides", strides, image.spatial);
  checkPositive(function, "dilation_rate", dilation, image.spatial);
  Ints windows = coveredExtents(function, kernel, image.spatial, dilation);
  std::vector<Dim> dims = resolve(output_shape).values();
  Shape known = knownExtents(dims);
  if (known.size() != image.shape.size())
    throw Error(std::string(function) + ": output_shape is " +
                shapeName(known) + " but x has shape " +
                shapeName(image.shape));
  int64_t channels = known[image.channelAxis()];
  if (channels != None && channels != int_shape(kernel)[image.spatial])
    throw Error(std::string(function) + ": output_shape has " +
                std::to_string(channels) + " channels but the kernel has " +
                std::to_string(int_shape(kernel)[image.spatial]));

  std::vector<Dim> spatial;
  for (size_t i = 0; i < image.spatial; ++i)
    spatial.push_back(dims[image.spatialAxis(i)]);
  Paddings paddings;
  if (padding.name() == "same")
    for (size_t i = 0; i < image.spatial; ++i)
      paddings.append(
          transposedSame(image.extent(i), spatial[i], windows[i], strides[i]));
  else
    paddings = resolvePadding(image, padding, windows, strides);
  Tensor extents =
      transposedExtents(image, x, spatial, windows, strides, paddings.amounts);
  return emit("conv_transpose", {x, kernel, extents},
              withPadding({{"strides", strides},
                           {"dilation", dilation},
                           {"output_shape", Extents{knownExtents(spatial)}},
                           {"data_format", image.order()}},
                          paddings),
              /*required=*/2);
}

Tensor conv_transpose(const Tensor &x, const Tensor &kernel,
                      const Dims &output_shape, const Ints &strides,
                      const Padding &padding, std::string_view data_format,
                      const Ints &dilation_rate) {
  return makeTransposed("conv_transpose", x, kernel, output_shape, strides,
                        padding, data_format, dilation_rate);
}

Tensor conv1d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape, int64_t strides,
                        const Padding &padding, std::string_view data_format,
                        int64_t dilation_rate) {
  return makeTransposed("conv1d_transpose", x, kernel, output_shape, {strides},
                        padding, data_format, {dilation_rate});
}

Tensor conv2d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape, const Ints &strides,
                        const Padding &padding, std::string_view data_format,
                        const Ints &dilation_rate) {
  checkPositive("conv2d_transpose", "strides", strides, 2);
  return makeTransposed("conv2d_transpose", x, kernel, output_shape, strides,
                        padding, data_format, dilation_rate);
}

Tensor conv3d_transpose(const Tensor &x, const Tensor &kernel,
                        const Dims &output_shape, const Ints &strides,
                        const Padding &padding, std::string_view data_format,
                        const Ints &dilation_rate) {
  checkPositive("conv3d_transpose", "strides", strides, 3);
  return makeTransposed("conv3d_transpose", x, kernel, output_shape, strides,
                        padding, data_format, dilation_rate);
}

Shape conv_transpose_output_shape(const Tensor &x, const Tensor &kernel,
                                  const Ints &strides, std::string_view padding,
                                  const Ints &output_padding,
                                  std::string_view data_format,
                                  const Ints &dilation_rate) {
  constexpr std::string_view function = "conv_transpose";
  Image image(function, x, strides.size(), data_format);
  checkPositive(function, "strides", strides, image.spatial);
  checkPositive(function, "dilation_rate", dilation_rate, image.spatial);
  Ints windows = coveredExtents(function, kernel, image.spatial, dilation_rate);
  if (padding != "valid" && padding != "same")
    throw Error("conv_transpose: padding is '" + std::string(padding) +
                "' but must be 'valid' or 'same'");
  Shape shape = image.shape;
  shape[image.channelAxis()] = int_shape(kernel)[image.spatial];
  for (size_t i = 0; i < image.spatial; ++i) {
    int64_t &extent = shape[image.spatialAxis(i)];
    if (extent == None)
      continue;
    bool padded = i < output_padding.size();
    if (padding == "valid")
      extent = (extent - 1) * strides[i] + windows[i] +
               (padded ? output_padding[i]
                       : std::max<int64_t>(strides[i] - windows[i], 0));
    else if (padded)
      extent = (extent - 1) * strides[i] + windows[i] % 2 + output_padding[i];
    else
      extent *= strides[i];
  }
  return shape;
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

static std::string_view poolOp(std::string_view function,
                               std::string_view mode) {
  if (mode == "max")
    return "max_pool";
  if (mode == "avg")
    return "avg_pool";
  throw Error(std::string(function) + ": pool_mode is '" + std::string(mode) +
              "' but must be 'max' or 'avg'");
}

static Tensor makePool(std::string_view function, const Tensor &x,
                       const Ints &pool_size, const Ints &strides,
                       const Padding &padding, std::string_view data_format,
                       std::string_view mode) {
  CalledAs called(function);
  std::string_view op = poolOp(function, mode);
  Image image(function, x, pool_size.size(), data_format);
  checkPositive(function, "pool_size", pool_size, image.spatial);
  checkPositive(function, "strides", strides, image.spatial);
  if (padding.name() == "causal")
    throw Error(std::string(function) +
                ": padding is 'causal' but must be 'valid' or 'same'");
  return emit(op, {x},
              withPadding({{"pool_size", pool_size},
                           {"strides", strides},
                           {"data_format", image.order()}},
                          resolvePadding(image, padding, pool_size, strides)));
}

Tensor pool(const Tensor &x, const Ints &pool_size, const Ints &strides,
            const Padding &padding, std::string_view data_format,
            std::string_view pool_mode) {
  return makePool("pool", x, pool_size, strides, padding, data_format,
                  pool_mode);
}

Tensor pool1d(const Tensor &x, int64_t pool_size, int64_t strides,
              const Padding &padding, std::string_view data_format,
              std::string_view pool_mode) {
  return makePool("pool1d", x, {pool_size}, {strides}, padding, data_format,
                  pool_mode);
}

Tensor pool2d(const Tensor &x, const Ints &pool_size, const Ints &strides,
              const Padding &padding, std::string_view data_format,
              std::string_view pool_mode) {
  checkPositive("pool2d", "pool_size", pool_size, 2);
  return makePool("pool2d", x, pool_size, strides, padding, data_format,
                  pool_mode);
}

Tensor pool3d(const Tensor &x, const Ints &pool_size, const Ints &strides,
              const Padding &padding, std::string_view data_format,
              std::string_view pool_mode) {
  checkPositive("pool3d", "pool_size", pool_size, 3);
  return makePool("pool3d", x, pool_size, strides, padding, data_format,
                  pool_mode);
}

Tensor global_pool(const Tensor &x, std::string_view data_format,
                   std::string_view pool_mode, bool keepdims) {
  requireTensor(x, "global_pool", "x");
  if (ndim(x) < 3)
    throw Error("global_pool: x has shape " + shapeName(int_shape(x)) +
                " but must have spatial axes");
  poolOp("global_pool", pool_mode);
  Image image("global_pool", x, static_cast<size_t>(ndim(x) - 2), data_format);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < image.spatial; ++i)
    axes.push_back(static_cast<int64_t>(image.spatialAxis(i)));
  return pool_mode == "max" ? max(x, axes, keepdims) : mean(x, axes, keepdims);
}

//===----------------------------------------------------------------------===//
// Biases
//===----------------------------------------------------------------------===//

Tensor bias_add(const Tensor &x, const Tensor &bias,
                std::string_view data_format) {
  std::string format = normalize_data_format(data_format);
  requireTensor(x, "bias_add", "x");
  requireTensor(bias, "bias_add", "bias");
  bool first = format == "channels_first";
  if (ndim(bias) == 1)
    return emit("bias_add", {x, bias}, {{"data_format", ChannelOrder{first}}});
  if (ndim(bias) != ndim(x) - 1)
    throw Error("bias_add: bias has shape " + shapeName(int_shape(bias)) +
                " but must have 1 or " + std::to_string(ndim(x) - 1) + " axes");
  if (!first)
    return x + expand_dims(bias, 0);
  // Keras keeps the channels of such a bias last in either format, and reads
  // its elements in their order as if they were first.
  Shape extents = int_shape(bias);
  Shape aligned{1, extents.back()};
  aligned.insert(aligned.end(), extents.begin(), extents.end() - 1);
  return x + reshape(bias, aligned);
}

} // namespace keratin::backend
