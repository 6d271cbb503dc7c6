//===- Weights24.cpp - weights as integers of 24 bits ---------------------===//
#include "codegen/cpu/Weights24.h"

#include "codegen/cpu/DotLanes.h"
#include "codegen/cpu/PairPacking.h"

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
        inner(placesOf(type, packing.inner)),
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

  SmallVector<int64_t> sums, inner;
  int64_t columns, stride;
};
} // namespace

/// The largest integer that a weight is, of 32 bits.
constexpr double largestWord = 2147483648.0 - 512;

bool isValid(const Packing24 &packing, RankedTensorType type) {
  return type.hasStaticShape() && type.getElementType().isF32() &&
         haveOneRoleEach(type,
                         {{packing.columns}, packing.sums, packing.inner});
}

int64_t startOfScales(RankedTensorType type, const Packing24 &packing) {
  return type.getNumElements() / type.getDimSize(packing.columns) *
         wordsOfBlock24;
}

RankedTensorType packedType(RankedTensorType type, const Packing24 &packing) {
  int64_t inner = 1, columns = type.getDimSize(packing.columns);
  for (int64_t dim : packing.inner)
    inner *= type.getDimSize(dim);
  return RankedTensorType::get(
      {int64_t(llvm::divideCeil(columns, columnsOfBlock24)),
       startOfScales(type, packing) + inner * columnsOfBlock24},
      IntegerType::get(type.getContext(), 32));
}

bool fits24(ArrayRef<char> source, RankedTensorType type,
            const Packing24 &packing) {
  constexpr double mostOfMean = 32, least = 0x1p-80;
  int64_t mostZeros = type.getNumElements() / 100000;
  Places places(type, packing);
  auto steps = int64_t(places.sums.size());
  for (int64_t inner : places.inner)
    for (int64_t first = 0; first < places.columns;
         first += columnsOfBlock24) {
      Columns values = {}, largest = {};
      std::array<double, columnsOfBlock24> squares = {};
      std::array<int32_t, columnsOfBlock24> zeros = {};
      for (int64_t sum : places.sums) {
        places.read(source, sum + inner, first, values);
        for (size_t column = 0; column < columnsOfBlock24; ++column) {
          float value = values[column];
          zeros[column] += int32_t(value == 0);
          largest[column] = std::max(largest[column], std::fabs(value));
          squares[column] += double(value) * double(value);
        }
      }
      for (size_t column = 0; column < size_t(places.count(first)); ++column) {
        if (zeros[column] == steps)
          continue;
        mostZeros -= zeros[column];
        // It is no number where one of the column is none.
        double mean = std::sqrt(squares[column] / double(steps));
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
  upper = std::min(std::max(upper, -largest - 1), largest);
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

/// The scales of the columns from `first` on, of the elements that `inner` is
/// the first of.
static Columns scalesOf(ArrayRef<char> source, const Places &places,
                        int64_t inner, int64_t first) {
  Columns scales = {}, values = {};
  for (int64_t sum : places.sums) {
    places.read(source, sum + inner, first, values);
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
    std::vector<std::array<double, columnsOfBlock24>> factors;
    for (int64_t inner : places.inner) {
      scales.push_back(scalesOf(source, places, inner, first));
      for (auto [factor, scale] :
           llvm::zip_equal(factors.emplace_back(), scales.back()))
        factor = scale == 0 ? 0 : 1 / double(scale);
    }
    for (int64_t sum : places.sums)
      for (auto [inner, ofInner] : llvm::zip_equal(places.inner, factors)) {
        Columns values = {};
        places.read(source, sum + inner, first, values);
        std::array<double, columnsOfBlock24> scaled;
        for (size_t column = 0; column < columnsOfBlock24; ++column)
          scaled[column] = double(values[column]) * ofInner[column];
        std::array<int32_t, wordsOfBlock24> words;
        joinWords(scaled, words);
        write(words);
      }
    for (const Columns &ofInner : scales)
      write(ofInner);
  }
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// `count` vectors of `element`, one after the other from `word` on.
static SmallVector<Value> loadVectors(Kernel &kernel, Value memref, Value word,
                                      int64_t count, Type element) {
  SmallVector<Value> vectors;
  for (int64_t number = 0; number < count; ++number)
    vectors.push_back(LLVM::LoadOp::create(
        kernel.builder(), kernel.loc(), VectorType::get(lanes24, element),
        addressOf(kernel, memref,
                  kernel.plus(word, kernel.index(number * lanes24))),
        /*alignment=*/4));
  return vectors;
}

SmallVector<Value> loadScales24(Kernel &kernel, Value memref, Value word) {
  return loadVectors(kernel, memref, word, columnsOfBlock24 / lanes24,
                     kernel.builder().getF32Type());
}

void prefetch24(Kernel &kernel, Value memref, Value word) {
  LLVM::Prefetch::create(kernel.builder(), kernel.loc(),
                         addressOf(kernel, memref, word), /*rw=*/0,
                         /*hint=*/2, /*cache=*/1);
}

SmallVector<Value> load24(Kernel &kernel, Value memref, Value word) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  SmallVector<Value> words =
      loadVectors(kernel, memref, word, 3, b.getI32Type());
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
  words.push_back(
      vector::BitCastOp::create(b, loc, words[0].getType(), last));
  for (Value &vector : words)
    vector = arith::SIToFPOp::create(
        b, loc, VectorType::get(lanes24, b.getF32Type()), vector);
  return words;
}

} // namespace keratin
