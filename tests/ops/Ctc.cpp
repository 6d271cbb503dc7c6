//===- Ctc.cpp - rows of connectionist temporal classification ------------===//
#include "OpTable.h"

#include <cmath>

namespace keratin::optest {

using X = const K::Tensors &;

/// Minus the logarithm of the summed probability of all paths, enumerated, that
/// give the labels: steps <= 5.
static double enumeratedCost(const std::vector<std::vector<double>> &p,
                             const std::vector<int64_t> &labels) {
  auto classes = static_cast<int64_t>(p[0].size()), blank = classes - 1;
  std::vector<int64_t> path(p.size(), 0);
  double total = 0;
  while (true) {
    std::vector<int64_t> found;
    double probability = 1;
    for (size_t t = 0; t < path.size(); ++t) {
      probability *= p[t][path[t]];
      if (path[t] != blank && (t == 0 || path[t] != path[t - 1]))
        found.push_back(path[t]);
    }
    if (found == labels)
      total += probability;
    size_t t = 0;
    while (t < path.size() && ++path[t] == classes)
      path[t++] = 0;
    if (t == path.size())
      return -std::log(total);
  }
}

static Values cost(const std::vector<Values> &x) {
  const Values &labels = x[0], &y = x[1], &steps = x[2], &counts = x[3];
  int64_t samples = y.shape[0], classes = y.shape[2];
  Values result({samples, 1});
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<std::vector<double>> p;
    for (int64_t t = 0; t < steps[{sample, 0}]; ++t) {
      p.emplace_back();
      double total = 0;
      for (int64_t i = 0; i < classes; ++i) {
        p.back().push_back(y[{sample, t, i}] + 1e-7);
        total += p.back().back();
      }
      for (double &value : p.back())
        value /= total;
    }
    std::vector<int64_t> own;
    for (int64_t i = 0; i < counts[{sample, 0}]; ++i)
      own.push_back(static_cast<int64_t>(labels[{sample, i}]));
    result[{sample, 0}] = enumeratedCost(p, own);
  }
  return result;
}

std::vector<Row> ctcRows() {
  // Lengths of 0 to 1 more than the least, labels of two classes that repeat.
  auto lengths = [](const K::Tensor &x, int64_t least) {
    return K::cast(x, DType::Int32) + least;
  };
  auto shifted = [](Values x, double by) {
    for (double &value : x.data)
      value += by;
    return x;
  };
  return {
      {.name = "ctc_batch_cost",
       .shapes = {{tableBatch, 2},
                  {tableBatch, 5, 3},
                  {tableBatch, 1},
                  {tableBatch, 1}},
       .op =
           [=](X x) {
             return K::ctc_batch_cost(x[0], x[1], lengths(x[2], 4),
                                      lengths(x[3], 1));
           },
       .formula =
           [=](const std::vector<Values> &x) {
             return cost({x[0], x[1], shifted(x[2], 4), shifted(x[3], 1)});
           },
       .low = 0.1,
       .high = 1,
       .classes = 2,
       .dtypes = {DType::Int32, DType::Float32, DType::Int32, DType::Int32}},
      {.name = "ctc_label_dense_to_sparse",
       .shapes = {{tableBatch, 4}, {tableBatch}},
       .op = [](X x) { return K::ctc_label_dense_to_sparse(x[0], x[1]); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate(x[0].shape, [&](const K::Shape &i) {
               return i[1] < x[1][{i[0]}] ? x[0][i] : 0;
             });
           },
       .dtypes = {DType::Int32, DType::Int32},
       .hasGradient = false,
       .hasBatch = false}};
}

} // namespace keratin::optest
