//===- SharesTest.cpp - few rows and few columns that threads share -------===//
//
// Small images of many channels, whose rows are too few for equal shares, with
// borders around them, and sums over whole images.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using namespace keratin::optest;

namespace {

/// A product for each pixel, a window over each channel, a mean of each image
/// that gates it, and a product again.
struct Case {
  const char *name;
  int64_t rows, columns, channels, wide, window, narrow, stride = 1;
};

class Shares : public FormTest<Case> {
protected:
  K::Function block() {
    const Case &c = GetParam();
    K::Tensor x = K::placeholder({K::None, c.rows, c.columns, c.channels});
    K::Tensor wide =
        K::conv2d(x, K::constant(numbers({1, 1, c.channels, c.wide})), {1, 1},
                  "same", "channels_last");
    wide = K::depthwise_conv2d(
        K::relu(wide), K::constant(numbers({c.window, c.window, c.wide, 1})),
        {c.stride, c.stride}, "same", "channels_last", {1, 1});
    K::Tensor gate = K::sigmoid(K::mean(wide, {1, 2}, /*keepdims=*/true));
    K::Tensor narrow =
        K::conv2d(wide * gate, K::constant(numbers({1, 1, c.wide, c.narrow})),
                  {1, 1}, "same", "channels_last");
    return K::function({x}, {narrow});
  }
};

TEST_P(Shares, GiveWhatOneThreadGives) {
  K::Function function = block();
  expectSameBitsOnThreads(function, inputsOf(function, 1));
}

TEST_P(Shares, GiveWhatPlainLoopsGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, 1);
  Array expected = plainResult(function, inputs);
  EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Shares,
    testing::Values(Case{"seven", 7, 7, 96, 576, 5, 96},
                    Case{"rests", 7, 7, 61, 500, 3, 91},
                    Case{"fourteen", 14, 14, 48, 384, 3, 64},
                    Case{"strided", 15, 13, 48, 384, 5, 80, 2},
                    Case{"one_block", 11, 9, 64, 400, 3, 16},
                    // Of these an expansion has more weights than rows, so
                    // threads share its columns, and those of the window.
                    Case{"columns", 7, 7, 192, 1152, 5, 192},
                    Case{"columns_rests", 5, 6, 260, 1111, 3, 40},
                    Case{"tall", 20, 20, 80, 480, 5, 80},
                    Case{"tall_rests", 27, 22, 24, 145, 3, 24}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
