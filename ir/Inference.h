//===- Inference.h - what the ops' type inference shares ---------*- C++
//-*-===//
//
// inferReturnTypes runs on user input before any verifier, so everything here
// refuses bad ranks, axes and extents with a diagnostic.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_INFERENCE_H
#define KERATIN_IR_INFERENCE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/ValueRange.h"

#include <optional>
#include <string>

namespace keratin::ktn {

using MaybeLoc = std::optional<mlir::Location>;
using InferredTypes = llvm::SmallVectorImpl<mlir::Type>;

/// `[2, ?, 3]`.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// The type of `value`, or failure when it is no ranked tensor.
mlir::FailureOr<mlir::RankedTensorType> inferRanked(MaybeLoc location,
                                                    mlir::Value value);

/// Gives the tensor type, or fails when an extent is negative or the byte size
/// does not fit into 63 bits.
mlir::LogicalResult inferTensor(MaybeLoc location,
                                llvm::ArrayRef<int64_t> shape,
                                mlir::Type element, InferredTypes &types);

/// Whether the values of a type of the extents `shape`, with a given element
/// count, all have one shape: there is at most one `?`, which follows.
bool hasOneShape(llvm::ArrayRef<int64_t> shape);

/// The operand `shape`, which gives the `?` of `target`, has one element an
/// axis; it may be null.
mlir::LogicalResult checkShapeOperand(MaybeLoc location, mlir::Value shape,
                                      llvm::ArrayRef<int64_t> target);

/// The extent that `a` and `b` have in common; `?` is any.
mlir::FailureOr<int64_t> mergeExtents(int64_t a, int64_t b);

mlir::LogicalResult checkAxis(MaybeLoc location, llvm::StringRef name,
                              int64_t axis, int64_t rank);
/// Axes must be in range, sorted and distinct.
mlir::LogicalResult checkAxes(MaybeLoc location, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> axes, int64_t rank);
/// `values` must have `count` entries: one for each `what`.
mlir::LogicalResult checkCount(MaybeLoc location, llvm::StringRef name,
                               llvm::ArrayRef<int64_t> values, int64_t count,
                               llvm::StringRef what);

/// Operands of one element type, broadcast.
mlir::LogicalResult inferBroadcast(MaybeLoc location, mlir::ValueRange operands,
                                   InferredTypes &types);
/// The same with element type i1.
mlir::LogicalResult inferComparison(MaybeLoc location,
                                    mlir::ValueRange operands,
                                    InferredTypes &types);
mlir::LogicalResult inferReduction(MaybeLoc location, mlir::Value x,
                                   llvm::ArrayRef<int64_t> axes, bool keepdims,
                                   InferredTypes &types);
mlir::LogicalResult inferArgReduction(MaybeLoc location, mlir::Value x,
                                      int64_t axis, bool keepdims,
                                      InferredTypes &types);

} // namespace keratin::ktn

#endif // KERATIN_IR_INFERENCE_H
