//===- Packing.cpp - weights in the order a tile reads them ---------------===//
#include "codegen/cpu/Packing.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace keratin {

/// The dimensions of the source in the order of a packed tensor, but for the
/// blocked one: first the outer ones.
static SmallVector<int64_t> orderOf(RankedTensorType type,
                                    const Packing &packing) {
  SmallVector<int64_t> order(packing.outer);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != int64_t(packing.dim) && !llvm::is_contained(packing.outer, dim))
      order.push_back(dim);
  return order;
}

RankedTensorType packedType(RankedTensorType type, const Packing &packing) {
  SmallVector<int64_t> shape;
  for (int64_t dim : orderOf(type, packing))
    shape.push_back(type.getDimSize(dim));
  shape.insert(shape.begin() + packing.outer.size(),
               llvm::divideCeil(type.getDimSize(packing.dim), packing.block));
  shape.push_back(packing.block);
  return RankedTensorType::get(shape, type.getElementType());
}

void pack(ArrayRef<char> source, RankedTensorType type, const Packing &packing,
          MutableArrayRef<char> destination) {
  size_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
  int64_t block = packing.block, extent = type.getDimSize(packing.dim);
  std::fill(destination.begin(), destination.end(), 0);
  if (type.getNumElements() == 0)
    return;

  SmallVector<int64_t> strides = computeStrides(type.getShape());
  SmallVector<int64_t> order = orderOf(type, packing);
  int64_t inner = 1, inBlocks = 1;
  for (auto [number, dim] : llvm::enumerate(order))
    (number < packing.outer.size() ? inBlocks : inner) *= type.getDimSize(dim);
  auto blocks = int64_t(llvm::divideCeil(extent, block));

  SmallVector<int64_t> at(order.size(), 0);
  for (int64_t count = 0; count < inBlocks * inner; ++count) {
    int64_t from = 0;
    for (auto [dim, place] : llvm::zip_equal(order, at))
      from += strides[dim] * place;
    int64_t i = count / inner, j = count % inner;
    // Neighbours in the source are neighbours in a block.
    int64_t stride = strides[packing.dim];
    int64_t run = stride == 1 && !packing.interleaved ? block : 1;
    for (int64_t n = 0; n < extent; n += run) {
      int64_t inBlock = n % block, half = block / 2;
      if (packing.interleaved)
        inBlock = inBlock % half * 2 + inBlock / half;
      int64_t to = ((i * blocks + n / block) * inner + j) * block + inBlock;
      std::memcpy(&destination[to * bytes],
                  &source[(from + n * stride) * bytes],
                  std::min(run, extent - n) * bytes);
    }
    for (size_t next = at.size(); next-- > 0;) {
      if (++at[next] < type.getDimSize(order[next]))
        break;
      at[next] = 0;
    }
  }
}

} // namespace keratin
