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

/// Whether `op` does nothing but add up elements, and where it does so for
/// neighbours side by side.
bool isSumOverOuterAxes(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      kindOf(op) != "reduce" || readsElsewhere(op) || !startsFromZero(op) ||
      op.hasIndexSemantics())
    return false;
  Block *body = op.getBody();
  auto sum =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || body->getOperations().size() != 2)
    return false;
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!read.isPermutation() || !written.isProjectedPermutation())
    return false;
  unsigned last = read.getDimPosition(read.getNumResults() - 1);
  return op.getIteratorTypesArray()[last] == utils::IteratorType::parallel;
}

/// The outermost axes whose elements are groups of their own: some, of which
/// each has much to add up, with few results in all.
SmallVector<unsigned> axesOfGroups(linalg::GenericOp op) {
  constexpr int64_t leastElements = 1 << 15, mostResults = 1 << 13,
                    enoughGroups = 8, fewestGroups = 4, leastOfGroup = 1 << 10;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  if (llvm::any_of(extents, ShapedType::isDynamic))
    return {};
  int64_t elements = 1, results = 1, groups = 1;
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  SmallVector<unsigned> summed;
  for (unsigned position = 0; position < read.getNumResults(); ++position) {
    unsigned loop = read.getDimPosition(position);
    elements *= extents[loop];
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel)
      results *= extents[loop];
    else
      summed.push_back(loop);
  }
  SmallVector<unsigned> chosen;
  for (unsigned loop : summed) {
    if (groups >= enoughGroups)
      break;
    groups *= extents[loop];
    chosen.push_back(loop);
  }
  bool fits = elements >= leastElements && groups >= fewestGroups &&
              groups * results <= mostResults &&
              elements / groups >= leastOfGroup &&
              chosen.size() < summed.size();
  return fits ? chosen : SmallVector<unsigned>();
}

class Split {
public:
  Split(linalg::GenericOp op, ArrayRef<unsigned> groups)
      : op(op), b(op), groups(groups) {}

  void run();

private:
  Value addUp(Value x, AffineMap read, ArrayRef<unsigned> kept, Value start);
  Value zeros(ArrayRef<int64_t> shape);

  linalg::GenericOp op;
  OpBuilder b;
  ArrayRef<unsigned> groups;
};

Value Split::zeros(ArrayRef<int64_t> shape) {
  Type element = getElementTypeOrSelf(op.getResult(0));
  Value zero =
      arith::ConstantOp::create(b, op.getLoc(), b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(b, op.getLoc(), shape, element);
  return linalg::FillOp::create(b, op.getLoc(), zero, empty).getResult(0);
}

/// The sum of `x`, which the loops read as `read` says, over all of these but
/// `kept`, which are in the order of the result's axes.
Value Split::addUp(Value x, AffineMap read, ArrayRef<unsigned> kept,
                   Value start) {
  // Loops of results come first.
  SmallVector<unsigned> loops(kept);
  for (unsigned loop = 0; loop < read.getNumDims(); ++loop)
    if (!llvm::is_contained(kept, loop) && read.isFunctionOfDim(loop))
      loops.push_back(loop);
  SmallVector<AffineExpr> places(read.getNumDims(), b.getAffineConstantExpr(0)),
      results;
  for (auto [number, loop] : llvm::enumerate(loops))
    places[loop] = b.getAffineDimExpr(unsigned(number));
  for (unsigned number = 0; number < kept.size(); ++number)
    results.push_back(b.getAffineDimExpr(number));
  auto count = unsigned(loops.size());
  SmallVector<utils::IteratorType> kinds(count, utils::IteratorType::reduction);
  std::fill_n(kinds.begin(), kept.size(), utils::IteratorType::parallel);
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), start.getType(), x, start,
      ArrayRef{read.replaceDimsAndSymbols(places, {}, count, 0),
               AffineMap::get(count, 0, results, b.getContext())},
      kinds, [](OpBuilder &b, Location loc, ValueRange elements) {
        Value sum = arith::AddFOp::create(b, loc, elements[0], elements[1]);
        linalg::YieldOp::create(b, loc, sum);
      });
  return made->getResult(0);
}

void Split::run() {
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<unsigned> kept(groups);
  for (unsigned position = 0; position < written.getNumResults(); ++position)
    kept.push_back(written.getDimPosition(position));
  for (unsigned loop : kept)
    shape.push_back(extents[loop]);
  Value parts = addUp(op.getDpsInputs()[0], read, kept, zeros(shape));
  // Of the parts, axis by axis.
  auto rank = unsigned(kept.size());
  SmallVector<unsigned> rest;
  for (unsigned axis = unsigned(groups.size()); axis < rank; ++axis)
    rest.push_back(axis);
  Value sum =
      addUp(parts, b.getMultiDimIdentityMap(rank), rest, op.getDpsInits()[0]);
  op->getResult(0).replaceAllUsesWith(sum);
  op.erase();
}

struct SplitSums : impl::SplitSumsBase<SplitSums> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> sums;
    getOperation().walk([&](linalg::GenericOp op) { sums.push_back(op); });
    for (linalg::GenericOp op : sums) {
      if (!isSumOverOuterAxes(op))
        continue;
      SmallVector<unsigned> groups = axesOfGroups(op);
      if (!groups.empty())
        Split(op, groups).run();
    }
  }
};

} // namespace
} // namespace keratin
