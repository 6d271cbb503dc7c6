//===- RoundFactors.cpp - factors of products become bf16, or f16 --------===//
#include "ir/FloatProducts.h"
#include "passes/Passes.h"
#include "passes/RoundedElements.h"
#include "passes/SmallWeights.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_ROUNDFACTORS
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// What is rounded
//===----------------------------------------------------------------------===//

bool isF32(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.getElementType().isF32();
}

/// Loops that `map` goes along by themselves, as a window does not.
llvm::SmallBitVector plainLoops(AffineMap map) {
  llvm::SmallBitVector loops(map.getNumDims());
  for (AffineExpr expr : map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops.set(dim.getPosition());
  return loops;
}

/// Whether `op` sums products of f32 over a dimension that both factors go
/// along, and one of them is used again for an element that the other is not.
bool isRoundedProduct(linalg::GenericOp op) {
  if (!isFloatProduct(op) || !llvm::all_of(op->getOperands(), isF32))
    return false;
  AffineMap left = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap right = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  llvm::SmallBitVector both = plainLoops(left);
  both &= plainLoops(right);
  bool sums = false, shares = false;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::reduction)
      sums |= both.test(loop);
    else
      shares |= left.isFunctionOfDim(loop) != right.isFunctionOfDim(loop);
  }
  return sums && shares;
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

/// Rounds values to `to`, each once.
class Rounder {
public:
  explicit Rounder(FloatType to) : b(to.getContext()), to(to) {}

  /// `value` rounded, as `element`: `to`, or f32 with the same values.
  Value round(Value value, Type element);

  /// What was computed by an op of the function and rounded, and the result.
  ArrayRef<std::pair<Value, Value>> roundedResults() const { return results; }

  /// `value`, which is rounded, with one zero more along `axis`; null for one
  /// that cannot have it.
  Value pad(Value value, int64_t axis);

private:
  Value make(Value value, RankedTensorType type);
  Value moved(linalg::GenericOp op, RankedTensorType type);
  Value padded(tensor::PadOp op, RankedTensorType type);
  void roundWindow(linalg::GenericOp op, Type element);
  Value computed(Value value, RankedTensorType type);

  OpBuilder b;
  FloatType to;
  llvm::DenseMap<std::pair<Value, Type>, Value> known;
  llvm::DenseMap<std::pair<Attribute, Type>, ElementsAttr> constants;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> longer;
  SmallVector<std::pair<Value, Value>> results;
};

} // namespace

Value Rounder::round(Value value, Type element) {
  if (Value before = known.lookup({value, element}))
    return before;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  Value result =
      make(value, cast<RankedTensorType>(value.getType()).clone(element));
  known[{value, element}] = result;
  return result;
}

/// What only moves elements is rounded before, where there may be fewer.
Value Rounder::make(Value value, RankedTensorType type) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    auto from = cast<ElementsAttr>(constant.getValue());
    ElementsAttr &rounded = constants[{from, type}];
    if (!rounded)
      rounded = roundElements(from, to, type);
    if (rounded)
      return arith::ConstantOp::create(b, op->getLoc(), rounded);
  }
  if (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op)) {
    Value source = round(op->getOperand(0), type.getElementType());
    Operation *view = b.clone(*op);
    view->setOperand(0, source);
    view->getResult(0).setType(type);
    return view->getResult(0);
  }
  Value result;
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op);
      concat && op->hasOneUse()) {
    SmallVector<Value> pieces;
    for (Value piece : concat.getInputs())
      pieces.push_back(round(piece, type.getElementType()));
    result = tensor::ConcatOp::create(b, op->getLoc(), type, concat.getDim(),
                                      pieces);
  } else if (auto pad = dyn_cast_or_null<tensor::PadOp>(op)) {
    result = padded(pad, type);
  } else if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op)) {
    roundWindow(generic, type.getElementType());
    result = moved(generic, type);
  }
  return result ? result : computed(value, type);
}

/// A border of a number that rounding leaves as it is; null for others.
Value Rounder::padded(tensor::PadOp op, RankedTensorType type) {
  Value border = op.getConstantPaddingValue();
  FloatAttr number;
  if (!border || !matchPattern(border, m_Constant(&number)))
    return {};
  APFloat value = number.getValue();
  bool lost = false;
  value.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  if (lost)
    return {};
  Value source = round(op.getSource(), type.getElementType());
  auto exact = FloatAttr::get(type.getElementType(), value.convertToDouble());
  border = arith::ConstantOp::create(b, op.getLoc(), exact);
  return tensor::PadOp::create(b, op.getLoc(), type, source,
                               op.getMixedLowPad(), op.getMixedHighPad(),
                               border, op.getNofold());
}

/// Whether only products read `value`, or that with a border.
static bool isOnlyMultiplied(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (auto pad = dyn_cast<tensor::PadOp>(user))
      return isOnlyMultiplied(pad.getResult());
    auto reader = dyn_cast<linalg::GenericOp>(user);
    return reader && isRoundedProduct(reader);
  });
}

/// The largest of rounded numbers is the largest one, rounded: what only
/// products read of `op`, windows of the largest elements, has that of half as
/// many bytes.
void Rounder::roundWindow(linalg::GenericOp op, Type element) {
  auto inner = op.getBody()->without_terminator();
  if (element != to || !llvm::hasSingleElement(inner) ||
      !isa<arith::MaximumFOp>(*inner.begin()) || !hasWindow(op) ||
      !isF32(op.getDpsInputs()[0]) || !op.getDpsInputs()[0].hasOneUse() ||
      !op.getMatchingBlockArgument(op.getDpsInputOperand(0)).hasOneUse() ||
      !isOnlyMultiplied(op.getResult(0)))
    return;
  OpOperand *image = op.getDpsInputOperand(0);
  image->set(round(image->get(), element));
  readWidened(op, *image);
}

/// An op that copies elements elsewhere, as a transpose; null for others.
Value Rounder::moved(linalg::GenericOp op, RankedTensorType type) {
  auto yielded = dyn_cast<BlockArgument>(
      op.getBody()->getTerminator()->getOperands().front());
  auto empty = op.getDpsInitOperand(0)->get().getDefiningOp<tensor::EmptyOp>();
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 || !empty ||
      !isF32(op.getDpsInputOperand(0)->get()) ||
      yielded != op.getBody()->getArgument(0) ||
      !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isPermutation())
    return {};
  Value source = round(op.getDpsInputOperand(0)->get(), type.getElementType());
  Value init =
      tensor::EmptyOp::create(b, op.getLoc(), type, empty.getDynamicSizes());
  return linalg::GenericOp::create(
             b, op.getLoc(), type, source, init, op.getIndexingMapsArray(),
             op.getIteratorTypesArray(),
             [](OpBuilder &b, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(b, loc, arguments[0]);
             })
      .getResult(0);
}

Value Rounder::pad(Value value, int64_t axis) {
  if (Value before = longer.lookup({value, axis}))
    return before;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  ++shape[axis];
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  Value result;
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    ElementsAttr elements =
        padElements(cast<ElementsAttr>(constant.getValue()), axis, wanted);
    if (!elements)
      return {};
    result = arith::ConstantOp::create(b, loc, elements);
  } else {
    SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high(low);
    high[axis] = b.getIndexAttr(1);
    Value source = value;
    // A border that is there gets wider.
    if (auto border = value.getDefiningOp<tensor::PadOp>();
        border && border.getStaticHigh()[axis] == 0 &&
        border.getConstantPaddingValue() &&
        matchPattern(border.getConstantPaddingValue(), m_AnyZeroFloat())) {
      source = border.getSource();
      low = border.getMixedLowPad();
      high = border.getMixedHighPad();
      high[axis] = b.getIndexAttr(1);
    }
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(to));
    result = tensor::PadOp::create(b, loc, wanted, source, low, high, zero);
  }
  longer[{value, axis}] = result;
  return result;
}

Value Rounder::computed(Value value, RankedTensorType type) {
  Location loc = value.getLoc();
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  Value rounded = lower::createParallel(
      b, loc, type, lower::sizesOf(b, loc, value), value, map,
      [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
        Value rounded = arith::TruncFOp::create(b, loc, to, arguments[0]);
        if (type.getElementType() == to)
          return rounded;
        return arith::ExtFOp::create(b, loc, type.getElementType(), rounded);
      });
  if (value.getDefiningOp<linalg::GenericOp>())
    results.push_back({value, rounded});
  return rounded;
}

namespace {

struct RoundFactors : impl::RoundFactorsBase<RoundFactors> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::GenericOp> products;
    getOperation().walk([&](linalg::GenericOp op) {
      if (isRoundedProduct(op))
        products.push_back(op);
    });
    OpBuilder b(&getContext());
    if (type == Precision::F16) {
      Rounder rounder(b.getF16Type());
      for (linalg::GenericOp op : products)
        for (OpOperand *factor : op.getDpsInputOperands())
          roundWeights(rounder, op, *factor);
      return;
    }
    Rounder rounder(b.getBF16Type());
    for (linalg::GenericOp op : products) {
      for (OpOperand *factor : op.getDpsInputOperands())
        roundFactor(rounder, op, *factor);
      if (narrow)
        makeEven(rounder, op);
    }
    llvm::SmallPtrSet<Operation *, 16> roots(products.begin(), products.end());
    for (auto [value, rounded] : llvm::to_vector(rounder.roundedResults())) {
      readRounded(value, rounded);
      roundAddends(rounder, roots, value);
    }
  }

private:
  /// What `value` is a view of, if that is known now, or will be when the code
  /// is laid out; else null.
  static arith::ConstantOp constantOf(Value value) {
    while (auto *view = value.getDefiningOp())
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(view))
        value = view->getOperand(0);
      else
        break;
    return value.getDefiningOp<arith::ConstantOp>();
  }

  /// Lets what reads `value` element by element, as the sum of a residual, read
  /// the rounded numbers: then only those are written.
  static void readRounded(Value value, Value rounded) {
    Operation *rounding = rounded.getDefiningOp();
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
      if (!reader || reader == rounding || !reader.isDpsInput(&use) ||
          reader.getNumReductionLoops() != 0)
        continue;
      use.set(rounded);
      readWidened(reader, use);
    }
  }

  /// Rounds what is stored until a product that comes later is added to it, as
  /// the shorter way of a residual block is, where `value`, which it becomes
  /// part of element by element, is rounded. Returns the last product in it.
  Operation *roundAddends(Rounder &rounder,
                          const llvm::SmallPtrSetImpl<Operation *> &products,
                          Value value) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || products.contains(op))
      return op;
    if (op.getNumReductionLoops() != 0)
      return nullptr;
    SmallVector<std::pair<OpOperand *, Operation *>> addends;
    Operation *last = nullptr;
    for (OpOperand *input : op.getDpsInputOperands()) {
      Operation *source = input->get().getDefiningOp();
      if (!source || source->getBlock() != op->getBlock() ||
          !input->get().hasOneUse() || !isF32(input->get()) ||
          !op.getMatchingIndexingMap(input).isPermutation())
        continue;
      Operation *product = roundAddends(rounder, products, input->get());
      if (!product)
        continue;
      addends.push_back({input, product});
      if (!last || last->isBeforeInBlock(product))
        last = product;
    }
    OpBuilder b(op.getContext());
    Type element = narrow ? Type(b.getBF16Type()) : Type(b.getF32Type());
    for (auto [input, product] : addends)
      if (product != last) {
        input->set(rounder.round(input->get(), element));
        readWidened(op, *input);
      }
    return last;
  }

  /// Gives the channels of a window one that is zero where their number is odd,
  /// as that of the colours of an image: sums are made of pairs.
  static void makeEven(Rounder &rounder, linalg::GenericOp op) {
    OpOperand *image = op.getDpsInputOperand(0),
              *weights = op.getDpsInputOperand(1);
    AffineMap map = op.getMatchingIndexingMap(image);
    auto channel = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!hasWindow(op) || !channel || !constantOf(weights->get()) ||
        op.getIteratorTypesArray()[channel.getPosition()] !=
            utils::IteratorType::reduction ||
        op.getStaticLoopRanges()[channel.getPosition()] % 2 == 0)
      return;
    std::optional<unsigned> axis =
        op.getMatchingIndexingMap(weights).getResultPosition(channel);
    if (!axis || !weights->get().getDefiningOp<arith::ConstantOp>())
      return;
    Value longer = rounder.pad(weights->get(), *axis);
    if (!longer)
      return;
    weights->set(longer);
    image->set(rounder.pad(image->get(), map.getNumResults() - 1));
  }

  void roundFactor(Rounder &rounder, linalg::GenericOp op, OpOperand &factor) {
    OpBuilder b(&getContext());
    // Windows are multiplied more often than they are read, and weights that
    // stay in the second cache take longer to widen than to read.
    bool small = narrow || (constantOf(factor.get()) && !hasWindow(op) &&
                            gainsBySmallWeights(op, factor.get()));
    Type element = small ? Type(b.getBF16Type()) : Type(b.getF32Type());
    factor.set(rounder.round(factor.get(), element));
    readWidened(op, factor);
  }

  /// To f16, where that saves time or costs none, and loses no more than
  /// places.
  static void roundWeights(Rounder &rounder, linalg::GenericOp op,
                           OpOperand &factor) {
    arith::ConstantOp weights = constantOf(factor.get());
    if (!weights || !gainsBySmallWeights(op, weights) ||
        overflowsF16(cast<ElementsAttr>(weights.getValue())))
      return;
    factor.set(rounder.round(factor.get(), Float16Type::get(op.getContext())));
    readWidened(op, factor);
  }
};

} // namespace
} // namespace keratin
