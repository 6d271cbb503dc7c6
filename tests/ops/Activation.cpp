//===- Activation.cpp - rows of activation functions ----------------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

static Row activation(std::string name, K::Tensor (*op)(const K::Tensor &),
                      double (*f)(double)) {
  return {.name = std::move(name),
          .shapes = {{tableBatch, 6, 7}},
          .op = [op](const K::Tensors &x) { return op(x[0]); },
          .formula =
              [f](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](const K::Shape &index) {
                  return f(x[0][index]);
                });
              },
          .low = -4,
          .high = 4};
}

static double clip(double x, double low, double high) {
  return std::min(std::max(x, low), high);
}
static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double softplus(double x) { return std::log1p(std::exp(x)); }
static double elu(double x) { return x > 0 ? x : std::expm1(x); }

std::vector<Row> activationRows() {
  using T = const K::Tensor &;
  return {
      activation(
          "relu", [](T x) { return K::relu(x); },
          [](double x) { return std::max(x, 0.0); }),
      activation(
          "relu_leaky_capped", [](T x) { return K::relu(x, 0.1, 2.5, 0.5); },
          [](double x) {
            return x >= 2.5 ? 2.5 : x >= 0.5 ? x : 0.1 * (x - 0.5);
          }),
      activation("relu6", K::relu6, [](double x) { return clip(x, 0, 6); }),
      activation(
          "leaky_relu", [](T x) { return K::leaky_relu(x); },
          [](double x) { return x > 0 ? x : 0.2 * x; }),
      activation(
          "elu", [](T x) { return K::elu(x); }, elu),
      activation(
          "celu", [](T x) { return K::celu(x, 2); },
          [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }),
      activation("selu", K::selu,
                 [](double x) {
                   return 1.0507009873554805 *
                          (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
                 }),
      activation(
          "gelu", [](T x) { return K::gelu(x); },
          [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); }),
      activation(
          "gelu_approximate", [](T x) { return K::gelu(x, true); },
          [](double x) {
            double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
            return x / 2 * (1 + std::tanh(inner));
          }),
      activation("silu", K::silu, [](double x) { return x * sigmoid(x); }),
      activation("mish", K::mish,
                 [](double x) { return x * std::tanh(softplus(x)); }),
      activation("softplus", K::softplus, softplus),
      activation("softsign", K::softsign,
                 [](double x) { return x / (1 + std::abs(x)); }),
      activation("hard_sigmoid", K::hard_sigmoid,
                 [](double x) { return clip(x / 5 + 0.5, 0, 1); }),
      activation("hard_sigmoid3", K::hard_sigmoid3,
                 [](double x) { return clip(x / 6 + 0.5, 0, 1); }),
      activation("hard_silu", K::hard_silu,
                 [](double x) { return x * clip(x / 6 + 0.5, 0, 1); }),
      activation("hard_tanh", K::hard_tanh,
                 [](double x) { return clip(x, -1, 1); }),
      activation("tanh_shrink", K::tanh_shrink,
                 [](double x) { return x - std::tanh(x); }),
      activation(
          "hard_shrink", [](T x) { return K::hard_shrink(x); },
          [](double x) { return std::abs(x) > 0.5 ? x : 0; }),
      activation(
          "soft_shrink", [](T x) { return K::soft_shrink(x); },
          [](double x) { return x > 0.5    ? x - 0.5
                                : x < -0.5 ? x + 0.5
                                           : 0; }),
      activation(
          "threshold", [](T x) { return K::threshold(x, 0.5, -3); },
          [](double x) { return x > 0.5 ? x : -3; }),
      activation(
          "squareplus", [](T x) { return K::squareplus(x); },
          [](double x) { return (x + std::sqrt(x * x + 4)) / 2; }),
      activation("sparse_plus", K::sparse_plus,
                 [](double x) {
                   return x <= -1 ? 0 : x < 1 ? (x + 1) * (x + 1) / 4 : x;
                 }),
      activation("sparse_sigmoid", K::sparse_sigmoid,
                 [](double x) { return clip((x + 1) / 2, 0, 1); }),
      activation("log_sigmoid", K::log_sigmoid,
                 [](double x) { return -softplus(-x); }),
      {.name = "glu",
       .shapes = {{tableBatch, 8}},
       .op = [](const K::Tensors &x) { return K::glu(x[0]); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 4}, [&](const K::Shape &i) {
               return x[0][i] * sigmoid(x[0][{i[0], i[1] + 4}]);
             });
           }},
  };
}

} // namespace keratin::optest
