//===- LaneBodies.cpp - bodies of linalg ops on lanes ---------------------===//
#include "codegen/cpu/LaneReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

bool isVectorizable(linalg::GenericOp op) {
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa<linalg::IndexOp, arith::ConstantOp>(inner))
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      if (extract.getTensor().getParentBlock() == op->getBlock() ||
          isa<BlockArgument>(extract.getTensor()))
        continue;
      return false;
    }
    if (inner.getNumRegions() != 0 || inner.getNumResults() != 1 ||
        !OpTrait::hasElementwiseMappableTraits(&inner))
      return false;
  }
  return true;
}

/// Whether `op` is a product whose only use is a sum: they become one fused
/// operation where the target has it.
static bool isAddedProduct(Operation *op) {
  return op && isa<arith::MulFOp>(op) && op->hasOneUse() &&
         isa<arith::AddFOp>(*op->user_begin()) &&
         op->getBlock() == op->user_begin()->getBlock();
}

static bool isFused(Operation &op) {
  return isAddedProduct(&op) ||
         (isa<arith::AddFOp>(op) &&
          llvm::any_of(op.getOperands(), [](Value operand) {
            return isAddedProduct(operand.getDefiningOp());
          }));
}

/// What a product with the zeros around an image leaves of a window's sum that
/// it is added to: all of it. Other zeros may meet what is infinite.
std::optional<Lanes> LaneReader::withoutZero(Operation &op,
                                             ArrayRef<Lanes> operands) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getParentOp());
  if (!generic || generic.getNumReductionLoops() == 0 || !isFused(op))
    return std::nullopt;
  for (auto [number, lanes] : llvm::enumerate(operands))
    if (lanes.isBorder && matchPattern(lanes.value, m_AnyZeroFloat()))
      return isa<arith::AddFOp>(op) ? operands[1 - number] : lanes;
  return std::nullopt;
}

/// Sums and products of known indices stay known.
std::optional<Lanes> LaneReader::indexArithmetic(Operation &op,
                                                 ArrayRef<Lanes> operands) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isIndex() ||
      !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  AffineExpr sides[2];
  for (auto [side, operand] : llvm::zip_equal(sides, operands)) {
    side = operand.index;
    if (!side && !isa<VectorType>(operand.value.getType()))
      side = symbol(operand.value);
    if (!side)
      return std::nullopt;
  }
  if (isa<arith::AddIOp>(op))
    return Lanes{{}, sides[0] + sides[1]};
  if (isa<arith::SubIOp>(op))
    return Lanes{{}, sides[0] - sides[1]};
  if (isa<AffineConstantExpr>(sides[0]) || isa<AffineConstantExpr>(sides[1]))
    return Lanes{{}, sides[0] * sides[1]};
  return std::nullopt;
}

/// Whether what is at `position` of `tensor` is to be asked for, not read.
bool LaneReader::isAskedFor(Value tensor, ArrayRef<AffineExpr> position) {
  auto type = cast<MemRefType>(kernel.memrefOf(tensor).getType());
  int64_t bytes = bytesOfElement(type);
  return bytes != 0 && type.hasStaticShape() &&
         type.getNumElements() >= asked->leastBytes / bytes &&
         laneAccess(type, position, *lane) == LaneAccess::Contiguous;
}

void LaneReader::askForExtracted(Value tensor, ArrayRef<AffineExpr> position,
                                 unsigned width, int64_t leastBytes) {
  Scope scope(*this);
  asked = {width, leastBytes};
  read(tensor, position, /*width=*/0);
  asked.reset();
}

/// Element of `tensor` at computed indices: a read when all are known, else
/// lane by lane.
Lanes LaneReader::extract(Value tensor, ArrayRef<Lanes> position,
                          unsigned width) {
  Position known;
  for (const Lanes &at : position) {
    if (at.index)
      known.push_back(at.index);
    else if (!isa<VectorType>(at.value.getType()))
      known.push_back(symbol(at.value));
  }
  if (known.size() == position.size() && asked && isAskedFor(tensor, known)) {
    prefetch(kernel.memrefOf(tensor), known, /*ahead=*/0, asked->width,
             /*isWrite=*/false, /*locality=*/2);
    Type element = getElementTypeOrSelf(tensor);
    return {arith::ConstantOp::create(b, kernel.loc(), b.getZeroAttr(element)),
            {}};
  }
  if (known.size() == position.size())
    return read(tensor, known, width);
  SmallVector<Value> values;
  for (unsigned number = 0; number < width; ++number) {
    Position place;
    for (const Lanes &at : position) {
      if (at.index)
        place.push_back(atLane({at.index}, number)[0]);
      else if (isa<VectorType>(at.value.getType()))
        place.push_back(symbol(vector::ExtractOp::create(
            b, kernel.loc(), at.value, int64_t(number))));
      else
        place.push_back(symbol(at.value));
    }
    values.push_back(materialize(read(tensor, place, 0), 0));
  }
  return {elements(values), {}};
}

/// A vector divided by one number: by its reciprocal, which is computed once.
/// The reciprocal of a number that is very small or large may not be a normal
/// number, so then both sides are scaled by a power of two first.
Value LaneReader::divide(Value vector, Value divisor, unsigned width) {
  Location loc = kernel.loc();
  std::pair<Value, unsigned> place(divisor, width);
  std::pair<Value, Value> factors;
  for (const Memory &scope : llvm::reverse(scopes))
    if (auto known = scope.reciprocals.lookup(place); known.first)
      factors = known;
  if (!factors.first) {
    auto type = cast<FloatType>(divisor.getType());
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    int far = APFloat::semanticsMaxExponent(semantics) / 2;
    auto power = [&](int exponent) -> Value {
      APFloat value = scalbn(APFloat::getOne(semantics), exponent,
                             APFloat::rmNearestTiesToEven);
      return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
    };
    Value size = math::AbsFOp::create(b, loc, divisor);
    Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                          size, power(-far));
    Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                          size, power(far));
    Value scale =
        arith::SelectOp::create(b, loc, isLarge, power(-far), power(0));
    scale = arith::SelectOp::create(b, loc, isSmall, power(far), scale);
    Value scaled = arith::MulFOp::create(b, loc, divisor, scale);
    Value reciprocal = arith::DivFOp::create(b, loc, power(0), scaled);
    factors = {materialize({scale, {}}, width),
               materialize({reciprocal, {}}, width)};
    scopes.back().reciprocals[place] = factors;
  }
  Value scaled = arith::MulFOp::create(b, loc, vector, factors.first);
  return arith::MulFOp::create(b, loc, scaled, factors.second);
}

bool LaneReader::isVector(const Lanes &lanes) const {
  return lanes.index ? dependsOnLane(lanes.index)
                     : isa<VectorType>(lanes.value.getType());
}

/// One op of a body: on vectors when an operand is one.
Lanes LaneReader::compute(Operation &op, ArrayRef<Lanes> operands,
                          unsigned width) {
  Type type = op.getResult(0).getType();
  if (APInt constant;
      type.isIndex() && matchPattern(&op, m_ConstantInt(&constant)))
    return {{}, getAffineConstantExpr(constant.getSExtValue(), b.getContext())};
  if (std::optional<Lanes> index = indexArithmetic(op, operands))
    return *index;
  if (std::optional<Lanes> rest = withoutZero(op, operands))
    return *rest;
  if (llvm::none_of(operands,
                    [&](const Lanes &lanes) { return isVector(lanes); }))
    width = 0;
  if (isa<arith::DivFOp>(op) && width > 2 && !isVector(operands[1]))
    return {divide(materialize(operands[0], width), operands[1].value, width),
            {}};
  // A panel may hold it as wide already.
  if (isa<arith::ExtFOp>(op) && operands[0].value &&
      getElementTypeOrSelf(operands[0].value) == type)
    return operands[0];
  IRMapping mapping;
  for (auto [operand, lanes] : llvm::zip_equal(op.getOperands(), operands))
    mapping.map(operand, materialize(lanes, width));
  Operation *copy = b.clone(op, mapping);
  if (width != 0)
    copy->getResult(0).setType(VectorType::get(width, type));
  if (isFused(op))
    copy->setAttr("fastmath",
                  arith::FastMathFlagsAttr::get(
                      b.getContext(), arith::FastMathFlags::contract));
  return {copy->getResult(0), {}};
}

SmallVector<Lanes> LaneReader::evaluate(linalg::GenericOp op,
                                        ArrayRef<AffineExpr> dims,
                                        ArrayRef<Lanes> sums, unsigned width) {
  llvm::DenseMap<Value, Lanes> values;
  auto lookup = [&](Value value) {
    if (auto known = values.find(value); known != values.end())
      return known->second;
    return Lanes{kernel.scalar(value), {}};
  };
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (argument.use_empty())
      continue;
    if (!isa<TensorType>(input->get().getType())) {
      values[argument] = {kernel.scalar(input->get()), {}};
      continue;
    }
    Position position;
    for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults())
      position.push_back(canonical(expr.replaceDims(dims)));
    values[argument] = read(input->get(), position, width);
  }
  for (auto [argument, sum] : llvm::zip_equal(op.getRegionOutputArgs(), sums))
    values[argument] = sum;

  for (Operation &inner : op.getBody()->without_terminator()) {
    Lanes &result = values[inner.getResult(0)];
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      result = {{}, dims[index.getDim()]};
      continue;
    }
    SmallVector<Lanes> operands;
    auto element = dyn_cast<tensor::ExtractOp>(inner);
    for (Value operand : element ? ValueRange(element.getIndices())
                                 : ValueRange(inner.getOperands()))
      operands.push_back(lookup(operand));
    result = element ? extract(element.getTensor(), operands, width)
                     : compute(inner, operands, width);
  }
  SmallVector<Lanes> results;
  for (Value yielded : op.getBody()->getTerminator()->getOperands())
    results.push_back(lookup(yielded));
  return results;
}

} // namespace keratin
