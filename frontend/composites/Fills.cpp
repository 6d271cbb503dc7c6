//===- Fills.cpp - tensors of one value, and of positions -----------------===//
#include "Extents.h"

#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

Tensor variable(const Array &value, DType dtype, std::string_view name) {
  return variable(value.to(dtype), name);
}

Tensor zeros(const Shape &shape, DType dtype, std::string_view name) {
  return variable(Array(dtype, shape), name);
}

Tensor ones(const Shape &shape, DType dtype, std::string_view name) {
  return variable(Array::full(shape, 1, dtype), name);
}

Tensor constant(double value, DType dtype, const Shape &shape,
                std::string_view name) {
  Tensor scalar = constant(Array::full({}, value, dtype), name);
  return shape.empty() ? scalar : broadcast_to(scalar, shape);
}

Tensor full(const Dims &shape, double value, DType dtype) {
  return broadcast_to(constant(value, dtype), shape);
}

/// `value` in the shape of x, whatever it turns out to be.
static Tensor fillLike(const Tensor &x, double value, DType dtype) {
  Tensor scalar = constant(Array::full({}, value, dtype), "");
  Shape shape = int_shape(x);
  bool known = std::find(shape.begin(), shape.end(), None) == shape.end();
  return emit("broadcast_to", {scalar, known ? Tensor() : extentsOf(x)},
              {{"target", Extents{shape}}}, /*required=*/1);
}

Tensor zeros_like(const Tensor &x, DType dtype, std::string_view) {
  return fillLike(x, 0, dtype);
}

Tensor ones_like(const Tensor &x, DType dtype, std::string_view) {
  return fillLike(x, 1, dtype);
}

Tensor full_like(const Tensor &x, double value) {
  return fillLike(x, value, dtype(x));
}

Tensor eye(int64_t size, DType dtype, std::string_view name) {
  if (size < 0)
    throw Error("eye: size is " + std::to_string(size) +
                " but must be 0 or more");
  Array array(dtype, {size, size});
  for (int64_t i = 0; i < size; ++i)
    array.set(i * size + i, 1);
  return constant(array, name);
}

Tensor arange(int64_t start, std::optional<int64_t> stop, int64_t step,
              DType dtype) {
  if (!stop)
    stop = std::exchange(start, 0);
  if (step == 0)
    throw Error("arange: step is 0");
  int64_t span = step > 0 ? *stop - start : start - *stop;
  int64_t width = step > 0 ? step : -step;
  int64_t count = span <= 0 ? 0 : (span + width - 1) / width;
  Array array(dtype, {count});
  for (int64_t i = 0; i < count; ++i)
    array.set(i, static_cast<double>(start + i * step));
  return constant(array);
}

Tensor arange(const Tensor &start, const Tensor &stop, int64_t step,
              DType dtype) {
  CalledAs function("arange");
  requireTensor(start, "arange", "start");
  if (!stop)
    return arange(Tensor(0), start, step, dtype);
  if (step == 0)
    throw Error("arange: step is 0");
  for (const Tensor &bound : {start, stop})
    if (ndim(bound) != 0)
      throw Error("arange: a bound has shape " + shapeName(int_shape(bound)) +
                  " but must be a scalar");
  auto wide = [](const Tensor &bound) {
    return bound.id() ? cast(bound, DType::Int64)
                      : constant(bound.number(), DType::Int64);
  };
  Tensor first = wide(start), span = wide(stop) - first;
  Tensor count = floor_divide(span + (step > 0 ? step - 1 : step + 1), step);
  Dims extent = resolve({maximum(count, 0)});
  Tensor shape = hasTensors(extent) ? extentsTensor(extent, {}) : Tensor();
  Tensor positions = emit("iota", {shape},
                          {{"target", Extents{knownExtents(extent)}},
                           {"axis", int64_t(0)},
                           {"dtype", DType::Int64}},
                          /*required=*/0);
  return cast(positions * step + first, dtype);
}

Dim extent(const Tensor &x, int64_t axis) {
  axis = normalizeAxis(axis, ndim(x), "extent");
  int64_t known = int_shape(x)[axis];
  if (known != None)
    return known;
  return squeeze(slice(extentsOf(x), {axis}, {1}), 0);
}

Tensor size(const Tensor &x, std::string_view) {
  CalledAs function("size");
  requireTensor(x, "size", "x");
  return cast(prod(extentsOf(x.id() ? x : constant(x.number()))), DType::Int32);
}

} // namespace keratin::backend
