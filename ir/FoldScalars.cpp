//===- FoldScalars.cpp - scalar code on constants, evaluated --------------===//
#include "ir/FoldScalars.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

Attribute keratin::ktn::foldScalars(Block &block, Value result) {
  llvm::DenseMap<Value, Attribute> known;
  for (Operation &op : block) {
    SmallVector<Attribute> operands;
    for (Value operand : op.getOperands())
      operands.push_back(known.lookup(operand));
    SmallVector<OpFoldResult> folded;
    if (failed(op.fold(operands, folded)) || folded.size() != 1)
      return {};
    auto value = dyn_cast<Value>(folded[0]);
    known[op.getResult(0)] =
        value ? known.lookup(value) : cast<Attribute>(folded[0]);
  }
  return known.lookup(result);
}
