//===- OperatorsReduce.cpp - keras.ops that reduce axes -----------------===//
#include "Operators.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

template <auto function> static K::Tensors reduce(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  return {function(x, axesOption(op), flagOption(op, "keepdims", false))};
}

template <auto function> static K::Tensors floatReduce(LayerContext &op) {
  K::Tensor x = toFloat(firstOperand(op));
  return {function(x, axesOption(op), flagOption(op, "keepdims", false))};
}

template <auto function> static K::Tensors boolReduce(LayerContext &op) {
  K::Tensor x = K::cast(firstOperand(op), K::DType::Bool);
  return {function(x, axesOption(op), flagOption(op, "keepdims", false))};
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
  K::Tensor x = firstOperand(op);
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  bool keepdims = flagOption(op, "keepdims", false);
  int64_t at = axis.values().at(0);
  K::Tensor index = greatest ? K::argmax(x, at) : K::argmin(x, at);
  index = K::cast(index, K::DType::Int32);
  return {keepdims ? K::expand_dims(index, at) : index};
}

template <bool product> static K::Tensors cumulate(LayerContext &op) {
  K::Tensor x = summable(firstOperand(op));
  if (std::optional<K::DType> type = typeOption(op))
    x = K::cast(x, *type);
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  int64_t at = axis.values().at(0);
  return {product ? K::cumprod(x, at) : K::cumsum(x, at)};
}

/// x / max(|x|, epsilon)
static K::Tensors normalize(LayerContext &op) {
  if (numberOption(op, "order", 2) != 2)
    op.fail("has an 'order' other than 2, which is not supported");
  K::Tensor x = toFloat(firstOperand(op));
  K::Axes axis = op.config().has("axis") ? axesOption(op) : K::Axes(-1);
  K::Tensor norm = K::sqrt(K::sum(K::square(x), axis, /*keepdims=*/true));
  return {x / K::maximum(norm, numberOption(op, "epsilon", 1e-7))};
}

std::span<const LayerEntry> model::reduceOperators() {
  static const LayerEntry entries[] = {
      {"Sum", reduce<sumOf>},         {"Prod", reduce<prodOf>},
      {"Max", reduce<maxOf>},         {"Min", reduce<minOf>},
      {"Amax", reduce<maxOf>},        {"Amin", reduce<minOf>},
      {"Any", boolReduce<anyOf>},     {"All", boolReduce<allOf>},
      {"Mean", floatReduce<K::mean>}, {"Var", floatReduce<K::var>},
      {"Std", floatReduce<K::std>},   {"Logsumexp", floatReduce<K::logsumexp>},
      {"Argmax", argument<true>},     {"Argmin", argument<false>},
      {"Cumsum", cumulate<false>},    {"Cumprod", cumulate<true>},
      {"Normalize", normalize},
  };
  return entries;
}
