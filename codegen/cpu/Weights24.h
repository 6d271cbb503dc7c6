//===- Weights24.h - weights as integers of 24 bits -------------*- C++ -*-===//
//
// One row that is multiplied by weights waits for these to come from a cache or
// from memory. As integers of 24 bits, times a scale for each column, they are
// three quarters of the bytes, and off by as little as sums of f32 are.
//
// The 64 columns of a block are three vectors of words in each step of the sum.
// Words of the first one have columns 0 to 15 in their upper 24 bits, those of
// the second and the third the next 16 each; the lowest bytes of all three are
// bytes of the last 16. Words become f32 as they are: what is in the lowest
// byte is known when weights are packed, and taken into account there.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_WEIGHTS24_H
#define KERATIN_CODEGEN_CPU_WEIGHTS24_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace keratin {

class Kernel;

/// How weights of f32 are packed: every dimension has one of these roles.
struct Packing24 {
  int64_t columns;                   ///< the dimension in blocks
  llvm::SmallVector<int64_t> sums;   ///< that are summed over, outermost first
  llvm::SmallVector<int64_t> inner;  ///< of which a step has all, as gates
};

inline constexpr int64_t lanes24 = 16, columnsOfBlock24 = 64;
/// Words that 64 columns are in a step.
inline constexpr int64_t wordsOfBlock24 = columnsOfBlock24 * 3 / 4;

/// Whether every dimension of `type`, which is static, has one role.
bool isValid(const Packing24 &packing, mlir::RankedTensorType type);

/// Words: [blocks, those of a block]. A block has its columns of each step of
/// the sum, within which are those of each inner element, and then a scale of
/// f32 for each inner element and column.
mlir::RankedTensorType packedType(mlir::RankedTensorType type,
                                  const Packing24 &packing);

/// Where in a block the scales begin.
int64_t startOfScales(mlir::RankedTensorType type, const Packing24 &packing);

/// Whether `source`, elements of the static `type` in row-major order, are
/// weights of which nothing is lost that counts. Each is off by at most 2^-23
/// of the largest of its column, so that is not to be more than 32 times their
/// root mean square. At most one of 100 000 is zero, for those would be
/// something else then, but all of a column may be; none is infinite, or not a
/// number.
bool fits24(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
            const Packing24 &packing);

/// Copies `source`, which `fits24`, to `destination` in the order of
/// `packedType`. Columns behind the last one have the scale zero.
void pack24(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
            const Packing24 &packing, llvm::MutableArrayRef<char> destination);

/// The four vectors of a block, in units of their scales, whose words in
/// `memref` begin at `word`; and the four vectors of scales there.
llvm::SmallVector<mlir::Value> load24(Kernel &kernel, mlir::Value memref,
                                      mlir::Value word);
llvm::SmallVector<mlir::Value> loadScales24(Kernel &kernel, mlir::Value memref,
                                            mlir::Value word);

/// Asks the second cache for the line of `word`, wherever that is.
void prefetch24(Kernel &kernel, mlir::Value memref, mlir::Value word);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WEIGHTS24_H
