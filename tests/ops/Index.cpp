//===- Index.cpp - rows of ops that look up -------------------------------===//
#include "OpTable.h"

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

std::vector<Row> indexRows() {
  return {
      {.name = "gather",
       .shapes = {{tableBatch, 5}, {4, 6}},
       .op = [](X x) { return K::gather(x[1], x[0]); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 5, 6}, [&](S i) {
               return x[1][{int64_t(x[0][{i[0], i[1]}]), i[2]}];
             });
           },
       .classes = 4,
       .dtypes = {DType::Int32},
       .weights = 1},
      {.name = "gather_inner_axis",
       .shapes = {{tableBatch, 4, 6}, {5}},
       .op = [](X x) { return K::gather(x[0], x[1], 1); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 5, 6}, [&](S i) {
               return x[0][{i[0], int64_t(x[1][{i[1]}]), i[2]}];
             });
           },
       .classes = 4,
       .dtypes = {DType::Float32, DType::Int32}},
      {.name = "gather_batched",
       .shapes = {{tableBatch, 4, 6}, {tableBatch, 5}},
       .op = [](X x) { return K::gather(x[0], x[1], 1, 1); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 5, 6}, [&](S i) {
               return x[0][{i[0], int64_t(x[1][{i[0], i[1]}]), i[2]}];
             });
           },
       .classes = 4,
       .dtypes = {DType::Float32, DType::Int32}},
      {.name = "gather_two_batches",
       .shapes = {{tableBatch, 2, 3, 4}, {tableBatch, 2, 5}},
       .op = [](X x) { return K::gather(x[0], x[1], 3, 2); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 2, 3, 5}, [&](S i) {
               auto from = int64_t(x[1][{i[0], i[1], i[3]}]);
               return x[0][{i[0], i[1], i[2], from}];
             });
           },
       .classes = 4,
       .dtypes = {DType::Float32, DType::Int32}},
      {.name = "one_hot",
       .shapes = {{tableBatch, 5}},
       .op = [](X x) { return K::one_hot(x[0], 3); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 5, 3}, [&](S i) {
               return double(x[0][{i[0], i[1]}] == i[2]);
             });
           },
       .classes = 4, // one more than the ones that are hot
       .dtypes = {DType::Int32},
       .hasGradient = false},
      {.name = "in_top_k",
       .shapes = {{tableBatch, 6}, {tableBatch}},
       .op = [](X x) { return K::in_top_k(x[0], x[1], 3); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0]}, [&](S i) {
               double target = x[0][{i[0], int64_t(x[1][i])}];
               int64_t larger = 0;
               for (int64_t c = 0; c < 6; ++c)
                 larger += x[0][{i[0], c}] > target;
               return double(larger < 3);
             });
           },
       .classes = 6,
       .dtypes = {DType::Float32, DType::Int32},
       .hasGradient = false},
  };
}

} // namespace keratin::optest
