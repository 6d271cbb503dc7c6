//===- Loop.cpp - rows of ops that step through time ----------------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// h[t] = tanh(x[t] w + h[t - 1] u), with the states kept where the mask is
/// false; all h in the order of processing.
static Values simpleRnn(const std::vector<Values> &x, bool backwards,
                        const Values *mask) {
  int64_t batch = x[0].shape[0], steps = x[0].shape[1];
  int64_t features = x[0].shape[2], units = x[1].shape[1];
  Values h({batch, steps, units});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t step = 0; step < steps; ++step) {
      int64_t t = backwards ? steps - 1 - step : step;
      for (int64_t unit = 0; unit < units; ++unit) {
        double sum = 0;
        for (int64_t f = 0; f < features; ++f)
          sum += x[0][{b, t, f}] * x[1][{f, unit}];
        for (int64_t from = 0; step > 0 && from < units; ++from)
          sum += h[{b, step - 1, from}] * x[2][{from, unit}];
        double before = step > 0 ? h[{b, step - 1, unit}] : 0;
        bool keeps = mask && (*mask)[{b, t}] == 0;
        h[{b, step, unit}] = keeps ? before : std::tanh(sum);
      }
    }
  return h;
}

static K::Tensor applyRnn(X x, bool backwards, const K::Tensor &mask) {
  auto step = [&](const K::Tensor &input, const K::Tensors &states) {
    K::Tensor h = K::tanh(K::dot(input, x[1]) + K::dot(states[0], x[2]));
    return std::pair(h, K::Tensors{h});
  };
  K::Tensor zero = K::zeros_like(K::dot(K::sum(x[0], 1), x[1]), K::dtype(x[0]));
  K::RnnOptions options;
  options.go_backwards = backwards;
  options.mask = mask;
  return K::rnn(step, x[0], {zero}, options).outputs;
}

static Row rnn(std::string name, bool backwards, bool masked) {
  Row row = {.name = std::move(name),
             .shapes = {{tableBatch, 4, 5}, {5, 6}, {6, 6}},
             .op =
                 [=](X x) {
                   return applyRnn(x, backwards, masked ? x[3] : K::Tensor());
                 },
             .formula =
                 [=](const std::vector<Values> &x) {
                   return simpleRnn(x, backwards, masked ? &x[3] : nullptr);
                 },
             .low = -1,
             .high = 1,
             .tolerance = 4e-6,
             .weights = 2,
             .hasGradient = false};
  if (masked) {
    row.shapes.push_back({tableBatch, 4});
    row.dtypes = {DType::Float32, DType::Float32, DType::Float32, DType::Bool};
    row.weights = 0;
  }
  return row;
}

std::vector<Row> loopRows() {
  return {rnn("rnn", false, false), rnn("rnn_backwards", true, false),
          rnn("rnn_masked", false, true)};
}

} // namespace keratin::optest
