//===- Shape.cpp - ops that move elements ---------------------------------===//
#include "passes/KernelLimits.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// Copies `x` read at `begin + i * step` on each axis, by address: the form
/// that fits every case.
Value createStridedGather(OpBuilder &b, Location loc, RankedTensorType type,
                          ArrayRef<OpFoldResult> sizes, Value x,
                          ArrayRef<OpFoldResult> begins,
                          ArrayRef<int64_t> steps) {
  SmallVector<Value> origin;
  for (OpFoldResult begin : begins)
    origin.push_back(getValueOrCreateConstantIndexOp(b, loc, begin));
  return createParallel(
      b, loc, type, sizes, {}, {},
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        SmallVector<Value> position;
        for (auto [axis, begin, step] : llvm::enumerate(origin, steps)) {
          Value i = linalg::IndexOp::create(b, loc, axis);
          Value factor = arith::ConstantIndexOp::create(b, loc, step);
          Value offset = arith::MulIOp::create(b, loc, i, factor);
          position.push_back(arith::AddIOp::create(b, loc, begin, offset));
        }
        return tensor::ExtractOp::create(b, loc, x, position);
      });
}

/// y[i] = x[start + i * stride]
struct LowerSlice : Lowering<ktn::SliceOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::SliceOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX();
    SmallVector<OpFoldResult> sizes = sliceSizes(op, x, type, b);

    // A map cannot say "the first n of m": the extent of an axis read at a
    // plain loop index is the loop's. Where n divides m the axis is split.
    SmallVector<int64_t> split;
    SmallVector<AffineExpr> exprs;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      int64_t extent = tensorType(x).getDimSize(axis);
      int64_t taken = type.getDimSize(axis);
      int64_t start = op.getStarts()[axis], stride = op.getStrides()[axis];
      AffineExpr i = b.getAffineDimExpr(axis);
      if (taken == 1 && extent != 1) {
        exprs.push_back(b.getAffineConstantExpr(start));
        split.push_back(extent);
      } else if (start != 0 || stride != 1) {
        exprs.push_back(i * stride + start);
        split.push_back(extent);
      } else if (taken == extent) {
        exprs.push_back(i);
        split.push_back(extent);
      } else if (!ShapedType::isDynamic(extent) && taken > 0 &&
                 extent % taken == 0) {
        llvm::append_values(exprs, b.getAffineConstantExpr(0), i);
        llvm::append_values(split, extent / taken, taken);
      } else {
        return createStridedGather(
            b, loc, type, sizes, x,
            getAsIndexOpFoldResult(b.getContext(), op.getStarts()),
            op.getStrides());
      }
    }
    x = createReshape(b, loc, x, type.clone(split));
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, b.getContext());
    return createCopy(b, loc, type, sizes, x, map);
  }

private:
  static SmallVector<OpFoldResult>
  sliceSizes(ktn::SliceOp op, Value x, RankedTensorType type, OpBuilder &b) {
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), type.getShape());
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      AffineExpr extent = b.getAffineSymbolExpr(0);
      AffineExpr count =
          (extent - op.getStarts()[axis]).ceilDiv(op.getStrides()[axis]);
      sizes[axis] =
          applySize(b, op.getLoc(), count, {sizeOf(b, op.getLoc(), x, axis)});
    }
    return sizes;
  }
};

/// y[i of permutation] = x[i]
struct LowerTranspose : Lowering<ktn::TransposeOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::TransposeOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    SmallVector<AffineExpr> exprs(type.getRank());
    SmallVector<OpFoldResult> sizes;
    for (auto [axis, source] : llvm::enumerate(op.getPermutation())) {
      exprs[source] = b.getAffineDimExpr(axis);
      sizes.push_back(sizeOf(b, loc, operands.getX(), source));
    }
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, b.getContext());
    return createCopy(b, loc, type, sizes, operands.getX(), map);
  }
};

/// y[i] = x[extent - 1 - i] along the reversed axes
struct LowerReverse : Lowering<ktn::ReverseOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ReverseOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX();
    SmallVector<OpFoldResult> sizes = sizesOf(b, loc, x);
    SmallVector<OpFoldResult> begins(type.getRank(), b.getIndexAttr(0));
    SmallVector<int64_t> steps(type.getRank(), 1);
    SmallVector<AffineExpr> exprs;
    bool isStatic = true;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      AffineExpr i = b.getAffineDimExpr(axis);
      exprs.push_back(i);
      if (!llvm::is_contained(op.getAxes(), axis))
        continue;
      steps[axis] = -1;
      begins[axis] =
          applySize(b, loc, b.getAffineSymbolExpr(0) - 1, {sizes[axis]});
      if (type.isDynamicDim(axis))
        isStatic = false;
      else if (type.getDimSize(axis) != 1)
        exprs[axis] = -i + (type.getDimSize(axis) - 1);
    }
    if (!isStatic)
      return createStridedGather(b, loc, type, sizes, x, begins, steps);
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, b.getContext());
    return createCopy(b, loc, type, sizes, x, map);
  }
};

/// y[low + i] = x[i], and a constant elsewhere
struct LowerPad : Lowering<ktn::PadOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::PadOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Value value = arith::ConstantOp::create(
        b, op.getLoc(), signless(cast<TypedAttr>(op.getValue())));
    return tensor::PadOp::create(
               b, op.getLoc(), type, operands.getX(),
               getAsIndexOpFoldResult(b.getContext(), op.getLow()),
               getAsIndexOpFoldResult(b.getContext(), op.getHigh()), value)
        .getResult();
  }
};

/// More than a kernel may read are joined in groups, which are then made in
/// their places in the whole.
struct LowerConcat : Lowering<ktn::ConcatOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ConcatOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    SmallVector<Value> parts(operands.getXs());
    while (parts.size() > mostInputs) {
      SmallVector<Value> groups;
      for (ArrayRef<Value> rest = parts; !rest.empty();) {
        ArrayRef<Value> group =
            rest.take_front(std::min(rest.size(), mostInputs));
        rest = rest.drop_front(group.size());
        groups.push_back(
            group.size() == 1
                ? group[0]
                : tensor::ConcatOp::create(b, op.getLoc(), op.getAxis(), group)
                      .getResult());
      }
      parts = std::move(groups);
    }
    if (parts.size() == 1)
      return parts[0];
    return tensor::ConcatOp::create(b, op.getLoc(), type, op.getAxis(), parts)
        .getResult();
  }
};

/// Axes of extent 1 that come or go: the others keep their extents.
template <typename OpT> struct LowerUnitAxes : Lowering<OpT> {
  using Lowering<OpT>::Lowering;
  using typename Lowering<OpT>::Operands;

  FailureOr<Value> lower(OpT op, Operands operands, RankedTensorType type,
                         OpBuilder &b) const override {
    return createReshape(b, op.getLoc(), operands.getX(), type);
  }
};

/// y has the elements of x in row-major order.
struct LowerReshape : Lowering<ktn::ReshapeOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ReshapeOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX();
    // One unknown extent follows from the count, several do not.
    if (type.getNumDynamicDims() <= 1 || !operands.getShape())
      return createReshape(b, loc, x, type);
    Value flat = createReshape(
        b, loc, x,
        RankedTensorType::get(ShapedType::kDynamic, type.getElementType()));
    ReassociationIndices axes =
        llvm::to_vector<2>(llvm::seq<int64_t>(type.getRank()));
    return tensor::ExpandShapeOp::create(
               b, loc, type, flat, axes,
               sizesFromShape(b, loc, type, operands.getShape()))
        .getResult();
  }
};

/// y[i] = x[i], where x is read at 0 on axes that it does not have
struct LowerBroadcastTo : Lowering<ktn::BroadcastToOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::BroadcastToOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX();
    SmallVector<OpFoldResult> sizes = broadcastSizes(b, loc, type, x);
    auto isUnknown = [&](int64_t axis) {
      return type.isDynamicDim(axis) && !isa<Value>(sizes[axis]);
    };
    auto axes = llvm::seq<int64_t>(type.getRank());
    if (auto unknown = llvm::find_if(axes, isUnknown); unknown != axes.end()) {
      if (!operands.getShape()) {
        op.emitOpError("extent of axis ")
            << *unknown << " is unknown: x has type " << x.getType()
            << " and there is no shape operand";
        return failure();
      }
      SmallVector<OpFoldResult> given =
          sizesFromShape(b, loc, type, operands.getShape());
      for (int64_t axis : axes)
        if (isUnknown(axis))
          sizes[axis] = given[axis];
    }
    AffineMap map = broadcastMap(b, tensorType(x).getShape(), type.getShape());
    return createCopy(b, loc, type, sizes, x, map);
  }
};

/// The extents of x; scalars for those who read single elements.
struct LowerShapeOf : Lowering<ktn::ShapeOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ShapeOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    SmallVector<Value> extents;
    for (OpFoldResult size : sizesOf(b, loc, operands.getX())) {
      Value extent = getValueOrCreateConstantIndexOp(b, loc, size);
      extents.push_back(
          arith::IndexCastOp::create(b, loc, type.getElementType(), extent));
    }
    if (extents.empty())
      return emptyTensor(b, loc, type, {b.getIndexAttr(0)});
    return tensor::FromElementsOp::create(b, loc, type, extents).getResult();
  }
};

} // namespace

void populateShape(const TypeConverter &converter,
                   RewritePatternSet &patterns) {
  patterns.add<LowerBroadcastTo, LowerConcat, LowerPad, LowerReshape,
               LowerReverse, LowerShapeOf, LowerSlice, LowerTranspose,
               LowerUnitAxes<ktn::ExpandDimsOp>, LowerUnitAxes<ktn::SqueezeOp>>(
      converter, patterns.getContext());
}

} // namespace keratin::lower
