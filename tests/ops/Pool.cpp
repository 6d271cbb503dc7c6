//===- Pool.cpp - rows of pools and resizes -------------------------------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// One pool; the lists have one entry a spatial axis.
struct Pool {
  const char *name;
  K::Ints image; ///< spatial extents
  K::Ints size, strides;
  bool same;
};

constexpr int64_t channels = 5;

/// The maximum or the mean of the elements of each window that are inside x
/// (channels_last).
static Values poolOf(const Pool &pool, bool isMax, const Values &x) {
  size_t spatial = pool.image.size();
  K::Shape shape = x.shape, before(spatial, 0);
  for (size_t axis = 0; axis < spatial; ++axis) {
    int64_t extent = pool.image[axis], size = pool.size[axis];
    int64_t stride = pool.strides[axis];
    int64_t out = pool.same ? (extent + stride - 1) / stride
                            : (extent - size) / stride + 1;
    shape[axis + 1] = out;
    if (pool.same)
      before[axis] =
          std::max<int64_t>((out - 1) * stride + size - extent, 0) / 2;
  }
  return generate(shape, [&](S i) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    int64_t count = 0;
    forEachIndex(pool.size, [&](S q) {
      K::Shape at = i;
      for (size_t axis = 0; axis < spatial; ++axis) {
        at[axis + 1] =
            i[axis + 1] * pool.strides[axis] + q[axis] - before[axis];
        if (at[axis + 1] < 0 || at[axis + 1] >= pool.image[axis])
          return;
      }
      sum += x[at];
      largest = std::max(largest, x[at]);
      ++count;
    });
    return isMax ? largest : sum / count;
  });
}

/// The permutations between channels_first and channels_last.
static std::vector<int64_t> toLast(int64_t spatial) {
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 0; axis < spatial; ++axis)
    axes.push_back(axis + 2);
  axes.push_back(1);
  return axes;
}
static std::vector<int64_t> toFirst(int64_t spatial) {
  std::vector<int64_t> axes = {0, spatial + 1};
  for (int64_t axis = 0; axis < spatial; ++axis)
    axes.push_back(axis + 1);
  return axes;
}

/// Keras' function for the number of axes.
static K::Tensor callPool(const Pool &pool, const K::Tensor &x,
                          const char *mode, bool first) {
  const char *padding = pool.same ? "same" : "valid";
  const char *format = first ? "channels_first" : "channels_last";
  if (pool.image.size() == 1)
    return K::pool1d(x, pool.size[0], pool.strides[0], padding, format, mode);
  if (pool.image.size() == 2)
    return K::pool2d(x, pool.size, pool.strides, padding, format, mode);
  return K::pool3d(x, pool.size, pool.strides, padding, format, mode);
}

/// Padding that is neither Keras' "same" nor none.
static Row explicitlyPadded() {
  return {.name = "pool_padded",
          .shapes = {{tableBatch, 6, 5, 3}},
          .op =
              [](X x) {
                return K::pool(x[0], {3, 3}, {2, 1},
                               std::vector<K::PadPair>{{2, 1}, {0, 2}},
                               "channels_last", "avg");
              },
          .formula =
              [](const std::vector<Values> &x) {
                return generate({x[0].shape[0], 4, 5, 3}, [&](S i) {
                  double sum = 0, count = 0;
                  forEachIndex({3, 3}, [&](S q) {
                    int64_t row = 2 * i[1] + q[0] - 2, column = i[2] + q[1];
                    if (row < 0 || row >= 6 || column >= 5)
                      return;
                    sum += x[0][{i[0], row, column, i[3]}];
                    ++count;
                  });
                  return sum / count;
                });
              }};
}

static Row poolRow(const Pool &pool, bool isMax, bool first) {
  K::Shape shape = pool.image;
  shape.insert(first ? shape.begin() : shape.end(), channels);
  shape.insert(shape.begin(), tableBatch);
  const char *mode = isMax ? "max" : "avg";
  int64_t spatial = pool.image.size();
  return {.name = std::string(pool.name) + "_" + mode +
                  (first ? "_channels_first" : ""),
          .shapes = {shape},
          .op = [=](X x) { return callPool(pool, x[0], mode, first); },
          .formula =
              [=](const std::vector<Values> &x) {
                if (!first)
                  return poolOf(pool, isMax, x[0]);
                Values image = permute(x[0], toLast(spatial));
                return permute(poolOf(pool, isMax, image), toFirst(spatial));
              }};
}

static std::vector<Row> poolVariants() {
  std::vector<Row> rows;
  for (const Pool &pool : std::vector<Pool>{
           {"pool2d", {7, 8}, {3, 3}, {2, 2}, false},
           {"pool2d_same", {7, 8}, {3, 3}, {2, 2}, true},
           {"pool1d", {9}, {2}, {2}, false},
           {"pool2d_overlapping", {5, 4}, {3, 2}, {1, 1}, true},
           {"pool2d_wide", {9, 3}, {7, 1}, {1, 2}, false},
           {"pool2d_side_by_side", {6, 4}, {2, 2}, {2, 2}, false},
           {"pool2d_with_gaps", {9, 4}, {3, 1}, {3, 2}, false},
           {"pool3d", {4, 5, 3}, {2, 2, 3}, {2, 1, 2}, true},
       })
    for (bool isMax : {true, false})
      for (bool first : {false, true})
        rows.push_back(poolRow(pool, isMax, first));
  return rows;
}

/// Image `i[0]`, channel `i[3]` between the four pixels around a point; pixels
/// outside are those at the edge.
static double bilinear(const Values &x, S i, double row, double column) {
  auto pixel = [&](double r, double c) {
    auto inside = [](double position, int64_t extent) {
      return std::clamp<int64_t>(position, 0, extent - 1);
    };
    return x[{i[0], inside(r, x.shape[1]), inside(c, x.shape[2]), i[3]}];
  };
  double top = std::floor(row), left = std::floor(column);
  double down = row - top, right = column - left;
  return (1 - down) *
             ((1 - right) * pixel(top, left) + right * pixel(top, left + 1)) +
         down * ((1 - right) * pixel(top + 1, left) +
                 right * pixel(top + 1, left + 1));
}

std::vector<Row> poolRows() {
  std::vector<Row> rows = poolVariants();
  rows.push_back(explicitlyPadded());
  rows.push_back(
      {.name = "global_pool",
       .shapes = {{tableBatch, 3, 4, 5}},
       .op = [](X x) { return K::global_pool(x[0], "channels_last", "avg"); },
       .formula =
           [](const std::vector<Values> &x) {
             return generate({x[0].shape[0], 5}, [&](S i) {
               double sum = 0;
               forEachIndex(
                   {3, 4}, [&](S p) { sum += x[0][{i[0], p[0], p[1], i[1]}]; });
               return sum / 12;
             });
           }});
  rows.push_back({.name = "resize_images_nearest",
                  .shapes = {{tableBatch, 3, 4, 2}},
                  .op =
                      [](X x) {
                        return K::resize_images(x[0], 2, 3, "channels_last",
                                                "nearest");
                      },
                  .formula =
                      [](const std::vector<Values> &x) {
                        return generate({x[0].shape[0], 6, 12, 2}, [&](S i) {
                          return x[0][{i[0], i[1] / 2, i[2] / 3, i[3]}];
                        });
                      }});
  rows.push_back({.name = "resize_bilinear",
                  .shapes = {{tableBatch, 3, 4, 2}},
                  .op =
                      [](X x) {
                        return K::resize(x[0], {6, 8}, "bilinear",
                                         "channels_last");
                      },
                  .formula =
                      [](const std::vector<Values> &x) {
                        return generate({x[0].shape[0], 6, 8, 2}, [&](S i) {
                          return bilinear(x[0], i, (i[1] + 0.5) / 2 - 0.5,
                                          (i[2] + 0.5) / 2 - 0.5);
                        });
                      }});
  return rows;
}

} // namespace keratin::optest
