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

/// Columns are multiplied by at most so many powers of two.
static constexpr int mostPowers = 60;

/// What a column of `sums` weights whose squares are `square` is multiplied by,
/// as an exponent of two.
static int exponentOf(double square, int64_t sums) {
  if (square == 0 || !std::isfinite(square))
    return 0;
  auto exponent = -int(std::lround(std::log2(square / double(sums)) / 2));
  return std::clamp(exponent, -mostPowers, mostPowers);
}

bool canBePaired(ArrayRef<char> source, const PairedPacking &packing) {
  return llvm::all_of(squaresOf(source, packing), [&](double square) {
    return std::isfinite(square) &&
           std::abs(exponentOf(square, packing.sums)) < mostPowers;
  });
}

void scalePairedPanel(MutableArrayRef<float> panel, int64_t sums,
                      int64_t block) {
  auto row = [&](int64_t number) {
    return panel.slice(size_t(number * block), size_t(block));
  };
  std::vector<double> squares(static_cast<size_t>(block)), start = squares;
  for (int64_t sum = 0; sum < sums; ++sum)
    for (auto [square, weight] : llvm::zip_equal(squares, row(sum)))
      square += double(weight) * double(weight);
  std::vector<float> factors;
  for (auto [square, back] :
       llvm::zip_equal(squares, row(sums + rowsBehindPaired - 1))) {
    int exponent = exponentOf(square, sums);
    factors.push_back(std::ldexp(1.0F, exponent));
    back = square == 0 ? 0 : std::ldexp(1.0F, -exponent);
  }
  for (int64_t sum = 0; sum < sums; ++sum) {
    for (auto [weight, factor] : llvm::zip_equal(row(sum), factors))
      weight *= factor;
    if (int sign = signOfPair(sum, sums); sign != 0 && sum % 2 == 1)
      for (auto [from, weight, before] :
           llvm::zip_equal(start, row(sum), row(sum - 1)))
        from -= sign * double(weight) * double(before);
  }
  llvm::copy(start, row(sums).begin());
}

void packPaired(ArrayRef<char> source, const PairedPacking &packing,
                MutableArrayRef<char> destination) {
  auto panels = int64_t(llvm::divideCeil(packing.columns, packing.block));
  auto elements = size_t((packing.sums + rowsBehindPaired) * packing.block);
  std::vector<float> panel(elements);
  char *out = destination.data();
  for (int64_t number = 0; number < panels; ++number) {
    int64_t first = number * packing.block;
    int64_t count = std::min(packing.block, packing.columns - first);
    std::fill(panel.begin(), panel.end(), 0);
    for (int64_t sum = 0; sum < packing.sums; ++sum)
      for (int64_t column = 0; column < count; ++column)
        panel[size_t(sum * packing.block + column)] =
            weightAt(source, packing, sum, first + column);
    scalePairedPanel(panel, packing.sums, packing.block);
    std::memcpy(out, panel.data(), elements * sizeof(float));
    out += elements * sizeof(float);
  }
}

} // namespace keratin
