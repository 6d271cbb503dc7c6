//===- Reductions.cpp - statistics and running sums -----------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

/// The number of elements that a reduction of x combines, as a tensor of x's
/// dtype or a number.
static Tensor reducedCount(const Tensor &x, const std::vector<int64_t> &axes) {
  double known = 1;
  Tensor unknown;
  for (int64_t axis : axes) {
    Dim dim = extent(x, axis);
    if (!dim.tensor)
      known *= static_cast<double>(dim.extent);
    else
      unknown = unknown ? unknown * dim.tensor : dim.tensor;
  }
  return unknown ? cast(unknown, dtype(x)) * known : Tensor(known);
}

Tensor mean(const Tensor &x, const Axes &axis, bool keepdims) {
  requireTensor(x, "mean", "x");
  if (dtype(x) == DType::Bool)
    return mean(cast(x, floatx()), axis, keepdims);
  std::vector<int64_t> axes = normalizeAxes(axis, ndim(x), "mean");
  Tensor total = sum(x, axes, keepdims);
  Tensor count = reducedCount(x, axes);
  // The mean of integers is an integer.
  return isFloat(dtype(x)) ? total / count : emit("div", {total, count});
}

Tensor var(const Tensor &x, const Axes &axis, bool keepdims) {
  CalledAs function("var");
  requireTensor(x, "var", "x");
  if (!isFloat(dtype(x)))
    return var(cast(x, floatx()), axis, keepdims);
  std::vector<int64_t> axes = normalizeAxes(axis, ndim(x), "var");
  Tensor centre = mean(x, axes, /*keepdims=*/true);
  Tensor total = emit("squared_deviations", {x, centre}, {{"axes", axes}});
  Tensor spread = total / reducedCount(x, axes);
  return keepdims ? spread : squeeze(spread, axes);
}

Tensor std(const Tensor &x, const Axes &axis, bool keepdims) {
  CalledAs function("std");
  return sqrt(var(x, axis, keepdims));
}

Tensor logsumexp(const Tensor &x, const Axes &axis, bool keepdims) {
  CalledAs function("logsumexp");
  // log sum e^x = m + log sum e^(x - m); an infinite m would give inf - inf.
  Tensor largest = stop_gradient(max(x, axis, /*keepdims=*/true));
  Tensor shift = where(isfinite(largest), largest, full_like(largest, 0));
  Tensor total = log(sum(exp(x - shift), axis, /*keepdims=*/true)) + shift;
  return keepdims ? total
                  : squeeze(total, normalizeAxes(axis, ndim(x), "logsumexp"));
}

/// Each slice along `axis` combined with all before it.
static Tensor accumulate(const Tensor &x, int64_t axis, double start,
                         const FoldFunction &combine) {
  axis = normalizeAxis(axis, ndim(x), "cumsum");
  Tensor sequence = moveaxis(x, axis, 0);
  Tensor first = squeeze(getitem(sequence, {Slice{0, 1}}), 0);
  ScanStep scan =
      emitScan({sequence}, {full_like(first, start)}, /*reverse=*/false,
               [&](ScanTrace &, const Tensors &slices, const Tensors &states) {
                 Tensor next = combine(states[0], slices[0]);
                 return ScanStep{{next}, {next}};
               });
  return moveaxis(scan.outputs[0], 0, axis);
}

Tensor cumsum(const Tensor &x, int64_t axis) {
  CalledAs function("cumsum");
  return accumulate(x, axis, 0, [](const Tensor &total, const Tensor &next) {
    return total + next;
  });
}

Tensor cumprod(const Tensor &x, int64_t axis) {
  CalledAs function("cumprod");
  return accumulate(x, axis, 1, [](const Tensor &total, const Tensor &next) {
    return total * next;
  });
}

} // namespace keratin::backend
