//===- PairedWeights.cpp - weights that are multiplied in pairs -----------===//
#include "codegen/cpu/PairedWeights.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace mlir;

namespace keratin {

int signOfPair(int64_t number, int64_t depth) {
  if (number >= depth / stepOfPairs * stepOfPairs)
    return 0;
  constexpr int signs[stepOfPairs] = {1, 1, -1, -1, 0, 0};
  return signs[number % stepOfPairs];
}

RankedTensorType packedType(MLIRContext *context,
                            const PairedPacking &packing) {
  return RankedTensorType::get(
      {int64_t(llvm::divideCeil(packing.columns, packing.block)),
       packing.sums + rowsBehindPaired, packing.block},
      Float32Type::get(context));
}

static float weightAt(ArrayRef<char> source, const PairedPacking &packing,
                      int64_t sum, int64_t column) {
  int64_t place = packing.columnsInside ? sum * packing.columns + column
                                        : column * packing.sums + sum;
  float weight;
  std::memcpy(&weight, source.data() + place * int64_t(sizeof(float)),
              sizeof(float));
  return weight;
}

/// The sums of the squares of the columns.
static std::vector<double> squaresOf(ArrayRef<char> source,
                                     const PairedPacking &packing) {
  std::vector<double> squares(size_t(packing.columns));
  for (int64_t sum = 0; sum < packing.sums; ++sum)
    for (int64_t column = 0; column < packing.columns; ++column) {
      double weight = weightAt(source, packing, sum, column);
      squares[size_t(column)] += weight * weight;
    }
  return squares;
}

/// What a column of `sums` weights whose squares are `square` is multiplied by,
/// as an exponent of two.
static int exponentOf(double square, int64_t sums) {
  if (square == 0)
    return 0;
  return -int(std::lround(std::log2(square / double(sums)) / 2));
}

bool canBePaired(ArrayRef<char> source, const PairedPacking &packing) {
  constexpr int most = 60;
  return llvm::all_of(squaresOf(source, packing), [&](double square) {
    return std::isfinite(square) &&
           std::abs(exponentOf(square, packing.sums)) <= most;
  });
}

void packPaired(ArrayRef<char> source, const PairedPacking &packing,
                MutableArrayRef<char> destination) {
  auto panels = int64_t(llvm::divideCeil(packing.columns, packing.block));
  std::vector<double> squares = squaresOf(source, packing);
  char *out = destination.data();
  auto write = [&](const std::vector<float> &row) {
    std::memcpy(out, row.data(), row.size() * sizeof(float));
    out += row.size() * sizeof(float);
  };
  for (int64_t panel = 0; panel < panels; ++panel) {
    int64_t first = panel * packing.block;
    int64_t count = std::min(packing.block, packing.columns - first);
    std::vector<float> row(size_t(packing.block)), before = row;
    std::vector<float> factors = row, back = row;
    for (int64_t column = 0; column < count; ++column) {
      double square = squares[size_t(first + column)];
      int exponent = exponentOf(square, packing.sums);
      factors[size_t(column)] = std::ldexp(1.0F, exponent);
      back[size_t(column)] = square == 0 ? 0 : std::ldexp(1.0F, -exponent);
    }
    std::vector<double> start(size_t(packing.block));
    for (int64_t sum = 0; sum < packing.sums; ++sum) {
      std::swap(row, before);
      for (int64_t column = 0; column < count; ++column)
        row[size_t(column)] = factors[size_t(column)] *
                              weightAt(source, packing, sum, first + column);
      if (int sign = signOfPair(sum, packing.sums); sign != 0 && sum % 2 == 1)
        for (size_t column = 0; column < row.size(); ++column)
          start[column] -= sign * double(row[column]) * double(before[column]);
      write(row);
    }
    llvm::copy(start, row.begin());
    write(row);
    write(back);
  }
}

} // namespace keratin
