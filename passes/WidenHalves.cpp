//===- WidenHalves.cpp - numbers of 16 bits wait as f32 -------------------===//
#include "ir/FloatProducts.h"
#include "ir/RowSoftmax.h"
#include "passes/Passes.h"
#include "passes/RoundedElements.h"
#include "passes/SmallWeights.h"
#include "passes/lower/Lower.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_WIDENHALVES
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Lets bodies compute with operands and results that have become f32, and
/// leaves out conversions that change no number.
class BodyWidener {
public:
  explicit BodyWidener(linalg::GenericOp op)
      : op(op), b(op.getContext()), f32(b.getF32Type()) {}

  /// `operand` is a tensor of f32 now, all of whose elements `before` has.
  void widenInput(OpOperand &operand, Type before);
  /// So is the result of number `number`.
  void widenResult(unsigned number);
  void dropConversions();

private:
  bool has(Type half, Value number) const;

  linalg::GenericOp op;
  OpBuilder b;
  Type f32;
  /// The numbers that a smaller type has, and that type.
  llvm::DenseMap<Value, Type> smaller;
};

} // namespace

void BodyWidener::widenInput(OpOperand &operand, Type before) {
  BlockArgument argument = op.getMatchingBlockArgument(&operand);
  argument.setType(f32);
  smaller[argument] = before;
  if (argument.use_empty())
    return;
  b.setInsertionPointToStart(op.getBody());
  auto narrow = arith::TruncFOp::create(b, op.getLoc(), before, argument);
  argument.replaceAllUsesExcept(narrow, narrow);
}

void BodyWidener::widenResult(unsigned number) {
  op.getRegionOutputArgs()[number].setType(f32);
  Operation *yield = op.getBody()->getTerminator();
  b.setInsertionPoint(yield);
  Value value = yield->getOperand(number);
  yield->setOperand(number, arith::ExtFOp::create(b, op.getLoc(), f32, value));
}

/// Whether `half` has `number`, of f32.
bool BodyWidener::has(Type half, Value number) const {
  if (smaller.lookup(number) == half)
    return true;
  APFloat constant(0.0F);
  if (!matchPattern(number, m_ConstantFloat(&constant)))
    return false;
  bool lost = false;
  constant.convert(cast<FloatType>(half).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &lost);
  return !lost && !constant.isNaN();
}

void BodyWidener::dropConversions() {
  for (Operation &inner :
       llvm::make_early_inc_range(op.getBody()->without_terminator())) {
    if (inner.getNumResults() != 1 || inner.getResult(0).getType() != f32)
      continue;
    Value result = inner.getResult(0);
    if (auto widening = dyn_cast<arith::ExtFOp>(inner)) {
      Type half = widening.getIn().getType();
      auto rounding = widening.getIn().getDefiningOp<arith::TruncFOp>();
      if (rounding && rounding.getIn().getType() == f32 &&
          has(half, rounding.getIn()))
        widening.replaceAllUsesWith(rounding.getIn());
      else
        smaller[result] = half;
    } else if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
                   arith::MinNumFOp, arith::NegFOp, math::AbsFOp,
                   arith::SelectOp>(inner)) {
      // One of the operands, but for the sign.
      ValueRange numbers = inner.getOperands();
      if (isa<arith::SelectOp>(inner))
        numbers = numbers.drop_front();
      for (Value number : numbers)
        if (Type half = smaller.lookup(number);
            half &&
            llvm::all_of(numbers, [&](Value each) { return has(half, each); }))
          smaller[result] = half;
    }
  }
  SmallVector<Operation *> inside;
  for (Operation &inner : op.getBody()->without_terminator())
    inside.push_back(&inner);
  for (Operation *inner : llvm::reverse(inside))
    if (isOpTriviallyDead(inner))
      inner->erase();
}

//===----------------------------------------------------------------------===//
// Which tensors
//===----------------------------------------------------------------------===//

namespace {

/// Finds tensors whose elements can become f32: those between which elements
/// only move have one type, so they are one class.
class HalfWidener {
public:
  HalfWidener(func::FuncOp function, bool widensBf16)
      : function(function), widensBf16(widensBf16), b(function.getContext()) {}

  void run();

private:
  /// What is known of a class.
  struct Facts {
    bool isFixed = false;    ///< has to stay as it is
    bool isRead = false;     ///< by something that computes
    bool isReturned = false; ///< by the function
    bool isReadOften = false;
  };

  bool isHalf(Value value) const;
  static bool isKnown(Value value);
  void number(Value value);
  void numberAll();
  void join(Value x, Value y);
  void fix(Value value) { mark(value, &Facts::isFixed); }
  void mark(Value value, bool Facts::*fact);
  void look(Operation *op);
  void lookAtLoop(scf::ForOp loop);
  void lookAtGeneric(linalg::GenericOp op);
  bool isWide(Value value) const;

  Value wideCopy(Value value);
  void widenOperand(OpOperand &operand);
  void widenMove(Operation *op);
  void widenFill(linalg::FillOp op);
  void widenLoop(scf::ForOp loop);
  void widenGeneric(linalg::GenericOp op);
  void keepWeights(linalg::GenericOp product);
  void readHalves(linalg::GenericOp product);
  void narrowResults(func::ReturnOp op);
  RankedTensorType wideType(Value value) {
    return cast<RankedTensorType>(value.getType()).clone(b.getF32Type());
  }

  func::FuncOp function;
  bool widensBf16;
  OpBuilder b;
  llvm::MapVector<Value, unsigned> numbers;
  llvm::IntEqClasses classes;
  SmallVector<std::pair<Value, Value>> joined;
  SmallVector<std::pair<Value, bool Facts::*>> marks;
  SmallVector<Facts> facts;
  llvm::DenseMap<Value, Type> before; ///< of what has become f32
  llvm::DenseMap<Value, Value> wideCopies;
};

} // namespace

bool HalfWidener::isHalf(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && (type.getElementType().isF16() ||
                  (widensBf16 && type.getElementType().isBF16()));
}

/// Whether `value` is a constant or a view of one. Weights have as many bits as
/// their readers like.
bool HalfWidener::isKnown(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::ConstantOp>(op))
      return true;
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// Whether `value` is made anew for whoever wants it in another type.
static bool isUnset(Value value) {
  return value.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

void HalfWidener::number(Value value) {
  if (isHalf(value) && !isKnown(value) && !isUnset(value))
    numbers.insert({value, numbers.size()});
}

void HalfWidener::join(Value x, Value y) { joined.push_back({x, y}); }

void HalfWidener::mark(Value value, bool Facts::*fact) {
  marks.push_back({value, fact});
}

void HalfWidener::lookAtLoop(scf::ForOp loop) {
  for (auto [init, argument, yielded, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults())) {
    join(init, argument);
    join(yielded, argument);
    join(result, argument);
  }
}

/// How often `op` reads each element of `operand`; many times where that is not
/// known.
static int64_t timesRead(linalg::GenericOp op, OpOperand &operand) {
  constexpr int64_t many = 64;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  int64_t times = 1;
  for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges()))
    if (!map.isFunctionOfDim(loop))
      times = llvm::SaturatingMultiply<uint64_t>(
          times, ShapedType::isDynamic(extent) ? many : extent);
  return times;
}

static bool isFactor(OpOperand &operand) {
  auto op = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return op && isFloatProduct(op) && op.isDpsInput(&operand);
}

/// Whether a product reads each element of `operand` so often that it is better
/// widened once.
static bool isReadOften(OpOperand &operand) {
  constexpr int64_t often = 8;
  return isFactor(operand) &&
         timesRead(cast<linalg::GenericOp>(operand.getOwner()), operand) >=
             often;
}

void HalfWidener::lookAtGeneric(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    mark(input->get(), &Facts::isRead);
    if (isReadOften(*input))
      mark(input->get(), &Facts::isReadOften);
  }
  for (auto [init, argument, result] : llvm::zip_equal(
           op.getDpsInits(), op.getRegionOutputArgs(), op->getResults())) {
    join(init, result);
    if (!argument.use_empty())
      fix(result);
  }
}

void HalfWidener::look(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return lookAtGeneric(generic);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lookAtLoop(loop);
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
          tensor::ExtractSliceOp, tensor::PadOp>(op))
    return join(op->getOperand(0), op->getResult(0));
  if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op)) {
    join(insertion.getSource(), insertion.getResult());
    return join(insertion.getDest(), insertion.getResult());
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    for (Value piece : concat.getInputs())
      join(piece, concat.getResult());
    return;
  }
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return join(fill.getOutputs()[0], fill->getResult(0));
  if (isa<func::ReturnOp>(op)) {
    for (Value value : op->getOperands())
      mark(value, &Facts::isReturned);
    return;
  }
  if (isa<tensor::DimOp, tensor::EmptyOp, arith::ConstantOp>(op) ||
      (isa<scf::YieldOp>(op) && isa<scf::ForOp>(op->getParentOp())))
    return;
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    fix(value);
  for (Region &region : op->getRegions())
    for (Value argument : region.getArguments())
      fix(argument);
}

void HalfWidener::numberAll() {
  function->walk([&](Operation *op) {
    for (Value result : op->getResults())
      number(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          number(argument);
    if (op != function)
      look(op);
  });
  for (Value argument : function.getArguments())
    fix(argument);
  classes.grow(numbers.size());
  for (auto [x, y] : joined)
    if (numbers.contains(x) && numbers.contains(y))
      classes.join(numbers.lookup(x), numbers.lookup(y));
  classes.compress();
  facts.resize(classes.getNumClasses());
  for (auto [value, fact] : marks)
    if (numbers.contains(value))
      facts[classes[numbers.lookup(value)]].*fact = true;
}

/// What is returned takes a copy in its own type: that pays where a product or
/// the next turn of a loop reads it.
bool HalfWidener::isWide(Value value) const {
  auto found = numbers.find(value);
  if (found == numbers.end())
    return false;
  const Facts &known = facts[classes[found->second]];
  return !known.isFixed && known.isRead &&
         (!known.isReturned || known.isReadOften);
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

/// A tensor of the elements of `value` in another type, `to`.
static Value converted(OpBuilder &b, Value value, RankedTensorType to) {
  Location loc = value.getLoc();
  Type element = to.getElementType();
  return lower::createParallel(
      b, loc, to, lower::sizesOf(b, loc, value), value,
      b.getMultiDimIdentityMap(to.getRank()),
      [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
        if (element.isF32())
          return arith::ExtFOp::create(b, loc, element, arguments[0]);
        return arith::TruncFOp::create(b, loc, element, arguments[0]);
      });
}

/// `value` as f32, which is made once.
Value HalfWidener::wideCopy(Value value) {
  if (Value wide = wideCopies.lookup(value))
    return wide;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  RankedTensorType type = wideType(value);
  Operation *op = value.getDefiningOp();
  Value wide;
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    if (ElementsAttr elements =
            widenElements(cast<ElementsAttr>(constant.getValue()), type))
      wide = arith::ConstantOp::create(b, op->getLoc(), elements);
  } else if (isKnown(value)) {
    Value source = wideCopy(op->getOperand(0));
    Operation *view = b.clone(*op);
    view->setOperand(0, source);
    wide = view->getResult(0);
    wide.setType(type);
  }
  if (!wide) // also weights that are elided from a dump
    wide = converted(b, value, type);
  return wideCopies[value] = wide;
}

/// Widens an operand that goes with a tensor of f32: what is of a class is wide
/// already.
void HalfWidener::widenOperand(OpOperand &operand) {
  Value value = operand.get();
  if (!isHalf(value))
    return;
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>()) {
    b.setInsertionPointAfter(empty);
    operand.set(tensor::EmptyOp::create(b, empty.getLoc(), wideType(value),
                                        empty.getDynamicSizes()));
    return;
  }
  operand.set(wideCopy(value));
}

/// What only moves elements: all of its tensors are of one class.
void HalfWidener::widenMove(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    widenOperand(operand);
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Operation *yield = pad.getBody()->getTerminator();
    b.setInsertionPoint(yield);
    yield->setOperand(0, arith::ExtFOp::create(b, op->getLoc(), b.getF32Type(),
                                               yield->getOperand(0)));
  }
}

void HalfWidener::widenFill(linalg::FillOp op) {
  widenOperand(op.getOutputsMutable()[0]);
  b.setInsertionPoint(op);
  Value number =
      arith::ExtFOp::create(b, op.getLoc(), b.getF32Type(), op.getInputs()[0]);
  auto fill =
      linalg::FillOp::create(b, op.getLoc(), number, op.getOutputs()[0]);
  before[fill->getResult(0)] = before.lookup(op->getResult(0));
  op->replaceAllUsesWith(fill);
  op->erase();
}

void HalfWidener::widenLoop(scf::ForOp loop) {
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (before.contains(argument)) {
      widenOperand(loop.getInitArgsMutable()[number]);
      widenOperand(yield->getOpOperand(number));
    }
}

void HalfWidener::widenGeneric(linalg::GenericOp op) {
  BodyWidener body(op);
  bool isProduct = isFloatProduct(op);
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value value = input->get();
    Type half = before.lookup(value);
    if (!half && isHalf(value) &&
        (isKnown(value) ? !isProduct || !gainsBySmallWeights(op, value)
                        : isReadOften(*input))) {
      half = getElementTypeOrSelf(value);
      input->set(wideCopy(value));
    }
    if (half)
      body.widenInput(*input, half);
  }
  for (OpResult result : op->getResults())
    if (before.contains(result)) {
      widenOperand(*op.getDpsInitOperand(result.getResultNumber()));
      body.widenResult(result.getResultNumber());
    }
  body.dropConversions();
}

/// Whether `value` is the softmax of rows, or parts of it.
static bool isSoftmax(Value value) {
  constexpr int most = 4;
  for (int step = 0; step < most; ++step) {
    if (rowSoftmaxOf(value))
      return true;
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumReductionLoops() != 0 || op->getNumResults() != 1)
      return false;
    Type type = value.getType();
    value = {};
    for (Value input : op.getDpsInputs())
      if (input.getType() == type)
        value = value ? Value() : input;
    if (!value)
      return false;
  }
  return false;
}

/// Weights of a softmax that only `product` reads are not rounded: a row of
/// them need not be there before it is multiplied.
void HalfWidener::keepWeights(linalg::GenericOp product) {
  for (OpOperand *factor : product.getDpsInputOperands()) {
    Value weights = factor->get();
    auto op = weights.getDefiningOp<linalg::GenericOp>();
    if (!before.contains(weights) || !weights.hasOneUse() || !op ||
        op.getNumReductionLoops() != 0 || op.getNumDpsInputs() != 1 ||
        !isSoftmax(op.getDpsInputs()[0]))
      continue;
    Operation *yield = op.getBody()->getTerminator();
    auto widening = yield->getOperand(0).getDefiningOp<arith::ExtFOp>();
    auto rounding =
        widening ? widening.getIn().getDefiningOp<arith::TruncFOp>() : nullptr;
    if (rounding && rounding.getIn().getType() == b.getF32Type())
      yield->setOperand(0, rounding.getIn());
  }
}

/// Where the target multiplies bf16, `product` reads what is bf16 as it is.
void HalfWidener::readHalves(linalg::GenericOp product) {
  auto sourceOf = [](OpOperand *factor) -> Value {
    auto op = factor->get().getDefiningOp<linalg::GenericOp>();
    if (getElementTypeOrSelf(factor->get()).isBF16())
      return factor->get();
    if (!op || op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
        !llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }))
      return {};
    auto widening = op.getBody()
                        ->getTerminator()
                        ->getOperand(0)
                        .getDefiningOp<arith::ExtFOp>();
    Value source = op.getDpsInputs()[0];
    bool isCopy = widening && widening.getIn() == op.getBody()->getArgument(0);
    return isCopy && getElementTypeOrSelf(source).isBF16() ? source : Value();
  };
  OpOperand *left = product.getDpsInputOperand(0),
            *right = product.getDpsInputOperand(1);
  if (!sourceOf(left) || !sourceOf(right))
    return;
  for (OpOperand *factor : {left, right}) {
    factor->set(sourceOf(factor));
    readWidened(product, *factor);
  }
}

void HalfWidener::narrowResults(func::ReturnOp op) {
  b.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands())
    if (Type half = before.lookup(operand.get())) {
      Value value = operand.get();
      operand.set(converted(
          b, value, cast<RankedTensorType>(value.getType()).clone(half)));
    }
}

void HalfWidener::run() {
  numberAll();
  for (auto [value, number] : numbers)
    if (isWide(value)) {
      before[value] = getElementTypeOrSelf(value);
      value.setType(wideType(value));
    }
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      widenGeneric(generic);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      widenLoop(loop);
    else if (auto done = dyn_cast<func::ReturnOp>(op))
      narrowResults(done);
    else if (auto fill = dyn_cast<linalg::FillOp>(op);
             fill && before.contains(fill->getResult(0)))
      widenFill(fill);
    else if (op->getNumResults() == 1 && before.contains(op->getResult(0)))
      widenMove(op);
  }
  function->walk([&](linalg::GenericOp op) {
    if (!isFloatProduct(op))
      return;
    keepWeights(op);
    if (!widensBf16)
      readHalves(op);
  });
}

namespace {

struct WidenHalves : impl::WidenHalvesBase<WidenHalves> {
  using Base::Base;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      HalfWidener(function, bf16).run();
  }
};

} // namespace
} // namespace keratin
