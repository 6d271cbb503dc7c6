//===- HoistScan.cpp - what does not depend on the state leaves the loop --===//
#include "passes/Passes.h"
#include "passes/Rebuild.h"

#include "ir/Ktn.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_HOISTSCAN
#include "passes/Passes.h.inc"

namespace {

bool isOutside(Value value, ktn::ScanOp scan) {
  return !scan.getBody().isAncestor(value.getParentRegion());
}

/// Ops of which every step would compute the same value move in front of the
/// loop.
void hoistInvariant(ktn::ScanOp scan) {
  Block &body = scan.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    llvm::SetVector<Value> inputs(op.operand_begin(), op.operand_end());
    getUsedValuesDefinedAbove(op.getRegions(), inputs);
    if (isMemoryEffectFree(&op) &&
        llvm::all_of(inputs, [&](Value v) { return isOutside(v, scan); }))
      op.moveBefore(scan);
  }
}

/// Values of the body that depend on the slices and on nothing else that
/// changes, and the values of all their steps.
class StackedValues {
public:
  explicit StackedValues(ktn::ScanOp scan) : scan(scan) {
    for (auto [slice, x] : llvm::zip_equal(scan.getSlices(), scan.getXs()))
      stacks[slice] = x;
    for (Operation &op : scan.getBody().front().without_terminator())
      if (Value stack = buildStack(op))
        stacks[op.getResult(0)] = stack;
  }

  Value lookup(Value value) const { return stacks.lookup(value); }

private:
  /// All steps of `op` in front of the loop, or null.
  Value buildStack(Operation &op) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0)
      return {};
    SmallVector<Value> operands;
    SmallVector<bool> isStacked;
    for (Value operand : op.getOperands()) {
      Value stack = stacks.lookup(operand);
      if (!stack && !isOutside(operand, scan))
        return {};
      operands.push_back(stack ? stack : operand);
      isStacked.push_back(bool(stack));
    }
    if (!llvm::is_contained(isStacked, true))
      return {};
    OpBuilder b(scan);
    if (auto stackable = dyn_cast<ktn::StackableOpInterface>(op))
      return stackable.buildStacked(b, operands, isStacked);
    if (isa<ktn::ScalarBodyOpInterface>(op))
      return stackElementwise(b, op, operands, isStacked);
    return {};
  }

  /// Operands broadcast from the right, so one of lower rank gets axes of
  /// extent 1 behind that of the steps.
  static Value stackElementwise(OpBuilder &b, Operation &op,
                                SmallVector<Value> operands,
                                ArrayRef<bool> isStacked) {
    int64_t rank = cast<RankedTensorType>(op.getResult(0).getType()).getRank();
    for (auto [operand, stacked] : llvm::zip_equal(operands, isStacked)) {
      int64_t missing =
          rank + 1 - cast<RankedTensorType>(operand.getType()).getRank();
      if (stacked && missing > 0)
        operand = ktn::ExpandDimsOp::create(
            b, op.getLoc(), operand,
            llvm::to_vector(llvm::seq<int64_t>(1, 1 + missing)));
    }
    FailureOr<Operation *> stack = rebuild(b, &op, operands);
    return failed(stack) ? Value() : (*stack)->getResult(0);
  }

  ktn::ScanOp scan;
  llvm::DenseMap<Value, Value> stacks;
};

/// Values computed in front of the loop that the loop still reads: they become
/// slices.
SmallVector<Value> valuesToSlice(ktn::ScanOp scan,
                                 const StackedValues &stacked) {
  SmallVector<Value> values;
  for (Operation &op : scan.getBody().front().without_terminator()) {
    if (op.getNumResults() != 1 || !stacked.lookup(op.getResult(0)))
      continue;
    bool isRead = llvm::any_of(op.getUsers(), [&](Operation *user) {
      return user->getNumResults() != 1 || !stacked.lookup(user->getResult(0));
    });
    if (isRead)
      values.push_back(op.getResult(0));
  }
  return values;
}

/// The loop with more slices, that stand for `values` of its body.
ktn::ScanOp addSlices(ktn::ScanOp scan, ArrayRef<Value> values,
                      const StackedValues &stacked) {
  SmallVector<Value> xs(scan.getXs());
  for (Value value : values)
    xs.push_back(stacked.lookup(value));
  OpBuilder b(scan);
  auto result = ktn::ScanOp::create(b, scan.getLoc(), scan.getResultTypes(), xs,
                                    scan.getInit(), scan.getLengthAttr(),
                                    scan.getReverse());
  Block &body = scan.getBody().front();
  unsigned position = scan.getXs().size();
  for (Value value : values)
    value.replaceAllUsesWith(
        body.insertArgument(position++, value.getType(), value.getLoc()));
  result.getBody().takeBody(scan.getBody());
  scan->replaceAllUsesWith(result.getResults());
  scan->erase();
  return result;
}

/// Erases ops of the body that nothing reads, then slices that nothing reads;
/// one slice stays to tell the number of steps.
void dropUnused(ktn::ScanOp scan) {
  Block &body = scan.getBody().front();
  SmallVector<Operation *> ops(
      llvm::make_pointer_range(body.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
  MutableOperandRange xs = scan.getXsMutable();
  for (unsigned i = xs.size(); i-- > 0 && xs.size() > 1;) {
    if (!body.getArgument(i).use_empty())
      continue;
    body.eraseArgument(i);
    xs.erase(i);
  }
}

struct HoistScan : impl::HoistScanBase<HoistScan> {
  void runOnOperation() override {
    SmallVector<ktn::ScanOp> scans;
    // Inner loops first: what leaves them may leave the outer ones too.
    getOperation().walk([&](ktn::ScanOp op) { scans.push_back(op); });
    for (ktn::ScanOp scan : scans) {
      hoistInvariant(scan);
      StackedValues stacked(scan);
      SmallVector<Value> values = valuesToSlice(scan, stacked);
      if (!values.empty())
        scan = addSlices(scan, values, stacked);
      dropUnused(scan);
    }
  }
};

} // namespace
} // namespace keratin
