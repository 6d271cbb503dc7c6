//===- LaneReader.cpp - values of a kernel for some lanes -----------------===//
#include "codegen/cpu/LaneReader.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

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
  unsigned along = width != 0 && lane ? *lane : 0;
  return {tensor, map, width, along};
}

void LaneReader::remember(Value tensor, ArrayRef<AffineExpr> position,
                          unsigned width, Lanes lanes) {
  scopes.back().lanes[key(tensor, position, width)] = lanes;
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
  return argument && !packed.contains(tensor) && !parts.contains(tensor) &&
         argument.getArgNumber() <
             from.getNumArguments() - from.getNumResults() &&
         llvm::all_of(position, llvm::IsaPred<AffineConstantExpr>);
}

Position LaneReader::Part::place(ArrayRef<AffineExpr> position) const {
  Position place;
  for (unsigned dim : dims)
    place.push_back(position[dim]);
  for (auto [index, origin] : llvm::zip(place, origins))
    index = canonical(index - origin);
  return place;
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
  if (auto known = parts.find(tensor); known != parts.end())
    return load(known->second.memref, known->second.place(position), width);
  if (Value memref = kernel.memrefOf(tensor))
    return load(memref, position, width);
  Operation *op = tensor.getDefiningOp();
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return {kernel.scalar(fill.getInputs()[0]), {}};
  if (isa<tensor::EmptyOp>(op)) // its values mean nothing, but they exist
    return {arith::ConstantOp::create(
                b, kernel.loc(), b.getZeroAttr(getElementTypeOrSelf(tensor))),
            {}};
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return readAround(pad, position, width);
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
  SmallVector<Lanes> results = evaluate(generic, dims, inits, width);
  for (auto [result, lanes] : llvm::zip_equal(generic->getResults(), results)) {
    Position place;
    AffineMap resultMap = generic.getIndexingMapMatchingResult(result);
    for (AffineExpr expr : resultMap.getResults())
      place.push_back(canonical(expr.replaceDims(dims)));
    remember(result, place, width, lanes);
  }
  return results[number];
}

/// The values that a sum of multiples of coordinates and a constant may have.
LaneReader::Range LaneReader::rangeOf(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::pair(constant.getValue(), constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ranges.lookup(dim.getPosition());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  Range left = rangeOf(binary.getLHS()), right = rangeOf(binary.getRHS());
  if (!left || !right)
    return std::nullopt;
  auto [low, high] = *left;
  if (expr.getKind() == AffineExprKind::Add)
    return std::pair(low + right->first, high + right->second);
  if (expr.getKind() != AffineExprKind::Mul || right->first != right->second)
    return std::nullopt;
  int64_t factor = right->first;
  return std::pair(std::min(low * factor, high * factor),
                   std::max(low * factor, high * factor));
}

/// Elements of what `pad` is around, and its border. Where a position may be in
/// either, the element that is nearest to it is read first.
Lanes LaneReader::readAround(tensor::PadOp pad, ArrayRef<AffineExpr> position,
                             unsigned width) {
  Lanes border = {kernel.scalar(pad.getConstantPaddingValue()), {}};
  ArrayRef<int64_t> low = pad.getStaticLow(), high = pad.getStaticHigh();
  for (auto [expr, before, behind] : llvm::zip_equal(position, low, high))
    if (width != 0 && (before != 0 || behind != 0) && dependsOnLane(expr)) {
      SmallVector<Value> values;
      for (unsigned number = 0; number < width; ++number)
        values.push_back(
            materialize(readAround(pad, atLane(position, number), 0), 0));
      return {elements(values), {}};
    }

  Position place;
  Value isInside;
  for (auto [dim, expr] : llvm::enumerate(position)) {
    place.push_back(expr);
    if (low[dim] == 0 && high[dim] == 0)
      continue;
    int64_t last = pad.getSourceType().getDimSize(dim) - 1;
    AffineExpr index = canonical(expr - low[dim]);
    Range range = rangeOf(index);
    if (range && (range->second < 0 || range->first > last)) {
      border.isBorder = true;
      return border;
    }
    place.back() = index;
    if (range && range->first >= 0 && range->second <= last)
      continue;
    Location loc = kernel.loc();
    Value at = this->at(index);
    Value nearest = arith::MinSIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, at, kernel.index(0)),
        kernel.index(last));
    Value isSame =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at, nearest);
    isInside =
        isInside ? arith::AndIOp::create(b, loc, isInside, isSame) : isSame;
    place.back() = symbol(nearest);
  }
  Lanes lanes = read(pad.getSource(), place, width);
  if (!isInside)
    return lanes;
  return {arith::SelectOp::create(b, kernel.loc(), isInside,
                                  materialize(lanes, width),
                                  materialize(border, width)),
          {}};
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
  auto type = VectorType::get(int64_t(values.size()), values[0].getType());
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
  if (Lanes repeated = loadRepeated(memref, position, width))
    return repeated;
  SmallVector<Value> values;
  for (unsigned number = 0; number < width; ++number)
    values.push_back(memref::LoadOp::create(b, kernel.loc(), memref,
                                            at(atLane(position, number))));
  return {elements(values), {}};
}

/// Whether `value` is known to be a multiple of `factor`.
static bool isMultiple(Value value, int64_t factor) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return *known % factor == 0;
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && (isMultiple(product.getLhs(), factor) ||
                     isMultiple(product.getRhs(), factor));
}

/// An expression without the constant that is added to it, and that.
static std::pair<AffineExpr, int64_t> withoutConstant(AffineExpr expr) {
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (sum && sum.getKind() == AffineExprKind::Add)
    if (auto added = dyn_cast<AffineConstantExpr>(sum.getRHS()))
      return {sum.getLHS(), added.getValue()};
  return {expr, 0};
}

/// An expression without the constant that it is multiplied by, and that.
static std::pair<AffineExpr, int64_t> withoutFactor(AffineExpr expr) {
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (product && product.getKind() == AffineExprKind::Mul)
    if (auto factor = dyn_cast<AffineConstantExpr>(product.getRHS()))
      return {product.getLHS(), factor.getValue()};
  return {expr, 1};
}

/// What is read at the quotient of the lane and a constant: so many lanes read
/// one element, and the next ones its neighbour, or in steps of `factor` what
/// is so far behind. Null where that is not so, or where the first lane does
/// not begin such a run or a part of it.
Lanes LaneReader::loadRepeated(Value memref, ArrayRef<AffineExpr> position,
                               unsigned width) {
  if (position.empty())
    return {};
  auto [scaled, added] = withoutConstant(position.back());
  auto [term, factor] = withoutFactor(scaled);
  auto quotient = dyn_cast<AffineBinaryOpExpr>(term);
  if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv || factor < 1)
    return {};
  auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
  auto [first, offset] = withoutConstant(quotient.getLHS());
  Position elements(position);
  elements.back() = first;
  if (!divisor || first != getAffineDimExpr(*lane, b.getContext()) ||
      laneAccess(cast<MemRefType>(memref.getType()), elements, *lane) !=
          LaneAccess::Contiguous)
    return {};
  int64_t times = std::min<int64_t>(divisor.getValue(), width);
  if (width % times != 0 || divisor.getValue() % times != 0 ||
      offset % times != 0 || !isMultiple(coordinates[*lane], times))
    return {};
  if (times == width)
    return {memref::LoadOp::create(b, kernel.loc(), memref, at(position)), {}};
  // Whole steps, as they are in memory.
  int64_t inStep = llvm::mod(added, factor), steps = width / times;
  int64_t last = cast<MemRefType>(memref.getType()).getShape().back();
  if (factor != 1 &&
      (factor > times || ShapedType::isDynamic(last) || last % factor != 0))
    return {};
  elements.back() = position.back() - inStep;
  Value few = loadVector(memref, at(elements), unsigned(steps * factor));
  SmallVector<int64_t> numbers;
  for (unsigned number = 0; number < width; ++number)
    numbers.push_back(number / times * factor + inStep);
  return {vector::ShuffleOp::create(b, kernel.loc(), few, few, numbers), {}};
}

/// The packed dimension is `lane + offset`, and the lane starts a block, so
/// the offset is the place in the block, or in one of those behind it.
SmallVector<Value> LaneReader::placeOf(const Packed &packed,
                                       ArrayRef<AffineExpr> position) {
  AffineExpr coordinate = getAffineDimExpr(*lane, b.getContext());
  unsigned blocked = packed.packing.dim;
  auto type = cast<MemRefType>(packed.memref.getType());
  SmallVector<Value> place;
  auto add = [&](unsigned dim) {
    if (type.getDimSize(place.size()) == 1) {
      place.push_back(kernel.index(0));
      return;
    }
    Value value = at(position[dim]);
    if (!packed.starts.empty() && packed.starts[dim])
      value = arith::SubIOp::create(b, kernel.loc(), value, packed.starts[dim]);
    place.push_back(value);
  };
  for (int64_t dim : packed.packing.outer)
    add(dim);
  AffineExpr offset = canonical(position[blocked] - coordinate);
  Value number = packed.number;
  if (auto known = dyn_cast<AffineConstantExpr>(offset);
      known && known.getValue() >= packed.packing.block) {
    int64_t block = packed.packing.block;
    number = kernel.plus(number, kernel.index(known.getValue() / block));
    offset = getAffineConstantExpr(known.getValue() % block, b.getContext());
  }
  place.push_back(number);
  for (unsigned dim = 0; dim < position.size(); ++dim)
    if (dim != blocked && !llvm::is_contained(packed.packing.outer, dim))
      add(dim);
  place.push_back(at(offset));
  return place;
}

Lanes LaneReader::loadPacked(const Packed &packed,
                             ArrayRef<AffineExpr> position, unsigned width) {
  SmallVector<Value> place = placeOf(packed, position);
  if (packed.packing.interleaved)
    return {loadHalf(packed, place, width), {}};
  if (width == 0)
    return {memref::LoadOp::create(b, kernel.loc(), packed.memref, place), {}};
  return {loadVector(packed.memref, place, width), {}};
}

/// The first or the second half of an interleaved block of bf16, of `width`
/// elements each, as f32; `place` is where it begins.
Value LaneReader::loadHalf(const Packed &packed, SmallVector<Value> place,
                           unsigned width) {
  Location loc = kernel.loc();
  bool isSecond = getConstantIntValue(place.back()) != 0;
  place.back() = kernel.index(0);
  Value both =
      vector::BitCastOp::create(b, loc, VectorType::get(width, b.getI32Type()),
                                loadVector(packed.memref, place, 2 * width));
  auto constant = [&](uint32_t bits) -> Value {
    auto type = cast<VectorType>(both.getType());
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, APInt(32, bits)));
  };
  Value bits =
      isSecond ? arith::AndIOp::create(b, loc, both, constant(0xffff0000))
                     .getResult()
               : arith::ShLIOp::create(b, loc, both, constant(16)).getResult();
  return arith::BitcastOp::create(b, loc,
                                  VectorType::get(width, b.getF32Type()), bits);
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

int64_t bytesOfElement(MemRefType type) {
  Type element = type.getElementType();
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() / 8 : 0;
}

void LaneReader::prefetch(Value memref, ArrayRef<AffineExpr> position,
                          unsigned ahead, unsigned width, bool isWrite,
                          unsigned locality) {
  constexpr unsigned line = 64;
  int64_t bytes = bytesOfElement(cast<MemRefType>(memref.getType()));
  auto ofLine = unsigned(line / bytes);
  for (unsigned number = 0; number < width; number += ofLine)
    memref::PrefetchOp::create(b, kernel.loc(), memref,
                               at(atLane(position, ahead + number)), isWrite,
                               locality, /*isDataCache=*/true);
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

AffineExpr numberOfTurn(linalg::GenericOp root, ArrayRef<unsigned> loops,
                        ArrayRef<AffineExpr> point) {
  AffineExpr number = getAffineConstantExpr(0, root.getContext());
  for (unsigned loop : loops)
    number = number * staticLoopExtent(root, loop) + point[loop];
  return number;
}

void emitTurns(Kernel &kernel, LaneReader &reader, Value from, Value to,
               int64_t step, llvm::function_ref<void(Value)> body) {
  LaneReader::Scope scope(reader);
  emitTurns(kernel, from, to, step, body);
}

} // namespace keratin
