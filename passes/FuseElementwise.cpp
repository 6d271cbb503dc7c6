//===- FuseElementwise.cpp - chains of parallel loops become one ----------===//
#include "passes/KernelLimits.h"
#include "passes/OpKinds.h"
#include "passes/Passes.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/Passes.h.inc"

namespace {

bool isParallel(linalg::GenericOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

/// Whether `consumer` is the only op that reads elements of `value`. To ask for
/// a size reads none.
bool isOnlyReader(Value value, Operation *consumer) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == consumer || isa<tensor::DimOp>(user);
  });
}

/// Whether `op` costs so little that computing it again for every element along
/// a broadcast axis is cheaper than a buffer.
bool isCheap(linalg::GenericOp op) {
  constexpr int64_t mostOps = 3;
  auto ops = op.getBody()->without_terminator();
  return std::distance(ops.begin(), ops.end()) <= mostOps &&
         llvm::none_of(ops, [](Operation &inner) {
           return isa<math::MathDialect>(inner.getDialect()) ||
                  isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp,
                      arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(inner);
         });
}

/// Whether the loops of `consumer` read each element of `operand` once.
bool readsOnce(linalg::GenericOp consumer, OpOperand *operand) {
  return consumer.getMatchingIndexingMap(operand).isPermutation();
}

/// Whether `op` rounds what a root computes: that writes half as much then.
bool narrowsRoot(linalg::GenericOp op) {
  Value result = op.getBody()->getTerminator()->getOperand(0);
  return result.getDefiningOp<arith::TruncFOp>() &&
         llvm::any_of(op.getDpsInputs(), followsRoot);
}

/// Whether the two are small enough to become one.
bool fitTogether(linalg::GenericOp producer, linalg::GenericOp consumer) {
  return producer.getNumDpsInputs() + consumer.getNumDpsInputs() - 1 <=
             int64_t(mostInputs) &&
         countScalarOps(producer) + countScalarOps(consumer) <= mostScalarOps;
}

/// Whether `operand` is a number of each channel, the last axis of what its
/// reader makes, which all others repeat.
bool isOfChannels(OpOperand *operand) {
  auto reader = cast<linalg::GenericOp>(operand->getOwner());
  AffineMap map = reader.getMatchingIndexingMap(operand);
  unsigned last = reader.getNumLoops() - 1;
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim ? dim.getPosition() == last : isa<AffineConstantExpr>(expr);
  });
}

/// The tensor of which `op` makes one as large, element by element, with
/// numbers of each channel beside it.
Value soleSource(linalg::GenericOp op) {
  Value source;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (isOfChannels(operand) && op.getNumLoops() > 1)
      continue;
    if (source || !op.getMatchingIndexingMap(operand).isIdentity())
      return nullptr;
    source = operand->get();
  }
  return source;
}

/// Whether all readers of what `op` makes better compute it again: a function
/// of one element of a tensor that others read, too, and that is no larger, and
/// of numbers of its channel. A forward pass makes many of these only for the
/// gradients behind it.
bool isCheapToRepeat(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !isCheap(op) || op.hasIndexSemantics() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return false;
  Value from = soleSource(op), to = op->getResult(0);
  if (!from)
    return false;
  Type read = getElementTypeOrSelf(from), made = getElementTypeOrSelf(to);
  return read.isIntOrFloat() && made.isIntOrFloat() &&
         made.getIntOrFloatBitWidth() >= read.getIntOrFloatBitWidth() &&
         !isOnlyReader(from, op) &&
         llvm::all_of(to.getUses(), [](OpOperand &use) {
           auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
           return reader && reader.isDpsInput(&use) &&
                  (isParallel(reader) ? readsOnce(reader, &use)
                                      : reducesOuterAxes(reader, &use));
         });
}

/// Whether `operand` looks up what its reader adds to a root: one kernel of
/// both would have loops of its own, while what was looked up can be read as
/// the sums of the root are done.
bool isLookedUpForRoot(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto reader = cast<linalg::GenericOp>(operand->getOwner());
  return readsElsewhere(producer) &&
         llvm::any_of(reader.getDpsInputs(), [&](Value input) {
           return input != operand->get() && followsRoot(input);
         });
}

/// Whether `op` is a few sums, products and comparisons.
bool isArithmetic(linalg::GenericOp op) {
  constexpr int64_t mostOps = 6;
  auto ops = op.getBody()->without_terminator();
  return std::distance(ops.begin(), ops.end()) <= mostOps &&
         llvm::all_of(ops,
                      llvm::IsaPred<arith::AddFOp, arith::SubFOp, arith::MulFOp,
                                    arith::NegFOp, arith::MaximumFOp,
                                    arith::MinimumFOp, math::AbsFOp>);
}

/// Whether `operand` is made of pairs of elements, each of which many others
/// are made of, too, and all that its reader does is to reduce it: distances of
/// points to other points. Both have the loops of a product then.
bool isOfPairs(OpOperand *operand) {
  auto pairs = operand->get().getDefiningOp<linalg::GenericOp>();
  auto reader = cast<linalg::GenericOp>(operand->getOwner());
  AffineMap map = reader.getMatchingIndexingMap(operand);
  if (reader.getNumDpsInputs() != 1 || reader->getNumResults() != 1 ||
      kindOf(reader) != "reduce" || !map.isPermutation() ||
      !isElementwise(pairs.getOperation()) || !isArithmetic(pairs) ||
      pairs.hasIndexSemantics())
    return false;
  SmallVector<utils::IteratorType> kinds = reader.getIteratorTypesArray();
  SmallVector<int64_t> extents = reader.getStaticLoopRanges();
  // Loops of the result that an input of pairs goes along beside the reduction.
  SmallVector<llvm::SmallBitVector> ways;
  for (OpOperand *input : pairs.getDpsInputOperands()) {
    AffineMap read = pairs.getMatchingIndexingMap(input);
    llvm::SmallBitVector own(extents.size());
    bool isReduced = false, isWhole = true;
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim) {
      unsigned loop = map.getDimPosition(dim);
      bool isRead = read.isFunctionOfDim(dim);
      if (kinds[loop] == utils::IteratorType::reduction)
        isReduced |= isRead;
      else if (isRead)
        own.set(loop);
      else
        isWhole &= extents[loop] == 1;
    }
    if (isReduced && !isWhole && own.any())
      ways.push_back(own);
  }
  return llvm::any_of(ways, [&](const llvm::SmallBitVector &own) {
    return own != ways.front();
  });
}

bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer || !isParallel(producer))
    return false;
  if (!isParallel(consumer))
    return fitTogether(producer, consumer) &&
           ((reducesOuterAxes(consumer, operand) &&
             isCheapToRepeat(producer)) ||
            (isOnlyReader(operand->get(), consumer) && isOfPairs(operand)));
  return (isOnlyReader(operand->get(), consumer) ||
          isCheapToRepeat(producer)) &&
         !narrowsRoot(producer) && fitTogether(producer, consumer) &&
         !isLookedUpForRoot(operand) &&
         (readsOnce(consumer, operand) || isCheap(producer));
}

/// Whether `operand` is a view with fewer axes of what another parallel op
/// makes: with more loops its reader can be part of that op.
bool shouldExpand(OpOperand *operand) {
  auto reader = dyn_cast<linalg::GenericOp>(operand->getOwner());
  auto view = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  if (!reader || !view || !isParallel(reader) || !view->hasOneUse())
    return false;
  auto producer = view.getSrc().getDefiningOp<linalg::GenericOp>();
  return producer && isParallel(producer) &&
         isOnlyReader(view.getSrc(), view) && readsOnce(reader, operand);
}

/// The inputs of `op` whose producers become part of it. Those come first whose
/// producers have none themselves: of a sum of products an addition takes its
/// product before the sum so far, with which there may be no room for it.
SmallVector<OpOperand *> inputsToFuse(linalg::GenericOp op) {
  auto isFusable = [](OpOperand *input) {
    return linalg::areElementwiseOpsFusable(input) && shouldFuse(input);
  };
  SmallVector<OpOperand *> inputs, others;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!isFusable(input))
      continue;
    auto producer = input->get().getDefiningOp<linalg::GenericOp>();
    bool isFirst = llvm::none_of(producer.getDpsInputOperands(), isFusable);
    (isFirst ? inputs : others).push_back(input);
  }
  llvm::append_range(inputs, others);
  return inputs;
}

/// Upstream's rewrite alone: the patterns that go with it there also turn
/// weights that are all equal into scalars, and a product would be none.
struct FuseProducer : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand *input : inputsToFuse(op)) {
      Operation *producer = input->get().getDefiningOp();
      auto fused = linalg::fuseElementwiseOps(rewriter, input);
      if (failed(fused))
        continue;
      for (auto [old, replacement] : fused->replacements)
        rewriter.replaceUsesWithIf(old, replacement, [&](OpOperand &use) {
          return use.get().getDefiningOp() != producer;
        });
      rewriter.eraseOp(op);
      // What it reads may have one reader now: the new op, which comes next.
      if (isOpTriviallyDead(producer))
        rewriter.eraseOp(producer);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no producer to fuse");
  }
};

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<FuseProducer>(context);
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, shouldExpand);
    // Operands that are read at the same place twice are one.
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
    // A view of unset memory is unset memory, one of weights is weights, and
    // its size is that of an argument.
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, context);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    lower::populateSimplification(patterns);
    // It fails where there was more to do than the driver has rounds: what is
    // left apart is as right as what is joined.
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
    IRRewriter rewriter(context);
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};

} // namespace
} // namespace keratin
