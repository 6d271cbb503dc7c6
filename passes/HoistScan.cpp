//===- HoistScan.cpp - what does not depend on the state leaves the loop --===//
#include "passes/JoinStepProducts.h"
#include "passes/Passes.h"
#include "passes/Rebuild.h"

#include "ir/Ktn.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

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
/// changes, and the values of all their steps. What only moves elements or
/// computes on single ones is as quick in the loop, where it is fused: it
/// leaves for the sake of products, before and behind them.
class StackedValues {
public:
  explicit StackedValues(ktn::ScanOp scan) : scan(scan) {
    for (auto [slice, x] : llvm::zip_equal(scan.getSlices(), scan.getXs()))
      stacks[slice] = x;
    SmallVector<Operation *> ops = stackableOps();
    keepWanted(ops);
    for (Operation *op : ops)
      if (Value stack = buildStack(*op))
        stacks[op->getResult(0)] = stack;
  }

  Value lookup(Value value) const { return stacks.lookup(value); }

private:
  SmallVector<Operation *> stackableOps() {
    llvm::DenseSet<Value> stackable(scan.getSlices().begin(),
                                    scan.getSlices().end());
    SmallVector<Operation *> ops;
    for (Operation &op : scan.getBody().front().without_terminator()) {
      bool isKnown =
          op.getNumResults() == 1 && op.getNumRegions() == 0 &&
          isa<ktn::StackableOpInterface, ktn::ScalarBodyOpInterface>(op);
      bool changes = false;
      for (Value operand : op.getOperands()) {
        changes |= !isOutside(operand, scan);
        isKnown &= isOutside(operand, scan) || stackable.contains(operand);
      }
      if (!isKnown || !changes)
        continue;
      stackable.insert(op.getResult(0));
      ops.push_back(&op);
    }
    return ops;
  }

  /// Of `ops`: products, what is needed for them, and what can be done on their
  /// results without more slices.
  void keepWanted(SmallVectorImpl<Operation *> &ops) {
    llvm::DenseSet<Operation *> wanted;
    for (Operation *op : llvm::reverse(ops))
      if (isa<ktn::StackableOpInterface>(op) ||
          llvm::any_of(op->getUsers(),
                       [&](Operation *user) { return wanted.contains(user); }))
        wanted.insert(op);
    for (Operation *op : ops) {
      llvm::SmallDenseSet<Value> changing;
      for (Value operand : op->getOperands())
        if (!isOutside(operand, scan))
          changing.insert(operand);
      if (changing.size() == 1 &&
          wanted.contains((*changing.begin()).getDefiningOp()))
        wanted.insert(op);
    }
    llvm::erase_if(ops, [&](Operation *op) { return !wanted.contains(op); });
  }

  /// All steps of `op` in front of the loop, or null.
  Value buildStack(Operation &op) {
    SmallVector<Value> operands;
    SmallVector<bool> isStacked;
    for (Value operand : op.getOperands()) {
      Value stack = stacks.lookup(operand);
      if (!stack && !isOutside(operand, scan))
        return {};
      operands.push_back(stack ? stack : operand);
      isStacked.push_back(bool(stack));
    }
    OpBuilder b(scan);
    if (auto stackable = dyn_cast<ktn::StackableOpInterface>(op))
      return stackable.buildStacked(b, operands, isStacked);
    return stackElementwise(b, op, operands, isStacked);
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
  auto result = ktn::ScanOp::create(
      b, scan.getLoc(), scan.getResultTypes(), xs, scan.getInit(),
      scan.getLengthAttr(), scan.getReverse(), scan.getCheckpointEveryAttr());
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

//===----------------------------------------------------------------------===//
// Sums over the steps
//===----------------------------------------------------------------------===//

/// A state that each step adds `term` to, and that nothing else looks at.
struct RunningSum {
  unsigned state;
  Operation *add;
  Value term;
};

std::optional<RunningSum> findRunningSum(ktn::ScanOp scan, unsigned state) {
  Value argument = scan.getStates()[state];
  auto add =
      scan.getYieldedStates()[state].getDefiningOp<ktn::AffineOpInterface>();
  if (!add || !add.isSum() || !argument.hasOneUse() || !add->hasOneUse() ||
      *argument.user_begin() != add.getOperation())
    return std::nullopt;
  Value term = add->getOperand(add->getOperand(0) == argument ? 1 : 0);
  if (term.getType() != argument.getType())
    return std::nullopt;
  return RunningSum{state, add, term};
}

/// Sums that the steps of a loop add up become sums over stacks behind it: of
/// the products of each step with the weights' gradients one large product.
class SumsOverSteps {
public:
  explicit SumsOverSteps(ktn::ScanOp scan) : scan(scan), b(scan->getContext()) {
    b.setInsertionPointAfter(scan);
    for (auto [slice, x] : llvm::zip_equal(scan.getSlices(), scan.getXs()))
      stacks[slice] = x;
    for (auto [output, stack] :
         llvm::zip_equal(scan.getYieldedOutputs(), scan.getStackedOutputs()))
      stacks.insert({output, stack});
  }

  ktn::ScanOp run() {
    for (unsigned i = 0; i < scan.getInit().size(); ++i)
      if (std::optional<RunningSum> sum = findRunningSum(scan, i))
        if (Value total = totalOf(sum->term);
            total && total.getType() == sum->term.getType())
          takeOut(*sum, total);
    return added.empty() ? scan : withStacks();
  }

private:
  /// The sum of all steps of `value`, or null where that takes all of them.
  Value totalOf(Value value) {
    Operation *op = value.getDefiningOp();
    auto rule = dyn_cast_if_present<ktn::StepSumOpInterface>(op);
    if (!rule || isOutside(value, scan))
      return {};
    SmallVector<bool> changing;
    for (Value operand : op->getOperands())
      changing.push_back(!isOutside(operand, scan));
    if (rule.isAdditive(changing))
      if (Value total = totalOfSums(*op))
        return total;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isOutside(operand, scan) ? operand : stackOf(operand));
    return rule.buildStepSum(b, operands, changing);
  }

  Value totalOfSums(Operation &op) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value total = isOutside(operand, scan) ? operand : totalOf(operand);
      if (!total)
        return {};
      operands.push_back(total);
    }
    FailureOr<Operation *> result = rebuild(b, &op, operands);
    return failed(result) ? Value() : (*result)->getResult(0);
  }

  /// All steps of a value of the body; a stand-in where the loop has yet to
  /// give them.
  Value stackOf(Value value) {
    Value &stack = stacks[value];
    if (!stack) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape{scan.getStepCount()};
      llvm::append_range(shape, type.getShape());
      added[value] = UnrealizedConversionCastOp::create(
          b, scan.getLoc(), type.clone(shape), ValueRange());
      stack = added[value].getResult(0);
    }
    return stack;
  }

  /// The state ends as `total`; that nothing changes it any more lets
  /// canonicalisation drop it.
  void takeOut(RunningSum sum, Value total) {
    Value start = scan.getInit()[sum.state];
    DenseElementsAttr known;
    bool startsAtZero = matchPattern(start, m_Constant(&known)) &&
                        known.isSplat() &&
                        matchPattern(start, m_AnyZeroFloat());
    if (!startsAtZero)
      total = ktn::AddOp::create(b, scan.getLoc(), start, total);
    scan.getFinalStates()[sum.state].replaceAllUsesWith(total);
    sum.add->replaceAllUsesWith(ValueRange(scan.getStates()[sum.state]));
    sum.add->erase();
  }

  ktn::ScanOp withStacks() {
    Operation *yield = scan.getBody().front().getTerminator();
    SmallVector<Type> types(scan.getResultTypes());
    SmallVector<Value> yielded(yield->getOperands());
    for (auto &[value, standIn] : added) {
      types.push_back(standIn.getResult(0).getType());
      yielded.push_back(value);
    }
    yield->setOperands(yielded);
    b.setInsertionPoint(scan);
    auto result = ktn::ScanOp::create(
        b, scan.getLoc(), types, scan.getXs(), scan.getInit(),
        scan.getLengthAttr(), scan.getReverse(), scan.getCheckpointEveryAttr());
    result.getBody().takeBody(scan.getBody());
    ResultRange results = result.getResults();
    scan->replaceAllUsesWith(results.drop_back(added.size()));
    for (auto [entry, stack] :
         llvm::zip_equal(added, results.take_back(added.size()))) {
      entry.second.getResult(0).replaceAllUsesWith(stack);
      entry.second.erase();
    }
    scan->erase();
    return result;
  }

  ktn::ScanOp scan;
  /// Behind the loop.
  OpBuilder b;
  llvm::DenseMap<Value, Value> stacks;
  llvm::MapVector<Value, UnrealizedConversionCastOp> added;
};

bool hasLoop(ktn::ScanOp scan) {
  return llvm::any_of(scan.getBody().front(),
                      [](Operation &op) { return isa<ktn::ScanOp>(op); });
}

struct HoistScan : impl::HoistScanBase<HoistScan> {
  void runOnOperation() override {
    SmallVector<ktn::ScanOp> scans;
    // Inner loops first: what leaves them may leave the outer ones too.
    getOperation().walk([&](ktn::ScanOp op) { scans.push_back(op); });
    for (ktn::ScanOp scan : scans) {
      hoistInvariant(scan);
      joinStepProducts(scan);
      StackedValues stacked(scan);
      SmallVector<Value> values = valuesToSlice(scan, stacked);
      if (!values.empty())
        scan = addSlices(scan, values, stacked);
      dropUnused(scan);
      // Steps that are loops make large products already, of stacks that are
      // no longer than theirs.
      if (!hasLoop(scan))
        SumsOverSteps(scan).run();
    }
  }
};

} // namespace
} // namespace keratin
