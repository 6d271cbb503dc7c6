//===- Elementwise.cpp - formulas on elements -----------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <limits>

namespace keratin::backend {

Tensor square(const Tensor &x) { return x * x; }

Tensor sqrt(const Tensor &x) { return emit("sqrt", {maximum(x, 0.0)}); }

Tensor reciprocal(const Tensor &x) { return 1.0 / x; }

Tensor clip(const Tensor &x, const Tensor &min_value, const Tensor &max_value) {
  CalledAs function("clip");
  requireTensor(x, "clip", "x");
  // As Keras has it, the lower bound wins where the bounds cross.
  Tensor y = max_value ? minimum(x, max_value) : x;
  return min_value ? maximum(y, min_value) : y;
}

Tensor isnan(const Tensor &x) { return not_equal(x, x); }

Tensor isfinite(const Tensor &x) {
  return less(abs(x), std::numeric_limits<double>::infinity());
}

} // namespace keratin::backend
