//===- ScanVjp.cpp - the gradient of a loop is a loop ---------------------===//
#include "ir/Differentiate.h"
#include "ir/Vjp.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace keratin::ktn;

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

static void appendValid(SmallVectorImpl<Value> &to, ValueRange values) {
  llvm::copy_if(values, std::back_inserter(to),
                [](Value value) { return bool(value); });
}

//===----------------------------------------------------------------------===//
// What the loop passed
//===----------------------------------------------------------------------===//

/// The values of the body that `scan` stacks, and the stacks.
static llvm::MapVector<Value, Value> findStacks(ScanOp scan) {
  llvm::MapVector<Value, Value> stacks;
  for (auto [output, stack] :
       llvm::zip_equal(scan.getYieldedOutputs(), scan.getStackedOutputs()))
    if (output.getParentBlock() == &scan.getBody().front())
      stacks[output] = stack;
  return stacks;
}

/// What of the same shape is made of the product `value` alone, by sums: their
/// derivatives do not ask for it.
static Value followSums(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    auto sum = dyn_cast<StepSumOpInterface>(user);
    SmallVector<bool> all(user->getNumOperands(), true);
    if (!sum || !isa<ScalarBodyOpInterface>(user) || !sum.isAdditive(all) ||
        user->getResult(0).getType() != value.getType() ||
        user->getBlock() != value.getParentBlock())
      break;
    value = user->getResult(0);
  }
  return value;
}

/// A loop like `scan`, which loses its uses to it, that also stacks the states
/// before each step, and products, which take longest to compute again. `scan`
/// itself when it does so already.
static ScanOp keepValues(ScanOp scan) {
  llvm::MapVector<Value, Value> stacks = findStacks(scan);
  SmallVector<Value> more;
  auto keep = [&](Value value) {
    if (stacks.insert({value, Value()}).second)
      more.push_back(value);
  };
  for (Value state : scan.getStates())
    keep(state);
  for (Operation &op : scan.getBody().front().without_terminator())
    if (isa<LinearInKernelOpInterface>(op))
      keep(followSums(op.getResult(0)));
  if (more.empty())
    return scan;

  OpBuilder b(scan);
  auto body = std::make_unique<Region>();
  IRMapping mapping;
  scan.getBody().cloneInto(body.get(), mapping);
  auto yield = cast<YieldOp>(body->front().back());
  for (Value value : more)
    yield.getValuesMutable().append(mapping.lookup(value));
  FailureOr<ScanOp> result = ScanOp::createChecked(
      b, scan.getLoc(), scan.getXs(), scan.getInit(), scan.getLength(),
      scan.getReverse(), std::move(body));
  if (failed(result))
    return nullptr;
  scan->replaceAllUsesWith(
      result->getResults().take_front(scan->getNumResults()));
  return *result;
}

//===----------------------------------------------------------------------===//
// The loop back
//===----------------------------------------------------------------------===//

namespace {
/// With `(s[t + 1], y[t]) = f(x[t], s[t], c)`, c from outside: from the last
/// step to the first, (dx[t], ds[t], dc[t]) is the vjp of f at (x[t], s[t], c)
/// on (ds[t + 1], dy[t]). The results are all dx[t], the last ds, and the sum
/// of the dc[t].
class LoopBack {
public:
  LoopBack(ScanOp scan, ArrayRef<Value> cotangents)
      : scan(scan), stateSeeds(cotangents.take_front(scan.getInit().size())),
        outputSeeds(cotangents.drop_front(stateSeeds.size())),
        captured(scan.getCaptures()), loc(scan.getLoc()) {
    findCarried();
  }

  /// One cotangent for each value of `getVjpInputs`; none after an error.
  Values build(OpBuilder &b) {
    // Rules ask what is around the ops that they see: the body is made inside
    // of an op that is gone when it is complete.
    OperationState state(loc, ScanOp::getOperationName());
    block = &state.addRegion()->emplaceBlock();
    Operation *frame = b.create(state);
    takeOperands(b);
    FailureOr<Values> terms = buildStep();
    if (succeeded(terms))
      finishStep(*terms);
    auto body = std::make_unique<Region>();
    body->takeBody(frame->getRegion(0));
    frame->erase();
    if (failed(terms))
      return {};

    for (Value value : sums)
      init.push_back(createZerosLike(b, loc, value));
    FailureOr<ScanOp> back =
        ScanOp::createChecked(b, loc, xs, init, scan.getLength(),
                              !scan.getReverse(), std::move(body));
    if (failed(back))
      return {};
    return resultsOf(b, *back);
  }

private:
  /// A state carries a cotangent back when one arrives at it in some step:
  /// from the end, from an output, or from a state that carries one.
  void findCarried() {
    llvm::DenseSet<Value> reached;
    auto reach = [&](Value value) {
      return isFloatTensor(value) && reached.insert(value).second;
    };
    for (auto [output, seed] :
         llvm::zip_equal(scan.getYieldedOutputs(), outputSeeds))
      if (seed)
        reach(output);
    carried.resize(stateSeeds.size());
    for (auto [index, seed] : llvm::enumerate(stateSeeds))
      carried[index] = bool(seed);

    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = 0; i < carried.size(); ++i)
        if (carried[i])
          reach(scan.getYieldedStates()[i]);
      for (Operation &op :
           llvm::reverse(scan.getBody().front().without_terminator()))
        if (llvm::any_of(op.getResults(),
                         [&](Value v) { return reached.contains(v); }))
          for (Value value : valuesRead(op))
            reach(value);
      for (size_t i = 0; i < carried.size(); ++i)
        if (!carried[i] && reached.contains(scan.getStates()[i]))
          carried[i] = changed = true;
    }
  }

  Value addSlice(Value stack) {
    xs.push_back(stack);
    auto type = cast<RankedTensorType>(stack.getType());
    return block->insertArgument(xs.size() - 1,
                                 type.clone(type.getShape().drop_front()), loc);
  }

  /// The arguments of the body: all that a step of `scan` takes, and the
  /// cotangents of what it gives.
  void takeOperands(OpBuilder &b) {
    for (auto [slice, x] : llvm::zip_equal(scan.getSlices(), scan.getXs()))
      mapping.map(slice, addSlice(x));
    for (auto [value, stack] : findStacks(scan))
      (isa<BlockArgument>(value) ? mapping : kept).map(value, addSlice(stack));
    for (Value seed : outputSeeds)
      arriving.push_back(seed ? addSlice(seed) : Value());
    SmallVector<Value> states;
    for (auto [index, seed] : llvm::enumerate(stateSeeds)) {
      Value start = scan.getInit()[index];
      if (carried[index]) {
        init.push_back(seed ? sumLike(b, loc, seed, start)
                            : createZerosLike(b, loc, start));
        states.push_back(block->addArgument(start.getType(), loc));
      } else {
        states.push_back({});
      }
    }
    arriving.insert(arriving.begin(), states.begin(), states.end());
  }

  /// Does the step again and goes back through it: the cotangents of the
  /// slices, the states and what comes from outside, as far as they are floats.
  FailureOr<Values> buildStep() {
    OpBuilder b = OpBuilder::atBlockEnd(block);
    for (Operation &op : scan.getBody().front().without_terminator())
      b.clone(op, mapping);
    Values targets, seeds;
    for (auto [value, seed] : llvm::zip_equal(
             scan.getBody().front().getTerminator()->getOperands(), arriving))
      if (seed && isFloatTensor(value)) {
        targets.push_back(mapping.lookupOrDefault(value));
        seeds.push_back(seed);
      }
    Values wrt;
    for (Value value : scan.getBody().getArguments())
      wrt.push_back(mapping.lookup(value));
    llvm::append_range(wrt, captured);
    FailureOr<Values> terms = differentiate(b, loc, targets, seeds, wrt);
    if (failed(terms))
      return failure();
    for (auto [value, term] : llvm::zip_equal(wrt, *terms))
      term =
          term && isFloatTensor(value) ? sumLike(b, loc, term, value) : Value();
    return terms;
  }

  /// Yields the states, the sums so far, and the cotangents of the slices.
  void finishStep(ArrayRef<Value> terms) {
    OpBuilder b = OpBuilder::atBlockEnd(block);
    size_t sliceCount = scan.getXs().size();
    SmallVector<Value> yielded;
    for (auto [index, state] : llvm::enumerate(scan.getStates()))
      if (carried[index]) {
        Value term = terms[sliceCount + index];
        yielded.push_back(
            term ? term : createZerosLike(b, loc, mapping.lookup(state)));
      }
    for (auto [value, term] :
         llvm::zip_equal(captured, terms.take_back(captured.size())))
      if (term) {
        sums.push_back(value);
        Value sum = block->addArgument(value.getType(), loc);
        yielded.push_back(AddOp::create(b, loc, sum, term));
      }
    sliceTerms.assign(terms.begin(), terms.begin() + sliceCount);
    appendValid(yielded, sliceTerms);
    YieldOp::create(b, loc, yielded);
    // The walk had to go through the values that are kept.
    for (auto [value, slice] : kept.getValueMap())
      mapping.lookup(value).replaceAllUsesWith(slice);
  }

  Values resultsOf(OpBuilder &b, ScanOp back) {
    SmallVector<Value> states(back.getFinalStates());
    SmallVector<Value> stacks(back.getStackedOutputs());
    auto nextState = states.begin(), nextStack = stacks.begin();
    Values results;
    for (auto [x, term] : llvm::zip_equal(scan.getXs(), sliceTerms))
      results.push_back(term ? sumLike(b, loc, *nextStack++, x) : Value());
    for (size_t i = 0; i < carried.size(); ++i)
      results.push_back(carried[i] ? *nextState++ : Value());
    auto nextSum = sums.begin();
    for (Value value : captured) {
      bool hasSum = nextSum != sums.end() && *nextSum == value;
      results.push_back(hasSum ? *nextState++ : Value());
      nextSum += hasSum;
    }
    return results;
  }

  ScanOp scan;
  ArrayRef<Value> stateSeeds, outputSeeds;
  SmallVector<Value> captured;
  Location loc;
  /// The body of the loop back.
  Block *block = nullptr;
  /// Which states have a cotangent.
  SmallVector<bool> carried;
  /// From values of a step of `scan` to those of the same step in `block`.
  IRMapping mapping;
  /// From what an op of a step of `scan` gives to what is left of it.
  IRMapping kept;
  SmallVector<Value> xs, init;
  /// In the body, for each value that a step yields; null where there is none.
  SmallVector<Value> arriving;
  Values sliceTerms;
  /// The captured values that have a cotangent.
  SmallVector<Value> sums;
};
} // namespace

SmallVector<Value> ScanOp::getVjpInputs() {
  SmallVector<Value> inputs(getOperands());
  llvm::append_range(inputs, getCaptures());
  return inputs;
}

Values ScanOp::vjp(OpBuilder &b, ValueRange cotangents) {
  ScanOp scan = keepValues(*this);
  if (!scan)
    return {};
  // A result may be its own cotangent.
  SmallVector<Value> seeds;
  for (Value seed : cotangents)
    seeds.push_back(
        seed && seed.getDefiningOp() == getOperation()
            ? Value(scan->getResult(cast<OpResult>(seed).getResultNumber()))
            : seed);
  seeds.resize(scan->getNumResults()); // nobody else reads what is kept
  return LoopBack(scan, seeds).build(b);
}
