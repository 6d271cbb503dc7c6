//===- WinogradTest.cpp - convolutions by tiles ---------------------------===//
//
// Each is compared with what -O0 computes: plain sums over the window.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using namespace keratin::optest;

namespace {

struct Case {
  K::Shape image; ///< [batch, axes of the window.., channels]
  int64_t filters;
  const char *padding;
  DType dtype = DType::Float32;
  bool knowsWeights = true;             ///< constants; else an input
  K::Shape window = {3, 3};             ///< one to three axes
  K::Shape strides = {}, dilation = {}; ///< of the first ones, else 1
};

std::string nameOfWindow(const Case &c) {
  std::string name;
  auto add = [&](const K::Shape &numbers, const char *what,
                 const K::Shape &usual) {
    name += numbers == usual ? "" : what;
    for (size_t axis = 0; numbers != usual && axis < numbers.size(); ++axis)
      name += "_" + std::to_string(numbers[axis]);
  };
  add(c.window, "", {3, 3});
  add(c.strides, "_by", {});
  add(c.dilation, "_apart", {});
  return name;
}

std::string nameOf(const Case &c) {
  std::string name = c.dtype == DType::Float64 ? "f64_" : "";
  for (int64_t extent : c.image)
    name += std::to_string(extent) + "x";
  return name + std::to_string(c.filters) + "_" + c.padding +
         (c.knowsWeights ? "" : "_unknown") + nameOfWindow(c);
}

K::Tensor imagesOf(const Case &c, int64_t batch) {
  K::Shape shape = c.image;
  shape[0] = batch;
  return K::placeholder(shape, c.dtype);
}

K::Shape windowOf(const Case &c) {
  K::Shape shape = c.window;
  shape.insert(shape.end(), {c.image.back(), c.filters});
  return shape;
}

K::Tensor convolution(const Case &c, const K::Tensor &x, const K::Tensor &g) {
  auto ofAxes = [&](K::Shape numbers) {
    numbers.resize(c.window.size(), 1);
    return numbers;
  };
  return K::conv(x, g, ofAxes(c.strides), c.padding, "channels_last",
                 ofAxes(c.dilation));
}

/// Of the relative error. Tiles of eight inputs round further.
double boundOf(const Case &c, std::string_view form) {
  double bound = c.dtype == DType::Float64 ? 1e-13 : 1e-5;
  return form == "8" ? 5 * bound : bound;
}

class Winograd : public FormTest<Case> {
protected:
  /// A convolution with all that an epilogue may have.
  K::Function layer(int64_t batch = K::None) {
    const Case &c = GetParam();
    K::Tensor x = imagesOf(c, batch);
    K::Tensor weights = c.knowsWeights
                            ? K::constant(numbers(windowOf(c), c.dtype))
                            : K::placeholder(windowOf(c), c.dtype);
    K::Tensor sum = convolution(c, x, weights);
    K::Shape shape = K::int_shape(sum);
    K::Tensor beside = K::placeholder(shape, c.dtype);
    K::Tensor biased = K::bias_add(
        sum, K::constant(numbers({c.filters}, c.dtype)), "channels_last");
    std::vector<K::Tensor> inputs = {x, beside};
    if (!c.knowsWeights)
      inputs.push_back(weights);
    return K::function(inputs, {K::relu(biased) + beside});
  }
};

} // namespace

TEST_P(Winograd, GivesWhatSumsOverTheWindowGive) {
  const Case &c = GetParam();
  K::Function function = layer();
  std::vector<Array> inputs = inputsOf(function, c.image[0]);
  Array expected = plainResult(function, inputs);
  K::CompileSettings settings;
  for (const char *form : {"2", "4", "8"}) {
    settings.winograd = form;
    function.configure(settings);
    EXPECT_LE(relativeError(function(inputs)[0], expected), boundOf(c, form))
        << "F(" << form << ")";
  }
}

TEST_P(Winograd, IsWhatIsCompiled) {
  for (const char *form : {"2", "4", "8"})
    for (int64_t batch : {K::None, GetParam().image[0]}) {
      K::SaveOptions options;
      options.winograd = form;
      options.batch = batch;
      std::vector<std::string> ops = kernelOps(layer(), options);
      EXPECT_EQ(
          std::count(ops.begin(), ops.end(), "winograd" + std::string(form)),
          1);
      EXPECT_EQ(std::count(ops.begin(), ops.end(), "conv"), 0);
    }
}

TEST_P(Winograd, DoesNotDependOnThreads) {
  for (int64_t batch : {K::None, GetParam().image[0]}) {
    K::Function function = layer(batch);
    std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
    for (const char *form : {"2", "4", "8"}) {
      K::CompileSettings settings;
      settings.winograd = form;
      function.configure(settings);
      expectSameBitsOnThreads(function, inputs);
      // Code for one thread is other code.
      Array expected = function(inputs)[0];
      settings.threads = 1;
      function.configure(settings);
      expectSameBits(function(inputs)[0], expected);
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
        // Parts are blocks, and parts are positions.
        Case{{1, 96, 64, 24}, 24, "same"}, Case{{1, 14, 14, 64}, 320, "same"},
        Case{{1, 11, 10, 7}, 12, "same", DType::Float64},
        // Weights are transformed in the same turn as inputs, in one of their
        // own, and by the only part.
        Case{{1, 14, 14, 64}, 320, "same", DType::Float32, false},
        Case{{3, 37, 41, 33}, 50, "same", DType::Float32, false},
        Case{{2, 9, 7, 5}, 3, "valid", DType::Float32, false},
        Case{{1, 11, 10, 7}, 12, "same", DType::Float64, false},
        // With a depth, of which one place is left, and with one tap along it.
        Case{{2, 5, 9, 7, 20}, 17, "same", DType::Float32, true, {3, 3, 3}},
        Case{{3, 4, 8, 9, 16}, 24, "valid", DType::Float32, true, {4, 3, 3}},
        Case{{2, 6, 13, 8, 5}, 33, "same", DType::Float32, true, {1, 3, 3}},
        Case{{1, 7, 11, 12, 18}, 20, "valid", DType::Float32, false, {2, 3, 3}},
        Case{{2, 3, 6, 10, 7}, 12, "same", DType::Float64, false, {3, 3, 3}},
        // In pieces, of which the last ones have fewer taps or as many.
        Case{{1, 14, 11, 16}, 24, "same", DType::Float32, true, {5, 5}},
        Case{{2, 12, 9, 21}, 17, "valid", DType::Float32, true, {4, 4}},
        Case{{3, 17, 10, 6}, 40, "same", DType::Float32, true, {3, 7}},
        Case{{2, 13, 14, 33}, 20, "valid", DType::Float32, true, {9, 6}},
        Case{{1, 12, 13, 8}, 16, "same", DType::Float64, true, {7, 4}},
        Case{{2, 4, 8, 9, 10}, 18, "same", DType::Float32, true, {3, 5, 4}},
        // Along one axis, the only one, the first, the last, or one of three.
        Case{{2, 50, 20}, 33, "same", DType::Float32, true, {3}},
        Case{{1, 230, 6}, 17, "valid", DType::Float32, true, {11}},
        Case{{3, 41, 24}, 40, "same", DType::Float32, false, {3}},
        Case{{1, 29, 7}, 12, "valid", DType::Float64, true, {5}},
        Case{{2, 17, 12, 16}, 24, "same", DType::Float32, true, {7, 1}},
        Case{{1, 14, 19, 21}, 20, "valid", DType::Float32, true, {2, 5}},
        Case{{1, 14, 19, 21}, 20, "same", DType::Float32, false, {1, 3}},
        Case{{2, 9, 6, 5, 16}, 18, "same", DType::Float32, true, {3, 1, 2}},
        Case{{1, 9, 6, 11, 8}, 20, "same", DType::Float32, true, {4, 2, 3}},
        Case{{2, 9, 3, 7, 8}, 20, "valid", DType::Float32, true, {3, 3, 1}},
        // Two taps for each pixel by which windows move.
        Case{{2, 13, 16, 20}, 24, "same", DType::Float32, true, {2, 2}},
        Case{{1, 17, 22, 9}, 40, "valid", DType::Float32, false, {2, 2}},
        Case{{3, 90, 12}, 17, "same", DType::Float32, true, {2}},
        Case{{2, 27, 30, 16}, 33, "same", DType::Float32, true, {5, 4}, {2, 2}},
        Case{{1, 32, 23, 7}, 20, "valid", DType::Float32, true, {4, 4}, {2, 2}},
        Case{{2, 19, 26, 8}, 24, "same", DType::Float64, false, {4, 6}, {2, 3}},
        Case{{1, 80, 21}, 20, "same", DType::Float32, false, {6}, {3}},
        Case{{2, 61, 12}, 24, "same", DType::Float32, true, {2}, {}, {9}},
        Case{{1, 9, 8, 7, 10}, 18, "same", DType::Float32, true, {2, 2, 2}},
        // Pieces of weights that the kernel transforms.
        Case{{2, 16, 13, 20}, 40, "same", DType::Float32, false, {5, 5}},
        Case{{1, 12, 14, 33}, 17, "valid", DType::Float32, false, {4, 7}},
        Case{{1, 41, 24}, 36, "same", DType::Float32, false, {5}},
        Case{{2, 60, 17}, 20, "valid", DType::Float32, false, {12}},
        Case{{1, 11, 9, 14}, 40, "same", DType::Float64, false, {2, 4}},
        Case{{1, 4, 9, 8, 10}, 18, "same", DType::Float32, false, {2, 5, 4}},
        Case{{2, 31, 34, 3}, 24, "same", DType::Float32, false, {7, 7}, {2, 3}},
        Case{{2, 61, 20}, 24, "same", DType::Float32, false, {6}, {}, {5}},
        // An axis of one pixel, and one along which windows move by two.
        Case{{1, 3, 20, 16}, 24, "valid", DType::Float32, true, {3, 3}},
        Case{{2, 17, 20, 9}, 24, "same", DType::Float32, true, {3, 3}, {2, 1}},
        Case{{1, 17, 20, 9}, 24, "same", DType::Float32, false, {3, 3}, {1, 3}},
        // Windows move by several pixels, and have several taps for each.
        Case{{2, 70, 20}, 24, "same", DType::Float32, true, {7}, {2}},
        Case{{1, 61, 12}, 17, "valid", DType::Float32, true, {11}, {4}},
        Case{{1, 31, 34, 9}, 24, "same", DType::Float32, true, {5, 7}, {2, 3}},
        Case{{2, 24, 19, 5}, 20, "valid", DType::Float32, true, {4, 9}, {1, 2}},
        // Pixels of a tile are apart, of the last ones some tiles have none.
        Case{{2, 61, 20}, 24, "same", DType::Float32, true, {3}, {}, {7}},
        Case{{1, 23, 30, 18},
             20,
             "valid",
             DType::Float32,
             true,
             {3, 5},
             {},
             {3, 2}},
        Case{{2, 9, 16, 12},
             35,
             "same",
             DType::Float32,
             false,
             {3, 3},
             {},
             {2, 2}}),
    [](const auto &info) { return nameOf(info.param); });

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

namespace {
class WinogradGradient : public FormTest<Case> {
protected:
  /// What a loss that adds up the outputs, each times a number, has for slopes
  /// by the window and by the image.
  K::Function slopes(int64_t batch = K::None) {
    const Case &c = GetParam();
    K::Tensor x = imagesOf(c, batch);
    K::Tensor weights = K::placeholder(windowOf(c), c.dtype);
    K::Tensor y = convolution(c, x, weights);
    K::Tensor factors = K::placeholder(K::int_shape(y), c.dtype);
    std::vector<K::Tensor> found =
        K::gradients(K::sum(y * factors), {weights, x});
    return K::function({x, weights, factors}, {found[0] * 0.5, found[1]});
  }
};
} // namespace

TEST_P(WinogradGradient, GivesWhatSumsGive) {
  const Case &c = GetParam();
  for (int64_t batch : {K::None, c.image[0]}) {
    K::Function function = slopes(batch);
    std::vector<Array> inputs = inputsOf(function, c.image[0]);
    K::CompileSettings settings;
    settings.optimize = false;
    function.configure(settings);
    std::vector<Array> expected = function(inputs);
    settings.optimize = true;
    for (const char *form : {"2", "4", "8"}) {
      settings.winograd = form;
      function.configure(settings);
      std::vector<Array> results = function(inputs);
      for (size_t index : {0, 1})
        EXPECT_LE(relativeError(results[index], expected[index]),
                  boundOf(c, form))
            << "F(" << form << ")";
      expectSameBitsOnThreads(function, inputs);
    }
  }
}

TEST_P(WinogradGradient, OfNoImagesIsZero) {
  const Case &c = GetParam();
  K::Function function = slopes();
  std::vector<Array> results = function(inputsOf(function, 0));
  ASSERT_EQ(results[0].shape(), windowOf(c));
  for (int64_t index = 0; index < results[0].size(); ++index)
    ASSERT_EQ(results[0].at(index), 0);
  EXPECT_EQ(results[1].size(), 0);
}

TEST_P(WinogradGradient, IsWhatIsCompiled) {
  for (const char *form : {"2", "4", "8"}) {
    K::SaveOptions options;
    options.winograd = form;
    options.batch = GetParam().image[0];
    std::vector<std::string> ops = kernelOps(slopes(), options);
    // Windows that move by several pixels have other slopes by the image for
    // each of those.
    auto found =
        std::count(ops.begin(), ops.end(), "winograd" + std::string(form));
    if (GetParam().strides.empty())
      EXPECT_EQ(found, 2);
    EXPECT_GE(found, 2);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "conv"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradGradient,
    testing::Values(
        // One group of blocks, whose parts are channels.
        Case{{1, 8, 8, 16}, 32, "same"}, Case{{2, 8, 8, 264}, 272, "same"},
        // Edge tiles, the rest of a vector.
        Case{{2, 9, 7, 5}, 3, "valid"}, Case{{1, 13, 26, 20}, 17, "same"},
        Case{{3, 4, 5, 2}, 40, "same"},
        // Groups of one block and of several, the last one smaller.
        Case{{5, 37, 41, 33}, 50, "same"}, Case{{3, 130, 94, 8}, 12, "valid"},
        Case{{2, 30, 27, 7}, 12, "same", DType::Float64},
        // Along one axis, with several pixels along others.
        Case{{2, 50, 20}, 33, "same", DType::Float32, true, {3}},
        Case{{3, 610, 17}, 24, "valid", DType::Float32, true, {3}},
        Case{{2, 13, 9, 10}, 18, "same", DType::Float32, true, {1, 3}},
        Case{{2, 13, 9, 10}, 18, "valid", DType::Float32, true, {3, 1}},
        Case{{1, 5, 6, 7, 10}, 18, "same", DType::Float32, true, {1, 3, 3}},
        // Two taps for each pixel by which windows move.
        Case{{2, 13, 16, 20}, 24, "same", DType::Float32, true, {2, 2}},
        Case{{2, 27, 30, 16}, 33, "same", DType::Float32, true, {4, 4}, {2, 2}},
        Case{{3, 90, 12}, 17, "valid", DType::Float32, true, {2}, {}, {3}},
        // In pieces, with parts of channels and of blocks.
        Case{{1, 14, 11, 20}, 40, "same", DType::Float32, true, {5, 5}},
        Case{{5, 37, 41, 12}, 20, "valid", DType::Float32, true, {4, 7}},
        Case{{2, 50, 20}, 33, "same", DType::Float32, true, {5}},
        Case{{4, 610, 17}, 24, "valid", DType::Float32, true, {11}},
        Case{{1, 13, 10, 7}, 12, "same", DType::Float64, true, {4, 5}},
        Case{{2, 4, 9, 8, 10}, 18, "same", DType::Float32, true, {3, 3, 3}},
        Case{{2, 61, 9}, 20, "same", DType::Float32, true, {5}, {}, {3}},
        Case{{2, 31, 34, 9}, 24, "same", DType::Float32, true, {7, 7}, {2, 2}},
        Case{{3, 90, 20}, 17, "valid", DType::Float32, true, {7}, {2}}),
    [](const auto &info) { return nameOf(info.param); });

#ifdef __x86_64__
//===----------------------------------------------------------------------===//
// Factors of bf16
//===----------------------------------------------------------------------===//

namespace {
class WinogradOfBf16 : public FormTest<Case> {
protected:
  /// A convolution of what another kernel rounds.
  K::Function layer(int64_t batch) {
    const Case &c = GetParam();
    K::Tensor x = imagesOf(c, batch);
    K::Tensor sum = K::conv2d(K::relu(x), K::constant(weights), {1, 1},
                              c.padding, "channels_last");
    return K::function({x}, {K::relu(sum)});
  }

  Array weights = numbers(windowOf(GetParam()));
};

/// Has products of pairs in vectors, which take half as many instructions.
constexpr const char *pairs = "x86_64-linux-gnu,cooperlake";
} // namespace

TEST_P(WinogradOfBf16, TakesFewerInstructionsThanPairs) {
  K::SaveOptions options;
  options.precision = "bf16";
  options.batch = GetParam().image[0];
  for (auto [target, op] : {std::pair(pairs, "winograd4"),
                            {"x86_64-linux-gnu,sapphirerapids", "tiles"}}) {
    options.target = target;
    std::vector<std::string> ops = kernelOps(layer(K::None), options);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), op), 1) << target;
  }
}

TEST_P(WinogradOfBf16, GivesWhatSumsOfRoundedFactorsGive) {
  for (int64_t batch : {K::None, GetParam().image[0]}) {
    K::Function function = layer(batch);
    std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
    K::CompileSettings settings;
    settings.precision = "bf16";
    Array expected = plainResult(function, inputs, settings);
    // Machines without AVX2 widen rounded factors in code of their own.
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      settings.target = std::string(pairs) + "@x86-64-v3";
    for (const char *form : {"2", "4"}) {
      settings.winograd = form;
      function.configure(settings);
      EXPECT_LE(relativeError(function(inputs)[0], expected), 1e-5)
          << "F(" << form << ")";
      expectSameBitsOnThreads(function, inputs);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradOfBf16,
                         testing::Values(Case{{1, 28, 28, 128}, 128, "same"},
                                         Case{{1, 27, 30, 98}, 75, "same"},
                                         Case{{3, 16, 15, 128}, 68, "valid"}),
                         [](const auto &info) { return nameOf(info.param); });
#endif
