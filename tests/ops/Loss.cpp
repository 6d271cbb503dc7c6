//===- Loss.cpp - rows of losses ------------------------------------------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// The sum of f over `axis` of x, which goes.
template <typename F>
static Values sumOver(const Values &x, int64_t axis, F f) {
  K::Shape shape = x.shape;
  shape.erase(shape.begin() + axis);
  Values y(shape);
  forEachIndex(x.shape, [&](S index) {
    K::Shape kept = index;
    kept.erase(kept.begin() + axis);
    y[kept] += f(index);
  });
  return y;
}

static double along(const Values &perRow, K::Shape index, int64_t axis) {
  index.erase(index.begin() + axis);
  return perRow[index];
}

/// Logarithms of probabilities along `axis`, given them or logits.
static Values logsOf(const Values &x, int64_t axis, bool logits) {
  Values total =
      sumOver(x, axis, [&](S i) { return logits ? std::exp(x[i]) : x[i]; });
  return generate(x.shape, [&](S i) {
    double sum = along(total, i, axis);
    return logits ? x[i] - std::log(sum) : std::log(x[i] / sum);
  });
}

static Row categorical(std::string name, bool logits, int64_t axis) {
  return {.name = std::move(name),
          .shapes = {{tableBatch, 5, 7}, {tableBatch, 5, 7}},
          .op =
              [=](X x) {
                return K::categorical_crossentropy(x[0], x[1], logits, axis);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                int64_t at = axis < 0 ? axis + 3 : axis;
                Values logs = logsOf(x[1], at, logits);
                return sumOver(x[0], at,
                               [&](S i) { return -x[0][i] * logs[i]; });
              },
          .low = 0.1,
          .high = 1};
}

static Row sparse(std::string name, bool logits, int64_t axis,
                  K::Shape labels) {
  return {
      .name = std::move(name),
      .shapes = {std::move(labels), {tableBatch, 4, 5}},
      .op =
          [=](X x) {
            return K::sparse_categorical_crossentropy(x[0], x[1], logits, axis);
          },
      .formula =
          [=](const std::vector<Values> &x) {
            int64_t at = axis < 0 ? axis + 3 : axis;
            // Keras divides probabilities by their sum.
            Values logs = logsOf(x[1], at, logits);
            Values chosen(x[1].shape);
            int64_t row = 0;
            K::Shape rows = x[1].shape;
            rows.erase(rows.begin() + at);
            forEachIndex(rows, [&](S index) {
              K::Shape i = index;
              i.insert(i.begin() + at, static_cast<int64_t>(x[0].data[row++]));
              chosen[i] = -logs[i];
            });
            return sumOver(chosen, at, [&](S i) { return chosen[i]; });
          },
      .low = 0.1,
      .high = 0.9,
      .dtypes = {DType::Int32}};
}

static Row binary(std::string name, bool logits) {
  return {.name = std::move(name),
          .shapes = {{tableBatch, 7}, {tableBatch, 7}},
          .op = [=](X x) { return K::binary_crossentropy(x[0], x[1], logits); },
          .formula =
              [=](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](S i) {
                  double p = x[1][i];
                  if (logits)
                    p = 1 / (1 + std::exp(-p));
                  else
                    // Keras adds its epsilon to what it takes the logarithm of.
                    return -x[0][i] * std::log(p + 1e-7) -
                           (1 - x[0][i]) * std::log(1 - p + 1e-7);
                  return -x[0][i] * std::log(p) -
                         (1 - x[0][i]) * std::log(1 - p);
                });
              },
          .low = 0.1,
          .high = 0.9};
}

std::vector<Row> lossRows() {
  return {
      categorical("categorical_crossentropy", false, -1),
      categorical("categorical_crossentropy_axis", false, 1),
      categorical("categorical_crossentropy_logits", true, -1),
      sparse("sparse_categorical_crossentropy", false, -1, {tableBatch, 4}),
      sparse("sparse_categorical_crossentropy_column", false, -1,
             {tableBatch, 4, 1}),
      sparse("sparse_categorical_crossentropy_axis", false, 1, {tableBatch, 5}),
      sparse("sparse_categorical_crossentropy_logits", true, -1,
             {tableBatch, 4}),
      binary("binary_crossentropy", false),
      binary("binary_crossentropy_logits", true),
  };
}

} // namespace keratin::optest
