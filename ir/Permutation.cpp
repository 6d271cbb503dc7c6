#include "ir/Permutation.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

SmallVector<int64_t> keratin::ktn::inverseOf(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [to, from] : enumerate(permutation))
    inverse[from] = to;
  return inverse;
}

SmallVector<int64_t> keratin::ktn::valuesBefore(ArrayRef<int64_t> values,
                                                ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(values.size());
  for (auto [to, from] : enumerate(permutation))
    result[from] = values[to];
  return result;
}

SmallVector<int64_t> keratin::ktn::axesBefore(ArrayRef<int64_t> axes,
                                              ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes)
    result.push_back(permutation[axis]);
  sort(result);
  return result;
}

SmallVector<int64_t>
keratin::ktn::permutationWithout(ArrayRef<int64_t> permutation,
                                 ArrayRef<int64_t> removed) {
  SmallVector<int64_t> result;
  for (int64_t axis : permutation) {
    if (is_contained(removed, axis))
      continue;
    int64_t before =
        count_if(removed, [&](int64_t gone) { return gone < axis; });
    result.push_back(axis - before);
  }
  return result;
}
