//===- PairPacking.cpp - weights in the order dot products read them ------===//
#include "codegen/cpu/PairPacking.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace keratin {

static int64_t elementsOf(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t elements = 1;
  for (int64_t dim : dims)
    elements *= type.getDimSize(dim);
  return elements;
}

bool isValid(const PairPacking &packing, RankedTensorType type) {
  llvm::SmallBitVector seen(type.getRank());
  auto take = [&](int64_t dim) {
    if (dim < 0 || dim >= type.getRank() || seen.test(dim))
      return false;
    seen.set(dim);
    return true;
  };
  return type.hasStaticShape() && type.getElementTypeBitWidth() == 16 &&
         packing.block > 0 && take(packing.dim) &&
         llvm::all_of(packing.outer, take) &&
         llvm::all_of(packing.sums, take) &&
         llvm::all_of(packing.inner, take) && seen.all();
}

RankedTensorType pairedType(RankedTensorType type, const PairPacking &packing) {
  SmallVector<int64_t> shape;
  for (int64_t dim : packing.outer)
    shape.push_back(type.getDimSize(dim));
  shape.push_back(
      int64_t(llvm::divideCeil(type.getDimSize(packing.dim), packing.block)));
  shape.push_back(int64_t(llvm::divideCeil(elementsOf(type, packing.sums), 2)));
  for (int64_t dim : packing.inner)
    shape.push_back(type.getDimSize(dim));
  shape.push_back(packing.block);
  shape.push_back(2);
  return RankedTensorType::get(shape, type.getElementType());
}

/// Where in the source each element of `dims` is, in row-major order.
static SmallVector<int64_t> placesOf(RankedTensorType type,
                                     ArrayRef<int64_t> dims,
                                     ArrayRef<int64_t> strides) {
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

void packPairs(ArrayRef<char> source, RankedTensorType type,
               const PairPacking &packing, MutableArrayRef<char> destination) {
  constexpr int64_t bytes = 2;
  std::fill(destination.begin(), destination.end(), 0);
  if (type.getNumElements() == 0)
    return;
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  int64_t columns = type.getDimSize(packing.dim), block = packing.block;
  auto blocks = int64_t(llvm::divideCeil(columns, block));
  SmallVector<int64_t> outer = placesOf(type, packing.outer, strides);
  SmallVector<int64_t> sums = placesOf(type, packing.sums, strides);
  SmallVector<int64_t> inner = placesOf(type, packing.inner, strides);
  char *out = destination.data();
  for (int64_t base : outer)
    for (int64_t first = 0; first < blocks * block; first += block)
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

} // namespace keratin
