//===- Graph.cpp - from the configuration of a model to a graph -----------===//
#include "Graph.h"

#include "Functional.h"
#include "Objects.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

namespace {
/// A shared model that calls a shared model … grows exponentially.
constexpr size_t maxCalls = 20'000;
} // namespace

static void addUnique(std::vector<std::string> &names,
                      const std::string &name) {
  std::string candidate = name;
  for (int i = 1;
       std::find(names.begin(), names.end(), candidate) != names.end(); ++i)
    candidate = name + "_" + std::to_string(i);
  names.push_back(candidate);
}

//===----------------------------------------------------------------------===//
// One layer
//===----------------------------------------------------------------------===//

std::vector<Value> GraphReader::buildObject(const Json &object,
                                            const std::string &path,
                                            const Call &call,
                                            const WeightScope &scope) {
  if (++callCount > maxCalls)
    throw TooMuchWork{"the model has more than " + std::to_string(maxCalls) +
                      " layer calls when shared models are expanded: split "
                      "it"};
  K::NameScope name(std::string_view(path).substr(path.rfind('/') + 1));
  if (!isModel(object))
    return buildLayer(object, path, call, scope);
  if (isClass(object, "Sequential")) {
    if (call.args.empty() || !call.args.front().isTensor()) {
      problems.add("model '" + path +
                   "' (Sequential) is not called with one tensor");
      return {};
    }
    return buildSequential(object["config"], path, call.args.front().value,
                           scope);
  }
  return buildFunctional(object["config"], path, &call, scope,
                         /*result=*/nullptr);
}

std::vector<Value> GraphReader::buildLayer(const Json &object,
                                           const std::string &path,
                                           const Call &call,
                                           const WeightScope &scope) {
  bool operatorNode = isOperator(object);
  LayerContext layer(object, path, call, scope, shared);
  const LayerEntry *entry =
      isCustom(object) ? nullptr : findLayer(layer.className(), operatorNode);
  if (!entry) {
    layer.problem(unsupported(object));
    return {};
  }
  layer.buildInner = [&](const InnerCall &inner) {
    return buildObject(*inner.layer, join(path, inner.name), inner.call,
                       inner.weights);
  };
  size_t problemsBefore = problems.size();
  K::Tensors outputs;
  try {
    if (!operatorNode)
      layer.castArguments();
    outputs = entry->build(layer);
  } catch (const Error &error) {
    // What follows from a problem that is known is no news.
    if (!layer.failed() && problems.size() == problemsBefore)
      layer.problem(std::string("cannot be built: ") + error.what());
    return {};
  }
  if (!layer.failed() && layer.weightsLeft() > 0)
    layer.problem("has " + std::to_string(layer.weightsLeft()) +
                  " more weights in the file than it uses, the next is '" +
                  layer.weightScope().next() +
                  "': configuration and weights are of different models");
  if (layer.failed() || problems.size() != problemsBefore)
    return {};
  for (const K::Tensor &output : outputs)
    if (isTooLarge(K::int_shape(output))) {
      layer.problem("makes a tensor of more than 2^34 elements: its "
                    "configuration is damaged");
      return {};
    }
  std::vector<Value> values;
  K::Tensor mask;
  if (entry->masking == Masking::Sets || entry->masking == Masking::Takes)
    mask = layer.maskOut();
  else if (entry->masking == Masking::Passes)
    mask = layer.mask();
  for (K::Tensor &output : outputs)
    values.push_back({output, values.empty() ? mask : K::Tensor()});
  return values;
}

void GraphReader::checkObject(const Json &object, const std::string &path) {
  if (isModel(object)) {
    for (const Json &layer : object["config"]["layers"])
      if (isObjectWithConfig(layer))
        checkObject(layer, join(path, nameOf(layer)));
    return;
  }
  if (isClass(object, "InputLayer"))
    return;
  if (isCustom(object) ||
      !findLayer(textOf(object, "class_name"), isOperator(object)))
    problems.add("layer '" + path + "' (" + textOf(object, "class_name") +
                 ") " + unsupported(object));
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// What the configuration of an InputLayer says, with the extents that the
/// caller adds; nothing when it is wrong.
std::optional<K::TensorInfo>
GraphReader::inputOf(const Json &config, const std::string &fallbackName) {
  std::string name = textOf(config, "name");
  name = name.empty() ? fallbackName : name;
  std::string where = "layer '" + name + "' (InputLayer) ";
  const char *key =
      config.contains("batch_shape") ? "batch_shape" : "batch_input_shape";
  const Json &stated = config.contains(key) ? config[key] : Json();
  std::optional<K::Shape> shape = shapeOf(stated);
  if (!shape || shape->empty()) {
    problems.add(where + "has '" + key + "': " + describeJson(stated) +
                 ", but a list of extents from 0 to 2^31, or null where not "
                 "known, is expected");
    return std::nullopt;
  }
  if (auto given = inputShapes.find(name); given != inputShapes.end()) {
    K::Shape wanted = given->second;
    bool fits = wanted.size() == shape->size();
    for (size_t axis = 0; fits && axis < wanted.size(); ++axis)
      fits = (*shape)[axis] < 0 || (*shape)[axis] == wanted[axis];
    if (!fits) // the caller's mistake, not the file's
      throw Error(where + "takes " + shapeName(*shape) + ", but the shape " +
                  shapeName(wanted) + " is given");
    std::copy(wanted.begin() + 1, wanted.end(), shape->begin() + 1);
  }
  if (isTooLarge(*shape)) {
    problems.add(where + "has '" + key + "': " + describeJson(stated) +
                 ", which is more than 2^34 elements");
    return std::nullopt;
  }
  for (const char *kind : {"sparse", "ragged"})
    if (config.contains(kind) && config[kind] == true) {
      problems.add(where + "is " + kind +
                   ", but only dense inputs are supported: make it dense");
      return std::nullopt;
    }
  try {
    std::string dtype = textOf(config, "dtype");
    return K::TensorInfo{
        name, dtype.empty() ? K::DType::Float32 : parseDType(dtype), *shape};
  } catch (const Error &error) {
    problems.add(where + error.what());
    return std::nullopt;
  }
}

Value GraphReader::placeholderFor(const Json &config, const std::string &name,
                                  Result &result) {
  Value value;
  if (std::optional<K::TensorInfo> input = inputOf(config, name))
    value.tensor = K::placeholder(input->shape, input->dtype, input->name);
  result.inputs.push_back(value);
  result.inputNames.push_back(name);
  return value;
}

void GraphReader::checkInputShapes(const std::vector<std::string> &names) {
  for (const auto &[name, shape] : inputShapes) {
    if (std::find(names.begin(), names.end(), name) != names.end())
      continue;
    std::string known;
    for (const std::string &input : names)
      known += (known.empty() ? "'" : ", '") + input + "'";
    problems.add("the model has no input '" + name + "', for which the shape " +
                 shapeName(shape) + " is given; it has " + known);
  }
}

//===----------------------------------------------------------------------===//
// Sequential
//===----------------------------------------------------------------------===//

/// What `model` is to be fed with: the configuration of its InputLayer, or a
/// made-up one from a shape that is stated elsewhere.
static std::optional<Json> sequentialInput(const Json &config) {
  const Json &layers = config["layers"];
  if (!layers.empty() && isObjectWithConfig(layers[0])) {
    const Json &first = layers[0];
    if (isClass(first, "InputLayer"))
      return first["config"];
    if (first["config"].contains("batch_input_shape")) {
      bool tokens = isClass(first, "Embedding");
      return Json{{"batch_shape", first["config"]["batch_input_shape"]},
                  {"dtype", tokens ? "int32" : "float32"},
                  {"name", nameOf(first) + "_input"}};
    }
    if (isModel(first) && isClass(first, "Sequential"))
      return sequentialInput(first["config"]);
  }
  if (config.contains("build_input_shape") &&
      config["build_input_shape"].is_array())
    return Json{{"batch_shape", config["build_input_shape"]},
                {"dtype", "float32"},
                {"name", "input"}};
  return std::nullopt;
}

void GraphReader::readSequential(const Json &config, Result &result) {
  std::optional<Json> input = sequentialInput(config);
  if (!input) {
    problems.add("the model '" + result.name +
                 "' (Sequential) has no input shape: begin it with "
                 "keras.Input(shape) and save it again");
    for (const Json &layer : config["layers"])
      if (isObjectWithConfig(layer))
        checkObject(layer, nameOf(layer));
    return;
  }
  std::string name = textOf(*input, "name");
  Value value = placeholderFor(*input, name.empty() ? "input" : name, result);
  result.outputs = buildSequential(config, "", value, weights);
  const Json &layers = config["layers"];
  std::string last =
      isObjectWithConfig(layers.back()) ? nameOf(layers.back()) : "";
  for (size_t i = 0; i < result.outputs.size(); ++i)
    addUnique(result.outputNames, last.empty() ? "output" : last);
}

std::vector<Value> GraphReader::buildSequential(const Json &config,
                                                const std::string &path,
                                                Value input,
                                                const WeightScope &scope) {
  const Json &layers = config["layers"];
  GroupNames groups;
  std::vector<Value> values = {std::move(input)};
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json &layer = layers[i];
    if (!isObjectWithConfig(layer)) {
      problems.add("model '" + path + "': layers[" + std::to_string(i) +
                   "] has no 'class_name' and 'config'");
      return {};
    }
    if (isClass(layer, "InputLayer"))
      continue;
    std::string name = nameOf(layer);
    std::string layerPath = join(path, name);
    WeightScope layerScope =
        scope.layer(groups.next(textOf(layer, "class_name")), name);
    if (values.size() != 1 || !values.front().tensor) {
      // The layer before failed; Keras wrote down what it would have made.
      std::optional<K::Shape> shape;
      if (layer.contains("build_config") && layer["build_config"].is_object() &&
          layer["build_config"].contains("input_shape"))
        shape = shapeOf(layer["build_config"]["input_shape"]);
      if (!shape || isTooLarge(*shape)) {
        checkObject(layer, layerPath);
        values.clear();
        continue;
      }
      values = {{K::placeholder(*shape), {}}};
    }
    Call call;
    call.args.push_back(Argument::of(values.front()));
    values = buildObject(layer, layerPath, call, layerScope);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Functional
//===----------------------------------------------------------------------===//

static void collectTensors(const Argument &argument,
                           std::vector<Value> &values) {
  if (argument.isTensor())
    values.push_back(argument.value);
  for (const Argument &item : argument.items)
    collectTensors(item, values);
}

/// The tensors that a nested model is called with, in the order of its inputs.
static std::vector<Value> flattenCall(const Call &call,
                                      const std::vector<Leaf> &inputs) {
  std::vector<Value> values;
  if (call.args.empty())
    return values;
  const Argument &first = call.args.front();
  // A dictionary for inputs that were given as a list: by name.
  bool byName =
      !first.keys.empty() && !inputs.empty() && inputs.front().key.empty();
  if (!byName) {
    collectTensors(first, values);
    return values;
  }
  for (const Leaf &input : inputs)
    if (std::optional<Reference> reference = parseReference(*input.reference))
      for (size_t i = 0; i < first.keys.size(); ++i)
        if (first.keys[i] == reference->layer && first.items[i].isTensor())
          values.push_back(first.items[i].value);
  return values;
}

/// A nested model casts what it is given to the type that its input states.
static Value castTo(const Json &inputLayer, Value value) {
  std::string dtype = textOf(inputLayer["config"], "dtype");
  if (!dtype.empty())
    value.tensor = K::cast(value.tensor, parseDType(dtype));
  return value;
}

std::vector<Value> GraphReader::buildFunctional(const Json &config,
                                                const std::string &path,
                                                const Call *call,
                                                const WeightScope &scope,
                                                Result *result) {
  FunctionalGraph graph(*this, config, path, scope);
  std::vector<Leaf> inputs, outputs;
  if (config.contains("input_layers"))
    inputs = flatten(config["input_layers"]);
  if (config.contains("output_layers"))
    outputs = flatten(config["output_layers"]);
  if (inputs.empty() || outputs.empty())
    graph.problem(std::string("has no '") +
                  (inputs.empty() ? "input_layers" : "output_layers") +
                  "': the file is damaged");
  std::vector<Value> given;
  if (call)
    given = flattenCall(*call, inputs);
  if (call && given.size() != inputs.size()) {
    graph.problem("is called with " + std::to_string(given.size()) +
                  " inputs, but it has " + std::to_string(inputs.size()));
    return {};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json *layer = graph.input(*inputs[i].reference);
    if (!layer)
      graph.problem("has input " + describeJson(*inputs[i].reference) +
                    ", which is none of its InputLayers");
    else if (call)
      graph.setInput(*inputs[i].reference, castTo(*layer, given[i]));
    else
      graph.setInput(
          *inputs[i].reference,
          placeholderFor((*layer)["config"], nameOf(*layer), *result));
  }
  graph.run();
  if (result)
    for (const Leaf &leaf : outputs)
      if (std::optional<Reference> reference = parseReference(*leaf.reference))
        addUnique(result->outputNames,
                  leaf.key.empty() ? reference->layer : leaf.key);
  return graph.outputs(outputs);
}

//===----------------------------------------------------------------------===//
// The whole model
//===----------------------------------------------------------------------===//

GraphReader::Result GraphReader::read(const Json &object) {
  Result result;
  if (!isObjectWithConfig(object)) {
    problems.add("the configuration has no 'class_name' and 'config': it "
                 "describes no model");
    return result;
  }
  result.name = textOf(object["config"], "name");
  std::string className = textOf(object, "class_name");
  if (isCustom(object) || !object["config"].contains("layers")) {
    problems.add("the model '" + result.name + "' is of the class '" +
                 className +
                 "', but only Sequential and Functional models say in the file "
                 "what they compute: build it with keras.Model(inputs, "
                 "outputs) and save that");
    return result;
  }
  if (!isModel(object) || object["config"]["layers"].empty()) {
    problems.add("the model '" + result.name + "' (" + className +
                 ") has 'layers': " + describeJson(object["config"]["layers"]) +
                 ", but a list of layers is expected");
    return result;
  }
  if (className == "Sequential")
    readSequential(object["config"], result);
  else
    result.outputs = buildFunctional(object["config"], "", /*call=*/nullptr,
                                     weights, &result);
  checkInputShapes(result.inputNames);
  return result;
}

std::vector<K::TensorInfo> GraphReader::readInputs(const Json &object) {
  std::vector<K::TensorInfo> infos;
  if (!isObjectWithConfig(object) || !isModel(object))
    return infos;
  const Json &config = object["config"];
  auto append = [&](const Json &input, const std::string &name) {
    if (std::optional<K::TensorInfo> info = inputOf(input, name))
      infos.push_back(std::move(*info));
  };
  if (isClass(object, "Sequential")) {
    if (std::optional<Json> input = sequentialInput(config))
      append(*input, "input");
    return infos;
  }
  if (!config.contains("input_layers"))
    return infos;
  for (const Leaf &leaf : flatten(config["input_layers"]))
    if (std::optional<Reference> reference = parseReference(*leaf.reference))
      for (const Json &layer : config["layers"])
        if (isObjectWithConfig(layer) && nameOf(layer) == reference->layer)
          append(layer["config"], reference->layer);
  return infos;
}
