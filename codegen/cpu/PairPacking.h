//===- PairPacking.h - weights in the order dot products read them -*- C++ -*-//
#ifndef KERATIN_CODEGEN_CPU_PAIRPACKING_H
#define KERATIN_CODEGEN_CPU_PAIRPACKING_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace keratin {

/// How a factor of a sum of products is packed for instructions that take two
/// neighbours of the sum at once.
struct PairPacking {
  int64_t dim;   ///< which is cut into blocks of `block` columns
  int64_t block; ///< a multiple of the columns of an instruction
  llvm::SmallVector<int64_t> outer; ///< dimensions that blocks do not go along
  /// Dimensions that are summed over, outermost first. Where the number of
  /// their elements is odd the last one has a zero beside it.
  llvm::SmallVector<int64_t> sums;
  /// Dimensions of which a block has all columns of each pair, one element
  /// after the other, such as gates.
  llvm::SmallVector<int64_t> inner = {};
  /// Whether elements are f32, each of which becomes three bf16 whose sum it
  /// is (codegen/cpu/SplitTiles.h). In each `splitDepth` elements of the sum
  /// the first half is paired with the second one; behind the last elements
  /// are zeros, and no dimension is inner.
  bool split = false;
};

/// Numbers of bf16 whose sum a number of f32 is, and elements of a sum that
/// are split at once.
inline constexpr int64_t splitParts = 3, splitDepth = 32;

/// Whether each dimension of `type` is in exactly one of `roles`, once.
bool haveOneRoleEach(mlir::RankedTensorType type,
                     llvm::ArrayRef<llvm::ArrayRef<int64_t>> roles);

/// Where each element of the dimensions `dims` of a row-major tensor is, in
/// order, the last of them innermost.
llvm::SmallVector<int64_t> placesOf(mlir::RankedTensorType type,
                                    llvm::ArrayRef<int64_t> dims);

/// Whether every dimension of `type`, which is static, has one role, and the
/// sizes fit.
bool isValid(const PairPacking &packing, mlir::RankedTensorType type);

/// [outer dimensions, blocks, pairs of the sum, inner dimensions, block, 2];
/// where elements are split [outer dimensions, blocks, ceil(elements of the sum
/// / splitDepth), splitParts, splitDepth / 2, block, 2] of bf16.
mlir::RankedTensorType pairedType(mlir::RankedTensorType type,
                                  const PairPacking &packing);

/// Copies the elements of `source`, a tensor of the static `type`, to
/// `destination` in the order of `pairedType`. What is behind the last column
/// of the last block, and behind the last element of an odd sum, is zero.
void packPairs(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
               const PairPacking &packing,
               llvm::MutableArrayRef<char> destination);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_PAIRPACKING_H
