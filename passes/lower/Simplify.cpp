//===- Simplify.cpp - scalars as scalars, unit axes in maps ---------------===//
#include "passes/lower/Lower.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace keratin::lower {

namespace {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// A scan keeps the shape of its states: the extent is that of the start.
struct DimOfLoopState : OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::DimOp op,
                                PatternRewriter &rewriter) const override {
    Value source = op.getSource();
    scf::ForOp loop = source.getDefiningOp<scf::ForOp>();
    unsigned carried = 0;
    if (loop) {
      carried = cast<OpResult>(source).getResultNumber();
    } else if (auto argument = dyn_cast<BlockArgument>(source)) {
      loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      carried = argument.getArgNumber() - 1;
    }
    if (!loop)
      return rewriter.notifyMatchFailure(op, "not carried by a loop");
    rewriter.modifyOpInPlace(
        op, [&] { op.getSourceMutable().assign(loop.getInitArgs()[carried]); });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// One element of a small computed tensor
//===----------------------------------------------------------------------===//

/// The indices of an extract when all are constants.
std::optional<SmallVector<int64_t>> constantIndices(tensor::ExtractOp op) {
  return getConstantIntValues(getAsOpFoldResult(op.getIndices()));
}

Value extractAt(OpBuilder &b, Location loc, Value tensor,
                ArrayRef<int64_t> position) {
  SmallVector<Value> indices;
  for (int64_t index : position)
    indices.push_back(arith::ConstantIndexOp::create(b, loc, index));
  return tensor::ExtractOp::create(b, loc, tensor, indices);
}

/// Shape arithmetic reads single elements of small integer tensors; they are
/// computed as scalars, so that sizes depend on sizes only.
struct ExtractOfGeneric : OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp op,
                                PatternRewriter &rewriter) const override {
    auto generic = op.getTensor().getDefiningOp<linalg::GenericOp>();
    std::optional<SmallVector<int64_t>> position = constantIndices(op);
    if (!generic || !position || isa<FloatType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "not shape arithmetic");

    // The loops that lead to the element: one turn of each that is parallel.
    unsigned result = cast<OpResult>(op.getTensor()).getResultNumber();
    AffineMap map =
        generic.getMatchingIndexingMap(generic.getDpsInitOperand(result));
    SmallVector<int64_t> extents = generic.getStaticLoopRanges();
    if (!map.isProjectedPermutation() ||
        llvm::any_of(extents, ShapedType::isDynamic))
      return rewriter.notifyMatchFailure(op, "loops of unknown extent");
    SmallVector<int64_t> turn(extents.size(), 0);
    int64_t turns = 1;
    for (auto [axis, loop, extent] :
         llvm::enumerate(generic.getIteratorTypesArray(), extents))
      if (loop == utils::IteratorType::reduction)
        turns *= extent;
      else if (auto at = map.getResultPosition(rewriter.getAffineDimExpr(axis)))
        turn[axis] = (*position)[*at];
    if (turns > maxTurns)
      return rewriter.notifyMatchFailure(op, "too many terms");

    rewriter.replaceOp(op, evaluate(generic, extents, turn, result, rewriter));
    return success();
  }

private:
  static constexpr int64_t maxTurns = 64;

  static Value evaluate(linalg::GenericOp generic, ArrayRef<int64_t> extents,
                        SmallVector<int64_t> turn, unsigned result,
                        OpBuilder &b) {
    SmallVector<unsigned> reductions;
    generic.getReductionDims(reductions);
    SmallVector<Value> state;
    for (OpOperand &init : generic.getDpsInitsMutable())
      state.push_back(elementAt(b, generic, &init, turn));
    int64_t turns = 1;
    for (unsigned loop : reductions)
      turns *= extents[loop];
    for (int64_t i = 0; i < turns; ++i) {
      int64_t rest = i;
      for (unsigned loop : llvm::reverse(reductions)) {
        turn[loop] = rest % extents[loop];
        rest /= extents[loop];
      }
      state = cloneBody(b, generic, turn, state);
    }
    return state[result];
  }

  static Value elementAt(OpBuilder &b, linalg::GenericOp generic,
                         OpOperand *operand, ArrayRef<int64_t> turn) {
    if (!isa<RankedTensorType>(operand->get().getType()))
      return operand->get();
    SmallVector<int64_t> position =
        generic.getMatchingIndexingMap(operand).compose(turn);
    return extractAt(b, generic.getLoc(), operand->get(), position);
  }

  static SmallVector<Value> cloneBody(OpBuilder &b, linalg::GenericOp generic,
                                      ArrayRef<int64_t> turn,
                                      ArrayRef<Value> state) {
    IRMapping mapping;
    Block *body = generic.getBody();
    unsigned inputs = generic.getNumDpsInputs();
    for (OpOperand *input : generic.getDpsInputOperands())
      mapping.map(body->getArgument(input->getOperandNumber()),
                  elementAt(b, generic, input, turn));
    mapping.map(body->getArguments().drop_front(inputs), state);
    for (Operation &inner : body->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(index.getResult(),
                    arith::ConstantIndexOp::create(b, index.getLoc(),
                                                   turn[index.getDim()]));
      else
        b.clone(inner, mapping);
    }
    SmallVector<Value> next;
    for (Value value : body->getTerminator()->getOperands())
      next.push_back(mapping.lookupOrDefault(value));
    return next;
  }
};

/// An element of a reshaped tensor of known shape.
template <typename ReshapeOp>
struct ExtractOfReshape : OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern<tensor::ExtractOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getTensor().getDefiningOp<ReshapeOp>();
    std::optional<SmallVector<int64_t>> position = constantIndices(op);
    if (!reshape || !position || !tensorType(op.getTensor()).hasStaticShape() ||
        !tensorType(reshape.getSrc()).hasStaticShape())
      return rewriter.notifyMatchFailure(op, "not of a reshape");
    int64_t offset = 0;
    for (auto [index, extent] :
         llvm::zip_equal(*position, tensorType(op.getTensor()).getShape())) {
      if (index < 0 || index >= extent)
        return rewriter.notifyMatchFailure(op, "no such element");
      offset = offset * extent + index;
    }
    ArrayRef<int64_t> shape = tensorType(reshape.getSrc()).getShape();
    SmallVector<int64_t> source(shape.size());
    for (int64_t axis = shape.size(); axis-- > 0; offset /= shape[axis])
      source[axis] = offset % shape[axis];
    rewriter.replaceOp(
        op, extractAt(rewriter, op.getLoc(), reshape.getSrc(), source));
    return success();
  }
};

/// An element of one of the parts.
struct ExtractOfConcat : OpRewritePattern<tensor::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExtractOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getTensor().getDefiningOp<tensor::ConcatOp>();
    std::optional<SmallVector<int64_t>> position = constantIndices(op);
    if (!concat || !position)
      return rewriter.notifyMatchFailure(op, "not of a concat");
    int64_t &index = (*position)[concat.getDim()];
    for (Value part : concat.getInputs()) {
      int64_t extent = tensorType(part).getDimSize(concat.getDim());
      if (ShapedType::isDynamic(extent))
        break;
      if (index < extent) {
        rewriter.replaceOp(op,
                           extractAt(rewriter, op.getLoc(), part, *position));
        return success();
      }
      index -= extent;
    }
    return rewriter.notifyMatchFailure(op, "parts of unknown extent");
  }
};

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Weights are reshaped by giving the same bytes another type.
template <typename ReshapeOp>
struct ReshapeOfResource : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto constant = op.getSrc().template getDefiningOp<arith::ConstantOp>();
    auto resource =
        constant ? dyn_cast<DenseResourceElementsAttr>(constant.getValue())
                 : DenseResourceElementsAttr();
    if (!resource)
      return rewriter.notifyMatchFailure(op, "not of a resource");
    auto type = cast<RankedTensorType>(op.getType());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, type,
        DenseResourceElementsAttr::get(type, resource.getRawHandle()));
    return success();
  }
};

/// For each group of axes the one that is not of extent 1, or the last; none
/// when a group has several.
std::optional<SmallVector<int64_t>>
mainAxes(RankedTensorType expanded,
         ArrayRef<ReassociationIndices> reassociation) {
  SmallVector<int64_t> axes;
  for (const ReassociationIndices &group : reassociation) {
    auto isLarge = [&](int64_t axis) { return expanded.getDimSize(axis) != 1; };
    if (llvm::count_if(group, isLarge) > 1)
      return std::nullopt;
    auto large = llvm::find_if(group, isLarge);
    axes.push_back(large == group.end() ? group.back() : *large);
  }
  return axes;
}

/// The value that `operand` is a view of when they differ by axes of extent 1
/// only, and the map to read it at.
std::optional<std::pair<Value, AffineMap>> withoutUnitView(Value operand,
                                                           AffineMap map) {
  MLIRContext *context = map.getContext();
  if (auto expand = operand.getDefiningOp<tensor::ExpandShapeOp>()) {
    auto axes =
        mainAxes(expand.getResultType(), expand.getReassociationIndices());
    if (!axes)
      return std::nullopt;
    SmallVector<AffineExpr> exprs;
    for (int64_t axis : *axes)
      exprs.push_back(map.getResult(axis));
    return {
        {expand.getSrc(), AffineMap::get(map.getNumDims(), 0, exprs, context)}};
  }
  if (auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>()) {
    auto axes =
        mainAxes(collapse.getSrcType(), collapse.getReassociationIndices());
    if (!axes)
      return std::nullopt;
    SmallVector<AffineExpr> exprs(collapse.getSrcType().getRank(),
                                  getAffineConstantExpr(0, context));
    for (auto [axis, expr] : llvm::zip_equal(*axes, map.getResults()))
      exprs[axis] = expr;
    return {{collapse.getSrc(),
             AffineMap::get(map.getNumDims(), 0, exprs, context)}};
  }
  return std::nullopt;
}

/// Loops read what an axis of extent 1 was added to or taken from directly.
struct FoldUnitViewIntoReader : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap &map = maps[input->getOperandNumber()];
      auto source = withoutUnitView(input->get(), map);
      // A reshaped constant is a constant of another type.
      if (!source || matchPattern(source->first, m_Constant()))
        continue;
      AffineMap old = std::exchange(map, source->second);
      // Every loop must keep an operand that tells its extent.
      if (!inversePermutation(concatAffineMaps(maps, rewriter.getContext()))) {
        map = old;
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] {
        input->set(source->first);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no unit axes to drop");
  }
};

/// A tensor of equal elements that are known is a scalar in the body. Products
/// keep their weights: what emits them looks for two operands.
struct FoldSplatIntoReader : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() != 0)
      return rewriter.notifyMatchFailure(op, "a reduction");
    for (OpOperand *input : op.getDpsInputOperands()) {
      unsigned number = input->getOperandNumber();
      BlockArgument element = op.getBody()->getArgument(number);
      SplatElementsAttr splat;
      if (element.use_empty() ||
          !matchPattern(input->get(), m_Constant(&splat)))
        continue;
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(op);
      Value scalar = arith::ConstantOp::create(
          rewriter, op.getLoc(), splat.getSplatValue<TypedAttr>());
      // What is unused now is dropped when the op is looked at again.
      rewriter.modifyOpInPlace(
          op, [&] { rewriter.replaceAllUsesWith(element, scalar); });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no splat is read");
  }
};

} // namespace

void populateSimplification(RewritePatternSet &patterns) {
  patterns
      .add<DimOfLoopState, ExtractOfConcat, ExtractOfGeneric,
           ExtractOfReshape<tensor::CollapseShapeOp>,
           ExtractOfReshape<tensor::ExpandShapeOp>, FoldSplatIntoReader,
           FoldUnitViewIntoReader, ReshapeOfResource<tensor::CollapseShapeOp>,
           ReshapeOfResource<tensor::ExpandShapeOp>>(patterns.getContext());
}

LogicalResult lowerSizes(Operation *op) {
  RewritePatternSet patterns(op->getContext());
  populateAffineToStdConversionPatterns(patterns);
  return applyPatternsGreedily(op, std::move(patterns));
}

} // namespace keratin::lower
