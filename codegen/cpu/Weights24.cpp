//===- Weights24.cpp - weights as integers of 24 bits ---------------------===//
#include "codegen/cpu/Weights24.h"

#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/PairPacking.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

namespace {
/// A number for each column of a block.
using Columns = std::array<float, columnsOfBlock24>;

/// Where the elements of a tensor are, by their roles.
struct Places {
  Places(RankedTensorType type, const Packing24 &packing)
      : sums(placesOf(type, packing.sums)),
        outer(placesOf(type, packing.outer)),
        columns(type.getDimSize(packing.columns)),
        stride(computeStrides(type.getShape())[size_t(packing.columns)]) {}

  /// Columns of the block that begins with column `first`.
  int64_t count(int64_t first) const {
    return std::min(columnsOfBlock24, columns - first);
  }
  /// Reads those of the elements that `place` is the first of.
  void read(ArrayRef<char> source, int64_t place, int64_t first,
            Columns &values) const {
    constexpr auto bytes = int64_t(sizeof(float));
    const char *from = source.data() + (place + first * stride) * bytes;
    if (stride == 1) {
      std::memcpy(values.data(), from, size_t(count(first) * bytes));
      return;
    }
    for (int64_t column = 0; column < count(first); ++column)
      std::memcpy(&values[size_t(column)], from + column * stride * bytes,
                  sizeof(float));
  }

  SmallVector<int64_t> sums, outer;
  int64_t columns, stride;
};
} // namespace

/// The largest integer that a weight is, of 32 bits.
constexpr double largestWord = 2147483648.0 - 512;

bool isValid(const Packing24 &packing, RankedTensorType type) {
  return type.hasStaticShape() && type.getElementType().isF32() &&
         haveOneRoleEach(type,
                         {{packing.columns}, packing.sums, packing.outer});
}

int64_t startOfScales(RankedTensorType type, const Packing24 &packing) {
  return type.getNumElements() / type.getDimSize(packing.columns) *
         wordsOfBlock24;
}

RankedTensorType packedType(RankedTensorType type, const Packing24 &packing) {
  int64_t outer = 1, columns = type.getDimSize(packing.columns);
  for (int64_t dim : packing.outer)
    outer *= type.getDimSize(dim);
  return RankedTensorType::get(
      {int64_t(llvm::divideCeil(columns, columnsOfBlock24)),
       startOfScales(type, packing) + outer * columnsOfBlock24},
      IntegerType::get(type.getContext(), 32));
}

bool fits24(ArrayRef<char> source, RankedTensorType type,
            const Packing24 &packing) {
  constexpr double mostOfMean = 32, least = 0x1p-80;
  int64_t mostZeros = type.getNumElements() / 100000;
  Places places(type, packing);
  auto steps = int64_t(places.sums.size());
  for (int64_t outer : places.outer)
    for (int64_t first = 0; first < places.columns; first += columnsOfBlock24) {
      Columns values = {}, largest = {};
      std::array<double, columnsOfBlock24> magnitudes = {};
      std::array<int32_t, columnsOfBlock24> zeros = {};
      for (int64_t sum : places.sums) {
        places.read(source, sum + outer, first, values);
        for (size_t column = 0; column < columnsOfBlock24; ++column) {
          float value = values[column];
          zeros[column] += int32_t(value == 0);
          largest[column] = std::max(largest[column], std::fabs(value));
          magnitudes[column] += std::fabs(double(value));
        }
      }
      for (size_t column = 0; column < size_t(places.count(first)); ++column) {
        if (zeros[column] == steps)
          continue;
        mostZeros -= zeros[column];
        // It is no number where one of the column is none.
        double mean = magnitudes[column] / double(steps);
        if (mostZeros < 0 || !std::isfinite(mean) || largest[column] < least ||
            double(largest[column]) > mostOfMean * mean)
          return false;
      }
    }
  return true;
}

/// The word with `lowest` in its lowest byte that is nearest to `value`.
static int32_t nearestWord(double value, int32_t lowest) {
  // Adding it leaves an integer in the last places: the nearest one.
  constexpr double magic = 0x1.8p52, largest = (1 << 23) - 1;
  double upper = (value - lowest) / 256 + magic - magic;
  upper = std::min(std::max(-largest - 1, upper), largest); // also of no number
  return int32_t(upper) * 256 + lowest;
}

/// Words of the four vectors of columns `values`, which share three vectors.
/// The last ones have the uppermost byte of the first ones as their lowest one,
/// where a rotation leaves it, and that mostly is known after one turn.
static void joinWords(const std::array<double, columnsOfBlock24> &values,
                      std::array<int32_t, wordsOfBlock24> &words) {
  std::array<int32_t, lanes24> last = {};
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t lane = 0; lane < lanes24; ++lane)
      last[lane] =
          nearestWord(values[wordsOfBlock24 + lane],
                      int32_t(uint32_t(turn == 0 ? 0 : words[lane]) >> 24));
    for (size_t vector = 0; vector < 3; ++vector)
      for (size_t lane = 0; lane < lanes24; ++lane)
        words[vector * lanes24 + lane] =
            nearestWord(values[vector * lanes24 + lane],
                        last[lane] >> (8 + 8 * vector) & 0xff);
  }
}

/// The scales of the columns from `first` on, of the elements that `outer` is
/// the first of.
static Columns scalesOf(ArrayRef<char> source, const Places &places,
                        int64_t outer, int64_t first) {
  Columns scales = {}, values = {};
  for (int64_t sum : places.sums) {
    places.read(source, sum + outer, first, values);
    for (size_t column = 0; column < columnsOfBlock24; ++column)
      scales[column] = std::max(scales[column], std::fabs(values[column]));
  }
  for (float &scale : scales)
    scale = float(scale / largestWord);
  return scales;
}

void pack24(ArrayRef<char> source, RankedTensorType type,
            const Packing24 &packing, MutableArrayRef<char> destination) {
  Places places(type, packing);
  char *out = destination.data();
  auto write = [&](const auto &values) {
    std::memcpy(out, values.data(), sizeof(values));
    out += sizeof(values);
  };
  for (int64_t first = 0; first < places.columns; first += columnsOfBlock24) {
    std::vector<Columns> scales;
    for (int64_t outer : places.outer) {
      scales.push_back(scalesOf(source, places, outer, first));
      std::array<double, columnsOfBlock24> factors;
      for (auto [factor, scale] : llvm::zip_equal(factors, scales.back()))
        factor = scale == 0 ? 0 : 1 / double(scale);
      for (int64_t sum : places.sums) {
        Columns values = {};
        places.read(source, sum + outer, first, values);
        std::array<double, columnsOfBlock24> scaled;
        for (size_t column = 0; column < columnsOfBlock24; ++column)
          scaled[column] = double(values[column]) * factors[column];
        std::array<int32_t, wordsOfBlock24> words;
        joinWords(scaled, words);
        write(words);
      }
    }
    for (const Columns &ofOuter : scales)
      write(ofOuter);
  }
}

//===----------------------------------------------------------------------===//
// Which weights
//===----------------------------------------------------------------------===//

/// Whether the elements of `value` are in memory, each for itself, and fit.
static bool fits24(ElementsAttr value, RankedTensorType type,
                   const Packing24 &packing) {
  ArrayRef<char> bytes = bytesOfElements(value);
  return bytes.size() == size_t(type.getNumElements()) * sizeof(float) &&
         fits24(bytes, type, packing);
}

std::optional<Packing24> packing24Of(Kernel &kernel, linalg::GenericOp root,
                                     OpOperand *weights, unsigned lane) {
  // What the first cache holds comes soon enough as it is.
  constexpr int64_t leastElements = 16 << 10;
  auto argument = dyn_cast<BlockArgument>(weights->get());
  AffineMap map = root.getMatchingIndexingMap(weights);
  if (!argument || !argument.hasOneUse() || !isProductOfF32(root) ||
      !startsFromZero(root) || !map.isProjectedPermutation())
    return std::nullopt;
  auto type = cast<RankedTensorType>(argument.getType());
  Packing24 packing = {-1, {}, {}};
  SmallVector<unsigned> sums;
  root.getReductionDims(sums);
  for (unsigned loop : sums) {
    std::optional<unsigned> dim =
        map.getResultPosition(getAffineDimExpr(loop, root.getContext()));
    if (!dim)
      return std::nullopt;
    packing.sums.push_back(*dim);
  }
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (expr == getAffineDimExpr(lane, root.getContext()))
      packing.columns = int64_t(dim);
    else if (!llvm::is_contained(packing.sums, int64_t(dim)))
      packing.outer.push_back(int64_t(dim));
  if (!isValid(packing, type) || type.getNumElements() < leastElements)
    return std::nullopt;
  // A last block that is mostly empty takes as long as a full one.
  int64_t columns = type.getDimSize(packing.columns);
  int64_t words =
      int64_t(llvm::divideCeil(columns, columnsOfBlock24)) * wordsOfBlock24;
  ArrayRef<ElementsAttr> values = kernel.valuesOf(argument);
  if (words > columns * 7 / 8 || values.empty() ||
      !llvm::all_of(values, [&](ElementsAttr value) {
        return fits24(value, type, packing);
      }))
    return std::nullopt;
  return packing;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Vector `number` from `word` on.
static Value loadVector(Kernel &kernel, Value memref, Value word, Type element,
                        size_t number) {
  word = kernel.plus(word, kernel.index(int64_t(number) * lanes24));
  return LLVM::LoadOp::create(kernel.builder(), kernel.loc(),
                              VectorType::get(lanes24, element),
                              addressOf(kernel, memref, word), /*alignment=*/4);
}

void scaleSums24(Kernel &kernel, Value memref, Value word,
                 MutableArrayRef<Value> sums) {
  OpBuilder &b = kernel.builder();
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = arith::MulFOp::create(
        b, kernel.loc(), sum,
        loadVector(kernel, memref, word, b.getF32Type(), number));
}

void addProducts24(Kernel &kernel, Value memref, Value word, Value element,
                   MutableArrayRef<Value> sums) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  SmallVector<Value> words;
  for (size_t number = 0; number < 3; ++number)
    words.push_back(loadVector(kernel, memref, word, b.getI32Type(), number));
  // The last vector has the uppermost and the lowest bytes of the first one,
  // and the lowest bytes of the others: two permutations of bytes.
  constexpr int64_t bytes = lanes24 * 4;
  auto bytesType = VectorType::get(bytes, b.getI8Type());
  auto asBytes = [&](Value vector) -> Value {
    return vector::BitCastOp::create(b, loc, bytesType, vector);
  };
  SmallVector<int64_t> firstMask, lastMask;
  for (int64_t lane = 0; lane < lanes24; ++lane) {
    int64_t at = lane * 4;
    firstMask.append({at + 3, at, bytes + at, bytes + at});
    lastMask.append({at, at + 1, at + 2, bytes + at});
  }
  Value last = vector::ShuffleOp::create(b, loc, asBytes(words[0]),
                                         asBytes(words[1]), firstMask);
  last = vector::ShuffleOp::create(b, loc, last, asBytes(words[2]), lastMask);
  words.push_back(vector::BitCastOp::create(b, loc, words[0].getType(), last));
  auto type = VectorType::get(lanes24, b.getF32Type());
  Value spread = vector::BroadcastOp::create(b, loc, type, element);
  for (auto [sum, vector] : llvm::zip(sums, words))
    sum = LLVM::FMulAddOp::create(
        b, loc, arith::SIToFPOp::create(b, loc, type, vector), spread, sum);
}

void prefetch24(Kernel &kernel, Value memref, Value word) {
  LLVM::Prefetch::create(kernel.builder(), kernel.loc(),
                         addressOf(kernel, memref, word), /*rw=*/0,
                         /*hint=*/2, /*cache=*/1);
}

} // namespace keratin
