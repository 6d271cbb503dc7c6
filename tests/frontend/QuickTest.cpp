//===- QuickTest.cpp - functions that are compiled in little time ---------===//
#include "keratin/abi.h"
#include "keratin/backend.h"
#include "keratin/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace K = keratin::backend;
using keratin::Array;

/// What the code that is compiled without haste computes, which anybody may
/// call.
static std::vector<float> runCompiled(const K::Function &f, const Array &x) {
  const ktn_model_info_t *info = f.compiled({x.shape()});
  std::vector<float> result(size_t(f({x})[0].size()));
  void *arena = std::aligned_alloc(KTN_ALIGNMENT, size_t(info->arena_bytes[0]) +
                                                      KTN_ALIGNMENT);
  const void *inputs[] = {x.data()};
  void *outputs[] = {result.data()};
  EXPECT_EQ(info->run(info->weights, arena, info->batch, inputs, outputs),
            KTN_OK);
  EXPECT_EQ(info->run(info->weights, nullptr, info->batch, inputs, outputs),
            KTN_INVALID_ARGUMENT);
  std::free(arena);
  return result;
}

TEST(Quick, CodeComputesTheSameBits) {
  K::Tensor x = K::placeholder({2, 13, 11, 16});
  K::Tensor window = K::random_uniform_variable({3, 2, 16, 24}, -1, 1);
  K::Tensor depthwise = K::random_uniform_variable({3, 3, 16, 1}, -1, 1);
  K::Tensor matrix = K::random_uniform_variable({16, 40}, -1, 1);
  const K::Tensor results[] = {
      K::exp(x),
      K::sum(x, {1, 2}),
      K::mean(x),
      K::softmax(x),
      K::softmax(K::batch_flatten(x)),
      K::l2_normalize(x, -1),
      K::cumsum(x, 1),
      K::pool2d(x, {2, 2}),
      K::pool2d(x, {3, 3}, {2, 2}, "same", "", "avg"),
      K::conv2d(x, window),
      K::depthwise_conv2d(x, depthwise, {2, 2}, "same"),
      K::dot(x, matrix),
      K::permute_dimensions(x, {0, 3, 1, 2}),
      K::concatenate({x, x * 2.0}, -1),
  };
  std::vector<float> values(2 * 13 * 11 * 16);
  for (size_t index = 0; index < values.size(); ++index)
    values[index] = float(int(index * 37 % 101) - 50) / 16;
  Array given = Array::of<float>({2, 13, 11, 16}, values);
  for (const K::Tensor &result : results) {
    K::Function f = K::function({x}, {result});
    // Windows would be transformed in one of them alone.
    K::CompileSettings settings;
    settings.winograd = "off";
    f.configure(settings);
    Array quick = f({given})[0];
    std::vector<float> best = runCompiled(f, given);
    ASSERT_EQ(size_t(quick.size()), best.size());
    EXPECT_EQ(std::memcmp(quick.data(), best.data(), best.size() * 4), 0)
        << (&result - results);
  }
}

TEST(Quick, WhatIsCalledOftenIsCompiledOnceMore) {
  K::Tensor x = K::placeholder({3, 9, 8, 16});
  K::Tensor window = K::random_uniform_variable({3, 3, 16, 20}, -1, 1);
  K::Function f = K::function({x}, {K::softmax(K::conv2d(x, window))});
  std::vector<float> values(3 * 9 * 8 * 16);
  for (size_t index = 0; index < values.size(); ++index)
    values[index] = float(int(index * 37 % 101) - 50) / 16;
  Array given = Array::of<float>({3, 9, 8, 16}, values);
  Array first = f({given})[0];
  auto compiled = [] { return K::compile_cache_statistics().misses; };
  const uint64_t before = compiled();
  for (int call = 0; call < 2500; ++call) {
    Array again = f({given})[0];
    ASSERT_EQ(std::memcmp(again.data(), first.data(), first.size() * 4), 0)
        << call;
  }
  EXPECT_EQ(compiled(), before + 1);
}
