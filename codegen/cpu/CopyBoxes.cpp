//===- CopyBoxes.cpp - elementwise results, pads, concatenations ----------===//
// Which boxes they are made of, and which axes of a box are one in memory.
//===----------------------------------------------------------------------===//
#include "codegen/cpu/CopyEmitter.h"
#include "codegen/cpu/InPlace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin {

/// `box` of a whole tensor.
static Box boxOf(Kernel &kernel, Value tensor) {
  Box box;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    box.offsets.push_back(kernel.builder().getIndexAttr(0));
    box.sizes.push_back(getAsOpFoldResult(kernel.extent(tensor, dim)));
  }
  return box;
}

static OpFoldResult toTarget(Kernel &kernel, OpFoldResult size) {
  if (auto value = dyn_cast<Value>(size); value && !getConstantIntValue(size))
    return kernel.scalar(value);
  return kernel.builder().getIndexAttr(*getConstantIntValue(size));
}

static OpFoldResult sum(Kernel &kernel, OpFoldResult lhs, OpFoldResult rhs) {
  std::optional<int64_t> left = getConstantIntValue(lhs);
  std::optional<int64_t> right = getConstantIntValue(rhs);
  OpBuilder &b = kernel.builder();
  if (left && right)
    return b.getIndexAttr(*left + *right);
  auto value = [&](OpFoldResult size, std::optional<int64_t> known) {
    return known ? kernel.index(*known) : cast<Value>(size);
  };
  return arith::AddIOp::create(b, kernel.loc(), value(lhs, left),
                               value(rhs, right))
      .getResult();
}

/// The slabs below and above the source, axis by axis: those of an axis are
/// as narrow as the source on the axes before it and full on the others.
/// Returns what is left: the place of the source.
static Box emitBorder(Kernel &kernel, tensor::PadOp op, Value destination,
                      std::optional<unsigned> axis, const VectorUnit &unit) {
  Value border = kernel.scalar(op.getConstantPaddingValue());
  Box slab = boxOf(kernel, op.getResult());
  for (auto [dim, low, high] :
       llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    low = toTarget(kernel, low);
    high = toTarget(kernel, high);
    OpFoldResult size =
        getAsOpFoldResult(kernel.extent(op.getSource(), int64_t(dim)));
    slab.sizes[dim] = low;
    emitBox(kernel, slab, Copy{border, destination}, unit, axis);
    slab.offsets[dim] = sum(kernel, low, size);
    slab.sizes[dim] = high;
    emitBox(kernel, slab, Copy{border, destination}, unit, axis);
    slab.offsets[dim] = low;
    slab.sizes[dim] = size;
  }
  return slab;
}

void emitPadBorder(Kernel &kernel, tensor::PadOp op, Value destination,
                   std::optional<unsigned> axis, const VectorUnit &unit) {
  emitBorder(kernel, op, destination, axis, unit);
}

/// Where `operand` is read once `axis` of the loops and those behind it are
/// one: whole rows, and of those that are some rows on. Nothing for other
/// places.
static std::optional<AffineMap>
mapOfJoinedAxes(linalg::GenericOp op, OpOperand &operand, unsigned axis) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(operand.get().getType()).getShape();
  if (map.getNumResults() != op.getNumLoops())
    return std::nullopt;
  int64_t inner = 1;
  for (unsigned loop = axis + 1; loop < op.getNumLoops(); ++loop) {
    if (map.getResult(loop) != getAffineDimExpr(loop, map.getContext()) ||
        shape[loop] != staticLoopExtent(op, loop))
      return std::nullopt;
    inner *= shape[loop];
  }
  // A joined loop is read by no other axis.
  SmallVector<AffineExpr> results(map.getResults().take_front(axis + 1));
  for (unsigned loop = axis; loop < op.getNumLoops(); ++loop)
    for (AffineExpr result : ArrayRef(results).drop_back())
      if (result.isFunctionOfDim(loop))
        return std::nullopt;
  AffineExpr row = getAffineDimExpr(axis, map.getContext());
  auto offset = dyn_cast<AffineConstantExpr>(results.back() - row);
  if (!offset)
    return std::nullopt;
  results.back() = row + offset.getValue() * inner;
  return AffineMap::get(axis + 1, 0, results, map.getContext());
}

/// `source` with its axes joined in `groups`: what is in memory in their order,
/// or is computed of such at the same place, or some rows on, alone. Null for
/// anything else.
static Value withJoinedAxes(Kernel &kernel, Value source,
                            ArrayRef<ReassociationIndices> groups) {
  OpBuilder before(kernel.from().getContext());
  before.setInsertionPointAfterValue(source);
  if (Value memory = kernel.memrefOf(source)) {
    if (!cast<MemRefType>(memory.getType()).getLayout().isIdentity())
      return nullptr;
    return tensor::CollapseShapeOp::create(before, kernel.loc(), source,
                                           groups);
  }
  auto op = source.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumResults() != 1 || !isVectorizable(op) ||
      op.hasIndexSemantics() ||
      !op.getBody()->getOps<tensor::ExtractOp>().empty() ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !op.getIndexingMapMatchingResult(op->getResult(0)).isIdentity())
    return nullptr;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<AffineMap> joined =
        mapOfJoinedAxes(op, operand, unsigned(groups.size()) - 1);
    if (!joined)
      return nullptr;
    maps.push_back(*joined);
  }
  IRMapping map;
  for (Value input : op.getInputs()) {
    Value joined = withJoinedAxes(kernel, input, groups);
    if (!joined)
      return nullptr;
    map.map(input, joined);
  }
  before.setInsertionPointAfter(op);
  Value start = tensor::CollapseShapeOp::create(before, kernel.loc(),
                                                op.getOutputs()[0], groups);
  map.map(op.getOutputs()[0], start);
  auto rank = unsigned(groups.size());
  auto joined = cast<linalg::GenericOp>(before.clone(*op, map));
  joined->getResult(0).setType(start.getType());
  joined.setIndexingMapsAttr(before.getAffineMapArrayAttr(maps));
  joined.setIteratorTypesAttr(
      before.getArrayAttr(op.getIteratorTypes().getValue().take_front(rank)));
  return joined->getResult(0);
}

/// Joins `axis` and those behind it, along which `box` is all of `destination`,
/// to one: rows of few channels are contiguous, and copied in whole vectors.
/// False, and nothing, where that is not how they are in memory.
static bool joinAxes(Kernel &kernel, int64_t axis, Box &box, Copy &copy) {
  auto from = cast<RankedTensorType>(copy.source.getType());
  auto to = cast<MemRefType>(copy.destination.getType());
  bool areKnown =
      llvm::none_of(from.getShape().drop_front(axis), ShapedType::isDynamic) &&
      llvm::none_of(to.getShape().drop_front(axis), ShapedType::isDynamic);
  std::optional<int64_t> offset = getConstantIntValue(box.offsets[axis]);
  if (!areKnown || !offset || axis + 1 >= from.getRank() ||
      !to.getLayout().isIdentity())
    return false;
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    if (dim <= axis)
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  Value joined = withJoinedAxes(kernel, copy.source, groups);
  if (!joined)
    return false;
  copy.source = joined;
  copy.destination = memref::CollapseShapeOp::create(
      kernel.builder(), kernel.loc(), copy.destination, groups);
  int64_t inner = llvm::product_of(from.getShape().drop_front(axis + 1));
  OpBuilder &b = kernel.builder();
  box.offsets.resize(axis + 1);
  box.sizes.resize(axis + 1);
  box.offsets[axis] = b.getIndexAttr(*offset * inner);
  box.sizes[axis] = b.getIndexAttr(from.getDimSize(axis) * inner);
  return true;
}

/// Rows that end within a vector, as those of nine channels do, become one, or
/// those of a line of an image where lines are not all that is read.
static void joinShortRows(Kernel &kernel, Box &box, Copy &copy,
                          const VectorUnit &unit) {
  auto type = cast<RankedTensorType>(copy.source.getType());
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1) ||
      type.getShape().back() % lanesOf(copy.source, unit) == 0)
    return;
  for (int64_t axis = type.isDynamicDim(0) ? 1 : 0; axis + 1 < type.getRank();
       ++axis)
    if (joinAxes(kernel, axis, box, copy))
      return;
}

void emitElementwise(Kernel &kernel, ArrayRef<Copy> copies,
                     const VectorUnit &unit) {
  Box box = boxOf(kernel, copies[0].source);
  SmallVector<Copy> joined(copies);
  // Rows that threads share stay rows.
  if (joined.size() == 1 && kernel.sharedRows() == 0)
    joinShortRows(kernel, box, joined[0], unit);
  emitBox(kernel, box, joined, unit);
  if (copies.size() == kernel.results().size())
    markInPlace(kernel);
}

void emitPad(Kernel &kernel, tensor::PadOp op, Value destination,
             const VectorUnit &unit) {
  Box middle = emitBorder(kernel, op, destination, std::nullopt, unit);
  Copy copy{op.getSource(), destination};
  int64_t last = op.getType().getRank() - 1;
  while (last > 0 && isZeroInteger(op.getMixedLowPad()[last]) &&
         isZeroInteger(op.getMixedHighPad()[last]))
    --last;
  if (last >= 0)
    joinAxes(kernel, last, middle, copy);
  emitBox(kernel, middle, copy, unit);
}

void emitConcat(Kernel &kernel, tensor::ConcatOp op, Value destination,
                const VectorUnit &unit) {
  OpFoldResult offset = kernel.builder().getIndexAttr(0);
  for (Value piece : op.getInputs()) {
    Box box = boxOf(kernel, piece);
    box.offsets[op.getDim()] = offset;
    offset = sum(kernel, offset, box.sizes[op.getDim()]);
    Copy copy{piece, destination};
    joinAxes(kernel, int64_t(op.getDim()), box, copy);
    emitBox(kernel, box, copy, unit);
  }
}

} // namespace keratin
