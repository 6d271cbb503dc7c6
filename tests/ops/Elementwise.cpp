//===- Elementwise.cpp - rows of elementwise ops --------------------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

/// y[i] = f(x[i])
static Row unary(std::string name, K::Tensor (*op)(const K::Tensor &),
                 double (*f)(double), Row row = {}) {
  row.name = std::move(name);
  row.shapes = {{tableBatch, 7, 5}};
  row.op = [op](const K::Tensors &x) { return op(x[0]); };
  row.formula = [f](const std::vector<Values> &x) {
    return generate(x[0].shape,
                    [&](const K::Shape &index) { return f(x[0][index]); });
  };
  return row;
}

/// x to the power of a number that is known beforehand.
static Row power(const std::string &name, double known) {
  return {.name = "pow_" + name,
          .shapes = {{tableBatch, 7, 5}},
          .op = [known](const K::Tensors &x) { return K::pow(x[0], known); },
          .formula =
              [known](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](const K::Shape &index) {
                  return std::pow(x[0][index], known);
                });
              }};
}

/// y[i] = f(a[i], b[i]), broadcast: equal shapes, then a vector, a scalar and
/// two that both stretch.
static std::vector<Row> binary(const std::string &name,
                               K::Tensor (*op)(const K::Tensor &,
                                               const K::Tensor &),
                               double (*f)(double, double), Row row = {}) {
  row.op = [op](const K::Tensors &x) { return op(x[0], x[1]); };
  row.formula = [f](const std::vector<Values> &x) {
    return generate(
        broadcastShape(x[0].shape, x[1].shape), [&](const K::Shape &index) {
          return f(broadcastAt(x[0], index), broadcastAt(x[1], index));
        });
  };
  std::vector<Row> rows(4, row);
  rows[0].name = name;
  rows[0].shapes = {{tableBatch, 4, 5}, {tableBatch, 4, 5}};
  rows[1].name = name + "_vector";
  rows[1].shapes = {{tableBatch, 4, 5}, {5}};
  rows[2].name = name + "_scalar";
  rows[2].shapes = {{tableBatch, 4, 5}, {}};
  rows[3].name = name + "_stretch_both";
  rows[3].shapes = {{tableBatch, 1, 5}, {4, 1}};
  return rows;
}

static double pythonMod(double a, double b) {
  return a - b * std::floor(a / b);
}

std::vector<Row> elementwiseRows() {
  const Row positive = {.low = 0.1, .high = 3};
  const Row flat = {.hasGradient = false};
  std::vector<Row> rows = {
      unary("negative", K::negative, [](double x) { return -x; }),
      unary("abs", K::abs, [](double x) { return std::abs(x); }),
      unary("sign", K::sign,
            [](double x) { return double((x > 0) - (x < 0)); }),
      unary("square", K::square, [](double x) { return x * x; }),
      unary("exp", K::exp, [](double x) { return std::exp(x); }),
      unary("expm1", K::expm1, [](double x) { return std::expm1(x); }),
      unary(
          "log", K::log, [](double x) { return std::log(x); }, positive),
      unary("log1p", K::log1p, [](double x) { return std::log1p(x); },
            {.low = -0.9, .high = 3}),
      unary(
          "sqrt", K::sqrt, [](double x) { return std::sqrt(x); }, positive),
      unary(
          "rsqrt", K::rsqrt, [](double x) { return 1 / std::sqrt(x); },
          positive),
      unary(
          "reciprocal", K::reciprocal, [](double x) { return 1 / x; },
          positive),
      unary("sin", K::sin, [](double x) { return std::sin(x); },
            {.low = -9, .high = 9}),
      unary("cos", K::cos, [](double x) { return std::cos(x); },
            {.low = -9, .high = 9}),
      unary("tanh", K::tanh, [](double x) { return std::tanh(x); }),
      unary("sigmoid", K::sigmoid,
            [](double x) { return 1 / (1 + std::exp(-x)); }),
      unary("erf", K::erf, [](double x) { return std::erf(x); }),
      unary(
          "floor", K::floor, [](double x) { return std::floor(x); }, flat),
      unary(
          "ceil", K::ceil, [](double x) { return std::ceil(x); }, flat),
      unary(
          "round", K::round, [](double x) { return std::nearbyint(x); }, flat),
      unary(
          "isnan", K::isnan, [](double x) { return double(std::isnan(x)); },
          flat),
      unary(
          "isfinite", K::isfinite,
          [](double x) { return double(std::isfinite(x)); }, flat),
  };
  auto add = [&](std::vector<Row> more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  add(binary("add", K::add, [](double a, double b) { return a + b; }));
  add(binary("subtract", K::subtract,
             [](double a, double b) { return a - b; }));
  add(binary("multiply", K::multiply,
             [](double a, double b) { return a * b; }));
  add(binary(
      "divide", K::operator/, [](double a, double b) { return a / b; },
      positive));
  // Near 0 a divisor is nearer to a jump than differences reach.
  add(binary("mod", K::mod, pythonMod, {.low = 0.5, .high = 3}));
  rows.push_back(unary(
      "mod_of_negative", [](const K::Tensor &x) { return K::mod(x, 0.75); },
      [](double x) { return pythonMod(x, 0.75); }));
  rows.push_back(unary(
      "mod_by_negative", [](const K::Tensor &x) { return K::mod(x, -0.75); },
      [](double x) { return pythonMod(x, -0.75); }));
  add(binary(
      "floor_divide", K::floor_divide,
      [](double a, double b) { return std::floor(a / b); }, flat));
  add(binary(
      "pow", K::pow, [](double a, double b) { return std::pow(a, b); },
      positive));
  // Products, quotients and roots in the place of a power, and a power.
  for (Row row : {power("square", 2), power("cube", 3), power("fourth", 4),
                  power("inverse", -1), power("root", 0.5),
                  power("inverse_root", -0.5), power("others", 2.5)}) {
    row.low = positive.low;
    row.high = positive.high;
    rows.push_back(std::move(row));
  }
  add(binary("maximum", K::maximum,
             [](double a, double b) { return std::max(a, b); }));
  add(binary("minimum", K::minimum,
             [](double a, double b) { return std::min(a, b); }));
  add(binary(
      "equal", K::equal, [](double a, double b) { return double(a == b); },
      flat));
  add(binary(
      "not_equal", K::not_equal,
      [](double a, double b) { return double(a != b); }, flat));
  add(binary(
      "less", K::less, [](double a, double b) { return double(a < b); }, flat));
  add(binary(
      "less_equal", K::less_equal,
      [](double a, double b) { return double(a <= b); }, flat));
  add(binary(
      "greater", K::greater, [](double a, double b) { return double(a > b); },
      flat));
  add(binary(
      "greater_equal", K::greater_equal,
      [](double a, double b) { return double(a >= b); }, flat));

  const Row flags = {.dtypes = {DType::Bool, DType::Bool},
                     .hasGradient = false};
  add(binary(
      "logical_and", K::logical_and,
      [](double a, double b) { return double(a && b); }, flags));
  add(binary(
      "logical_or", K::logical_or,
      [](double a, double b) { return double(a || b); }, flags));
  add(binary(
      "logical_xor", K::logical_xor,
      [](double a, double b) { return double(a != b); }, flags));
  rows.push_back(unary(
      "logical_not", K::logical_not, [](double x) { return double(!x); },
      flags));
  rows.push_back(unary(
      "stop_gradient", K::stop_gradient, [](double x) { return x; }, flat));

  rows.push_back(
      {.name = "clip",
       .shapes = {{tableBatch, 9}},
       .op = [](const K::Tensors &x) { return K::clip(x[0], -0.5, 1); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](const K::Shape &index) {
               return std::min(std::max(x[0][index], -0.5), 1.0);
             });
           }});
  rows.push_back(
      {.name = "where",
       .shapes = {{tableBatch, 1, 4}, {tableBatch, 5, 4}, {5, 1}},
       .op = [](const K::Tensors &x) { return K::where(x[0], x[1], x[2]); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[1].shape, [&](const K::Shape &index) {
               return broadcastAt(broadcastAt(x[0], index) ? x[1] : x[2],
                                  index);
             });
           },
       .dtypes = {DType::Bool}});
  rows.push_back(
      {.name = "cast_to_int",
       .shapes = {{tableBatch, 9}},
       .op = [](const K::Tensors &x) { return K::cast(x[0], DType::Int32); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](const K::Shape &index) {
               return std::trunc(x[0][index]);
             });
           },
       .low = -9,
       .high = 9,
       .hasGradient = false});
  rows.push_back(
      {.name = "cast_from_int",
       .shapes = {{tableBatch, 9}},
       .op = [](const K::Tensors &x) { return K::cast(x[0], DType::Float32); },
       .formula = [](const std::vector<Values> &x) { return x[0]; },
       .dtypes = {DType::Int32},
       .hasGradient = false});
  rows.push_back(
      {.name = "cast_to_floatx",
       .shapes = {{tableBatch, 9}},
       .op = [](const K::Tensors &x) { return K::cast_to_floatx(x[0]); },
       .formula = [](const std::vector<Values> &x) { return x[0]; },
       .dtypes = {DType::Int32},
       .hasGradient = false});
  return rows;
}

} // namespace keratin::optest
