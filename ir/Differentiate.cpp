//===- Differentiate.cpp - the walk of reverse-mode derivatives -----------===//
#include "ir/Differentiate.h"

#include "ir/Ktn.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace keratin::ktn {

SmallVector<Value> valuesRead(Operation &op) {
  llvm::SetVector<Value> values(op.operand_begin(), op.operand_end());
  if (op.getNumRegions() > 0)
    getUsedValuesDefinedAbove(op.getRegions(), values);
  return values.takeVector();
}

/// Ops of the block before `end` whose value depends on one of `wrt`.
static SmallVector<Operation *> findActiveOps(Block &block, Block::iterator end,
                                              ValueRange wrt) {
  llvm::DenseSet<Value> active(wrt.begin(), wrt.end());
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::make_range(block.begin(), end)) {
    if (llvm::none_of(valuesRead(op),
                      [&](Value value) { return active.contains(value); }))
      continue;
    ops.push_back(&op);
    active.insert_range(op.getResults());
  }
  return ops;
}

namespace {
/// The sum of the cotangents that reached each value so far.
class Cotangents {
public:
  Cotangents(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void accumulate(Value value, Value term) {
    Value &sum = sums[value];
    sum = sum ? AddOp::create(b, loc, sum, term) : term;
  }
  Value lookup(Value value) const { return sums.lookup(value); }

private:
  OpBuilder &b;
  Location loc;
  llvm::DenseMap<Value, Value> sums;
};
} // namespace

/// Adds what the cotangents of the results of `op` give to those of its inputs.
static LogicalResult propagate(Operation *op, Location loc, OpBuilder &b,
                               Cotangents &cotangents) {
  SmallVector<Value> upstream;
  for (Value result : op->getResults())
    upstream.push_back(cotangents.lookup(result));
  if (llvm::none_of(upstream, [](Value value) { return bool(value); }))
    return success();

  auto rule = dyn_cast<VjpOpInterface>(op);
  if (!rule) {
    InFlightDiagnostic diag = op->emitOpError("has no gradient");
    diag.attachNote(loc) << "needed by this gradient";
    return diag;
  }
  SmallVector<Value> inputs = rule.getVjpInputs();
  SmallVector<Value> terms = rule.vjp(b, upstream);
  if (terms.size() != inputs.size())
    return failure(); // the rule said why
  for (auto [input, term] : llvm::zip_equal(inputs, terms))
    if (term)
      cotangents.accumulate(input, term);
  return success();
}

FailureOr<SmallVector<Value>> differentiate(OpBuilder &b, Location location,
                                            ValueRange targets,
                                            ValueRange seeds, ValueRange wrt) {
  // Copies: a rule may give the uses of a value to another one.
  SmallVector<Value> variables(wrt);
  Cotangents cotangents(b, location);
  SmallVector<Operation *> activeOps =
      findActiveOps(*b.getInsertionBlock(), b.getInsertionPoint(), variables);
  for (auto [target, seed] : llvm::zip_equal(targets, seeds))
    cotangents.accumulate(target, seed);
  for (Operation *op : llvm::reverse(activeOps))
    if (failed(propagate(op, location, b, cotangents)))
      return failure();
  return llvm::map_to_vector(
      variables, [&](Value variable) { return cotangents.lookup(variable); });
}

} // namespace keratin::ktn
