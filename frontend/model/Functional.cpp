//===- Functional.cpp - the graph of a functional model -------------------===//
#include "Functional.h"

#include <algorithm>
#include <set>

using namespace keratin;
using namespace keratin::model;

namespace {
/// The input of a call is not known since its layer failed.
struct Unavailable {};
} // namespace

FunctionalGraph::FunctionalGraph(GraphReader &reader, const Json &config,
                                 const std::string &path,
                                 const WeightScope &scope)
    : reader(reader), path(path), scope(scope) {
  readLayers(config["layers"]);
  readCalls();
  link();
}

void FunctionalGraph::problem(const std::string &message) {
  reader.problem((path.empty() ? "the model" : "model '" + path + "'") + " " +
                 message);
}

const Json *FunctionalGraph::input(const Json &reference) const {
  std::optional<Reference> parsed = parseReference(reference);
  auto found = parsed ? byName.find(parsed->layer) : byName.end();
  if (found == byName.end() || !layers[found->second].isInput)
    return nullptr;
  return layers[found->second].object;
}

void FunctionalGraph::setInput(const Json &reference, Value value) {
  const LayerNode &layer = layers[byName.at(parseReference(reference)->layer)];
  calls[layer.firstCall].outputs = {std::move(value)};
}

void FunctionalGraph::readLayers(const Json &list) {
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

void FunctionalGraph::readCalls() {
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
std::optional<Reference> model::parseReference(const Json &triple) {
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

void FunctionalGraph::addReference(const Json &triple, const Json *tensor,
                                   std::vector<Reference> &references) {
  std::optional<Reference> reference = parseReference(triple);
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

void FunctionalGraph::readReferences(const Json &value,
                                     std::vector<Reference> &references) {
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

void FunctionalGraph::readLegacyReferences(const Json &node,
                                           std::vector<Reference> &references) {
  for (const Json &entry : node) {
    addReference(entry, nullptr, references);
    if (entry.is_array() && entry.size() > 3 && entry[3].is_object())
      for (const Json &value : entry[3])
        if (std::optional<Reference> reference = parseReference(value);
            reference && byName.contains(reference->layer))
          references.push_back(std::move(*reference));
  }
}

/// Keras counts the calls of a model from 1 (its own construction is call 0):
/// Keras 2 everywhere, Keras 3 only in `output_layers`.
size_t FunctionalGraph::callOf(const Reference &reference,
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

void FunctionalGraph::link() {
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

void FunctionalGraph::run() {
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

void FunctionalGraph::reportCycle() {
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

/// What the call that `reference` names has made, or null.
std::vector<Value> *FunctionalGraph::outputsOf(const Reference &reference) {
  auto found = byName.find(reference.layer);
  if (found == byName.end())
    return nullptr;
  const LayerNode &source = layers[found->second];
  size_t call = callOf(reference, /*isOutput=*/false);
  return call < source.calls ? &calls[source.firstCall + call].outputs
                             : nullptr;
}

Value FunctionalGraph::valueOf(const Reference &reference) {
  const std::vector<Value> *outputs = outputsOf(reference);
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

Argument FunctionalGraph::argumentOf(const Json &value) {
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
Argument FunctionalGraph::legacyArgument(const Json &value) {
  std::optional<Reference> reference = parseReference(value);
  if (reference && byName.contains(reference->layer))
    return Argument::of(valueOf(*reference));
  return argumentOf(value);
}

Call FunctionalGraph::arguments(const CallNode &node) {
  Call call;
  const Json &stated = *node.arguments;
  if (stated.is_array()) {
    std::vector<Argument> tensors;
    for (const Json &entry : stated) {
      std::optional<Reference> reference = parseReference(entry);
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

void FunctionalGraph::runCall(size_t index) {
  CallNode &node = calls[index];
  const LayerNode &layer = layers[node.layer];
  try {
    WeightScope layerScope = layer.group.empty()
                                 ? WeightScope()
                                 : scope.layer(layer.group, layer.name);
    node.outputs = reader.buildObject(*layer.object, layer.path,
                                      arguments(node), layerScope);
    takeMasks(node);
  } catch (const Unavailable &) {
    reader.checkObject(*layer.object, layer.path);
  }
}

/// MultiHeadAttention of Keras 3 takes the masks off the tensors it is called
/// with, so what a later layer sees depends on the order of the calls.
void FunctionalGraph::takeMasks(const CallNode &node) {
  const Json &object = *layers[node.layer].object;
  const LayerEntry *entry =
      findLayer(textOf(object, "class_name"), isOperator(object));
  if (!entry || entry->masking != Masking::Takes || reader.isKeras2())
    return;
  for (const Reference &reference : node.reads)
    if (std::vector<Value> *outputs = outputsOf(reference);
        outputs && reference.output < outputs->size())
      (*outputs)[reference.output].mask = {};
}

std::vector<Value> FunctionalGraph::outputs(const std::vector<Leaf> &leaves) {
  std::vector<Value> result;
  for (const Leaf &leaf : leaves) {
    std::optional<Reference> reference = parseReference(*leaf.reference);
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
