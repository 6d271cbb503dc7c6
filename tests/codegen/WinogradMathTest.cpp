//===- WinogradMathTest.cpp - transformed weights -------------------------===//
#include "codegen/cpu/WinogradMath.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace mlir;
using testing::DoubleEq;
using testing::ElementsAre;

namespace {
/// F(m x m, 3x3) of one row of a window, which has that row alone.
std::vector<double> rowOf(int64_t m, double first, double second,
                          double third) {
  std::vector<double> window = {first, second, third, 0, 0, 0, 0, 0, 0};
  std::vector<double> all((m + 2) * (m + 2));
  keratin::transformWindow({m, 3}, window, all);
  // The first row of G is (1, 0, 0) times the scale of the point 0.
  std::vector<double> row(all.begin(), all.begin() + m + 2);
  return row;
}
} // namespace

TEST(TransformWindow, TakesThePolynomialAtThePoints) {
  // 1 + 2t + 4t^2 at 0, 1, -1 and infinity, the middle two halved.
  EXPECT_THAT(rowOf(2, 1, 2, 4), ElementsAre(1, 3.5, 1.5, 4));
  // At 0, 5/8, -5/8, 3/2, -3/2 and infinity, over the product of the distances
  // to the other points; the row that it is taken from is scaled too.
  auto at = [](double t) { return 1 + 2 * t + 4 * t * t; };
  double near = .625, far = 1.5;
  double zero = 1 / (near * near * far * far);
  double atNear = 2 * near * near * (near * near - far * far);
  double atFar = 2 * far * far * (far * far - near * near);
  EXPECT_THAT(
      rowOf(4, 1, 2, 4),
      ElementsAre(DoubleEq(zero * zero), DoubleEq(zero * at(near) / atNear),
                  DoubleEq(zero * at(-near) / atNear),
                  DoubleEq(zero * at(far) / atFar),
                  DoubleEq(zero * at(-far) / atFar), DoubleEq(zero * 4)));
}

TEST(TransformWindow, GoesBothWays) {
  std::vector<double> ones(9, 1), all(16);
  keratin::transformWindow({2, 3}, ones, all);
  EXPECT_THAT(all, ElementsAre(1, 1.5, .5, 1, 1.5, 2.25, .75, 1.5, .5, .75, .25,
                               .5, 1, 1.5, .5, 1));
}

/// Weights of `shape` that are 0, 1, 2 and so on, transformed for F(2x2, 3x3)
/// in the order that transformedType gives them, which is `expected`.
static std::vector<float> transformed(ArrayRef<int64_t> shape, int64_t block,
                                      ArrayRef<int64_t> expected,
                                      SmallVector<int64_t, 2> axes,
                                      keratin::TileForm form = {2, 3},
                                      int64_t stride = 1) {
  MLIRContext context;
  auto type = RankedTensorType::get(shape, Builder(&context).getF32Type());
  SmallVector<int64_t, 2> strides(axes.size(), stride);
  RankedTensorType wanted =
      keratin::transformedType(type, {form, axes, strides}, block);
  EXPECT_EQ(wanted.getShape(), expected);
  std::vector<float> source(type.getNumElements());
  std::iota(source.begin(), source.end(), 0.F);
  std::vector<char> bytes(source.size() * sizeof(float));
  std::memcpy(bytes.data(), source.data(), bytes.size());
  std::vector<char> out(wanted.getNumElements() * sizeof(float), 'x');
  keratin::transformWeights(bytes, type, {form, axes, strides}, block, out);
  std::vector<float> result(wanted.getNumElements());
  std::memcpy(result.data(), out.data(), out.size());
  return result;
}

TEST(TransformWindow, HasOtherNumbersOfTaps) {
  // 1 + 2t at 0, 1, -1 and infinity, the middle two halved.
  std::vector<double> window = {1, 2, 0, 0}, all(16);
  keratin::transformWindow({3, 2}, window, all);
  EXPECT_THAT(std::vector<double>(all.begin(), all.begin() + 4),
              ElementsAre(1, 1.5, -.5, 2));
}

TEST(TransformWeights, PutsThePositionOutsideAndTheFiltersOfABlockInside) {
  std::vector<float> result =
      transformed({3, 3, 2, 3}, 2, {16, 2, 2, 2}, {0, 1});
  // The corners of a tile are the corners of the window, [channel][filter].
  EXPECT_THAT(std::vector<float>(result.begin(), result.begin() + 8),
              ElementsAre(0, 1, 3, 4, 2, 0, 5, 0));
  EXPECT_THAT(std::vector<float>(result.end() - 8, result.end()),
              ElementsAre(48, 49, 51, 52, 50, 0, 53, 0));
}

TEST(TransformWeights, PutsTapsAlongTheDepthBesideEachOther) {
  std::vector<float> result =
      transformed({2, 3, 3, 2, 3}, 2, {16, 2, 4, 2}, {1, 2});
  // The first corner of each window, of which the second begins at 54.
  EXPECT_THAT(
      std::vector<float>(result.begin(), result.begin() + 16),
      ElementsAre(0, 1, 3, 4, 54, 55, 57, 58, 2, 0, 5, 0, 56, 0, 59, 0));
}

TEST(TransformWeights, CutsLargerWindowsInPieces) {
  std::vector<float> result =
      transformed({4, 5, 1, 1}, 1, {16, 1, 4, 1}, {0, 1});
  // Of each piece the first tap, and the last one, which only the first has.
  EXPECT_THAT(std::vector<float>(result.begin(), result.begin() + 4),
              ElementsAre(0, 3, 15, 18));
  EXPECT_THAT(std::vector<float>(result.end() - 4, result.end()),
              ElementsAre(12, 0, 0, 0));
}

TEST(TransformWeights, TakesTapsOfOtherAxesAsChannels) {
  // Rows are transformed: of each column the first taps, and the last.
  std::vector<float> result = transformed({3, 2, 1, 1}, 1, {4, 1, 2, 1}, {0});
  EXPECT_THAT(result, ElementsAre(0, 1, 3, 4.5, 1, 1.5, 4, 5));
}

TEST(TransformWeights, HasEightPositionsForTwoToFiveTaps) {
  // t + 2t^2 + .. at 0, 1, -1, 1/2, -1/2, 2, -2 and infinity, each over the
  // product of the distances to the other points.
  for (int64_t taps : {2, 3, 4, 5}) {
    std::vector<float> result =
        transformed({taps, 1, 1}, 1, {8, 1, 1, 1}, {0}, {9 - taps, taps});
    size_t position = 0;
    for (double point : {0., 1., -1., .5, -.5, 2., -2.}) {
      double value = 0, distances = 1;
      for (int64_t tap = taps - 1; tap >= 0; --tap)
        value = value * point + double(tap);
      for (double other : {0., 1., -1., .5, -.5, 2., -2.})
        distances *= other == point ? 1 : point - other;
      EXPECT_FLOAT_EQ(result[position++], float(value / distances)) << point;
    }
    EXPECT_EQ(result.back(), float(taps - 1));
  }
}

TEST(TransformWeights, KnowsSomeForms) {
  using keratin::isKnown;
  EXPECT_TRUE(isKnown({2, 3}) && isKnown({3, 2}) && isKnown({4, 3}));
  EXPECT_TRUE(isKnown({3, 4}) && isKnown({7, 2}) && isKnown({4, 5}));
  EXPECT_FALSE(isKnown({4, 4}));
  EXPECT_FALSE(isKnown({8, 1}));
  EXPECT_FALSE(isKnown({1, 8}));
  EXPECT_FALSE(isKnown({1, 6}));
  EXPECT_FALSE(isKnown({INT64_MAX, 3}) || isKnown({INT64_MIN, 5}));
}

TEST(TransformWeights, PutsTapsTogetherThatMeetEverySecondPixel) {
  // Taps 0, 2, 4 and 6, in two pieces, and 1, 3 and 5: of each the first and
  // the last one.
  std::vector<float> result =
      transformed({7, 1, 1}, 1, {4, 1, 3, 1}, {0}, {2, 3}, /*stride=*/2);
  EXPECT_THAT(std::vector<float>(result.begin(), result.begin() + 3),
              ElementsAre(0, 1, 6));
  EXPECT_THAT(std::vector<float>(result.end() - 3, result.end()),
              ElementsAre(4, 5, 0));
}
