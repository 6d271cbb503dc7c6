//===- Reduce.cpp - rows of reductions ------------------------------------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace keratin::optest {

/// Applies `f` to the list of elements that fall together when `axes` go.
static Values
reduce(const Values &x, const std::vector<int64_t> &axes, bool keepdims,
       const std::function<double(const std::vector<double> &)> &f) {
  auto isReduced = [&](int64_t axis) {
    return axes.empty() || std::ranges::count(axes, axis) ||
           std::ranges::count(axes, axis - x.rank());
  };
  K::Shape kept, dropped, inner;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    bool reduced = isReduced(axis);
    kept.push_back(reduced ? 1 : x.shape[axis]);
    inner.push_back(reduced ? x.shape[axis] : 1);
    if (!reduced)
      dropped.push_back(x.shape[axis]);
  }
  Values result = generate(kept, [&](const K::Shape &outer) {
    std::vector<double> elements;
    forEachIndex(inner, [&](K::Shape index) {
      for (size_t axis = 0; axis < index.size(); ++axis)
        index[axis] += outer[axis];
      elements.push_back(x[index]);
    });
    return f(elements);
  });
  if (!keepdims)
    result.shape = dropped;
  return result;
}

using List = const std::vector<double> &;
using Reduction = K::Tensor (*)(const K::Tensor &, const K::Axes &, bool);

/// Over the last axis, over two axes kept, and over everything.
static std::vector<Row> reduction(const std::string &name, Reduction op,
                                  double (*f)(List), Row row = {}) {
  struct Variant {
    const char *suffix;
    std::vector<int64_t> axes;
    bool keepdims;
  };
  std::vector<Row> rows;
  for (const Variant &variant :
       {Variant{"", {-1}, false}, Variant{"_first", {1}, false},
        Variant{"_keepdims", {1, 2}, true}, Variant{"_all", {}, false}}) {
    row.name = name + variant.suffix;
    row.shapes = {{tableBatch, 5, 6}};
    row.op = [=](const K::Tensors &x) {
      K::Axes axes = variant.axes.empty() ? K::Axes() : K::Axes(variant.axes);
      return op(x[0], axes, variant.keepdims);
    };
    row.formula = [=](const std::vector<Values> &x) {
      return reduce(x[0], variant.axes, variant.keepdims, f);
    };
    rows.push_back(row);
  }
  return rows;
}

/// What reduces a function of each row of one tensor and each of another.
static Row ofPairs(const std::string &name,
                   const std::function<K::Tensor(const K::Tensor &)> &op,
                   const std::function<double(const std::vector<double> &)> &f,
                   Row row = {}) {
  row.name = name;
  row.shapes = {{tableBatch, 13, 21}, {tableBatch, 18, 21}};
  row.op = [=](const K::Tensors &x) {
    return op(K::expand_dims(x[0], 2) - K::expand_dims(x[1], 1));
  };
  row.formula = [=](const std::vector<Values> &x) {
    K::Shape shape = {x[0].shape[0], 13, 18};
    return generate(shape, [&](const K::Shape &at) {
      std::vector<double> apart;
      for (int64_t k = 0; k < 21; ++k)
        apart.push_back(x[0][{at[0], at[1], k}] - x[1][{at[0], at[2], k}]);
      return f(apart);
    });
  };
  return row;
}

static double sum(List x) { return std::accumulate(x.begin(), x.end(), 0.0); }
static double mean(List x) { return sum(x) / x.size(); }
static double variance(List x) {
  double m = mean(x), squares = 0;
  for (double element : x)
    squares += (element - m) * (element - m);
  return squares / x.size();
}
static double product(List x) {
  return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>());
}

/// argmax and argmin: the position along `axis`.
static Row arg(std::string name, K::Tensor (*op)(const K::Tensor &, int64_t),
               double (*f)(List), K::Shape shape, int64_t axis) {
  return {.name = std::move(name),
          .shapes = {std::move(shape)},
          .op = [op, axis](const K::Tensors &x) { return op(x[0], axis); },
          .formula =
              [f, axis](const std::vector<Values> &x) {
                return reduce(x[0], {axis}, false, f);
              },
          .hasGradient = false};
}

static double placeOfMost(List x) {
  return double(std::max_element(x.begin(), x.end()) - x.begin());
}
static double placeOfLeast(List x) {
  return double(std::min_element(x.begin(), x.end()) - x.begin());
}

/// f of the elements up to each one along axis 1.
static Row cumulative(std::string name,
                      K::Tensor (*op)(const K::Tensor &, int64_t),
                      double (*f)(List)) {
  return {.name = std::move(name),
          .shapes = {{tableBatch, 6}},
          .op = [op](const K::Tensors &x) { return op(x[0], 1); },
          .formula =
              [f](const std::vector<Values> &x) {
                return generate(x[0].shape, [&](K::Shape index) {
                  std::vector<double> elements;
                  for (; index[1] >= 0; --index[1])
                    elements.push_back(x[0][index]);
                  return f(elements);
                });
              }};
}

std::vector<Row> reduceRows() {
  constexpr auto argmax = [](const K::Tensor &x, int64_t axis) {
    return K::argmax(x, axis);
  };
  constexpr auto argmin = [](const K::Tensor &x, int64_t axis) {
    return K::argmin(x, axis);
  };
  std::vector<Row> rows = {
      arg("argmax", argmax, placeOfMost, {tableBatch, 5, 6}, 1),
      arg("argmin", argmin, placeOfLeast, {tableBatch, 5, 6}, 1),
      arg("argmax_of_long_rows", argmax, placeOfMost, {tableBatch, 3, 40}, 2),
      arg("argmin_of_long_rows", argmin, placeOfLeast, {tableBatch, 3, 40}, 2),
      cumulative("cumsum", K::cumsum, sum),
      cumulative("cumprod", K::cumprod, product),
      ofPairs(
          "squared_distances",
          [](const K::Tensor &x) { return K::sum(K::square(x), {-1}); },
          [](List x) {
            return std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
          },
          {.tolerance = 1e-5}),
      ofPairs(
          "distances",
          [](const K::Tensor &x) { return K::max(K::abs(x), {-1}); },
          [](List x) {
            return std::transform_reduce(
                x.begin(), x.end(), 0.0,
                [](double a, double b) { return std::max(a, b); },
                [](double a) { return std::abs(a); });
          }),
      ofPairs(
          "means_of_absolute_distances",
          [](const K::Tensor &x) { return K::exp(-K::mean(K::abs(x), {-1})); },
          [](List x) {
            return std::exp(
                -std::transform_reduce(x.begin(), x.end(), 0.0, std::plus<>(),
                                       [](double a) { return std::abs(a); }) /
                double(x.size()));
          },
          {.tolerance = 1e-5}),
  };
  auto add = [&](std::vector<Row> more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  using T = const K::Tensor &;
  using A = const K::Axes &;
  const Row flags = {.dtypes = {DType::Bool}, .hasGradient = false};
  add(reduction("sum", [](T x, A a, bool k) { return K::sum(x, a, k); }, sum,
                {.low = -1, .high = 2}));
  add(reduction("mean", [](T x, A a, bool k) { return K::mean(x, a, k); }, mean,
                {.low = -1, .high = 2}));
  add(reduction(
      "var", [](T x, A a, bool k) { return K::var(x, a, k); }, variance));
  add(reduction(
      "std", [](T x, A a, bool k) { return K::std(x, a, k); },
      [](List x) { return std::sqrt(variance(x)); }));
  add(reduction("prod", [](T x, A a, bool k) { return K::prod(x, a, k); },
                product, {.low = 0.5, .high = 1.5, .tolerance = 4e-6}));
  add(reduction(
      "max", [](T x, A a, bool k) { return K::max(x, a, k); },
      [](List x) { return *std::ranges::max_element(x); }));
  add(reduction(
      "min", [](T x, A a, bool k) { return K::min(x, a, k); },
      [](List x) { return *std::ranges::min_element(x); }));
  add(reduction(
      "logsumexp", [](T x, A a, bool k) { return K::logsumexp(x, a, k); },
      [](List x) {
        double total = 0;
        for (double element : x)
          total += std::exp(element);
        return std::log(total);
      }));
  add(reduction(
      "any", [](T x, A a, bool k) { return K::any(x, a, k); },
      [](List x) { return double(std::ranges::count(x, 1) > 0); }, flags));
  add(reduction(
      "all", [](T x, A a, bool k) { return K::all(x, a, k); },
      [](List x) { return double(std::ranges::count(x, 0) == 0); }, flags));
  return rows;
}

} // namespace keratin::optest
