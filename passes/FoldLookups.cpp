//===- FoldLookups.cpp - products of rows of a table become its rows ------===//
#include "passes/Passes.h"
#include "passes/StepSource.h"

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

/// Whether the axes beside `axis` of the result of `op` are in the order that
/// they have where they come from.
bool keepsOrder(ktn::StepwiseOpInterface op, int64_t axis) {
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  int64_t before = -1;
  for (int64_t other = 0; other < rank; ++other) {
    if (other == axis)
      continue;
    auto source = op.getStepSource(other);
    if (!source || source->second < before)
      return false;
    before = source->second;
  }
  return true;
}

/// The indices of a lookup in front of a loop whose step is the slice. Nothing
/// where a step is something else, or is read by more than products: those
/// would have to be left in the loop.
std::optional<StepSource> lookupBehind(BlockArgument slice) {
  auto scan = dyn_cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  if (!scan || !llvm::is_contained(scan.getSlices(), slice) ||
      !llvm::all_of(slice.getUsers(), [&](Operation *user) {
        return productOf(user) && user->getOperand(0) == slice;
      }))
    return std::nullopt;
  StepSource source = sourceOf(scan, slice);
  while (source.advance()) {
    auto [op, axis] = source.ops.back();
    if (lookupOf(op))
      return source;
    if (!keepsOrder(op, axis))
      return std::nullopt;
  }
  return std::nullopt;
}

class LookupFolder {
public:
  LookupFolder(func::FuncOp function, int64_t mostBytes)
      : function(function), bytesLeft(mostBytes) {}

  void run(ktn::RowwiseOpInterface product);

private:
  bool pays(Value matrix, Value weights);

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

/// Looks up in each step what it has from there.
ktn::LookupOpInterface sink(BlockArgument slice, const StepSource &indices) {
  OpBuilder b = OpBuilder::atBlockBegin(slice.getOwner());
  SmallVector<OpOperand *> uses(llvm::make_pointer_range(slice.getUses()));
  auto scan = cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  Value row = takeFrom(indices, scan, slice, b);
  for (OpOperand *use : uses)
    use->set(row);
  return cast<ktn::LookupOpInterface>(row.getDefiningOp());
}

void LookupFolder::run(ktn::RowwiseOpInterface product) {
  Value rows = product->getOperand(0), weights = product->getOperand(1);
  ktn::LookupOpInterface lookup = lookupOf(rows.getDefiningOp());
  auto slice = dyn_cast<BlockArgument>(rows);
  std::optional<StepSource> behind = slice ? lookupBehind(slice) : std::nullopt;
  if (behind)
    lookup = lookupOf(behind->ops.back().first);
  if (!lookup || !pays(lookup->getOperand(0), weights))
    return;
  if (behind)
    lookup = sink(slice, *behind);
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
