//===- MergeAxes.cpp - axes of a product that lie side by side are one ----===//
//
//   y[t, h, d] = sum over k of x[t, k] * w[k, h, d]
//
// A projection to several heads has two axes of columns, and the one behind
// them sums over both. All that is read and written has them one behind the
// other: as one axis they are as many columns as a tile likes, and not the few
// of each head.
//
//===----------------------------------------------------------------------===//
#include "ir/FloatProducts.h"
#include "passes/Passes.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_MERGEAXES
#include "passes/Passes.h.inc"

namespace {

using Loops = ReassociationIndices;

/// The longest run of loops of one kind from `first` on whose extents are known
/// and which all tensors of `op` have side by side, or not at all; nothing
/// where that is one loop.
Loops runFrom(linalg::GenericOp op, unsigned first) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  Loops run;
  for (unsigned loop = first; loop < op.getNumLoops(); ++loop) {
    run.push_back(loop);
    if (kinds[loop] != kinds[first] || ShapedType::isDynamic(extents[loop]) ||
        !linalg::areDimSequencesPreserved(op.getIndexingMapsArray(), run)) {
      run.pop_back();
      break;
    }
  }
  return run.size() > 1 ? run : Loops();
}

/// A product and what is computed from its result element by element, with the
/// loops of each that become one.
struct Merge {
  linalg::GenericOp product, reader;
  SmallVector<Loops> ofProduct, ofReader;
};

/// The last axes of what `op` makes, which only one of its factors has.
Loops columnsOf(linalg::GenericOp op) {
  AffineMap made = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (made.getNumResults() == 0)
    return {};
  unsigned last = made.getDimPosition(made.getNumResults() - 1);
  for (unsigned axis : llvm::seq(made.getNumResults())) {
    Loops run = runFrom(op, made.getDimPosition(axis));
    if (run.empty() || run.back() != last)
      continue;
    bool haveBoth = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *in) {
      return op.getMatchingIndexingMap(in).isFunctionOfDim(last);
    });
    return haveBoth ? Loops() : run;
  }
  return {};
}

/// Whether nothing that reads the columns of `merge.product` loses its place in
/// the kernel of that: the one op that goes through them in parallel, if there
/// is any, has them side by side as well.
bool findReader(Merge &merge, const Loops &columns) {
  Value result = merge.product->getResult(0);
  OpOperand *read = nullptr;
  for (OpOperand &use : result.getUses()) {
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!reader || reader.getNumReductionLoops() != 0)
      continue;
    if (read || !reader.isDpsInput(&use))
      return false;
    read = &use;
  }
  if (!read)
    return true;
  auto reader = cast<linalg::GenericOp>(read->getOwner());
  AffineMap map = reader.getMatchingIndexingMap(read);
  if (!map.isProjectedPermutation() || reader.hasIndexSemantics())
    return false;
  Loops loops;
  for (unsigned axis = map.getNumResults() - columns.size();
       axis < map.getNumResults(); ++axis)
    loops.push_back(map.getDimPosition(axis));
  if (!linalg::areDimSequencesPreserved(reader.getIndexingMapsArray(), loops))
    return false;
  merge.reader = reader;
  merge.ofReader.push_back(loops);
  return true;
}

std::optional<Merge> findMerge(linalg::GenericOp op) {
  if (!isFloatProduct(op) || op->getNumResults() != 1 ||
      op.hasIndexSemantics() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  Merge merge = {op, {}, {}, {}};
  if (Loops columns = columnsOf(op);
      !columns.empty() && findReader(merge, columns))
    merge.ofProduct.push_back(columns);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  for (size_t next = 0; next < reductions.size();) {
    Loops run = runFrom(op, reductions[next]);
    if (!run.empty())
      merge.ofProduct.push_back(run);
    next += std::max<size_t>(run.size(), 1);
  }
  if (merge.ofProduct.empty())
    return std::nullopt;
  return merge;
}

void collapse(IRRewriter &rewriter, linalg::GenericOp op,
              ArrayRef<Loops> loops) {
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::CollapseResult> collapsed =
      linalg::collapseOpIterationDims(op, loops, rewriter);
  if (succeeded(collapsed))
    rewriter.replaceOp(op, collapsed->results);
}

struct MergeAxes : impl::MergeAxesBase<MergeAxes> {
  void runOnOperation() override {
    SmallVector<Merge> merges;
    getOperation().walk([&](linalg::GenericOp op) {
      if (std::optional<Merge> merge = findMerge(op))
        merges.push_back(std::move(*merge));
    });
    if (merges.empty())
      return;
    IRRewriter rewriter(&getContext());
    llvm::DenseSet<Operation *> readers;
    for (Merge &merge : merges) {
      // Who reads two of them goes through both as it goes through the first.
      bool isOwn = !merge.reader || readers.insert(merge.reader).second;
      collapse(rewriter, merge.product, merge.ofProduct);
      if (merge.reader && isOwn)
        collapse(rewriter, merge.reader, merge.ofReader);
    }
    // Views of views, of weights and of unset memory; sizes are those of what
    // is computed first, which nobody else has to read for that.
    RewritePatternSet patterns(&getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, &getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    linalg::FillOp::getCanonicalizationPatterns(patterns, &getContext());
    lower::populateSimplification(patterns);
    affine::AffineApplyOp::getCanonicalizationPatterns(patterns, &getContext());
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
    if (failed(lower::lowerSizes(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace keratin
