//===- SpecializeShapes.cpp - a function for shapes that are known --------===//
#include "passes/Passes.h"

#include "ir/FoldScalars.h"
#include "ir/Ktn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_SPECIALIZESHAPES
#include "passes/Passes.h.inc"

namespace {

/// "argument #1 'image'"
std::string describeArgument(func::FuncOp function, unsigned index) {
  std::string text = "argument #" + std::to_string(index);
  if (auto name = function.getArgAttrOfType<StringAttr>(index, "ktn.name"))
    text += " '" + name.str() + "'";
  return text;
}

LogicalResult checkArguments(func::FuncOp function,
                             ArrayRef<RankedTensorType> types) {
  if (types.size() != function.getNumArguments())
    return function.emitOpError("has ")
           << function.getNumArguments() << " arguments but " << types.size()
           << " types are given";
  for (auto [index, type] : llvm::enumerate(types)) {
    auto declared =
        dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
    if (!declared || declared.getElementType() != type.getElementType() ||
        failed(verifyCompatibleShape(declared, type)))
      return function.emitOpError(describeArgument(function, index))
             << " has type " << function.getArgumentTypes()[index]
             << " but is given as " << type;
  }
  return success();
}

LogicalResult inferBlock(Block &block);

/// The op itself and its bodies, up to the types of its results.
LogicalResult refine(Operation &op) {
  if (auto refinable = dyn_cast<ktn::ShapeRefinementOpInterface>(op))
    if (failed(refinable.refineShapes()))
      return failure();
  for (Region &region : op.getRegions())
    for (Block &block : region)
      if (failed(inferBlock(block)))
        return failure();
  return success();
}

LogicalResult inferResults(Operation &op) {
  auto inferable = dyn_cast<InferTypeOpInterface>(op);
  if (!inferable)
    return success();
  SmallVector<Type> types;
  if (failed(inferable.inferReturnTypes(
          op.getContext(), op.getLoc(), op.getOperands(),
          op.getDiscardableAttrDictionary(), op.getPropertiesStorage(),
          op.getRegions(), types)))
    return failure();
  for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
    result.setType(type);
  return success();
}

/// The constant elements of `value` when they are integers and few.
DenseIntElementsAttr smallConstant(Value value) {
  DenseIntElementsAttr integers;
  if (!matchPattern(value, m_Constant(&integers)) ||
      integers.getNumElements() > 64)
    return {};
  return integers;
}

/// An elementwise op on small integer constants: the arithmetic of shapes. All
/// operands are of the shape of the result or have one element.
Attribute evaluateElementwise(ktn::ScalarBodyOpInterface op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<DenseIntElementsAttr> operands;
  for (Value operand : op->getOperands()) {
    DenseIntElementsAttr integers = smallConstant(operand);
    if (!integers || !integers.getElementType().isSignlessInteger() ||
        (integers.getNumElements() != 1 &&
         integers.getType().getShape() != type.getShape()))
      return {};
    operands.push_back(integers);
  }
  if (!type.hasStaticShape() || type.getNumElements() > 64 ||
      !type.getElementType().isSignlessInteger())
    return {};

  SmallVector<Attribute> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Block block;
    OpBuilder b(op->getContext());
    b.setInsertionPointToStart(&block);
    SmallVector<Value> args;
    for (DenseIntElementsAttr integers : operands) {
      APInt element =
          integers.getValues<APInt>()[integers.getNumElements() == 1 ? 0 : i];
      args.push_back(arith::ConstantOp::create(
          b, op->getLoc(),
          b.getIntegerAttr(integers.getElementType(), element)));
    }
    Value result = op.buildScalar(b, args);
    Attribute element = ktn::foldScalars(block, result);
    if (!element)
      return {};
    elements.push_back(element);
  }
  return DenseElementsAttr::get(type, elements);
}

/// A reduction of a few integers to one: the number of elements of a shape.
Attribute evaluateReduction(ktn::ReductionOpInterface op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  DenseIntElementsAttr integers = smallConstant(op->getOperand(0));
  if (!integers || !type.hasStaticShape() || type.getNumElements() != 1 ||
      !type.getElementType().isSignlessInteger() ||
      integers.getElementType() != type.getElementType())
    return {};
  Block block;
  OpBuilder b(op->getContext());
  b.setInsertionPointToStart(&block);
  auto constant = [&](TypedAttr value) -> Value {
    return arith::ConstantOp::create(b, op->getLoc(), value);
  };
  Value result = constant(op.getNeutralElement(b));
  for (const APInt &element : integers.getValues<APInt>())
    result = op.buildCombiner(
        b, constant(b.getIntegerAttr(type.getElementType(), element)), result);
  Attribute element = ktn::foldScalars(block, result);
  return element ? DenseElementsAttr::get(type, element) : Attribute();
}

/// What has become a constant is one from here on: extents, above all.
void foldToConstants(Operation &op) {
  if (auto reduction = dyn_cast<ktn::ReductionOpInterface>(op)) {
    if (Attribute value = evaluateReduction(reduction)) {
      OpBuilder b(&op);
      op.getResult(0).replaceAllUsesWith(
          ktn::ConstantOp::create(b, op.getLoc(), cast<ElementsAttr>(value)));
      return;
    }
  }
  if (auto elementwise = dyn_cast<ktn::ScalarBodyOpInterface>(op)) {
    if (Attribute value = evaluateElementwise(elementwise)) {
      OpBuilder b(&op);
      op.getResult(0).replaceAllUsesWith(
          ktn::ConstantOp::create(b, op.getLoc(), cast<ElementsAttr>(value)));
      return;
    }
  }
  SmallVector<OpFoldResult> folded;
  if (op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() == 0 ||
      failed(op.fold(folded)) || folded.size() != op.getNumResults())
    return;
  OpBuilder b(&op);
  for (auto [result, value] : llvm::zip_equal(op.getResults(), folded)) {
    if (auto replacement = dyn_cast<Value>(value)) {
      result.replaceAllUsesWith(replacement);
    } else if (Operation *constant = op.getDialect()->materializeConstant(
                   b, cast<Attribute>(value), result.getType(), op.getLoc())) {
      result.replaceAllUsesWith(constant->getResult(0));
    }
  }
}

LogicalResult inferBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (failed(refine(op)) || failed(inferResults(op)))
      return failure();
    foldToConstants(op);
    if (isOpTriviallyDead(&op))
      op.erase();
  }
  return success();
}

/// Where all arguments have known shapes, what is still unknown depends on
/// values, and there is no code for that.
LogicalResult checkKnown(Block &block) {
  for (Operation &op : block) {
    if (!isa<ktn::ShapeRefinementOpInterface>(op))
      continue;
    for (Type type : op.getResultTypes())
      if (!cast<RankedTensorType>(type).hasStaticShape())
        return op.emitOpError("has type ")
               << type
               << " at run time: an extent depends on values, not on "
                  "shapes alone";
  }
  return success();
}

/// Gives every leading `?` of an argument the extent `batch`.
struct SpecializeShapes : impl::SpecializeShapesBase<SpecializeShapes> {
  using Base::Base;

  void runOnOperation() override {
    if (batch < 0)
      return;
    SmallVector<RankedTensorType> types;
    for (Type type : getOperation().getArgumentTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor) {
        getOperation().emitOpError("has an argument of type ") << type;
        return signalPassFailure();
      }
      SmallVector<int64_t> shape(tensor.getShape());
      if (!shape.empty() && ShapedType::isDynamic(shape[0]))
        shape[0] = batch;
      types.push_back(tensor.clone(shape));
    }
    if (failed(specializeShapes(getOperation(), types)))
      signalPassFailure();
  }
};

} // namespace

LogicalResult specializeShapes(func::FuncOp function,
                               ArrayRef<RankedTensorType> argumentTypes) {
  if (failed(checkArguments(function, argumentTypes)))
    return failure();
  Block &body = function.getBody().front();
  for (auto [argument, type] :
       llvm::zip_equal(body.getArguments(), argumentTypes))
    argument.setType(type);
  if (failed(inferBlock(body)))
    return failure();
  if (llvm::all_of(argumentTypes,
                   [](ShapedType type) { return type.hasStaticShape(); }) &&
      failed(checkKnown(body)))
    return failure();
  SmallVector<Type> arguments(argumentTypes.begin(), argumentTypes.end());
  function.setType(FunctionType::get(function.getContext(), arguments,
                                     body.getTerminator()->getOperandTypes()));
  return success();
}

} // namespace keratin
