//===- RandomTest.cpp - sequences and statistics of random ops ------------===//
#include "OpTable.h"
#include "Philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace keratin;
using namespace keratin::optest;

namespace {

constexpr int64_t count = 100000;

std::vector<double> valuesOf(const Array &array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.size(); ++i)
    values.push_back(array.at(i));
  return values;
}

/// The mean of f over the values.
template <typename F> double meanOf(const std::vector<double> &values, F f) {
  double sum = 0;
  for (double value : values)
    sum += f(value);
  return sum / static_cast<double>(values.size());
}

double meanOf(const std::vector<double> &values) {
  return meanOf(values, [](double x) { return x; });
}

double deviationOf(const std::vector<double> &values) {
  double mean = meanOf(values);
  return std::sqrt(
      meanOf(values, [&](double x) { return (x - mean) * (x - mean); }));
}

double correlation(const std::vector<double> &a, const std::vector<double> &b) {
  double meanA = meanOf(a), meanB = meanOf(b), sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - meanA) * (b[i] - meanB);
  return sum / static_cast<double>(a.size()) / deviationOf(a) / deviationOf(b);
}

/// Five standard errors of the mean of `count` values: with fixed seeds a test
/// either always passes or never.
double margin(double deviation) { return 5 * deviation / std::sqrt(count); }

// The vectors kat_vectors of Random123, the authors' library.
TEST(Philox, GivesTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            Words({0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            Words({0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            Words({0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

class RandomOp : public testing::Test {
protected:
  K::GraphScope scope;
};

TEST_F(RandomOp, GoesOnWithEachCall) {
  constexpr uint64_t seed = 0x123456789abcdef0;
  K::Tensor x = K::random_uniform({5, 6}, 0, 1, DType::Float32, seed);
  K::Function draw = K::function({}, {x});
  for (uint64_t call = 0; call < 3; ++call)
    EXPECT_EQ(valuesOf(draw({})[0]), randomFloats(seed, call, 30));
  EXPECT_EQ(valuesOf(K::eval(x)), randomFloats(seed, 3, 30));
}

TEST_F(RandomOp, GivesOneSampleToAllItsUsers) {
  K::Tensor x = K::random_uniform({100});
  std::vector<Array> both = K::function({}, {x + 1, x + 2})({});
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_NEAR(both[0].at(i) + 1, both[1].at(i), 1e-6);
}

TEST_F(RandomOp, GivesTheSameBitsWithoutOptimization) {
  K::Tensor x = K::random_normal({33, 7}, 0, 1, DType::Float32, 9);
  K::Tensor y = K::random_uniform({33, 7}, 0, 1, DType::Float64, 9);
  std::vector<std::vector<double>> found[2];
  for (bool optimize : {false, true}) {
    K::Function draw =
        K::function({}, {K::random_uniform({4, 1000}, 0, 1, DType::Float32, 9),
                         K::random_uniform({33, 7}, 0, 1, DType::Float64, 9)});
    K::CompileSettings settings;
    settings.optimize = optimize;
    draw.configure(settings);
    for (const Array &array : draw({}))
      found[optimize].push_back(valuesOf(array));
  }
  EXPECT_EQ(found[0], found[1]);
}

// Large enough for kernels that are split among threads.
TEST_F(RandomOp, GivesTheSameBitsForAnyNumberOfThreads) {
  auto draw = [](int codeFor) {
    constexpr uint64_t seed = 9;
    K::Tensor x = K::constant(Array::full({1000, 1003}, 1));
    K::Function function = K::function(
        {}, {K::random_uniform({1000, 1003}, -1, 1, DType::Float32, seed),
             K::random_normal({1000, 1003}, 0, 1, DType::Float32, seed),
             K::random_uniform({500, 1000}, 0, 1, DType::Float64, seed),
             K::random_uniform({1000, 1000}, 0, 9, DType::Int32, seed),
             K::dropout(x, 0.5, {}, seed)});
    K::CompileSettings settings;
    settings.threads = codeFor;
    function.configure(settings);
    return function({});
  };
  std::vector<Array> expected = draw(/*codeFor=*/1);
  for (int64_t threads : {1, 2, 3, 8}) {
    K::set_num_threads(threads);
    std::vector<Array> found = draw(/*codeFor=*/0);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(
          std::memcmp(found[i].data(), expected[i].data(),
                      static_cast<size_t>(expected[i].size() *
                                          dtypeSize(expected[i].dtype()))),
          0)
          << "output " << i << " on " << threads << " threads";
  }
  K::set_num_threads(0);
}

TEST_F(RandomOp, DrawsItsSeedFromTheSource) {
  uint64_t next = 40;
  K::set_seed_source([&] { return next++; });
  K::Tensor a = K::random_uniform({10}), b = K::random_uniform({10});
  K::set_seed_source(nullptr);
  EXPECT_EQ(next, 42u);
  EXPECT_EQ(valuesOf(K::eval(a)), randomFloats(40, 0, 10));
  EXPECT_EQ(valuesOf(K::eval(b)), randomFloats(41, 0, 10));
}

TEST_F(RandomOp, DiffersBetweenOpsAndCallsAndSeeds) {
  K::Function draw =
      K::function({}, {K::random_uniform({count}, 0, 1, DType::Float32, 1),
                       K::random_uniform({count}, 0, 1, DType::Float32, 2)});
  std::vector<Array> first = draw({}), second = draw({});
  std::vector<double> a = valuesOf(first[0]);
  for (const Array &other : {first[1], second[0], second[1]})
    EXPECT_LT(std::abs(correlation(a, valuesOf(other))), margin(1));
  // Neighbours in one sample too.
  std::vector<double> shifted(a.begin() + 1, a.end());
  a.pop_back();
  EXPECT_LT(std::abs(correlation(a, shifted)), margin(1));
}

TEST_F(RandomOp, IsUniform) {
  std::vector<double> x =
      valuesOf(K::eval(K::random_uniform({count}, 2, 5, DType::Float32, 3)));
  EXPECT_NEAR(meanOf(x), 3.5, margin(0.87));
  EXPECT_NEAR(deviationOf(x), 3 / std::sqrt(12), 0.01);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), 2);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 5);
  // Chi-squared over 100 cells: the mean is 99, the deviation 14.
  std::vector<double> cells(100);
  for (double value : x)
    ++cells[std::min<size_t>((value - 2) / 3 * 100, 99)];
  double expected = count / 100.0, chi = 0;
  for (double cell : cells)
    chi += (cell - expected) * (cell - expected) / expected;
  EXPECT_LT(chi, 170);
  EXPECT_GT(chi, 40);
}

TEST_F(RandomOp, IsNormal) {
  std::vector<double> x =
      valuesOf(K::eval(K::random_normal({count}, 1, 2, DType::Float32, 4)));
  auto moment = [&](int power) {
    return meanOf(x, [&](double v) { return std::pow((v - 1) / 2, power); });
  };
  EXPECT_NEAR(moment(1), 0, margin(1));
  EXPECT_NEAR(moment(2), 1, margin(1.5));
  EXPECT_NEAR(moment(3), 0, margin(4));
  EXPECT_NEAR(moment(4), 3, margin(10));
}

TEST_F(RandomOp, IsNormalWithinTwoDeviations) {
  std::vector<double> x =
      valuesOf(K::eval(K::truncated_normal({count}, 0, 1, DType::Float32, 5)));
  EXPECT_NEAR(meanOf(x), 0, margin(1));
  EXPECT_NEAR(deviationOf(x), 0.87962, 0.01);
  for (double value : x)
    ASSERT_LE(std::abs(value), 2);
}

TEST_F(RandomOp, IsOneWithTheProbability) {
  std::vector<double> x =
      valuesOf(K::eval(K::random_binomial({count}, 0.3, DType::Float32, 6)));
  EXPECT_NEAR(meanOf(x), 0.3, margin(0.46));
  EXPECT_TRUE(std::all_of(x.begin(), x.end(),
                          [](double v) { return v == 0 || v == 1; }));
}

TEST_F(RandomOp, KeepsTheExpectedValueInDropout) {
  K::Tensor x = K::constant(Array::full({count}, 2));
  std::vector<double> y = valuesOf(K::eval(K::dropout(x, 0.25, {}, 7)));
  EXPECT_NEAR(meanOf(y), 2, margin(1.2));
  EXPECT_NEAR(meanOf(y, [](double v) { return double(v == 0); }), 0.25,
              margin(0.44));
}

TEST_F(RandomOp, DropsTheSameInTheGradient) {
  K::Tensor x = K::constant(Array::full({200}, 2));
  K::Tensor y = K::dropout(x * 1, 0.25, {}, 7);
  K::Tensor weights = K::cast(K::arange(200), DType::Float32);
  K::Tensor v = K::variable(Array::full({200}, 2));
  K::Tensor z = K::dropout(v, 0.25, {}, 7);
  std::vector<Array> both =
      K::function({}, {z, K::gradients(K::sum(z * weights), {v})[0]})({});
  for (int64_t i = 0; i < 200; ++i)
    EXPECT_NEAR(both[1].at(i), both[0].at(i) == 0 ? 0 : i / 0.75, 1e-4);
  EXPECT_EQ(valuesOf(K::eval(y)), valuesOf(both[0]));
}

TEST_F(RandomOp, MakesVariables) {
  K::Tensor v =
      K::random_uniform_variable({3, 4}, 0, 1, DType::Float32, "v", 8);
  EXPECT_TRUE(K::is_variable(v));
  EXPECT_EQ(valuesOf(K::get_value(v)), randomFloats(8, 0, 12));
  K::Tensor n = K::random_normal_variable({100, 100}, 3, 2);
  EXPECT_NEAR(meanOf(valuesOf(K::get_value(n))), 3, 0.2);
}

TEST_F(RandomOp, TakesItsShapeFromATensor) {
  K::Tensor p = K::placeholder({K::None, K::None});
  K::Tensor x = K::random_uniform({K::getitem(K::shape(p), {0}), 4}, 0, 1,
                                  DType::Float32, 11);
  EXPECT_EQ(K::int_shape(x), K::Shape({K::None, 4}));
  K::Tensor y = K::random_normal(K::shape(p));
  EXPECT_EQ(K::int_shape(y), K::Shape({K::None, K::None}));
  std::vector<Array> values =
      K::function({p}, {x, y})({Array::full({5, 3}, 0)});
  EXPECT_EQ(valuesOf(values[0]), randomFloats(11, 0, 20));
  EXPECT_EQ(values[1].shape(), K::Shape({5, 3}));
}

TEST_F(RandomOp, RefusesWhatItCannotMake) {
  EXPECT_THROW(K::random_uniform({K::None, 2}), Error);
  EXPECT_THROW(K::random_uniform({-2}), Error);
  EXPECT_THROW(K::random_normal({2}, 0, 1, DType::Int32), Error);
  EXPECT_THROW(K::dropout(K::zeros({2}), 1), Error);
  EXPECT_THROW(K::dropout(K::zeros({2}), 0.5, K::Dims{1, 1}), Error);
}

} // namespace
