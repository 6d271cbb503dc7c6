//===- Fill.cpp - rows of what depends on shapes and phases only ----------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

static Row fill(std::string name, Op op,
                std::function<double(const Values &, S)> element,
                K::Shape shape = {tableBatch, 4}) {
  return {.name = std::move(name),
          .shapes = {std::move(shape)},
          .op = std::move(op),
          .formula =
              [element = std::move(element)](const std::vector<Values> &x) {
                return generate(x[0].shape,
                                [&](S i) { return element(x[0], i); });
              },
          .hasGradient = false};
}

static Row rowOf(std::string name, std::vector<K::Shape> shapes, Op op,
                 Formula formula) {
  return {.name = std::move(name),
          .shapes = std::move(shapes),
          .op = std::move(op),
          .formula = std::move(formula)};
}

/// One row each of what Keras has a function for and needs no family.
std::vector<Row> fillRows() {
  std::vector<Row> rows = {
      fill(
          "zeros_like", [](X x) { return K::zeros_like(x[0]); },
          [](const Values &, S) { return 0.0; }),
      fill(
          "ones_like", [](X x) { return K::ones_like(x[0]); },
          [](const Values &, S) { return 1.0; }),
      fill(
          "eye", [](X x) { return K::zeros_like(x[0]) + K::eye(4); },
          [](const Values &, S i) { return double(i[1] == i[2]); },
          {tableBatch, 4, 4}),
      fill(
          "arange",
          [](X x) {
            return K::zeros_like(x[0]) +
                   K::cast(K::arange(3, 14, 3), DType::Float32);
          },
          [](const Values &, S i) { return 3.0 + 3 * i[1]; }),
      // From 2 to below 2 + batch, as the extent of x.
      fill(
          "arange_computed",
          [](X x) {
            K::Tensor batch = K::getitem(K::shape(x[0]), {0});
            K::Tensor count = K::arange(K::Tensor(2), batch + 2);
            return K::zeros_like(x[0]) +
                   K::expand_dims(K::cast(count, DType::Float32), 1);
          },
          [](const Values &, S i) { return 2.0 + i[0]; }),
      fill(
          "size",
          [](X x) {
            return K::zeros_like(x[0]) + K::cast(K::size(x[0]), DType::Float32);
          },
          [](const Values &x, S) { return double(x.size()); }),
  };
  auto add = [&](Row row, bool hasBatch) {
    row.hasBatch = hasBatch;
    rows.push_back(std::move(row));
  };
  add(fill(
          "zeros",
          [](X x) {
            return K::zeros_like(x[0]) + K::zeros({3, 4}, K::dtype(x[0]));
          },
          [](const Values &, S) { return 0.0; }),
      false);
  add(fill(
          "ones",
          [](X x) {
            return K::zeros_like(x[0]) + K::ones({4}, K::dtype(x[0]));
          },
          [](const Values &, S) { return 1.0; }),
      true);
  add(fill(
          "constant",
          [](X x) {
            return K::zeros_like(x[0]) + K::constant(2.5, K::dtype(x[0]), {4});
          },
          [](const Values &, S) { return 2.5; }),
      true);
  add(fill(
          "full",
          [](X x) {
            return K::full({K::extent(x[0], 0), 4}, 1.5, K::dtype(x[0]));
          },
          [](const Values &, S) { return 1.5; }),
      true);
  add(fill(
          "full_like", [](X x) { return K::full_like(x[0], -2); },
          [](const Values &, S) { return -2.0; }),
      true);
  Row identity = fill(
      "identity", [](X x) { return K::identity(x[0]) * 1; },
      [](const Values &x, S i) { return x[i]; });
  identity.hasGradient = true;
  rows.push_back(identity);
  // Nobody feeds a phase: it is 0.
  Row phase = fill(
      "in_train_phase",
      [](X x) { return K::in_train_phase(x[0] * 2, x[0] * 3); },
      [](const Values &x, S i) { return 3 * x[i]; });
  phase.hasGradient = true;
  rows.push_back(phase);
  phase.name = "learning_phase";
  phase.op = [](X x) {
    return x[0] * 3 + K::cast(K::learning_phase(), K::dtype(x[0]));
  };
  rows.push_back(phase);
  // What is printed is the value, and goes nowhere here.
  Row print = phase;
  print.name = "print_tensor";
  print.op = [](X x) {
    K::set_print_sink([](const std::string &, const Array &) {});
    return K::print_tensor(x[0] * 3, "x") * 1;
  };
  rows.push_back(print);
  Row test = phase;
  test.name = "in_test_phase";
  test.op = [](X x) { return K::in_test_phase(x[0] * 3, x[0] * 2); };
  rows.push_back(test);

  // What a variable has, and what an update gives it, at the first call.
  auto variable = [](X x) {
    return K::variable(Array::full({4}, 3, K::dtype(x[0])));
  };
  auto ofRow = [](const K::Tensor &x) { return K::sum(x, {0}); };
  auto changed = [&](const char *name, Op op,
                     std::function<double(double sum)> element) {
    Row row = rowOf(name, {{tableBatch, 4}}, std::move(op),
                    [=](const std::vector<Values> &x) {
                      return generate({4}, [&](S i) {
                        double sum = 0;
                        for (int64_t n = 0; n < x[0].shape[0]; ++n)
                          sum += x[0][{n, i[0]}];
                        return element(sum);
                      });
                    });
    row.hasBatch = false;
    row.state = Array::full({4}, 3, DType::Float32);
    rows.push_back(std::move(row));
  };
  changed(
      "variable", [=](X x) { return ofRow(x[0]) * variable(x); },
      [](double sum) { return 3 * sum; });
  changed(
      "update",
      [=](X x) {
        return K::update(variable(x), K::stop_gradient(ofRow(x[0])));
      },
      [](double sum) { return sum; });
  changed(
      "update_add",
      [=](X x) {
        return K::update_add(variable(x), K::stop_gradient(ofRow(x[0])));
      },
      [](double sum) { return 3 + sum; });
  changed(
      "update_sub",
      [=](X x) {
        return K::update_sub(variable(x), K::stop_gradient(ofRow(x[0])));
      },
      [](double sum) { return 3 - sum; });
  changed(
      "moving_average_update",
      [=](X x) {
        return K::moving_average_update(variable(x),
                                        K::stop_gradient(ofRow(x[0])), 0.75);
      },
      [](double sum) { return 3 - (3 - sum) * 0.25; });
  for (Row &row : rows)
    if (row.name.starts_with("update") || row.name == "moving_average_update")
      row.hasGradient = false; // of what is assigned from outside of the graph

  // The condition selects rows.
  Row choice = rowOf(
      "switch", {{tableBatch}, {tableBatch, 4}, {tableBatch, 4}},
      [](X x) { return K::switch_(x[0], x[1], x[2]); },
      [](const std::vector<Values> &x) {
        return generate(x[1].shape,
                        [&](S i) { return x[0][{i[0]}] ? x[1][i] : x[2][i]; });
      });
  choice.dtypes = {DType::Bool};
  rows.push_back(choice);

  rows.push_back(rowOf(
      "spatial_3d_padding", {{tableBatch, 2, 3, 2, 2}},
      [](X x) {
        return K::spatial_3d_padding(x[0], {{1, 0}, {0, 2}, {1, 1}},
                                     "channels_last");
      },
      [](const std::vector<Values> &x) {
        K::Shape shape = x[0].shape;
        shape[1] += 1, shape[2] += 2, shape[3] += 2;
        return generate(shape, [&](S i) {
          K::Shape from = {i[0], i[1] - 1, i[2], i[3] - 1, i[4]};
          for (size_t axis = 1; axis < 4; ++axis)
            if (from[axis] < 0 || from[axis] >= x[0].shape[axis])
              return 0.0;
          return x[0][from];
        });
      }));

  rows.push_back(rowOf(
      "resize_volumes", {{tableBatch, 2, 3, 2, 2}},
      [](X x) { return K::resize_volumes(x[0], 2, 1, 3, "channels_last"); },
      [](const std::vector<Values> &x) {
        K::Shape shape = x[0].shape;
        shape[1] *= 2, shape[3] *= 3;
        return generate(shape, [&](S i) {
          return x[0][{i[0], i[1] / 2, i[2], i[3] / 3, i[4]}];
        });
      }));

  // Normalized, mean and variance in one sum; of a channel, or of single
  // elements.
  for (bool ofChannels : {true, false}) {
    Row images = rowOf(
        ofChannels ? "normalize_batch_in_training_images"
                   : "normalize_batch_in_training_elements",
        {{5, 3, 4}},
        [ofChannels](X x) {
          K::BatchStatistics s = K::normalize_batch_in_training(
              x[0], {}, {}, ofChannels ? K::Axes({0, 2}) : K::Axes(0), 0.01);
          K::Tensor sum = s.mean * 3 + s.variance * 5;
          return s.normalized + (ofChannels ? K::expand_dims(sum, 1) : sum);
        },
        [ofChannels](const std::vector<Values> &x) {
          return generate(x[0].shape, [&](S i) {
            double count = ofChannels ? 20 : 5, mean = 0, variance = 0;
            auto overAll = [&](auto visit) {
              for (int64_t n = 0; n < 5; ++n)
                for (int64_t c = 0; c < (ofChannels ? 4 : 1); ++c)
                  visit(x[0][{n, i[1], ofChannels ? c : i[2]}]);
            };
            overAll([&](double value) { mean += value / count; });
            overAll([&](double value) {
              variance += std::pow(value - mean, 2) / count;
            });
            return (x[0][i] - mean) / std::sqrt(variance + 0.01) + 3 * mean +
                   5 * variance;
          });
        });
    images.hasBatch = false;
    images.tolerance = 4e-6;
    rows.push_back(images);
  }

  // Normalized, mean and variance in one sum.
  Row batch = rowOf(
      "normalize_batch_in_training", {{6, 4}, {4}, {4}},
      [](X x) {
        K::BatchStatistics s =
            K::normalize_batch_in_training(x[0], x[1], x[2], 0, 0.01);
        return s.normalized + s.mean * 3 + s.variance * 5;
      },
      [](const std::vector<Values> &x) {
        return generate(x[0].shape, [&](S i) {
          double mean = 0, variance = 0;
          for (int64_t j = 0; j < 6; ++j)
            mean += x[0][{j, i[1]}] / 6;
          for (int64_t j = 0; j < 6; ++j)
            variance += std::pow(x[0][{j, i[1]}] - mean, 2) / 6;
          return (x[0][i] - mean) / std::sqrt(variance + 0.01) * x[1][{i[1]}] +
                 x[2][{i[1]}] + 3 * mean + 5 * variance;
        });
      });
  batch.hasBatch = false;
  batch.tolerance = 4e-6;
  rows.push_back(batch);

  // A sparse matrix is the dense one to all others.
  K::CsrArray matrix = {Array::of<float>({4}, {1, 2, 3, 4}),
                        Array::of<int32_t>({4}, {0, 2, 1, 2}),
                        Array::of<int32_t>({4}, {0, 2, 2, 4}),
                        {3, 3}};
  const Values whole = [] {
    Values values({3, 3});
    values.data = {1, 0, 2, 0, 0, 0, 0, 3, 4};
    return values;
  }();
  Row product = rowOf(
      "dot_sparse", {{3, 5}},
      [=](X x) {
        DType type = K::dtype(x[0]);
        return K::dot(K::variable(matrix, type), x[0]);
      },
      [=](const std::vector<Values> &x) {
        return generate({3, 5}, [&](S i) {
          double sum = 0;
          for (int64_t k = 0; k < 3; ++k)
            sum += whole[{i[0], k}] * x[0][{k, i[1]}];
          return sum;
        });
      });
  product.hasBatch = false;
  rows.push_back(product);
  Row dense = rowOf(
      "to_dense", {{3, 3}},
      [=](X x) {
        DType type = K::dtype(x[0]);
        return K::to_dense(K::variable(matrix, type)) * x[0];
      },
      [=](const std::vector<Values> &x) {
        return generate({3, 3}, [&](S i) { return whole[i] * x[0][i]; });
      });
  dense.hasBatch = false;
  rows.push_back(dense);
  return rows;
}

} // namespace keratin::optest
