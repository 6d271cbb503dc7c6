//===- Pool.cpp - rows of pools and resizes -------------------------------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

/// The maximum or the mean of the elements of each 2-D window that are inside
/// x (channels_last).
static Values pool2d(const Values &x, int64_t size, int64_t stride, bool same,
                     bool isMax) {
  K::Shape shape = x.shape;
  int64_t before[2] = {0, 0};
  for (int axis : {0, 1}) {
    int64_t extent = x.shape[axis + 1];
    int64_t out =
        same ? (extent + stride - 1) / stride : (extent - size) / stride + 1;
    shape[axis + 1] = out;
    if (same)
      before[axis] =
          std::max<int64_t>((out - 1) * stride + size - extent, 0) / 2;
  }
  return generate(shape, [&](S i) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    int64_t count = 0;
    forEachIndex({size, size}, [&](S q) {
      int64_t row = i[1] * stride + q[0] - before[0];
      int64_t column = i[2] * stride + q[1] - before[1];
      if (row < 0 || row >= x.shape[1] || column < 0 || column >= x.shape[2])
        return;
      double element = x[{i[0], row, column, i[3]}];
      sum += element;
      largest = std::max(largest, element);
      ++count;
    });
    return isMax ? largest : sum / count;
  });
}

static std::vector<Row> poolVariants() {
  std::vector<Row> rows;
  for (const char *mode : {"max", "avg"})
    for (bool same : {false, true})
      for (bool first : {false, true}) {
        bool isMax = mode == std::string("max");
        K::Shape shape = {tableBatch, 7, 8, 5};
        rows.push_back(
            {.name = std::string(mode) + "_pool2d" + (same ? "_same" : "") +
                     (first ? "_channels_first" : ""),
             .shapes = {first ? K::Shape{tableBatch, 5, 7, 8} : shape},
             .op =
                 [=](X x) {
                   return K::pool2d(
                       x[0], {3, 3}, {2, 2}, same ? "same" : "valid",
                       first ? "channels_first" : "channels_last", mode);
                 },
             .formula =
                 [=](const std::vector<Values> &x) {
                   if (!first)
                     return pool2d(x[0], 3, 2, same, isMax);
                   Values image = permute(x[0], {0, 2, 3, 1});
                   return permute(pool2d(image, 3, 2, same, isMax),
                                  {0, 3, 1, 2});
                 }});
      }
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
  rows.push_back({.name = "pool1d",
                  .shapes = {{tableBatch, 9, 4}},
                  .op =
                      [](X x) {
                        return K::pool1d(x[0], 2, 2, "valid", "channels_last",
                                         "max");
                      },
                  .formula =
                      [](const std::vector<Values> &x) {
                        return generate({x[0].shape[0], 4, 4}, [&](S i) {
                          return std::max(x[0][{i[0], 2 * i[1], i[2]}],
                                          x[0][{i[0], 2 * i[1] + 1, i[2]}]);
                        });
                      }});
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
