//===- Elementwise.cpp - formulas on elements, and updates ----------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <limits>

namespace keratin::backend {

Tensor square(const Tensor &x) { return x * x; }

Tensor sqrt(const Tensor &x) { return emit("sqrt", {maximum(x, 0.0)}); }

Tensor reciprocal(const Tensor &x) { return 1.0 / x; }

Tensor clip(const Tensor &x, const Tensor &min_value, const Tensor &max_value) {
  // As Keras has it, the lower bound wins where the bounds cross.
  Tensor y = max_value ? minimum(x, max_value) : x;
  return min_value ? maximum(y, min_value) : y;
}

Tensor isnan(const Tensor &x) { return not_equal(x, x); }

Tensor isfinite(const Tensor &x) {
  return less(abs(x), std::numeric_limits<double>::infinity());
}

Tensor in_train_phase(const Tensor &x, const Tensor &alt,
                      std::optional<bool> training) {
  if (training)
    return *training ? x : alt;
  return switch_(learning_phase(), x, alt);
}

Tensor in_test_phase(const Tensor &x, const Tensor &alt,
                     std::optional<bool> training) {
  return in_train_phase(alt, x, training);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

Update update(const Tensor &x, const Tensor &new_x) { return {x, new_x}; }

Update update_add(const Tensor &x, const Tensor &increment) {
  return {x, x + increment};
}

Update update_sub(const Tensor &x, const Tensor &decrement) {
  return {x, x - decrement};
}

Update moving_average_update(const Tensor &x, const Tensor &value,
                             double momentum) {
  return {x, x - (x - value) * (1 - momentum)};
}

} // namespace keratin::backend
