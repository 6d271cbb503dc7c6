//===- LaneReader.cpp - values of a kernel for some lanes -----------------===//
#include "codegen/cpu/LaneReader.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

std::optional<int64_t> laneStep(AffineExpr expr, unsigned lane) {
  if (!expr.isFunctionOfDim(lane))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add) {
    auto left = laneStep(binary.getLHS(), lane);
    auto right = laneStep(binary.getRHS(), lane);
    if (left && right)
      return *left + *right;
    return std::nullopt;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  auto step = laneStep(binary.getLHS(), lane);
  if (expr.getKind() == AffineExprKind::Mul && factor && step)
    return *step * factor.getValue();
  return std::nullopt;
}

/// Adds `factor` times `expr` to `terms`, which are loops, symbols and what is
/// not linear, and to `constant`.
static void flatten(AffineExpr expr, int64_t factor,
                    llvm::MapVector<AffineExpr, int64_t> &terms,
                    int64_t &constant) {
  if (auto known = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * known.getValue();
    return;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add) {
    flatten(binary.getLHS(), factor, terms, constant);
    flatten(binary.getRHS(), factor, terms, constant);
    return;
  }
  auto scale = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                      : AffineConstantExpr();
  if (expr.getKind() == AffineExprKind::Mul && scale)
    flatten(binary.getLHS(), factor * scale.getValue(), terms, constant);
  else
    terms[expr] += factor;
}

AffineExpr canonical(AffineExpr expr) {
  llvm::MapVector<AffineExpr, int64_t> terms;
  int64_t constant = 0;
  flatten(expr, 1, terms, constant);
  auto sorted = terms.takeVector();
  auto rank = [](AffineExpr term) -> unsigned {
    if (auto dim = dyn_cast<AffineDimExpr>(term))
      return dim.getPosition();
    if (auto symbol = dyn_cast<AffineSymbolExpr>(term))
      return (1u << 30) + symbol.getPosition();
    return ~0u;
  };
  llvm::sort(sorted, [&](const auto &left, const auto &right) {
    return rank(left.first) < rank(right.first);
  });
  AffineExpr sum = getAffineConstantExpr(0, expr.getContext());
  for (auto [term, factor] : sorted)
    sum = sum + term * factor;
  return sum + constant;
}

LaneAccess laneAccess(ShapedType type, ArrayRef<AffineExpr> position,
                      unsigned lane) {
  bool uniform = true, contiguous = true;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    std::optional<int64_t> step = laneStep(position[dim], lane);
    uniform &= step == 0;
    if (step != 0)
      contiguous &= step == 1 && stride == 1;
    // Beyond a dynamic extent nothing is known to be dense.
    stride = type.isDynamicDim(dim) ? 0 : stride * type.getDimSize(dim);
  }
  if (uniform)
    return LaneAccess::Uniform;
  return contiguous ? LaneAccess::Contiguous : LaneAccess::Gather;
}

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

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

void LaneReader::bind(unsigned dim, Value value) {
  if (coordinates.size() <= dim)
    coordinates.resize(dim + 1);
  coordinates[dim] = value;
}

AffineExpr LaneReader::symbol(Value value) {
  auto *known = llvm::find(symbols, value);
  unsigned number = known - symbols.begin();
  if (known == symbols.end())
    symbols.push_back(value);
  return getAffineSymbolExpr(number, b.getContext());
}

bool LaneReader::dependsOnLane(AffineExpr expr) const {
  return lane && expr.isFunctionOfDim(*lane);
}

/// `position` of the lane `number`.
Position LaneReader::atLane(ArrayRef<AffineExpr> position, unsigned number) {
  AffineExpr coordinate = getAffineDimExpr(*lane, b.getContext());
  Position result;
  for (AffineExpr expr : position)
    result.push_back(canonical(expr.replace(coordinate, coordinate + number)));
  return result;
}

Value LaneReader::at(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return kernel.index(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return coordinates[dim.getPosition()];
  if (auto known = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[known.getPosition()];
  for (const Memory &scope : llvm::reverse(scopes))
    if (Value known = scope.indices.lookup(expr))
      return known;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value value;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    value = arith::AddIOp::create(b, kernel.loc(), at(binary.getLHS()),
                                  at(binary.getRHS()));
    break;
  case AffineExprKind::Mul:
    value = arith::MulIOp::create(b, kernel.loc(), at(binary.getLHS()),
                                  at(binary.getRHS()));
    break;
  default:
    value =
        affine::expandAffineExpr(b, kernel.loc(), expr, coordinates, symbols);
  }
  scopes.back().indices[expr] = value;
  return value;
}

SmallVector<Value> LaneReader::at(ArrayRef<AffineExpr> position) {
  SmallVector<Value> values;
  for (AffineExpr expr : position)
    values.push_back(at(expr));
  return values;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LaneReader::Key LaneReader::key(Value tensor, ArrayRef<AffineExpr> position,
                                unsigned width) {
  // Maps are unique, so they serve as keys; their numbers only have to be
  // large enough.
  AffineMap map = AffineMap::get(1 << 10, 1 << 20, position, b.getContext());
  return {tensor, map, width};
}

void LaneReader::remember(Value tensor, ArrayRef<AffineExpr> position,
                          unsigned width, Lanes lanes) {
  scopes.back().lanes[key(tensor, position, width)] = lanes;
}

void LaneReader::setPacked(Value tensor, Value memref, unsigned dim,
                           Value number) {
  packed[tensor] = {memref, number, dim};
}

Lanes LaneReader::read(Value tensor, ArrayRef<AffineExpr> position,
                       unsigned width) {
  if (llvm::none_of(position,
                    [&](AffineExpr expr) { return dependsOnLane(expr); }))
    width = 0;
  Key place = key(tensor, position, width);
  for (const Memory &scope : llvm::reverse(scopes))
    if (Lanes known = scope.lanes.lookup(place))
      return known;
  if (isInvariant(tensor, position)) {
    Lanes lanes = loadAtTop(tensor, position);
    scopes.front().lanes[place] = lanes;
    return lanes;
  }
  Lanes lanes = compute(tensor, position, width);
  scopes.back().lanes[place] = lanes;
  return lanes;
}

/// Whether an element is the same for all of the kernel: a constant position
/// in an input, which no store of the kernel changes.
bool LaneReader::isInvariant(Value tensor, ArrayRef<AffineExpr> position) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  func::FuncOp from = kernel.from();
  return argument && !packed.contains(tensor) &&
         argument.getArgNumber() <
             from.getNumArguments() - from.getNumResults() &&
         llvm::all_of(position, llvm::IsaPred<AffineConstantExpr>);
}

Lanes LaneReader::loadAtTop(Value tensor, ArrayRef<AffineExpr> position) {
  SmallVector<Value> indices = at(position);
  OpBuilder::InsertionGuard guard(b);
  Block &entry = kernel.to().front();
  b.setInsertionPointToStart(&entry);
  for (Value index : indices)
    if (Operation *op = index.getDefiningOp();
        b.getInsertionPoint() == entry.begin() ||
        std::prev(b.getInsertionPoint())->isBeforeInBlock(op))
      b.setInsertionPointAfter(op);
  return {
      memref::LoadOp::create(b, kernel.loc(), kernel.memrefOf(tensor), indices),
      {}};
}

Lanes LaneReader::compute(Value tensor, ArrayRef<AffineExpr> position,
                          unsigned width) {
  if (auto known = packed.find(tensor); known != packed.end())
    return loadPacked(known->second, position, width);
  if (auto [memref, rows] = scratch.lookup(tensor); memref)
    return load(memref, position.drop_front(rows), width);
  if (Value memref = kernel.memrefOf(tensor))
    return load(memref, position, width);
  Operation *op = tensor.getDefiningOp();
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return {kernel.scalar(fill.getInputs()[0]), {}};
  if (isa<tensor::EmptyOp>(op)) // its values mean nothing, but they exist
    return {arith::ConstantOp::create(
                b, kernel.loc(), b.getZeroAttr(getElementTypeOrSelf(tensor))),
            {}};
  auto generic = cast<linalg::GenericOp>(op);
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  Position dims(generic.getNumLoops());
  AffineMap map =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(number));
  for (auto [expr, value] : llvm::zip_equal(map.getResults(), position))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      dims[dim.getPosition()] = value;
  SmallVector<Lanes> inits;
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    bool used = !generic.getMatchingBlockArgument(&init).use_empty();
    AffineMap place = generic.getMatchingIndexingMap(&init);
    Position composed;
    for (AffineExpr expr : place.getResults())
      composed.push_back(canonical(expr.replaceDims(dims)));
    inits.push_back(used ? read(init.get(), composed, width) : Lanes());
  }
  return evaluate(generic, dims, inits, width)[number];
}

/// LLVM packs vectors of i1 as bits, but a memref holds a byte for each.
Value LaneReader::bytes(Value memref) {
  Value &view = byteViews[memref];
  if (!view) {
    auto type = cast<MemRefType>(memref.getType());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(memref);
    view = UnrealizedConversionCastOp::create(
               b, kernel.loc(), MemRefType::get(type.getShape(), b.getI8Type()),
               memref)
               .getResult(0);
  }
  return view;
}

Value LaneReader::elements(ArrayRef<Value> values) {
  auto type = VectorType::get(values.size(), values[0].getType());
  return vector::FromElementsOp::create(b, kernel.loc(), type, values);
}

Value LaneReader::loadVector(Value memref, ValueRange position,
                             unsigned width) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get(width, element);
  if (!element.isInteger(1))
    return vector::LoadOp::create(b, kernel.loc(), type, memref, position);
  Value loaded = vector::LoadOp::create(
      b, kernel.loc(), type.clone(b.getI8Type()), bytes(memref), position);
  return arith::TruncIOp::create(b, kernel.loc(), type, loaded);
}

Lanes LaneReader::load(Value memref, ArrayRef<AffineExpr> position,
                       unsigned width) {
  auto type = cast<MemRefType>(memref.getType());
  if (width == 0)
    return {memref::LoadOp::create(b, kernel.loc(), memref, at(position)), {}};
  if (laneAccess(type, position, *lane) == LaneAccess::Contiguous)
    return {loadVector(memref, at(position), width), {}};
  SmallVector<Value> values;
  for (unsigned number = 0; number < width; ++number)
    values.push_back(memref::LoadOp::create(b, kernel.loc(), memref,
                                            at(atLane(position, number))));
  return {elements(values), {}};
}

/// The packed dimension is `lane + offset`, and the lane starts a block, so
/// the offset is the place in the block.
Lanes LaneReader::loadPacked(const Packed &packed,
                             ArrayRef<AffineExpr> position, unsigned width) {
  AffineExpr coordinate = getAffineDimExpr(*lane, b.getContext());
  SmallVector<Value> place = {packed.number};
  auto type = cast<MemRefType>(packed.memref.getType());
  for (auto [dim, expr] : llvm::enumerate(position))
    if (dim != packed.dim) // a panel has one position of the outer loops
      place.push_back(type.getDimSize(place.size()) == 1 ? kernel.index(0)
                                                         : at(expr));
  place.push_back(at(canonical(position[packed.dim] - coordinate)));
  if (width == 0)
    return {memref::LoadOp::create(b, kernel.loc(), packed.memref, place), {}};
  return {loadVector(packed.memref, place, width), {}};
}

void LaneReader::write(Lanes lanes, Value memref, ArrayRef<AffineExpr> position,
                       unsigned width) {
  auto type = cast<MemRefType>(memref.getType());
  Value value = materialize(lanes, width);
  if (width == 0) {
    memref::StoreOp::create(b, kernel.loc(), value, memref, at(position));
    return;
  }
  if (laneAccess(type, position, *lane) == LaneAccess::Contiguous) {
    if (type.getElementType().isInteger(1)) {
      auto wide = VectorType::get(width, b.getI8Type());
      value = arith::ExtUIOp::create(b, kernel.loc(), wide, value);
      memref = bytes(memref);
    }
    vector::StoreOp::create(b, kernel.loc(), value, memref, at(position));
    return;
  }
  for (unsigned number = 0; number < width; ++number) {
    Value element =
        vector::ExtractOp::create(b, kernel.loc(), value, int64_t(number));
    memref::StoreOp::create(b, kernel.loc(), element, memref,
                            at(atLane(position, number)));
  }
}

Value LaneReader::materialize(Lanes lanes, unsigned width) {
  Value value = lanes.value;
  if (!value)
    value = at(lanes.index);
  if (width == 0 || isa<VectorType>(value.getType()))
    return value;
  std::pair<Value, unsigned> place(value, width);
  std::optional<int64_t> step =
      lanes.index && lane ? laneStep(lanes.index, *lane) : 0;
  if (step == 0)
    for (const Memory &scope : llvm::reverse(scopes))
      if (Value known = scope.vectors.lookup(place))
        return known;
  auto type = VectorType::get(width, value.getType());
  if (!step) {
    SmallVector<Value> values;
    for (unsigned number = 0; number < width; ++number)
      values.push_back(at(atLane({lanes.index}, number))[0]);
    return elements(values);
  }
  Value result = vector::BroadcastOp::create(b, kernel.loc(), type, value);
  if (*step == 0) {
    scopes.back().vectors[place] = result;
    return result;
  }
  Value steps = vector::StepOp::create(b, kernel.loc(), type);
  if (*step != 1)
    steps =
        arith::MulIOp::create(b, kernel.loc(), steps,
                              vector::BroadcastOp::create(b, kernel.loc(), type,
                                                          kernel.index(*step)));
  return arith::AddIOp::create(b, kernel.loc(), result, steps);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

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
    Value result = inner.getResult(0);
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      values[result] = {{}, dims[index.getDim()]};
      continue;
    }
    if (APInt constant; result.getType().isIndex() &&
                        matchPattern(&inner, m_ConstantInt(&constant))) {
      values[result] = {
          {}, getAffineConstantExpr(constant.getSExtValue(), b.getContext())};
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Lanes> position;
      for (Value index : extract.getIndices())
        position.push_back(lookup(index));
      values[result] = this->extract(extract.getTensor(), position, width);
      continue;
    }
    SmallVector<Lanes> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(lookup(operand));
    if (std::optional<Lanes> index = indexArithmetic(inner, operands)) {
      values[result] = *index;
      continue;
    }
    bool vectors = llvm::any_of(operands, [&](const Lanes &lanes) {
      return lanes.index ? dependsOnLane(lanes.index)
                         : isa<VectorType>(lanes.value.getType());
    });
    unsigned lanes = vectors ? width : 0;
    IRMapping mapping;
    for (auto [operand, value] : llvm::zip_equal(inner.getOperands(), operands))
      mapping.map(operand, materialize(value, lanes));
    if (isa<arith::DivFOp>(inner) && lanes > 2 &&
        !isa<VectorType>(operands[1].value.getType())) {
      values[result] = {
          divide(mapping.lookup(inner.getOperand(0)), operands[1].value, lanes),
          {}};
      continue;
    }
    Operation *copy = b.clone(inner, mapping);
    if (lanes)
      copy->getResult(0).setType(VectorType::get(lanes, result.getType()));
    if (isFused(inner))
      copy->setAttr("fastmath",
                    arith::FastMathFlagsAttr::get(
                        b.getContext(), arith::FastMathFlags::contract));
    values[result] = {copy->getResult(0), {}};
  }
  SmallVector<Lanes> results;
  for (Value yielded : op.getBody()->getTerminator()->getOperands())
    results.push_back(lookup(yielded));
  return results;
}

} // namespace keratin
