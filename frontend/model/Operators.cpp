//===- Operators.cpp - keras.ops calls as nodes of a graph ----------------===//
//
// What a Python call states is in two places of the file: arguments of the
// operator's constructor (axis, keepdims, …) in `config`, those of the call in
// the node.
//
//===----------------------------------------------------------------------===//
#include "Layer.h"

#include <algorithm>
#include <cmath>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// Types, as keras.backend.result_type has them
//===----------------------------------------------------------------------===//

static bool isSigned(K::DType type) {
  return type != K::DType::UInt8 && type != K::DType::Bool;
}

static K::DType promote(K::DType a, K::DType b) {
  if (a == b)
    return a;
  if (isFloat(a) != isFloat(b))
    return isFloat(a) ? a : b;
  if (a == K::DType::Bool || b == K::DType::Bool)
    return a == K::DType::Bool ? b : a;
  if (dtypeSize(a) == dtypeSize(b))
    return isFloat(a) ? K::DType::Float32 : K::DType::Int16;
  K::DType wide = dtypeSize(a) > dtypeSize(b) ? a : b;
  return isFloat(a) || isSigned(wide) ? wide : K::DType::Int16;
}

static K::Tensor toFloat(const K::Tensor &x) {
  return isFloat(K::dtype(x)) ? x : K::cast(x, K::DType::Float32);
}

//===----------------------------------------------------------------------===//
// Operands and options
//===----------------------------------------------------------------------===//

/// A constant of the file as a tensor: a number, a (nested) list, or the array
/// that an object of class __numpy__ or __tensor__ holds.
static K::Tensor constantTensor(LayerContext &op, const Json &value) {
  if (value.is_boolean())
    return value.get<bool>();
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (value.is_number())
    return value.get<double>();
  const Json *list = &value;
  K::DType type = K::DType::Float32;
  if (value.is_object() && value.contains("config") &&
      value["config"].is_object() && value["config"].contains("value")) {
    list = &value["config"]["value"];
    if (value["config"].contains("dtype") &&
        value["config"]["dtype"].is_string())
      type = parseDType(value["config"]["dtype"].get<std::string>());
  } else if (value.is_array()) {
    bool whole = !value.empty() &&
                 std::all_of(value.begin(), value.end(), [](const Json &item) {
                   return item.is_number_integer();
                 });
    type = whole ? K::DType::Int32 : type;
  }
  if (std::optional<Array> numbers = numbersOf(*list, type))
    return K::constant(*numbers);
  op.fail("is called with " + describeJson(value) +
          ", where a tensor or numbers are expected");
}

/// Operand `index`, named `name`; None if it is not given.
static K::Tensor operand(LayerContext &op, size_t index,
                         const std::string &name) {
  const Argument *given = op.argument(index, name);
  if (!given || given->kind == Argument::Kind::None)
    return {};
  if (given->isTensor())
    return given->value.tensor;
  if (given->kind == Argument::Kind::Constant)
    return constantTensor(op, *given->constant);
  op.fail("is called with a list as '" + name +
          "', where one tensor is expected");
}

/// The first operand, which must be a tensor of the graph.
static K::Tensor first(LayerContext &op) {
  for (const char *name : {"x", "inputs", "variable", "a", "query"})
    if (const Argument *given = op.argument(0, name);
        given && given->isTensor())
      return given->value.tensor;
  op.fail("is called without a tensor");
}

/// An option: of the constructor, or of the call.
static const Json &option(LayerContext &op, const std::string &name,
                          size_t index = SIZE_MAX) {
  static const Json null;
  if (op.config().has(name))
    return op.config().at(name);
  const Argument *given = op.argument(index, name);
  return given && given->kind == Argument::Kind::Constant ? *given->constant
                                                          : null;
}

static K::Axes axes(LayerContext &op, const std::string &name = "axis") {
  const Json &value = option(op, name);
  if (value.is_null())
    return {};
  std::vector<int64_t> list;
  for (const Json &item : value.is_array() ? value : Json::array({value})) {
    std::optional<int64_t> axis = asInteger(item);
    if (!axis)
      op.fail("has '" + name + "': " + describeJson(value) +
              ", but integers are expected");
    list.push_back(*axis);
  }
  return list;
}

static std::vector<int64_t> integers(LayerContext &op,
                                     const std::string &name) {
  K::Axes list = axes(op, name);
  if (list.all())
    op.fail("has no '" + name + "', but integers are expected");
  return list.values();
}

static int64_t integer(LayerContext &op, const std::string &name,
                       std::optional<int64_t> fallback = std::nullopt) {
  const Json &value = option(op, name);
  if (value.is_null() && fallback)
    return *fallback;
  if (std::optional<int64_t> number = asInteger(value))
    return *number;
  op.fail("has '" + name + "': " + describeJson(value) +
          ", but an integer is expected");
}

static double number(LayerContext &op, const std::string &name,
                     double fallback) {
  const Json &value = option(op, name);
  return value.is_number() ? value.get<double>() : fallback;
}

static bool flag(LayerContext &op, const std::string &name, bool fallback) {
  const Json &value = option(op, name);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

static std::optional<K::DType> typeOption(LayerContext &op) {
  const Json &value = option(op, "dtype", 1);
  if (!value.is_string())
    return std::nullopt;
  return parseDType(value.get<std::string>());
}

static K::Tensors tensorList(LayerContext &op) {
  const Argument *given = op.argument(0, "xs");
  given = given ? given : op.argument(0, "x");
  if (!given)
    op.fail("is called without tensors");
  if (given->isTensor())
    return {given->value.tensor};
  K::Tensors result;
  K::DType type{};
  for (const Argument &item : given->items) {
    if (item.kind == Argument::Kind::None)
      op.fail("is called with a list that holds something else than tensors");
    result.push_back(item.isTensor() ? item.value.tensor
                                     : constantTensor(op, *item.constant));
    if (item.isTensor())
      type = type == K::DType{} ? K::dtype(result.back())
                                : promote(type, K::dtype(result.back()));
  }
  for (K::Tensor &x : result)
    x = K::cast(x, type);
  return result;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static bool isNumber(LayerContext &op, size_t index, const std::string &name) {
  const Argument *given = op.argument(index, name);
  return given && given->kind == Argument::Kind::Constant &&
         (given->constant->is_number() || given->constant->is_boolean());
}

/// Two operands of one type. A number takes the type of the tensor, unless it
/// is a fraction and the tensor is of integers.
static std::pair<K::Tensor, K::Tensor> operands(LayerContext &op) {
  K::Tensor a = operand(op, 0, "x1"), b = operand(op, 1, "x2");
  if (!a || !b)
    op.fail("is called with less than two operands");
  bool numberA = isNumber(op, 0, "x1"), numberB = isNumber(op, 1, "x2");
  if (numberA && numberB)
    op.fail("is called with two numbers, but at least one tensor is expected");
  if (!numberA && !numberB) {
    K::DType type = promote(K::dtype(a), K::dtype(b));
    return {K::cast(a, type), K::cast(b, type)};
  }
  K::Tensor &x = numberA ? b : a;
  const Json &constant =
      *op.argument(numberA ? 0 : 1, numberA ? "x1" : "x2")->constant;
  if (constant.is_number_float())
    x = toFloat(x);
  else if (constant.is_number() && K::dtype(x) == K::DType::Bool)
    x = K::cast(x, K::DType::Int32);
  return {a, b};
}

template <auto function> static K::Tensors binary(LayerContext &op) {
  auto [a, b] = operands(op);
  return {function(a, b)};
}

template <auto function> static K::Tensors unary(LayerContext &op) {
  return {function(first(op))};
}

template <auto function> static K::Tensors floatUnary(LayerContext &op) {
  return {function(toFloat(first(op)))};
}

template <auto function> static K::Tensors logicalBinary(LayerContext &op) {
  auto [a, b] = operands(op);
  return {function(K::cast(a, K::DType::Bool), K::cast(b, K::DType::Bool))};
}

static K::Tensor plus(const K::Tensor &a, const K::Tensor &b) { return a + b; }
static K::Tensor minus(const K::Tensor &a, const K::Tensor &b) { return a - b; }
static K::Tensor times(const K::Tensor &a, const K::Tensor &b) { return a * b; }
static K::Tensor modulo(const K::Tensor &a, const K::Tensor &b) {
  return a % b;
}
static K::Tensor tangent(const K::Tensor &x) { return K::sin(x) / K::cos(x); }
static K::Tensor log2Of(const K::Tensor &x) {
  return K::log(x) * K::Tensor(1 / std::log(2.0));
}
static K::Tensor log10Of(const K::Tensor &x) {
  return K::log(x) * K::Tensor(1 / std::log(10.0));
}
static K::Tensor negative(const K::Tensor &x) { return -x; }
static K::Tensor same(const K::Tensor &x) { return x; }
static K::Tensor notOf(const K::Tensor &x) {
  return K::logical_not(K::cast(x, K::DType::Bool));
}
static K::Tensor reluOf(const K::Tensor &x) { return K::relu(x); }
static K::Tensor squareRoot(const K::Tensor &x) {
  // keras.ops.sqrt of a negative number is NaN, unlike the backend's.
  return K::where(K::less(x, 0), K::full_like(x, std::nan("")), K::sqrt(x));
}

static K::Tensors divide(LayerContext &op) {
  auto [a, b] = operands(op);
  bool numberA = isNumber(op, 0, "x1");
  if (!numberA)
    a = toFloat(a);
  if (!isNumber(op, 1, "x2"))
    b = toFloat(b);
  return {a / b};
}

static K::Tensors gelu(LayerContext &op) {
  return {K::gelu(toFloat(first(op)), flag(op, "approximate", true))};
}
static K::Tensors leakyRelu(LayerContext &op) {
  return {K::leaky_relu(first(op), number(op, "negative_slope", 0.2))};
}
static K::Tensors elu(LayerContext &op) {
  return {K::elu(first(op), number(op, "alpha", 1))};
}
static K::Tensors celu(LayerContext &op) {
  return {K::celu(first(op), number(op, "alpha", 1))};
}
static K::Tensors glu(LayerContext &op) {
  return {K::glu(first(op), integer(op, "axis", -1))};
}

template <auto function> static K::Tensors alongAxis(LayerContext &op) {
  K::Tensor x = toFloat(first(op));
  K::Axes axis = axes(op);
  std::vector<int64_t> list = op.config().raw().contains("axis")
                                  ? axis.values()
                                  : std::vector<int64_t>{-1};
  if (list.size() != 1)
    op.fail("has several axes, but one is expected");
  return {function(x, list[0])};
}

static K::Tensor softmaxOf(const K::Tensor &x, int64_t axis) {
  return K::softmax(x, axis);
}
static K::Tensor logSoftmaxOf(const K::Tensor &x, int64_t axis) {
  return K::log_softmax(x, axis);
}

static K::Tensors clip(LayerContext &op) {
  K::Tensor x = first(op);
  auto bound = [&](const char *name) -> K::Tensor {
    const Json &value = option(op, name);
    if (!value.is_number())
      return {};
    if (value.is_number_float())
      x = toFloat(x);
    return value.is_number_float() ? K::Tensor(value.get<double>())
                                   : K::Tensor(value.get<int64_t>());
  };
  K::Tensor least = bound("x_min"), most = bound("x_max");
  return {K::clip(x, least, most)};
}

static K::Tensors cast(LayerContext &op) {
  std::optional<K::DType> type = typeOption(op);
  return {type ? K::cast(first(op), *type) : first(op)};
}

template <int value> static K::Tensors filledLike(LayerContext &op) {
  K::Tensor x = first(op);
  K::DType type = typeOption(op).value_or(K::dtype(x));
  return {value ? K::ones_like(x, type) : K::zeros_like(x, type)};
}

static K::Tensors where(LayerContext &op) {
  K::Tensor condition = operand(op, 0, "condition");
  K::Tensor x = operand(op, 1, "x1"), y = operand(op, 2, "x2");
  if (!condition || !x || !y)
    op.fail("is called with less than a condition and two choices");
  bool numberX = isNumber(op, 1, "x1"), numberY = isNumber(op, 2, "x2");
  if (!numberX && !numberY) {
    K::DType type = promote(K::dtype(x), K::dtype(y));
    x = K::cast(x, type);
    y = K::cast(y, type);
  }
  return {K::where(K::cast(condition, K::DType::Bool), x, y)};
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

template <auto function> static K::Tensors reduce(LayerContext &op) {
  K::Tensor x = first(op);
  return {function(x, axes(op), flag(op, "keepdims", false))};
}

template <auto function> static K::Tensors floatReduce(LayerContext &op) {
  K::Tensor x = toFloat(first(op));
  return {function(x, axes(op), flag(op, "keepdims", false))};
}

template <auto function> static K::Tensors boolReduce(LayerContext &op) {
  K::Tensor x = K::cast(first(op), K::DType::Bool);
  return {function(x, axes(op), flag(op, "keepdims", false))};
}

using Reduction = K::Tensor (*)(const K::Tensor &, const K::Axes &, bool);

static K::Tensor summable(const K::Tensor &x) {
  bool small = !isFloat(K::dtype(x)) && dtypeSize(K::dtype(x)) < 4;
  return small ? K::cast(x, K::DType::Int32) : x;
}
static K::Tensor sumOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::sum(summable(x), axis, keep);
}
static K::Tensor prodOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::prod(summable(x), axis, keep);
}
static K::Tensor maxOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::max(x, axis, keep);
}
static K::Tensor minOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::min(x, axis, keep);
}
static K::Tensor anyOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::any(x, axis, keep);
}
static K::Tensor allOf(const K::Tensor &x, const K::Axes &axis, bool keep) {
  return K::all(x, axis, keep);
}

template <bool greatest> static K::Tensors argument(LayerContext &op) {
  K::Tensor x = first(op);
  K::Axes axis = axes(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  bool keepdims = flag(op, "keepdims", false);
  int64_t at = axis.values().at(0);
  K::Tensor index = greatest ? K::argmax(x, at) : K::argmin(x, at);
  index = K::cast(index, K::DType::Int32);
  return {keepdims ? K::expand_dims(index, at) : index};
}

template <bool product> static K::Tensors cumulate(LayerContext &op) {
  K::Tensor x = summable(first(op));
  if (std::optional<K::DType> type = typeOption(op))
    x = K::cast(x, *type);
  K::Axes axis = axes(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  int64_t at = axis.values().at(0);
  return {product ? K::cumprod(x, at) : K::cumsum(x, at)};
}

/// x / max(|x|, epsilon)
static K::Tensors normalize(LayerContext &op) {
  if (number(op, "order", 2) != 2)
    op.fail("has an 'order' other than 2, which is not supported");
  K::Tensor x = toFloat(first(op));
  K::Axes axis = op.config().has("axis") ? axes(op) : K::Axes(-1);
  K::Tensor norm = K::sqrt(K::sum(K::square(x), axis, /*keepdims=*/true));
  return {x / K::maximum(norm, number(op, "epsilon", 1e-7))};
}

//===----------------------------------------------------------------------===//
// Shapes and indices
//===----------------------------------------------------------------------===//

static K::Tensors reshape(LayerContext &op) {
  K::Tensor x = first(op);
  std::vector<int64_t> shape;
  const Json &target = option(op, "newshape");
  if (!target.is_array())
    op.fail("has 'newshape': " + describeJson(target) +
            ", but a list of extents is expected");
  for (const Json &extent : target)
    shape.push_back(extent.is_null() ? -1 : asInteger(extent).value_or(-2));
  if (std::any_of(shape.begin(), shape.end(),
                  [](int64_t extent) { return extent < -1; }))
    op.fail("has 'newshape': " + describeJson(target) +
            ", but a list of extents is expected");
  return {K::reshape(x, K::Dims(shape))};
}

static K::Tensors transpose(LayerContext &op) {
  K::Tensor x = first(op);
  K::Axes order = axes(op, "axes");
  if (order.all())
    return {K::transpose(x)};
  return {K::permute_dimensions(x, order.values())};
}

static K::Tensors expandDims(LayerContext &op) {
  return {K::expand_dims(first(op), axes(op))};
}

static K::Tensors squeeze(LayerContext &op) {
  K::Tensor x = first(op);
  K::Axes axis = axes(op);
  if (axis.all()) {
    std::vector<int64_t> ones;
    K::Shape shape = K::int_shape(x);
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1)
        ones.push_back(int64_t(i));
    axis = ones;
  }
  return {K::squeeze(x, axis)};
}

static K::Tensors concatenate(LayerContext &op) {
  return {K::concatenate(tensorList(op), integer(op, "axis", 0))};
}

static K::Tensors stack(LayerContext &op) {
  return {K::stack(tensorList(op), integer(op, "axis", 0))};
}

static K::Tensors unstack(LayerContext &op) {
  return K::unstack(first(op), integer(op, "axis", 0));
}

static K::Tensors split(LayerContext &op) {
  K::Tensor x = first(op);
  int64_t axis = integer(op, "axis", 0);
  if (option(op, "indices_or_sections").is_array())
    return K::split(x, integers(op, "indices_or_sections"), axis);
  return K::split(x, integer(op, "indices_or_sections"), axis);
}

static K::Tensors ravel(LayerContext &op) { return {K::flatten(first(op))}; }

static K::Tensors repeat(LayerContext &op) {
  K::Tensor x = first(op);
  K::Axes axis = axes(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  return {K::repeat_elements(x, integer(op, "repeats"), axis.values().at(0))};
}

static K::Tensors tile(LayerContext &op) {
  return {K::tile(first(op), integers(op, "repeats"))};
}

static K::Tensors flip(LayerContext &op) {
  K::Tensor x = first(op);
  K::Axes axis = axes(op);
  if (axis.all()) {
    std::vector<int64_t> every(size_t(K::ndim(x)));
    for (size_t i = 0; i < every.size(); ++i)
      every[i] = int64_t(i);
    axis = every;
  }
  return {K::reverse(x, axis)};
}

static K::Tensors roll(LayerContext &op) {
  return {K::roll(first(op), integer(op, "shift"), integer(op, "axis"))};
}

static K::Tensors swapaxes(LayerContext &op) {
  return {K::swapaxes(first(op), integer(op, "axis1"), integer(op, "axis2"))};
}

static K::Tensors moveaxis(LayerContext &op) {
  return {K::moveaxis(first(op), integer(op, "source"),
                      integer(op, "destination"))};
}

static K::Tensors broadcastTo(LayerContext &op) {
  K::Tensor x = first(op);
  const Json &target = option(op, "shape");
  K::Shape shape;
  for (const Json &extent : target)
    shape.push_back(asInteger(extent).value_or(-1));
  return {K::broadcast_to(x, K::Dims(shape))};
}

static K::Tensors pad(LayerContext &op) {
  K::Tensor x = first(op);
  const Json &mode = option(op, "mode");
  if (mode.is_string() && mode != "constant")
    op.fail("has 'mode': " + describeJson(mode) +
            ", but 'constant' is supported");
  std::optional<Array> widths =
      numbersOf(option(op, "pad_width"), K::DType::Int64);
  int64_t rank = K::ndim(x);
  std::vector<K::PadPair> pairs;
  for (int64_t axis = 0; widths && axis < rank; ++axis) {
    const int64_t *values = widths->as<int64_t>();
    const K::Shape &shape = widths->shape();
    if (shape == K::Shape{rank, 2})
      pairs.emplace_back(values[2 * axis], values[2 * axis + 1]);
    else if (widths->size() == 2)
      pairs.emplace_back(values[0], values[1]);
    else if (widths->size() == 1)
      pairs.emplace_back(values[0], values[0]);
  }
  if (int64_t(pairs.size()) != rank)
    op.fail("has 'pad_width': " + describeJson(option(op, "pad_width")) +
            ", but a pair for each of " + std::to_string(rank) +
            " axes is expected");
  const Json &value = option(op, "constant_values", 1);
  return {K::pad(x, pairs, value.is_number() ? value.get<double>() : 0)};
}

/// One part of `x[key]`: an index, a slice, a new axis or an ellipsis.
static K::Index indexOf(LayerContext &op, const Json &part) {
  if (part.is_null())
    return K::NewAxis();
  if (std::optional<int64_t> index = asInteger(part))
    return *index;
  std::string className = part.is_object() && part.contains("class_name") &&
                                  part["class_name"].is_string()
                              ? part["class_name"].get<std::string>()
                              : "";
  if (className == "__ellipsis__")
    return K::Ellipsis();
  if (className != "__slice__" || !part.contains("config") ||
      !part["config"].is_object())
    op.fail("is indexed by " + describeJson(part) +
            ", but integers, slices, None and ... are supported");
  Config config(part["config"], [&](const std::string &m) { op.problem(m); });
  auto bound = [&](const char *key) -> std::optional<int64_t> {
    if (!config.has(key))
      return std::nullopt;
    return config.integer(key, -maxExtent);
  };
  return K::Slice{bound("start"), bound("stop"), bound("step").value_or(1)};
}

static K::Tensors getItem(LayerContext &op) {
  K::Tensor x = first(op);
  const Argument *key = op.argument(1, "key");
  static const Json null;
  const Json &value =
      key && key->kind == Argument::Kind::Constant ? *key->constant : null;
  if (key && (key->isTensor() || !key->items.empty()))
    op.fail("is indexed by a tensor: use keras.ops.take");
  std::vector<K::Index> indices;
  if (value.is_array())
    for (const Json &part : value)
      indices.push_back(indexOf(op, part));
  else
    indices.push_back(indexOf(op, value));
  return {K::getitem(x, indices)};
}

static K::Tensors take(LayerContext &op) {
  K::Tensor x = operand(op, 0, "x"), indices = operand(op, 1, "indices");
  if (!x || !indices)
    op.fail("is called without a tensor and indices");
  if (isNumber(op, 1, "indices")) {
    K::Axes axis = axes(op);
    int64_t at = axis.all() ? 0 : axis.values().at(0);
    if (axis.all())
      x = K::flatten(x);
    std::vector<K::Index> parts(size_t(K::ndim(x)), K::Slice());
    parts.at(size_t(at < 0 ? at + K::ndim(x) : at)) =
        op.argument(1, "indices")->constant->get<int64_t>();
    return {K::getitem(x, parts)};
  }
  K::Axes axis = axes(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  return {K::gather(x, indices, axis.values().at(0))};
}

static K::Tensors oneHot(LayerContext &op) {
  return {K::one_hot(first(op), integer(op, "num_classes"),
                     integer(op, "axis", -1),
                     typeOption(op).value_or(K::DType::Float32))};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static K::Tensors einsum(LayerContext &op) {
  K::Tensors list;
  for (size_t i = 0; i < op.argumentCount(); ++i)
    list.push_back(operand(op, i, ""));
  const Json &subscripts = option(op, "subscripts");
  if (!subscripts.is_string())
    op.fail("has no 'subscripts'");
  return {K::einsum(subscripts.get<std::string>(), list)};
}

static K::Tensors tensordot(LayerContext &op) {
  auto [a, b] = operands(op);
  const Json &stated = option(op, "axes");
  std::vector<int64_t> left, right;
  if (std::optional<int64_t> count = asInteger(stated)) {
    for (int64_t i = 0; i < *count; ++i) {
      left.push_back(K::ndim(a) - *count + i);
      right.push_back(i);
    }
    return {K::tensordot(a, b, left, right)};
  }
  auto listOf = [&](const Json &value) {
    std::vector<int64_t> list;
    for (const Json &item : value.is_array() ? value : Json::array({value}))
      list.push_back(asInteger(item).value_or(0));
    return list;
  };
  if (!stated.is_array() || stated.size() != 2)
    op.fail("has 'axes': " + describeJson(stated) +
            ", but two lists of axes are expected");
  return {K::tensordot(a, b, listOf(stated[0]), listOf(stated[1]))};
}

std::span<const LayerEntry> model::operatorNodes() {
  static const LayerEntry entries[] = {
      // Elementwise.
      {"Absolute", unary<K::abs>},
      {"Abs", unary<K::abs>},
      {"Negative", unary<negative>},
      {"Sign", unary<K::sign>},
      {"Square", unary<K::square>},
      {"LogicalNot", unary<notOf>},
      {"Isnan", unary<K::isnan>},
      {"Isfinite", unary<K::isfinite>},
      {"Copy", unary<same>},
      {"StopGradient", unary<same>},
      {"ConvertToTensor", cast},
      {"Cast", cast},
      {"Exp", floatUnary<K::exp>},
      {"Expm1", floatUnary<K::expm1>},
      {"Log", floatUnary<K::log>},
      {"Log1p", floatUnary<K::log1p>},
      {"Log2", floatUnary<log2Of>},
      {"Log10", floatUnary<log10Of>},
      {"Sqrt", floatUnary<squareRoot>},
      {"Rsqrt", floatUnary<K::rsqrt>},
      {"Reciprocal", floatUnary<K::reciprocal>},
      {"Sin", floatUnary<K::sin>},
      {"Cos", floatUnary<K::cos>},
      {"Tan", floatUnary<tangent>},
      {"Tanh", floatUnary<K::tanh>},
      {"Erf", floatUnary<K::erf>},
      {"Floor", floatUnary<K::floor>},
      {"Ceil", floatUnary<K::ceil>},
      {"Round", floatUnary<K::round>},
      {"Sigmoid", floatUnary<K::sigmoid>},
      {"SparseSigmoid", floatUnary<K::sparse_sigmoid>},
      {"LogSigmoid", floatUnary<K::log_sigmoid>},
      {"HardSigmoid", floatUnary<K::hard_sigmoid3>},
      {"HardSilu", floatUnary<K::hard_silu>},
      {"HardTanh", floatUnary<K::hard_tanh>},
      {"TanhShrink", floatUnary<K::tanh_shrink>},
      {"Relu", unary<reluOf>},
      {"Relu6", unary<K::relu6>},
      {"Selu", floatUnary<K::selu>},
      {"Silu", floatUnary<K::silu>},
      {"Softplus", floatUnary<K::softplus>},
      {"Softsign", floatUnary<K::softsign>},
      {"SparsePlus", floatUnary<K::sparse_plus>},
      {"Gelu", gelu},
      {"LeakyRelu", leakyRelu},
      {"Elu", elu},
      {"Celu", celu},
      {"Glu", glu},
      {"Softmax", alongAxis<softmaxOf>},
      {"LogSoftmax", alongAxis<logSoftmaxOf>},
      {"Add", binary<plus>},
      {"Subtract", binary<minus>},
      {"Multiply", binary<times>},
      {"Divide", divide},
      {"TrueDivide", divide},
      {"FloorDivide", binary<K::floor_divide>},
      {"Mod", binary<modulo>},
      {"Power", binary<K::pow>},
      {"Maximum", binary<K::maximum>},
      {"Minimum", binary<K::minimum>},
      {"Equal", binary<K::equal>},
      {"NotEqual", binary<K::not_equal>},
      {"Less", binary<K::less>},
      {"LessEqual", binary<K::less_equal>},
      {"Greater", binary<K::greater>},
      {"GreaterEqual", binary<K::greater_equal>},
      {"LogicalAnd", logicalBinary<K::logical_and>},
      {"LogicalOr", logicalBinary<K::logical_or>},
      {"LogicalXor", logicalBinary<K::logical_xor>},
      {"Clip", clip},
      {"Where", where},
      {"OnesLike", filledLike<1>},
      {"ZerosLike", filledLike<0>},
      // Reductions.
      {"Sum", reduce<sumOf>},
      {"Prod", reduce<prodOf>},
      {"Max", reduce<maxOf>},
      {"Min", reduce<minOf>},
      {"Amax", reduce<maxOf>},
      {"Amin", reduce<minOf>},
      {"Any", boolReduce<anyOf>},
      {"All", boolReduce<allOf>},
      {"Mean", floatReduce<K::mean>},
      {"Var", floatReduce<K::var>},
      {"Std", floatReduce<K::std>},
      {"Logsumexp", floatReduce<K::logsumexp>},
      {"Argmax", argument<true>},
      {"Argmin", argument<false>},
      {"Cumsum", cumulate<false>},
      {"Cumprod", cumulate<true>},
      {"Normalize", normalize},
      // Shapes and indices.
      {"Reshape", reshape},
      {"Transpose", transpose},
      {"ExpandDims", expandDims},
      {"Squeeze", squeeze},
      {"Concatenate", concatenate},
      {"Stack", stack},
      {"Unstack", unstack},
      {"Split", split},
      {"Ravel", ravel},
      {"Repeat", repeat},
      {"Tile", tile},
      {"Flip", flip},
      {"Roll", roll},
      {"Swapaxes", swapaxes},
      {"Moveaxis", moveaxis},
      {"BroadcastTo", broadcastTo},
      {"Pad", pad},
      {"GetItem", getItem},
      {"Take", take},
      {"OneHot", oneHot},
      // Products.
      {"Matmul", binary<K::matmul>},
      {"Einsum", einsum},
      {"Tensordot", tensordot},
  };
  return entries;
}
