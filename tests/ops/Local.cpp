//===- Local.cpp - rows of convolutions that differ from place to place ---===//
#include "OpTable.h"

namespace keratin::optest {

using S = const K::Shape &;
using X = const K::Tensors &;

static Row local1d() {
  return {.name = "local_conv1d",
          .shapes = {{tableBatch, 9, 3}, {4, 9, 5}},
          .op = [](X x) { return K::local_conv1d(x[0], x[1], {3}, {2}); },
          .formula =
              [](const std::vector<Values> &x) {
                return generate({x[0].shape[0], 4, 5}, [&](S i) {
                  double sum = 0;
                  for (int64_t k = 0; k < 3; ++k)
                    for (int64_t c = 0; c < 3; ++c)
                      sum += x[0][{i[0], i[1] * 2 + k, c}] *
                             x[1][{i[1], k * 3 + c, i[2]}];
                  return sum;
                });
              },
          .weights = 1};
}

static Row local2d(std::string name, const char *format) {
  bool first = std::string(format) == "channels_first";
  return {.name = std::move(name),
          .shapes = {first ? K::Shape{tableBatch, 2, 5, 4}
                           : K::Shape{tableBatch, 5, 4, 2},
                     {2 * 3, 3 * 2 * 2, 4}},
          .op =
              [=](X x) {
                return K::local_conv2d(x[0], x[1], {3, 2}, {2, 1}, {2, 3},
                                       format);
              },
          .formula =
              [=](const std::vector<Values> &x) {
                int64_t batch = x[0].shape[0];
                K::Shape shape =
                    first ? K::Shape{batch, 4, 2, 3} : K::Shape{batch, 2, 3, 4};
                return generate(shape, [&](S i) {
                  int64_t row = i[first ? 2 : 1], column = i[first ? 3 : 2];
                  int64_t filter = i[first ? 1 : 3];
                  double sum = 0;
                  for (int64_t h = 0; h < 3; ++h)
                    for (int64_t w = 0; w < 2; ++w)
                      for (int64_t c = 0; c < 2; ++c) {
                        int64_t y = row * 2 + h, z = column + w;
                        double value = first ? x[0][{i[0], c, y, z}]
                                             : x[0][{i[0], y, z, c}];
                        int64_t place =
                            first ? (c * 3 + h) * 2 + w : (h * 2 + w) * 2 + c;
                        sum += value * x[1][{row * 3 + column, place, filter}];
                      }
                  return sum;
                });
              },
          .weights = 1};
}

std::vector<Row> localRows() {
  return {local1d(), local2d("local_conv2d", "channels_last"),
          local2d("local_conv2d_channels_first", "channels_first")};
}

} // namespace keratin::optest
