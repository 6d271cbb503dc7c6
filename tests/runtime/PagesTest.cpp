//===- PagesTest.cpp - memory in large pages ------------------------------===//
#include "keratin/runtime.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

static constexpr int64_t largePage = 2 << 20;

static uintptr_t address(const void *pages) {
  return reinterpret_cast<uintptr_t>(pages);
}

TEST(Pages, AreAlignedAndWritableToTheLastByte) {
  for (int64_t bytes : {int64_t(0), int64_t(1), int64_t(65), largePage - 1,
                        largePage, largePage + 1, 3 * largePage + 70000}) {
    void *pages = ktn_pages_take(bytes);
    ASSERT_NE(pages, nullptr) << bytes;
    EXPECT_EQ(address(pages) % KTN_ALIGNMENT, 0u) << bytes;
    std::memset(pages, 0x5A, static_cast<size_t>(bytes));
    ktn_pages_release(pages, bytes);
  }
}

TEST(Pages, BeginAtALargePageFromItsSizeOn) {
  std::vector<void *> taken;
  for (int i = 0; i < 5; ++i) {
    taken.push_back(ktn_pages_take(largePage + i));
    EXPECT_EQ(address(taken.back()) % largePage, 0u);
  }
  for (int i = 0; i < 5; ++i)
    ktn_pages_release(taken[i], largePage + i);
}

TEST(Pages, AreGivenBack) {
  // One after the other, more than there are addresses.
  constexpr int64_t bytes = int64_t(1) << 30;
  for (int i = 0; i < 150000; ++i) {
    void *pages = ktn_pages_take(bytes);
    ASSERT_NE(pages, nullptr) << i;
    ktn_pages_release(pages, bytes);
  }
}

TEST(Pages, RefuseWhatNobodyHas) {
  EXPECT_EQ(ktn_pages_take(-1), nullptr);
  EXPECT_EQ(ktn_pages_take(INT64_MIN), nullptr);
  EXPECT_EQ(ktn_pages_take(INT64_MAX), nullptr);
  EXPECT_EQ(ktn_pages_take(INT64_MAX / 2), nullptr);
  ktn_pages_release(nullptr, 5);
}
