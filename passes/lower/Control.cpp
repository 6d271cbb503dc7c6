//===- Control.cpp - constants and scans ----------------------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace keratin::lower {

namespace {

struct LowerConstant : OpConversionPattern<ktn::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ktn::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    TypedAttr value = retype(op.getValue(), type);
    if (!value)
      return op.emitOpError("value is neither dense nor a dense resource");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, type, value);
    return success();
  }

private:
  /// The same bytes with the element type that `arith` knows.
  static TypedAttr retype(ElementsAttr value, RankedTensorType type) {
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
      return DenseResourceElementsAttr::get(type, resource.getRawHandle());
    auto dense = dyn_cast<DenseElementsAttr>(value);
    if (!dense || dense.getType() == type)
      return dense;
    return dense.bitcast(type.getElementType());
  }
};

/// A loop over the steps that carries the states and the stacked outputs.
struct LowerScan : OpConversionPattern<ktn::ScanOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ktn::ScanOp op, OpAdaptor operands,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    OpFoldResult steps =
        operands.getXs().empty()
            ? OpFoldResult(rewriter.getIndexAttr(op.getLength().value_or(0)))
            : sizeOf(rewriter, loc, operands.getXs()[0], 0);
    Value count = getValueOrCreateConstantIndexOp(rewriter, loc, steps);

    SmallVector<Value> carried(operands.getInit());
    llvm::append_range(carried, emptyStacks(op, operands, steps, rewriter));
    auto loop = scf::ForOp::create(rewriter, loc, zero, count, one, carried);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    if (op.getReverse()) {
      Value last = arith::SubIOp::create(rewriter, loc, count, one);
      step = arith::SubIOp::create(rewriter, loc, last, step);
    }
    fillBody(op, operands.getXs(), loop, step, rewriter);
    rewriter.replaceOp(op, loop.getResults());
    return success();
  }

private:
  /// An unset tensor for each output. Extents that are known at run time only
  /// are those of a copy of the first step, which nobody else uses: what is
  /// computed in the loop cannot be asked before it.
  static SmallVector<Value> emptyStacks(ktn::ScanOp op, OpAdaptor operands,
                                        OpFoldResult steps, OpBuilder &b) {
    Location loc = op.getLoc();
    IRMapping firstStep;
    bool needsCopy = llvm::any_of(op.getYieldedOutputs(), [](Value output) {
      return !tensorType(output).hasStaticShape();
    });
    if (needsCopy) {
      for (auto [x, operand] :
           llvm::zip_equal(op->getOperands(), operands.getOperands()))
        firstStep.map(x, operand);
      copyFirstStep(op, firstStep, b);
    }
    SmallVector<Value> stacks;
    for (auto [output, stack] :
         llvm::zip_equal(op.getYieldedOutputs(), op.getStackedOutputs())) {
      SmallVector<OpFoldResult> sizes = {steps};
      llvm::append_range(sizes,
                         sizesOf(b, loc, firstStep.lookupOrDefault(output)));
      stacks.push_back(
          emptyTensor(b, loc, cast<RankedTensorType>(stack.getType()), sizes));
    }
    return stacks;
  }

  /// Maps the values of the body to copies of those of the first step. A loop
  /// in it is copied for the shapes of its results only.
  static void copyFirstStep(ktn::ScanOp op, IRMapping &copies, OpBuilder &b) {
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (auto [slice, x] : llvm::zip_equal(op.getSlices(), op.getXs()))
      copies.map(slice, sliceAt(b, loc, copies.lookupOrDefault(x), zero));
    for (auto [state, init] : llvm::zip_equal(op.getStates(), op.getInit()))
      copies.map(state, copies.lookupOrDefault(init));
    for (Operation &inner : op.getBody().front().without_terminator()) {
      auto loop = dyn_cast<ktn::ScanOp>(inner);
      if (!loop) {
        b.clone(inner, copies);
        continue;
      }
      copyFirstStep(loop, copies, b);
      for (auto [state, init] :
           llvm::zip_equal(loop.getFinalStates(), loop.getInit()))
        copies.map(state, copies.lookupOrDefault(init));
      OpFoldResult steps =
          loop.getXs().empty()
              ? OpFoldResult(b.getIndexAttr(loop.getLength().value_or(0)))
              : sizeOf(b, loc, copies.lookupOrDefault(loop.getXs()[0]), 0);
      for (auto [stack, output] : llvm::zip_equal(loop.getStackedOutputs(),
                                                  loop.getYieldedOutputs())) {
        SmallVector<OpFoldResult> sizes = {steps};
        llvm::append_range(sizes,
                           sizesOf(b, loc, copies.lookupOrDefault(output)));
        copies.map(stack,
                   emptyTensor(b, loc, cast<RankedTensorType>(stack.getType()),
                               sizes));
      }
    }
  }

  static void fillBody(ktn::ScanOp op, ValueRange xs, scf::ForOp loop,
                       Value step, ConversionPatternRewriter &rewriter) {
    Location loc = op.getLoc();
    SmallVector<Value> arguments;
    for (Value x : xs)
      arguments.push_back(sliceAt(rewriter, loc, x, step));
    size_t states = op.getInit().size();
    llvm::append_range(arguments, loop.getRegionIterArgs().take_front(states));
    Block *body = loop.getBody();
    if (body->mightHaveTerminator())
      rewriter.eraseOp(body->getTerminator());
    rewriter.inlineBlockBefore(&op.getBody().front(), body, body->end(),
                               arguments);

    Operation *yield = &body->back();
    rewriter.setInsertionPoint(yield);
    SmallVector<Value> next(yield->getOperands());
    for (auto [value, stack] :
         llvm::zip_equal(MutableArrayRef(next).drop_front(states),
                         loop.getRegionIterArgs().drop_front(states)))
      value = insertAt(rewriter, loc, value, stack, step);
    rewriter.replaceOpWithNewOp<scf::YieldOp>(yield, next);
  }

  static Value sliceAt(OpBuilder &b, Location loc, Value x, Value step) {
    RankedTensorType type = tensorType(x);
    auto sliceType = RankedTensorType::get(type.getShape().drop_front(),
                                           type.getElementType());
    auto [offsets, sizes, strides] = stepRange(b, loc, x, step);
    return tensor::ExtractSliceOp::create(b, loc, sliceType, x, offsets, sizes,
                                          strides);
  }

  static Value insertAt(OpBuilder &b, Location loc, Value value, Value stack,
                        Value step) {
    auto [offsets, sizes, strides] = stepRange(b, loc, stack, step);
    return tensor::InsertSliceOp::create(b, loc, value, stack, offsets, sizes,
                                         strides);
  }

  static std::tuple<SmallVector<OpFoldResult>, SmallVector<OpFoldResult>,
                    SmallVector<OpFoldResult>>
  stepRange(OpBuilder &b, Location loc, Value x, Value step) {
    int64_t rank = tensorType(x).getRank();
    SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
    SmallVector<OpFoldResult> sizes = sizesOf(b, loc, x);
    SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
    offsets[0] = step;
    sizes[0] = b.getIndexAttr(1);
    return {offsets, sizes, strides};
  }
};

} // namespace

void populateControl(const TypeConverter &converter,
                     RewritePatternSet &patterns) {
  patterns.add<LowerConstant, LowerScan>(converter, patterns.getContext());
}

} // namespace keratin::lower
