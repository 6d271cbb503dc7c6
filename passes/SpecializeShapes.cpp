//===- SpecializeShapes.cpp - a function for shapes that are known --------===//
#include "passes/Passes.h"

#include "ir/Ktn.h"

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

/// A loop's body starts from the slices and states that the operands give it.
LogicalResult inferBody(ktn::ScanOp scan) {
  FailureOr<SmallVector<Type>> types = ktn::ScanOp::inferBodyArgumentTypes(
      scan.getLoc(), scan.getXs(), scan.getInit());
  if (failed(types))
    return failure();
  Block &body = scan.getBody().front();
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), *types))
    argument.setType(type);
  return inferBlock(body);
}

LogicalResult inferResults(Operation &op) {
  auto inferable = dyn_cast<InferTypeOpInterface>(op);
  if (!inferable)
    return success();
  SmallVector<Type> types;
  if (failed(inferable.inferReturnTypes(
          op.getContext(), op.getLoc(), op.getOperands(),
          op.getDiscardableAttrDictionary(), op.getPropertiesStorage(),
          op.getRegions(), types))) {
    InFlightDiagnostic diag = op.emitOpError("does not take operands of type ");
    llvm::interleaveComma(op.getOperandTypes(), diag);
    return diag;
  }
  for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
    result.setType(type);
  return success();
}

/// What has become a constant is one from here on: extents, above all.
void foldToConstants(Operation &op) {
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
    if (auto scan = dyn_cast<ktn::ScanOp>(op))
      if (failed(inferBody(scan)))
        return failure();
    if (failed(inferResults(op)))
      return failure();
    foldToConstants(op);
    if (isOpTriviallyDead(&op))
      op.erase();
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
  SmallVector<Type> arguments(argumentTypes.begin(), argumentTypes.end());
  function.setType(FunctionType::get(function.getContext(), arguments,
                                     body.getTerminator()->getOperandTypes()));
  return success();
}

} // namespace keratin
