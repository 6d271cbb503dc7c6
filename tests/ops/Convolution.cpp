//===- Convolution.cpp - rows of convolutions -----------------------------===//
#include "OpTable.h"

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// One convolution; the spatial lists have one entry a spatial axis.
struct Conv {
  const char *name;
  K::Ints image; ///< spatial extents
  int64_t channels;
  K::Ints window; ///< spatial extents of the kernel
  int64_t filters;
  K::Ints strides, dilation;
  const char *padding = "valid";
  int64_t groups = 1;
};

static int64_t reach(int64_t window, int64_t dilation) {
  return (window - 1) * dilation + 1;
}

/// Zeros before the image: TensorFlow's rule, as in Keras.
static int64_t before(const Conv &conv, size_t axis) {
  int64_t reached = reach(conv.window[axis], conv.dilation[axis]);
  if (conv.padding == std::string("causal"))
    return reached - 1;
  if (conv.padding != std::string("same"))
    return 0;
  int64_t stride = conv.strides[axis], extent = conv.image[axis];
  int64_t out = (extent + stride - 1) / stride;
  return std::max<int64_t>((out - 1) * stride + reached - extent, 0) / 2;
}

static int64_t outputExtent(const Conv &conv, size_t axis) {
  int64_t stride = conv.strides[axis], extent = conv.image[axis];
  if (conv.padding != std::string("valid"))
    return (extent + stride - 1) / stride;
  return (extent - reach(conv.window[axis], conv.dilation[axis])) / stride + 1;
}

/// y[n, p, f] = sum over q, c of x[n, p * stride + q * dilation - before, c]
///   * w[q, c, f], where c counts within the group of f.
static Values convolve(const Conv &conv, const Values &x, const Values &w) {
  size_t spatial = conv.image.size();
  K::Shape shape = {x.shape[0]};
  for (size_t axis = 0; axis < spatial; ++axis)
    shape.push_back(outputExtent(conv, axis));
  shape.push_back(conv.filters);
  int64_t perGroup = conv.channels / conv.groups;
  return generate(shape, [&](S index) {
    int64_t filter = index.back();
    int64_t firstChannel = filter / (conv.filters / conv.groups) * perGroup;
    double sum = 0;
    forEachIndex(conv.window, [&](S q) {
      K::Shape at = index, from = q;
      from.insert(from.end(), {0, filter});
      for (size_t axis = 0; axis < spatial; ++axis) {
        int64_t &position = at[axis + 1];
        position = position * conv.strides[axis] +
                   q[axis] * conv.dilation[axis] - before(conv, axis);
        if (position < 0 || position >= conv.image[axis])
          return;
      }
      for (int64_t c = 0; c < perGroup; ++c) {
        at.back() = firstChannel + c;
        from[spatial] = c;
        sum += x[at] * w[from];
      }
    });
    return sum;
  });
}

/// Axes of a channels_first array in the order of channels_last, and back.
static std::vector<int64_t> toLast(size_t spatial) {
  return spatial == 1   ? std::vector<int64_t>{0, 2, 1}
         : spatial == 2 ? std::vector<int64_t>{0, 2, 3, 1}
                        : std::vector<int64_t>{0, 2, 3, 4, 1};
}
static std::vector<int64_t> toFirst(size_t spatial) {
  return spatial == 1   ? std::vector<int64_t>{0, 2, 1}
         : spatial == 2 ? std::vector<int64_t>{0, 3, 1, 2}
                        : std::vector<int64_t>{0, 4, 1, 2, 3};
}

static K::Shape imageShape(const Conv &conv, bool channelsFirst) {
  K::Shape shape = {tableBatch};
  if (channelsFirst)
    shape.push_back(conv.channels);
  shape.insert(shape.end(), conv.image.begin(), conv.image.end());
  if (!channelsFirst)
    shape.push_back(conv.channels);
  return shape;
}

/// Keras' function for the number of axes.
static K::Tensor callConv(const Conv &conv, X x, bool first) {
  const char *format = first ? "channels_first" : "channels_last";
  if (conv.image.size() == 1)
    return K::conv1d(x[0], x[1], conv.strides[0], conv.padding, format,
                     conv.dilation[0], conv.groups);
  if (conv.image.size() == 2)
    return K::conv2d(x[0], x[1], conv.strides, conv.padding, format,
                     conv.dilation, conv.groups);
  return K::conv3d(x[0], x[1], conv.strides, conv.padding, format,
                   conv.dilation, conv.groups);
}

/// The same convolution in both data formats.
static std::vector<Row> inBothFormats(const Conv &conv) {
  std::vector<Row> rows;
  for (bool first : {false, true}) {
    K::Shape kernel = conv.window;
    kernel.insert(kernel.end(), {conv.channels / conv.groups, conv.filters});
    rows.push_back(
        {.name = std::string(conv.name) + (first ? "_channels_first" : ""),
         .shapes = {imageShape(conv, first), kernel},
         .op = [=](X x) { return callConv(conv, x, first); },
         .formula =
             [=](const std::vector<Values> &x) {
               size_t spatial = conv.image.size();
               if (!first)
                 return convolve(conv, x[0], x[1]);
               Values image = permute(x[0], toLast(spatial));
               return permute(convolve(conv, image, x[1]), toFirst(spatial));
             },
         .tolerance = 4e-6,
         .weights = 1});
  }
  return rows;
}

/// y = depthwise(x): channel c * m + j of the result is channel c of x with
/// w[.., c, j], a convolution with a group a channel.
static Row depthwise(const char *name, int64_t multiplier, K::Ints strides,
                     const char *padding) {
  Conv conv = {.name = name,
               .image = {9, 8},
               .channels = 10,
               .window = {3, 3},
               .filters = 10 * multiplier,
               .strides = strides,
               .dilation = {1, 1},
               .padding = padding,
               .groups = 10};
  return {.name = name,
          .shapes = {imageShape(conv, false), {3, 3, 10, multiplier}},
          .op =
              [=](X x) {
                return K::depthwise_conv2d(x[0], x[1], strides, padding,
                                           "channels_last");
              },
          .formula =
              [=](const std::vector<Values> &x) {
                Values grouped = x[1];
                grouped.shape = {3, 3, 1, 10 * multiplier};
                return convolve(conv, x[0], grouped);
              },
          .tolerance = 4e-6,
          .weights = 1};
}

/// What Keras' functions refuse: a padding of one's own, and strides together
/// with a dilation.
static Row explicitlyPadded() {
  Conv padded = {.name = "conv_padded",
                 .image = {8, 9}, // 6 x 7 with its padding
                 .channels = 3,
                 .window = {3, 2},
                 .filters = 4,
                 .strides = {2, 3},
                 .dilation = {2, 1}};
  return {.name = padded.name,
          .shapes = {{tableBatch, 6, 7, 3}, {3, 2, 3, 4}},
          .op =
              [=](X x) {
                return K::conv(x[0], x[1], padded.strides,
                               std::vector<K::PadPair>{{2, 0}, {1, 1}},
                               "channels_last", padded.dilation);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                Values image =
                    generate({x[0].shape[0], 8, 9, 3}, [&](S i) -> double {
                      int64_t row = i[1] - 2, column = i[2] - 1;
                      bool inside = row >= 0 && column >= 0 && column < 7;
                      return inside ? x[0][{i[0], row, column, i[3]}] : 0;
                    });
                return convolve(padded, image, x[1]);
              },
          .tolerance = 4e-6,
          .weights = 1};
}

static Row depthwise1d(const char *name, int64_t image, int64_t window) {
  Conv conv = {.name = name,
               .image = {image},
               .channels = 5,
               .window = {window},
               .filters = 10,
               .strides = {2},
               .dilation = {1},
               .padding = "same",
               .groups = 5};
  return {.name = conv.name,
          .shapes = {imageShape(conv, false), {window, 5, 2}},
          .op =
              [](X x) {
                return K::depthwise_conv1d(x[0], x[1], 2, "same",
                                           "channels_last");
              },
          .formula =
              [=](const std::vector<Values> &x) {
                Values grouped = x[1];
                grouped.shape = {window, 1, 10};
                return convolve(conv, x[0], grouped);
              },
          .tolerance = 4e-6,
          .weights = 1};
}

/// One transposed convolution of `rank` spatial axes of one extent.
struct Transposed {
  const char *name;
  size_t rank;
  int64_t extent, window, stride, dilation;
  bool same, first;
  int64_t filters = 6;
};

/// x[n, p, c] w[q, f, c] is added to y[n, p * stride + q * dilation - before,
/// f].
static Row transposed(const Transposed &conv) {
  constexpr int64_t in = 4;
  int64_t filters = conv.filters;
  int64_t reached = reach(conv.window, conv.dilation), stride = conv.stride;
  int64_t rest = std::max<int64_t>(reached - stride, 0);
  int64_t out = conv.extent * stride + (conv.same ? 0 : rest);
  int64_t before = conv.same ? rest / 2 : 0;
  auto imageShape = [=](int64_t batch, int64_t extent, int64_t channels,
                        bool first) {
    K::Shape shape(conv.rank + 2, extent);
    shape.front() = batch;
    (first ? shape[1] : shape.back()) = channels;
    return shape;
  };
  K::Shape kernel(conv.rank, conv.window);
  kernel.insert(kernel.end(), {filters, in});
  return {
      .name = conv.name,
      .shapes = {imageShape(tableBatch, conv.extent, in, conv.first), kernel},
      .op =
          [=](X x) {
            K::Shape shape = imageShape(K::None, out, filters, conv.first);
            K::Ints strides(conv.rank, stride);
            K::Ints dilation(conv.rank, conv.dilation);
            const char *padding = conv.same ? "same" : "valid";
            const char *format =
                conv.first ? "channels_first" : "channels_last";
            if (conv.rank == 1)
              return K::conv1d_transpose(x[0], x[1], shape, stride, padding,
                                         format, conv.dilation);
            if (conv.rank == 2)
              return K::conv2d_transpose(x[0], x[1], shape, strides, padding,
                                         format, dilation);
            return K::conv3d_transpose(x[0], x[1], shape, strides, padding,
                                       format, dilation);
          },
      .formula =
          [=](const std::vector<Values> &x) {
            Values image = conv.first ? permute(x[0], toLast(conv.rank)) : x[0];
            Values y(imageShape(image.shape[0], out, filters, false));
            forEachIndex(image.shape, [&](S i) {
              forEachIndex(K::Shape(kernel.begin(), kernel.end() - 1),
                           [&](S q) {
                             K::Shape at = i, from = q;
                             from.push_back(i.back());
                             at.back() = q.back();
                             for (size_t axis = 0; axis < conv.rank; ++axis) {
                               int64_t &position = at[axis + 1];
                               position = position * stride +
                                          q[axis] * conv.dilation - before;
                               if (position < 0 || position >= out)
                                 return;
                             }
                             y[at] += image[i] * x[1][from];
                           });
            });
            return conv.first ? permute(y, toFirst(conv.rank)) : y;
          },
      .tolerance = 4e-6,
      .weights = 1};
}

/// The padding is that of the convolution whose gradient this is: (1, 0) takes
/// the first element of what strides of 2 and a window of 3 reach.
static Row transposedWithPadding() {
  return {.name = "conv_transpose_padded",
          .shapes = {{tableBatch, 4, 3}, {3, 5, 3}},
          .op =
              [](X x) {
                return K::conv_transpose(x[0], x[1], {K::None, 8, 5}, {2},
                                         std::vector<K::PadPair>{{1, 0}},
                                         "channels_last", {1});
              },
          .formula =
              [](const std::vector<Values> &x) {
                Values y({x[0].shape[0], 8, 5});
                forEachIndex(x[0].shape, [&](S i) {
                  forEachIndex({3, 5}, [&](S q) {
                    int64_t at = 2 * i[1] + q[0] - 1;
                    if (at >= 0)
                      y[{i[0], at, q[1]}] += x[0][i] * x[1][{q[0], q[1], i[2]}];
                  });
                });
                return y;
              },
          .tolerance = 4e-6,
          .weights = 1};
}

static Row separable1d() {
  Conv depth = {.name = "",
                .image = {8},
                .channels = 3,
                .window = {3},
                .filters = 6,
                .strides = {1},
                .dilation = {2},
                .padding = "causal",
                .groups = 3};
  Conv point = {.name = "",
                .image = {8},
                .channels = 6,
                .window = {1},
                .filters = 4,
                .strides = {1},
                .dilation = {1}};
  return {.name = "separable_conv1d",
          .shapes = {imageShape(depth, false), {3, 3, 2}, {1, 6, 4}},
          .op =
              [](X x) {
                return K::separable_conv1d(x[0], x[1], x[2], 1, "causal",
                                           "channels_last", 2);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                Values grouped = x[1];
                grouped.shape = {3, 1, 6};
                return convolve(point, convolve(depth, x[0], grouped), x[2]);
              },
          .tolerance = 4e-6,
          .weights = 2};
}

/// A depthwise and then a 1x1 convolution.
static Row separable() {
  Conv depth = {.name = "",
                .image = {6, 7},
                .channels = 4,
                .window = {3, 3},
                .filters = 8,
                .strides = {1, 1},
                .dilation = {1, 1},
                .padding = "same",
                .groups = 4};
  Conv point = depth;
  point.channels = 8;
  point.window = {1, 1};
  point.filters = 5;
  point.groups = 1;
  return {.name = "separable_conv2d",
          .shapes = {imageShape(depth, false), {3, 3, 4, 2}, {1, 1, 8, 5}},
          .op =
              [=](X x) {
                return K::separable_conv2d(x[0], x[1], x[2], {1, 1}, "same",
                                           "channels_last");
              },
          .formula =
              [=](const std::vector<Values> &x) {
                Values grouped = x[1];
                grouped.shape = {3, 3, 1, 8};
                return convolve(point, convolve(depth, x[0], grouped), x[2]);
              },
          .tolerance = 4e-6,
          .weights = 2};
}

std::vector<Row> convolutionRows() {
  std::vector<Row> rows = {
      explicitlyPadded(),
      transposedWithPadding(),
      depthwise1d("depthwise_conv1d", 9, 3),
      depthwise1d("depthwise_conv1d_long", 61, 29),
      separable1d(),
      separable(),
      depthwise("depthwise_conv2d", 1, {1, 1}, "same"),
      depthwise("depthwise_conv2d_multiplied", 2, {1, 1}, "valid"),
      depthwise("depthwise_conv2d_strided", 1, {2, 2}, "same"),
  };
  for (const Transposed &conv : std::vector<Transposed>{
           {"conv2d_transpose", 2, 4, 3, 2, 1, false, false},
           {"conv2d_transpose_same", 2, 4, 3, 2, 1, true, false},
           {"conv2d_transpose_no_overlap", 2, 3, 2, 2, 1, false, false},
           {"conv2d_transpose_channels_first", 2, 3, 3, 2, 1, true, true},
           {"conv1d_transpose_dilated", 1, 5, 3, 1, 2, false, false},
           {"conv3d_transpose", 3, 2, 2, 2, 1, true, false},
           {"conv2d_transpose_even", 2, 4, 4, 2, 1, true, false},
           {"conv2d_transpose_far", 2, 3, 2, 3, 1, false, false},
           {"conv1d_transpose_thirds", 1, 5, 5, 3, 1, true, false},
           {"conv2d_transpose_by_phases", 2, 4, 3, 2, 1, false, false, 17},
           {"conv2d_transpose_by_phases_same", 2, 3, 5, 2, 1, true, true, 16},
           {"conv1d_transpose_by_phases", 1, 4, 5, 3, 1, true, false, 16},
           {"conv3d_transpose_by_phases", 3, 2, 3, 2, 1, true, false, 16},
           {"conv2d_transpose_even_by_phases", 2, 4, 4, 2, 1, true, false, 24},
           {"conv1d_transpose_even_by_phases", 1, 5, 6, 3, 1, true, true, 20},
           {"conv3d_transpose_even_by_phases", 3, 2, 4, 2, 1, true, false, 17},
           {"conv2d_transpose_one_tap", 2, 5, 2, 2, 1, false, false, 16},
           {"conv2d_transpose_one_tap_far", 2, 3, 2, 3, 1, false, false, 20},
           {"conv1d_transpose_one_tap_same", 1, 5, 3, 3, 1, true, true, 16},
       })
    rows.push_back(transposed(conv));
  for (const Conv &conv : std::vector<Conv>{
           {"conv1d", {11}, 5, {3}, 7, {1}, {1}},
           {"conv1d_causal_dilated", {11}, 5, {3}, 7, {1}, {2}, "causal"},
           {"conv1d_strided", {11}, 5, {4}, 7, {2}, {1}, "same"},
           {"conv2d", {7, 8}, 5, {3, 3}, 17, {1, 1}, {1, 1}},
           {"conv2d_same", {7, 8}, 4, {3, 3}, 32, {1, 1}, {1, 1}, "same"},
           {"conv2d_1x1", {5, 6}, 9, {1, 1}, 18, {1, 1}, {1, 1}},
           {"conv2d_strided", {9, 8}, 3, {3, 3}, 8, {2, 2}, {1, 1}, "same"},
           {"conv2d_dilated", {9, 9}, 3, {3, 2}, 8, {1, 1}, {2, 3}},
           {"conv2d_even_window", {6, 6}, 3, {4, 2}, 5, {1, 1}, {1, 1}, "same"},
           {"conv2d_grouped", {6, 7}, 6, {3, 3}, 8, {1, 1}, {1, 1}, "same", 2},
           {"conv1d_grouped_strided", {9}, 4, {3}, 6, {2}, {1}, "valid", 2},
           {"conv2d_many_groups",
            {4, 5},
            24,
            {3, 3},
            24,
            {1, 1},
            {1, 1},
            "same",
            6},
           {"conv1d_groups_of_two_to_four",
            {9},
            8,
            {3},
            16,
            {2},
            {1},
            "valid",
            4},
           {"conv3d", {4, 5, 6}, 3, {2, 3, 2}, 5, {1, 1, 1}, {1, 1, 1}},
           {"conv3d_same",
            {4, 5, 4},
            2,
            {3, 3, 3},
            4,
            {2, 1, 1},
            {1, 1, 1},
            "same"},
       })
    for (Row &row : inBothFormats(conv))
      rows.push_back(std::move(row));
  return rows;
}

} // namespace keratin::optest
