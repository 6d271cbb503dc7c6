//===- PairPackingTest.cpp - weights in the order dot products read them --===//
#include "codegen/cpu/PairPacking.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;
using keratin::isValid;
using keratin::PairPacking;
using testing::ElementsAre;

namespace {
class PairPackingTest : public testing::Test {
protected:
  RankedTensorType type(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Builder(&context).getBF16Type());
  }
  /// The elements 1, 2, … of a tensor of `shape`, packed.
  std::vector<uint16_t> packed(ArrayRef<int64_t> shape,
                               const PairPacking &packing) {
    std::vector<uint16_t> source(size_t(type(shape).getNumElements()));
    for (size_t index = 0; index < source.size(); ++index)
      source[index] = uint16_t(index + 1);
    std::vector<uint16_t> result(
        size_t(keratin::pairedType(type(shape), packing).getNumElements()),
        9999);
    keratin::packPairs(bytes(source), type(shape), packing, bytes(result));
    return result;
  }

private:
  static MutableArrayRef<char> bytes(std::vector<uint16_t> &elements) {
    return {reinterpret_cast<char *>(elements.data()), elements.size() * 2};
  }
  MLIRContext context;
};
} // namespace

TEST_F(PairPackingTest, PutsNeighboursOfTheSumSideBySide) {
  // Rows 1 2, 3 4, 5 6 and 7 8 are summed over.
  EXPECT_THAT(packed({4, 2}, {1, 2, {}, {0}}),
              ElementsAre(1, 3, 2, 4, 5, 7, 6, 8));
}

TEST_F(PairPackingTest, FillsTheLastBlockWithZeros) {
  EXPECT_THAT(packed({2, 3}, {1, 2, {}, {0}}),
              ElementsAre(1, 4, 2, 5, 3, 6, 0, 0));
}

TEST_F(PairPackingTest, GoesAlongSumsInTheirOrderAndKeepsOthersOutside) {
  // [group, tap, column, channel]: the taps are summed over before channels.
  EXPECT_EQ(
      keratin::pairedType(type({2, 3, 5, 4}), {2, 4, {0}, {1, 3}}).getShape(),
      ArrayRef<int64_t>({2, 2, 6, 4, 2}));
  EXPECT_THAT(packed({2, 2, 1, 2}, {2, 1, {0}, {1, 3}}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(packed({2, 2, 1, 2}, {2, 1, {0}, {3, 1}}),
              ElementsAre(1, 3, 2, 4, 5, 7, 6, 8));
}

TEST_F(PairPackingTest, HasAllOfABlockForEachPair) {
  // [element of the sum, gate, column].
  EXPECT_EQ(
      keratin::pairedType(type({4, 3, 5}), {2, 4, {}, {0}, {1}}).getShape(),
      ArrayRef<int64_t>({2, 2, 3, 4, 2}));
  EXPECT_THAT(packed({2, 2, 3}, {2, 2, {}, {0}, {1}}),
              ElementsAre(1, 7, 2, 8, 4, 10, 5, 11, 3, 9, 0, 0, 6, 12, 0, 0));
}

TEST_F(PairPackingTest, TheLastOfAnOddSumHasAZeroBesideIt) {
  EXPECT_THAT(packed({3, 2}, {1, 2, {}, {0}}),
              ElementsAre(1, 3, 2, 4, 5, 0, 6, 0));
}

TEST_F(PairPackingTest, EachDimensionHasOneRole) {
  EXPECT_TRUE(isValid({1, 2, {}, {0}}, type({4, 2})));
  EXPECT_FALSE(isValid({1, 0, {}, {0}}, type({4, 2})));
  EXPECT_FALSE(isValid({1, 2, {}, {1}}, type({4, 2})));
  EXPECT_FALSE(isValid({1, 2, {}, {}}, type({4, 2})));
  EXPECT_FALSE(isValid({1, 2, {2}, {0}}, type({4, 2})));
  EXPECT_FALSE(isValid({-1, 2, {1}, {0}}, type({4, 2})));
  EXPECT_TRUE(isValid({2, 2, {}, {0}, {1}}, type({4, 3, 2})));
  EXPECT_FALSE(isValid({2, 2, {1}, {0}, {1}}, type({4, 3, 2})));
  EXPECT_FALSE(isValid({2, 2, {}, {0}, {3}}, type({4, 3, 2})));
}
