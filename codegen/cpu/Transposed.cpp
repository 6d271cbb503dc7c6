//===- Transposed.cpp - squares of numbers in vectors ---------------------===//
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

/// Parts of ever larger squares change places.
SmallVector<Value> transposed(OpBuilder &b, Location loc,
                              SmallVector<Value> vectors) {
  auto count = int64_t(vectors.size());
  int64_t lanes = cast<VectorType>(vectors[0].getType()).getNumElements();
  for (int64_t half = 1; half < count; half *= 2)
    for (int64_t low = 0; low < count; ++low) {
      if ((low & half) != 0)
        continue;
      SmallVector<int64_t> lower, upper;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        bool second = (lane & half) != 0;
        lower.push_back(second ? lanes + lane - half : lane);
        upper.push_back(second ? lanes + lane : lane + half);
      }
      Value first = vectors[low], other = vectors[low + half];
      vectors[low] = vector::ShuffleOp::create(b, loc, first, other, lower);
      vectors[low + half] =
          vector::ShuffleOp::create(b, loc, first, other, upper);
    }
  return vectors;
}

} // namespace keratin
