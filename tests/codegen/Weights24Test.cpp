//===- Weights24Test.cpp - weights as integers of 24 bits -----------------===//
#include "codegen/cpu/Weights24.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using keratin::isValid;
using keratin::Packing24;

namespace {
class Weights24Test : public testing::Test {
protected:
  RankedTensorType type(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Builder(&context).getF32Type());
  }
  static ArrayRef<char> bytes(const std::vector<float> &elements) {
    return {reinterpret_cast<const char *>(elements.data()),
            elements.size() * sizeof(float)};
  }
  bool fits(const std::vector<float> &weights, ArrayRef<int64_t> shape) {
    return keratin::fits24(bytes(weights), type(shape), {1, {0}, {}});
  }
  static std::vector<float> normal(size_t count) {
    std::mt19937 engine(7);
    std::normal_distribution<float> distribution;
    std::vector<float> numbers(count);
    for (float &number : numbers)
      number = distribution(engine);
    return numbers;
  }

  MLIRContext context;
};

/// What a kernel makes of the words of a block at `words`, in units of a scale.
std::vector<float> unpacked(const int32_t *words) {
  std::vector<float> values;
  for (int word = 0; word < 48; ++word)
    values.push_back(float(words[word]));
  for (int lane = 0; lane < 16; ++lane) {
    uint32_t last = uint32_t(words[lane]) >> 24;
    for (int byte = 0; byte < 3; ++byte)
      last |= (uint32_t(words[lane + 16 * byte]) & 0xff) << (8 + 8 * byte);
    values.push_back(float(int32_t(last)));
  }
  return values;
}
} // namespace

TEST_F(Weights24Test, IsOffByLittleOfTheLargestOfAColumn) {
  // [steps, gates, columns], two blocks of columns, each of another size.
  constexpr int64_t steps = 50, gates = 3, columns = 100;
  std::vector<float> weights = normal(steps * gates * columns);
  for (size_t at = 0; at < weights.size(); ++at)
    weights[at] *= std::exp2(float(at % columns) - 50);
  Packing24 packing = {2, {0}, {1}};
  RankedTensorType from = type({steps, gates, columns});
  ASSERT_TRUE(keratin::fits24(bytes(weights), from, packing));
  RankedTensorType to = keratin::packedType(from, packing);
  constexpr int64_t words = gates * steps * 48 + gates * 64;
  ASSERT_EQ(to.getShape(), ArrayRef<int64_t>({2, words}));
  ASSERT_EQ(keratin::startOfScales(from, packing), gates * steps * 48);
  std::vector<int32_t> packed(2 * words, 77);
  keratin::pack24(bytes(weights), from, packing,
                  {reinterpret_cast<char *>(packed.data()),
                   packed.size() * sizeof(int32_t)});
  for (int64_t column = 0; column < 128; ++column)
    for (int64_t gate = 0; gate < gates; ++gate) {
      const int32_t *block = &packed[column / 64 * words];
      float scale;
      std::memcpy(&scale, block + gates * steps * 48 + gate * 64 + column % 64,
                  sizeof(scale));
      double largest = 0;
      for (int64_t step = 0; step < steps && column < columns; ++step)
        largest = std::fmax(
            largest,
            std::fabs(weights[(step * gates + gate) * columns + column]));
      for (int64_t step = 0; step < steps; ++step) {
        double wanted = column < columns
                            ? weights[(step * gates + gate) * columns + column]
                            : 0.;
        double value =
            double(unpacked(block + (gate * steps + step) * 48)[column % 64]) *
            scale;
        EXPECT_LE(std::fabs(value - wanted), largest * 0x1p-23)
            << "column " << column << ", gate " << gate << ", step " << step;
      }
    }
}

TEST_F(Weights24Test, LargestNumbersStayInTheirWords) {
  // 64 columns of one step, all of which are the largest of theirs.
  std::vector<float> weights(64);
  for (size_t column = 0; column < weights.size(); ++column)
    weights[column] = (column % 3 == 0 ? -1.F : 1.F) * float(column + 1);
  RankedTensorType from = type({1, 64});
  Packing24 packing = {1, {0}, {}};
  std::vector<int32_t> packed(48 + 64);
  keratin::pack24(bytes(weights), from, packing,
                  {reinterpret_cast<char *>(packed.data()),
                   packed.size() * sizeof(int32_t)});
  std::vector<float> values = unpacked(packed.data());
  for (size_t column = 0; column < weights.size(); ++column) {
    float scale;
    std::memcpy(&scale, &packed[48 + column], sizeof(scale));
    EXPECT_NEAR(values[column] * scale, weights[column],
                std::fabs(weights[column]) * 0x1p-22);
  }
}

TEST_F(Weights24Test, TakesNoWeightsThatLoseWhatCounts) {
  std::vector<float> weights = normal(100 * 70);
  EXPECT_TRUE(fits(weights, {100, 70}));
  auto with = [&](float value) {
    std::vector<float> changed = weights;
    changed[3333] = value;
    return fits(changed, {100, 70});
  };
  EXPECT_FALSE(with(0.F));
  EXPECT_FALSE(with(-0.F));
  EXPECT_FALSE(with(1000.F)); // beside which others would lose their digits
  EXPECT_FALSE(with(std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(with(std::numeric_limits<float>::quiet_NaN()));
  for (float &weight : weights)
    weight *= 1e-30F; // and scales would be no normal numbers
  EXPECT_FALSE(fits(weights, {100, 70}));
}

TEST_F(Weights24Test, ColumnsMayBeZeroAsAWhole) {
  std::vector<float> weights = normal(100 * 70);
  for (size_t row = 0; row < 100; ++row)
    weights[row * 70 + 5] = 0;
  EXPECT_TRUE(fits(weights, {100, 70}));
}

TEST_F(Weights24Test, EachDimensionHasOneRole) {
  EXPECT_TRUE(isValid({1, {0}, {2}}, type({2, 3, 4})));
  EXPECT_FALSE(isValid({1, {0}, {}}, type({2, 3, 4})));
  EXPECT_FALSE(isValid({1, {0}, {1}}, type({2, 3})));
  EXPECT_FALSE(isValid({3, {0, 1}, {2}}, type({2, 3, 4})));
  EXPECT_FALSE(
      isValid({1, {0}, {}},
              RankedTensorType::get({2, 3}, Builder(&context).getF64Type())));
}
