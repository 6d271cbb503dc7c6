//===- ScanFold.cpp - loops without what nobody needs ---------------------===//
#include "ir/Differentiate.h"
#include "ir/Ktn.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace keratin::ktn;

namespace {
/// What of a loop is needed for the results that are used.
class Needed {
public:
  explicit Needed(ScanOp scan)
      : states(scan.getInit().size()), outputs(scan.getStackedOutputs().size()),
        scan(scan) {
    for (Operation &op : scan.getBody().front().without_terminator())
      if (!isMemoryEffectFree(&op))
        values.insert_range(valuesRead(op));
    for (auto [index, stack] : llvm::enumerate(scan.getStackedOutputs()))
      if (!stack.use_empty()) {
        outputs[index] = true;
        values.insert(scan.getYieldedOutputs()[index]);
      }
    for (auto [index, state] : llvm::enumerate(scan.getFinalStates()))
      if (!state.use_empty())
        need(index);
    // A state that a step needs, needs what the step makes of it.
    bool changed = true;
    while (changed) {
      goThroughStep();
      changed = false;
      for (size_t i = 0; i < states.size(); ++i)
        if (!states[i] && values.contains(scan.getStates()[i])) {
          need(i);
          changed = true;
        }
    }
  }

  bool slice(unsigned index) {
    return values.contains(scan.getSlices()[index]);
  }
  SmallVector<bool> states, outputs;

private:
  void need(size_t state) {
    states[state] = true;
    values.insert(scan.getYieldedStates()[state]);
  }
  void goThroughStep() {
    for (Operation &op :
         llvm::reverse(scan.getBody().front().without_terminator()))
      if (llvm::any_of(op.getResults(),
                       [&](Value v) { return values.contains(v); }))
        values.insert_range(valuesRead(op));
  }

  ScanOp scan;
  llvm::DenseSet<Value> values;
};
} // namespace

/// Slices of one tensor are one, and a state that never changes is a value from
/// outside.
static bool mergeArguments(ScanOp scan, PatternRewriter &rewriter) {
  bool changed = false;
  auto replace = [&](Value value, Value by) {
    if (value.use_empty())
      return;
    rewriter.replaceAllUsesWith(value, by);
    changed = true;
  };
  llvm::DenseMap<Value, Value> sliceOf;
  for (auto [slice, x] : llvm::zip_equal(scan.getSlices(), scan.getXs())) {
    auto [known, isNew] = sliceOf.try_emplace(x, slice);
    if (!isNew)
      replace(slice, known->second);
  }
  for (auto [index, state] : llvm::enumerate(scan.getStates()))
    if (scan.getYieldedStates()[index] == state) {
      Value start = scan.getInit()[index];
      replace(scan.getFinalStates()[index], start);
      // Its own yield stays until the state goes.
      rewriter.replaceUsesWithIf(state, start, [&](OpOperand &use) {
        bool elsewhere =
            use.getOwner() != scan.getBody().front().getTerminator() ||
            use.getOperandNumber() != index;
        changed |= elsewhere;
        return elsewhere;
      });
    }
  return changed;
}

/// `scan` with only what is `needed`.
static void dropRest(ScanOp scan, Needed &needed, PatternRewriter &rewriter) {
  Block &body = scan.getBody().front();
  size_t sliceCount = scan.getXs().size();
  SmallVector<Value> xs, init, yielded;
  SmallVector<Type> types;
  BitVector dead(body.getNumArguments());
  std::optional<int64_t> length = scan.getLength();
  if (!length && !ShapedType::isDynamic(scan.getStepCount()))
    length = scan.getStepCount();
  for (unsigned i = 0; i < sliceCount; ++i) {
    // The last one tells the number of steps when nothing else does.
    bool counts = !length && i + 1 == sliceCount && xs.empty();
    if (needed.slice(i) || counts)
      xs.push_back(scan.getXs()[i]);
    else
      dead.set(i);
  }
  for (auto [i, isNeeded] : llvm::enumerate(needed.states))
    if (isNeeded) {
      init.push_back(scan.getInit()[i]);
      types.push_back(scan.getFinalStates()[i].getType());
      yielded.push_back(scan.getYieldedStates()[i]);
    } else {
      dead.set(sliceCount + i);
    }
  for (auto [i, isNeeded] : llvm::enumerate(needed.outputs))
    if (isNeeded) {
      types.push_back(scan.getStackedOutputs()[i].getType());
      yielded.push_back(scan.getYieldedOutputs()[i]);
    }

  rewriter.modifyOpInPlace(body.getTerminator(),
                           [&] { body.getTerminator()->setOperands(yielded); });
  // Ops that only the rest read go with it: last readers first.
  SmallVector<Operation *> ops(
      llvm::make_pointer_range(body.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  body.eraseArguments(dead);

  bool hasLength = scan.getLength() || xs.empty();
  auto result = ScanOp::create(
      rewriter, scan.getLoc(), types, xs, init,
      hasLength ? rewriter.getI64IntegerAttr(*length) : IntegerAttr(),
      scan.getReverse(), scan.getCheckpointEveryAttr());
  rewriter.inlineRegionBefore(scan.getBody(), result.getBody(),
                              result.getBody().begin());
  SmallVector<Value> replacements;
  auto next = result.getResults().begin();
  for (bool isNeeded : llvm::concat<const bool>(needed.states, needed.outputs))
    replacements.push_back(isNeeded ? Value(*next++) : Value());
  rewriter.replaceOp(scan, replacements);
}

LogicalResult ScanOp::canonicalize(ScanOp scan, PatternRewriter &rewriter) {
  bool changed = mergeArguments(scan, rewriter);
  Needed needed(scan);
  // A slice that tells the number of steps may stay without a reader.
  bool onlyCounts = scan.getXs().size() == 1 && !scan.getLength() &&
                    ShapedType::isDynamic(scan.getStepCount());
  bool isMinimal =
      !llvm::is_contained(needed.states, false) &&
      !llvm::is_contained(needed.outputs, false) &&
      (onlyCounts || llvm::all_of(llvm::seq<unsigned>(scan.getXs().size()),
                                  [&](unsigned i) { return needed.slice(i); }));
  if (isMinimal)
    return success(changed);
  dropRest(scan, needed, rewriter);
  return success();
}
