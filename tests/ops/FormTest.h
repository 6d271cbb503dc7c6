//===- FormTest.h - what tests of the forms of kernels share ----*- C++ -*-===//
//
// A kernel that takes a form of its own, as attention does, gives what -O0
// gives, up to rounding, and the same bits on any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_TESTS_OPS_FORMTEST_H
#define KERATIN_TESTS_OPS_FORMTEST_H

#include "keratin/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace keratin::optest {

template <typename Case> class FormTest : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { backend::set_num_threads(0); }

  /// Numbers in [-1, 1) that look random, others each time.
  Array numbers(const backend::Shape &shape, DType dtype = DType::Float32) {
    Array array(dtype, shape);
    for (int64_t index = 0; index < array.size(); ++index) {
      state = state * 1664525u + 1013904223u;
      array.set(index, double(state >> 8) / 8388608.0 - 1);
    }
    return array;
  }

  /// Such numbers for all that a function takes; open first axes are `batch`.
  std::vector<Array> inputsOf(const backend::Function &function,
                              int64_t batch) {
    std::vector<Array> inputs;
    for (const backend::TensorInfo &input : function.inputs()) {
      backend::Shape shape = input.shape;
      if (shape[0] == backend::None)
        shape[0] = batch;
      inputs.push_back(numbers(shape, input.dtype));
    }
    return inputs;
  }

private:
  uint32_t state = 1;
};

/// max |result - expected| / max |expected|; not finite where `result` is not.
inline double relativeError(const Array &result, const Array &expected) {
  EXPECT_EQ(result.shape(), expected.shape());
  double most = 0, error = 0;
  for (int64_t index = 0; index < expected.size(); ++index) {
    if (!std::isfinite(result.at(index)))
      return INFINITY;
    most = std::max(most, std::fabs(expected.at(index)));
    error = std::max(error, std::fabs(result.at(index) - expected.at(index)));
  }
  EXPECT_GT(most, 0);
  return error / most;
}

/// What -O0 computes: plain loops. The function is left at -O2.
inline Array plainResult(backend::Function &function,
                         const std::vector<Array> &inputs,
                         backend::CompileSettings settings = {}) {
  settings.optimize = false;
  function.configure(settings);
  Array result = function(inputs)[0];
  settings.optimize = true;
  function.configure(settings);
  return result;
}

/// The kinds of the kernels that a saved function has.
inline std::vector<std::string> kernelOps(const backend::Function &function,
                                          const backend::SaveOptions &options) {
  std::vector<std::string> ops;
  for (const backend::KernelInfo &kernel : function.kernels(options))
    ops.push_back(kernel.op);
  return ops;
}

inline void expectSameBits(const Array &result, const Array &expected) {
  ASSERT_EQ(result.byteSize(), expected.byteSize());
  EXPECT_EQ(std::memcmp(result.data(), expected.data(),
                        static_cast<size_t>(result.byteSize())),
            0);
}

/// Numbers of threads that divide work evenly, and some that do not.
inline void expectSameBitsOnThreads(backend::Function &function,
                                    const std::vector<Array> &inputs) {
  backend::set_num_threads(1);
  Array expected = function(inputs)[0];
  for (int threads : {2, 3, 7}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    backend::set_num_threads(threads);
    expectSameBits(function(inputs)[0], expected);
  }
}

} // namespace keratin::optest

#endif // KERATIN_TESTS_OPS_FORMTEST_H
