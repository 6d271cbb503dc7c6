//===- Reduce.cpp - reductions over axes ----------------------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// The loops of a reduction of an operand of rank `rank`: first those over the
/// kept axes, in order, then those over `reduced`.
struct ReductionLoops {
  ReductionLoops(OpBuilder &b, int64_t rank, ArrayRef<int64_t> reduced) {
    SmallVector<AffineExpr> operandExprs(rank);
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!llvm::is_contained(reduced, axis)) {
        operandExprs[axis] = b.getAffineDimExpr(kept.size());
        kept.push_back(axis);
      }
    for (auto [position, axis] : llvm::enumerate(reduced))
      operandExprs[axis] = b.getAffineDimExpr(kept.size() + position);
    operand = AffineMap::get(rank, 0, operandExprs, b.getContext());
    result = firstLoops(b, rank, kept.size());
    reductions = reduced.size();
  }

  SmallVector<int64_t> kept;
  AffineMap operand, result;
  unsigned reductions;
};

SmallVector<OpFoldResult> keptSizes(OpBuilder &b, Location loc, Value x,
                                    ArrayRef<int64_t> kept) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t axis : kept)
    sizes.push_back(sizeOf(b, loc, x, axis));
  return sizes;
}

RankedTensorType keptType(Value x, ArrayRef<int64_t> kept, Type element) {
  SmallVector<int64_t> shape;
  for (int64_t axis : kept)
    shape.push_back(tensorType(x).getDimSize(axis));
  return RankedTensorType::get(shape, element);
}

/// Whether the two reduced axes of `x` are one after the other: those of rows,
/// which threads can share, and then theirs. Images [n, h, w, c] are written by
/// rows, and who wrote them reads them soonest.
bool isReducedByRows(Value x, ArrayRef<int64_t> reduced, Type element) {
  constexpr int64_t leastBytes = 256 << 10, fewestRows = 6;
  RankedTensorType type = tensorType(x);
  if (reduced.size() != 2 || reduced[1] != reduced[0] + 1 || reduced[0] == 0 ||
      reduced[1] == type.getRank() - 1 || type.getElementType() != element ||
      !isa<FloatType>(element))
    return false;
  ArrayRef<int64_t> image = type.getShape().drop_front();
  if (ShapedType::isDynamicShape(image) ||
      type.getDimSize(reduced[0]) < fewestRows)
    return false;
  return ShapedType::getNumElements(image) *
             int64_t(element.getIntOrFloatBitWidth()) / 8 >=
         leastBytes;
}

/// y[kept] = neutral combined with x[kept, reduced] over all of reduced
struct LowerReduction
    : OpInterfaceConversionPattern<ktn::ReductionOpInterface> {
  using OpInterfaceConversionPattern::OpInterfaceConversionPattern;

  LogicalResult
  matchAndRewrite(ktn::ReductionOpInterface op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op->getLoc();
    Value x = operands[0];
    auto type = getTypeConverter()->convertType<RankedTensorType>(
        op->getResult(0).getType());
    auto reduce = [&](Value x, ArrayRef<int64_t> reduced) {
      ReductionLoops loops(rewriter, tensorType(x).getRank(), reduced);
      return createReduction(
          rewriter, loc, keptType(x, loops.kept, type.getElementType()),
          keptSizes(rewriter, loc, x, loops.kept),
          op.getNeutralElement(rewriter), x, {loops.operand, loops.result},
          loops.reductions, [&](OpBuilder &b, Location, ValueRange args) {
            Value joined = op.buildCombiner(b, args[0], args[1]);
            // What the producer promised of it, see ktn-expand-math.
            if (Attribute promise = op->getDiscardableAttr("ktn.skip_nan"))
              joined.getDefiningOp()->setAttr("ktn.skip_nan", promise);
            return joined;
          });
    };
    SmallVector<int64_t> reduced(op.getReducedAxes());
    if (isReducedByRows(x, reduced, type.getElementType())) {
      x = reduce(x, reduced.back());
      reduced.pop_back();
    }
    Value result = reduce(x, reduced);
    rewriter.replaceOp(op, createReshape(rewriter, loc, result, type));
    return success();
  }
};

/// Whether `x` takes the place of the best element so far: it is better, or the
/// first NaN. Elements come in order, so the first of equals stays.
Value isNewBest(OpBuilder &b, Location loc, Value x, Value best, bool isMax) {
  using arith::CmpFPredicate;
  using arith::CmpIPredicate;
  if (!isa<FloatType>(x.getType())) {
    CmpIPredicate predicate = isMax ? CmpIPredicate::sgt : CmpIPredicate::slt;
    return arith::CmpIOp::create(b, loc, predicate, x, best);
  }
  Value betterOrNan = arith::CmpFOp::create(
      b, loc, isMax ? CmpFPredicate::UGT : CmpFPredicate::ULT, x, best);
  Value bestIsNumber =
      arith::CmpFOp::create(b, loc, CmpFPredicate::ORD, best, best);
  return arith::AndIOp::create(b, loc, betterOrNan, bestIsNumber);
}

TypedAttr worstElement(Type type, bool isMax) {
  TypedAttr lowest = lowestElement(type, /*isUnsigned=*/false);
  if (isMax)
    return lowest;
  if (auto number = dyn_cast<FloatAttr>(lowest))
    return FloatAttr::get(type, -number.getValue());
  unsigned width = type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, APInt::getSignedMaxValue(width));
}

/// The first index of the last axis of `x` at which it is the extremum: that is
/// reduced, and then the least index of an element that is equal to it, or of a
/// NaN. Both go along vectors, which one reduction of two values does not. What
/// is computed again for the second is so by the same operations, and equal.
Value firstOfExtrema(OpBuilder &b, Location loc, Value x,
                     const ReductionLoops &loops, bool isMax) {
  SmallVector<OpFoldResult> sizes = keptSizes(b, loc, x, loops.kept);
  Type element = tensorType(x).getElementType();
  Value extremum = createReduction(
      b, loc, keptType(x, loops.kept, element), sizes,
      worstElement(element, isMax), x, {loops.operand, loops.result}, 1,
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        if (isa<FloatType>(args[0].getType()))
          return isMax ? Value(arith::MaximumFOp::create(b, loc, args))
                       : arith::MinimumFOp::create(b, loc, args);
        return isMax ? Value(arith::MaxSIOp::create(b, loc, args))
                     : arith::MinSIOp::create(b, loc, args);
      });
  // Words of 32 bits are as wide as most elements.
  int64_t rank = tensorType(x).getRank();
  int64_t extent = tensorType(x).getShape().back();
  bool isWide = ShapedType::isDynamic(extent) || extent > INT32_MAX;
  IntegerType word = isWide ? b.getI64Type() : b.getI32Type();
  auto none = IntegerAttr::get(word, APInt::getSignedMaxValue(word.getWidth()));
  Value first = createReduction(
      b, loc, keptType(x, loops.kept, word), sizes, none,
      ValueRange{x, extremum}, {loops.operand, loops.result, loops.result}, 1,
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        Value index = linalg::IndexOp::create(b, loc, rank - 1);
        Value here = arith::IndexCastOp::create(b, loc, word, index);
        Value isFound;
        if (isa<FloatType>(args[0].getType())) {
          isFound = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                          args[0], args[1]);
          Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO,
                                              args[0], args[0]);
          isFound = arith::OrIOp::create(b, loc, isFound, isNan);
        } else {
          isFound = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          args[0], args[1]);
        }
        Value other = arith::ConstantOp::create(b, loc, none);
        here = arith::SelectOp::create(b, loc, isFound, here, other);
        return arith::MinSIOp::create(b, loc, here, args[2]);
      });
  if (isWide)
    return first;
  return createParallel(
      b, loc, keptType(x, loops.kept, b.getI64Type()), sizes, first,
      b.getMultiDimIdentityMap(int64_t(loops.kept.size())),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        return arith::ExtSIOp::create(b, loc, b.getI64Type(), args[0])
            .getResult();
      });
}

/// y[kept] = the first i at which x[kept, i] is the extremum, as i64
template <typename OpT, bool isMax> struct LowerArgExtremum : Lowering<OpT> {
  using Lowering<OpT>::Lowering;
  using typename Lowering<OpT>::Operands;

  FailureOr<Value> lower(OpT op, Operands operands, RankedTensorType type,
                         OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = operands.getX();
    Type element = tensorType(x).getElementType();
    int64_t rank = tensorType(x).getRank();
    auto axis = static_cast<int64_t>(op.getAxis());
    ReductionLoops loops(b, rank, axis);
    // Of short rows, rows lie across vectors, and are read once.
    constexpr int64_t longRow = 16;
    int64_t extent = tensorType(x).getDimSize(axis);
    if (axis == rank - 1 &&
        (ShapedType::isDynamic(extent) || extent >= longRow))
      return createReshape(b, loc, firstOfExtrema(b, loc, x, loops, isMax),
                           type);

    SmallVector<OpFoldResult> sizes = keptSizes(b, loc, x, loops.kept);
    auto filled = [&](TypedAttr value) {
      return filledTensor(b, loc, keptType(x, loops.kept, value.getType()),
                          sizes, value);
    };
    Value best = filled(worstElement(element, isMax));
    Value position = filled(b.getI64IntegerAttr(0));
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.back() = utils::IteratorType::reduction;
    auto generic = linalg::GenericOp::create(
        b, loc, TypeRange{best.getType(), position.getType()}, ValueRange{x},
        ValueRange{best, position},
        ArrayRef<AffineMap>{loops.operand, loops.result, loops.result},
        iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
          Value index = linalg::IndexOp::create(b, loc, rank - 1);
          Value here =
              arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
          Value isNew = isNewBest(b, loc, args[0], args[1], isMax);
          Value newBest =
              arith::SelectOp::create(b, loc, isNew, args[0], args[1]);
          Value newPosition =
              arith::SelectOp::create(b, loc, isNew, here, args[2]);
          linalg::YieldOp::create(b, loc, ValueRange{newBest, newPosition});
        });
    return createReshape(b, loc, generic.getResult(1), type);
  }
};

} // namespace

void populateReduce(const TypeConverter &converter,
                    RewritePatternSet &patterns) {
  patterns.add<LowerReduction, LowerArgExtremum<ktn::ArgmaxOp, true>,
               LowerArgExtremum<ktn::ArgminOp, false>>(converter,
                                                       patterns.getContext());
}

} // namespace keratin::lower
