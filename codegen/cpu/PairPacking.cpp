//===- PairPacking.cpp - weights in the order dot products read them ------===//
#include "codegen/cpu/PairPacking.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

using namespace mlir;

namespace keratin {

static int64_t elementsOf(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t elements = 1;
  for (int64_t dim : dims)
    elements *= type.getDimSize(dim);
  return elements;
}

bool haveOneRoleEach(RankedTensorType type, ArrayRef<ArrayRef<int64_t>> roles) {
  llvm::SmallBitVector seen(type.getRank());
  for (ArrayRef<int64_t> dims : roles)
    for (int64_t dim : dims) {
      if (dim < 0 || dim >= type.getRank() || seen.test(dim))
        return false;
      seen.set(dim);
    }
  return seen.all();
}

bool isValid(const PairPacking &packing, RankedTensorType type) {
  bool fits = packing.split
                  ? type.getElementType().isF32() && packing.inner.empty()
                  : type.getElementTypeBitWidth() == 16;
  return fits && type.hasStaticShape() && packing.block > 0 &&
         haveOneRoleEach(
             type, {{packing.dim}, packing.outer, packing.sums, packing.inner});
}

RankedTensorType pairedType(RankedTensorType type, const PairPacking &packing) {
  SmallVector<int64_t> shape;
  for (int64_t dim : packing.outer)
    shape.push_back(type.getDimSize(dim));
  shape.push_back(
      int64_t(llvm::divideCeil(type.getDimSize(packing.dim), packing.block)));
  int64_t elements = elementsOf(type, packing.sums);
  if (packing.split) {
    shape.append({int64_t(llvm::divideCeil(elements, splitDepth)), splitParts,
                  splitDepth / 2, packing.block, 2});
    return RankedTensorType::get(shape, BFloat16Type::get(type.getContext()));
  }
  shape.push_back(int64_t(llvm::divideCeil(elements, 2)));
  for (int64_t dim : packing.inner)
    shape.push_back(type.getDimSize(dim));
  shape.push_back(packing.block);
  shape.push_back(2);
  return RankedTensorType::get(shape, type.getElementType());
}

SmallVector<int64_t> placesOf(RankedTensorType type, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  SmallVector<int64_t> places = {0};
  for (int64_t dim : dims) {
    SmallVector<int64_t> next;
    for (int64_t place : places)
      for (int64_t at = 0; at < type.getDimSize(dim); ++at)
        next.push_back(place + at * strides[dim]);
    places = std::move(next);
  }
  return places;
}

/// The bits of the bf16 that is nearest to `value`, of two the even one; of
/// those that are finite, if `value` is.
static uint16_t nearestBf16(float value) {
  constexpr uint32_t infinity = 0x7f80;
  auto bits = llvm::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  bool overflows = std::isfinite(value) && (nearest & infinity) == infinity;
  return uint16_t(overflows ? bits >> 16 : nearest);
}

/// Three numbers of bf16 whose sum `value` is, largest first. Of what has no
/// nearest one the second is not a number, as a difference of infinities is.
static std::array<uint16_t, splitParts> partsOf(float value) {
  std::array<uint16_t, splitParts> parts = {};
  for (uint16_t &part : parts) {
    part = nearestBf16(value);
    value -= llvm::bit_cast<float>(uint32_t(part) << 16);
  }
  return parts;
}

/// `packPairs` where elements are split. `base` is where the first column of a
/// block is, of which `columns` are there, and `sums` where elements of a sum
/// are from there on.
static char *packBlock(const char *base, ArrayRef<int64_t> sums, int64_t stride,
                       int64_t columns, int64_t block, char *out) {
  constexpr int64_t half = splitDepth / 2;
  auto elements = int64_t(sums.size());
  for (int64_t first = 0; first < elements; first += splitDepth) {
    for (int64_t element = 0; element < splitDepth; ++element)
      for (int64_t column = 0; column < columns; ++column) {
        if (first + element >= elements)
          break;
        float value;
        std::memcpy(&value,
                    base + (sums[first + element] + column * stride) *
                               int64_t(sizeof(value)),
                    sizeof(value));
        for (auto [part, bits] : llvm::enumerate(partsOf(value))) {
          int64_t pair = int64_t(part) * half + element % half;
          int64_t place = (pair * block + column) * 2 + element / half;
          std::memcpy(out + place * int64_t(sizeof(bits)), &bits, sizeof(bits));
        }
      }
    out += splitParts * splitDepth * block * int64_t(sizeof(uint16_t));
  }
  return out;
}

void packPairs(ArrayRef<char> source, RankedTensorType type,
               const PairPacking &packing, MutableArrayRef<char> destination) {
  constexpr int64_t bytes = 2;
  std::fill(destination.begin(), destination.end(), 0);
  if (type.getNumElements() == 0)
    return;
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  int64_t columns = type.getDimSize(packing.dim), block = packing.block;
  auto blocks = int64_t(llvm::divideCeil(columns, block));
  SmallVector<int64_t> outer = placesOf(type, packing.outer);
  SmallVector<int64_t> sums = placesOf(type, packing.sums);
  SmallVector<int64_t> inner = placesOf(type, packing.inner);
  char *out = destination.data();
  for (int64_t base : outer)
    for (int64_t first = 0; first < blocks * block; first += block) {
      if (packing.split) {
        int64_t stride = strides[packing.dim];
        out = packBlock(
            source.data() + (base + first * stride) * int64_t(sizeof(float)),
            sums, stride, std::min(block, columns - first), block, out);
        continue;
      }
      for (size_t pair = 0; pair < sums.size(); pair += 2)
        for (int64_t part : inner)
          for (int64_t column = first; column < first + block; ++column)
            for (size_t half = 0; half < 2; ++half, out += bytes)
              if (column < columns && pair + half < sums.size())
                std::memcpy(out,
                            &source[size_t(base + sums[pair + half] + part +
                                           column * strides[packing.dim]) *
                                    bytes],
                            bytes);
    }
}

} // namespace keratin
