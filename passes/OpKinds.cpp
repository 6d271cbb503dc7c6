//===- OpKinds.cpp - what an op of a kernel computes ----------------------===//
#include "passes/OpKinds.h"

#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

bool isElementwise(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic.getNumReductionLoops() == 0 &&
         llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
           return generic.getMatchingIndexingMap(&init).isIdentity();
         });
}

bool followsRoot(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  // What has been made part of its reader may still be there.
  auto isAlive = [](Operation *user) { return !isOpTriviallyDead(user); };
  if (!op || llvm::count_if(value.getUsers(), isAlive) != 1)
    return false;
  return op.getNumReductionLoops() != 0 ||
         llvm::any_of(op.getDpsInputs(), followsRoot);
}

bool isProduct(linalg::GenericOp generic) {
  return generic.getNumDpsInputs() == 2 &&
         linalg::detail::isContractionBody(
             *generic.getBlock(), [](Operation *first, Operation *second) {
               return (isa<arith::MulFOp>(first) &&
                       isa<arith::AddFOp>(second)) ||
                      (isa<arith::MulIOp>(first) && isa<arith::AddIOp>(second));
             });
}

/// Whether some input is read at `d_i * s + d_j * t`, as by a sliding window.
static bool hasWindow(linalg::GenericOp generic) {
  return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    return llvm::any_of(generic.getMatchingIndexingMap(input).getResults(),
                        [](AffineExpr e) {
                          llvm::SmallDenseSet<unsigned, 4> dims;
                          e.walk([&](AffineExpr part) {
                            if (auto dim = dyn_cast<AffineDimExpr>(part))
                              dims.insert(dim.getPosition());
                          });
                          return dims.size() > 1;
                        });
  });
}

bool readsElsewhere(linalg::GenericOp generic) {
  return !generic.getBody()->getOps<tensor::ExtractOp>().empty();
}

/// Whether `op` sums over some neighbours along the last axis of a tensor that
/// it reads by `map`.
static bool movesOverChannels(linalg::GenericOp op, AffineMap map) {
  AffineExpr last = map.getResults().back();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && last.isFunctionOfDim(loop))
      return !isa<AffineDimExpr>(last);
  return false;
}

llvm::StringRef kindOf(Operation *op) {
  if (isa<tensor::PadOp>(op))
    return "pad";
  if (isa<tensor::ConcatOp>(op))
    return "concat";
  if (isa<linalg::FillOp>(op))
    return "fill";
  auto generic = cast<linalg::GenericOp>(op);
  if (generic.getNumReductionLoops() == 0)
    return readsElsewhere(generic) ? "gather" : "elementwise";
  if (!isProduct(generic))
    return hasWindow(generic) ? "pool" : "reduce";
  if (!hasWindow(generic))
    return "matmul";
  // A depthwise window has no dimension of the kernel that is not in x too, and
  // does not move over channels.
  AffineMap x = generic.getIndexingMapsArray()[0];
  if (movesOverChannels(generic, x))
    return "conv";
  AffineMap kernel = generic.getIndexingMapsArray()[1];
  for (AffineExpr e : kernel.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(e))
      if (!x.isFunctionOfDim(dim.getPosition()))
        return "conv";
  return "depthwise";
}

bool reducesOuterAxes(linalg::GenericOp op, OpOperand *operand) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  if (kindOf(op) != "reduce" || !map.isPermutation())
    return false;
  unsigned last = map.getDimPosition(map.getNumResults() - 1);
  return op.getIteratorTypesArray()[last] == utils::IteratorType::parallel;
}

bool isRowReduction(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic->getNumResults() != 1 || readsElsewhere(generic) ||
      generic.getNumReductionLoops() == 0 || isProduct(generic))
    return false;
  int64_t rows = generic.getNumParallelLoops(), loops = generic.getNumLoops();
  for (auto [index, type] : llvm::enumerate(generic.getIteratorTypesArray()))
    if ((type == utils::IteratorType::parallel) != (int64_t(index) < rows))
      return false;
  AffineMap output =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(0));
  if (output != AffineMap::getMultiDimIdentityMap(loops, op->getContext())
                    .getMajorSubMap(rows))
    return false;
  return llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    return generic.getMatchingIndexingMap(input).isIdentity();
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

int64_t RowShape::bytes() const {
  uint64_t bytes = 8;
  for (int64_t extent : row()) {
    if (ShapedType::isDynamic(extent))
      return INT64_MAX;
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, extent);
  }
  return std::min<uint64_t>(bytes, INT64_MAX);
}

static SmallVector<int64_t> trailingExtents(linalg::GenericOp generic,
                                            unsigned rows) {
  return SmallVector<int64_t>(
      ArrayRef(generic.getStaticLoopRanges()).drop_front(rows));
}

bool RowShape::isWhole(linalg::GenericOp generic) const {
  return generic.getNumLoops() == extents.size() &&
         ArrayRef(trailingExtents(generic, rows)) == row();
}

bool RowShape::isPerRow(linalg::GenericOp generic) const {
  return isElementwise(generic) && generic.getNumLoops() >= rows &&
         llvm::all_of(trailingExtents(generic, rows),
                      [](int64_t extent) { return extent == 1; });
}

/// The loops of the rows, and zeros, or loops of one turn.
bool RowShape::leadsToRow(linalg::GenericOp generic, AffineMap map) const {
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool own = dim && (position < rows
                           ? dim.getPosition() == position
                           : dim.getPosition() >= rows && isPerRow(generic));
    if (!own && (position < rows || !isa<AffineConstantExpr>(expr)))
      return false;
  }
  return map.getNumResults() >= rows;
}

bool RowShape::fits(linalg::GenericOp generic,
                    llvm::function_ref<bool(Operation *)> isMember) const {
  if (readsElsewhere(generic) || generic->getNumResults() != 1 ||
      generic.getNumLoops() < rows ||
      ArrayRef(generic.getStaticLoopRanges()).take_front(rows) !=
          ArrayRef(extents).take_front(rows))
    return false;
  bool whole =
      isWhole(generic) && (isElementwise(generic) || isRowReduction(generic));
  if (!whole && !isPerRow(generic))
    return false;
  if (!isElementwise(generic) && generic.getNumParallelLoops() != rows)
    return false;
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    auto def = input->get().getDefiningOp<linalg::GenericOp>();
    if (!def || !isMember(def))
      return true;
    AffineMap map = generic.getMatchingIndexingMap(input);
    return isElementwise(def) && isWhole(def) ? whole && map.isIdentity()
                                              : leadsToRow(generic, map);
  });
}

} // namespace keratin
