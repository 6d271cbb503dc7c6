//===- Operators.cpp - what a call of keras.ops is given ----------------===//
#include "Operators.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// Types, as keras.backend.result_type has them
//===----------------------------------------------------------------------===//

static bool isSigned(K::DType type) {
  return type != K::DType::UInt8 && type != K::DType::Bool;
}

K::DType model::promote(K::DType a, K::DType b) {
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

K::Tensor model::toFloat(const K::Tensor &x) {
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
K::Tensor model::operand(LayerContext &op, size_t index,
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
K::Tensor model::firstOperand(LayerContext &op) {
  for (const char *name : {"x", "inputs", "variable", "a", "query"})
    if (const Argument *given = op.argument(0, name);
        given && given->isTensor())
      return given->value.tensor;
  op.fail("is called without a tensor");
}

/// An option: of the constructor, or of the call.
const Json &model::option(LayerContext &op, const std::string &name,
                          size_t index) {
  static const Json null;
  if (op.config().has(name))
    return op.config().at(name);
  const Argument *given = op.argument(index, name);
  return given && given->kind == Argument::Kind::Constant ? *given->constant
                                                          : null;
}

K::Axes model::axesOption(LayerContext &op, const std::string &name) {
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

std::vector<int64_t> model::integersOption(LayerContext &op,
                                           const std::string &name) {
  K::Axes list = axesOption(op, name);
  if (list.all())
    op.fail("has no '" + name + "', but integers are expected");
  return list.values();
}

int64_t model::integerOption(LayerContext &op, const std::string &name,
                             std::optional<int64_t> fallback) {
  const Json &value = option(op, name);
  if (value.is_null() && fallback)
    return *fallback;
  if (std::optional<int64_t> number = asInteger(value))
    return *number;
  op.fail("has '" + name + "': " + describeJson(value) +
          ", but an integer is expected");
}

double model::numberOption(LayerContext &op, const std::string &name,
                           double fallback) {
  const Json &value = option(op, name);
  return value.is_number() ? value.get<double>() : fallback;
}

bool model::flagOption(LayerContext &op, const std::string &name,
                       bool fallback) {
  const Json &value = option(op, name);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::optional<K::DType> model::typeOption(LayerContext &op) {
  const Json &value = option(op, "dtype", 1);
  if (!value.is_string())
    return std::nullopt;
  return parseDType(value.get<std::string>());
}

K::Tensors model::listOperand(LayerContext &op) {
  const Argument *given = op.argument(0, "xs");
  given = given ? given : op.argument(0, "x");
  if (!given)
    op.fail("is called without tensors");
  if (given->isTensor())
    return {given->value.tensor};
  K::Tensors result;
  std::optional<K::DType> type; // of constants alone: each its own
  for (const Argument &item : given->items) {
    if (item.kind == Argument::Kind::None)
      op.fail("is called with a list that holds something else than tensors");
    result.push_back(item.isTensor() ? item.value.tensor
                                     : constantTensor(op, *item.constant));
    if (item.isTensor())
      type = type ? promote(*type, K::dtype(result.back()))
                  : K::dtype(result.back());
  }
  if (type)
    for (K::Tensor &x : result)
      x = K::cast(x, *type);
  return result;
}

bool model::isNumber(LayerContext &op, size_t index, const std::string &name) {
  const Argument *given = op.argument(index, name);
  return given && given->kind == Argument::Kind::Constant &&
         (given->constant->is_number() || given->constant->is_boolean());
}

/// Two operands of one type. A number takes the type of the tensor, unless it
/// is a fraction and the tensor is of integers.
std::pair<K::Tensor, K::Tensor> model::twoOperands(LayerContext &op) {
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
