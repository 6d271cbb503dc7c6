//===- RecurrentCells.cpp - the steps of recurrent layers -----------------===//
#include "RecurrentCells.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

/// h = activation(x W + b + h R)
static Cell simpleCell(LayerContext &layer, const Config &config,
                       const K::Shape &input) {
  int64_t units = config.integer("units", 1);
  K::Tensor kernel = layer.weight("kernel", {input.back(), units});
  K::Tensor recurrent = layer.weight("recurrent_kernel", {units, units});
  K::Tensor bias;
  if (config.flag("use_bias", true))
    bias = layer.weight("bias", {units});
  Activation activate = activation(layer, config, "activation", "tanh");
  auto step = [=](const K::Tensor &x, const K::Tensors &states) {
    K::Tensor h = K::dot(x, kernel);
    h = bias ? h + bias : h;
    h = activate(h + K::dot(states[0], recurrent));
    return std::make_pair(h, K::Tensors{h});
  };
  return {{{units}}, {units}, step};
}

/// The output and the states that follow from the sums i, f, g, o of a step:
/// c = f c + i g; h = o tanh(c)
static std::pair<K::Tensor, K::Tensors> lstmStates(const K::Tensors &sums,
                                                   const K::Tensor &carry,
                                                   const Activation &activate,
                                                   const Activation &gate) {
  K::Tensor next = gate(sums[1]) * carry + gate(sums[0]) * activate(sums[2]);
  K::Tensor h = gate(sums[3]) * activate(next);
  return {h, {h, next}};
}

/// i, f, g, o = x W + b + h R
static Cell lstmCell(LayerContext &layer, const Config &config,
                     const K::Shape &input) {
  int64_t units = config.integer("units", 1);
  K::Tensor kernel = layer.weight("kernel", {input.back(), 4 * units});
  K::Tensor recurrent = layer.weight("recurrent_kernel", {units, 4 * units});
  K::Tensor bias;
  if (config.flag("use_bias", true))
    bias = layer.weight("bias", {4 * units});
  Activation activate = activation(layer, config, "activation", "tanh");
  Activation gate =
      activation(layer, config, "recurrent_activation", "sigmoid");
  auto step = [=](const K::Tensor &x, const K::Tensors &states) {
    K::Tensor z = K::dot(x, kernel);
    z = bias ? z + bias : z;
    z = z + K::dot(states[0], recurrent);
    return lstmStates(K::split(z, 4, -1), states[1], activate, gate);
  };
  return {{{units}, {units}}, {units}, step};
}

/// z, r = gates; h' = activation(x W + r (h R)) or, with the reset before the
/// product, activation(x W + (r h) R); h = z h + (1 - z) h'.
static Cell gruCell(LayerContext &layer, const Config &config,
                    const K::Shape &input) {
  int64_t units = config.integer("units", 1);
  bool resetAfter = config.flag("reset_after", !layer.isKeras2());
  K::Tensor kernel = layer.weight("kernel", {input.back(), 3 * units});
  K::Tensor recurrent = layer.weight("recurrent_kernel", {units, 3 * units});
  K::Tensor inputBias, recurrentBias;
  if (config.flag("use_bias", true)) {
    if (resetAfter) {
      K::Tensors biases = K::unstack(layer.weight("bias", {2, 3 * units}), 0);
      inputBias = biases[0];
      recurrentBias = biases[1];
    } else {
      inputBias = layer.weight("bias", {3 * units});
    }
  }
  Activation activate = activation(layer, config, "activation", "tanh");
  Activation gate =
      activation(layer, config, "recurrent_activation", "sigmoid");
  auto plus = [](const K::Tensor &y, const K::Tensor &bias) {
    return bias ? y + bias : y;
  };
  auto mix = [=](const K::Tensor &update, const K::Tensor &h,
                 const K::Tensor &candidate) {
    K::Tensor next = update * h + (K::Tensor(1) - update) * candidate;
    return std::make_pair(next, K::Tensors{next});
  };
  if (resetAfter)
    return {
        {{units}}, {units}, [=](const K::Tensor &x, const K::Tensors &states) {
          K::Tensors in = K::split(plus(K::dot(x, kernel), inputBias), 3);
          K::Tensors inner =
              K::split(plus(K::dot(states[0], recurrent), recurrentBias), 3);
          K::Tensor reset = gate(in[1] + inner[1]);
          return mix(gate(in[0] + inner[0]), states[0],
                     activate(in[2] + reset * inner[2]));
        }};
  K::Tensors parts = K::split(recurrent, K::Ints{2 * units}, -1);
  return {
      {{units}}, {units}, [=](const K::Tensor &x, const K::Tensors &states) {
        K::Tensors in = K::split(plus(K::dot(x, kernel), inputBias), 3);
        K::Tensors inner = K::split(K::dot(states[0], parts[0]), 2);
        K::Tensor reset = gate(in[1] + inner[1]);
        K::Tensor candidate = K::dot(reset * states[0], parts[1]);
        return mix(gate(in[0] + inner[0]), states[0],
                   activate(in[2] + candidate));
      }};
}

/// Cells on top of each other; the states are those of all, in order.
static Cell stackedCell(LayerContext &layer, const Config &config,
                        K::Shape input) {
  const Json &list = config.at("cells");
  if (!list.is_array() || list.empty())
    layer.fail("has 'cells' that are no list of cells");
  auto cells = std::make_shared<std::vector<Cell>>();
  std::map<std::string, int> used;
  Cell stack;
  for (const Json &object : list) {
    const Json wrapped = {{"cell", object}};
    Config outer(wrapped, [&](const std::string &m) { layer.problem(m); });
    const Json *cell = outer.layer("cell");
    if (!cell)
      layer.fail("has 'cells' with an item that is no cell");
    std::string name = (*cell)["class_name"].get<std::string>();
    std::string group = snakeCase(name);
    if (int before = used[group]++)
      group += "_" + std::to_string(before);
    Config inner((*cell)["config"],
                 [&](const std::string &m) { layer.problem(m); });
    cells->push_back(layer.inside(
        group, [&] { return makeCell(layer, inner, name, input); }));
    input = cells->back().output;
    const std::vector<K::Shape> &states = cells->back().states;
    stack.states.insert(stack.states.end(), states.begin(), states.end());
  }
  stack.output = input;
  stack.step = [cells](const K::Tensor &x, const K::Tensors &states) {
    K::Tensor output = x;
    K::Tensors next;
    auto state = states.begin();
    for (const Cell &cell : *cells) {
      K::Tensors own(state, state + ptrdiff_t(cell.states.size()));
      state += ptrdiff_t(cell.states.size());
      auto [y, updated] = cell.step(output, own);
      output = y;
      next.insert(next.end(), updated.begin(), updated.end());
    }
    return std::make_pair(output, next);
  };
  return stack;
}

/// Of the places that a window goes to, as in K::conv.
static int64_t placesOf(int64_t extent, int64_t window, int64_t stride,
                        int64_t dilation, bool same) {
  if (same)
    return (extent + stride - 1) / stride;
  return (extent - dilation * (window - 1) - 1) / stride + 1;
}

/// An LSTM whose products are convolutions, of the input as it is configured
/// and of the state to its own size: i, f, g, o = x * W + b + h * R.
static Cell convLstmCell(LayerContext &layer, const Config &config,
                         const K::Shape &input) {
  size_t rank = input.size() - 1;
  std::vector<int64_t> ones(rank, 1);
  int64_t filters = config.integer("filters", 1);
  std::vector<int64_t> window = config.integers("kernel_size", rank, 1),
                       strides = config.integers("strides", rank, 1, ones),
                       dilation =
                           config.integers("dilation_rate", rank, 1, ones);
  std::string padding = config.choice("padding", {"valid", "same"}, "valid");
  std::string format = config.choice(
      "data_format", {"channels_last", "channels_first"}, "channels_last");
  bool first = format == "channels_first";

  int64_t channels = input[first ? 0 : rank];
  K::Shape state(input);
  state[first ? 0 : rank] = filters;
  bool isKnown = channels >= 1;
  for (size_t way = 0; way < rank; ++way) {
    int64_t &extent = state[way + (first ? 1 : 0)];
    if (extent >= 0)
      extent = placesOf(extent, window[way], strides[way], dilation[way],
                        padding == "same");
    isKnown &= extent >= 1;
  }
  if (!isKnown)
    layer.fail("has steps of shape " + shapeName(input) +
               ", but images of known extents, at least as large as its "
               "window of " +
               shapeName(window) + ", are expected");
  K::Shape shape = window;
  shape.insert(shape.end(), {channels, 4 * filters});
  K::Tensor kernel = layer.weight("kernel", shape);
  shape[rank] = filters;
  K::Tensor recurrent = layer.weight("recurrent_kernel", shape);
  K::Tensor bias;
  if (config.flag("use_bias", true))
    bias = layer.weight("bias", {4 * filters});
  Activation activate = activation(layer, config, "activation", "tanh");
  Activation gate =
      activation(layer, config, "recurrent_activation", "sigmoid");
  auto step = [=](const K::Tensor &x, const K::Tensors &states) {
    K::Tensor z = K::conv(x, kernel, strides, padding, format, dilation);
    z = bias ? K::bias_add(z, bias, format) : z;
    z = z + K::conv(states[0], recurrent, ones, "same", format, ones);
    return lstmStates(K::split(z, 4, first ? 1 : -1), states[1], activate,
                      gate);
  };
  return {{state, state}, state, step};
}

size_t model::spatialAxesOfSteps(const std::string &className) {
  static const std::map<std::string, size_t> axes = {
      {"ConvLSTM1D", 1}, {"ConvLSTM2D", 2}, {"ConvLSTM3D", 3}};
  auto found = axes.find(className);
  return found == axes.end() ? 0 : found->second;
}

Cell model::makeCell(LayerContext &layer, const Config &config,
                     const std::string &className, const K::Shape &input) {
  size_t axes = spatialAxesOfSteps(className);
  if (input.size() != axes + 1)
    layer.fail("has a cell of the class '" + className +
               "' in a layer whose steps are of shape " + shapeName(input));
  if (axes != 0)
    return convLstmCell(layer, config, input);
  if (className == "SimpleRNN" || className == "SimpleRNNCell")
    return simpleCell(layer, config, input);
  if (className == "LSTM" || className == "LSTMCell")
    return lstmCell(layer, config, input);
  if (className == "GRU" || className == "GRUCell")
    return gruCell(layer, config, input);
  if (className == "StackedRNNCells")
    return layer.inside("cells",
                        [&] { return stackedCell(layer, config, input); });
  layer.fail("has a cell of the class '" + className +
             "', but SimpleRNNCell, LSTMCell, GRUCell and StackedRNNCells are "
             "supported");
}
