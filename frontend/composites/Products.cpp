//===- Products.cpp - products of matrices and their kin ------------------===//
#include "Sparse.h"

#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <numeric>

namespace keratin::backend {

namespace {

using AxisList = std::vector<int64_t>;

/// Batch axes, then the free ones of lhs, then those of rhs.
Tensor dotGeneral(const Tensor &lhs, const Tensor &rhs,
                  const AxisList &lhsContract, const AxisList &rhsContract,
                  const AxisList &lhsBatch = {},
                  const AxisList &rhsBatch = {}) {
  return emit("dot_general", {lhs, rhs},
              {{"lhs_batch", lhsBatch},
               {"rhs_batch", rhsBatch},
               {"lhs_contract", lhsContract},
               {"rhs_contract", rhsContract}});
}

AxisList leading(int64_t count) {
  AxisList axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::string bothShapes(const Tensor &x, const Tensor &y) {
  return "x has shape " + shapeName(int_shape(x)) + " and y has shape " +
         shapeName(int_shape(y));
}

/// Throws unless the extents are equal or one of them is not known.
void checkExtents(const Tensor &x, int64_t xAxis, const Tensor &y,
                  int64_t yAxis, std::string_view function) {
  int64_t a = int_shape(x)[xAxis], b = int_shape(y)[yAxis];
  if (a != None && b != None && a != b)
    throw Error(std::string(function) + ": " + bothShapes(x, y) + ": axis " +
                std::to_string(xAxis) + " of x and axis " +
                std::to_string(yAxis) + " of y differ");
}

} // namespace

Tensor dot(const Tensor &x, const Tensor &y) {
  CalledAs function("dot");
  requireTensor(x, "dot", "x");
  requireTensor(y, "dot", "y");
  if (ndim(x) == 0 || ndim(y) == 0)
    return x * y;
  int64_t xAxis = ndim(x) - 1, yAxis = std::max<int64_t>(ndim(y) - 2, 0);
  checkExtents(x, xAxis, y, yAxis, "dot");
  if (std::optional<SparseParts> parts = sparseParts(x); parts && ndim(y) == 2)
    return sparseDot(*parts, y, int_shape(x)[0]);
  return dotGeneral(x, y, {xAxis}, {yAxis});
}

Tensor tensordot(const Tensor &x, const Tensor &y,
                 const std::vector<int64_t> &x_axes,
                 const std::vector<int64_t> &y_axes) {
  CalledAs function("tensordot");
  if (x_axes.size() != y_axes.size())
    throw Error("tensordot: " + std::to_string(x_axes.size()) +
                " axes of x but " + std::to_string(y_axes.size()) + " of y");
  AxisList xAxes, yAxes;
  for (int64_t axis : x_axes)
    xAxes.push_back(normalizeAxis(axis, ndim(x), "tensordot"));
  for (int64_t axis : y_axes)
    yAxes.push_back(normalizeAxis(axis, ndim(y), "tensordot"));
  return dotGeneral(x, y, xAxes, yAxes);
}

//===----------------------------------------------------------------------===//
// Products of batches
//===----------------------------------------------------------------------===//

/// Keras' default: the last axis of x and the second to last of y.
static std::pair<int64_t, int64_t>
batchDotAxes(const Tensor &x, const Tensor &y, const AxisList &axes) {
  if (axes.size() > 2)
    throw Error("batch_dot: " + std::to_string(axes.size()) +
                " axes are given, there are one or two");
  if (axes.empty())
    return {ndim(x) - 1, ndim(y) == 2 ? 1 : ndim(y) - 2};
  int64_t xAxis = normalizeAxis(axes.front(), ndim(x), "batch_dot");
  int64_t yAxis = normalizeAxis(axes.back(), ndim(y), "batch_dot");
  if (xAxis == 0 || yAxis == 0)
    throw Error("batch_dot: axis 0 is the batch and cannot be summed over");
  return {xAxis, yAxis};
}

Tensor batch_dot(const Tensor &x, const Tensor &y,
                 const std::vector<int64_t> &axes) {
  CalledAs function("batch_dot");
  if (ndim(x) < 2 || ndim(y) < 2)
    throw Error("batch_dot: both tensors must have 2 or more axes but " +
                bothShapes(x, y));
  auto [xAxis, yAxis] = batchDotAxes(x, y, axes);
  checkExtents(x, 0, y, 0, "batch_dot");
  checkExtents(x, xAxis, y, yAxis, "batch_dot");
  Tensor product = dotGeneral(x, y, {xAxis}, {yAxis}, {0}, {0});
  return ndim(product) == 1 ? expand_dims(product, 1) : product;
}

namespace {

/// The extents that two lists of leading axes broadcast to.
std::vector<Dim> broadcastBatch(const Tensor &x, const Tensor &y,
                                int64_t xCount, int64_t yCount) {
  std::vector<Dim> dims;
  for (int64_t i = std::max(xCount, yCount); i > 0; --i) {
    bool ofX = i <= xCount, ofY = i <= yCount;
    int64_t a = ofX ? int_shape(x)[xCount - i] : 1;
    int64_t b = ofY ? int_shape(y)[yCount - i] : 1;
    if (a != b && a != None && b != None && a != 1 && b != 1)
      throw Error("matmul: " + bothShapes(x, y) +
                  ": their leading axes do not broadcast");
    // A known extent other than 1 is the extent of both.
    bool fromX = ofX && a != 1 && (a != None || b == 1 || b == None);
    dims.push_back(fromX ? extent(x, xCount - i)
                   : ofY ? extent(y, yCount - i)
                         : extent(x, xCount - i));
  }
  return dims;
}

/// `x` with the leading axes `batch` before its last two.
Tensor withBatch(const Tensor &x, std::vector<Dim> batch) {
  int64_t rank = ndim(x);
  Shape wanted;
  for (const Dim &dim : batch)
    wanted.push_back(dim.tensor ? None : dim.extent);
  Shape have = int_shape(x);
  have.resize(static_cast<size_t>(rank - 2));
  if (have == wanted)
    return x;
  batch.push_back(extent(x, rank - 2));
  batch.push_back(extent(x, rank - 1));
  return broadcast_to(x, batch);
}

} // namespace

Tensor matmul(const Tensor &x, const Tensor &y) {
  CalledAs function("matmul");
  if (ndim(x) == 0 || ndim(y) == 0)
    throw Error("matmul: scalars have no product of matrices; " +
                bothShapes(x, y));
  if (ndim(x) == 1)
    return squeeze(matmul(expand_dims(x, 0), y),
                   ndim(y) == 1 ? Axes(0) : Axes(-2));
  if (ndim(y) == 1)
    return squeeze(matmul(x, expand_dims(y, 1)), -1);
  checkExtents(x, ndim(x) - 1, y, ndim(y) - 2, "matmul");
  if (ndim(y) == 2)
    return dotGeneral(x, y, {ndim(x) - 1}, {0});

  std::vector<Dim> batch = broadcastBatch(x, y, ndim(x) - 2, ndim(y) - 2);
  auto count = static_cast<int64_t>(batch.size());
  Tensor lhs = withBatch(x, batch), rhs = withBatch(y, batch);
  return dotGeneral(lhs, rhs, {count + 1}, {count}, leading(count),
                    leading(count));
}

} // namespace keratin::backend
