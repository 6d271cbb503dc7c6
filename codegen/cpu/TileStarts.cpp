//===- TileStarts.cpp - what the sums of a tile begin with ----------------===//
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace keratin {

/// Whether `root` is a plain sum that begins with zeros.
static bool sumsFromZero(linalg::GenericOp root) {
  if (root.getNumResults() != 1)
    return false;
  auto fill = root.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto yield = cast<linalg::YieldOp>(root.getBody()->getTerminator());
  auto sum = yield.getOperand(0).getDefiningOp<arith::AddFOp>();
  BlockArgument before = root.getRegionOutputArgs()[0];
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) && sum &&
         before.hasOneUse() &&
         (sum.getLhs() == before || sum.getRhs() == before);
}

/// The addition of the sums of `root` and a number for each column of `tiling`,
/// which `addend` has in memory. Null where there is none, or more is done with
/// the sums.
static arith::AddFOp findAddition(Kernel &kernel, linalg::GenericOp root,
                                  const Tiling &tiling, OpOperand *&addend) {
  Value sums = root.getResult(0);
  if (!sums.hasOneUse())
    return {};
  OpOperand &use = *sums.use_begin();
  auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!user || user.isDpsInit(&use) ||
      !user.getMatchingIndexingMap(&use).isIdentity())
    return {};
  BlockArgument sum = user.getMatchingBlockArgument(&use);
  auto addition = sum.hasOneUse()
                      ? dyn_cast<arith::AddFOp>(*sum.getUsers().begin())
                      : arith::AddFOp();
  if (!addition)
    return {};
  auto other = dyn_cast<BlockArgument>(
      addition.getLhs() == sum ? addition.getRhs() : addition.getLhs());
  if (!other || other.getOwner() != user.getBody() || other == sum ||
      other.getArgNumber() >= user.getNumDpsInputs())
    return {};
  addend = user.getDpsInputOperand(other.getArgNumber());
  AffineMap map = user.getMatchingIndexingMap(addend);
  AffineMap ofSums = root.getIndexingMapMatchingResult(root->getResult(0));
  if (!isa<TensorType>(addend->get().getType()) ||
      !kernel.memrefOf(addend->get()) || map.getNumResults() != 1)
    return {};
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(0));
  if (!dim || ofSums.getResult(dim.getPosition()) !=
                  getAffineDimExpr(tiling.lane, root.getContext()))
    return {};
  return addition;
}

void startWithAddend(Kernel &kernel, linalg::GenericOp root,
                     const Tiling &tiling) {
  // Sums of empty lanes would begin behind the last number.
  int64_t columns = staticLoopExtent(root, tiling.lane);
  OpOperand *addend = nullptr;
  if (ShapedType::isDynamic(columns) || columns % tiling.fewestLanes != 0 ||
      !sumsFromZero(root))
    return;
  arith::AddFOp addition = findAddition(kernel, root, tiling, addend);
  if (!addition)
    return;
  auto user = cast<linalg::GenericOp>(addend->getOwner());
  OpBuilder b(root);
  Value zeros = root.getDpsInits()[0];
  auto all = b.getMultiDimIdentityMap(user.getNumLoops());
  auto starts = linalg::GenericOp::create(
      b, root.getLoc(), zeros.getType(), addend->get(),
      zeros.getDefiningOp<linalg::FillOp>().getOutputs()[0],
      ArrayRef{user.getMatchingIndexingMap(addend), all},
      user.getIteratorTypesArray(),
      [](OpBuilder &b, Location loc, ValueRange values) {
        linalg::YieldOp::create(b, loc, values[0]);
      });
  root.getDpsInitsMutable()[0].set(starts.getResult(0));
  BlockArgument other = user.getMatchingBlockArgument(addend);
  Value sum =
      addition.getLhs() == other ? addition.getRhs() : addition.getLhs();
  addition.replaceAllUsesWith(sum);
  addition.erase();
}

} // namespace keratin
