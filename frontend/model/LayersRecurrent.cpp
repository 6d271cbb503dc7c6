//===- LayersRecurrent.cpp - recurrent layers and wrappers over time ------===//
#include "RecurrentCells.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

namespace {

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
// Layers
//===----------------------------------------------------------------------===//

/// The cell of a layer, which is configured by `config` itself or, for RNN, by
/// an object of its own.
static Cell cellOf(LayerContext &layer, const Recurrent &recurrent,
                   const K::Shape &input) {
  if (recurrent.className != "RNN")
    return makeCell(layer, recurrent.config, recurrent.className, input);
  const Json *cell = recurrent.config.layer("cell");
  if (!cell)
    layer.fail("has no cell");
  Config config((*cell)["config"],
                [&](const std::string &m) { layer.problem(m); });
  return makeCell(layer, config, (*cell)["class_name"].get<std::string>(),
                  input);
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
  size_t axes = spatialAxesOfSteps(recurrent.className);
  K::Shape shape = K::int_shape(x);
  if (shape.size() != axes + 3)
    layer.fail("is called with an input of shape " + shapeName(shape) +
               ", but " +
               (axes == 0 ? std::string("(samples, steps, features)")
                          : "(samples, steps) and images of " +
                                std::to_string(axes) + " axes and channels") +
               " is expected");
  K::Shape input(shape.begin() + 2, shape.end());
  if (axes == 0)
    layer.channels(x, 2);
  Cell cell =
      layer.inside("cell", [&] { return cellOf(layer, recurrent, input); });
  if (layer.failed())
    throw Error("the cell is wrong");

  K::Tensors states = recurrent.initialStates;
  if (states.empty())
    for (const K::Shape &state : cell.states) {
      std::vector<K::Dim> dims = {K::extent(x, 0)};
      dims.insert(dims.end(), state.begin(), state.end());
      states.push_back(K::full(dims, 0, layer.dtype()));
    }
  if (states.size() != cell.states.size())
    layer.fail("is called with " + std::to_string(states.size()) +
               " initial states, but it has " +
               std::to_string(cell.states.size()));
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
      {"ConvLSTM1D", recurrent, Masking::Sets},
      {"ConvLSTM2D", recurrent, Masking::Sets},
      {"ConvLSTM3D", recurrent, Masking::Sets},
      {"Bidirectional", bidirectional, Masking::Sets},
      {"TimeDistributed", timeDistributed, Masking::Passes},
  };
  return entries;
}
