//===- BandsTest.cpp - images that go from kernel to kernel by bands ------===//
//
// Each is compared with what -O0 computes: every image as a whole.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using namespace keratin::optest;

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

class Bands : public FormTest<Case> {
protected:
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
};

TEST_P(Bands, GiveWhatWholeImagesGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  Array expected = plainResult(function, inputs);
  EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
}

TEST_P(Bands, AreWhatIsCompiled) {
  K::SaveOptions options;
  options.batch = GetParam().isOpen ? K::None : GetParam().image[0];
  std::vector<std::string> ops = kernelOps(block(), options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "bands"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "depthwise"), 0);
}

TEST_P(Bands, DoNotDependOnThreads) {
  K::Function function = block();
  expectSameBitsOnThreads(function, inputsOf(function, GetParam().image[0]));
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

/// Convolutions and pools: their windows overlap, so that tiles of them are
/// kept, and what is behind reads a border around the last.
struct PoolCase {
  const char *name;
  K::Shape image; ///< channels last
  int64_t channels, window;
  const char *behind = "same"; ///< the padding of what reads the pool
  int64_t bands = 1;           ///< loops over them
};

class BandsOfPools : public FormTest<PoolCase> {
protected:
  K::Function block() {
    const PoolCase &c = GetParam();
    K::Tensor x = K::placeholder(c.image), y = x;
    int64_t before = c.image[3];
    for (int64_t channels : {c.channels, c.channels}) {
      K::Tensor weights =
          K::constant(numbers({c.window, c.window, before, channels}));
      y = K::conv2d(y, weights, {1, 1}, "same", "channels_last");
      y = K::relu(K::bias_add(y, K::constant(numbers({channels}))));
      before = channels;
    }
    y = K::pool2d(y, {2, 2}, {2, 2}, "valid", "channels_last", "max");
    y = K::conv2d(y, K::constant(numbers({3, 3, before, 8})), {1, 1}, c.behind,
                  "channels_last");
    return K::function({x}, {y});
  }
};

TEST_P(BandsOfPools, GiveWhatWholeImagesGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  Array expected = plainResult(function, inputs);
  EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
}

TEST_P(BandsOfPools, AreWhatIsCompiled) {
  K::SaveOptions options;
  options.batch = GetParam().image[0];
  std::vector<std::string> ops = kernelOps(block(), options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "bands"), GetParam().bands);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "pool"), 1 - GetParam().bands);
}

TEST_P(BandsOfPools, DoNotDependOnThreads) {
  K::Function function = block();
  expectSameBitsOnThreads(function, inputsOf(function, GetParam().image[0]));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BandsOfPools,
    testing::Values(
        // With the first convolution, and a border around the pool.
        PoolCase{"few_channels", {1, 96, 96, 3}, 48, 3},
        PoolCase{"many_channels", {1, 96, 88, 24}, 48, 3},
        // A band is an image; a border around many has no place.
        PoolCase{"images", {24, 28, 28, 16}, 32, 3, "valid"},
        PoolCase{"border", {24, 28, 28, 16}, 32, 3, "same", 0},
        // No band has whole tiles.
        PoolCase{"prime", {1, 106, 90, 3}, 48, 3, "same", 0},
        PoolCase{"large_windows", {1, 96, 96, 3}, 32, 5}),
    [](const auto &info) { return std::string(info.param.name); });

/// The last band of rows that it has with others begins early enough to be
/// whole: before the border that the window behind the chain reads around.
class BandsBeforeABorder : public FormTest<int64_t> {
protected:
  K::Function block() {
    int64_t rows = GetParam(), channels = 64;
    K::Tensor x = K::placeholder({1, rows, 149, channels});
    K::Tensor y = x;
    for (const char *padding : {"valid", "same"}) {
      y = K::depthwise_conv2d(y, K::constant(numbers({3, 3, channels, 1})),
                              {1, 1}, padding, "channels_last");
      y = K::conv2d(y, K::constant(numbers({1, 1, channels, 32})), {1, 1},
                    "same", "channels_last");
      y = K::relu(y);
      channels = 32;
    }
    return K::function({x}, {y});
  }
};

TEST_P(BandsBeforeABorder, GiveWhatWholeImagesGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, 1);
  Array expected = plainResult(function, inputs);
  for (int threads : {1, 3}) {
    K::set_num_threads(threads);
    EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
  }
}

TEST_P(BandsBeforeABorder, AreWhatIsCompiled) {
  K::SaveOptions options;
  options.batch = 1;
  std::vector<std::string> ops = kernelOps(block(), options);
  EXPECT_GE(std::count(ops.begin(), ops.end(), "bands"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "fill"), 2);
}

INSTANTIATE_TEST_SUITE_P(Rows, BandsBeforeABorder,
                         testing::Values(149, 150, 151, 155),
                         testing::PrintToStringParamName());

/// Pools over all of what a product makes, of which they reduce a band as soon
/// as it is there.
struct GlobalPoolCase {
  const char *name;
  K::Shape image; ///< channels last
  int64_t channels, window;
  K::Tensor (*pool)(const K::Tensor &, const K::Axes &, bool);
  bool isOpen = false; ///< any number of images
  bool keepsAxes = false;
  int64_t bands = 1; ///< loops over them
};

class BandsOfGlobalPools : public FormTest<GlobalPoolCase> {
protected:
  K::Function block() {
    const GlobalPoolCase &c = GetParam();
    K::Shape shape = c.image;
    if (c.isOpen)
      shape[0] = K::None;
    K::Tensor x = K::placeholder(shape), y;
    int64_t before = shape.back();
    bool isLine = shape.size() == 3;
    if (isLine)
      y = K::conv1d(x, K::constant(numbers({c.window, before, c.channels})), 1,
                    "same", "channels_last");
    else
      y = K::conv2d(
          x, K::constant(numbers({c.window, c.window, before, c.channels})),
          {1, 1}, "same", "channels_last");
    y = K::sigmoid(K::bias_add(y, K::constant(numbers({c.channels}))));
    y = c.pool(y, isLine ? K::Axes{1} : K::Axes{1, 2}, c.keepsAxes);
    return K::function({x}, {y});
  }
};

TEST_P(BandsOfGlobalPools, GiveWhatWholeImagesGive) {
  K::Function function = block();
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  Array expected = plainResult(function, inputs);
  EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5);
}

TEST_P(BandsOfGlobalPools, AreWhatIsCompiled) {
  K::SaveOptions options;
  options.batch = GetParam().isOpen ? K::None : GetParam().image[0];
  std::vector<std::string> ops = kernelOps(block(), options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "bands"), GetParam().bands);
}

TEST_P(BandsOfGlobalPools, DoNotDependOnThreads) {
  K::Function function = block();
  expectSameBitsOnThreads(function, inputsOf(function, GetParam().image[0]));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BandsOfGlobalPools,
    testing::Values(
        GlobalPoolCase{"points", {2, 2048, 16}, 512, 1, K::max},
        GlobalPoolCase{"smallest", {1, 1200, 16}, 400, 1, K::min, true, true},
        GlobalPoolCase{"sums", {1, 96, 96, 8}, 64, 1, K::sum, true},
        GlobalPoolCase{"means", {3, 100, 90, 8}, 64, 1, K::mean, false, true},
        GlobalPoolCase{"windows", {1, 96, 96, 8}, 64, 3, K::mean},
        // No rows of theirs are a part of an image; the image is small.
        GlobalPoolCase{"prime", {1, 2503, 16}, 256, 1, K::max, false, false, 0},
        GlobalPoolCase{
            "small", {1, 512, 16}, 512, 1, K::mean, false, false, 0}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
