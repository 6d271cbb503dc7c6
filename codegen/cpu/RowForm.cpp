//===- RowForm.cpp - which kernels go row by row, and in which passes -----===//
#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/RowLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

/// Whether the loops of `op` beyond the rows are `extents`; those of a value
/// that there is one of in a row have one turn.
bool RowEmitter::hasExtents(linalg::GenericOp op, ArrayRef<int64_t> expected) {
  if (!expected.empty() && op.getNumLoops() != loops)
    return false;
  for (unsigned loop = rows; loop < op.getNumLoops(); ++loop)
    if (staticLoopExtent(op, loop) !=
        (expected.empty() ? 1 : expected[loop - rows]))
      return false;
  return true;
}

bool RowEmitter::isWhole(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  return op && !isReduction(op) && hasExtents(op, extents);
}

/// Whether `map` leads to the row that the first loops of `op` are at: those,
/// and zeros, or a loop of one turn of an op that is computed once a row.
bool RowEmitter::leadsToRow(linalg::GenericOp op, AffineMap map) {
  bool oncePerRow = hasExtents(op, {});
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool own =
        dim && (position < rows ? dim.getPosition() == position
                                : dim.getPosition() >= rows && oncePerRow);
    bool zero = position >= rows && isa<AffineConstantExpr>(expr);
    if (!own && !zero)
      return false;
  }
  return map.getNumResults() >= rows;
}

bool RowEmitter::fits(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !isVectorizable(op) ||
      op.getNumLoops() < rows)
    return false;
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
    if (!kernel.memrefOf(extract.getTensor()))
      return false;
  bool reduces = isReduction(op), whole = hasExtents(op, extents);
  if (!whole && (reduces || !hasExtents(op, {})))
    return false;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((type == utils::IteratorType::reduction) != (reduces && loop >= rows))
      return false;
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (reduces ? !leadsToRow(op, output) : !output.isIdentity())
    return false;
  // Values of the kernel are read in their own row.
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    Value value = input->get();
    if (!value.getDefiningOp<linalg::GenericOp>())
      return true;
    AffineMap map = op.getMatchingIndexingMap(input);
    if (block && value == block->given)
      return whole && map.isIdentity();
    return isWhole(value) ? whole && map.isIdentity() : leadsToRow(op, map);
  });
}

bool RowEmitter::matches() {
  for (linalg::GenericOp op : ops)
    if (isReduction(op) && !whole)
      whole = op;
  if (!whole)
    return false;
  rows = whole.getNumParallelLoops();
  loops = whole.getNumLoops();
  for (unsigned loop = rows; loop < loops; ++loop) {
    extents.push_back(staticLoopExtent(whole, loop));
    if (extents.back() <= 0) // nothing to read, or of unknown length
      return false;
  }
  // A row of one element and the values of a row are not to be told apart.
  if (llvm::all_of(extents, [](int64_t extent) { return extent == 1; }))
    return false;
  lanes = unit.bits / 16;
  for (linalg::GenericOp generic : ops) {
    if (!fits(generic))
      return false;
    lanes = std::min(lanes, lanesOf(generic->getResult(0), unit));
    // Without a way to join partial results there is one.
    if (isReduction(generic) && !Combiner::of(generic, 0))
      return false;
  }
  lanesAcross = lanes;
  lanes = std::min<uint64_t>(lanes, llvm::bit_floor(uint64_t(extents.back())));
  // Each is stored to one destination.
  llvm::SmallDenseSet<Value, 4> seen;
  return llvm::all_of(results, [&](Value result) {
    return result.getDefiningOp<linalg::GenericOp>() &&
           seen.insert(result).second;
  });
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void RowEmitter::forEachOperand(linalg::GenericOp op,
                                llvm::function_ref<void(Value)> visit) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getDefiningOp<linalg::GenericOp>() &&
        !op.getMatchingBlockArgument(&operand).use_empty())
      visit(operand.get());
}

/// Whether `value` can be computed from what earlier passes have left.
bool RowEmitter::isKnown(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value))
    return true;
  if (isReduction(op))
    return false;
  bool known = true;
  forEachOperand(op, [&](Value operand) { known &= isKnown(operand); });
  return known;
}

/// Whether an elementwise value is worth keeping when it is read again.
bool RowEmitter::isExpensive(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  return op && !isReduction(op) &&
         llvm::any_of(*op.getBody(), [](Operation &inner) {
           return isa<math::MathDialect>(inner.getDialect()) &&
                  !isa<math::AbsFOp, math::CopySignOp>(inner);
         });
}

bool RowEmitter::computesFunctions() {
  return llvm::any_of(ops, [&](linalg::GenericOp op) {
    return isWhole(op->getResult(0)) && isExpensive(op->getResult(0));
  });
}

bool RowEmitter::computesExpensive(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value) || !isWhole(value))
    return false;
  bool expensive = isExpensive(value);
  forEachOperand(
      op, [&](Value operand) { expensive |= computesExpensive(operand); });
  return expensive;
}

/// How often passes read the row `value`; a chain of elementwise ops is read
/// by each pass that reads its end.
unsigned RowEmitter::usesInRow(Value value) {
  unsigned uses = 0;
  for (OpOperand &use : value.getUses()) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!user || isReduction(user))
      ++uses;
    else if (!user.getMatchingBlockArgument(&use).use_empty())
      uses += usesInRow(user->getResult(0));
  }
  return uses;
}

/// The values under `value` that this pass is to keep.
void RowEmitter::collectStored(Value value, Pass &pass) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value) || isReduction(op) || !isWhole(value))
    return;
  forEachOperand(op, [&](Value operand) { collectStored(operand, pass); });
  if (isExpensive(value) && usesInRow(value) > 1)
    pass.stored.insert(value);
}

/// The next pass; false when all is done.
bool RowEmitter::nextPass(Pass &pass) {
  bool left = false;
  for (linalg::GenericOp op : ops) {
    if (!isReduction(op) || done.contains(op->getResult(0)))
      continue;
    left = true;
    bool known = true;
    forEachOperand(op, [&](Value operand) { known &= isKnown(operand); });
    if (known)
      pass.reductions.push_back(op);
  }
  bool expensive = false;
  for (linalg::GenericOp op : pass.reductions)
    forEachOperand(op, [&](Value operand) {
      expensive |= computesExpensive(operand);
      collectStored(operand, pass);
    });
  for (Value result : results)
    if (!left && isWhole(result) && !done.contains(result)) {
      collectStored(result, pass);
      pass.stored.insert(result);
    }
  pass.computesFunctions = expensive;
  return !pass.reductions.empty() || !pass.stored.empty();
}

void RowEmitter::planPasses() {
  llvm::DenseSet<Value> before = done;
  for (Pass pass; nextPass(pass); pass = Pass()) {
    pass.known = done;
    done.insert(pass.stored.begin(), pass.stored.end());
    for (linalg::GenericOp op : pass.reductions)
      done.insert(op->getResult(0));
    passes.push_back(std::move(pass));
  }
  end.known = std::move(done);
  done = std::move(before);
  staggers = canStagger();
  setSteps();
}

/// Whether one loop may go along a row with the last pass and along those
/// behind it with the others: a first cache has all of them, and a scratch row,
/// which is read right before the next one takes its place, goes no farther
/// than to the next pass.
bool RowEmitter::canStagger() {
  constexpr int64_t mostBytes = 8 << 10, fewRows = 8;
  constexpr size_t mostPasses = 4;
  // Shorter ones go as fast in groups; with 16 registers that is so of more.
  const int64_t fewVectors = unit.registers > 16 ? 8 : 32;
  int64_t vectors = llvm::divideCeil(llvm::product_of(extents), int64_t(lanes));
  if (block || rows == 0 || unit.littleCode || passes.size() < 2 ||
      passes.size() > mostPasses || vectors <= fewVectors ||
      vectors * unit.bits / 8 > mostBytes)
    return false;
  int64_t known = staticLoopExtent(whole, rowLoop());
  if (!ShapedType::isDynamic(known) && known < fewRows)
    return false;
  return llvm::all_of(ArrayRef(passes).drop_back(2),
                      [](const Pass &pass) { return pass.stored.empty(); });
}

/// What each turn of a pass reads of a row. Half of the registers hold the sums
/// of all rows of a group: of a row that is in none, too, for the order of its
/// sums is the same. Passes that go side by side have steps of one length, and
/// a quarter of the registers: the others have what is known of their rows.
void RowEmitter::setSteps() {
  constexpr uint64_t most = 4;
  auto vectors = llvm::divideCeil(uint64_t(length()), lanes);
  auto streamsFor = [&](size_t sums) {
    auto fitting = std::clamp<uint64_t>(
        unit.registers / 2 / std::max<size_t>(sums, 1), 1, most);
    return unsigned(std::clamp<uint64_t>(vectors, 1, llvm::bit_floor(fitting)));
  };
  // Long bodies hide the latency of the sums by themselves, and that of their
  // own chains where those of several vectors go side by side.
  unsigned chains = llvm::isPowerOf2_32(lanes)
                        ? std::clamp<uint64_t>(llvm::bit_floor(vectors), 1,
                                               unit.registers / 8)
                        : 1;
  size_t sums = 0;
  bool anyFunctions = false;
  for (const Pass &pass : passes) {
    sums += pass.reductions.size();
    anyFunctions |= pass.computesFunctions;
  }
  unsigned together = anyFunctions ? chains : streamsFor(2 * sums);
  for (Pass &pass : passes) {
    pass.width = pass.computesFunctions ? chains * lanes : lanes;
    pass.streams = pass.computesFunctions ? 1
                   : staggers
                       ? together
                       : streamsFor(rowsOfGroup() * pass.reductions.size());
  }
}

} // namespace keratin
