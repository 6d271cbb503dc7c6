#include "keratin/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace keratin;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Array, ConvertsHalvesBothWays) {
  std::vector<float> values = {
      0,     1,     -2.5f, 65504,
      65520, 1e-7f, 6e-8f, std::numeric_limits<float>::infinity()};
  std::vector<double> expected = {0,        1,       -2.5,    65504,
                                  HUGE_VAL, 0x1p-23, 0x1p-24, HUGE_VAL};
  Array halves = Array::of<float>({8}, values).to(DType::Float16);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(halves.at(i), expected[i]) << i;
}

TEST(Array, RoundsBFloatsToEven) {
  Array wide = Array::of<float>({3}, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 3.0f});
  Array narrow = wide.to(DType::BFloat16);
  EXPECT_EQ(narrow.at(0), 1);
  EXPECT_EQ(narrow.at(1), 1 + 0x1p-6);
  EXPECT_EQ(narrow.at(2), 3);
}

TEST(Array, SaturatesIntegers) {
  Array wide = Array::of<float>({4}, {300, -300, 1.9f, NAN});
  Array narrow = wide.to(DType::Int8);
  EXPECT_EQ(narrow.at(0), 127);
  EXPECT_EQ(narrow.at(1), -128);
  EXPECT_EQ(narrow.at(2), 1);
  EXPECT_EQ(narrow.at(3), 0);
}

TEST(Array, CopiesWhenASharedOneIsWritten) {
  Array a = Array::full({2}, 1);
  Array b = a;
  b.set(0, 5);
  EXPECT_EQ(a.at(0), 1);
  EXPECT_EQ(b.at(0), 5);
}

TEST(Array, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(
      [] { Array(DType::Float32, {int64_t(1) << 40, int64_t(1) << 40}); },
      ThrowsMessage<Error>(HasSubstr("more than 2^63 bytes")));
  EXPECT_THAT([] { Array(DType::Float32, {2, -3}); },
              ThrowsMessage<Error>(HasSubstr("extent below 0")));
  EXPECT_THAT([] { Array::of<float>({2}, {1, 2, 3}); },
              ThrowsMessage<Error>("3 values do not fill the shape (2,)"));
  EXPECT_THAT(
      [] { Array(DType::Float32, {2, 3}).reshaped({4}); },
      ThrowsMessage<Error>(HasSubstr("(2, 3) cannot have the shape (4,)")));
}

TEST(DType, NamesAllThatAreKnownWhenOneIsNot) {
  EXPECT_EQ(parseDType("bfloat16"), DType::BFloat16);
  EXPECT_THAT(
      [] { parseDType("float8"); },
      ThrowsMessage<Error>(HasSubstr("'float8' is none of bool, int8")));
}
