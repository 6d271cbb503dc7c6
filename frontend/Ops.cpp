//===- Ops.cpp - the functions of the API that are one op -----------------===//
//
// keratin-opgen writes those whose arguments are the op's. Here are the others:
// operators, and the ops whose axes, dtypes or paddings Keras tells in another
// form.
//
//===----------------------------------------------------------------------===//
#include "Emit.h"
#include "composites/Sparse.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

#include "Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tensor operator+(const Tensor &a, const Tensor &b) { return add(a, b); }
Tensor operator-(const Tensor &a, const Tensor &b) { return subtract(a, b); }
Tensor operator*(const Tensor &a, const Tensor &b) { return multiply(a, b); }
Tensor operator/(const Tensor &a, const Tensor &b) { return divide(a, b); }
Tensor operator%(const Tensor &a, const Tensor &b) { return mod(a, b); }
Tensor operator-(const Tensor &a) { return negative(a); }
Tensor operator<(const Tensor &a, const Tensor &b) { return less(a, b); }
Tensor operator<=(const Tensor &a, const Tensor &b) { return less_equal(a, b); }
Tensor operator>(const Tensor &a, const Tensor &b) { return greater(a, b); }
Tensor operator>=(const Tensor &a, const Tensor &b) {
  return greater_equal(a, b);
}

Tensor cast(const Tensor &x, DType dtype) {
  requireTensor(x, "cast", "x");
  if (x.id() && backend::dtype(x) == dtype)
    return x;
  return emit("cast", {x}, {{"dtype", dtype}});
}

Tensor cast_to_floatx(const Tensor &x) {
  requireTensor(x, "cast_to_floatx", "x");
  return cast(x, floatx());
}

Array cast_to_floatx(const Array &x) { return x.to(floatx()); }

/// Integer tensors divide as floats that hold them.
static Tensor asFloat(const Tensor &x) {
  if (!x.id() || isFloat(dtype(x)) || dtype(x) == DType::Bool)
    return x;
  return cast(x, dtypeSize(dtype(x)) >= 4 ? DType::Float64 : DType::Float32);
}

Tensor divide(const Tensor &a, const Tensor &b) {
  CalledAs function("divide");
  return emit("div", {asFloat(a), asFloat(b)});
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Tensor reduce(std::string_view mnemonic, const Tensor &x,
                     const Axes &axis, bool keepdims) {
  requireTensor(x, mnemonic, "x");
  return emit(mnemonic, {x},
              {{"axes", normalizeAxes(axis, ndim(x), mnemonic)},
               {"keepdims", keepdims}});
}

Tensor sum(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("sum", x, axis, keepdims);
}
Tensor prod(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("prod", x, axis, keepdims);
}
Tensor max(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("max", x, axis, keepdims);
}
Tensor min(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("min", x, axis, keepdims);
}
Tensor any(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("any", cast(x, DType::Bool), axis, keepdims);
}
Tensor all(const Tensor &x, const Axes &axis, bool keepdims) {
  return reduce("all", cast(x, DType::Bool), axis, keepdims);
}

static Tensor argReduce(std::string_view mnemonic, const Tensor &x,
                        int64_t axis, bool keepdims) {
  requireTensor(x, mnemonic, "x");
  return emit(mnemonic, {x},
              {{"axis", normalizeAxis(axis, ndim(x), mnemonic)},
               {"keepdims", keepdims}});
}

Tensor argmax(const Tensor &x, int64_t axis, bool keepdims) {
  return argReduce("argmax", x, axis, keepdims);
}
Tensor argmin(const Tensor &x, int64_t axis, bool keepdims) {
  return argReduce("argmin", x, axis, keepdims);
}

Tensor softmax(const Tensor &x, int64_t axis) {
  requireTensor(x, "softmax", "x");
  return emit("softmax", {x},
              {{"axis", normalizeAxis(axis, ndim(x), "softmax")}});
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Tensor permute_dimensions(const Tensor &x,
                          const std::vector<int64_t> &pattern) {
  CalledAs function("permute_dimensions");
  std::vector<int64_t> permutation;
  for (int64_t axis : pattern)
    permutation.push_back(normalizeAxis(axis, ndim(x), "permute_dimensions"));
  return emit("transpose", {x}, {{"permutation", permutation}});
}

Tensor expand_dims(const Tensor &x, const Axes &axis) {
  requireTensor(x, "expand_dims", "x");
  if (axis.all())
    throw Error("expand_dims: axis is None but must be an integer");
  auto rank = ndim(x) + static_cast<int64_t>(axis.values().size());
  return emit("expand_dims", {x},
              {{"axes", normalizeAxes(axis, rank, "expand_dims")}});
}

Tensor squeeze(const Tensor &x, const Axes &axis) {
  return emit("squeeze", {x},
              {{"axes", normalizeAxes(axis, ndim(x), "squeeze")}});
}

Tensor reverse(const Tensor &x, const Axes &axes) {
  return emit("reverse", {x},
              {{"axes", normalizeAxes(axes, ndim(x), "reverse")}});
}

Tensor concatenate(const Tensors &tensors, int64_t axis) {
  if (tensors.empty())
    throw Error("concatenate: there are no tensors");
  for (const Tensor &tensor : tensors)
    requireTensor(tensor, "concatenate", "a tensor");
  CalledAs function("concatenate");
  if (std::all_of(tensors.begin(), tensors.end(), is_sparse))
    return joinSparse(tensors, normalizeAxis(axis, 2, "concatenate"));
  return emit("concat", tensors,
              {{"axis", normalizeAxis(axis, ndim(tensors[0]), "concatenate")}});
}

Tensor pad(const Tensor &x,
           const std::vector<std::pair<int64_t, int64_t>> &pad_width,
           double constant_value) {
  requireTensor(x, "pad", "x");
  std::vector<int64_t> low, high;
  for (auto [before, after] : pad_width) {
    low.push_back(before);
    high.push_back(after);
  }
  return emit("pad", {x},
              {{"low", low},
               {"high", high},
               {"value", Number{constant_value, dtype(x)}}});
}

Tensor gather(const Tensor &reference, const Tensor &indices, int64_t axis,
              int64_t batch_dims) {
  requireTensor(reference, "gather", "reference");
  requireTensor(indices, "gather", "indices");
  Tensor positions =
      isFloat(dtype(indices)) ? cast(indices, DType::Int32) : indices;
  return emit("gather", {reference, positions},
              {{"axis", normalizeAxis(axis, ndim(reference), "gather")},
               {"batch_dims", batch_dims}});
}

} // namespace keratin::backend
