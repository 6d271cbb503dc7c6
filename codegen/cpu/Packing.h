//===- Packing.h - weights in the order a tile reads them -------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_PACKING_H
#define KERATIN_CODEGEN_CPU_PACKING_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace keratin {

/// How a tensor is packed: dimension `dim` is cut into blocks of `block`.
struct Packing {
  unsigned dim;
  int64_t block;
  /// Dimensions that blocks do not go along, such as groups and heads: a block
  /// is contiguous.
  llvm::SmallVector<int64_t> outer = {};
  /// Whether each element of the first half of a block is followed by the one
  /// of the second half, so that two bf16 are one word: a shift widens a vector
  /// of the first ones to f32 and a mask one of the others, where neighbours
  /// would have to be moved to words of their own before.
  bool interleaved = false;
};

/// The shape of a tensor of `type` in blocks: [the outer dimensions in order,
/// ceil(extent / block), the other dimensions in order, block].
mlir::RankedTensorType packedType(mlir::RankedTensorType type,
                                  const Packing &packing);

/// Copies the elements of `source`, a tensor of the static `type` in row-major
/// order, to `destination` in the order of `packedType`. The rest of the last
/// block is zero. Elements are whole bytes; i1 is one byte. Blocks that are
/// interleaved are of an even number of elements.
void pack(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
          const Packing &packing, llvm::MutableArrayRef<char> destination);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PACKING_H
