//===- JoinVectors.cpp - equal computations on one long vector ------------===//
#include "codegen/cpu/JoinVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

Value concatenated(OpBuilder &b, Location loc, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors[0];
  size_t half = vectors.size() / 2;
  Value left = concatenated(b, loc, vectors.take_front(half));
  Value right = concatenated(b, loc, vectors.drop_front(half));
  int64_t lanes = cast<VectorType>(left.getType()).getNumElements() +
                  cast<VectorType>(right.getType()).getNumElements();
  return vector::ShuffleOp::create(b, loc, left, right,
                                   llvm::to_vector(llvm::seq<int64_t>(lanes)));
}

/// A vector of `wide` with the one value that all lanes of `part` have, or
/// null.
Value VectorJoiner::joinUniform(Value part, VectorType wide) {
  if (auto broadcast = part.getDefiningOp<vector::BroadcastOp>();
      broadcast && !isa<VectorType>(broadcast.getSourceType()))
    return vector::BroadcastOp::create(b, loc, wide, broadcast.getSource());
  auto constant = part.getDefiningOp<arith::ConstantOp>();
  auto splat =
      constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
  return splat ? arith::ConstantOp::create(b, loc, splat.resizeSplat(wide))
               : Value();
}

/// Whether the results differ in what the operations are given only.
static bool areAlike(ArrayRef<Value> parts) {
  auto *first = parts[0].getDefiningOp();
  if (!first || first->getNumRegions() != 0 || first->getNumResults() != 1 ||
      !OpTrait::hasElementwiseMappableTraits(first))
    return false;
  return llvm::all_of(parts.drop_front(), [&](Value part) {
    Operation *op = part.getDefiningOp();
    return op && op->getName() == first->getName() &&
           op->getOperandTypes() == first->getOperandTypes() &&
           op->getAttrDictionary() == first->getAttrDictionary();
  });
}

Value VectorJoiner::build(ArrayRef<Value> parts) {
  auto type = cast<VectorType>(parts[0].getType());
  auto wide = VectorType::get(type.getNumElements() * int64_t(parts.size()),
                              type.getElementType());
  if (llvm::all_equal(parts))
    if (Value uniform = joinUniform(parts[0], wide))
      return uniform;
  if (!areAlike(parts))
    return concatenated(b, loc, parts);
  Operation *first = parts[0].getDefiningOp();
  SmallVector<Value> operands;
  for (unsigned number = 0; number < first->getNumOperands(); ++number) {
    SmallVector<Value> column;
    for (Value part : parts)
      column.push_back(part.getDefiningOp()->getOperand(number));
    if (isa<VectorType>(column[0].getType()))
      operands.push_back(join(column));
    else if (llvm::all_equal(column))
      operands.push_back(column[0]);
    else
      return concatenated(b, loc, parts);
  }
  OperationState state(loc, first->getName(), operands, wide,
                       first->getAttrDictionary().getValue());
  return b.create(state)->getResult(0);
}

Value VectorJoiner::join(ArrayRef<Value> parts) {
  for (const auto &[known, value] : joined[parts[0]])
    if (ArrayRef(known) == parts)
      return value;
  Value value = build(parts);
  joined[parts[0]].emplace_back(SmallVector<Value>(parts), value);
  return value;
}

} // namespace keratin
