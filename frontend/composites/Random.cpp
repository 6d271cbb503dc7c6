//===- Random.cpp - distributions -----------------------------------------===//
//
// Each call of a function of the API has a state of its own: a key, which is
// the seed, and the number of the call of the compiled function. `ktn.random`
// makes uniform numbers of it.
//
//===----------------------------------------------------------------------===//
#include "Extents.h"

#include "../Emit.h"
#include "keratin/backend.h"

#include <cmath>
#include <numbers>

namespace keratin::backend {

using Seed = std::optional<uint64_t>;

/// Uniform in [0, 1).
static Tensor unit(std::string_view function, const Dims &given, DType dtype,
                   const Seed &seed) {
  Dims dims = resolve(given);
  for (const Dim &dim : dims.values())
    if (!dim.tensor && dim.extent < 0)
      throw Error(std::string(function) + ": shape is " +
                  shapeName(knownExtents(dims)) +
                  " but its extents must be numbers of 0 or more, or tensors");
  Tensor extents = hasTensors(dims) ? extentsTensor(dims, {}) : Tensor();
  return emit("random", {randomState(seed), extents},
              {{"target", Extents{knownExtents(dims)}}, {"dtype", dtype}},
              /*required=*/1);
}

/// Narrow floats are computed as float32.
static DType computeType(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32
                                                             : dtype;
}

static void requireFloat(std::string_view function, DType dtype) {
  if (!isFloat(dtype))
    throw Error(std::string(function) + ": dtype is " +
                std::string(dtypeName(dtype)) + " but must be a float dtype");
}

/// x * scale + shift, where these are numbers or tensors, in another dtype.
static Tensor affine(const Tensor &x, const Tensor &scale, const Tensor &shift,
                     DType dtype) {
  auto like = [&](const Tensor &value) {
    return value.id() ? cast(value, backend::dtype(x)) : value;
  };
  return cast(x * like(scale) + like(shift), dtype);
}

Tensor random_uniform(const Dims &shape, const Tensor &minval,
                      const Tensor &maxval, DType dtype, Seed seed) {
  CalledAs function("random_uniform");
  requireTensor(minval, "random_uniform", "minval");
  requireTensor(maxval, "random_uniform", "maxval");
  if (dtype == DType::Bool)
    throw Error("random_uniform: dtype is bool but must be a number dtype");
  if (isFloat(dtype)) {
    Tensor u = unit("random_uniform", shape, computeType(dtype), seed);
    return affine(u, maxval - minval, minval, dtype);
  }
  // Integers are those below: all equally likely, maxval not among them.
  Tensor u = unit("random_uniform", shape, DType::Float64, seed);
  auto wide = [](const Tensor &bound) {
    return bound.id() ? cast(bound, DType::Float64)
                      : constant(bound.number(), DType::Float64);
  };
  Tensor low = wide(minval);
  return cast(floor(u * (wide(maxval) - low)) + low, dtype);
}

Tensor random_normal(const Dims &shape, const Tensor &mean,
                     const Tensor &stddev, DType dtype, Seed seed) {
  CalledAs function("random_normal");
  requireTensor(mean, "random_normal", "mean");
  requireTensor(stddev, "random_normal", "stddev");
  requireFloat("random_normal", dtype);
  // Box and Muller: the radius and the angle of a point that is normal in two
  // dimensions are independent. 1 - u is never 0.
  std::vector<Dim> pairs = resolve(shape).values();
  pairs.insert(pairs.begin(), 2);
  Tensor u = unit("random_normal", pairs, computeType(dtype), seed);
  Tensor radius = sqrt(log(1 - getitem(u, {0})) * -2);
  Tensor angle = getitem(u, {1}) * (2 * std::numbers::pi);
  return affine(radius * cos(angle), stddev, mean, dtype);
}

/// sqrt(2) erfinv(x) for |x| <= erf(sqrt 2). M. Giles, Approximating the erfinv
/// function, 2010: the centre of the single precision form, good to 3e-7.
static Tensor centralQuantile(const Tensor &x) {
  constexpr double coefficients[] = {
      2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
      -4.39150654e-06, 0.00021858087,  -0.00125372503,
      -0.00417768164,  0.246640727,    1.50140941};
  Tensor w = negative(log((1 - x) * (1 + x))) - 2.5;
  Tensor p = w * coefficients[0] + coefficients[1];
  for (size_t i = 2; i < std::size(coefficients); ++i)
    p = p * w + coefficients[i];
  return p * x * std::numbers::sqrt2;
}

Tensor truncated_normal(const Dims &shape, const Tensor &mean,
                        const Tensor &stddev, DType dtype, Seed seed) {
  CalledAs function("truncated_normal");
  requireTensor(mean, "truncated_normal", "mean");
  requireTensor(stddev, "truncated_normal", "stddev");
  requireFloat("truncated_normal", dtype);
  // The quantile of a probability between those of -2 and 2, which stand for
  // what would be dropped and picked again.
  const double inside = std::erf(std::numbers::sqrt2);
  Tensor u = unit("truncated_normal", shape, computeType(dtype), seed);
  Tensor z = clip(centralQuantile((u * 2 - 1) * inside), -2, 2);
  return affine(z, stddev, mean, dtype);
}

Tensor random_binomial(const Dims &shape, const Tensor &p, DType dtype,
                       Seed seed) {
  CalledAs function("random_binomial");
  requireTensor(p, "random_binomial", "p");
  Tensor u = unit("random_binomial", shape, DType::Float32, seed);
  return cast(less(u, p.id() ? cast(p, DType::Float32) : p), dtype);
}

Tensor dropout(const Tensor &x, double level,
               const std::optional<Dims> &noise_shape, Seed seed) {
  CalledAs function("dropout");
  requireTensor(x, "dropout", "x");
  requireFloat("dropout", dtype(x));
  if (!(level >= 0 && level < 1))
    throw Error("dropout: level is " + std::to_string(level) +
                " but must be in [0, 1)");
  if (level == 0)
    return x;
  std::vector<Dim> noise;
  if (noise_shape)
    noise = noise_shape->values();
  else
    noise.assign(static_cast<size_t>(ndim(x)), None);
  if (static_cast<int64_t>(noise.size()) > ndim(x))
    throw Error("dropout: noise_shape is " + shapeName(knownExtents(noise)) +
                " but x has shape " + shapeName(int_shape(x)));
  auto added = ndim(x) - static_cast<int64_t>(noise.size());
  for (size_t axis = 0; axis < noise.size(); ++axis)
    if (!noise[axis].tensor && noise[axis].extent == None)
      noise[axis] = extent(x, added + static_cast<int64_t>(axis));
  Tensor kept =
      greater_equal(unit("dropout", noise, DType::Float32, seed), level);
  return where(kept, x * (1 / (1 - level)), 0);
}

Tensor random_uniform_variable(const Shape &shape, double low, double high,
                               DType dtype, std::string_view name, Seed seed) {
  return variable(random_uniform(shape, low, high, dtype, seed), name);
}

Tensor random_normal_variable(const Shape &shape, double mean, double scale,
                              DType dtype, std::string_view name, Seed seed) {
  return variable(random_normal(shape, mean, scale, dtype, seed), name);
}

} // namespace keratin::backend
