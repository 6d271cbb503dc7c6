//===- LowerToLinalg.cpp - ktn to linalg on tensors -----------------------===//
#include "passes/Passes.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_LOWERTOLINALG
#include "passes/Passes.h.inc"

namespace {

/// linalg has no unsigned integers: the ops on them say so, not their type.
struct SignlessTypes : TypeConverter {
  SignlessTypes() {
    addConversion([](Type type) { return type; });
    addConversion([](RankedTensorType type) -> Type {
      Type element = type.getElementType();
      if (!element.isUnsignedInteger())
        return type;
      return type.clone(
          IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth()));
    });
    auto cast = [](OpBuilder &b, Type type, ValueRange inputs, Location loc) {
      return UnrealizedConversionCastOp::create(b, loc, type, inputs)
          .getResult(0);
    };
    addSourceMaterialization(cast);
    addTargetMaterialization(cast);
  }
};

/// Leaves `ktn.unsigned` where a type of the signature stops saying it.
void markUnsigned(func::FuncOp function) {
  auto isUnsigned = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isUnsignedInteger();
  };
  auto mark = UnitAttr::get(function.getContext());
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isUnsigned(type))
      function.setArgAttr(index, "ktn.unsigned", mark);
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isUnsigned(type))
      function.setResultAttr(index, "ktn.unsigned", mark);
}

struct LowerToLinalg : impl::LowerToLinalgBase<LowerToLinalg> {
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    // Sizes of views and pads are asked through this interface.
    tensor::registerInferTypeOpInterfaceExternalModels(registry);
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      markUnsigned(function);
    if (failed(convert()))
      return signalPassFailure();
    simplify();
    if (failed(lowerSizes()))
      return signalPassFailure();
  }

private:
  LogicalResult convert() {
    SignlessTypes types;
    RewritePatternSet patterns(&getContext());
    lower::populateControl(types, patterns);
    lower::populateElementwise(types, patterns);
    lower::populateIndex(types, patterns);
    lower::populateLinear(types, patterns);
    lower::populateNn(types, patterns);
    lower::populateRandom(types, patterns);
    lower::populateReduce(types, patterns);
    lower::populateShape(types, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   types);
    populateReturnOpTypeConversionPattern(patterns, types);

    ConversionTarget target(getContext());
    target.addIllegalDialect<ktn::KtnDialect>();
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp function) {
      return types.isSignatureLegal(function.getFunctionType());
    });
    target.addDynamicallyLegalOp<func::ReturnOp>(
        [&](Operation *op) { return types.isLegal(op->getOperandTypes()); });
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }

  /// Sizes become sizes of arguments, views of unit axes disappear.
  void simplify() {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    lower::populateSimplification(patterns);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    memref::populateResolveShapedTypeResultDimsPatterns(patterns);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      op.getCanonicalizationPatterns(patterns, context);
    // To stop before all is simple is no failure.
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }

  /// Sizes become plain arithmetic, equal values become one.
  LogicalResult lowerSizes() {
    if (failed(lower::lowerSizes(getOperation())))
      return failure();
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    return success();
  }
};

} // namespace
} // namespace keratin
