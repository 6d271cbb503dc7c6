//===- SplitTest.cpp - products of f32 in tile registers ------------------===//
//
// Factors become sums of three numbers of bf16, of whose nine products six are
// added up: as exact as products of f32, so f64 tells how exact they are. Rows
// are split block by block, and long sums are in blocks as well.
//
//===----------------------------------------------------------------------===//
#include "FormTest.h"

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using namespace keratin::optest;

#ifdef __x86_64__
namespace {

Array asF64(const Array &array) {
  Array result(DType::Float64, array.shape());
  for (int64_t index = 0; index < array.size(); ++index)
    result.set(index, array.at(index));
  return result;
}

/// Of f32 with any order of these sums it is 6e-8 to 5e-6.
constexpr double mostError = 1.5e-6;

/// Code for a machine with AMX, which is emulated where there is none. That
/// rounds nothing, but code of this shape has FMAs; machines without compute
/// the same in code of their own.
K::CompileSettings inTileRegisters() {
  K::CompileSettings settings;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    settings.target = "x86_64-linux-gnu,sapphirerapids@x86-64-v3";
  return settings;
}

struct Case {
  const char *name;
  K::Shape image; ///< batch, height, width, channels
  int64_t filters;
  int64_t stride = 1, window = 1;
};

class SplitProducts : public FormTest<Case> {
protected:
  K::Function layer(K::Shape image, const Array &weights, const Array &bias) {
    const Case &c = GetParam();
    K::Tensor x = K::placeholder(image, weights.dtype());
    K::Tensor sum = K::conv2d(x, K::constant(weights), {c.stride, c.stride},
                              "valid", "channels_last");
    return K::function({x}, {K::relu(K::bias_add(sum, K::constant(bias)))});
  }
  K::Function layer(K::Shape image) {
    return layer(std::move(image), weights, bias);
  }
  Array exactResult(const Array &input) {
    return layer(input.shape(), asF64(weights), asF64(bias))({asF64(input)})[0];
  }

  Array weights = numbers({GetParam().window, GetParam().window,
                           GetParam().image[3], GetParam().filters});
  Array bias = numbers({GetParam().filters});
};

TEST_P(SplitProducts, AreInTileRegisters) {
  K::SaveOptions options;
  options.target = "x86_64-linux-gnu,sapphirerapids";
  K::Function function = layer(GetParam().image);
  std::vector<std::string> ops = kernelOps(function, options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "tiles6"), 1);
  options.tiles = "off";
  ops = kernelOps(function, options);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "tiles6"), 0);
}

TEST_P(SplitProducts, AreAsExactAsF32) {
  K::Shape open = GetParam().image;
  open[0] = K::None;
  for (const K::Shape &image : {open, GetParam().image}) {
    K::Function function = layer(image);
    std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
    function.configure(inTileRegisters());
    EXPECT_LE(relativeError(function(inputs)[0], exactResult(inputs[0])),
              mostError);
    expectSameBitsOnThreads(function, inputs);
  }
}

/// Each number is its parts, whatever its exponent.
TEST_P(SplitProducts, AreOfNumbersOfAnySize) {
  K::Function function = layer(GetParam().image);
  for (float scale : {1e-30F, 1e36F}) {
    std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
    for (int64_t index = 0; index < inputs[0].size(); ++index)
      inputs[0].set(index, inputs[0].at(index) * double(scale));
    function.configure(inTileRegisters());
    EXPECT_LE(relativeError(function(inputs)[0], exactResult(inputs[0])),
              mostError)
        << scale;
  }
}

/// What has no parts makes its own row not a number, and no other one.
TEST_P(SplitProducts, OfInfinitiesAreNoNumbers) {
  K::Function function = layer(GetParam().image);
  function.configure(inTileRegisters());
  std::vector<Array> inputs = inputsOf(function, GetParam().image[0]);
  Array finite = function(inputs)[0];
  inputs[0].set(0, INFINITY);
  Array result = function(inputs)[0];
  int64_t filters = GetParam().filters;
  for (int64_t index = 0; index < filters; ++index)
    EXPECT_FALSE(std::isfinite(result.at(index)) && result.at(index) != 0);
  int64_t others =
      std::memcmp(static_cast<const float *>(result.data()) + filters,
                  static_cast<const float *>(finite.data()) + filters,
                  size_t(result.byteSize()) - size_t(filters) * sizeof(float));
  EXPECT_EQ(others, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SplitProducts,
    testing::Values(Case{"plain", {1, 8, 8, 64}, 64},
                    // Steps, columns and rows that fill no tile.
                    Case{"rests", {2, 7, 7, 90}, 77},
                    Case{"prime", {1, 1, 37, 61}, 41},
                    Case{"strided", {2, 15, 13, 96}, 48, 2},
                    Case{"windows", {1, 13, 13, 64}, 48, 2, 3},
                    // Several blocks of rows, and of the sum.
                    Case{"many_rows", {1, 40, 40, 128}, 160},
                    Case{"deep", {1, 6, 9, 3072}, 80},
                    Case{"deep_rests", {3, 5, 9, 2048}, 75}),
    [](const auto &info) { return std::string(info.param.name); });

/// Columns of several axes, as those of heads: rows are split once for all.
TEST(SplitHeads, AreAsExactAsF32) {
  Array weights(DType::Float32, {5, 128, 72});
  for (int64_t index = 0; index < weights.size(); ++index)
    weights.set(index, double(index * 7919 % 2003) / 1001 - 1);
  auto product = [](const Array &weights) {
    K::Tensor x = K::placeholder({2, 50, 128}, weights.dtype());
    return K::function({x}, {K::dot(x, K::constant(weights)) * 2.0});
  };
  Array rows(DType::Float32, {2, 50, 128});
  for (int64_t index = 0; index < rows.size(); ++index)
    rows.set(index, double(index * 104729 % 1999) / 1000 - 1);
  K::Function function = product(weights);
  function.configure(inTileRegisters());
  Array exact = product(asF64(weights))({asF64(rows)})[0];
  EXPECT_LE(relativeError(function({rows})[0], exact), mostError);
  expectSameBitsOnThreads(function, {rows});
}

/// Steps of a recurrent layer, whose sums are of an input and a state.
struct Gates {
  const char *name;
  int64_t rows, inputs, units;
};

class SplitGates : public FormTest<Gates> {
protected:
  K::Function lstm(DType dtype) {
    const Gates &c = GetParam();
    auto constant = [&](const Array &array) {
      return K::constant(dtype == DType::Float64 ? asF64(array) : array);
    };
    K::Tensor ofInput = constant(weights), ofState = constant(recurrent),
              start = constant(zeros);
    auto gate = [&](const K::Tensor &z, int64_t number) {
      return K::getitem(
          z, {K::Slice(), K::Slice(number * c.units, (number + 1) * c.units)});
    };
    auto step = [&](const K::Tensor &x, const K::Tensors &states) {
      K::Tensor z = K::dot(x, ofInput) + K::dot(states[0], ofState);
      K::Tensor next = K::sigmoid(gate(z, 1)) * states[1] +
                       K::sigmoid(gate(z, 0)) * K::tanh(gate(z, 2));
      K::Tensor h = K::sigmoid(gate(z, 3)) * K::tanh(next);
      return std::pair(h, K::Tensors{h, next});
    };
    K::Tensor x = K::placeholder({c.rows, 5, c.inputs}, dtype);
    return K::function({x}, {K::rnn(step, x, {start, start}, {}).outputs});
  }

  Array weights = numbers({GetParam().inputs, 4 * GetParam().units});
  Array recurrent = numbers({GetParam().units, 4 * GetParam().units});
  Array zeros = Array(DType::Float32, {GetParam().rows, GetParam().units});
};

TEST_P(SplitGates, AreAsExactAsF32) {
  K::SaveOptions options;
  options.target = "x86_64-linux-gnu,sapphirerapids";
  K::Function function = lstm(DType::Float32);
  std::vector<std::string> ops = kernelOps(function, options);
  EXPECT_NE(std::count(ops.begin(), ops.end(), "tiles6"), 0)
      << testing::PrintToString(ops);
  function.configure(inTileRegisters());
  std::vector<Array> inputs = inputsOf(function, GetParam().rows);
  Array exact = lstm(DType::Float64)({asF64(inputs[0])})[0];
  EXPECT_LE(relativeError(function(inputs)[0], exact), 5e-6);
  expectSameBitsOnThreads(function, inputs);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SplitGates,
    testing::Values(Gates{"two_tiles", 32, 64, 64},
                    Gates{"one_tile", 16, 96, 32},
                    // Tiles of 13, 13 and the last 13, of which the third
                    // shares rows with the second.
                    Gates{"rests", 37, 50, 93}, Gates{"wide", 64, 128, 128}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
#endif
