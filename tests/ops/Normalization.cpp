//===- Normalization.cpp - rows of ops over rows --------------------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// softmax along `axis`.
static Values softmax(const Values &x, int64_t axis) {
  return generate(x.shape, [&](S index) {
    double total = 0;
    K::Shape at = index;
    for (at[axis] = 0; at[axis] < x.shape[axis]; ++at[axis])
      total += std::exp(x[at]);
    return std::exp(x[index]) / total;
  });
}

/// Zero mean and unit variance over the last axis.
static Values normalized(const Values &x, double epsilon) {
  int64_t extent = x.shape.back();
  return generate(x.shape, [&](S index) {
    double mean = 0, variance = 0;
    K::Shape at = index;
    for (at.back() = 0; at.back() < extent; ++at.back())
      mean += x[at] / extent;
    for (at.back() = 0; at.back() < extent; ++at.back())
      variance += (x[at] - mean) * (x[at] - mean) / extent;
    return (x[index] - mean) / std::sqrt(variance + epsilon);
  });
}

/// Channel `axis` of each index in `per`, an array of channels.
static double channel(const Values &per, S index, size_t axis) {
  return per[{index[axis]}];
}

static Row batchNorm(std::string name, K::Shape shape, int64_t axis) {
  int64_t channels = shape[axis];
  return {.name = std::move(name),
          .shapes = {shape, {channels}, {channels}, {channels}, {channels}},
          .op =
              [=](X x) {
                return K::batch_normalization(x[0], x[1], x[2], x[3], x[4],
                                              axis, 0.01);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](S i) {
                  return (x[0][i] - channel(x[1], i, axis)) /
                             std::sqrt(channel(x[2], i, axis) + 0.01) *
                             channel(x[4], i, axis) +
                         channel(x[3], i, axis);
                });
              },
          .low = 0.5,
          .high = 2,
          .weights = 4};
}

static Row biasAdd(std::string name, K::Shape shape, const char *format,
                   size_t axis) {
  return {.name = std::move(name),
          .shapes = {shape, {shape[axis]}},
          .op = [=](X x) { return K::bias_add(x[0], x[1], format); },
          .formula =
              [=](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](S i) {
                  return x[0][i] + channel(x[1], i, axis);
                });
              },
          .weights = 1};
}

std::vector<Row> normalizationRows() {
  return {
      {.name = "softmax",
       .shapes = {{tableBatch, 37}},
       .op = [](X x) { return K::softmax(x[0]); },
       .formula = [](const std::vector<Values> &x) { return softmax(x[0], 1); },
       .low = -8,
       .high = 8},
      {.name = "softmax_inner_axis",
       .shapes = {{tableBatch, 5, 6}},
       .op = [](X x) { return K::softmax(x[0], 1); },
       .formula =
           [](const std::vector<Values> &x) { return softmax(x[0], 1); }},
      {.name = "log_softmax",
       .shapes = {{tableBatch, 9}},
       .op = [](X x) { return K::log_softmax(x[0]); },
       .formula =
           [](const std::vector<Values> &x) {
             Values y = softmax(x[0], 1);
             for (double &element : y.data)
               element = std::log(element);
             return y;
           }},
      {.name = "layer_normalization",
       .shapes = {{tableBatch, 5, 19}, {19}, {19}},
       .op =
           [](X x) {
             return K::layer_normalization(x[0], x[1], x[2], -1, 0.01);
           },
       .formula =
           [](const std::vector<Values> &x) {
             Values y = normalized(x[0], 0.01);
             return generate(y.shape, [&](S i) {
               return y[i] * channel(x[1], i, 2) + channel(x[2], i, 2);
             });
           },
       .tolerance = 4e-6,
       .weights = 2},
      {.name = "rms_normalization",
       .shapes = {{tableBatch, 19}, {19}},
       .op = [](X x) { return K::rms_normalization(x[0], x[1], -1, 0.01); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](S i) {
               double squares = 0;
               for (int64_t c = 0; c < 19; ++c)
                 squares += x[0][{i[0], c}] * x[0][{i[0], c}] / 19;
               return x[0][i] / std::sqrt(squares + 0.01) * channel(x[1], i, 1);
             });
           },
       .tolerance = 4e-6,
       .weights = 1},
      {.name = "l2_normalize",
       .shapes = {{tableBatch, 9}},
       .op = [](X x) { return K::l2_normalize(x[0], -1); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](S i) {
               double squares = 0;
               for (int64_t c = 0; c < 9; ++c)
                 squares += x[0][{i[0], c}] * x[0][{i[0], c}];
               return x[0][i] / std::sqrt(squares);
             });
           }},
      {.name = "group_normalization",
       .shapes = {{tableBatch, 5, 6}, {6}, {6}},
       .op =
           [](X x) {
             return K::group_normalization(x[0], 2, x[1], x[2], -1, 0.01);
           },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](S i) {
               double mean = 0, variance = 0;
               int64_t first = i[2] / 3 * 3;
               auto eachOfGroup = [&](auto visit) {
                 forEachIndex({5, 3}, [&](S q) {
                   visit(x[0][{i[0], q[0], first + q[1]}]);
                 });
               };
               eachOfGroup([&](double v) { mean += v / 15; });
               eachOfGroup(
                   [&](double v) { variance += (v - mean) * (v - mean) / 15; });
               return (x[0][i] - mean) / std::sqrt(variance + 0.01) *
                          channel(x[1], i, 2) +
                      channel(x[2], i, 2);
             });
           },
       .tolerance = 4e-6,
       .weights = 2},
      batchNorm("batch_normalization", {tableBatch, 4, 3, 6}, 3),
      batchNorm("batch_normalization_axis_1", {tableBatch, 6, 4, 3}, 1),
      biasAdd("bias_add", {tableBatch, 4, 5, 6}, "channels_last", 3),
      biasAdd("bias_add_channels_first", {tableBatch, 6, 4, 5},
              "channels_first", 1),
  };
}

} // namespace keratin::optest
