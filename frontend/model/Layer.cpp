//===- Layer.cpp - one call of one layer ----------------------------------===//
#include "Layer.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

static bool matches(const K::Shape &shape, const K::Shape &expected) {
  return std::equal(
      shape.begin(), shape.end(), expected.begin(), expected.end(),
      [](int64_t have, int64_t want) { return want < 0 || have == want; });
}

Argument Argument::of(Value value) {
  Argument argument;
  argument.kind = Kind::Tensor;
  argument.value = std::move(value);
  return argument;
}

Argument Argument::list(std::vector<Argument> items) {
  Argument argument;
  argument.kind = Kind::List;
  argument.items = std::move(items);
  return argument;
}

LayerContext::LayerContext(const Json &object, std::string path,
                           const Call &call, WeightScope weights,
                           Shared &shared)
    : layerPath(std::move(path)), layerClass(object.value("class_name", "")),
      call(call), weights(std::move(weights)), shared(shared),
      settings(object.at("config"),
               [this](const std::string &message) { problem(message); }),
      computeType(K::DType::Float32) {
  if (settings.has("dtype"))
    readPolicy(settings.at("dtype"));
}

void LayerContext::problem(const std::string &message) const {
  ++failures;
  shared.problems.add("layer '" + layerPath + "' (" + layerClass + ") " +
                      message);
}

void LayerContext::fail(const std::string &message) const {
  problem(message);
  throw Error(message);
}

void LayerContext::readPolicy(const Json &policy) {
  std::string name;
  if (policy.is_string())
    name = policy.get<std::string>();
  else if (policy.is_object() && policy.contains("config") &&
           policy["config"].is_object()) {
    const Json &config = policy["config"];
    auto text = [&](const char *key) {
      auto found = config.find(key);
      return found != config.end() && found->is_string()
                 ? found->get<std::string>()
                 : std::string();
    };
    quantizationMode = text("mode");
    name = text(quantizationMode.empty() ? "name" : "source_name");
    if (text("name").starts_with("int8_from_")) {
      quantizationMode = "int8";
      name = text("name").substr(10);
    }
  }
  if (name.starts_with("mixed_"))
    name = name.substr(6);
  if (name.empty())
    return settings.wrong("dtype", "a dtype policy with a name");
  try {
    computeType = K::DType(parseDType(name));
  } catch (const Error &) {
    settings.wrong("dtype", "float32, float64, float16, bfloat16 or mixed_…");
  }
}

static void castFloats(Argument &argument, K::DType dtype) {
  if (argument.isTensor() && isFloat(K::dtype(argument.value.tensor)))
    argument.value.tensor = K::cast(argument.value.tensor, dtype);
  for (Argument &item : argument.items)
    castFloats(item, dtype);
}

void LayerContext::castArguments() {
  for (Argument &argument : call.args)
    castFloats(argument, computeType);
  for (auto &[name, argument] : call.kwargs)
    castFloats(argument, computeType);
}

const Argument *LayerContext::argument(size_t position,
                                       const std::string &name) const {
  if (position < call.args.size())
    return &call.args[position];
  auto found = call.kwargs.find(name);
  return found == call.kwargs.end() ? nullptr : &found->second;
}

K::Tensor LayerContext::tensor(size_t position, const std::string &name) {
  const Argument *given = argument(position, name);
  if (!given || given->kind == Argument::Kind::None)
    return {};
  // A list of one tensor stands for it.
  if (given->kind == Argument::Kind::List && given->items.size() == 1)
    given = &given->items.front();
  if (!given->isTensor())
    fail("is called with something that is no tensor as '" + name +
         "', where one tensor is expected");
  return given->value.tensor;
}

K::Tensor LayerContext::input() {
  std::vector<Value> all = inputs();
  if (all.size() != 1)
    fail("is called with " + std::to_string(all.size()) +
         " inputs, but 1 is expected");
  return all.front().tensor;
}

std::vector<Value> LayerContext::inputs() {
  std::vector<Value> result;
  const Argument *first = argument(0, "inputs");
  for (const char *name : {"sequences", "x", "query"})
    if (!first)
      first = argument(0, name);
  if (!first)
    fail("is called without an input");
  if (first->isTensor())
    result.push_back(first->value);
  for (const Argument &item : first->items) {
    if (!item.isTensor())
      fail("is called with a list that holds something else than tensors");
    result.push_back(item.value);
  }
  if (result.empty())
    fail("is called without an input tensor");
  return result;
}

K::Tensor LayerContext::mask() {
  auto given = call.kwargs.find("mask");
  if (given != call.kwargs.end() && given->second.isTensor())
    return given->second.value.tensor;
  return inputs().front().mask;
}

K::Tensor LayerContext::inputOfRank(int64_t rank) {
  K::Tensor x = input();
  if (K::ndim(x) != rank)
    fail("is called with an input of shape " + shapeName(K::int_shape(x)) +
         ", but one of rank " + std::to_string(rank) + " is expected");
  return x;
}

int64_t LayerContext::channels(const K::Tensor &x, int64_t axis) {
  K::Shape shape = K::int_shape(x);
  int64_t index = axis < 0 ? axis + int64_t(shape.size()) : axis;
  if (index < 0 || index >= int64_t(shape.size()))
    fail("has axis " + std::to_string(axis) + ", but its input has rank " +
         std::to_string(shape.size()));
  if (shape[index] < 0)
    fail("needs to know axis " + std::to_string(axis) +
         " of its input of shape " + shapeName(shape) +
         ": give it in the Input layer");
  return shape[index];
}

Array LayerContext::weightArray(const std::string &name,
                                const K::Shape &expected) {
  // What a wrong configuration expects is no news.
  if (failed())
    throw Error("the layer's configuration is wrong");
  std::string where = weights.next();
  if (where.empty())
    fail("has no weight '" + name + "' in the file, but " +
         shapeName(expected) + " is expected: save the model again");
  Array value = weights.take();
  if (!matches(value.shape(), expected))
    fail("has '" + name + "' of shape " + shapeName(value.shape()) +
         " in the file, but " + shapeName(expected) +
         " is expected: configuration and weights are of different models");
  return value;
}

K::Tensor LayerContext::weight(const std::string &name,
                               const K::Shape &expected, K::DType dtype) {
  std::string key = weights.next();
  Array value = weightArray(name, expected);
  K::Tensor &cached = shared.cache[key];
  if (!cached)
    cached = K::constant(value, name);
  return K::cast(cached, dtype);
}

/// Appends the numbers of `value`, whose extents from `depth` on must be those
/// of `shape`, which the first list of each depth sets.
static bool collectNumbers(const Json &value, size_t depth, K::Shape &shape,
                           std::vector<double> &numbers) {
  if (!value.is_array()) {
    if (depth != shape.size() || !(value.is_number() || value.is_boolean()))
      return false;
    numbers.push_back(value.is_boolean() ? double(value.get<bool>())
                                         : value.get<double>());
    return true;
  }
  if (depth == shape.size()) {
    if (!numbers.empty())
      return false;
    shape.push_back(int64_t(value.size()));
  }
  if (shape[depth] != int64_t(value.size()))
    return false;
  return std::all_of(value.begin(), value.end(), [&](const Json &item) {
    return collectNumbers(item, depth + 1, shape, numbers);
  });
}

std::optional<Array> model::numbersOf(const Json &value, K::DType dtype) {
  K::Shape shape;
  std::vector<double> numbers;
  if (!collectNumbers(value, 0, shape, numbers))
    return std::nullopt;
  // The types that a list in JSON is written for.
  switch (dtype) {
  case DType::Float64:
    return Array::of<double>(shape, numbers);
  case DType::Int64:
    return Array::of<int64_t>(shape, {numbers.begin(), numbers.end()});
  case DType::Int32:
    return Array::of<int32_t>(shape, {numbers.begin(), numbers.end()});
  case DType::Float32:
    return Array::of<float>(shape, {numbers.begin(), numbers.end()});
  default:
    return std::nullopt;
  }
}

std::string model::dataFormat(const LayerContext &layer) {
  return layer.config().choice(
      "data_format", {"channels_last", "channels_first"}, "channels_last");
}

int64_t model::channelAxis(const std::string &dataFormat, int64_t rank) {
  return dataFormat == "channels_first" ? 1 : rank - 1;
}

K::DType model::wideType(K::DType dtype) {
  bool half = dtype == K::DType::Float16 || dtype == K::DType::BFloat16;
  return half ? K::DType::Float32 : dtype;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

using LayerTable = std::unordered_map<std::string_view, const LayerEntry *>;

static LayerTable
collect(std::initializer_list<std::span<const LayerEntry>> families) {
  LayerTable table;
  for (std::span<const LayerEntry> family : families)
    for (const LayerEntry &entry : family)
      table.emplace(entry.className, &entry);
  return table;
}

const LayerEntry *model::findLayer(std::string_view className,
                                   bool isOperator) {
  static const LayerTable layers = collect(
      {coreLayers(), activationLayers(), convolutionLayers(), poolingLayers(),
       normalizationLayers(), mergingLayers(), reshapingLayers(), imageLayers(),
       recurrentLayers(), attentionLayers()});
  static const LayerTable operators =
      collect({elementwiseOperators(), reduceOperators(), shapeOperators(),
               attentionOperators()});
  const LayerTable &table = isOperator ? operators : layers;
  auto found = table.find(className);
  return found == table.end() ? nullptr : found->second;
}
