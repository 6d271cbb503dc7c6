//===- HashTest.cpp - the hash of weights ---------------------------------===//
#include "keratin/abi.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

static uint64_t hash(const std::string &bytes) {
  return ktn_hash(bytes.data(), bytes.size());
}

// The value is part of the file format: artefacts and weights of one version
// must stay together.
TEST(Hash, StaysWhatItIs) {
  EXPECT_EQ(hash(""), 16726837185189684969u);
  EXPECT_EQ(hash("keratin"), 16011378750874348222u);
}

TEST(Hash, DependsOnEveryByte) {
  std::string bytes(100, 'k');
  uint64_t before = hash(bytes);
  for (size_t index = 0; index < bytes.size(); ++index) {
    std::string changed = bytes;
    changed[index] ^= 1;
    EXPECT_NE(hash(changed), before) << "byte " << index;
  }
}

TEST(Hash, TellsTrailingZerosFromNone) {
  EXPECT_NE(hash(std::string("ab")), hash(std::string("ab\0", 3)));
  EXPECT_NE(hash(std::string(32, '\0')), hash(std::string(64, '\0')));
}

TEST(Hash, TellsTheOrderOfBlocks) {
  std::string a(32, 'a'), b(32, 'b');
  EXPECT_NE(hash(a + b), hash(b + a));
}

TEST(Hash, TakesAnyAlignment) {
  std::vector<char> buffer(70, 'x');
  EXPECT_EQ(ktn_hash(buffer.data() + 1, 65), ktn_hash(buffer.data() + 4, 65));
}
