//===- RowSoftmax.cpp - softmax along rows, in linalg ---------------------===//
#include "ir/RowSoftmax.h"
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace keratin {

/// The operand of `op` that `value`, an argument of its body, stands for, if
/// that is an input.
static OpOperand *inputOf(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody())
    return nullptr;
  OpOperand *operand = op.getMatchingOpOperand(argument);
  return op.isDpsInput(operand) ? operand : nullptr;
}

/// The only input of `op` if it reduces that, element after element as it is,
/// by `joins`.
static OpOperand *reducedBy(linalg::GenericOp op,
                            llvm::function_ref<bool(Operation *)> joins) {
  if (!op || op.getNumReductionLoops() == 0 || op.getNumDpsInputs() != 1 ||
      op->getNumResults() != 1)
    return nullptr;
  Operation *join =
      op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  OpOperand *input = op.getDpsInputOperand(0);
  Value element = op.getMatchingBlockArgument(input);
  Value sum = op.getRegionOutputArgs()[0];
  bool isPair = join && joins(join) && join->getNumOperands() == 2 &&
                llvm::is_contained(join->getOperands(), element) &&
                llvm::is_contained(join->getOperands(), sum);
  return isPair ? input : nullptr;
}

static bool isElementwise(linalg::GenericOp op) {
  return op && op.getNumReductionLoops() == 0 && op->getNumResults() == 1 &&
         op.getIndexingMapMatchingResult(op->getOpResult(0)).isIdentity();
}

static bool readsInPlace(linalg::GenericOp op, OpOperand *operand) {
  return op.getMatchingIndexingMap(operand).isIdentity();
}

/// Whether what `op` yields is `value` times something, or zero: then it does
/// not matter when `value` is divided.
static bool yieldsMultiple(linalg::GenericOp op, Value value) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner();
    if (isa<linalg::YieldOp>(user))
      return true;
    auto select = dyn_cast<arith::SelectOp>(user);
    bool isKept =
        select && use.getOperandNumber() != 0 &&
        matchPattern(use.getOperandNumber() == 1 ? select.getFalseValue()
                                                 : select.getTrueValue(),
                     m_AnyZeroFloat());
    if (!isKept && !isa<arith::MulFOp, arith::NegFOp>(user))
      return false;
    value = user->getResult(0);
  }
  return false;
}

/// `weights`, `powers` and `total`.
static std::optional<RowSoftmax> quotientOf(linalg::GenericOp weights) {
  if (!isElementwise(weights))
    return std::nullopt;
  RowSoftmax softmax = {};
  softmax.weights = weights;
  for (auto quotient : weights.getBody()->getOps<arith::DivFOp>()) {
    OpOperand *divided = inputOf(weights, quotient.getLhs());
    OpOperand *divisor = inputOf(weights, quotient.getRhs());
    if (!divided || !divisor || !quotient.getLhs().hasOneUse() ||
        !quotient.getRhs().hasOneUse() || !readsInPlace(weights, divided) ||
        !yieldsMultiple(weights, quotient))
      continue;
    softmax.powers = divided->get().getDefiningOp<linalg::GenericOp>();
    softmax.total = divisor->get().getDefiningOp<linalg::GenericOp>();
    OpOperand *summed = reducedBy(softmax.total, llvm::IsaPred<arith::AddFOp>);
    if (!summed || summed->get() != divided->get() ||
        !readsInPlace(softmax.total, summed) || !startsFromZero(softmax.total))
      continue;
    softmax.divided = divided;
    softmax.divisor = divisor;
    softmax.quotient = quotient;
    return softmax;
  }
  return std::nullopt;
}

std::optional<RowSoftmax> rowSoftmaxOf(Value weights) {
  std::optional<RowSoftmax> softmax =
      quotientOf(weights.getDefiningOp<linalg::GenericOp>());
  if (!softmax || !isElementwise(softmax->powers))
    return std::nullopt;
  linalg::GenericOp powers = softmax->powers;
  Value yielded = powers.getBody()->getTerminator()->getOperand(0);
  auto power = yielded.getDefiningOp<math::ExpOp>();
  auto difference =
      power ? power.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
  OpOperand *given =
      difference ? inputOf(powers, difference.getLhs()) : nullptr;
  OpOperand *largest =
      difference ? inputOf(powers, difference.getRhs()) : nullptr;
  if (!given || !largest || given == largest || !readsInPlace(powers, given))
    return std::nullopt;
  softmax->given = given->get();
  softmax->subtracted = largest;
  softmax->largest = largest->get().getDefiningOp<linalg::GenericOp>();
  OpOperand *compared = reducedBy(
      softmax->largest, llvm::IsaPred<arith::MaximumFOp, arith::MaxNumFOp>);
  if (!compared || compared->get() != softmax->given ||
      !readsInPlace(softmax->largest, compared) ||
      !softmax->largest.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return std::nullopt;
  return softmax;
}

Value lastOfChain(Value value, SmallVectorImpl<linalg::GenericOp> &ops) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!isElementwise(op) || !op.isDpsInput(&use) || !readsInPlace(op, &use))
      break;
    ops.push_back(op);
    value = op->getResult(0);
  }
  return value;
}

} // namespace keratin
