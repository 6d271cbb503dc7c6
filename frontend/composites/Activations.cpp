//===- Activations.cpp - activation functions -----------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <cmath>
#include <numbers>

namespace keratin::backend {

Tensor relu(const Tensor &x, double alpha, const Tensor &max_value,
            double threshold) {
  requireTensor(x, "relu", "x");
  Tensor y;
  if (threshold != 0) // Keras clips at 0 too where there is a maximum
    y = where(greater_equal(x, threshold), max_value ? maximum(x, 0) : x,
              (x - threshold) * alpha);
  else if (alpha == 0)
    y = emit("relu", {x});
  else
    y = where(greater_equal(x, 0), x, x * alpha);
  return max_value ? minimum(y, max_value) : y;
}

Tensor relu6(const Tensor &x) { return relu(x, /*alpha=*/0, /*max_value=*/6); }

Tensor leaky_relu(const Tensor &x, double negative_slope) {
  return relu(x, /*alpha=*/negative_slope);
}

// e^x - 1 only of negative numbers: the branch that is not chosen must not
// overflow, or its gradient is not a number.

Tensor elu(const Tensor &x, double alpha) {
  Tensor negative = expm1(minimum(x, 0));
  return where(greater(x, 0), x, alpha == 1 ? negative : negative * alpha);
}

Tensor celu(const Tensor &x, double alpha) {
  return relu(x) + expm1(minimum(x / alpha, 0)) * alpha;
}

Tensor selu(const Tensor &x) {
  // Klambauer et al., Self-Normalizing Neural Networks, 2017.
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  return elu(x, alpha) * scale;
}

Tensor gelu(const Tensor &x, bool approximate) {
  if (!approximate)
    return x * 0.5 * (erf(x * std::numbers::sqrt2 * 0.5) + 1);
  // Half of 1 + tanh y is the sigmoid of 2 y.
  double scale = 2 * std::sqrt(2 / std::numbers::pi);
  return x * sigmoid(x * (x * x * (0.044715 * scale) + scale));
}

Tensor silu(const Tensor &x) { return x * sigmoid(x); }

Tensor mish(const Tensor &x) {
  // x tanh(log(1 + e^x)), where with n = e^x (e^x + 2) the tanh is n / (n + 2):
  // 1 from some x on, before n overflows.
  Tensor power = exp(minimum(x, dtype(x) == DType::Float16 ? 5 : 20));
  Tensor n = power * (power + 2);
  return x * (n / (n + 2));
}

Tensor softplus(const Tensor &x) {
  // log(1 + e^x) without overflow.
  return relu(x) + log1p(exp(negative(abs(x))));
}

Tensor softsign(const Tensor &x) { return x / (abs(x) + 1); }

Tensor hard_sigmoid(const Tensor &x) { return clip(x * 0.2 + 0.5, 0, 1); }

Tensor hard_sigmoid3(const Tensor &x) { return relu6(x + 3) / 6; }

Tensor hard_silu(const Tensor &x) { return x * hard_sigmoid3(x); }

Tensor hard_tanh(const Tensor &x) { return clip(x, -1, 1); }

Tensor tanh_shrink(const Tensor &x) { return x - tanh(x); }

Tensor hard_shrink(const Tensor &x, double threshold) {
  return where(greater(abs(x), threshold), x, 0);
}

Tensor soft_shrink(const Tensor &x, double threshold) {
  return where(greater(x, threshold), x - threshold,
               where(less(x, -threshold), x + threshold, full_like(x, 0)));
}

Tensor threshold(const Tensor &x, double threshold, double default_value) {
  return where(greater(x, threshold), x, default_value);
}

Tensor squareplus(const Tensor &x, double b) {
  return (x + sqrt(square(x) + b)) * 0.5;
}

Tensor sparse_plus(const Tensor &x) {
  Tensor middle = square(x + 1) * 0.25;
  return where(greater_equal(x, 1), x,
               where(less_equal(x, -1), full_like(x, 0), middle));
}

Tensor sparse_sigmoid(const Tensor &x) { return clip((x + 1) * 0.5, 0, 1); }

Tensor log_sigmoid(const Tensor &x) { return negative(softplus(negative(x))); }

Tensor log_softmax(const Tensor &x, int64_t axis) {
  Tensor shifted = x - stop_gradient(max(x, axis, /*keepdims=*/true));
  return shifted - log(sum(exp(shifted), axis, /*keepdims=*/true));
}

Tensor glu(const Tensor &x, int64_t axis) {
  Tensors halves = split(x, 2, axis);
  return halves[0] * sigmoid(halves[1]);
}

Tensor l2_normalize(const Tensor &x, const Axes &axis) {
  CalledAs function("l2_normalize");
  Tensor norm = sum(square(x), axis, /*keepdims=*/true);
  return x * rsqrt(maximum(norm, 1e-12));
}

} // namespace keratin::backend
