//===- Packing.cpp - weights in the order a tile reads them ---------------===//
#include "codegen/cpu/Packing.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace keratin {

RankedTensorType packedType(RankedTensorType type, unsigned dim,
                            int64_t block) {
  SmallVector<int64_t> shape(type.getShape());
  auto blocks = int64_t(llvm::divideCeil(shape[dim], block));
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin(), blocks);
  shape.push_back(block);
  return RankedTensorType::get(shape, type.getElementType());
}

void pack(ArrayRef<char> source, RankedTensorType type, unsigned dim,
          int64_t block, MutableArrayRef<char> destination) {
  unsigned bits = type.getElementTypeBitWidth();
  size_t bytes = std::max(1u, bits / 8);
  int64_t before = 1, after = 1, extent = type.getDimSize(dim);
  for (auto [axis, size] : llvm::enumerate(type.getShape()))
    (axis < dim ? before : after) *= axis == dim ? 1 : size;
  std::fill(destination.begin(), destination.end(), 0);

  // source[i][n][j] goes to destination[n / block][i][j][n % block].
  for (int64_t i = 0; i < before; ++i)
    for (int64_t n = 0; n < extent; ++n)
      for (int64_t j = 0; j < after; ++j) {
        size_t from = (i * extent + n) * after + j;
        size_t to = ((n / block * before + i) * after + j) * block + n % block;
        std::memcpy(&destination[to * bytes], &source[from * bytes], bytes);
      }
}

} // namespace keratin
