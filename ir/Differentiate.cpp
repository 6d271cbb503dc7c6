//===- Differentiate.cpp - the walk of reverse-mode derivatives -----------===//
#include "ir/Differentiate.h"

#include "ir/Ktn.h"

#include "mlir/IR/Matchers.h"
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

/// The one axis along which `pad` adds zeros to a known extent; nothing for
/// another pad.
static std::optional<size_t> zeroPaddedAxis(PadOp pad) {
  if (!pad || !(matchPattern(pad.getValue(), m_AnyZeroFloat()) ||
                matchPattern(pad.getValue(), m_Zero())))
    return std::nullopt;
  std::optional<size_t> axis;
  for (auto [index, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (axis || pad.getX().getType().isDynamicDim(index))
      return std::nullopt;
    axis = index;
  }
  return axis;
}

/// left + right where each is zero but for a part of one axis, and the parts
/// are neighbours, as what the gates of a recurrent step were sliced from; null
/// for others.
static Value joinParts(OpBuilder &b, Location loc, Value left, Value right) {
  auto first = left.getDefiningOp<PadOp>();
  auto second = right.getDefiningOp<PadOp>();
  std::optional<size_t> axis = zeroPaddedAxis(first);
  if (!axis || zeroPaddedAxis(second) != axis ||
      first.getType() != second.getType())
    return {};
  if (second.getLow()[*axis] < first.getLow()[*axis])
    std::swap(first, second);
  if (first.getLow()[*axis] + first.getX().getType().getDimSize(*axis) !=
      second.getLow()[*axis])
    return {};
  SmallVector<Value> parts;
  for (Value part : {first.getX(), second.getX()}) {
    auto joined = part.getDefiningOp<ConcatOp>();
    if (joined && joined.getAxis() == int64_t(*axis))
      llvm::append_range(parts, joined.getXs());
    else
      parts.push_back(part);
  }
  Value whole = ConcatOp::create(b, loc, parts, int64_t(*axis));
  SmallVector<int64_t> low(first.getLow()), high(second.getHigh());
  if (low[*axis] == 0 && high[*axis] == 0)
    return whole;
  return PadOp::create(b, loc, whole, low, high, first.getValue());
}

namespace {
/// The sum of the cotangents that reached each value so far.
class Cotangents {
public:
  Cotangents(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  void accumulate(Value value, Value term) {
    Value &sum = sums[value];
    if (!sum)
      sum = term;
    else if (Value joined = joinParts(b, loc, sum, term))
      sum = joined;
    else
      sum = AddOp::create(b, loc, sum, term);
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
