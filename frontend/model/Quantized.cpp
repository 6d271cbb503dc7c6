//===- Quantized.cpp - layers with quantised weights ----------------------===//
#include "Quantized.h"

#include <cmath>

using namespace keratin;
using namespace keratin::model;

static void requireType(LayerContext &layer, const Array &value, DType expected,
                        const std::string &name) {
  if (value.dtype() != expected)
    layer.fail("has '" + name + "' of dtype " +
               std::string(dtypeName(value.dtype())) + " in the file, but " +
               std::string(dtypeName(expected)) + " is expected");
}

static K::Tensor bias(LayerContext &layer, int64_t units, bool biased) {
  return biased ? layer.weight("bias", {units}) : K::Tensor();
}

static K::Tensor plus(const K::Tensor &y, const K::Tensor &bias) {
  return bias ? y + bias : y;
}

/// Each row of x gets a scale s = 127 / (max |x| + 1e-7):
/// y = (round(x s) · kernel) / (kernel_scale s) + bias.
/// The sums of products of bytes are exact in int32.
static K::Tensor int8Dense(LayerContext &layer, const K::Tensor &x,
                           int64_t features, int64_t units, bool biased) {
  Array kernel = layer.weightArray("kernel", {features, units});
  requireType(layer, kernel, DType::Int8, "kernel");
  K::Tensor addend = bias(layer, units, biased);
  K::Tensor kernelScale = layer.weight("kernel_scale", {units});
  K::Tensor most = K::max(K::abs(x), -1, /*keepdims=*/true);
  K::Tensor scale = K::Tensor(127.0) / (most + 1e-7);
  K::Tensor rounded = K::clip(K::round(x * scale), -127.0, 127.0);
  K::Tensor sums = K::dot(K::cast(rounded, DType::Int32),
                          K::cast(K::constant(kernel, "kernel"), DType::Int32));
  return plus(K::cast(sums, layer.dtype()) / (kernelScale * scale), addend);
}

/// Two signed nibbles a byte, the even column in the low one.
static Array unpackNibbles(const Array &packed, int64_t columns) {
  int64_t rows = packed.shape()[0], bytes = packed.shape()[1];
  Array result(DType::Int8, {rows, columns});
  auto *out = static_cast<int8_t *>(result.mutableData());
  const int8_t *in = packed.as<int8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      auto byte = uint8_t(in[row * bytes + column / 2]);
      uint8_t nibble = column % 2 ? byte >> 4 : byte & 15;
      *out++ = int8_t(nibble > 7 ? int(nibble) - 16 : int(nibble));
    }
  return result;
}

/// Rows belong to groups, by g_idx: w = (q - kernel_zero[g]) kernel_scale[g];
/// without groups w = q / kernel_scale.
static K::Tensor int4Dense(LayerContext &layer, const K::Tensor &x,
                           int64_t features, int64_t units, bool biased) {
  Array packed = layer.weightArray("kernel", {features, (units + 1) / 2});
  requireType(layer, packed, DType::Int8, "kernel");
  K::Tensor kernel = K::cast(
      K::constant(unpackNibbles(packed, units), "kernel"), layer.dtype());
  K::Tensor addend = bias(layer, units, biased);
  if (layer.weightsLeft() == 1) {
    K::Tensor scale = layer.weight("kernel_scale", {units});
    return plus(K::dot(x, kernel / scale), addend);
  }
  K::Tensor scale = layer.weight("kernel_scale", {-1, units});
  K::Tensor zero = layer.weight("kernel_zero", {-1, units});
  Array groups = layer.weightArray("g_idx", {features});
  int64_t groupCount = K::int_shape(scale)[0];
  for (int64_t row = 0; row < features; ++row)
    if (!(groups.at(row) >= 0 && groups.at(row) < double(groupCount)))
      layer.fail("has a row in group " + std::to_string(groups.at(row)) +
                 " of 'g_idx', but " + std::to_string(groupCount) +
                 " groups in 'kernel_scale'");
  K::Tensor group = K::cast(K::constant(groups, "g_idx"), DType::Int32);
  K::Tensor weights =
      (kernel - K::gather(zero, group)) * K::gather(scale, group);
  return plus(K::dot(x, weights), addend);
}

namespace {
/// The 8-bit float formats that Keras rounds to.
struct Float8 {
  double largest;
  int mantissaBits;
  int leastExponent;
};
constexpr Float8 e4m3{448.0, 3, -6};
} // namespace

/// x rounded to the nearest value of the format, ties to even. `step` is the
/// distance of neighbours: 2^(exponent - mantissa bits).
static K::Tensor roundTo(const Float8 &format, const K::Tensor &x) {
  K::Tensor magnitude =
      K::maximum(K::abs(x), std::ldexp(1.0, format.leastExponent));
  // Comparisons rather than a logarithm: exact at the powers of two.
  K::Tensor step = K::full_like(
      x, std::ldexp(1.0, format.leastExponent - format.mantissaBits));
  for (int exponent = format.leastExponent + 1;
       std::ldexp(1.0, exponent) <= format.largest; ++exponent) {
    K::Tensor above = K::cast(
        K::greater_equal(magnitude, std::ldexp(1.0, exponent)), K::dtype(x));
    step = step * (above + 1.0);
  }
  return K::round(x / step) * step;
}

/// Keras quantises and dequantises the operands: q = clip(x / scale) in e4m3,
/// then q scale. The products stay in float.
static K::Tensor fakeFloat8(const K::Tensor &x, const K::Tensor &scale) {
  K::Tensor clipped = K::clip(x / scale, -e4m3.largest, e4m3.largest);
  return roundTo(e4m3, clipped) * scale;
}

static K::Tensor float8Dense(LayerContext &layer, const K::Tensor &x,
                             int64_t features, int64_t units, bool biased) {
  K::Tensor kernel = layer.weight("kernel", {features, units});
  K::Tensor addend = bias(layer, units, biased);
  K::Tensor inputsScale = layer.weight("inputs_scale", {});
  layer.weightArray("inputs_amax_history", {-1});
  K::Tensor kernelScale = layer.weight("kernel_scale", {});
  layer.skipWeights(); // of training
  return plus(
      K::dot(fakeFloat8(x, inputsScale), fakeFloat8(kernel, kernelScale)),
      addend);
}

K::Tensor model::quantizedDense(LayerContext &layer, const K::Tensor &x,
                                int64_t features, int64_t units, bool biased) {
  const std::string &mode = layer.quantization();
  if (mode == "int8")
    return int8Dense(layer, x, features, units, biased);
  if (mode == "int4" || mode.starts_with("int4/"))
    return int4Dense(layer, x, features, units, biased);
  if (mode == "float8")
    return float8Dense(layer, x, features, units, biased);
  layer.fail("is quantised to '" + mode +
             "', but int8, int4 and float8 are supported: save the model "
             "before quantising it");
}
