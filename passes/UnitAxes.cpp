//===- UnitAxes.cpp - axes of extent 1 part no kernels --------------------===//
#include "passes/UnitAxes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin {

/// Number of trailing loops that run once, but not all of them.
static unsigned countTrailingUnits(linalg::GenericOp generic) {
  SmallVector<int64_t> extents = generic.getStaticLoopRanges();
  unsigned units = 0;
  while (units + 1 < extents.size() && extents[extents.size() - 1 - units] == 1)
    ++units;
  return units;
}

/// [[0], [1], .., [n-1, n, .., n+units-1]]
static SmallVector<ReassociationIndices> trailingGroups(int64_t kept,
                                                        int64_t units) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t axis = 0; axis < kept; ++axis)
    groups.push_back({axis});
  for (int64_t unit = 0; unit < units; ++unit)
    groups.back().push_back(kept + unit);
  return groups;
}

static void dropTrailingUnits(linalg::GenericOp generic) {
  unsigned units = countTrailingUnits(generic);
  unsigned kept = generic.getNumLoops() - units;
  if (!units || generic.getNumReductionLoops() ||
      generic->getNumResults() != 1 || generic.hasIndexSemantics() ||
      !generic.getMatchingIndexingMap(generic.getDpsInitOperand(0))
           .isIdentity())
    return;
  auto empty = generic.getDpsInits().front().getDefiningOp<tensor::EmptyOp>();
  if (!empty)
    return;

  OpBuilder b(generic);
  Location loc = generic.getLoc();
  auto type = cast<RankedTensorType>(generic.getResult(0).getType());
  SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
  Value smaller = tensor::EmptyOp::create(
      b, loc, ArrayRef(sizes).take_front(kept), type.getElementType());

  SmallVector<AffineExpr> dims;
  for (unsigned dim = 0; dim < kept + units; ++dim)
    dims.push_back(dim < kept ? b.getAffineDimExpr(dim)
                              : b.getAffineConstantExpr(0));
  SmallVector<AffineMap> maps;
  for (AffineMap map : generic.getIndexingMapsArray())
    maps.push_back(map.replaceDimsAndSymbols(dims, {}, kept, 0));
  maps.back() = b.getMultiDimIdentityMap(kept);

  auto narrow = linalg::GenericOp::create(
      b, loc, smaller.getType(), generic.getInputs(), smaller, maps,
      SmallVector<utils::IteratorType>(kept, utils::IteratorType::parallel));
  IRMapping mapping;
  generic.getRegion().cloneInto(&narrow.getRegion(), mapping);
  Value wide = tensor::ExpandShapeOp::create(
      b, loc, type, narrow.getResult(0), trailingGroups(kept, units), sizes);
  generic.getResult(0).replaceAllUsesWith(wide);
  generic.erase();
}

/// `map` into the source of `expand`, or nothing when the view does more than
/// to add axes of extent 1.
static std::optional<AffineMap> mapToSource(tensor::ExpandShapeOp expand,
                                            AffineMap map) {
  ArrayRef<int64_t> shape = expand.getResultType().getShape();
  SmallVector<AffineExpr> kept;
  for (const ReassociationIndices &group : expand.getReassociationIndices()) {
    SmallVector<int64_t> large = llvm::filter_to_vector(
        group, [&](int64_t axis) { return shape[axis] != 1; });
    if (large.size() > 1)
      return std::nullopt;
    kept.push_back(map.getResult(large.empty() ? group.front() : large[0]));
  }
  return AffineMap::get(map.getNumDims(), 0, kept, map.getContext());
}

static void readSources(linalg::GenericOp generic) {
  for (OpOperand *input : generic.getDpsInputOperands()) {
    auto expand = input->get().getDefiningOp<tensor::ExpandShapeOp>();
    SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
    AffineMap &map = maps[input->getOperandNumber()];
    std::optional<AffineMap> source =
        expand ? mapToSource(expand, map) : std::nullopt;
    if (!source)
      continue;
    // The extent of every loop must still follow from some operand.
    map = *source;
    if (!inversePermutation(concatAffineMaps(maps, generic.getContext())))
      continue;
    input->set(expand.getSrc());
    generic.setIndexingMapsAttr(
        Builder(generic.getContext()).getAffineMapArrayAttr(maps));
  }
}

void foldUnitAxes(func::FuncOp function) {
  SmallVector<linalg::GenericOp> generics;
  function.walk([&](linalg::GenericOp op) { generics.push_back(op); });
  for (linalg::GenericOp generic : generics)
    dropTrailingUnits(generic);
  function.walk(readSources);
  function.walk([](tensor::ExpandShapeOp view) {
    if (view->use_empty())
      view->erase();
  });
}

} // namespace keratin
