//===- Lower.cpp - what the lowerings to linalg share ---------------------===//
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace keratin::lower {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The value whose size along the same axis is that of `value`; null when there
/// is none.
static Value sourceOfSize(Value value, int64_t axis) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto styled = dyn_cast<DestinationStyleOpInterface>(op))
    return styled.getTiedOpOperand(cast<OpResult>(value))->get();
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return cast.getSource();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    if (static_cast<int64_t>(concat.getDim()) != axis)
      return concat.getInputs().front();
  return {};
}

OpFoldResult sizeOf(OpBuilder &b, Location loc, Value value, int64_t axis) {
  while (tensorType(value).isDynamicDim(axis)) {
    Value source = sourceOfSize(value, axis);
    if (!source)
      break;
    value = source;
  }
  if (!tensorType(value).isDynamicDim(axis))
    return b.getIndexAttr(tensorType(value).getDimSize(axis));
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes()[axis];
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>())
    return expand.getMixedOutputShape()[axis];
  if (auto pad = value.getDefiningOp<tensor::PadOp>()) {
    int64_t low = pad.getStaticLow()[axis], high = pad.getStaticHigh()[axis];
    if (!ShapedType::isDynamic(low) && !ShapedType::isDynamic(high))
      return applySize(b, loc, b.getAffineSymbolExpr(0) + (low + high),
                       {sizeOf(b, loc, pad.getSource(), axis)});
  }
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    AffineExpr product = b.getAffineConstantExpr(1);
    SmallVector<OpFoldResult> sizes;
    ReassociationIndices parts = collapse.getReassociationIndices()[axis];
    for (int64_t part : parts) {
      product = product * b.getAffineSymbolExpr(sizes.size());
      sizes.push_back(sizeOf(b, loc, collapse.getSrc(), part));
    }
    if (llvm::count_if(sizes, llvm::IsaPred<Value>) == 1)
      return applySize(b, loc, product, sizes);
  }
  return tensor::getMixedSize(b, loc, value, axis);
}

SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Location loc, Value value) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t axis = 0; axis < tensorType(value).getRank(); ++axis)
    sizes.push_back(sizeOf(b, loc, value, axis));
  return sizes;
}

SmallVector<OpFoldResult> broadcastSizes(OpBuilder &b, Location loc,
                                         RankedTensorType type,
                                         ValueRange operands) {
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), type.getShape());
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    if (!type.isDynamicDim(axis))
      continue;
    for (Value operand : operands) {
      int64_t own = axis - type.getRank() + tensorType(operand).getRank();
      if (own < 0 || !tensorType(operand).isDynamicDim(own))
        continue;
      sizes[axis] = sizeOf(b, loc, operand, own);
      break;
    }
  }
  return sizes;
}

OpFoldResult applySize(OpBuilder &b, Location loc, AffineExpr expr,
                       ArrayRef<OpFoldResult> sizes) {
  AffineMap map = AffineMap::get(0, sizes.size(), expr);
  return affine::makeComposedFoldedAffineApply(b, loc, map, sizes);
}

SmallVector<OpFoldResult> sizesFromShape(OpBuilder &b, Location loc,
                                         RankedTensorType type, Value shape) {
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), type.getShape());
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    if (!type.isDynamicDim(axis))
      continue;
    Value position = arith::ConstantIndexOp::create(b, loc, axis);
    Value extent = tensor::ExtractOp::create(b, loc, shape, position);
    size = arith::IndexCastOp::create(b, loc, b.getIndexType(), extent)
               .getResult();
  }
  return sizes;
}

Value emptyTensor(OpBuilder &b, Location loc, RankedTensorType type,
                  ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamicSizes;
  for (auto [extent, size] : llvm::zip_equal(type.getShape(), sizes))
    if (ShapedType::isDynamic(extent))
      dynamicSizes.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
  return tensor::EmptyOp::create(b, loc, type, dynamicSizes);
}

Value filledTensor(OpBuilder &b, Location loc, RankedTensorType type,
                   ArrayRef<OpFoldResult> sizes, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(b, loc, signless(value));
  Value empty = emptyTensor(b, loc, type, sizes);
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

TypedAttr signless(TypedAttr value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer || !isa<IntegerType>(integer.getType()) ||
      integer.getType().isSignlessInteger())
    return value;
  auto type = IntegerType::get(value.getContext(),
                               integer.getType().getIntOrFloatBitWidth());
  return IntegerAttr::get(type, integer.getValue());
}

TypedAttr elementAttr(Type type, double value) {
  if (isa<FloatType>(type))
    return FloatAttr::get(type, value);
  return IntegerAttr::get(type, static_cast<int64_t>(value));
}

TypedAttr lowestElement(Type type, bool isUnsigned) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(type, APFloat::getInf(floatType.getFloatSemantics(),
                                                /*Negative=*/true));
  unsigned width = type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, isUnsigned ? APInt::getMinValue(width)
                                           : APInt::getSignedMinValue(width));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

AffineMap broadcastMap(OpBuilder &b, ArrayRef<int64_t> shape,
                       ArrayRef<int64_t> loops) {
  SmallVector<AffineExpr> exprs;
  size_t missing = loops.size() - shape.size();
  for (auto [axis, extent] : llvm::enumerate(shape)) {
    bool repeated = extent == 1 && loops[missing + axis] != 1;
    exprs.push_back(repeated ? b.getAffineConstantExpr(0)
                             : b.getAffineDimExpr(missing + axis));
  }
  return AffineMap::get(loops.size(), 0, exprs, b.getContext());
}

AffineMap firstLoops(OpBuilder &b, unsigned loops, unsigned count) {
  // AffineMap::getMajorSubMap gives a null map for none.
  SmallVector<AffineExpr> exprs;
  for (unsigned loop = 0; loop < count; ++loop)
    exprs.push_back(b.getAffineDimExpr(loop));
  return AffineMap::get(loops, 0, exprs, b.getContext());
}

static Value createGeneric(OpBuilder &b, Location loc, Value init,
                           ValueRange inputs, ArrayRef<AffineMap> maps,
                           unsigned reductions, ScalarBody body) {
  SmallVector<utils::IteratorType> loops(maps.back().getNumDims(),
                                         utils::IteratorType::parallel);
  for (unsigned i = 0; i < reductions; ++i)
    loops[loops.size() - 1 - i] = utils::IteratorType::reduction;
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), inputs, init, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        ValueRange used = reductions ? args : args.drop_back();
        linalg::YieldOp::create(b, loc, body(b, loc, used));
      });
  return generic.getResult(0);
}

Value createParallel(OpBuilder &b, Location loc, RankedTensorType type,
                     ArrayRef<OpFoldResult> sizes, ValueRange inputs,
                     ArrayRef<AffineMap> maps, ScalarBody body) {
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(b.getMultiDimIdentityMap(type.getRank()));
  return createGeneric(b, loc, emptyTensor(b, loc, type, sizes), inputs,
                       allMaps,
                       /*reductions=*/0, body);
}

Value createCopy(OpBuilder &b, Location loc, RankedTensorType type,
                 ArrayRef<OpFoldResult> sizes, Value input, AffineMap map) {
  return createParallel(
      b, loc, type, sizes, input, map,
      [](OpBuilder &, Location, ValueRange args) { return args[0]; });
}

/// Sums of half precision are made in f32.
static Type accumulatorType(OpBuilder &b, Type element) {
  bool isHalf = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  return isHalf ? b.getF32Type() : element;
}

static Value convertFloat(OpBuilder &b, Location loc, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, value);
  if (from > to)
    return arith::TruncFOp::create(b, loc, type, value);
  return value;
}

static TypedAttr convertNeutral(TypedAttr value, Type type) {
  auto number = dyn_cast<FloatAttr>(value);
  return number ? FloatAttr::get(type, number.getValueAsDouble()) : value;
}

Value createReduction(OpBuilder &b, Location loc, RankedTensorType type,
                      ArrayRef<OpFoldResult> sizes, TypedAttr neutral,
                      ValueRange inputs, ArrayRef<AffineMap> maps,
                      unsigned reductions, ScalarBody body) {
  Type element = type.getElementType();
  Type sumElement = accumulatorType(b, element);
  Value init = filledTensor(b, loc, type.clone(sumElement), sizes,
                            convertNeutral(neutral, sumElement));
  auto onAccumulators = [&](OpBuilder &b, Location loc, ValueRange args) {
    if (sumElement == element)
      return body(b, loc, args);
    SmallVector<Value> converted;
    for (Value arg : args)
      converted.push_back(convertFloat(b, loc, arg, sumElement));
    return body(b, loc, converted);
  };

  // A result of which nothing is summed still has to meet its neutral element.
  SmallVector<Value> withInit(inputs);
  withInit.push_back(init);
  Value result = reductions
                     ? createGeneric(b, loc, init, inputs, maps, reductions,
                                     onAccumulators)
                     : createParallel(b, loc, type.clone(sumElement), sizes,
                                      withInit, maps, onAccumulators);
  if (sumElement == element)
    return result;
  return createParallel(b, loc, type, sizes, result,
                        b.getMultiDimIdentityMap(type.getRank()),
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          return convertFloat(b, loc, args[0], element);
                        });
}

static Value multiplyAdd(OpBuilder &b, Location loc, ValueRange args) {
  if (!isa<FloatType>(args[2].getType())) {
    Value product = arith::MulIOp::create(b, loc, args[0], args[1]);
    return arith::AddIOp::create(b, loc, product, args[2]);
  }
  Value product = arith::MulFOp::create(b, loc, args[0], args[1]);
  return arith::AddFOp::create(b, loc, product, args[2]);
}

Value createContraction(OpBuilder &b, Location loc, RankedTensorType type,
                        ArrayRef<OpFoldResult> sizes, ValueRange inputs,
                        ArrayRef<AffineMap> maps, unsigned reductions) {
  return createReduction(b, loc, type, sizes,
                         b.getZeroAttr(type.getElementType()), inputs, maps,
                         reductions, multiplyAdd);
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

namespace {
/// Axes of the source and of the target that hold the same elements.
struct AxisGroup {
  ReassociationIndices source, target;
};
} // namespace

/// The first axes of each side with the same static element count, or two
/// unknown extents that are the same; none when there are no such axes.
static std::optional<std::pair<size_t, size_t>>
matchLeading(ArrayRef<int64_t> source, ArrayRef<int64_t> target) {
  size_t i = 0, j = 0;
  int64_t sourceCount = 1, targetCount = 1;
  do {
    bool takeSource = i == 0 || (j != 0 && sourceCount < targetCount);
    ArrayRef<int64_t> side = takeSource ? source : target;
    size_t &position = takeSource ? i : j;
    if (position == side.size() || ShapedType::isDynamic(side[position]))
      return std::nullopt;
    (takeSource ? sourceCount : targetCount) *= side[position++];
  } while (j == 0 || sourceCount != targetCount);
  return std::make_pair(i, j);
}

static int64_t staticCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (!ShapedType::isDynamic(extent))
      count *= extent;
  return count;
}

static ReassociationIndices axisRange(size_t begin, size_t end) {
  return llvm::to_vector<2>(llvm::seq<int64_t>(begin, end));
}

/// Splits both shapes into groups of axes with the same elements, as small as
/// they can be told to be.
static SmallVector<AxisGroup> groupAxes(ArrayRef<int64_t> source,
                                        ArrayRef<int64_t> target) {
  SmallVector<AxisGroup> groups;
  // With a zero extent every count is the same; one group is always right.
  if (llvm::is_contained(source, 0)) {
    groups.push_back(
        {axisRange(0, source.size()), axisRange(0, target.size())});
    return groups;
  }
  size_t i = 0, j = 0;
  while (i < source.size() && j < target.size()) {
    ArrayRef<int64_t> restSource = source.drop_front(i);
    ArrayRef<int64_t> restTarget = target.drop_front(j);
    std::pair<size_t, size_t> taken(restSource.size(), restTarget.size());
    auto countDynamic = [](ArrayRef<int64_t> shape) {
      return llvm::count_if(shape, ShapedType::isDynamic);
    };
    if (auto matched = matchLeading(restSource, restTarget)) {
      taken = *matched;
    } else if (ShapedType::isDynamic(restSource[0]) &&
               ShapedType::isDynamic(restTarget[0]) &&
               (countDynamic(restSource) > 1 ||
                staticCount(restSource) == staticCount(restTarget))) {
      taken = {1, 1};
    } else {
      // The group with the unknown extent ends where equal static axes begin.
      SmallVector<int64_t> backSource(llvm::reverse(restSource));
      SmallVector<int64_t> backTarget(llvm::reverse(restTarget));
      ArrayRef<int64_t> s(backSource), t(backTarget);
      while (auto matched = matchLeading(s, t)) {
        if (matched->first == s.size() || matched->second == t.size())
          break;
        s = s.drop_front(matched->first);
        t = t.drop_front(matched->second);
      }
      taken = {s.size(), t.size()};
    }
    groups.push_back(
        {axisRange(i, i + taken.first), axisRange(j, j + taken.second)});
    i += taken.first;
    j += taken.second;
  }
  // Unit axes left over on one side belong to the last group.
  if (groups.empty())
    groups.emplace_back();
  llvm::append_range(groups.back().source, axisRange(i, source.size()));
  llvm::append_range(groups.back().target, axisRange(j, target.size()));
  return groups;
}

/// The sizes of axes of `extents`, of which at most one is unknown, that hold
/// `size` elements.
static void appendGroupSizes(OpBuilder &b, Location loc, OpFoldResult size,
                             ArrayRef<int64_t> extents,
                             SmallVectorImpl<OpFoldResult> &sizes) {
  AffineExpr rest = b.getAffineSymbolExpr(0).floorDiv(
      std::max<int64_t>(staticCount(extents), 1));
  for (int64_t extent : extents)
    sizes.push_back(ShapedType::isDynamic(extent)
                        ? applySize(b, loc, rest, {size})
                        : OpFoldResult(b.getIndexAttr(extent)));
}

/// The type with each group of source axes as one axis.
static RankedTensorType collapsedType(RankedTensorType source,
                                      ArrayRef<AxisGroup> groups) {
  SmallVector<int64_t> shape;
  for (const AxisGroup &group : groups) {
    int64_t count = 1;
    for (int64_t axis : group.source) {
      if (source.isDynamicDim(axis)) {
        count = ShapedType::kDynamic;
        break;
      }
      count *= source.getDimSize(axis);
    }
    shape.push_back(count);
  }
  return RankedTensorType::get(shape, source.getElementType());
}

Value createReshape(OpBuilder &b, Location loc, Value value,
                    RankedTensorType type) {
  RankedTensorType source = tensorType(value);
  if (source == type)
    return value;
  SmallVector<AxisGroup> groups = groupAxes(source.getShape(), type.getShape());

  SmallVector<ReassociationIndices> collapse, expand;
  bool needsCollapse = false, needsExpand = false;
  for (const AxisGroup &group : groups) {
    collapse.push_back(group.source);
    expand.push_back(group.target);
    needsCollapse |= group.source.size() != 1;
    needsExpand |= group.target.size() != 1;
  }
  // A scalar has no axes, so its one group has none on that side.
  if (source.getRank() == 0 || type.getRank() == 0) {
    collapse.clear();
    expand.clear();
  }

  if (type.getRank() == 0)
    return tensor::CollapseShapeOp::create(b, loc, type, value, collapse);
  if (source.getRank() == 0)
    return tensor::ExpandShapeOp::create(
        b, loc, type, value, expand,
        getAsIndexOpFoldResult(b.getContext(), type.getShape()));

  if (needsCollapse) {
    RankedTensorType collapsed = collapsedType(source, groups);
    value = tensor::CollapseShapeOp::create(b, loc, collapsed, value, collapse);
  }
  if (needsExpand) {
    SmallVector<OpFoldResult> sizes;
    SmallVector<int64_t> joined;
    for (auto [axis, group] : llvm::enumerate(groups)) {
      SmallVector<int64_t> extents;
      for (int64_t target : group.target)
        extents.push_back(type.getDimSize(target));
      OpFoldResult size = sizeOf(b, loc, value, axis);
      appendGroupSizes(b, loc, size, extents, sizes);
      joined.push_back(llvm::any_of(extents, ShapedType::isDynamic)
                           ? ShapedType::kDynamic
                           : staticCount(extents));
    }
    // An extent may be known of one of the two types only.
    if (RankedTensorType wanted = type.clone(joined); wanted != value.getType())
      value = tensor::CastOp::create(b, loc, wanted, value);
    value = tensor::ExpandShapeOp::create(b, loc, type, value, expand, sizes);
  }
  if (value.getType() != type)
    value = tensor::CastOp::create(b, loc, type, value);
  return value;
}

} // namespace keratin::lower
