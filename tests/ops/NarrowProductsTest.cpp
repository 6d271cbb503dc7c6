//===- NarrowProductsTest.cpp - products of few columns -------------------===//
//
// Their vectors go along the sum, whose last elements may fill none, and the
// lanes of some rows and columns are added up together.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using namespace keratin::optest;

namespace {

struct Case {
  const char *name;
  int64_t rows, deep, wide;
  DType dtype = DType::Float32;
  const char *precision = "f32";
};

class NarrowProducts : public FormTest<Case> {
protected:
  K::Function product() {
    const Case &c = GetParam();
    K::Tensor x = K::placeholder({c.rows, c.deep}, c.dtype);
    K::Tensor sum = K::dot(K::relu(x), K::constant(weights));
    return K::function({x}, {K::sigmoid(sum + K::constant(bias))});
  }
  K::CompileSettings settings() {
    K::CompileSettings settings;
    settings.precision = GetParam().precision;
    return settings;
  }

  Array weights = numbers({GetParam().deep, GetParam().wide}, GetParam().dtype);
  Array bias = numbers({GetParam().wide}, GetParam().dtype);
  Array rows = numbers({GetParam().rows, GetParam().deep}, GetParam().dtype);
};

TEST_P(NarrowProducts, GiveWhatPlainLoopsGive) {
  K::Function function = product();
  Array expected = plainResult(function, {rows}, settings());
  EXPECT_LE(relativeError(function({rows})[0], expected), 1e-5);
}

TEST_P(NarrowProducts, GiveWhatOneThreadGives) {
  K::Function function = product();
  function.configure(settings());
  expectSameBitsOnThreads(function, {rows});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, NarrowProducts,
    testing::Values(Case{"excited", 1, 96, 4}, Case{"rest", 1, 239, 10},
                    Case{"blocks", 1, 1152, 48}, Case{"three", 3, 515, 37},
                    Case{"many", 301, 300, 7}, Case{"eight", 50, 1027, 8},
                    Case{"column", 131, 333, 1}, Case{"two", 67, 160, 2},
                    Case{"odd", 45, 777, 13}, Case{"far", 1100, 512, 10},
                    Case{"plain", 41, 512, 10}, Case{"rests", 29, 387, 5},
                    Case{"threes", 64, 256, 3},
                    Case{"f64", 23, 203, 6, DType::Float64},
                    Case{"few_f64", 12, 640, 4, DType::Float64},
                    Case{"f16", 40, 515, 10, DType::Float32, "f16"},
                    Case{"bf16", 40, 512, 10, DType::Float32, "bf16"},
                    Case{"bf16_rest", 3, 1001, 9, DType::Float32, "bf16"}),
    [](const auto &info) { return std::string(info.param.name); });

/// Other products: `make` of two placeholders.
struct OtherCase {
  const char *name;
  K::Shape left, right;
  K::Tensor (*make)(const K::Tensor &, const K::Tensor &);
};

class OtherNarrowProducts : public FormTest<OtherCase> {
protected:
  K::Function product() {
    K::Tensor x = K::placeholder(GetParam().left);
    K::Tensor y = K::placeholder(GetParam().right);
    return K::function({x, y}, {GetParam().make(x, y)});
  }
  std::vector<Array> inputs() {
    return {numbers(GetParam().left), numbers(GetParam().right)};
  }
};

TEST_P(OtherNarrowProducts, GiveWhatPlainLoopsGive) {
  K::Function function = product();
  std::vector<Array> arrays = inputs();
  Array expected = plainResult(function, arrays);
  EXPECT_LE(relativeError(function(arrays)[0], expected), 1e-5);
}

TEST_P(OtherNarrowProducts, GiveWhatOneThreadGives) {
  K::Function function = product();
  expectSameBitsOnThreads(function, inputs());
}

K::Tensor transposedProduct(const K::Tensor &x, const K::Tensor &y) {
  return K::dot(x, K::transpose(y));
}
K::Tensor batchProduct(const K::Tensor &x, const K::Tensor &y) {
  return K::batch_dot(x, y, {2, 2});
}
K::Tensor weightsOf(const K::Shape &kernel) {
  Array weights(DType::Float32, kernel);
  for (int64_t index = 0; index < weights.size(); ++index)
    weights.set(index, double(index % 23) / 23 - .4);
  return K::constant(weights);
}
K::Tensor convolution(const K::Tensor &x, const K::Shape &kernel,
                      int64_t stride, const char *padding) {
  return K::conv2d(x, weightsOf(kernel), {stride, stride}, padding);
}
K::Tensor strided(const K::Tensor &x, const K::Tensor &y) {
  return convolution(x, {3, 3, 64, 5}, 2, "valid") + y;
}
K::Tensor colours(const K::Tensor &x, const K::Tensor &y) {
  return convolution(x, {3, 3, 32, 3}, 1, "same") + y;
}
K::Tensor wideWindow(const K::Tensor &x, const K::Tensor &y) {
  return convolution(x, {5, 7, 20, 4}, 1, "same") + y;
}
// Steps take all taps along a row: of one column and two, of an even number of
// them, and with a rest of channels.
K::Tensor oneFilter(const K::Tensor &x, const K::Tensor &y) {
  return convolution(K::relu(x), {5, 5, 37, 1}, 1, "same") + y;
}
K::Tensor twoFilters(const K::Tensor &x, const K::Tensor &y) {
  return convolution(x, {3, 4, 48, 2}, 1, "valid") + y;
}
K::Tensor oneOfLine(const K::Tensor &x, const K::Tensor &y) {
  return K::conv1d(x, weightsOf({9, 24, 1}), 1, "causal") + y;
}
K::Tensor oneUnknown(const K::Tensor &x, const K::Tensor &kernel) {
  return K::conv2d(x, kernel, {1, 1}, "same");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OtherNarrowProducts,
    testing::Values(
        OtherCase{"transposed", {37, 520}, {6, 520}, transposedProduct},
        OtherCase{"vector", {37, 523}, {1, 523}, transposedProduct},
        OtherCase{"few", {2, 130}, {19, 130}, transposedProduct},
        OtherCase{"batches", {3, 11, 200}, {3, 5, 200}, batchProduct},
        OtherCase{"strided", {2, 17, 23, 64}, {2, 8, 11, 5}, strided},
        OtherCase{"colours", {2, 19, 21, 32}, {2, 19, 21, 3}, colours},
        OtherCase{"wide_window", {1, 14, 30, 20}, {1, 14, 30, 4}, wideWindow},
        OtherCase{"one_filter", {2, 19, 31, 37}, {2, 19, 31, 1}, oneFilter},
        OtherCase{"two_filters", {1, 15, 43, 48}, {1, 13, 40, 2}, twoFilters},
        OtherCase{"one_of_line", {3, 101, 24}, {3, 101, 1}, oneOfLine},
        OtherCase{"one_unknown", {2, 18, 26, 32}, {3, 3, 32, 1}, oneUnknown}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
