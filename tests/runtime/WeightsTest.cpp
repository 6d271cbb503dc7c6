//===- WeightsTest.cpp - weights in a file of their own -------------------===//
#include "keratin/runtime.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace {

/// A weights file and the descriptor of a model that it belongs to.
class WeightsFile : public testing::Test {
protected:
  WeightsFile() : bytes(192, 'w') {
    for (size_t index = 0; index < bytes.size(); ++index)
      bytes[index] = static_cast<char>(index);
    info.abi_version = KTN_ABI_VERSION;
    info.weights_bytes = static_cast<int64_t>(bytes.size());
    info.weights_hash = ktn_hash(bytes.data(), bytes.size());
    path = testing::TempDir() + "keratin-weights-" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    write(bytes);
  }
  ~WeightsFile() override { std::remove(path.c_str()); }

  void write(const std::string &content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  ktn_status_t open(const void **weights) {
    return ktn_weights_open(path.c_str(), &info, weights);
  }
  /// What opening gives when it must fail.
  ktn_status_t refuse() {
    const void *weights = this;
    ktn_status_t status = open(&weights);
    EXPECT_EQ(weights, nullptr);
    return status;
  }

  std::string bytes, path;
  ktn_model_info_t info = {};
};

} // namespace

TEST_F(WeightsFile, IsMappedAligned) {
  const void *weights = nullptr;
  ASSERT_EQ(open(&weights), KTN_OK);
  EXPECT_EQ(std::memcmp(weights, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights) % KTN_ALIGNMENT, 0u);
  ktn_weights_close(weights, &info);
}

TEST_F(WeightsFile, IsRefusedWhenTruncated) {
  write(bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(refuse(), KTN_WEIGHTS_MISMATCH);
  write("");
  EXPECT_EQ(refuse(), KTN_WEIGHTS_MISMATCH);
}

TEST_F(WeightsFile, IsRefusedWhenLonger) {
  write(bytes + "more");
  EXPECT_EQ(refuse(), KTN_WEIGHTS_MISMATCH);
}

TEST_F(WeightsFile, IsRefusedWhenChanged) {
  bytes[100] ^= 1;
  write(bytes);
  EXPECT_EQ(refuse(), KTN_WEIGHTS_MISMATCH);
}

TEST_F(WeightsFile, IsAnIoErrorWhenMissingOrNoFile) {
  path = "/nonexistent/weights";
  EXPECT_EQ(refuse(), KTN_IO_ERROR);
  path = testing::TempDir();
  EXPECT_EQ(refuse(), KTN_IO_ERROR);
}

TEST_F(WeightsFile, NeedsAPathAndADescriptorOfThisVersion) {
  const void *weights = nullptr;
  EXPECT_EQ(ktn_weights_open(nullptr, &info, &weights), KTN_INVALID_ARGUMENT);
  EXPECT_EQ(ktn_weights_open(path.c_str(), nullptr, &weights),
            KTN_INVALID_ARGUMENT);
  EXPECT_EQ(open(nullptr), KTN_INVALID_ARGUMENT);
  info.abi_version = KTN_ABI_VERSION + 1;
  EXPECT_EQ(refuse(), KTN_INVALID_ARGUMENT);
}

TEST(WeightsClose, TakesNull) {
  ktn_model_info_t info = {};
  ktn_weights_close(nullptr, &info);
  ktn_weights_close(nullptr, nullptr);
}
