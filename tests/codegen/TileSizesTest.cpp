//===- TileSizesTest.cpp - how large a register tile is -------------------===//
#include "codegen/cpu/TileSizes.h"

#include <gtest/gtest.h>

using namespace keratin;

namespace {
constexpr VectorUnit avx512 = {512, 32}, avx2 = {256, 16};
constexpr VectorUnit soon = {512, 32, true}, soonAvx2 = {256, 16, true};
constexpr MostOfTile any = {16, 8};
} // namespace

TEST(ProductTile, LeavesRegistersForColumnsAndABroadcast) {
  for (VectorUnit unit : {avx512, avx2, soon, soonAvx2})
    for (int64_t rows : {1, 2, 7, 14, 56, 100, 1024})
      for (int64_t vectors : {1, 2, 3, 4, 16, 33}) {
        TileSize tile = productTile(rows, vectors, any, unit);
        EXPECT_LE(tile.rows * tile.vectors + tile.vectors + 1, unit.registers);
        EXPECT_LE(int64_t(tile.rows), rows);
        EXPECT_LE(int64_t(tile.vectors), vectors);
      }
}

TEST(ProductTile, DividesTheRowsOfAConvolution) {
  TileSize tile = productTile(56, 4, any, avx512);
  EXPECT_EQ(tile.rows, 14u);
  EXPECT_EQ(tile.vectors, 2u);
}

TEST(ProductTile, LoadsLittleForEachSum) {
  TileSize tile = productTile(128, 48, any, avx512);
  EXPECT_EQ(tile.rows, 8u);
  EXPECT_EQ(tile.vectors, 3u);
}

TEST(ProductTile, TakesManyVectorsForOneRow) {
  EXPECT_EQ(productTile(1, 64, any, avx512).vectors, 8u);
}

TEST(ProductTile, KeepsToItsLimits) {
  TileSize tile = productTile(1024, 64, {6, 2}, avx512);
  EXPECT_LE(tile.rows, 6u);
  EXPECT_LE(tile.vectors, 2u);
}

TEST(ProductTile, IsSmallAndWithoutRestsWhereCodeIsToBeLittle) {
  TileSize tile = productTile(14, 2, any, soon);
  EXPECT_EQ(tile.rows, 7u);
  EXPECT_EQ(tile.vectors, 2u);
  EXPECT_EQ(productTile(14, 2, any, avx512).rows, 14u);
  // Neither rows nor columns leave a rest that is less than half the work.
  tile = productTile(15, 3, any, soon);
  EXPECT_EQ(15 % tile.rows, 0u);
  EXPECT_EQ(3 % tile.vectors, 0u);
}

TEST(CachedRows, AreFewWhenRowsShareTheWaysOfTheCache) {
  EXPECT_EQ(cachedRows(4096), 8);
  EXPECT_EQ(cachedRows(2048), 16);
  EXPECT_EQ(cachedRows(int64_t(3) * 4096), 8);
  EXPECT_EQ(cachedRows(int64_t(768) * 4), 16);
  EXPECT_EQ(cachedRows(12), 16);
}

TEST(WindowTile, GoesBothWays) {
  WindowWay way = {56, 1, 3, 1};
  TileSize tile = windowTile(way, way, avx512);
  EXPECT_EQ(tile.rows, 4u);
  EXPECT_EQ(tile.outerRows, 4u);
  tile = windowTile(way, way, avx2);
  EXPECT_LE(tile.rows * tile.outerRows, 8u);
}

TEST(WindowTile, DividesTheRowsWhereThatCostsLittle) {
  WindowWay way = {14, 1, 3, 1};
  TileSize tile = windowTile(way, way, avx512);
  EXPECT_EQ(14 % tile.rows, 0u);
  EXPECT_EQ(14 % tile.outerRows, 0u);
}

// A tile of 2 x 2 takes as long as one of 4 x 2: eight sums are under way at
// once. Of many rows that is little.
TEST(EvenRows, TakeTheRestTogetherWithTheLastFullTile) {
  EXPECT_EQ(evenRows(56, 6, 2), 4);
  EXPECT_EQ(evenRows(55, 6, 2), 4); // and 3
  EXPECT_EQ(evenRows(57, 6, 2), 0);
  EXPECT_EQ(evenRows(54, 6, 2), 0);
  EXPECT_EQ(evenRows(128, 6, 2), 0);
  EXPECT_EQ(evenRows(2, 6, 2), 0);
  EXPECT_EQ(evenRows(26, 8, 3), 5); // and 5
}

// Rows that two tiles share are farther from the cache than columns are; what
// shares none goes along a row.
TEST(WindowTile, IsHighWhereRowsAreShared) {
  WindowWay way = {14, 1, 5, 1}, apart = {16, 2, 2, 1};
  TileSize tile = windowTile(way, way, avx512);
  EXPECT_GT(tile.outerRows, tile.rows);
  tile = windowTile(apart, apart, avx512);
  EXPECT_GT(tile.rows, tile.outerRows);
}

TEST(WindowTile, GoesOneWayWhereTheOtherHasOneElement) {
  TileSize tile = windowTile({1, 1, 1, 1}, {56, 1, 3, 1}, avx512);
  EXPECT_EQ(tile.outerRows, 1u);
  EXPECT_GT(tile.rows, 1u);
}

TEST(WindowTile, IsAPowerOfTwoForRowsOfUnknownNumber) {
  WindowWay way = {{}, 1, 3, 1};
  TileSize tile = windowTile({1, 1, 1, 1}, way, avx512);
  EXPECT_EQ(tile.rows & (tile.rows - 1), 0u);
}

TEST(WindowTile, IsOfFewSumsAndOneSizeWhereCodeIsToBeLittle) {
  WindowWay prime = {13, 1, 2, 1}, even = {12, 1, 2, 1};
  TileSize tile = windowTile(prime, prime, soon);
  EXPECT_EQ(tile.rows * tile.outerRows, 1u);
  EXPECT_GT(windowTile(prime, prime, avx512).rows, 1u);
  tile = windowTile(even, even, soon);
  EXPECT_EQ(tile.rows * tile.outerRows, 4u);
}
