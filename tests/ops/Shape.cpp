//===- Shape.cpp - rows of ops that move elements -------------------------===//
#include "OpTable.h"

#include <numeric>

namespace keratin::optest {

/// A formula that takes each element of the result from one place of x[0], or
/// gives `fill` where `source` returns an index outside of it.
static Formula moved(std::function<K::Shape(const K::Shape &)> shape,
                     std::function<K::Shape(const K::Shape &)> source,
                     double fill = 0) {
  return [=](const std::vector<Values> &x) {
    return generate(shape(x[0].shape), [&](const K::Shape &index) {
      K::Shape from = source(index);
      for (size_t axis = 0; axis < from.size(); ++axis)
        if (from[axis] < 0 || from[axis] >= x[0].shape[axis])
          return fill;
      return x[0][from];
    });
  };
}

static Formula reshaped(std::function<K::Shape(const K::Shape &)> shape) {
  return [=](const std::vector<Values> &x) {
    Values result = x[0];
    result.shape = shape(x[0].shape);
    return result;
  };
}

using S = const K::Shape &;
using X = const K::Tensors &;

static std::vector<Row> viewRows() {
  return {
      {.name = "reshape",
       .shapes = {{tableBatch, 4, 6}},
       .op = [](X x) { return K::reshape(x[0], {-1, 8, 3}); },
       .formula = reshaped([](S s) { return K::Shape{s[0], 8, 3}; })},
      {.name = "flatten",
       .shapes = {{tableBatch, 4, 6}},
       .op = [](X x) { return K::flatten(x[0]); },
       .formula = reshaped([](S s) { return K::Shape{s[0] * 24}; }),
       .hasBatch = false},
      {.name = "batch_flatten",
       .shapes = {{tableBatch, 4, 6}},
       .op = [](X x) { return K::batch_flatten(x[0]); },
       .formula = reshaped([](S s) { return K::Shape{s[0], 24}; })},
      {.name = "expand_dims",
       .shapes = {{tableBatch, 4}},
       .op = [](X x) { return K::expand_dims(x[0], 1); },
       .formula = reshaped([](S s) { return K::Shape{s[0], 1, 4}; })},
      {.name = "unstack",
       .shapes = {{tableBatch, 3, 4}},
       .op =
           [](X x) {
             K::Tensors parts = K::unstack(x[0], 1);
             return parts[0] * 2 - parts[2];
           },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 4}, [&](S i) {
               return 2 * x[0][{i[0], 0, i[1]}] - x[0][{i[0], 2, i[1]}];
             });
           }},
      {.name = "squeeze",
       .shapes = {{tableBatch, 1, 4, 1}},
       .op = [](X x) { return K::squeeze(x[0], {1, -1}); },
       .formula = reshaped([](S s) { return K::Shape{s[0], 4}; })},
  };
}

static std::vector<Row> permutationRows() {
  auto permuted = [](std::vector<int64_t> axes) -> Formula {
    return [=](const std::vector<Values> &x) { return permute(x[0], axes); };
  };
  return {
      {.name = "permute_dimensions",
       .shapes = {{tableBatch, 4, 5, 6}},
       .op = [](X x) { return K::permute_dimensions(x[0], {0, 3, 1, 2}); },
       .formula = permuted({0, 3, 1, 2})},
      {.name = "transpose",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::transpose(x[0]); },
       .formula = permuted({2, 1, 0})},
      {.name = "swapaxes",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::swapaxes(x[0], 1, 2); },
       .formula = permuted({0, 2, 1})},
      {.name = "moveaxis",
       .shapes = {{tableBatch, 4, 5, 6}},
       .op = [](X x) { return K::moveaxis(x[0], 1, -1); },
       .formula = permuted({0, 2, 3, 1})},
      {.name = "reverse",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::reverse(x[0], {1, 2}); },
       .formula =
           moved([](S s) { return s; },
                 [](S i) { return K::Shape{i[0], 3 - i[1], 4 - i[2]}; })},
      {.name = "roll",
       .shapes = {{tableBatch, 5}},
       .op = [](X x) { return K::roll(x[0], 2, 1); },
       .formula = moved([](S s) { return s; },
                        [](S i) { return K::Shape{i[0], (i[1] + 3) % 5}; })},
  };
}

static std::vector<Row> copyRows() {
  return {
      {.name = "broadcast_to",
       .shapes = {{tableBatch, 1, 4}},
       .op = [](X x) { return K::broadcast_to(x[0], {-1, 5, -1}); },
       .formula = moved([](S s) { return K::Shape{s[0], 5, 4}; },
                        [](S i) { return K::Shape{i[0], 0, i[2]}; })},
      {.name = "tile",
       .shapes = {{tableBatch, 2, 3}},
       .op = [](X x) { return K::tile(x[0], {1, 3, 2}); },
       .formula =
           moved([](S s) { return K::Shape{s[0], 6, 6}; },
                 [](S i) { return K::Shape{i[0], i[1] % 2, i[2] % 3}; })},
      {.name = "repeat",
       .shapes = {{tableBatch, 4}},
       .op = [](X x) { return K::repeat(x[0], 3); },
       .formula = moved([](S s) { return K::Shape{s[0], 3, 4}; },
                        [](S i) { return K::Shape{i[0], i[2]}; })},
      {.name = "repeat_elements",
       .shapes = {{tableBatch, 4}},
       .op = [](X x) { return K::repeat_elements(x[0], 3, 1); },
       .formula = moved([](S s) { return K::Shape{s[0], 12}; },
                        [](S i) { return K::Shape{i[0], i[1] / 3}; })},
      {.name = "slice",
       .shapes = {{tableBatch, 6, 5}},
       .op = [](X x) { return K::slice(x[0], {0, 2, 1}, {-1, 3, -1}); },
       .formula =
           moved([](S s) { return K::Shape{s[0], 3, 4}; },
                 [](S i) { return K::Shape{i[0], i[1] + 2, i[2] + 1}; })},
      {.name = "getitem_strided",
       .shapes = {{tableBatch, 7, 5}},
       .op =
           [](X x) {
             return K::getitem(x[0], {K::Ellipsis{}, K::Slice{1, 6, 2}, 3});
           },
       .formula = moved([](S s) { return K::Shape{s[0], 3}; },
                        [](S i) { return K::Shape{i[0], 1 + 2 * i[1], 3}; })},
      {.name = "getitem_reversed",
       .shapes = {{tableBatch, 7}},
       .op =
           [](X x) {
             K::Slice down{std::nullopt, std::nullopt, -2};
             return K::getitem(x[0], {K::Slice{}, down, K::NewAxis{}});
           },
       .formula = moved([](S s) { return K::Shape{s[0], 4, 1}; },
                        [](S i) { return K::Shape{i[0], 6 - 2 * i[1]}; })},
      {.name = "pad",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::pad(x[0], {{0, 0}, {1, 2}, {3, 0}}, 7); },
       .formula =
           moved([](S s) { return K::Shape{s[0], 7, 8}; },
                 [](S i) { return K::Shape{i[0], i[1] - 1, i[2] - 3}; }, 7)},
      {.name = "temporal_padding",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::temporal_padding(x[0], {2, 1}); },
       .formula = moved([](S s) { return K::Shape{s[0], 7, 5}; },
                        [](S i) { return K::Shape{i[0], i[1] - 2, i[2]}; })},
      {.name = "spatial_2d_padding_first",
       .shapes = {{tableBatch, 2, 3, 4}},
       .op =
           [](X x) {
             return K::spatial_2d_padding(x[0], {{1, 2}, {0, 1}},
                                          "channels_first");
           },
       .formula =
           moved([](S s) { return K::Shape{s[0], 2, 6, 5}; },
                 [](S i) { return K::Shape{i[0], i[1], i[2] - 1, i[3]}; })},
  };
}

/// Lays `x` side by side along `axis`.
static Values concatenate(const std::vector<Values> &x, int64_t axis) {
  K::Shape shape = x[0].shape;
  shape[axis] = 0;
  for (const Values &part : x)
    shape[axis] += part.shape[axis];
  return generate(shape, [&](K::Shape index) {
    size_t part = 0;
    while (index[axis] >= x[part].shape[axis])
      index[axis] -= x[part++].shape[axis];
    return x[part][index];
  });
}

std::vector<Row> shapeRows() {
  std::vector<Row> rows = {
      {.name = "concatenate",
       .shapes = {{tableBatch, 4, 2}, {tableBatch, 4, 5}, {tableBatch, 4, 1}},
       .op = [](X x) { return K::concatenate(x, -1); },
       .formula =
           [](const std::vector<Values> &x) { return concatenate(x, 2); }},
      {.name = "concatenate_middle",
       .shapes = {{tableBatch, 4, 5}, {tableBatch, 2, 5}},
       .op = [](X x) { return K::concatenate(x, 1); },
       .formula =
           [](const std::vector<Values> &x) { return concatenate(x, 1); }},
      {.name = "shape",
       .shapes = {{tableBatch, 4, 5}},
       .op = [](X x) { return K::shape(x[0]); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({3},
                             [&](S i) { return double(x[0].shape[i[0]]); });
           },
       .hasGradient = false},
      {.name = "stack",
       .shapes = {{tableBatch, 4}, {tableBatch, 4}},
       .op = [](X x) { return K::stack(x, 1); },
       .formula =
           [](const std::vector<Values> &x) {
             K::Shape shape = {x[0].shape[0], 2, 4};
             return generate(shape, [&](S i) { return x[i[1]][{i[0], i[2]}]; });
           }},
      {.name = "split",
       .shapes = {{tableBatch, 6}},
       .op =
           [](X x) {
             K::Tensors parts = K::split(x[0], 3, 1);
             return parts[2] * parts[0];
           },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 2}, [&](S i) {
               return x[0][{i[0], i[1] + 4}] * x[0][i];
             });
           }},
  };
  for (auto more : {viewRows(), permutationRows(), copyRows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

} // namespace keratin::optest
