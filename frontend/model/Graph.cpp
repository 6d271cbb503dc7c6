//===- Graph.cpp - from the configuration of a model to a graph -----------===//
#include "Graph.h"

#include <algorithm>
#include <deque>
#include <set>

using namespace keratin;
using namespace keratin::model;

namespace {

/// A shared model that calls a shared model … grows exponentially.
constexpr size_t maxCalls = 20'000;
constexpr size_t maxRank = 16;
/// Elements of one tensor with a batch of one.
constexpr int64_t maxElements = int64_t(1) << 34;

/// The input of a call is not known since its layer failed.
struct Unavailable {};

bool isObjectWithConfig(const Json &object) {
  return object.is_object() && object.contains("class_name") &&
         object["class_name"].is_string() && object.contains("config") &&
         object["config"].is_object();
}

std::string textOf(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

std::string nameOf(const Json &object) {
  std::string name = textOf(object, "name");
  return name.empty() ? textOf(object["config"], "name") : name;
}

std::string join(const std::string &path, const std::string &name) {
  return path.empty() ? name : path + "/" + name;
}

bool isClass(const Json &object, std::string_view name) {
  return textOf(object, "class_name") == name;
}

bool isTensor(const Json &value) {
  return value.is_object() && isClass(value, "__keras_tensor__");
}

bool holdsTensor(const Json &value) {
  if (isTensor(value))
    return true;
  return value.is_structured() &&
         std::any_of(value.begin(), value.end(), holdsTensor);
}

/// Classes outside of Keras: their code is not in the file.
bool isCustom(const Json &object) {
  std::string module = textOf(object, "module");
  bool builtIn = module.starts_with("keras") || module.starts_with("tf_keras");
  if (module.empty())
    return !textOf(object, "registered_name").empty() ||
           textOf(object, "class_name").find('>') != std::string::npos;
  return !builtIn;
}

bool isOperator(const Json &object) {
  std::string module = textOf(object, "module");
  if (!module.empty())
    return module.starts_with("keras.src.ops") ||
           module.starts_with("keras.ops");
  // Legacy files do not say; an operator has no layer's properties.
  const Json &config = object["config"];
  return !config.contains("trainable") && !config.contains("dtype") &&
         findLayer(textOf(object, "class_name"), /*isOperator=*/true);
}

std::string unsupported(const Json &object) {
  std::string name = textOf(object, "class_name");
  if (name == "Lambda")
    return "holds Python bytecode, which is never run: replace it by layers or "
           "keras.ops calls and save the model again";
  if (isCustom(object)) {
    std::string registered = textOf(object, "registered_name");
    return "is of the custom class '" +
           (registered.empty() ? name : registered) +
           "', whose code is not in the file: build it from Keras layers and "
           "keras.ops calls in a functional model and save that";
  }
  if (isOperator(object))
    return "is an operator that is not supported: express it by other "
           "keras.ops calls";
  return "is of a class that is not supported: replace it by other Keras "
         "layers, or leave it out of the saved model and do its work before";
}

/// The shape a file states, `null` being unknown. Nothing when it is none.
std::optional<K::Shape> shapeOf(const Json &value) {
  if (!value.is_array() || value.size() > maxRank)
    return std::nullopt;
  K::Shape shape;
  for (const Json &extent : value) {
    std::optional<int64_t> known = asInteger(extent);
    if (!extent.is_null() && (!known || *known < 0 || *known > maxExtent))
      return std::nullopt;
    shape.push_back(known.value_or(K::None));
  }
  return shape;
}

/// Whether a batch of one has more elements than any tensor should.
bool isTooLarge(const K::Shape &shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (extent > 0 && (__builtin_mul_overflow(elements, extent, &elements) ||
                       elements > maxElements))
      return true;
  return false;
}

/// References in the order in which Keras flattens them, with the key of those
/// in a dictionary.
struct Leaf {
  const Json *reference;
  std::string key;
};

void flatten(const Json &value, const std::string &key,
             std::vector<Leaf> &leaves) {
  bool isLeaf = value.is_array() && value.size() >= 3 && value[0].is_string();
  if (isLeaf || !value.is_structured()) {
    leaves.push_back({&value, key});
    return;
  }
  if (value.is_array())
    for (const Json &item : value)
      flatten(item, key, leaves);
  else
    for (const auto &[name, item] : value.items())
      flatten(item, name, leaves);
}

void addUnique(std::vector<std::string> &names, const std::string &name) {
  std::string candidate = name;
  for (int i = 1;
       std::find(names.begin(), names.end(), candidate) != names.end(); ++i)
    candidate = name + "_" + std::to_string(i);
  names.push_back(candidate);
}

/// Counts the layers of each class, as Keras does to name their weights.
class GroupNames {
public:
  std::string next(const std::string &className) {
    // The one layer whose Python class is not named as it is exported.
    std::string group = className == "GroupQueryAttention"
                            ? "grouped_query_attention"
                            : snakeCase(className);
    size_t before = used[group]++;
    return before ? group + "_" + std::to_string(before) : group;
  }

private:
  std::unordered_map<std::string, size_t> used;
};

} // namespace

bool model::isModel(const Json &object) {
  const Json &config = object["config"];
  auto layers = config.find("layers");
  return layers != config.end() && layers->is_array() && !isCustom(object);
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
  if (entry->masking == Masking::Sets)
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
    if (!fits) {
      problems.add(where + "takes " + shapeName(*shape) + ", but the shape " +
                   shapeName(wanted) + " is given");
      return std::nullopt;
    }
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

struct GraphReader::Functional {
  GraphReader &reader;
  const std::string &path;
  const WeightScope &scope;
  std::vector<LayerNode> layers;
  std::vector<CallNode> calls;
  std::unordered_map<std::string, size_t> byName;
  /// Keras 2 wrote `inbound_nodes`: lists instead of objects.
  bool isLegacy = false;

  void problem(const std::string &message) {
    reader.problems.add((path.empty() ? "the model" : "model '" + path + "'") +
                        " " + message);
  }
  void readLayers(const Json &list);
  void readCalls();
  void readReferences(const Json &value, std::vector<Reference> &references);
  void readLegacyReferences(const Json &node,
                            std::vector<Reference> &references);
  void addReference(const Json &triple, const Json *tensor,
                    std::vector<Reference> &references);
  std::optional<Reference> parse(const Json &triple);
  size_t callOf(const Reference &reference, bool isOutput) const;
  void link();
  void run();
  void reportCycle();
  void runCall(size_t index);
  Call arguments(const CallNode &node);
  Argument argumentOf(const Json &value);
  Argument legacyArgument(const Json &value);
  Value valueOf(const Reference &reference);
  std::vector<Value> outputs(const std::vector<Leaf> &leaves);
};

void GraphReader::Functional::readLayers(const Json &list) {
  GroupNames groups;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json &object = list[i];
    if (!isObjectWithConfig(object)) {
      problem("has layers[" + std::to_string(i) +
              "] without 'class_name' and 'config': the file is damaged");
      continue;
    }
    LayerNode layer;
    layer.object = &object;
    layer.name = nameOf(object);
    layer.path = join(path, layer.name);
    layer.isInput = isClass(object, "InputLayer");
    layer.isModel = isModel(object);
    if (!isOperator(object))
      layer.group = groups.next(textOf(object, "class_name"));
    if (!byName.emplace(layer.name, layers.size()).second)
      problem("has two layers named '" + layer.name +
              "': names must differ, rename one and save the model again");
    layers.push_back(std::move(layer));
  }
}

void GraphReader::Functional::readCalls() {
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerNode &layer = layers[i];
    layer.firstCall = calls.size();
    static const Json none = Json::array();
    auto found = layer.object->find("inbound_nodes");
    const Json &nodes =
        found != layer.object->end() && found->is_array() ? *found : none;
    if (layer.isInput) {
      CallNode node;
      node.layer = i;
      node.done = true;
      calls.push_back(std::move(node));
    } else {
      for (const Json &arguments : nodes) {
        CallNode node;
        node.layer = i;
        node.arguments = &arguments;
        isLegacy |= arguments.is_array();
        calls.push_back(std::move(node));
      }
    }
    layer.calls = calls.size() - layer.firstCall;
  }
  for (CallNode &node : calls) {
    if (!node.arguments)
      continue;
    if (node.arguments->is_array())
      readLegacyReferences(*node.arguments, node.reads);
    else
      readReferences(*node.arguments, node.reads);
  }
}

/// A triple [layer name, call, output].
std::optional<GraphReader::Reference>
GraphReader::Functional::parse(const Json &triple) {
  if (!triple.is_array() || triple.size() < 3 || !triple[0].is_string())
    return std::nullopt;
  std::optional<int64_t> call = asInteger(triple[1]);
  std::optional<int64_t> output = asInteger(triple[2]);
  if (!call || !output || *call < 0 || *output < 0)
    return std::nullopt;
  Reference reference;
  reference.layer = triple[0].get<std::string>();
  reference.call = size_t(*call);
  reference.output = size_t(*output);
  return reference;
}

void GraphReader::Functional::addReference(const Json &triple,
                                           const Json *tensor,
                                           std::vector<Reference> &references) {
  std::optional<Reference> reference = parse(triple);
  if (!reference) {
    problem("reads " + describeJson(triple) +
            " where [layer, call, output] is expected: the file is damaged");
    return;
  }
  if (tensor && tensor->contains("shape"))
    reference->shape = &(*tensor)["shape"];
  if (tensor && tensor->contains("dtype"))
    reference->dtype = &(*tensor)["dtype"];
  references.push_back(std::move(*reference));
}

void GraphReader::Functional::readReferences(
    const Json &value, std::vector<Reference> &references) {
  if (isTensor(value)) {
    static const Json none;
    auto config = value.find("config");
    bool known = config != value.end() && config->is_object() &&
                 config->contains("keras_history");
    addReference(known ? (*config)["keras_history"] : none,
                 known ? &*config : nullptr, references);
    return;
  }
  if (value.is_structured())
    for (const Json &item : value)
      readReferences(item, references);
}

void GraphReader::Functional::readLegacyReferences(
    const Json &node, std::vector<Reference> &references) {
  for (const Json &entry : node) {
    addReference(entry, nullptr, references);
    if (entry.is_array() && entry.size() > 3 && entry[3].is_object())
      for (const Json &value : entry[3])
        if (std::optional<Reference> reference = parse(value);
            reference && byName.contains(reference->layer))
          references.push_back(std::move(*reference));
  }
}

/// Keras counts the calls of a model from 1 (its own construction is call 0):
/// Keras 2 everywhere, Keras 3 only in `output_layers`.
size_t GraphReader::Functional::callOf(const Reference &reference,
                                       bool isOutput) const {
  const LayerNode &layer = layers[byName.at(reference.layer)];
  bool sequential = isClass(*layer.object, "Sequential");
  bool shifted = isLegacy || (isOutput && !sequential);
  bool hasOwnCall = layer.isModel && shifted;
  if (hasOwnCall && isLegacy && sequential) {
    // Only one that knows its input has been called by its construction.
    const Json &inner = (*layer.object)["config"]["layers"];
    hasOwnCall = !inner.empty() && isObjectWithConfig(inner[0]) &&
                 isClass(inner[0], "InputLayer");
  }
  size_t call = reference.call;
  return hasOwnCall && call > 0 ? call - 1 : call;
}

void GraphReader::Functional::link() {
  for (size_t i = 0; i < calls.size(); ++i) {
    for (const Reference &reference : calls[i].reads) {
      const std::string &reader = layers[calls[i].layer].name;
      auto found = byName.find(reference.layer);
      if (found == byName.end()) {
        problem("has layer '" + reader + "' that reads layer '" +
                reference.layer + "', which is not in the file");
        continue;
      }
      const LayerNode &source = layers[found->second];
      size_t call = callOf(reference, /*isOutput=*/false);
      if (call >= source.calls) {
        problem("has layer '" + reader + "' that reads call " +
                std::to_string(reference.call) + " of layer '" +
                reference.layer + "', which is called " +
                std::to_string(source.calls) + " times");
        continue;
      }
      CallNode &node = calls[source.firstCall + call];
      if (node.done)
        continue;
      node.readers.push_back(i);
      ++calls[i].waitsFor;
    }
  }
}

void GraphReader::Functional::run() {
  // In the order of the file wherever that is possible.
  std::set<size_t> ready;
  size_t left = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].done)
      continue;
    ++left;
    if (calls[i].waitsFor == 0)
      ready.insert(i);
  }
  for (; !ready.empty(); --left) {
    size_t index = *ready.begin();
    ready.erase(ready.begin());
    runCall(index);
    calls[index].done = true;
    for (size_t reader : calls[index].readers)
      if (--calls[reader].waitsFor == 0)
        ready.insert(reader);
  }
  if (left)
    reportCycle();
}

void GraphReader::Functional::reportCycle() {
  // Going backwards from a call that waits ends in the cycle.
  size_t at = 0;
  while (calls[at].done)
    ++at;
  std::vector<size_t> trail;
  std::vector<char> seen(calls.size());
  auto sourceOf = [&](size_t index) {
    for (const Reference &reference : calls[index].reads) {
      auto found = byName.find(reference.layer);
      if (found == byName.end())
        continue;
      const LayerNode &source = layers[found->second];
      size_t call = callOf(reference, /*isOutput=*/false);
      if (call < source.calls && !calls[source.firstCall + call].done)
        return source.firstCall + call;
    }
    return index;
  };
  for (; !seen[at]; at = sourceOf(at)) {
    seen[at] = true;
    trail.push_back(at);
  }
  auto begin = std::find(trail.begin(), trail.end(), at);
  std::string names;
  size_t count = 0;
  for (auto it = begin; it != trail.end() && count < 6; ++it, ++count)
    names +=
        (names.empty() ? "'" : " <- '") + layers[calls[*it].layer].name + "'";
  problem("has layers that read each other in a cycle: " + names + " <- '" +
          layers[calls[*begin].layer].name +
          "'; a graph must not have cycles, save the model again");
  for (const CallNode &node : calls)
    if (!node.done)
      reader.checkObject(*layers[node.layer].object, layers[node.layer].path);
}

Value GraphReader::Functional::valueOf(const Reference &reference) {
  auto found = byName.find(reference.layer);
  const std::vector<Value> *outputs = nullptr;
  if (found != byName.end()) {
    const LayerNode &source = layers[found->second];
    size_t call = callOf(reference, /*isOutput=*/false);
    if (call < source.calls)
      outputs = &calls[source.firstCall + call].outputs;
  }
  if (outputs && reference.output < outputs->size() &&
      (*outputs)[reference.output].tensor)
    return (*outputs)[reference.output];
  if (outputs && !outputs->empty() && reference.output >= outputs->size())
    problem("reads output " + std::to_string(reference.output) + " of layer '" +
            reference.layer + "', which has " +
            std::to_string(outputs->size()));
  // The layer failed; the file says what it would have made, which is enough to
  // look for problems further on.
  std::optional<K::Shape> shape =
      reference.shape ? shapeOf(*reference.shape) : std::nullopt;
  if (!shape || isTooLarge(*shape))
    throw Unavailable();
  try {
    K::DType dtype = reference.dtype && reference.dtype->is_string()
                         ? parseDType(reference.dtype->get<std::string>())
                         : K::DType::Float32;
    return {K::placeholder(*shape, dtype), {}};
  } catch (const Error &) {
    throw Unavailable();
  }
}

Argument GraphReader::Functional::argumentOf(const Json &value) {
  if (value.is_null())
    return {};
  if (isTensor(value)) {
    std::vector<Reference> references;
    readReferences(value, references);
    if (references.empty())
      throw Unavailable();
    return Argument::of(valueOf(references.front()));
  }
  if (!holdsTensor(value)) {
    Argument argument;
    argument.kind = Argument::Kind::Constant;
    argument.constant = &value;
    return argument;
  }
  Argument list = Argument::list({});
  for (const auto &[key, item] : value.items()) {
    list.items.push_back(argumentOf(item));
    if (value.is_object())
      list.keys.push_back(key);
  }
  return list;
}

/// A keyword argument of Keras 2: a triple stands for a tensor.
Argument GraphReader::Functional::legacyArgument(const Json &value) {
  std::optional<Reference> reference = parse(value);
  if (reference && byName.contains(reference->layer))
    return Argument::of(valueOf(*reference));
  return argumentOf(value);
}

Call GraphReader::Functional::arguments(const CallNode &node) {
  Call call;
  const Json &stated = *node.arguments;
  if (stated.is_array()) {
    std::vector<Argument> tensors;
    for (const Json &entry : stated) {
      std::optional<Reference> reference = parse(entry);
      if (!reference)
        throw Unavailable();
      tensors.push_back(Argument::of(valueOf(*reference)));
      if (entry.size() > 3 && entry[3].is_object())
        for (const auto &[key, value] : entry[3].items())
          call.kwargs[key] = legacyArgument(value);
    }
    if (tensors.size() == 1)
      call.args.push_back(std::move(tensors.front()));
    else
      call.args.push_back(Argument::list(std::move(tensors)));
    return call;
  }
  if (auto args = stated.find("args"); args != stated.end())
    for (const Json &value : *args)
      call.args.push_back(argumentOf(value));
  if (auto kwargs = stated.find("kwargs");
      kwargs != stated.end() && kwargs->is_object())
    for (const auto &[key, value] : kwargs->items())
      call.kwargs[key] = argumentOf(value);
  return call;
}

void GraphReader::Functional::runCall(size_t index) {
  CallNode &node = calls[index];
  const LayerNode &layer = layers[node.layer];
  try {
    WeightScope layerScope = layer.group.empty()
                                 ? WeightScope()
                                 : scope.layer(layer.group, layer.name);
    node.outputs = reader.buildObject(*layer.object, layer.path,
                                      arguments(node), layerScope);
  } catch (const Unavailable &) {
    reader.checkObject(*layer.object, layer.path);
  }
}

std::vector<Value>
GraphReader::Functional::outputs(const std::vector<Leaf> &leaves) {
  std::vector<Value> result;
  for (const Leaf &leaf : leaves) {
    std::optional<Reference> reference = parse(*leaf.reference);
    if (!reference || !byName.contains(reference->layer)) {
      problem("has output " + describeJson(*leaf.reference) +
              ", which is no [layer, call, output] of its layers");
      continue;
    }
    const LayerNode &layer = layers[byName.at(reference->layer)];
    size_t call = callOf(*reference, /*isOutput=*/true);
    if (call >= layer.calls) {
      problem("has call " + std::to_string(reference->call) + " of layer '" +
              reference->layer + "' as output, which is called " +
              std::to_string(layer.calls) + " times");
      continue;
    }
    const CallNode &node = calls[layer.firstCall + call];
    if (reference->output < node.outputs.size())
      result.push_back(node.outputs[reference->output]);
    else if (!node.outputs.empty())
      problem("has output " + std::to_string(reference->output) +
              " of layer '" + reference->layer + "', which has " +
              std::to_string(node.outputs.size()));
  }
  return result;
}

/// The tensors that a nested model is called with, in the order of its inputs.
static std::vector<Value> flattenCall(const Call &call,
                                      const std::vector<Leaf> &inputs) {
  std::vector<Value> values;
  if (call.args.empty())
    return values;
  const Argument &first = call.args.front();
  if (first.isTensor())
    return {first.value};
  // A dictionary for inputs that were given as a list: by name.
  bool byName =
      !first.keys.empty() && !inputs.empty() && inputs.front().key.empty();
  if (byName) {
    for (const Leaf &input : inputs) {
      std::string name = input.reference->is_array() &&
                                 !input.reference->empty() &&
                                 (*input.reference)[0].is_string()
                             ? (*input.reference)[0].get<std::string>()
                             : "";
      auto found = std::find(first.keys.begin(), first.keys.end(), name);
      if (found == first.keys.end())
        return {};
      values.push_back(first.items[size_t(found - first.keys.begin())].value);
    }
    return values;
  }
  std::deque<const Argument *> pending;
  pending.push_back(&first);
  while (!pending.empty()) {
    const Argument *argument = pending.front();
    pending.pop_front();
    if (argument->isTensor())
      values.push_back(argument->value);
    for (size_t i = argument->items.size(); i > 0; --i)
      pending.push_front(&argument->items[i - 1]);
  }
  return values;
}

std::vector<Value> GraphReader::buildFunctional(const Json &config,
                                                const std::string &path,
                                                const Call *call,
                                                const WeightScope &scope,
                                                Result *result) {
  Functional graph{*this, path, scope, {}, {}, {}, false};
  graph.readLayers(config["layers"]);
  graph.readCalls();
  std::vector<Leaf> inputs, outputs;
  if (config.contains("input_layers"))
    flatten(config["input_layers"], "", inputs);
  if (config.contains("output_layers"))
    flatten(config["output_layers"], "", outputs);
  if (inputs.empty() || outputs.empty())
    graph.problem(std::string("has no '") +
                  (inputs.empty() ? "input_layers" : "output_layers") +
                  "': the file is damaged");

  std::vector<Value> given;
  if (call) {
    given = flattenCall(*call, inputs);
    if (given.size() != inputs.size()) {
      graph.problem("is called with " + std::to_string(given.size()) +
                    " inputs, but it has " + std::to_string(inputs.size()));
      return {};
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::optional<Reference> reference = graph.parse(*inputs[i].reference);
    auto found =
        reference ? graph.byName.find(reference->layer) : graph.byName.end();
    if (found == graph.byName.end() || !graph.layers[found->second].isInput) {
      graph.problem("has input " + describeJson(*inputs[i].reference) +
                    ", which is none of its InputLayers");
      continue;
    }
    LayerNode &layer = graph.layers[found->second];
    Value value;
    if (call) {
      value = given[i];
      std::string dtype = textOf((*layer.object)["config"], "dtype");
      try {
        if (!dtype.empty())
          value.tensor = K::cast(value.tensor, parseDType(dtype));
      } catch (const Error &error) {
        graph.problem("has input '" + layer.name + "': " + error.what());
      }
    } else {
      value = placeholderFor((*layer.object)["config"], layer.name, *result);
    }
    graph.calls[layer.firstCall].outputs = {value};
  }
  graph.link();
  graph.run();
  std::vector<Value> values = graph.outputs(outputs);
  if (result)
    for (const Leaf &leaf : outputs)
      if (std::optional<Reference> reference = graph.parse(*leaf.reference))
        addUnique(result->outputNames,
                  leaf.key.empty() ? reference->layer : leaf.key);
  return values;
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
  if (isCustom(object) || !isModel(object) ||
      object["config"]["layers"].empty()) {
    problems.add("the model '" + result.name + "' is of the class '" +
                 className +
                 "', but only Sequential and Functional models say in the file "
                 "what they compute: build it with keras.Model(inputs, "
                 "outputs) and save that");
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
  std::vector<Leaf> leaves;
  if (config.contains("input_layers"))
    flatten(config["input_layers"], "", leaves);
  for (const Leaf &leaf : leaves)
    for (const Json &layer : config["layers"])
      if (isObjectWithConfig(layer) && leaf.reference->is_array() &&
          !leaf.reference->empty() && (*leaf.reference)[0] == nameOf(layer))
        append(layer["config"], nameOf(layer));
  return infos;
}
