//===- Elementwise.cpp - ops that know their scalar form ------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// `scalar`, of 16 bits, as f32; others as they are.
Value widen(OpBuilder &b, Location loc, Value scalar) {
  Type type = scalar.getType();
  if (!type.isF16() && !type.isBF16())
    return scalar;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), scalar);
}

/// y[i] = f(a[i], b[i] ..), each operand broadcast to the result.
/// Floats of 16 bits are computed as f32, and rounded once.
struct LowerElementwise
    : OpInterfaceConversionPattern<ktn::ScalarBodyOpInterface> {
  using OpInterfaceConversionPattern::OpInterfaceConversionPattern;

  LogicalResult
  matchAndRewrite(ktn::ScalarBodyOpInterface op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op->getLoc();
    auto type = getTypeConverter()->convertType<RankedTensorType>(
        op->getResult(0).getType());
    SmallVector<AffineMap> maps;
    for (Value operand : operands)
      maps.push_back(broadcastMap(rewriter, tensorType(operand).getShape(),
                                  type.getShape()));
    Value result = createParallel(
        rewriter, loc, type, broadcastSizes(rewriter, loc, type, operands),
        operands, maps, [&](OpBuilder &b, Location, ValueRange args) -> Value {
          SmallVector<Value> scalars(args);
          if (!isa<ktn::CastOp>(op)) // between two types of 16 bits, too
            for (Value &scalar : scalars)
              scalar = widen(b, loc, scalar);
          Value scalar = op.buildScalar(b, scalars);
          // What the producer promised of it, see ktn-expand-math.
          if (Attribute promise = op->getDiscardableAttr("ktn.flush"))
            scalar.getDefiningOp()->setAttr("ktn.flush", promise);
          if (scalar.getType() == type.getElementType())
            return scalar;
          return arith::TruncFOp::create(b, loc, type.getElementType(), scalar);
        });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void populateElementwise(const TypeConverter &converter,
                         RewritePatternSet &patterns) {
  patterns.add<LowerElementwise>(converter, patterns.getContext());
}

} // namespace keratin::lower
