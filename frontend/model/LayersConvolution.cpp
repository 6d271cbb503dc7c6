//===- LayersConvolution.cpp - convolutional layers -----------------------===//
#include "Layer.h"

using namespace keratin;
using namespace keratin::model;

namespace {

/// What all convolutions are configured with.
struct Convolution {
  Convolution(LayerContext &layer, size_t rank);

  size_t rank;
  std::vector<int64_t> kernel, strides, dilation;
  std::string paddingName, format;
  K::Tensor x;
  int64_t channels;

  K::Padding padding() const;
  K::Shape kernelShape(int64_t in, int64_t out) const;
};

} // namespace

Convolution::Convolution(LayerContext &layer, size_t rank)
    : rank(rank), kernel(layer.config().integers("kernel_size", rank, 1)),
      strides(layer.config().integers("strides", rank, 1,
                                      std::vector<int64_t>(rank, 1))),
      dilation(layer.config().integers("dilation_rate", rank, 1,
                                       std::vector<int64_t>(rank, 1))),
      format(dataFormat(layer)), x(layer.inputOfRank(int64_t(rank) + 2)),
      channels(layer.channels(x, channelAxis(format, int64_t(rank) + 2))) {
  paddingName =
      rank == 1 ? layer.config().choice("padding", {"valid", "same", "causal"},
                                        "valid")
                : layer.config().choice("padding", {"valid", "same"}, "valid");
}

/// A causal step sees itself and the steps before: all padding is in front.
K::Padding Convolution::padding() const {
  if (paddingName != "causal")
    return paddingName;
  return std::vector<std::pair<int64_t, int64_t>>{
      {dilation[0] * (kernel[0] - 1), 0}};
}

K::Shape Convolution::kernelShape(int64_t in, int64_t out) const {
  K::Shape shape = kernel;
  shape.push_back(in);
  shape.push_back(out);
  return shape;
}

static K::Tensors finish(LayerContext &layer, K::Tensor y, int64_t filters,
                         const std::string &format) {
  if (layer.config().flag("use_bias", true))
    y = K::bias_add(y, layer.weight("bias", {filters}), format);
  return {activate(layer, y)};
}

template <size_t rank> static K::Tensors convolution(LayerContext &layer) {
  int64_t filters = layer.config().integer("filters", 1);
  int64_t groups = layer.config().integer("groups", 1, 1);
  Convolution conv(layer, rank);
  if (conv.channels % groups || filters % groups)
    layer.fail("has 'groups': " + std::to_string(groups) +
               ", which must divide its " + std::to_string(conv.channels) +
               " input channels and " + std::to_string(filters) + " filters");
  K::Tensor kernel =
      layer.weight("kernel", conv.kernelShape(conv.channels / groups, filters));
  K::Tensor y = K::conv(conv.x, kernel, conv.strides, conv.padding(),
                        conv.format, conv.dilation, groups);
  return finish(layer, y, filters, conv.format);
}

template <size_t rank> static K::Tensors transposed(LayerContext &layer) {
  int64_t filters = layer.config().integer("filters", 1);
  Convolution conv(layer, rank);
  K::Ints outputPadding =
      layer.config().integers("output_padding", rank, 0, K::Ints());
  K::Tensor kernel =
      layer.weight("kernel", conv.kernelShape(filters, conv.channels));
  K::Shape shape = K::conv_transpose_output_shape(
      conv.x, kernel, conv.strides, conv.paddingName, outputPadding,
      conv.format, conv.dilation);
  K::Tensor y = K::conv_transpose(conv.x, kernel, shape, conv.strides,
                                  conv.padding(), conv.format, conv.dilation);
  return finish(layer, y, filters, conv.format);
}

template <size_t rank> static K::Tensors depthwise(LayerContext &layer) {
  int64_t multiplier = layer.config().integer("depth_multiplier", 1, 1);
  Convolution conv(layer, rank);
  K::Tensor kernel =
      layer.weight("kernel", conv.kernelShape(conv.channels, multiplier));
  K::Tensor y;
  if constexpr (rank == 1)
    y = K::depthwise_conv1d(conv.x, kernel, conv.strides[0], conv.padding(),
                            conv.format, conv.dilation[0]);
  else
    y = K::depthwise_conv2d(conv.x, kernel, conv.strides, conv.padding(),
                            conv.format, conv.dilation);
  return finish(layer, y, conv.channels * multiplier, conv.format);
}

template <size_t rank> static K::Tensors separable(LayerContext &layer) {
  int64_t multiplier = layer.config().integer("depth_multiplier", 1, 1);
  int64_t filters = layer.config().integer("filters", 1);
  Convolution conv(layer, rank);
  K::Tensor depth = layer.weight("depthwise_kernel",
                                 conv.kernelShape(conv.channels, multiplier));
  K::Shape pointShape(rank, 1);
  pointShape.push_back(conv.channels * multiplier);
  pointShape.push_back(filters);
  K::Tensor point = layer.weight("pointwise_kernel", pointShape);
  K::Tensor y;
  if constexpr (rank == 1)
    y = K::separable_conv1d(conv.x, depth, point, conv.strides[0],
                            conv.padding(), conv.format, conv.dilation[0]);
  else
    y = K::separable_conv2d(conv.x, depth, point, conv.strides, conv.padding(),
                            conv.format, conv.dilation);
  return finish(layer, y, filters, conv.format);
}

std::span<const LayerEntry> model::convolutionLayers() {
  static const LayerEntry entries[] = {
      {"Conv1D", convolution<1>},         {"Conv2D", convolution<2>},
      {"Conv3D", convolution<3>},         {"Convolution1D", convolution<1>},
      {"Convolution2D", convolution<2>},  {"Convolution3D", convolution<3>},
      {"Conv1DTranspose", transposed<1>}, {"Conv2DTranspose", transposed<2>},
      {"Conv3DTranspose", transposed<3>}, {"DepthwiseConv1D", depthwise<1>},
      {"DepthwiseConv2D", depthwise<2>},  {"SeparableConv1D", separable<1>},
      {"SeparableConv2D", separable<2>},
  };
  return entries;
}
