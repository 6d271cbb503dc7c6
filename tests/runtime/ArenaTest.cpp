//===- ArenaTest.cpp - how much memory a run needs ------------------------===//
#include "keratin/runtime.h"

#include <gtest/gtest.h>

static ktn_model_info_t model(int64_t batch, int64_t fixed, int64_t perBatch) {
  ktn_model_info_t info = {};
  info.abi_version = KTN_ABI_VERSION;
  info.batch = batch;
  info.arena_bytes[0] = fixed;
  info.arena_bytes[1] = perBatch;
  return info;
}

TEST(ArenaBytes, GrowsWithTheBatch) {
  ktn_model_info_t info = model(-1, 128, 64);
  int64_t bytes = 0;
  EXPECT_EQ(ktn_arena_bytes(&info, 1, &bytes), KTN_OK);
  EXPECT_EQ(bytes, 192);
  EXPECT_EQ(ktn_arena_bytes(&info, 10, &bytes), KTN_OK);
  EXPECT_EQ(bytes, 768);
}

TEST(ArenaBytes, IsNeverZero) {
  ktn_model_info_t info = model(-1, 0, 0);
  int64_t bytes = 0;
  EXPECT_EQ(ktn_arena_bytes(&info, 1, &bytes), KTN_OK);
  EXPECT_EQ(bytes, KTN_ALIGNMENT);
}

TEST(ArenaBytes, RefusesOverflowAndLeavesTheResultAlone) {
  ktn_model_info_t info = model(-1, 64, 64);
  int64_t bytes = 7;
  EXPECT_EQ(ktn_arena_bytes(&info, INT64_MAX / 64, &bytes),
            KTN_BATCH_OUT_OF_RANGE);
  EXPECT_EQ(bytes, 7);
}

TEST(ArenaBytes, TakesTheLargestBatchThatFits) {
  ktn_model_info_t info = model(-1, 63, 64);
  int64_t bytes = 0, largest = (INT64_MAX - 63) / 64;
  EXPECT_EQ(ktn_arena_bytes(&info, largest, &bytes), KTN_OK);
  EXPECT_EQ(bytes, 63 + 64 * largest);
  EXPECT_EQ(ktn_arena_bytes(&info, largest + 1, &bytes),
            KTN_BATCH_OUT_OF_RANGE);
}

TEST(ArenaBytes, RefusesOtherBatchesThanThePinnedOne) {
  ktn_model_info_t info = model(8, 64, 0);
  int64_t bytes = 0;
  EXPECT_EQ(ktn_arena_bytes(&info, 8, &bytes), KTN_OK);
  for (int64_t batch : {7, 9, 0, -1})
    EXPECT_EQ(ktn_arena_bytes(&info, batch, &bytes), KTN_BATCH_OUT_OF_RANGE);
}

TEST(ArenaBytes, RefusesBatchesBelowOne) {
  ktn_model_info_t info = model(-1, 64, 64);
  int64_t bytes = 0;
  EXPECT_EQ(ktn_arena_bytes(&info, 0, &bytes), KTN_BATCH_OUT_OF_RANGE);
  EXPECT_EQ(ktn_arena_bytes(&info, -1, &bytes), KTN_BATCH_OUT_OF_RANGE);
}

TEST(ArenaBytes, RefusesNullPointers) {
  ktn_model_info_t info = model(-1, 64, 64);
  int64_t bytes = 0;
  EXPECT_EQ(ktn_arena_bytes(nullptr, 1, &bytes), KTN_INVALID_ARGUMENT);
  EXPECT_EQ(ktn_arena_bytes(&info, 1, nullptr), KTN_INVALID_ARGUMENT);
}
