//===- LayersRecurrent.cpp - recurrent layers and wrappers over time ------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

namespace {

/// One step of a recurrent layer, with its weights.
struct Cell {
  std::vector<int64_t> stateSizes;
  int64_t outputSize = 0;
  K::StepFunction step;
};

/// A recurrent layer, alone or in a wrapper.
struct Recurrent {
  const Config &config;
  std::string className;
  K::Tensor x, mask;
  K::Tensors initialStates;
};

struct RecurrentOutput {
  K::Tensor output; // the last, or all with return_sequences
  K::Tensors states;
};

} // namespace

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

/// h = activation(x W + b + h R)
static Cell simpleCell(LayerContext &layer, const Config &config,
                       int64_t features) {
  int64_t units = config.integer("units", 1);
  K::Tensor kernel = layer.weight("kernel", {features, units});
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
  return {{units}, units, step};
}

/// i, f, g, o = x W + b + h R; c = f c + i g; h = o tanh(c)
static Cell lstmCell(LayerContext &layer, const Config &config,
                     int64_t features) {
  int64_t units = config.integer("units", 1);
  K::Tensor kernel = layer.weight("kernel", {features, 4 * units});
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
    K::Tensors parts = K::split(z + K::dot(states[0], recurrent), 4, -1);
    K::Tensor carry =
        gate(parts[1]) * states[1] + gate(parts[0]) * activate(parts[2]);
    K::Tensor h = gate(parts[3]) * activate(carry);
    return std::make_pair(h, K::Tensors{h, carry});
  };
  return {{units, units}, units, step};
}

/// z, r = gates; h' = activation(x W + r (h R)) or, with the reset before the
/// product, activation(x W + (r h) R); h = z h + (1 - z) h'.
static Cell gruCell(LayerContext &layer, const Config &config,
                    int64_t features) {
  int64_t units = config.integer("units", 1);
  bool resetAfter = config.flag("reset_after", !layer.isKeras2());
  K::Tensor kernel = layer.weight("kernel", {features, 3 * units});
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
    return {std::vector{units}, units,
            [=](const K::Tensor &x, const K::Tensors &states) {
              K::Tensors in = K::split(plus(K::dot(x, kernel), inputBias), 3);
              K::Tensors inner = K::split(
                  plus(K::dot(states[0], recurrent), recurrentBias), 3);
              K::Tensor reset = gate(in[1] + inner[1]);
              return mix(gate(in[0] + inner[0]), states[0],
                         activate(in[2] + reset * inner[2]));
            }};
  K::Tensors parts = K::split(recurrent, K::Ints{2 * units}, -1);
  return {std::vector{units}, units,
          [=](const K::Tensor &x, const K::Tensors &states) {
            K::Tensors in = K::split(plus(K::dot(x, kernel), inputBias), 3);
            K::Tensors inner = K::split(K::dot(states[0], parts[0]), 2);
            K::Tensor reset = gate(in[1] + inner[1]);
            K::Tensor candidate = K::dot(reset * states[0], parts[1]);
            return mix(gate(in[0] + inner[0]), states[0],
                       activate(in[2] + candidate));
          }};
}

static Cell makeCell(LayerContext &layer, const Config &config,
                     const std::string &className, int64_t features);

/// Cells on top of each other; the states are those of all, in order.
static Cell stackedCell(LayerContext &layer, const Config &config,
                        int64_t features) {
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
        group, [&] { return makeCell(layer, inner, name, features); }));
    features = cells->back().outputSize;
    const std::vector<int64_t> &sizes = cells->back().stateSizes;
    stack.stateSizes.insert(stack.stateSizes.end(), sizes.begin(), sizes.end());
  }
  stack.outputSize = features;
  stack.step = [cells](const K::Tensor &x, const K::Tensors &states) {
    K::Tensor output = x;
    K::Tensors next;
    auto state = states.begin();
    for (const Cell &cell : *cells) {
      K::Tensors own(state, state + ptrdiff_t(cell.stateSizes.size()));
      state += ptrdiff_t(cell.stateSizes.size());
      auto [y, updated] = cell.step(output, own);
      output = y;
      next.insert(next.end(), updated.begin(), updated.end());
    }
    return std::make_pair(output, next);
  };
  return stack;
}

static Cell makeCell(LayerContext &layer, const Config &config,
                     const std::string &className, int64_t features) {
  if (className == "SimpleRNN" || className == "SimpleRNNCell")
    return simpleCell(layer, config, features);
  if (className == "LSTM" || className == "LSTMCell")
    return lstmCell(layer, config, features);
  if (className == "GRU" || className == "GRUCell")
    return gruCell(layer, config, features);
  if (className == "StackedRNNCells")
    return layer.inside("cells",
                        [&] { return stackedCell(layer, config, features); });
  layer.fail("has a cell of the class '" + className +
             "', but SimpleRNNCell, LSTMCell, GRUCell and StackedRNNCells are "
             "supported");
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// The cell of a layer, which is configured by `config` itself or, for RNN, by
/// an object of its own.
static Cell cellOf(LayerContext &layer, const Recurrent &recurrent,
                   int64_t features) {
  if (recurrent.className != "RNN")
    return makeCell(layer, recurrent.config, recurrent.className, features);
  const Json *cell = recurrent.config.layer("cell");
  if (!cell)
    layer.fail("has no cell");
  Config config((*cell)["config"],
                [&](const std::string &m) { layer.problem(m); });
  return makeCell(layer, config, (*cell)["class_name"].get<std::string>(),
                  features);
}

static RecurrentOutput run(LayerContext &layer, const Recurrent &recurrent) {
  const Config &config = recurrent.config;
  if (config.flag("stateful", false))
    layer.fail("has 'stateful': true, but a compiled function keeps no state "
               "between calls: build the model with return_state=True and an "
               "initial_state input");
  if (config.flag("time_major", false))
    config.wrong("time_major", "false"); // of Keras 2
  K::Tensor x = recurrent.x;
  if (K::ndim(x) != 3)
    layer.fail("is called with an input of shape " +
               shapeName(K::int_shape(x)) +
               ", but (samples, steps, features) is expected");
  int64_t features = layer.channels(x, 2);
  Cell cell =
      layer.inside("cell", [&] { return cellOf(layer, recurrent, features); });
  if (layer.failed())
    throw Error("the cell is wrong");

  K::Tensors states = recurrent.initialStates;
  if (states.empty())
    for (int64_t size : cell.stateSizes)
      states.push_back(
          K::full(K::Dims{K::extent(x, 0), size}, 0, layer.dtype()));
  if (states.size() != cell.stateSizes.size())
    layer.fail("is called with " + std::to_string(states.size()) +
               " initial states, but it has " +
               std::to_string(cell.stateSizes.size()));
  K::RnnOptions options;
  options.go_backwards = config.flag("go_backwards", false);
  options.mask = recurrent.mask;
  options.zero_output_for_mask = config.flag("zero_output_for_mask", false);
  K::RnnResult result = K::rnn(cell.step, x, states, options);
  bool sequences = config.flag("return_sequences", false);
  return {sequences ? result.outputs : result.last_output, result.states};
}

/// The initial states of a call: a second argument, or inputs after the first
/// as Keras 2 wrote them.
static K::Tensors initialStates(LayerContext &layer) {
  K::Tensors states;
  std::vector<Value> inputs = layer.inputs();
  for (size_t i = 1; i < inputs.size(); ++i)
    states.push_back(inputs[i].tensor);
  const Argument *given = layer.argument(1, "initial_state");
  if (given && given->isTensor())
    states.push_back(given->value.tensor);
  if (given)
    for (const Argument &item : given->items) {
      if (!item.isTensor())
        layer.fail("is called with nested initial states, but a list of "
                   "tensors is expected");
      states.push_back(item.value.tensor);
    }
  return states;
}

static K::Tensors recurrent(LayerContext &layer) {
  const Config &config = layer.config();
  K::Tensor mask = layer.mask();
  Recurrent recurrent{config, layer.className(), layer.inputs().front().tensor,
                      mask, initialStates(layer)};
  RecurrentOutput result = run(layer, recurrent);
  if (mask && config.flag("return_sequences", false))
    layer.setMask(mask);
  K::Tensors outputs = {result.output};
  if (config.flag("return_state", false))
    outputs.insert(outputs.end(), result.states.begin(), result.states.end());
  return outputs;
}

//===----------------------------------------------------------------------===//
// Bidirectional
//===----------------------------------------------------------------------===//

/// The configuration of the backward layer: its own, or the forward one's the
/// other way round.
static Json backwardConfig(const Config &config, const Json &forward) {
  if (config.has("backward_layer"))
    if (const Json *own = config.layer("backward_layer"))
      return *own;
  Json mirrored = forward;
  Json &inner = mirrored["config"];
  bool backwards = inner.contains("go_backwards") &&
                   inner["go_backwards"].is_boolean() &&
                   inner["go_backwards"].get<bool>();
  inner["go_backwards"] = !backwards;
  return mirrored;
}

static K::Tensor mergeDirections(LayerContext &layer, const std::string &mode,
                                 const K::Tensor &forward,
                                 const K::Tensor &backward) {
  if (mode == "concat")
    return K::concatenate({forward, backward}, -1);
  if (mode == "sum")
    return forward + backward;
  if (mode == "ave")
    return (forward + backward) / K::Tensor(2.0);
  if (mode == "mul")
    return forward * backward;
  layer.fail("has 'merge_mode': '" + mode +
             "', but 'concat', 'sum', 'ave', 'mul' or null is expected");
}

static K::Tensors bidirectional(LayerContext &layer) {
  const Config &config = layer.config();
  const Json *forwardObject = config.layer("layer");
  if (!forwardObject)
    return {};
  Json backwardObject = backwardConfig(config, *forwardObject);
  auto report = [&](const std::string &m) { layer.problem(m); };
  Config forward((*forwardObject)["config"], report);
  Config backward(backwardObject["config"], report);
  K::Tensor x = layer.inputs().front().tensor, mask = layer.mask();
  K::Tensors states = initialStates(layer);
  auto half = states.begin() + ptrdiff_t(states.size() / 2);
  auto nameOf = [](const Json &object) {
    return object["class_name"].get<std::string>();
  };
  RecurrentOutput ahead = layer.inside("forward_layer", [&] {
    return run(layer, {forward, nameOf(*forwardObject), x, mask,
                       K::Tensors(states.begin(), half)});
  });
  RecurrentOutput back = layer.inside("backward_layer", [&] {
    return run(layer, {backward, nameOf(backwardObject), x, mask,
                       K::Tensors(half, states.end())});
  });
  bool sequences = forward.flag("return_sequences", false);
  if (sequences) {
    back.output = K::reverse(back.output, 1);
    layer.setMask(mask);
  }
  K::Tensors outputs;
  bool merged =
      !config.raw().contains("merge_mode") || config.has("merge_mode");
  if (merged)
    outputs = {mergeDirections(layer, config.text("merge_mode", "concat"),
                               ahead.output, back.output)};
  else
    outputs = {ahead.output, back.output};
  if (forward.flag("return_state", false)) {
    outputs.insert(outputs.end(), ahead.states.begin(), ahead.states.end());
    outputs.insert(outputs.end(), back.states.begin(), back.states.end());
  }
  return outputs;
}

//===----------------------------------------------------------------------===//
// TimeDistributed
//===----------------------------------------------------------------------===//

/// The steps become samples of the wrapped layer.
static K::Tensors timeDistributed(LayerContext &layer) {
  const Json *wrapped = layer.config().layer("layer");
  if (!wrapped)
    return {};
  K::Tensor x = layer.input();
  K::Shape shape = K::int_shape(x);
  if (shape.size() < 3)
    layer.fail("is called with an input of shape " + shapeName(shape) +
               ", but (samples, steps, …) is expected");
  K::Shape merged(shape.begin() + 1, shape.end());
  merged[0] = -1;
  InnerCall inner{wrapped, "layer", layer.weightScope().attribute("layer"), {}};
  inner.call.args.push_back(Argument::of({K::reshape(x, K::Dims(merged)), {}}));
  K::Tensors outputs;
  for (const Value &value : layer.buildInner(inner)) {
    K::Shape result = K::int_shape(value.tensor);
    std::vector<K::Dim> dims = {-1, shape[1]};
    if (shape[1] < 0)
      dims = {K::Dim(K::extent(x, 0)), K::Dim(K::extent(x, 1))};
    dims.insert(dims.end(), result.begin() + 1, result.end());
    outputs.push_back(K::reshape(value.tensor, dims));
  }
  return outputs;
}

std::span<const LayerEntry> model::recurrentLayers() {
  static const LayerEntry entries[] = {
      {"SimpleRNN", recurrent, Masking::Sets},
      {"LSTM", recurrent, Masking::Sets},
      {"GRU", recurrent, Masking::Sets},
      {"RNN", recurrent, Masking::Sets},
      {"Bidirectional", bidirectional, Masking::Sets},
      {"TimeDistributed", timeDistributed, Masking::Passes},
  };
  return entries;
}
