//===- BehindTest.cpp - windows that write over what they read ------------===//
//
// Where nothing needs the image of a window any more, its result lies over the
// end of it. Each is compared with what -O0 computes, in buffers of their own.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

#include <sstream>

namespace K = keratin::backend;
using keratin::Array;
using namespace keratin::optest;

namespace {

/// A function of each pixel, a window over each channel, and a product.
struct Case {
  const char *name;
  K::Shape image; ///< channels last
  int64_t window;
  K::Ints strides;
  const char *padding;
  K::Ints dilations = {1, 1};
  const char *pool = nullptr; ///< "max" or "avg"
  K::Ints border = {0, 0};    ///< of zeros in front of the image, and behind it
};

class Behind : public FormTest<Case> {
protected:
  K::Function block() {
    const Case &c = GetParam();
    int64_t channels = c.image[3];
    K::Tensor x = K::placeholder(c.image);
    K::Tensor y = K::conv2d(x, K::constant(numbers({1, 1, channels, channels})),
                            {1, 1}, "same", "channels_last");
    y = K::relu(K::bias_add(y, K::constant(numbers({channels}))));
    if (c.border != K::Ints{0, 0})
      y = K::spatial_2d_padding(
          y, {{c.border[0], c.border[1]}, {c.border[0], c.border[1]}},
          "channels_last");
    if (c.pool)
      y = K::pool2d(y, {c.window, c.window}, c.strides, c.padding,
                    "channels_last", c.pool);
    else
      y = K::depthwise_conv2d(
          y, K::constant(numbers({c.window, c.window, channels, 1})), c.strides,
          c.padding, "channels_last", c.dilations);
    y = K::conv2d(y, K::constant(numbers({1, 1, channels, 8})), {1, 1}, "same",
                  "channels_last");
    return K::function({x}, {y});
  }
};

TEST_P(Behind, GiveWhatBuffersOfTheirOwnGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  Array expected = plainResult(function, inputs);
  K::CompileSettings settings;
  settings.threads = 1;
  function.configure(settings);
  EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
}

TEST_P(Behind, DoNotDependOnThreads) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  expectSameBitsOnThreads(function, inputs);
  K::set_num_threads(4);
  Array shared = function(inputs)[0];
  K::CompileSettings settings;
  settings.threads = 1;
  function.configure(settings);
  Array alone = function(inputs)[0];
  ASSERT_EQ(alone.byteSize(), shared.byteSize());
  EXPECT_EQ(std::memcmp(alone.data(), shared.data(),
                        static_cast<size_t>(alone.byteSize())),
            0);
}

TEST_P(Behind, LieOverTheEndOfTheImage) {
  K::SaveOptions options;
  options.threads = 1;
  options.batch = GetParam().image[0];
  std::vector<K::KernelInfo> kernels = block().kernels(options);
  auto window = std::find_if(
      kernels.begin(), kernels.end(), [](const K::KernelInfo &kernel) {
        return kernel.op == "depthwise" || kernel.op == "pool";
      });
  ASSERT_NE(window, kernels.end());
  ASSERT_NE(window, kernels.begin());
  // Its first operand is the image, with its border.
  int64_t image = std::prev(window)->arenaOffset[0], bytes = 4;
  std::istringstream shape(window->shapes);
  for (int64_t extent = 0; shape >> extent; shape.ignore())
    bytes *= extent;
  std::string places;
  for (const K::KernelInfo &kernel : kernels)
    places += kernel.op + " " + kernel.shapes + " at " +
              std::to_string(kernel.arenaOffset[0]) + "\n";
  EXPECT_GT(window->arenaOffset[0], image) << places;
  if (GetParam().image[0] == 1) {
    EXPECT_LT(window->arenaOffset[0], image + bytes) << places;
  } else {
    EXPECT_GE(window->arenaOffset[0], image + bytes) << places;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Behind,
    testing::Values(
        Case{"valid", {1, 20, 20, 32}, 3, {1, 1}, "valid"},
        Case{"same", {1, 19, 17, 40}, 3, {1, 1}, "same"},
        Case{"around", {1, 60, 28, 32}, 3, {1, 1}, "same"},
        Case{"strided", {1, 31, 20, 32}, 3, {2, 2}, "same"},
        Case{"large", {1, 28, 28, 24}, 5, {1, 1}, "same"},
        Case{"large_valid", {1, 29, 14, 48}, 5, {1, 1}, "valid"},
        Case{"large_strided", {1, 30, 29, 32}, 5, {2, 2}, "same"},
        Case{"far", {1, 30, 29, 16}, 3, {1, 1}, "same", {2, 2}},
        Case{"seven", {1, 21, 14, 16}, 7, {1, 1}, "valid"},
        Case{"narrow", {1, 40, 9, 3}, 3, {1, 1}, "valid"},
        Case{"column", {1, 50, 3, 32}, 2, {2, 1}, "valid"},
        Case{"pool", {1, 32, 32, 32}, 2, {2, 2}, "valid", {1, 1}, "max"},
        Case{"mean", {1, 21, 20, 32}, 3, {1, 1}, "same", {1, 1}, "avg"},
        Case{"border",
             {1, 18, 18, 32},
             3,
             {1, 1},
             "valid",
             {1, 1},
             nullptr,
             {1, 1}},
        Case{"border_strided",
             {1, 20, 20, 32},
             3,
             {2, 2},
             "valid",
             {1, 1},
             nullptr,
             {0, 1}},
        // In blocks of channels, the last of which is not full.
        Case{"blocks", {1, 14, 14, 400}, 5, {1, 1}, "same"},
        Case{"blocks_odd", {1, 15, 13, 331}, 3, {1, 1}, "valid"},
        Case{"images", {3, 20, 20, 32}, 3, {1, 1}, "valid"}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
