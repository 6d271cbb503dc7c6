//===- PairedWeightsTest.cpp - weights that are multiplied in pairs -------===//
#include "codegen/cpu/PairedWeights.h"

#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using keratin::PairedPacking;
using llvm::ArrayRef;

namespace {
ArrayRef<char> bytes(const std::vector<float> &elements) {
  return {reinterpret_cast<const char *>(elements.data()),
          elements.size() * sizeof(float)};
}

std::vector<float> normal(int64_t count) {
  std::mt19937 engine(7);
  std::normal_distribution<float> distribution;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float &number : numbers)
    number = distribution(engine);
  return numbers;
}

std::vector<float> packed(const std::vector<float> &weights,
                          const PairedPacking &packing) {
  mlir::MLIRContext context;
  mlir::RankedTensorType type = keratin::packedType(&context, packing);
  std::vector<float> out(static_cast<size_t>(type.getNumElements()));
  keratin::packPaired(
      bytes(weights), packing,
      {reinterpret_cast<char *>(out.data()), out.size() * sizeof(float)});
  return out;
}

/// What a kernel makes of a row and a column, of `panel`, in double.
double multiplied(const std::vector<double> &row, const float *panel,
                  const PairedPacking &packing, int64_t column) {
  auto weight = [&](int64_t sum) {
    return double(panel[sum * packing.block + column]);
  };
  double sum = weight(packing.sums), ofRow = 0;
  for (int64_t at = 0; at < packing.sums; ++at) {
    auto place = size_t(at);
    int sign = keratin::signOfPair(at, packing.sums);
    if (sign == 0) {
      sum += row[place] * weight(at);
    } else if (at % 2 == 0) {
      double first = row[place] + sign * weight(at + 1);
      sum += sign * first * (row[place + 1] + sign * weight(at));
      ofRow += sign * row[place] * row[place + 1];
    }
  }
  return (sum - ofRow) * weight(packing.sums + 1);
}
} // namespace

TEST(PairedWeightsTest, PairsMakeTheSum) {
  // Columns of many sizes, one of zeros, in two panels, and a last step that is
  // not whole.
  for (bool columnsInside : {false, true}) {
    PairedPacking packing = {20, 40, 32, columnsInside};
    std::vector<float> weights = normal(20 * 40);
    auto at = [&](int64_t sum, int64_t column) -> float & {
      return weights[size_t(columnsInside ? sum * 40 + column
                                          : column * 20 + sum)];
    };
    for (int64_t column = 0; column < 40; ++column)
      for (int64_t sum = 0; sum < 20; ++sum)
        at(sum, column) *= column == 5 ? 0 : std::exp2(float(column) - 20);
    ASSERT_TRUE(keratin::canBePaired(bytes(weights), packing));
    std::vector<float> panels = packed(weights, packing);
    ASSERT_EQ(panels.size(), size_t(2 * 22 * 32));
    std::vector<double> row;
    for (float number : normal(20))
      row.push_back(number);
    for (int64_t column = 0; column < 64; ++column) {
      double sum = 0, size = 0;
      for (int64_t place = 0; column < 40 && place < 20; ++place) {
        sum += row[size_t(place)] * double(at(place, column));
        size += std::fabs(double(at(place, column)));
      }
      double made = multiplied(row, &panels[size_t(column / 32 * 22 * 32)],
                               packing, column % 32);
      EXPECT_NEAR(made, sum, 1e-6 * size) << column;
    }
  }
}

TEST(PairedWeightsTest, ColumnsAreOfOneSizeAndExact) {
  PairedPacking packing = {16, 3, 16, true};
  std::vector<float> weights = normal(16 * 3);
  for (size_t at = 0; at < weights.size(); ++at)
    weights[at] *= at % 3 == 0 ? 1e-12F : at % 3 == 1 ? 1 : 1e12F;
  std::vector<float> panel = packed(weights, packing);
  for (size_t column = 0; column < 3; ++column) {
    double squares = 0;
    for (size_t sum = 0; sum < 16; ++sum) {
      float scaled = panel[sum * 16 + column];
      squares += double(scaled) * double(scaled) / 16;
      EXPECT_EQ(scaled * panel[17 * 16 + column], weights[sum * 3 + column]);
    }
    EXPECT_THAT(squares, testing::AllOf(testing::Ge(.49), testing::Le(2.01)));
  }
}

TEST(PairedWeightsTest, RefusesWhatIsNotFiniteOrCannotBeScaled) {
  PairedPacking packing = {16, 2, 16, true};
  for (float other : {std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN(), 1e37F}) {
    std::vector<float> weights = normal(32);
    weights[9] = other;
    EXPECT_FALSE(keratin::canBePaired(bytes(weights), packing)) << other;
  }
  EXPECT_FALSE(
      keratin::canBePaired(bytes(std::vector<float>(32, 1e-30F)), packing));
  EXPECT_TRUE(keratin::canBePaired(bytes(std::vector<float>(32, 0)), packing));
}
