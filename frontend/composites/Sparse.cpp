//===- Sparse.cpp - matrices of which few elements are not zero -----------===//
//
// A sparse tensor is a `ktn.sparse`: the elements and where they are. To every
// other function it is the dense matrix; `dot` and `concatenate` look behind
// it.
//
//===----------------------------------------------------------------------===//
#include "Sparse.h"

#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

std::optional<SparseParts> sparseParts(const Tensor &x) {
  Tensors parts = operandsOf("sparse", x);
  if (parts.empty())
    return std::nullopt;
  return SparseParts{parts[0], parts[1], parts[2]};
}

static Tensor makeSparse(const SparseParts &parts, const Shape &shape) {
  return emit("sparse", {parts.values, parts.rows, parts.columns},
              {{"target", shape}});
}

bool is_sparse(const Tensor &x) { return sparseParts(x).has_value(); }

Tensor to_dense(const Tensor &x) {
  requireTensor(x, "to_dense", "x");
  // The same elements, by an op that nobody looks behind.
  return is_sparse(x)
             ? emit("reshape", {x}, {{"target", Extents{int_shape(x)}}})
             : x;
}

static void checkCsr(const CsrArray &value) {
  auto require = [](bool holds, const std::string &what) {
    if (!holds)
      throw Error("variable: " + what);
  };
  require(value.shape.size() == 2 && value.shape[0] > 0 && value.shape[1] > 0,
          "a sparse value has shape " + shapeName(value.shape) +
              " but must have two extents of 1 or more");
  int64_t count = value.data.size(), rows = value.shape[0];
  require(value.indices.size() == count,
          "a sparse value has " + std::to_string(count) + " elements but " +
              std::to_string(value.indices.size()) + " indices");
  require(value.indptr.size() == rows + 1 && value.indptr.at(0) == 0 &&
              value.indptr.at(rows) == static_cast<double>(count),
          "indptr of a sparse value must have " + std::to_string(rows + 1) +
              " elements, from 0 to " + std::to_string(count));
  for (int64_t row = 0; row < rows; ++row)
    require(value.indptr.at(row) <= value.indptr.at(row + 1),
            "indptr of a sparse value falls at row " + std::to_string(row));
  for (int64_t i = 0; i < count; ++i) {
    double column = value.indices.at(i);
    require(column >= 0 && column < static_cast<double>(value.shape[1]),
            "index " + std::to_string(i) + " of a sparse value is " +
                std::to_string(static_cast<int64_t>(column)) +
                " but there are " + std::to_string(value.shape[1]) +
                " columns");
  }
}

Tensor variable(const CsrArray &value, DType dtype, std::string_view name) {
  checkCsr(value);
  // An explicit zero stands for none, so that there is an element at least.
  int64_t count = std::max<int64_t>(value.data.size(), 1);
  Array data(dtype, {count}), rows(DType::Int32, {count}),
      columns(DType::Int32, {count});
  for (int64_t row = 0; row < value.shape[0]; ++row)
    for (auto i = static_cast<int64_t>(value.indptr.at(row));
         i < static_cast<int64_t>(value.indptr.at(row + 1)); ++i) {
      data.set(i, value.data.at(i));
      rows.set(i, static_cast<double>(row));
      columns.set(i, value.indices.at(i));
    }
  return makeSparse({variable(data, name), constant(rows), constant(columns)},
                    value.shape);
}

Tensor sparseDot(const SparseParts &x, const Tensor &y, int64_t rows) {
  // Row r of the product is the sum of x[r, c] y[c] over the elements of x.
  Tensor terms = gather(y, x.columns) * expand_dims(x.values, 1);
  Tensor zeros = full({rows, extent(y, 1)}, 0, dtype(y));
  return emit("scatter_add", {zeros, x.rows, terms});
}

Tensor joinSparse(const Tensors &tensors, int64_t axis) {
  Tensors values, rows, columns;
  Shape shape = int_shape(tensors[0]);
  shape[axis] = 0;
  for (const Tensor &tensor : tensors) {
    SparseParts parts = *sparseParts(tensor);
    Shape own = int_shape(tensor);
    if (own[1 - axis] != shape[1 - axis])
      throw Error("concatenate: " + shapeName(int_shape(tensors[0])) + " and " +
                  shapeName(own) + " differ in an axis other than " +
                  std::to_string(axis));
    Tensor &moved = axis == 0 ? parts.rows : parts.columns;
    moved = moved + shape[axis];
    shape[axis] += own[axis];
    values.push_back(parts.values);
    rows.push_back(parts.rows);
    columns.push_back(parts.columns);
  }
  return makeSparse(
      {concatenate(values, 0), concatenate(rows, 0), concatenate(columns, 0)},
      shape);
}

} // namespace keratin::backend
