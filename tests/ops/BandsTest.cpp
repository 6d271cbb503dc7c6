//===- BandsTest.cpp - images that go from kernel to kernel by bands ------===//
//
// Each is compared with what -O0 computes: every image as a whole.
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

/// A product for each pixel, a window over each channel, and a product again.
struct Case {
  const char *name;
  K::Shape image; ///< channels last
  int64_t channels, window;
  K::Ints strides;
  const char *padding;
  K::Ints dilations = {1, 1};
  bool projects = true; ///< the last product, with something added to it
  bool isOpen = true;   ///< any number of images
  const char *format = "channels_last";
};

class Bands : public testing::TestWithParam<Case> {
protected:
  void TearDown() override { K::set_num_threads(0); }

  /// Numbers in [-1, 1) that look random.
  Array numbers(const K::Shape &shape) {
    Array array(DType::Float32, shape);
    for (int64_t index = 0; index < array.size(); ++index) {
      state = state * 1664525u + 1013904223u;
      array.set(index, double(state >> 8) / 8388608.0 - 1);
    }
    return array;
  }

  K::Shape shapeOfImages(int64_t images) {
    const K::Shape &image = GetParam().image;
    if (std::string(GetParam().format) == "channels_first")
      return {images, image[3], image[1], image[2]};
    return {images, image[1], image[2], image[3]};
  }

  K::Function block() {
    const Case &c = GetParam();
    K::Tensor x =
        K::placeholder(shapeOfImages(c.isOpen ? K::None : c.image[0]));
    K::Tensor wide =
        K::conv2d(x, K::constant(numbers({1, 1, c.image[3], c.channels})),
                  {1, 1}, "same", c.format);
    wide = K::bias_add(wide, K::constant(numbers({c.channels})), c.format);
    wide = K::depthwise_conv2d(
        K::relu(wide),
        K::constant(numbers({c.window, c.window, c.channels, 1})), c.strides,
        c.padding, c.format, c.dilations);
    wide = K::sigmoid(wide);
    if (!c.projects)
      return K::function({x}, {wide});
    K::Tensor narrow =
        K::conv2d(wide, K::constant(numbers({1, 1, c.channels, 8})), {1, 1},
                  "same", c.format);
    K::Tensor beside = K::placeholder(K::int_shape(narrow));
    return K::function({x, beside}, {narrow + beside});
  }

  std::vector<Array> inputsOf(const K::Function &function) {
    std::vector<Array> inputs;
    for (const K::TensorInfo &input : function.inputs()) {
      K::Shape shape = input.shape;
      shape[0] = GetParam().image[0];
      inputs.push_back(numbers(shape));
    }
    return inputs;
  }

  uint32_t state = 1;
};

TEST_P(Bands, GiveWhatWholeImagesGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function);
  K::CompileSettings settings;
  settings.optimize = false;
  function.configure(settings);
  Array expected = function(inputs)[0];
  settings.optimize = true;
  function.configure(settings);
  Array result = function(inputs)[0];
  ASSERT_EQ(result.size(), expected.size());
  double most = 0, error = 0;
  for (int64_t index = 0; index < result.size(); ++index) {
    most = std::max(most, std::fabs(expected.at(index)));
    error = std::max(error, std::fabs(result.at(index) - expected.at(index)));
  }
  EXPECT_LE(error, 1e-5 * most);
}

TEST_P(Bands, AreWhatIsCompiled) {
  K::SaveOptions options;
  options.batch = GetParam().isOpen ? K::None : GetParam().image[0];
  std::vector<std::string> ops;
  for (const K::KernelInfo &kernel : block().kernels(options))
    ops.push_back(kernel.op);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "bands"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "depthwise"), 0);
}

TEST_P(Bands, DoNotDependOnThreads) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function);
  K::set_num_threads(1);
  Array expected = function(inputs)[0];
  for (int threads : {2, 3, 7}) {
    K::set_num_threads(threads);
    Array result = function(inputs)[0];
    EXPECT_EQ(std::memcmp(result.data(), expected.data(),
                          static_cast<size_t>(result.size()) * sizeof(float)),
              0)
        << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Bands,
    testing::Values(
        Case{"same", {1, 64, 64, 8}, 128, 3, {1, 1}, "same"},
        Case{"strided", {2, 96, 64, 8}, 96, 3, {2, 2}, "same"},
        // A border behind the rows alone, bands that overlap at the end.
        Case{"odd", {1, 97, 61, 8}, 96, 5, {2, 2}, "same"},
        Case{"prime", {1, 83, 61, 6}, 90, 3, {2, 2}, "valid"},
        Case{"dilated", {1, 90, 60, 8}, 96, 3, {1, 1}, "same", {2, 2}},
        Case{"narrow", {1, 640, 7, 8}, 128, 3, {1, 1}, "valid"},
        Case{"alone", {2, 70, 64, 8}, 96, 3, {1, 1}, "same", {1, 1}, false},
        // A band is an image.
        Case{"images",
             {9, 20, 20, 8},
             128,
             3,
             {1, 1},
             "same",
             {1, 1},
             true,
             false},
        Case{"channels_first",
             {2, 96, 64, 8},
             96,
             3,
             {2, 2},
             "same",
             {1, 1},
             false,
             true,
             "channels_first"}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
