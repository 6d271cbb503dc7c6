//===- WinogradTest.cpp - convolutions of 3x3 windows by tiles ------------===//
//
// Each is compared with what -O0 computes: plain sums over the window.
//
//===----------------------------------------------------------------------===//
#include "keratin/backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;

namespace {

struct Case {
  K::Shape image;
  int64_t filters;
  const char *padding;
  DType dtype = DType::Float32;
};

std::string nameOf(const Case &c) {
  std::string name = c.dtype == DType::Float64 ? "f64_" : "";
  for (int64_t extent : c.image)
    name += std::to_string(extent) + "x";
  return name + std::to_string(c.filters) + "_" + c.padding;
}

class Winograd : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { K::set_num_threads(0); }

  /// Numbers in [-1, 1) that look random.
  Array numbers(const K::Shape &shape) {
    Array array(GetParam().dtype, shape);
    for (int64_t index = 0; index < array.size(); ++index) {
      state = state * 1664525u + 1013904223u;
      array.set(index, double(state >> 8) / 8388608.0 - 1);
    }
    return array;
  }

  /// A convolution with all that an epilogue may have, of any batch.
  K::Function layer() {
    const Case &c = GetParam();
    K::Shape image = c.image;
    image[0] = K::None;
    K::Tensor x = K::placeholder(image, c.dtype);
    K::Tensor sum =
        K::conv2d(x, K::constant(numbers({3, 3, c.image[3], c.filters})),
                  {1, 1}, c.padding, "channels_last");
    K::Shape shape = K::int_shape(sum);
    K::Tensor beside = K::placeholder(shape, c.dtype);
    K::Tensor biased =
        K::bias_add(sum, K::constant(numbers({c.filters})), "channels_last");
    return K::function({x, beside}, {K::relu(biased) + beside});
  }

  std::vector<Array> inputsOf(const K::Function &function, int64_t images) {
    std::vector<Array> inputs;
    for (const K::TensorInfo &input : function.inputs()) {
      K::Shape shape = input.shape;
      shape[0] = images;
      inputs.push_back(numbers(shape));
    }
    return inputs;
  }

  uint32_t state = 1;
};

double largest(const Array &array) {
  double most = 0;
  for (int64_t index = 0; index < array.size(); ++index)
    most = std::max(most, std::fabs(array.at(index)));
  return most;
}

double largestDifference(const Array &one, const Array &other) {
  double most = 0;
  for (int64_t index = 0; index < one.size(); ++index)
    most = std::max(most, std::fabs(one.at(index) - other.at(index)));
  return most;
}

} // namespace

TEST_P(Winograd, GivesWhatSumsOverTheWindowGive) {
  const Case &c = GetParam();
  K::Function function = layer();
  std::vector<Array> inputs = inputsOf(function, c.image[0]);
  K::CompileSettings settings;
  settings.optimize = false;
  function.configure(settings);
  Array expected = function(inputs)[0];
  settings.optimize = true;
  for (const char *form : {"2", "4"}) {
    settings.winograd = form;
    function.configure(settings);
    double error = largestDifference(function(inputs)[0], expected);
    EXPECT_LE(error,
              (c.dtype == DType::Float64 ? 1e-13 : 1e-5) * largest(expected))
        << "F(" << form << ")";
  }
}

TEST_P(Winograd, IsWhatIsCompiled) {
  for (const char *form : {"2", "4"})
    for (int64_t batch : {K::None, GetParam().image[0]}) {
      K::SaveOptions options;
      options.winograd = form;
      options.batch = batch;
      std::vector<std::string> ops;
      for (const K::KernelInfo &kernel : layer().kernels(options))
        ops.push_back(kernel.op);
      EXPECT_EQ(
          std::count(ops.begin(), ops.end(), "winograd" + std::string(form)),
          1);
      EXPECT_EQ(std::count(ops.begin(), ops.end(), "conv"), 0);
    }
}

TEST_P(Winograd, DoesNotDependOnThreads) {
  K::Function function = layer();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  for (const char *form : {"2", "4"}) {
    K::CompileSettings settings;
    settings.winograd = form;
    function.configure(settings);
    K::set_num_threads(1);
    Array expected = function(inputs)[0];
    for (int threads : {2, 3, 7}) {
      K::set_num_threads(threads);
      Array result = function(inputs)[0];
      EXPECT_EQ(std::memcmp(result.data(), expected.data(),
                            static_cast<size_t>(result.size()) *
                                keratin::dtypeSize(result.dtype())),
                0)
          << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd,
    testing::Values(
        Case{{1, 8, 8, 16}, 32, "same"},
        // Edge tiles, the rest of a vector, more than one block.
        Case{{2, 9, 7, 5}, 3, "valid"}, Case{{1, 13, 26, 20}, 17, "same"},
        Case{{3, 4, 5, 2}, 40, "same"},
        // Tiles of several images in a block, and many columns.
        Case{{5, 6, 6, 48}, 136, "valid"}, Case{{2, 37, 41, 33}, 50, "same"},
        // Parts are blocks, and parts are columns.
        Case{{1, 96, 64, 24}, 24, "same"}, Case{{1, 14, 14, 64}, 320, "same"},
        Case{{1, 11, 10, 7}, 12, "same", DType::Float64}),
    [](const auto &info) { return nameOf(info.param); });
