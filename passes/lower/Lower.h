//===- Lower.h - what the lowerings to linalg share -------------*- C++ -*-===//
//
// One file a family; each says for its ops which loops take their place.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_PASSES_LOWER_LOWER_H
#define KERATIN_PASSES_LOWER_LOWER_H

#include "ir/Ktn.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace keratin::lower {

void populateControl(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateElementwise(const mlir::TypeConverter &,
                         mlir::RewritePatternSet &);
void populateIndex(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateLinear(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateNn(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateRandom(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateReduce(const mlir::TypeConverter &, mlir::RewritePatternSet &);
void populateShape(const mlir::TypeConverter &, mlir::RewritePatternSet &);

/// Patterns on the lowered form: scalars of shape arithmetic are computed as
/// scalars, and views that only add or drop unit axes disappear into the maps
/// of their readers.
void populateSimplification(mlir::RewritePatternSet &);

/// Turns what is left of `affine` in `op` into `arith`: sizes that have been
/// simplified.
mlir::LogicalResult lowerSizes(mlir::Operation *op);

/// Lowers one op with one result. Derived classes say what takes its place.
template <typename OpT> class Lowering : public mlir::OpConversionPattern<OpT> {
public:
  using mlir::OpConversionPattern<OpT>::OpConversionPattern;
  using Operands = typename OpT::Adaptor;

  /// The value of `op`, of type `type`; or failure, with a diagnostic.
  virtual mlir::FailureOr<mlir::Value> lower(OpT op, Operands operands,
                                             mlir::RankedTensorType type,
                                             mlir::OpBuilder &b) const = 0;

  mlir::LogicalResult
  matchAndRewrite(OpT op, Operands operands,
                  mlir::ConversionPatternRewriter &rewriter) const final {
    auto type =
        this->getTypeConverter()->template convertType<mlir::RankedTensorType>(
            op.getType());
    mlir::FailureOr<mlir::Value> value = lower(op, operands, type, rewriter);
    if (mlir::failed(value))
      return mlir::failure();
    rewriter.replaceOp(op, *value);
    return mlir::success();
  }
};

using ScalarBody = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// The tensor type that `value` has.
mlir::RankedTensorType tensorType(mlir::Value value);

/// The size of an axis of `value`: an attribute where it is known, and a size
/// of what `value` was made of where that says it. Asking for the size of a
/// computed value and simplifying later would cost the length of the graph each
/// time.
mlir::OpFoldResult sizeOf(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value, int64_t axis);

/// The sizes of all axes.
llvm::SmallVector<mlir::OpFoldResult>
sizesOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);

/// The sizes of the NumPy broadcast of `operands`, which has type `type`.
llvm::SmallVector<mlir::OpFoldResult>
broadcastSizes(mlir::OpBuilder &b, mlir::Location loc,
               mlir::RankedTensorType type, mlir::ValueRange operands);

/// The extents of `type`, of which the unknown ones are elements of `shape`.
llvm::SmallVector<mlir::OpFoldResult>
sizesFromShape(mlir::OpBuilder &b, mlir::Location loc,
               mlir::RankedTensorType type, mlir::Value shape);

/// `expr` of the sizes, folded where they are known.
mlir::OpFoldResult applySize(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::AffineExpr expr,
                             llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// An unset tensor. `sizes` gives the extents that `type` does not.
mlir::Value emptyTensor(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::RankedTensorType type,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// A tensor whose elements are all `value`.
mlir::Value filledTensor(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::RankedTensorType type,
                         llvm::ArrayRef<mlir::OpFoldResult> sizes,
                         mlir::TypedAttr value);

/// The attribute as `arith` knows it: unsigned integers become signless.
mlir::TypedAttr signless(mlir::TypedAttr value);

/// The element of type `type` that is `value`.
mlir::TypedAttr elementAttr(mlir::Type type, double value);
mlir::TypedAttr lowestElement(mlir::Type type, bool isUnsigned);

/// The map from `loops` result loops to an operand of shape `shape`, aligned at
/// the right; axes of extent 1 are read at 0.
mlir::AffineMap broadcastMap(mlir::OpBuilder &b, llvm::ArrayRef<int64_t> shape,
                             llvm::ArrayRef<int64_t> loops);

/// The map from `loops` loops to the first `count`, which may be none.
mlir::AffineMap firstLoops(mlir::OpBuilder &b, unsigned loops, unsigned count);

/// One parallel loop nest over the result. `maps` gives the element each input
/// is read at.
mlir::Value createParallel(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::RankedTensorType type,
                           llvm::ArrayRef<mlir::OpFoldResult> sizes,
                           mlir::ValueRange inputs,
                           llvm::ArrayRef<mlir::AffineMap> maps,
                           ScalarBody body);

/// Copies `input`, read at `map` of the loops over the result.
mlir::Value createCopy(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::RankedTensorType type,
                       llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       mlir::Value input, mlir::AffineMap map);

/// Loops of which the trailing `reductions` are reductions, from `neutral`;
/// `maps` has one entry per input and one for the result. The body is given the
/// elements of the inputs and last the accumulator. Half precision is
/// accumulated in f32.
mlir::Value createReduction(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::RankedTensorType type,
                            llvm::ArrayRef<mlir::OpFoldResult> sizes,
                            mlir::TypedAttr neutral, mlir::ValueRange inputs,
                            llvm::ArrayRef<mlir::AffineMap> maps,
                            unsigned reductions, ScalarBody body);

/// A sum of products of two inputs; loops as in `createReduction`.
mlir::Value createContraction(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::RankedTensorType type,
                              llvm::ArrayRef<mlir::OpFoldResult> sizes,
                              mlir::ValueRange inputs,
                              llvm::ArrayRef<mlir::AffineMap> maps,
                              unsigned reductions);

/// The same elements in row-major order as `type`: at most one collapse_shape
/// and one expand_shape. Where both types have several unknown extents, those
/// are the same in their order; otherwise `type` has at most one.
mlir::Value createReshape(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value, mlir::RankedTensorType type);

} // namespace keratin::lower

#endif // KERATIN_PASSES_LOWER_LOWER_H
