//===- SplitSums.cpp - long sums with few results, in two steps -----------===//
//
//   y[c] = sum over n, h, w of x[n, h, w, c]
//
// becomes
//
//   z[n, c] = sum over h, w of x[n, h, w, c]
//   y[c]    = sum over n of z[n, c]
//
// The first sum has something that threads share, and its groups, which follow
// from the shapes, are the same for any number of them.
//
//===----------------------------------------------------------------------===//
#include "ir/FloatProducts.h"
#include "passes/OpKinds.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_SPLITSUMS
#include "passes/Passes.h.inc"

namespace {

/// What `op` reduces over outer axes; null where there is no such tensor.
OpOperand *wholeInput(linalg::GenericOp op) {
  for (OpOperand *operand : op.getDpsInputOperands())
    if (reducesOuterAxes(op, operand))
      return operand;
  return nullptr;
}

/// Whether `op` only adds up functions of elements, over outer axes.
bool isSumOverOuterAxes(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !wholeInput(op) || readsElsewhere(op) ||
      !startsFromZero(op) || op.hasIndexSemantics() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
        return map.isProjectedPermutation(/*allowZeroInResults=*/true);
      }))
    return false;
  Block *body = op.getBody();
  BlockArgument before = body->getArguments().back();
  auto sum =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return sum && before.hasOneUse() &&
         llvm::is_contained(sum->getOperands(), before) &&
         written.isProjectedPermutation();
}

/// The outermost axes whose elements are groups of their own: some, of which
/// each has much to add up, with few results in all.
SmallVector<unsigned> axesOfGroups(linalg::GenericOp op) {
  constexpr double leastElements = 1 << 15, mostResults = 1 << 13,
                   enoughGroups = 8, fewestGroups = 4, leastOfGroup = 1 << 10;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (llvm::any_of(extents, ShapedType::isDynamic))
    return {};
  double elements = 1, results = 1, groups = 1; // which do not overflow
  AffineMap read = op.getMatchingIndexingMap(wholeInput(op));
  SmallVector<unsigned> summed;
  for (unsigned position = 0; position < read.getNumResults(); ++position) {
    unsigned loop = read.getDimPosition(position);
    elements *= double(extents[loop]);
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel)
      results *= double(extents[loop]);
    else
      summed.push_back(loop);
  }
  SmallVector<unsigned> chosen;
  for (unsigned loop : summed) {
    if (groups >= enoughGroups)
      break;
    groups *= double(extents[loop]);
    chosen.push_back(loop);
  }
  bool fits = elements >= leastElements && groups >= fewestGroups &&
              groups * results <= mostResults &&
              elements / groups >= leastOfGroup &&
              chosen.size() < summed.size();
  return fits ? chosen : SmallVector<unsigned>();
}

/// The map of a reader whose loop number `loops[i]` has become its i-th.
AffineMap withLoops(AffineMap map, ArrayRef<unsigned> loops) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> places(map.getNumDims(),
                                 getAffineConstantExpr(0, context));
  for (auto [number, loop] : llvm::enumerate(loops))
    places[loop] = getAffineDimExpr(unsigned(number), context);
  return map.replaceDimsAndSymbols(places, {}, unsigned(loops.size()), 0);
}

/// `results` parallel loops, then reductions.
SmallVector<utils::IteratorType> kindsOfLoops(size_t results, size_t loops) {
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::reduction);
  std::fill_n(kinds.begin(), results, utils::IteratorType::parallel);
  return kinds;
}

/// The sums of `op` of each of its groups: those are the first axes.
Value sumGroups(OpBuilder &b, linalg::GenericOp op, ArrayRef<unsigned> groups) {
  Location loc = op.getLoc();
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<unsigned> loops(groups);
  for (unsigned position = 0; position < written.getNumResults(); ++position)
    loops.push_back(written.getDimPosition(position));
  for (unsigned loop : loops)
    shape.push_back(extents[loop]);
  auto rank = unsigned(loops.size());
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!llvm::is_contained(loops, loop))
      loops.push_back(loop);
  Type element = getElementTypeOrSelf(op.getResult(0));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  Value start = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands())
    maps.push_back(withLoops(op.getMatchingIndexingMap(operand), loops));
  maps.push_back(
      AffineMap::getMultiDimIdentityMap(unsigned(loops.size()), b.getContext())
          .getMajorSubMap(rank));
  auto sums =
      linalg::GenericOp::create(b, loc, start.getType(), op.getDpsInputs(),
                                start, maps, kindsOfLoops(rank, loops.size()));
  IRMapping mapping;
  op.getRegion().cloneInto(&sums.getRegion(), sums.getRegion().begin(),
                           mapping);
  return sums->getResult(0);
}

/// The sum of `x` over its first axes, of which there are `summed`.
Value addUp(OpBuilder &b, linalg::GenericOp op, Value x, size_t summed) {
  auto rank = unsigned(cast<RankedTensorType>(x.getType()).getRank());
  // Loops of results come first.
  SmallVector<unsigned> loops;
  for (unsigned axis = 0; axis < rank; ++axis)
    loops.push_back(unsigned((axis + summed) % rank));
  size_t results = rank - summed;
  AffineMap all = b.getMultiDimIdentityMap(rank);
  Value start = op.getDpsInits()[0];
  auto sum = linalg::GenericOp::create(
      b, op.getLoc(), start.getType(), x, start,
      ArrayRef{withLoops(all, loops), all.getMajorSubMap(unsigned(results))},
      kindsOfLoops(results, rank),
      [](OpBuilder &b, Location loc, ValueRange elements) {
        Value sum = arith::AddFOp::create(b, loc, elements[0], elements[1]);
        linalg::YieldOp::create(b, loc, sum);
      });
  return sum->getResult(0);
}

struct SplitSums : impl::SplitSumsBase<SplitSums> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> sums;
    getOperation().walk([&](linalg::GenericOp op) { sums.push_back(op); });
    for (linalg::GenericOp op : sums) {
      if (!isSumOverOuterAxes(op))
        continue;
      SmallVector<unsigned> groups = axesOfGroups(op);
      if (groups.empty())
        continue;
      OpBuilder b(op);
      Value parts = sumGroups(b, op, groups);
      op->getResult(0).replaceAllUsesWith(addUp(b, op, parts, groups.size()));
      op.erase();
    }
  }
};

} // namespace
} // namespace keratin
