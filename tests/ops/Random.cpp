//===- Random.cpp - rows of random ops ------------------------------------===//
//
// The formulas make the same bits from the seed. Statistics are in
// RandomTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "OpTable.h"
#include "Philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace keratin::optest {

using X = const K::Tensors &;

/// An op that takes only the shape of its input.
static Row sampler(std::string name, Op op,
                   std::function<std::vector<double>(int64_t count)> draw,
                   K::Shape shape = {tableBatch, 5, 7}) {
  return {.name = std::move(name),
          .shapes = {std::move(shape)},
          .op = std::move(op),
          .formula =
              [draw = std::move(draw)](const std::vector<Values> &x) {
                Values y(x[0].shape);
                y.data = draw(y.size());
                return y;
              },
          .hasGradient = false};
}

static std::vector<double> fromMinusOneToThree(int64_t count) {
  std::vector<double> u = randomFloats(tableSeed, 0, count);
  for (double &value : u)
    value = value * 4 - 1;
  return u;
}

static std::vector<double> normals(int64_t count) {
  std::vector<double> u = randomFloats(tableSeed, 0, 2 * count), z;
  for (int64_t i = 0; i < count; ++i)
    z.push_back(1 + 3 * std::sqrt(-2 * std::log(1 - u[i])) *
                        std::cos(2 * std::numbers::pi * u[i + count]));
  return z;
}

/// The quantile of the standard normal distribution, by bisection.
static double quantile(double p) {
  double low = -3, high = 3;
  for (int step = 0; step < 60; ++step) {
    double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < p ? low : high) = middle;
  }
  return low;
}

static std::vector<double> truncated(int64_t count) {
  double inside = std::erf(std::numbers::sqrt2);
  std::vector<double> z = randomFloats(tableSeed, 0, count);
  for (double &u : z)
    u = 1 + 3 * quantile(0.5 + (u - 0.5) * inside);
  return z;
}

static Row dropoutRow(std::string name, std::optional<K::Dims> noiseShape,
                      bool wholeChannels) {
  return {.name = std::move(name),
          .shapes = {{tableBatch, 5, 7}},
          // Each call drops others: the gradient is tested in RandomTest.cpp,
          // and stopped here.
          .op =
              [=](X x) {
                return K::dropout(K::stop_gradient(x[0]), 0.4, noiseShape,
                                  tableSeed);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                K::Shape shape = x[0].shape;
                if (wholeChannels)
                  shape[1] = 1;
                Values u(shape);
                u.data = randomFloats(tableSeed, 0, u.size());
                return generate(x[0].shape, [&](const K::Shape &index) {
                  return broadcastAt(u, index) >= 0.4 ? x[0][index] / 0.6 : 0;
                });
              },
          .hasGradient = false};
}

std::vector<Row> randomRows() {
  std::vector<Row> rows = {
      sampler(
          "random_uniform",
          [](X x) {
            return K::random_uniform(K::shape(x[0]), -1, 3, DType::Float32,
                                     tableSeed);
          },
          fromMinusOneToThree),
      // Whole blocks: the words are the result as they are.
      sampler(
          "random_uniform_blocks",
          [](X x) {
            return K::random_uniform(K::shape(x[0]), 0, 1, DType::Float32,
                                     tableSeed);
          },
          [](int64_t count) { return randomFloats(tableSeed, 0, count); },
          {tableBatch, 8, 32}),
      sampler(
          "random_uniform_f64",
          [](X x) {
            return K::random_uniform(K::shape(x[0]), 0, 1, DType::Float64,
                                     tableSeed);
          },
          [](int64_t count) { return randomDoubles(tableSeed, 0, count); }),
      sampler(
          "random_uniform_int",
          [](X x) {
            return K::random_uniform(K::shape(x[0]), -3, 9, DType::Int32,
                                     tableSeed);
          },
          [](int64_t count) {
            std::vector<double> u = randomDoubles(tableSeed, 0, count);
            for (double &value : u)
              value = std::floor(value * 12) - 3;
            return u;
          }),
      sampler(
          "random_normal",
          [](X x) {
            return K::random_normal(K::shape(x[0]), 1, 3, DType::Float32,
                                    tableSeed);
          },
          normals),
      sampler(
          "truncated_normal",
          [](X x) {
            return K::truncated_normal(K::shape(x[0]), 1, 3, DType::Float32,
                                       tableSeed);
          },
          truncated),
      sampler(
          "random_binomial",
          [](X x) {
            return K::random_binomial(K::shape(x[0]), 0.3, DType::Float32,
                                      tableSeed);
          },
          [](int64_t count) {
            std::vector<double> u = randomFloats(tableSeed, 0, count);
            for (double &value : u)
              value = value < 0.3f;
            return u;
          }),
      sampler(
          "random_uniform_variable",
          [](X) {
            return K::random_uniform_variable({tableBatch, 5, 7}, -1, 3,
                                              DType::Float32, "", tableSeed);
          },
          fromMinusOneToThree),
      sampler(
          "random_normal_variable",
          [](X) {
            return K::random_normal_variable({tableBatch, 5, 7}, 1, 3,
                                             DType::Float32, "", tableSeed);
          },
          normals),
      dropoutRow("dropout", std::nullopt, false),
      dropoutRow("dropout_noise_shape", K::Dims{K::None, 1, K::None}, true),
  };
  for (Row &row : rows)
    row.hasBatch = !row.name.ends_with("_variable");
  // The quantile is a polynomial that is good to 3e-7.
  for (Row &row : rows)
    row.tolerance = row.name == "truncated_normal" ? 4e-6 : 2e-6;
  return rows;
}

} // namespace keratin::optest
