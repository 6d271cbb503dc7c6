//===- Operators.h - what a call of keras.ops is given ----------*- C++ -*-===//
//
// What a Python call states is in two places of the file: arguments of the
// operator's constructor (axis, keepdims, …) in `config`, those of the call in
// the node.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_MODEL_OPERATORS_H
#define KERATIN_FRONTEND_MODEL_OPERATORS_H

#include "Layer.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keratin::model {

/// The type of a result of both, as keras.backend.result_type has it.
K::DType promote(K::DType a, K::DType b);
/// Integers and bools become float32.
K::Tensor toFloat(const K::Tensor &x);

/// Operand `index`, named `name`, a tensor or a constant of the file; None if
/// it is not given.
K::Tensor operand(LayerContext &op, size_t index, const std::string &name);
/// The first operand, which must be a tensor of the graph.
K::Tensor firstOperand(LayerContext &op);
/// Two operands of one type. A number takes the type of the tensor, unless it
/// is a fraction and the tensor is of integers.
std::pair<K::Tensor, K::Tensor> twoOperands(LayerContext &op);
/// The first operand as a list of tensors of one type.
K::Tensors listOperand(LayerContext &op);
/// Whether the operand is a number of the file.
bool isNumber(LayerContext &op, size_t index, const std::string &name);

/// An option: of the constructor, or of the call.
const Json &option(LayerContext &op, const std::string &name,
                   size_t index = SIZE_MAX);
/// All axes when there is none.
K::Axes axesOption(LayerContext &op, const std::string &name = "axis");
std::vector<int64_t> integersOption(LayerContext &op, const std::string &name);
int64_t integerOption(LayerContext &op, const std::string &name,
                      std::optional<int64_t> fallback = std::nullopt);
double numberOption(LayerContext &op, const std::string &name, double fallback);
bool flagOption(LayerContext &op, const std::string &name, bool fallback);
std::optional<K::DType> typeOption(LayerContext &op);

/// An operator of a function of one, or two, tensors.
template <auto function> K::Tensors unary(LayerContext &op) {
  return {function(firstOperand(op))};
}
template <auto function> K::Tensors binary(LayerContext &op) {
  auto [a, b] = twoOperands(op);
  return {function(a, b)};
}

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_OPERATORS_H
