//===- OperatorsElementwise.cpp - keras.ops of each element -------------===//
#include "Operators.h"

#include <algorithm>
#include <cmath>

using namespace keratin;
using namespace keratin::model;

template <auto function> static K::Tensors floatUnary(LayerContext &op) {
  return {function(toFloat(firstOperand(op)))};
}

template <auto function> static K::Tensors logicalBinary(LayerContext &op) {
  auto [a, b] = twoOperands(op);
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
  auto [a, b] = twoOperands(op);
  bool numberA = isNumber(op, 0, "x1");
  if (!numberA)
    a = toFloat(a);
  if (!isNumber(op, 1, "x2"))
    b = toFloat(b);
  return {a / b};
}

static K::Tensors gelu(LayerContext &op) {
  return {
      K::gelu(toFloat(firstOperand(op)), flagOption(op, "approximate", true))};
}
static K::Tensors leakyRelu(LayerContext &op) {
  return {
      K::leaky_relu(firstOperand(op), numberOption(op, "negative_slope", 0.2))};
}
static K::Tensors elu(LayerContext &op) {
  return {K::elu(firstOperand(op), numberOption(op, "alpha", 1))};
}
static K::Tensors celu(LayerContext &op) {
  return {K::celu(firstOperand(op), numberOption(op, "alpha", 1))};
}
static K::Tensors glu(LayerContext &op) {
  return {K::glu(firstOperand(op), integerOption(op, "axis", -1))};
}

template <auto function> static K::Tensors alongAxis(LayerContext &op) {
  K::Tensor x = toFloat(firstOperand(op));
  K::Axes axis = axesOption(op);
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
  K::Tensor x = firstOperand(op);
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
  return {type ? K::cast(firstOperand(op), *type) : firstOperand(op)};
}

template <int value> static K::Tensors filledLike(LayerContext &op) {
  K::Tensor x = firstOperand(op);
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

std::span<const LayerEntry> model::elementwiseOperators() {
  static const LayerEntry entries[] = {
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
  };
  return entries;
}
