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

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace keratin {

class Kernel;

/// How weights of f32 are packed: every dimension has one of these roles.
struct Packing24 {
  int64_t columns;                  ///< the dimension in blocks
  llvm::SmallVector<int64_t> sums;  ///< that are summed over, outermost first
  llvm::SmallVector<int64_t> outer; ///< outside of those in a block, as gates
};

inline constexpr int64_t lanes24 = 16, columnsOfBlock24 = 64;
/// Words that 64 columns are in a step.
inline constexpr int64_t wordsOfBlock24 = columnsOfBlock24 * 3 / 4;

/// Whether every dimension of `type`, which is static, has one role.
bool isValid(const Packing24 &packing, mlir::RankedTensorType type);

/// Words: [blocks, those of a block]. A block has for each outer element its
/// columns of each step of the sum, and behind all of them a scale of f32 for
/// each outer element and column.
mlir::RankedTensorType packedType(mlir::RankedTensorType type,
                                  const Packing24 &packing);

/// Where in a block the scales begin.
int64_t startOfScales(mlir::RankedTensorType type, const Packing24 &packing);

/// Whether `source`, elements of the static `type` in row-major order, are
/// weights of which nothing is lost that counts. Each is off by at most 2^-23
/// of the largest of its column, so that is not to be more than 32 times the
/// mean of their magnitudes. At most one of 100 000 is zero, for those would be
/// something else then, but all of a column may be; none is infinite, or not a
/// number.
bool fits24(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
            const Packing24 &packing);

/// How `weights` of `root` are packed, a product of f32 one of whose factors
/// they are, with columns along the loop `lane`. Null where they are no such
/// constants, do not fit, or would have as many bytes as before.
std::optional<Packing24> packing24Of(Kernel &kernel,
                                     mlir::linalg::GenericOp root,
                                     mlir::OpOperand *weights, unsigned lane);

/// Copies `source`, which `fits24`, to `destination` in the order of
/// `packedType`. Columns behind the last one have the scale zero.
void pack24(llvm::ArrayRef<char> source, mlir::RankedTensorType type,
            const Packing24 &packing, llvm::MutableArrayRef<char> destination);

/// Adds `element`, a number of f32, times the weights of a block whose words in
/// `memref` begin at `word`, to `sums`: as many of its four vectors, in units
/// of their scales.
void addProducts24(Kernel &kernel, mlir::Value memref, mlir::Value word,
                   mlir::Value element,
                   llvm::MutableArrayRef<mlir::Value> sums);

/// Multiplies `sums` with the scales of their columns, which begin at `word`.
void scaleSums24(Kernel &kernel, mlir::Value memref, mlir::Value word,
                 llvm::MutableArrayRef<mlir::Value> sums);

/// Asks the second cache for the line of `word`, wherever that is.
void prefetch24(Kernel &kernel, mlir::Value memref, mlir::Value word);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_WEIGHTS24_H
