//===- Linear.cpp - rows of products --------------------------------------===//
#include "OpTable.h"

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// y[.., n] = sum over k of x[.., k] w[k, n]
static Values lastWithFirst(const Values &x, const Values &w) {
  K::Shape shape = x.shape;
  shape.back() = w.shape[1];
  return generate(shape, [&](S index) {
    double sum = 0;
    K::Shape at = index;
    for (int64_t k = 0; k < w.shape[0]; ++k) {
      at.back() = k;
      sum += x[at] * w[{k, index.back()}];
    }
    return sum;
  });
}

/// y[b, m, n] = sum over k of a[b, m, k] c[b, k, n]
static Values batched(const Values &a, const Values &c) {
  return generate({a.shape[0], a.shape[1], c.shape[2]}, [&](S i) {
    double sum = 0;
    for (int64_t k = 0; k < a.shape[2]; ++k)
      sum += a[{i[0], i[1], k}] * c[{i[0], k, i[2]}];
    return sum;
  });
}

static Row dot(std::string name, std::vector<K::Shape> shapes,
               int64_t weights) {
  return {.name = std::move(name),
          .shapes = std::move(shapes),
          .op = [](X x) { return K::dot(x[0], x[1]); },
          .formula =
              [](const std::vector<Values> &x) {
                return lastWithFirst(x[0], x[1]);
              },
          .tolerance = 4e-6,
          .weights = weights};
}

std::vector<Row> linearRows() {
  return {
      // Odd extents leave edges in every direction of the register tile.
      dot("dot", {{tableBatch, 17}, {17, 37}}, 1),
      dot("dot_of_arguments", {{tableBatch, 17}, {17, 37}}, 0),
      dot("dot_wide", {{tableBatch, 70}, {70, 96}}, 1),
      // Deep and wide enough for blocks of the sum, and for weights that are
      // asked for ahead.
      dot("dot_deep", {{tableBatch, 1500}, {1500, 45}}, 1),
      // Rows of the right factor far apart, few and many on the left.
      dot("dot_far_rows", {{tableBatch, 70}, {70, 520}}, 0),
      {.name = "dot_vector_far_rows",
       .shapes = {{1, 70}, {70, 520}},
       .op = [](X x) { return K::dot(x[0], x[1]); },
       .formula =
           [](const std::vector<Values> &x) {
             return lastWithFirst(x[0], x[1]);
           },
       .tolerance = 4e-6,
       .hasBatch = false},
      dot("dot_one_column", {{tableBatch, 33}, {33, 1}}, 1),
      dot("dot_rank_3", {{tableBatch, 5, 12}, {12, 8}}, 1),
      {.name = "batch_dot",
       .shapes = {{tableBatch, 5, 6}, {tableBatch, 6, 7}},
       .op = [](X x) { return K::batch_dot(x[0], x[1], {2, 1}); },
       .formula =
           [](const std::vector<Values> &x) { return batched(x[0], x[1]); },
       .tolerance = 4e-6},
      // A tensor with itself, of which one factor is packed.
      {.name = "batch_dot_of_rows_with_themselves",
       .shapes = {{tableBatch, 100, 130}},
       .op = [](X x) { return K::batch_dot(x[0], x[0], {2, 2}); },
       .formula =
           [](const std::vector<Values> &x) {
             return batched(x[0], permute(x[0], {0, 2, 1}));
           },
       .tolerance = 1e-5},
      {.name = "batch_dot_of_columns_with_themselves",
       .shapes = {{tableBatch, 130, 100}},
       .op = [](X x) { return K::batch_dot(x[0], x[0], {1, 1}); },
       .formula =
           [](const std::vector<Values> &x) {
             return batched(permute(x[0], {0, 2, 1}), x[0]);
           },
       .tolerance = 1e-5},
      {.name = "batch_dot_last_axes",
       .shapes = {{tableBatch, 5, 6}, {tableBatch, 7, 6}},
       .op = [](X x) { return K::batch_dot(x[0], x[1], {2, 2}); },
       .formula =
           [](const std::vector<Values> &x) {
             return batched(x[0], permute(x[1], {0, 2, 1}));
           },
       .tolerance = 4e-6},
      {.name = "matmul",
       .shapes = {{tableBatch, 5, 6}, {tableBatch, 6, 7}},
       .op = [](X x) { return K::matmul(x[0], x[1]); },
       .formula =
           [](const std::vector<Values> &x) { return batched(x[0], x[1]); },
       .tolerance = 4e-6},
      {.name = "tensordot",
       .shapes = {{tableBatch, 4, 5}, {5, 4, 6}},
       .op = [](X x) { return K::tensordot(x[0], x[1], {1, 2}, {1, 0}); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 6}, [&](S i) {
               double sum = 0;
               for (int64_t p = 0; p < 4; ++p)
                 for (int64_t q = 0; q < 5; ++q)
                   sum += x[0][{i[0], p, q}] * x[1][{q, p, i[1]}];
               return sum;
             });
           },
       .tolerance = 4e-6,
       .weights = 1},
      {.name = "einsum",
       .shapes = {{tableBatch, 5, 6}, {6, 2, 4}},
       .op = [](X x) { return K::einsum("btd,dhk->bhtk", x); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 2, 5, 4}, [&](S i) {
               double sum = 0;
               for (int64_t d = 0; d < 6; ++d)
                 sum += x[0][{i[0], i[2], d}] * x[1][{d, i[1], i[3]}];
               return sum;
             });
           },
       .tolerance = 4e-6,
       .weights = 1},
  };
}

} // namespace keratin::optest
