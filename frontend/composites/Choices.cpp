//===- Choices.cpp - one of two expressions -------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

/// The whole of `a` or of `b`, which may differ in shape.
static Tensor choose(const Tensor &condition, Tensor a, Tensor b) {
  // A number is as large as the other expression.
  if (a.isNumber() && b.id())
    a = full_like(b, a.number());
  else if (b.isNumber() && a.id())
    b = full_like(a, b.number());
  if (ndim(a) != ndim(b))
    throw Error("switch: one expression has shape " + shapeName(int_shape(a)) +
                " and the other " + shapeName(int_shape(b)) +
                ": they must have the same number of axes");
  return emit("choose", {condition, a, b});
}

Tensor switch_(const Tensor &condition, const Branch &then_expression,
               const Branch &else_expression) {
  requireTensor(condition, "switch", "condition");
  if (condition.isNumber())
    return (condition.number() != 0 ? then_expression : else_expression).get();
  Tensor a = then_expression.get(), b = else_expression.get();
  CalledAs function("switch");
  requireTensor(a, "switch", "then_expression");
  requireTensor(b, "switch", "else_expression");
  Tensor chosen = cast(condition, DType::Bool);
  if (ndim(chosen) == 0)
    return choose(chosen, a, b);
  int64_t rank = std::max(ndim(a), ndim(b));
  if (ndim(chosen) > rank)
    throw Error(
        "switch: the condition has shape " + shapeName(int_shape(condition)) +
        " but the expressions have fewer axes: " + shapeName(int_shape(a)) +
        " and " + shapeName(int_shape(b)));
  while (ndim(chosen) < rank)
    chosen = expand_dims(chosen, -1);
  return where(chosen, a, b);
}

Tensor in_train_phase(const Branch &x, const Branch &alt,
                      const Tensor &training) {
  return switch_(training ? training : learning_phase(), x, alt);
}

Tensor in_test_phase(const Branch &x, const Branch &alt,
                     const Tensor &training) {
  return in_train_phase(alt, x, training);
}

} // namespace keratin::backend
