//===- Elementwise.cpp - ops that know their scalar form ------------------===//
#include "passes/lower/Lower.h"

using namespace mlir;

namespace keratin::lower {

namespace {

/// y[i] = f(a[i], b[i] ..), each operand broadcast to the result.
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
        operands, maps, [&](OpBuilder &b, Location, ValueRange args) {
          Value scalar = op.buildScalar(b, args);
          // What the producer promised of it, see ktn-expand-math.
          if (Attribute promise = op->getDiscardableAttr("ktn.flush"))
            scalar.getDefiningOp()->setAttr("ktn.flush", promise);
          return scalar;
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
