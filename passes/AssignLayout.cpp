//===- AssignLayout.cpp - every image op reads channels last --------------===//
#include "passes/Passes.h"
#include "passes/Rebuild.h"

#include "ir/Ktn.h"
#include "ir/Permutation.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_ASSIGNLAYOUT
#include "passes/Passes.h.inc"

namespace {

using Permutation = SmallVector<int64_t>;

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Takes channels_first to channels_last.
Permutation channelsToEnd(int64_t rank) {
  Permutation permutation = {0};
  for (int64_t axis = 2; axis < rank; ++axis)
    permutation.push_back(axis);
  permutation.push_back(1);
  return permutation;
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  return llvm::equal(permutation, llvm::seq<int64_t>(permutation.size()));
}

Value transpose(OpBuilder &b, Location loc, Value x,
                ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return x;
  return ktn::TransposeOp::create(b, loc, x, permutation);
}

/// On transposes into channels_last, for the time of the pass: they stay where
/// they are while those out of channels_last sink. With three axes the two have
/// the same permutation, and would chase each other.
constexpr llvm::StringLiteral inwardName = "ktn.inward";

Value transposeInward(OpBuilder &b, Location loc, Value x,
                      ArrayRef<int64_t> permutation) {
  Value result = transpose(b, loc, x, permutation);
  if (result != x)
    result.getDefiningOp()->setAttr(inwardName, b.getUnitAttr());
  return result;
}

//===----------------------------------------------------------------------===//
// Layout ops
//===----------------------------------------------------------------------===//

/// `op` reads and writes channels last, between two transposes.
void convertToChannelsLast(ktn::LayoutOpInterface op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto type = tensorType(op->getResult(0));
  Permutation toLast = channelsToEnd(type.getRank());
  op->setOperand(0, transposeInward(b, loc, op->getOperand(0), toLast));
  op.markChannelsLast();
  SmallVector<int64_t> shape;
  for (int64_t axis : toLast)
    shape.push_back(type.getDimSize(axis));
  op->getResult(0).setType(type.clone(shape));

  b.setInsertionPointAfter(op);
  Value restored = transpose(b, loc, op->getResult(0), ktn::inverseOf(toLast));
  op->getResult(0).replaceAllUsesExcept(restored, restored.getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Transposes sink
//===----------------------------------------------------------------------===//

/// A transpose whose result an op with an interface reads moves behind the op,
/// towards another that it cancels with.
template <typename Interface> class SinkPattern : public RewritePattern {
public:
  explicit SinkPattern(MLIRContext *context)
      : RewritePattern(MatchInterfaceOpTypeTag(), Interface::getInterfaceID(),
                       /*benefit=*/1, context) {}

protected:
  /// The permutation of the transpose that produces `value`, if one does.
  static std::optional<Permutation> permutationOf(Value value) {
    auto producer = value.getDefiningOp<ktn::TransposeOp>();
    if (!producer)
      return std::nullopt;
    return llvm::to_vector(producer.getPermutation());
  }
};

/// f(transpose(a), transpose(b)) = transpose(f(a, b)). An operand that is not
/// transposed gets the inverse if that is cheap, or if the transpose is on the
/// way out of channels_last.
struct SinkThroughElementwise : SinkPattern<ktn::ScalarBodyOpInterface> {
  using SinkPattern::SinkPattern;

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    int64_t rank = tensorType(op->getResult(0)).getRank();
    std::optional<Permutation> permutation;
    bool isOutward = false;
    for (Value operand : op->getOperands()) {
      auto found = permutationOf(operand);
      if (!found || static_cast<int64_t>(found->size()) != rank)
        continue;
      bool isInward = operand.getDefiningOp()->hasAttr(inwardName);
      if (permutation && isInward)
        continue;
      permutation = found;
      isOutward = !isInward && rank > 2 &&
                  *permutation == ktn::inverseOf(channelsToEnd(rank));
      if (!isInward)
        break;
    }
    if (!permutation)
      return rewriter.notifyMatchFailure(op, "no transposed operand");

    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (permutationOf(operand) == permutation)
        operands.push_back(operand.getDefiningOp<ktn::TransposeOp>().getX());
      else if (isCheapToTranspose(operand) || isOutward)
        operands.push_back(
            untransposed(rewriter, op->getLoc(), operand, *permutation));
      else
        return rewriter.notifyMatchFailure(op, "not all are transposed");
    }
    FailureOr<Operation *> moved = rebuild(rewriter, op, operands);
    if (failed(moved))
      return rewriter.notifyMatchFailure(op, "cannot be rebuilt");
    rewriter.replaceOp(op, transpose(rewriter, op->getLoc(),
                                     (*moved)->getResult(0), *permutation));
    return success();
  }

private:
  static bool isCheapToTranspose(Value value) {
    auto isLarge = [](int64_t extent) { return extent != 1; };
    return matchPattern(value, m_Constant()) ||
           llvm::count_if(tensorType(value).getShape(), isLarge) <= 1;
  }

  /// `value`, aligned at the right of the result, in the order before the
  /// transpose.
  static Value untransposed(OpBuilder &b, Location loc, Value value,
                            ArrayRef<int64_t> permutation) {
    RankedTensorType type = tensorType(value);
    if (llvm::all_of(type.getShape(), [](int64_t n) { return n == 1; }))
      return value;
    int64_t missing = permutation.size() - type.getRank();
    if (missing > 0)
      value = ktn::ExpandDimsOp::create(
          b, loc, value, llvm::to_vector(llvm::seq<int64_t>(missing)));
    return transposeInward(b, loc, value, ktn::inverseOf(permutation));
  }
};

/// Every operand is transposed alike.
struct SinkThroughTransposable : SinkPattern<ktn::TransposableOpInterface> {
  using SinkPattern::SinkPattern;

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    std::optional<Permutation> permutation;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      std::optional<Permutation> found = permutationOf(operand);
      if (!found || (permutation && *permutation != *found))
        return rewriter.notifyMatchFailure(op, "not all are transposed alike");
      permutation = found;
      operands.push_back(operand.getDefiningOp<ktn::TransposeOp>().getX());
    }
    if (!permutation)
      return rewriter.notifyMatchFailure(op, "no operands");
    Value moved = cast<ktn::TransposableOpInterface>(op).buildUntransposed(
        rewriter, operands, *permutation);
    rewriter.replaceOp(op,
                       transpose(rewriter, op->getLoc(), moved, *permutation));
    return success();
  }
};

/// transpose(transpose(x)) is one transpose, or none.
struct ComposeTransposes : OpRewritePattern<ktn::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ktn::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ktn::TransposeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is not transposed");
    Permutation composed;
    for (int64_t axis : op.getPermutation())
      composed.push_back(inner.getPermutation()[axis]);
    rewriter.replaceOp(
        op, transpose(rewriter, op.getLoc(), inner.getX(), composed));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// What is left
//===----------------------------------------------------------------------===//

/// A transpose that leaves the order of the axes other than of extent 1 moves
/// no element.
struct TransposeToReshape : OpRewritePattern<ktn::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ktn::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<int64_t> moved;
    for (int64_t axis : op.getPermutation())
      if (tensorType(op.getX()).getDimSize(axis) != 1)
        moved.push_back(axis);
    ArrayRef<int64_t> target = op.getType().getShape();
    if (!llvm::is_sorted(moved) ||
        llvm::count_if(target, ShapedType::isDynamic) > 1)
      return rewriter.notifyMatchFailure(op, "moves elements");
    rewriter.replaceOpWithNewOp<ktn::ReshapeOp>(op, op.getX(), target);
    return success();
  }
};

struct AssignLayout : impl::AssignLayoutBase<AssignLayout> {
  void runOnOperation() override {
    bool changed = false;
    getOperation().walk([&](ktn::LayoutOpInterface op) {
      if (!op.isChannelsFirst())
        return;
      convertToChannelsLast(op);
      changed = true;
    });
    if (!changed)
      return;
    sinkTransposes();
    getOperation().walk(
        [](ktn::TransposeOp op) { op->removeAttr(inwardName); });
    simplifyRest();
    // An image that two ops read was transposed twice.
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }

private:
  // Both fail where there was more to do than the driver has rounds: then
  // transposes are left, which cost time and nothing else.
  void sinkTransposes() {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<ComposeTransposes, SinkThroughElementwise,
                 SinkThroughTransposable>(context);
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }

  void simplifyRest() {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<TransposeToReshape>(context);
    ktn::ReshapeOp::getCanonicalizationPatterns(patterns, context);
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace keratin
