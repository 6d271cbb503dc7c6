//===- GradientTest.cpp - every row has the gradient of its formula -------===//
//
// Gradients are computed in float64 and compared with central differences: of
// the formula for the first, of the first for the second.
//
//===----------------------------------------------------------------------===//
#include "OpRun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace keratin;
using namespace keratin::optest;

namespace {

/// Near the cube root of the epsilon of double.
constexpr double h = 1e-5;

/// Numbers that are unlike each other, so that each element counts by itself.
Values unlike(const K::Shape &shape, double first = 1) {
  return generate(shape, [&, n = 0](const K::Shape &) mutable {
    return std::sin(first + n++);
  });
}

double inner(const Values &a, const Values &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a.data[i] * b.data[i];
  return sum;
}

/// A row's op in a graph, its inputs all placeholders, and the gradients of
/// sum(y * cotangent), which is the last input.
struct Backward {
  Backward(const Row &row, int64_t batch, bool dynamic) {
    values = row.inputs(batch);
    for (size_t i = 0; i < values.size(); ++i) {
      bool isFloat = row.dtype(i) == DType::Float32;
      DType dtype = isFloat ? DType::Float64 : row.dtype(i);
      K::Shape shape = values[i].shape;
      if (dynamic && row.isBatched(i))
        shape[0] = K::None;
      inputs.push_back(K::placeholder(shape, dtype));
      arrays.push_back(toArray(values[i], dtype));
      if (isFloat) {
        wrt.push_back(inputs.back());
        differentiable.push_back(i);
      }
    }
    y = row.op(inputs);
    result = unlike(row.formula(values).shape);
    cotangent = K::placeholder(K::int_shape(y), DType::Float64);
    inputs.push_back(cotangent);
    arrays.push_back(toArray(result, DType::Float64));
    gradients = K::gradients(K::sum(y * cotangent), wrt);
  }

  K::GraphScope scope;
  std::vector<Values> values;
  K::Tensors inputs, wrt;
  std::vector<Array> arrays;
  std::vector<size_t> differentiable; ///< which of the row's inputs wrt are
  K::Tensor y, cotangent;
  Values result{{}}; ///< the value of the cotangent
  K::Tensors gradients;
};

/// Derivatives of sum(formula(inputs) * cotangent): by elements of one input,
/// few enough to take little time, and by all of its elements at once.
struct Differences {
  struct Slope {
    Values direction;
    double expected;
  };
  std::vector<Slope> slopes;
  double largest = 0; ///< magnitude of a slope

  Differences(const Row &row, std::vector<Values> inputs, size_t which,
              const Values &cotangent) {
    constexpr int64_t mostElements = 12;
    Values &x = inputs[which];
    const Values start = x;
    auto slopeAlong = [&](const Values &direction) {
      auto loss = [&](double step) {
        for (int64_t i = 0; i < x.size(); ++i)
          x.data[i] = start.data[i] + step * direction.data[i];
        return inner(row.formula(inputs), cotangent);
      };
      return (loss(h) - loss(-h)) / (2 * h);
    };
    std::mt19937 random(which + 1);
    std::vector<int64_t> elements(x.size());
    for (int64_t i = 0; i < x.size(); ++i)
      elements[i] = i;
    if (x.size() > mostElements) {
      std::shuffle(elements.begin(), elements.end(), random);
      elements.resize(mostElements);
    }
    for (int64_t element : elements) {
      Values direction(x.shape);
      direction.data[element] = 1;
      slopes.push_back({direction, slopeAlong(direction)});
    }
    Values all = unlike(x.shape, 2);
    slopes.push_back({all, slopeAlong(all)});
    for (const Slope &slope : slopes)
      largest = std::max(largest, std::abs(slope.expected));
  }

  void expect(const Array &gradient, const K::Shape &shape) const {
    ASSERT_EQ(gradient.shape(), shape);
    for (const Slope &slope : slopes) {
      double actual = 0, size = 0;
      for (int64_t i = 0; i < gradient.size(); ++i)
        if (slope.direction.data[i] != 0) {
          actual += gradient.at(i) * slope.direction.data[i];
          ++size;
        }
      EXPECT_NEAR(actual, slope.expected, 1e-6 * largest * std::sqrt(size));
    }
  }
};

class GradientTest : public testing::TestWithParam<Row> {};

/// Compares gradients, which are the values of `backward.gradients`, with the
/// formula.
void expectOfTheFormula(const Row &row, const Backward &backward,
                        const Array *gradients) {
  for (size_t input : backward.differentiable) {
    SCOPED_TRACE("input " + std::to_string(input));
    Differences(row, backward.values, input, backward.result)
        .expect(*gradients++, backward.values[input].shape);
  }
}

// -O0 is compared with HasItsOwnGradient where there is one, by the same code.
// -O2 is what the gradient for any batch is computed with. Kernels of known
// extents are others where there are weights.
TEST_P(GradientTest, IsThatOfTheFormula) {
  const Row &row = GetParam();
  if (!row.hasGradient)
    return;
  Backward backward(row, tableBatch, /*dynamic=*/false);
  for (const K::Tensor &gradient : backward.gradients)
    ASSERT_TRUE(gradient);
  K::Function function = K::function(backward.inputs, backward.gradients);
  bool unoptimized = !row.hasSecondGradient;
  bool optimized = !row.hasBatch || row.weights != 0;
  for (bool optimize : {false, true}) {
    if (optimize ? !optimized : !unoptimized)
      continue;
    SCOPED_TRACE(optimize ? "-O2" : "-O0");
    K::CompileSettings settings;
    settings.optimize = optimize;
    function.configure(settings);
    expectOfTheFormula(row, backward, function(backward.arrays).data());
  }
}

TEST_P(GradientTest, IsThatOfTheFormulaForAnyBatch) {
  const Row &row = GetParam();
  if (!row.hasGradient || !row.hasBatch)
    return;
  TemporaryDirectory directory;
  std::string prefix = directory.path / "op";
  {
    Backward backward(row, tableBatch, /*dynamic=*/true);
    K::Shape shape = K::int_shape(backward.y);
    if (std::count(shape.begin() + !shape.empty(), shape.end(), K::None))
      return; // the cotangent has its batch elsewhere than first
    K::SaveOptions options;
    options.name = "op";
    options.emit = "so";
    K::function(backward.inputs, backward.gradients).save(prefix, options);
  }
  constexpr int64_t batch = 5;
  Backward backward(row, batch, /*dynamic=*/false);
  std::vector<Array> outputs;
  for (size_t input : backward.differentiable)
    outputs.emplace_back(DType::Float64, backward.values[input].shape);
  runArtefact(prefix + ".so", batch, backward.arrays, outputs);
  expectOfTheFormula(row, backward, outputs.data());
}

/// The second derivatives along one direction v are the gradient of the slope
/// along v, and the change of the gradient along v.
TEST_P(GradientTest, HasItsOwnGradient) {
  const Row &row = GetParam();
  if (!row.hasGradient || !row.hasSecondGradient)
    return;
  Backward backward(row, tableBatch, /*dynamic=*/false);
  K::Tensor slope;
  std::vector<Values> directions;
  for (size_t i = 0; i < backward.gradients.size(); ++i) {
    const Values &x = backward.values[backward.differentiable[i]];
    directions.push_back(unlike(x.shape, 3 + i));
    K::Tensor term =
        K::sum(backward.gradients[i] *
               K::constant(toArray(directions.back(), DType::Float64)));
    slope = slope ? slope + term : term;
  }
  // The slope may not depend on an input: then its gradient is None.
  K::Tensors second = K::gradients(slope, backward.wrt), outputs;
  for (const K::Tensor &gradient : second)
    if (gradient)
      outputs.push_back(gradient);
  size_t number = outputs.size();
  outputs.insert(outputs.end(), backward.gradients.begin(),
                 backward.gradients.end());
  K::Function function = K::function(backward.inputs, outputs);
  K::CompileSettings settings;
  settings.optimize = false;
  function.configure(settings);

  std::vector<Array> actual = function(backward.arrays);
  expectOfTheFormula(row, backward, actual.data() + number);
  auto gradientsAt = [&](double step) {
    std::vector<Array> moved = backward.arrays;
    for (size_t i = 0; i < directions.size(); ++i) {
      Values x = backward.values[backward.differentiable[i]];
      for (int64_t element = 0; element < x.size(); ++element)
        x.data[element] += step * directions[i].data[element];
      moved[backward.differentiable[i]] = toArray(x, DType::Float64);
    }
    return function(moved);
  };
  std::vector<Array> above = gradientsAt(h), below = gradientsAt(-h);
  size_t next = 0;
  for (size_t i = 0; i < second.size(); ++i) {
    SCOPED_TRACE("input " + std::to_string(backward.differentiable[i]));
    Values expected(backward.values[backward.differentiable[i]].shape);
    double largest = 0;
    for (int64_t element = 0; element < expected.size(); ++element) {
      double high = above[number + i].at(element);
      double low = below[number + i].at(element);
      expected.data[element] = (high - low) / (2 * h);
      largest = std::max(largest, std::abs(high));
    }
    Array found =
        second[i] ? actual[next++] : Array(DType::Float64, expected.shape);
    ASSERT_EQ(found.shape(), expected.shape);
    for (int64_t element = 0; element < expected.size(); ++element) {
      largest = std::max(largest, std::abs(expected.data[element]));
      // Rounding of the gradients, over 2 h, is part of the differences.
      EXPECT_NEAR(found.at(element), expected.data[element], 1e-6 * largest);
    }
  }
}

TEST_P(GradientTest, IsNoneWhereThereIsNone) {
  const Row &row = GetParam();
  if (row.hasGradient)
    return;
  K::GraphScope scope;
  K::Tensors inputs;
  std::vector<Values> values = row.inputs(tableBatch);
  for (size_t i = 0; i < values.size(); ++i)
    inputs.push_back(K::placeholder(values[i].shape, row.dtype(i)));
  for (const K::Tensor &gradient : K::gradients(row.op(inputs), inputs))
    EXPECT_FALSE(gradient);
}

TEST(MaxPoolGradient, GoesToTheFirstOfEqualElements) {
  K::GraphScope scope;
  K::Tensor x = K::placeholder({1, 4, 4, 1});
  K::Tensor y = K::pool2d(x, {2, 2}, {2, 2}, "valid", "channels_last", "max");
  K::Function gradient = K::function({x}, K::gradients(y, {x}));
  Array image = Array::of<float>(
      {1, 4, 4, 1}, {0, 0, 1, 2, 0, 0, 2, 2, 3, 4, -1, -2, 4, 4, -1, -1});
  std::vector<float> expected = {1, 0, 0, 1, 0, 0, 0, 0,
                                 0, 1, 1, 0, 0, 0, 0, 0};
  Array actual = gradient({image})[0];
  for (int64_t i = 0; i < actual.size(); ++i)
    EXPECT_EQ(actual.at(i), expected[i]) << "element " << i;
}

TEST(MaxPoolGradient, IsNowhereInThePaddingNorWhereAllIsNaN) {
  K::GraphScope scope;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float least = -std::numeric_limits<float>::infinity();
  K::Tensor x = K::placeholder({1, 3, 1});
  K::Tensor y = K::pool1d(x, 3, 1, "same", "channels_last", "max");
  K::Function gradient = K::function({x}, K::gradients(y, {x}));
  Array lowest = Array::of<float>({1, 3, 1}, {least, least, least});
  Array unknown = Array::of<float>({1, 3, 1}, {nan, nan, nan});
  Array ofLowest = gradient({lowest})[0], ofUnknown = gradient({unknown})[0];
  std::vector<float> expected = {2, 1, 0};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ofLowest.at(i), expected[i]) << "element " << i;
    EXPECT_EQ(ofUnknown.at(i), 0) << "element " << i;
  }
}

TEST(MaxPoolGradient, IsNowhereInAWindowWithNaN) {
  K::GraphScope scope;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float least = -std::numeric_limits<float>::infinity();
  K::Tensor x = K::placeholder({1, 6, 1});
  K::Tensor y = K::pool1d(x, 2, 2, "valid", "channels_last", "max");
  K::Function gradient = K::function({x}, K::gradients(y, {x}));
  Array image = Array::of<float>({1, 6, 1}, {nan, 1, least, least, 2, nan});
  Array actual = gradient({image})[0];
  std::vector<float> expected = {0, 0, 1, 0, 0, 0};
  for (int64_t i = 0; i < actual.size(); ++i)
    EXPECT_EQ(actual.at(i), expected[i]) << "element " << i;
}

/// A window that covers all from every position, with a hundred thousand times
/// as much padding as there is image.
TEST(PoolGradient, CostsNoMoreForWindowsFarLargerThanTheImage) {
  for (const std::string mode : {"max", "avg"}) {
    K::GraphScope scope;
    K::Tensor x = K::placeholder({1, 2, 2, 1});
    K::Tensor y =
        K::pool2d(x, {100'000, 100'000}, {1, 1}, "same", "channels_last", mode);
    K::Tensors results = K::gradients(y, {x});
    results.push_back(y);
    K::Function function = K::function({x}, results);
    Array image = Array::of<float>({1, 2, 2, 1}, {1, 5, 2, 4});
    std::vector<Array> actual = function({image});
    bool isMax = mode == "max";
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(actual[0].at(i), !isMax ? 1 : i == 1 ? 4 : 0) << mode << i;
      EXPECT_EQ(actual[1].at(i), isMax ? 5 : 3) << mode << i;
    }
  }
}

TEST(PoolGradient, IsRefusedForTooManyTerms) {
  K::GraphScope scope;
  K::Tensor x = K::placeholder({1, 200, 200, 1});
  K::Tensor y =
      K::pool2d(x, {100, 100}, {1, 1}, "same", "channels_last", "max");
  K::Function gradient = K::function({x}, K::gradients(y, {x}));
  Array image = Array::of<float>({1, 200, 200, 1}, std::vector<float>(40'000));
  EXPECT_THAT([&] { gradient({image}); },
              testing::ThrowsMessage<keratin::Error>(
                  testing::HasSubstr("more than 4096 windows see an element")));
}

INSTANTIATE_TEST_SUITE_P(Table, GradientTest, testing::ValuesIn(allRows()),
                         [](const testing::TestParamInfo<Row> &info) {
                           return info.param.name;
                         });

} // namespace
