//===- Index.cpp - ops that address elements by value ---------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// `index` as an index of an axis with `size` elements; what lies outside is
/// moved to the nearest end.
Value clampIndex(OpBuilder &b, Location loc, Value index, bool isUnsigned,
                 Value last) {
  Type type = b.getIndexType();
  if (isUnsigned)
    index = arith::IndexCastUIOp::create(b, loc, type, index);
  else
    index = arith::IndexCastOp::create(b, loc, type, index);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value atLeastZero = arith::MaxSIOp::create(b, loc, index, zero);
  return arith::MinSIOp::create(b, loc, atLeastZero, last);
}

/// The last index of `axis`, as a value outside of the loops.
Value lastIndex(OpBuilder &b, Location loc, Value x, int64_t axis) {
  OpFoldResult last = applySize(b, loc, b.getAffineSymbolExpr(0) - 1,
                                {sizeOf(b, loc, x, axis)});
  return getValueOrCreateConstantIndexOp(b, loc, last);
}

bool hasUnsignedElements(Value value) {
  return tensorType(value).getElementType().isUnsignedInteger();
}

/// y[outer, i, inner] = x[outer, indices[outer's batch axes, i], inner]
struct LowerGather : Lowering<ktn::GatherOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::GatherOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX(), indices = operands.getIndices();
    int64_t axis = op.getAxis(), batch = op.getBatchDims();
    int64_t rank = tensorType(x).getRank();
    int64_t picked = tensorType(indices).getRank() - batch;

    SmallVector<OpFoldResult> xSizes = sizesOf(b, loc, x), sizes;
    SmallVector<OpFoldResult> indexSizes = sizesOf(b, loc, indices);
    llvm::append_range(sizes, ArrayRef(xSizes).take_front(axis));
    llvm::append_range(sizes, ArrayRef(indexSizes).drop_front(batch));
    llvm::append_range(sizes, ArrayRef(xSizes).drop_front(axis + 1));

    SmallVector<AffineExpr> indexExprs;
    for (int64_t i = 0; i < batch; ++i)
      indexExprs.push_back(b.getAffineDimExpr(i));
    for (int64_t i = 0; i < picked; ++i)
      indexExprs.push_back(b.getAffineDimExpr(axis + i));
    AffineMap indexMap =
        AffineMap::get(type.getRank(), 0, indexExprs, b.getContext());

    Value last = lastIndex(b, loc, x, axis);
    return createParallel(
        b, loc, type, sizes, indices, indexMap,
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          SmallVector<Value> position;
          for (int64_t i = 0; i < axis; ++i)
            position.push_back(linalg::IndexOp::create(b, loc, i));
          position.push_back(clampIndex(
              b, loc, args[0], hasUnsignedElements(op.getIndices()), last));
          for (int64_t i = axis + 1; i < rank; ++i)
            position.push_back(linalg::IndexOp::create(b, loc, i - 1 + picked));
          return tensor::ExtractOp::create(b, loc, x, position);
        });
  }
};

/// y = x; then y[indices[i], inner] += updates[i, inner] for each i in order.
/// Two updates may meet at one element, so i is a sequential loop.
struct LowerScatterAdd : Lowering<ktn::ScatterAddOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ScatterAddOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value indices = flattenLeading(b, loc, operands.getIndices(),
                                   tensorType(operands.getIndices()).getRank());
    Value updates = flattenLeading(b, loc, operands.getUpdates(),
                                   tensorType(operands.getIndices()).getRank());

    Value last = lastIndex(b, loc, operands.getX(), 0);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value count =
        getValueOrCreateConstantIndexOp(b, loc, sizeOf(b, loc, indices, 0));
    auto loop = scf::ForOp::create(
        b, loc, zero, count, one, operands.getX(),
        [&](OpBuilder &b, Location loc, Value i, ValueRange state) {
          Value index = tensor::ExtractOp::create(b, loc, indices, i);
          Value row = clampIndex(b, loc, index,
                                 hasUnsignedElements(op.getIndices()), last);
          Value sum = addRow(b, loc, state[0], row, updates, i);
          scf::YieldOp::create(b, loc, sum);
        });
    return loop.getResult(0);
  }

private:
  /// The first `count` axes as one.
  static Value flattenLeading(OpBuilder &b, Location loc, Value value,
                              int64_t count) {
    RankedTensorType type = tensorType(value);
    int64_t extent = 1;
    for (int64_t leading : type.getShape().take_front(count))
      extent = ShapedType::isDynamic(leading) || ShapedType::isDynamic(extent)
                   ? ShapedType::kDynamic
                   : extent * leading;
    SmallVector<int64_t> shape = {extent};
    llvm::append_range(shape, type.getShape().drop_front(count));
    return createReshape(b, loc, value, type.clone(shape));
  }

  /// `into` with row `to` replaced by its sum with row `from` of `updates`.
  static Value addRow(OpBuilder &b, Location loc, Value into, Value to,
                      Value updates, Value from) {
    RankedTensorType type = tensorType(into);
    RankedTensorType rowType = RankedTensorType::get(
        type.getShape().drop_front(), type.getElementType());
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes = sizesOf(b, loc, into);
    sizes[0] = b.getIndexAttr(1);

    offsets[0] = from;
    Value update = tensor::ExtractSliceOp::create(b, loc, rowType, updates,
                                                  offsets, sizes, strides);
    offsets[0] = to;
    Value row = tensor::ExtractSliceOp::create(b, loc, rowType, into, offsets,
                                               sizes, strides);
    AffineMap identity = b.getMultiDimIdentityMap(rowType.getRank());
    Value sum = createParallel(
        b, loc, rowType, ArrayRef(sizes).drop_front(), {row, update},
        {identity, identity},
        [](OpBuilder &b, Location loc, ValueRange args) -> Value {
          if (isa<FloatType>(args[0].getType()))
            return arith::AddFOp::create(b, loc, args[0], args[1]);
          return arith::AddIOp::create(b, loc, args[0], args[1]);
        });
    return tensor::InsertSliceOp::create(b, loc, sum, into, offsets, sizes,
                                         strides);
  }
};

/// y[.., i, ..] = i along `axis`
struct LowerIota : Lowering<ktn::IotaOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::IotaOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Type element = type.getElementType();
    return createParallel(
        b, loc, type, sizesFromShape(b, loc, type, operands.getShape()), {}, {},
        [&](OpBuilder &b, Location loc, ValueRange) -> Value {
          Value index = linalg::IndexOp::create(b, loc, op.getAxis());
          if (!isa<FloatType>(element))
            return arith::IndexCastOp::create(b, loc, element, index);
          Value integer =
              arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
          return arith::SIToFPOp::create(b, loc, element, integer);
        });
  }
};

} // namespace

void populateIndex(const TypeConverter &converter,
                   RewritePatternSet &patterns) {
  patterns.add<LowerGather, LowerScatterAdd, LowerIota>(converter,
                                                        patterns.getContext());
}

} // namespace keratin::lower
