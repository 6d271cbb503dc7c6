//===- FoldLookups.cpp - products of rows of a table become its rows ------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"
#include "ir/Permutation.h"

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

/// `op`, if it looks up rows of a known table.
ktn::GatherOp lookupOf(Operation *op) {
  auto gather = dyn_cast_if_present<ktn::GatherOp>(op);
  bool isLookup = gather && gather.getAxis() == 0 &&
                  gather.getBatchDims() == 0 && isKnownMatrix(gather.getX());
  return isLookup ? gather : nullptr;
}

/// Whether `product` multiplies rows, whatever axes they have, by a known
/// matrix.
bool multipliesRows(ktn::DotGeneralOp product) {
  int64_t last = product.getLhs().getType().getRank() - 1;
  return product.getLhsBatch().empty() &&
         product.getLhsContract() == ArrayRef<int64_t>(last) &&
         product.getRhsContract() == ArrayRef<int64_t>(0) &&
         isKnownMatrix(product.getRhs());
}

/// A lookup in front of a loop, whose steps have what was looked up by the
/// indices along one axis.
struct StackedLookup {
  ktn::GatherOp gather;
  int64_t axis; ///< of the indices
};

/// Null where a step is no lookup of the indices of that step, or is read by
/// more than products: those would have to be left in the loop.
std::optional<StackedLookup> lookupBehind(BlockArgument slice) {
  auto scan = dyn_cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  if (!scan || !llvm::is_contained(scan.getSlices(), slice) ||
      !llvm::all_of(slice.getUsers(), [&](Operation *user) {
        auto product = dyn_cast<ktn::DotGeneralOp>(user);
        return product && product.getLhs() == slice && multipliesRows(product);
      }))
    return std::nullopt;
  Value stack = scan.getXs()[slice.getArgNumber()];
  int64_t axis = 0; // of the stack, along which the steps are
  while (auto op = stack.getDefiningOp<ktn::StepwiseOpInterface>()) {
    auto source = op.getStepSource(axis);
    if (!source)
      return std::nullopt;
    axis = source->second;
    if (ktn::GatherOp gather = lookupOf(op))
      return StackedLookup{gather, axis};
    // Other axes are to stay in order.
    auto transpose = dyn_cast<ktn::TransposeOp>(op.getOperation());
    if (!transpose || !llvm::is_sorted(ktn::permutationWithout(
                          transpose.getPermutation(), axis)))
      return std::nullopt;
    stack = transpose.getX();
  }
  return std::nullopt;
}

class LookupFolder {
public:
  LookupFolder(func::FuncOp function, int64_t mostBytes)
      : function(function), bytesLeft(mostBytes) {}

  void run(ktn::DotGeneralOp product);

private:
  bool pays(ktn::GatherOp gather, ktn::DotGeneralOp product);
  ktn::GatherOp sink(BlockArgument slice, StackedLookup lookup);

  func::FuncOp function;
  int64_t bytesLeft;
};

/// What the table of these products has.
int64_t bytesOfProducts(ktn::GatherOp gather, ktn::DotGeneralOp product) {
  int64_t rows = gather.getX().getType().getDimSize(0);
  int64_t columns = product.getRhs().getType().getDimSize(1);
  constexpr uint64_t bytes = sizeof(float), most = INT64_MAX;
  return int64_t(std::min(
      most, llvm::SaturatingMultiply<uint64_t>(
                uint64_t(rows),
                llvm::SaturatingMultiply<uint64_t>(uint64_t(columns), bytes))));
}

/// Whether the table of products is small enough, and a row of it read in less
/// time than products take.
bool LookupFolder::pays(ktn::GatherOp gather, ktn::DotGeneralOp product) {
  constexpr int64_t fewestTerms = 16, mostColumnsOfTerm = 8;
  int64_t terms = gather.getX().getType().getDimSize(1);
  int64_t columns = product.getRhs().getType().getDimSize(1);
  return terms >= fewestTerms && columns / mostColumnsOfTerm <= terms &&
         bytesOfProducts(gather, product) <= bytesLeft;
}

/// Looks up in each step what it has from there: `slice` becomes the indices,
/// and the lookup of a step takes its place.
ktn::GatherOp LookupFolder::sink(BlockArgument slice, StackedLookup lookup) {
  auto scan = cast<ktn::ScanOp>(slice.getOwner()->getParentOp());
  OpBuilder outside(scan), b = OpBuilder::atBlockBegin(slice.getOwner());
  ktn::GatherOp gather = lookup.gather;
  Value indices = gather.getIndices();
  if (lookup.axis != 0) {
    SmallVector<int64_t> order = {lookup.axis};
    int64_t rank = cast<RankedTensorType>(indices.getType()).getRank();
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != lookup.axis)
        order.push_back(axis);
    indices =
        ktn::TransposeOp::create(outside, indices.getLoc(), indices, order);
  }
  auto ofStep =
      ktn::GatherOp::create(b, gather.getLoc(), slice.getType(), gather.getX(),
                            slice, gather.getAxis(), gather.getBatchDims());
  slice.replaceAllUsesExcept(ofStep, ofStep);
  scan.getXsMutable()[slice.getArgNumber()].set(indices);
  auto type = cast<RankedTensorType>(indices.getType());
  slice.setType(type.clone(type.getShape().drop_front()));
  return ofStep;
}

void LookupFolder::run(ktn::DotGeneralOp product) {
  if (!multipliesRows(product))
    return;
  ktn::GatherOp gather = lookupOf(product.getLhs().getDefiningOp());
  auto slice = dyn_cast<BlockArgument>(product.getLhs());
  std::optional<StackedLookup> behind =
      slice ? lookupBehind(slice) : std::nullopt;
  if (behind)
    gather = behind->gather;
  if (!gather || !pays(gather, product))
    return;
  bytesLeft -= bytesOfProducts(gather, product);
  if (behind)
    gather = sink(slice, *behind);
  // Outside of all loops, where it is computed once and for all.
  OpBuilder b(product),
      outside(function.front().findAncestorOpInBlock(*product));
  Location loc = product.getLoc();
  auto constant = [&](Value known) {
    return outside.clone(*known.getDefiningOp())->getResult(0);
  };
  Value table = constant(gather.getX()), weights = constant(product.getRhs());
  auto products = ktn::DotGeneralOp::create(
      outside, loc, table, weights, ArrayRef<int64_t>(), ArrayRef<int64_t>(),
      ArrayRef<int64_t>(1), ArrayRef<int64_t>(0));
  products->setAttr(storedAttr, b.getUnitAttr());
  Value rows = ktn::GatherOp::create(b, loc, product.getType(), products,
                                     gather.getIndices(), gather.getAxis(),
                                     gather.getBatchDims());
  product.replaceAllUsesWith(rows);
  product.erase();
  if (gather.use_empty())
    gather.erase();
}

struct FoldLookups : impl::FoldLookupsBase<FoldLookups> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<ktn::DotGeneralOp> products;
    getOperation().walk(
        [&](ktn::DotGeneralOp product) { products.push_back(product); });
    if (getOperation().isExternal())
      return;
    LookupFolder folder(getOperation(), int64_t(mostKiB) << 10);
    for (ktn::DotGeneralOp product : products)
      folder.run(product);
  }
};

} // namespace
} // namespace keratin
