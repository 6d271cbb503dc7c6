//===- OpTable.cpp - arrays of doubles and the inputs of a row ------------===//
#include "OpTable.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace keratin::optest {

Values::Values(K::Shape shape, double fill) : shape(std::move(shape)) {
  int64_t count = 1;
  for (int64_t extent : this->shape)
    count *= extent;
  data.assign(count, fill);
}

int64_t Values::offset(const K::Shape &index) const {
  int64_t position = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    position = position * shape[axis] + index.at(axis);
  return position;
}

void forEachIndex(const K::Shape &shape,
                  const std::function<void(const K::Shape &)> &visit) {
  if (std::ranges::count(shape, 0))
    return;
  K::Shape index(shape.size(), 0);
  while (true) {
    visit(index);
    int64_t axis = static_cast<int64_t>(shape.size()) - 1;
    while (axis >= 0 && ++index[axis] == shape[axis])
      index[axis--] = 0;
    if (axis < 0)
      return;
  }
}

Values generate(const K::Shape &shape,
                const std::function<double(const K::Shape &)> &element) {
  Values result(shape);
  int64_t position = 0;
  forEachIndex(shape, [&](const K::Shape &index) {
    result.data[position++] = element(index);
  });
  return result;
}

Values permute(const Values &x, const std::vector<int64_t> &axes) {
  K::Shape shape;
  for (int64_t axis : axes)
    shape.push_back(x.shape[axis]);
  return generate(shape, [&](const K::Shape &index) {
    K::Shape source(axes.size());
    for (size_t i = 0; i < axes.size(); ++i)
      source[axes[i]] = index[i];
    return x[source];
  });
}

K::Shape broadcastShape(const K::Shape &a, const K::Shape &b) {
  K::Shape result = a.size() >= b.size() ? a : b;
  const K::Shape &other = a.size() >= b.size() ? b : a;
  for (size_t i = 1; i <= other.size(); ++i) {
    int64_t &extent = result[result.size() - i];
    extent = std::max(extent, other[other.size() - i]);
  }
  return result;
}

double broadcastAt(const Values &x, const K::Shape &index) {
  K::Shape own(index.end() - x.rank(), index.end());
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (x.shape[axis] == 1)
      own[axis] = 0;
  return x[own];
}

DType Row::dtype(size_t input) const {
  return input < dtypes.size() ? dtypes[input] : DType::Float32;
}

bool Row::isWeight(size_t input) const {
  return input + weights >= shapes.size();
}

bool Row::isBatched(size_t input) const {
  return hasBatch && !isWeight(input) && !shapes[input].empty() &&
         shapes[input][0] == shapes[0][0];
}

std::vector<Values> Row::inputs(int64_t batch) const {
  std::vector<Values> result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::mt19937 random(i + 1); // weights do not depend on the batch
    K::Shape shape = shapes[i];
    if (isBatched(i))
      shape[0] = batch;
    result.push_back(generate(shape, [&](const K::Shape &) -> double {
      double unit = random() / 4294967296.0;
      switch (dtype(i)) {
      case DType::Float32:
        return static_cast<float>(low + unit * (high - low));
      case DType::Bool:
        return unit < 0.5;
      default:
        return std::floor(unit * classes);
      }
    }));
  }
  return result;
}

} // namespace keratin::optest
