//===- PackingTest.cpp - weights in the order a tile reads them -----------===//
#include "codegen/cpu/Packing.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using testing::ElementsAre;

namespace {
std::vector<char> packed(std::vector<char> source, ArrayRef<int64_t> shape,
                         keratin::Packing packing) {
  MLIRContext context;
  auto type = RankedTensorType::get(shape, Builder(&context).getI8Type());
  std::vector<char> result(keratin::packedType(type, packing).getNumElements(),
                           'x');
  keratin::pack(source, type, packing, result);
  return result;
}
} // namespace

TEST(PackedType, CutsOneDimensionIntoBlocks) {
  MLIRContext context;
  auto type =
      RankedTensorType::get({3, 3, 20, 64}, Builder(&context).getF32Type());
  EXPECT_EQ(keratin::packedType(type, {2, 16}).getShape(),
            ArrayRef<int64_t>({2, 3, 3, 64, 16}));
}

TEST(Pack, PutsTheColumnsOfABlockSideBySide) {
  // Rows 1 2 3 4 and 5 6 7 8 in blocks of two columns.
  EXPECT_THAT(packed({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}, {1, 2}),
              ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(Pack, FillsTheLastBlockWithZeros) {
  EXPECT_THAT(packed({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2}),
              ElementsAre(1, 2, 4, 5, 3, 0, 6, 0));
}

TEST(Pack, TransposesAnOuterDimension) {
  // The first dimension is blocked: its elements become neighbours.
  EXPECT_THAT(packed({1, 2, 3, 4, 5, 6}, {3, 2}, {0, 4}),
              ElementsAre(1, 3, 5, 0, 2, 4, 6, 0));
}

TEST(Pack, PutsOuterDimensionsOutsideOfTheBlocks) {
  // Two rows of two heads of three columns: all of one head comes first.
  EXPECT_THAT(
      packed({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2, 3}, {2, 2, {1}}),
      ElementsAre(1, 2, 7, 8, 3, 0, 9, 0, 4, 5, 10, 11, 6, 0, 12, 0));
}

TEST(Pack, PutsHalvesOfABlockIntoWords) {
  // Rows of five columns in blocks of four: the second one of a block is in its
  // other half.
  keratin::Packing packing = {1, 4};
  packing.interleaved = true;
  EXPECT_THAT(packed({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 5}, packing),
              ElementsAre(1, 3, 2, 4, 6, 8, 7, 9, 5, 0, 0, 0, 10, 0, 0, 0));
}

TEST(Pack, MovesWholeElements) {
  MLIRContext context;
  auto type = RankedTensorType::get({2, 2}, Builder(&context).getI16Type());
  std::vector<char> result(8);
  keratin::pack({1, 2, 3, 4, 5, 6, 7, 8}, type, {0, 2}, result);
  EXPECT_THAT(result, ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}
