//===- FoldLookups.cpp - products of rows of a table become its rows ------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FOLDLOOKUPS
#include "passes/Passes.h.inc"

namespace {

/// A known matrix of f32.
bool isKnownMatrix(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 && type.hasStaticShape() &&
         type.getElementType().isF32() && matchPattern(value, m_Constant());
}

/// `op`, if it looks up rows of a known matrix.
ktn::LookupOpInterface lookupOf(Operation *op) {
  auto lookup = dyn_cast_if_present<ktn::LookupOpInterface>(op);
  bool isKnown =
      lookup && lookup.looksUpRows() && isKnownMatrix(lookup->getOperand(0));
  return isKnown ? lookup : nullptr;
}

/// `op`, if it multiplies rows by a known matrix, or the like.
ktn::RowwiseOpInterface productOf(Operation *op) {
  auto product = dyn_cast<ktn::RowwiseOpInterface>(op);
  bool isKnown = product && product.isRowwise() &&
                 product->getNumOperands() == 2 &&
                 isKnownMatrix(product->getOperand(1));
  return isKnown ? product : nullptr;
}

/// What leads from a slice of a loop to a lookup in front of it, a step of
/// which is the slice: ops from the last one on, the lookup among them, and the
/// axes of their results that the steps are entries of.
using StepsOfLookup = SmallVector<std::pair<ktn::StepwiseOpInterface, int64_t>>;

/// Nothing where a step is no lookup of the indices of that step, or is read by
/// more than products: those would have to be left in the loop.
StepsOfLookup lookupBehind(BlockArgument slice) {
  auto scan = dyn_cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  if (!scan || !llvm::is_contained(scan.getSlices(), slice) ||
      !llvm::all_of(slice.getUsers(), [&](Operation *user) {
        return productOf(user) && user->getOperand(0) == slice;
      }))
    return {};
  StepsOfLookup steps;
  Value stack = scan.getXs()[slice.getArgNumber()];
  int64_t axis = 0; // of the stack, along which the steps are
  while (auto op = stack.getDefiningOp<ktn::StepwiseOpInterface>()) {
    auto source = op.getStepSource(axis);
    if (!source)
      return {};
    steps.emplace_back(op, axis);
    if (lookupOf(op))
      return steps;
    stack = op->getOperand(source->first);
    axis = source->second;
  }
  return {};
}

class LookupFolder {
public:
  LookupFolder(func::FuncOp function, int64_t mostBytes)
      : function(function), bytesLeft(mostBytes) {}

  void run(ktn::RowwiseOpInterface product);

private:
  bool pays(Value matrix, Value weights);
  ktn::LookupOpInterface sink(BlockArgument slice, StepsOfLookup steps);

  func::FuncOp function;
  int64_t bytesLeft;
};

int64_t extent(Value matrix, unsigned axis) {
  return cast<RankedTensorType>(matrix.getType()).getDimSize(axis);
}

/// What the products of all rows have.
int64_t bytesOfProducts(Value matrix, Value weights) {
  uint64_t columns = llvm::SaturatingMultiply<uint64_t>(
      uint64_t(extent(weights, 1)), sizeof(float));
  return int64_t(
      std::min<uint64_t>(INT64_MAX, llvm::SaturatingMultiply<uint64_t>(
                                        uint64_t(extent(matrix, 0)), columns)));
}

/// Whether the products are few enough, and a row of them read in less time
/// than it takes to compute it.
bool LookupFolder::pays(Value matrix, Value weights) {
  constexpr int64_t fewestTerms = 16, mostColumnsOfTerm = 8;
  int64_t terms = extent(matrix, 1);
  return terms >= fewestTerms &&
         extent(weights, 1) / mostColumnsOfTerm <= terms &&
         bytesOfProducts(matrix, weights) <= bytesLeft;
}

/// Looks up in each step what it has from there: `slice` becomes the indices,
/// and the lookup of a step takes its place. Null, with all as it was, where
/// more has to be done with what was looked up.
ktn::LookupOpInterface LookupFolder::sink(BlockArgument slice,
                                          StepsOfLookup steps) {
  auto scan = cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  auto [lookup, axisOfRows] = steps.back();
  auto [operand, axis] = *lookup.getStepSource(axisOfRows);
  Value indices = lookup->getOperand(operand);
  OpBuilder outside(scan), b = OpBuilder::atBlockBegin(slice.getOwner());
  auto type = cast<RankedTensorType>(indices.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  Value ofStep =
      slice.getOwner()->addArgument(type.clone(shape), slice.getLoc());
  Value entry = ofStep;
  for (auto [op, axisOfOp] : llvm::reverse(steps))
    entry = op.buildStep(b, axisOfOp, entry);
  ktn::LookupOpInterface found = lookupOf(entry.getDefiningOp());
  if (!found || entry.getType() != slice.getType()) {
    while (entry != ofStep) {
      Operation *op = entry.getDefiningOp();
      entry = lookupOf(op) ? ofStep : op->getOperand(0);
      op->erase();
    }
    slice.getOwner()->eraseArgument(slice.getOwner()->getNumArguments() - 1);
    return nullptr;
  }
  if (axis != 0) {
    SmallVector<int64_t> order = {axis};
    for (int64_t other = 0; other < type.getRank(); ++other)
      if (other != axis)
        order.push_back(other);
    indices =
        ktn::TransposeOp::create(outside, indices.getLoc(), indices, order);
  }
  slice.replaceAllUsesWith(entry);
  slice.setType(cast<RankedTensorType>(ofStep.getType()));
  ofStep.replaceAllUsesWith(slice);
  slice.getOwner()->eraseArgument(slice.getOwner()->getNumArguments() - 1);
  scan.getXsMutable()[slice.getArgNumber()].set(indices);
  return found;
}

void LookupFolder::run(ktn::RowwiseOpInterface product) {
  Value rows = product->getOperand(0), weights = product->getOperand(1);
  ktn::LookupOpInterface lookup = lookupOf(rows.getDefiningOp());
  auto slice = dyn_cast<BlockArgument>(rows);
  StepsOfLookup steps = slice ? lookupBehind(slice) : StepsOfLookup();
  if (!steps.empty())
    lookup = lookupOf(steps.back().first);
  if (!lookup || !pays(lookup->getOperand(0), weights))
    return;
  if (!steps.empty())
    lookup = sink(slice, steps);
  if (!lookup)
    return;
  bytesLeft -= bytesOfProducts(lookup->getOperand(0), weights);
  // Outside of all loops, where it is computed once and for all.
  OpBuilder b(product.getOperation()),
      outside(function.front().findAncestorOpInBlock(*product));
  SmallVector<Value> known;
  for (Value value : {lookup->getOperand(0), weights})
    known.push_back(outside.clone(*value.getDefiningOp())->getResult(0));
  Value products = product.buildRows(outside, known);
  products.getDefiningOp()->setAttr(storedAttr, b.getUnitAttr());
  Value found = lookup.buildLookup(b, products);
  found.getDefiningOp()->setLoc(product->getLoc());
  product->replaceAllUsesWith(ValueRange(found));
  product->erase();
  if (lookup->use_empty())
    lookup->erase();
}

struct FoldLookups : impl::FoldLookupsBase<FoldLookups> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<ktn::RowwiseOpInterface> products;
    // A gradient may be one with respect to what was looked up.
    WalkResult all = getOperation().walk([&](Operation *op) {
      if (ktn::RowwiseOpInterface product = productOf(op))
        products.push_back(product);
      return isa<ktn::GradientsOp>(op) ? WalkResult::interrupt()
                                       : WalkResult::advance();
    });
    if (all.wasInterrupted())
      return;
    LookupFolder folder(getOperation(), int64_t(mostKiB) << 10);
    for (ktn::RowwiseOpInterface product : products)
      folder.run(product);
  }
};

} // namespace
} // namespace keratin
