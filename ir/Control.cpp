#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                           Adaptor adaptor,
                                           InferredTypes &types) {
  Type type = adaptor.getValue().getType();
  if (!isa<RankedTensorType>(type))
    return emitOptionalError(location, "value has type ", type,
                             " but must be a ranked tensor");
  types.push_back(type);
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult StopGradientOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                               Adaptor adaptor,
                                               InferredTypes &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

Values StopGradientOp::vjp(OpBuilder &, ValueRange) { return {Value()}; }
bool StopGradientOp::isDifferentiable(unsigned) { return false; }

LogicalResult TrainingPhaseOp::inferReturnTypes(MLIRContext *context, MaybeLoc,
                                                Adaptor, InferredTypes &types) {
  types.push_back(RankedTensorType::get({}, IntegerType::get(context, 1)));
  return success();
}

//===----------------------------------------------------------------------===//
// choose
//===----------------------------------------------------------------------===//

LogicalResult ChooseOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  FailureOr<RankedTensorType> a = inferRanked(location, adaptor.getA());
  FailureOr<RankedTensorType> b = inferRanked(location, adaptor.getB());
  if (failed(a) || failed(b))
    return failure();
  if (a->getElementType() != b->getElementType())
    return emitOptionalError(location, "one choice has dtype ",
                             a->getElementType(), " and the other ",
                             b->getElementType());
  if (a->getRank() != b->getRank())
    return emitOptionalError(location, "one choice has shape ", *a,
                             " and the other ", *b,
                             ": they must have the same number of axes");
  SmallVector<int64_t> shape;
  for (auto [mine, other] : llvm::zip_equal(a->getShape(), b->getShape()))
    shape.push_back(mine == other ? mine : ShapedType::kDynamic);
  types.push_back(a->clone(shape));
  return success();
}

OpFoldResult ChooseOp::fold(FoldAdaptor adaptor) {
  auto cond = dyn_cast_if_present<DenseElementsAttr>(adaptor.getCond());
  if (!cond)
    return {};
  Value chosen = cond.getSplatValue<bool>() ? getA() : getB();
  return chosen.getType() == getType() ? OpFoldResult(chosen) : OpFoldResult();
}

/// `x` in the type of `like`, which it has at run time.
static Value statedAs(OpBuilder &b, Location loc, Value x, Value like) {
  if (x.getType() == like.getType())
    return x;
  auto type = cast<RankedTensorType>(like.getType());
  Value shape;
  if (!type.hasStaticShape())
    shape = ShapeOp::create(b, loc, like);
  return ReshapeOp::create(b, loc, x, shape, type.getShape());
}

Values ChooseOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = cond ? a : b: da = cond ? dy : 0, db = cond ? 0 : dy
  Location loc = getLoc();
  Value zerosA = createZerosLike(b, loc, getA());
  Value zerosB = createZerosLike(b, loc, getB());
  Value da = ChooseOp::create(b, loc, getCond(), cotangents[0], zerosA);
  Value db = ChooseOp::create(b, loc, getCond(), zerosB, cotangents[0]);
  return {Value(), statedAs(b, loc, da, getA()), statedAs(b, loc, db, getB())};
}

FailureOr<SmallVector<Value>> ChooseOp::decompose(OpBuilder &b) {
  DenseElementsAttr known;
  if (matchPattern(getCond(), m_Constant(&known)))
    return SmallVector<Value>{known.getSplatValue<bool>() ? getA() : getB()};
  if (getA().getType() != getB().getType()) {
    InFlightDiagnostic diag = emitOpError("one choice has shape ")
                              << getA().getType() << " and the other "
                              << getB().getType()
                              << " but the condition is not known";
    diag.attachNote() << "compiled code chooses between tensors of one shape";
    return diag;
  }
  return SmallVector<Value>{
      SelectOp::create(b, getLoc(), getCond(), getA(), getB())};
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult GradientsOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                            Adaptor adaptor,
                                            InferredTypes &types) {
  if (adaptor.getTargets().empty())
    return emitOptionalError(location, "there is no target to differentiate");
  llvm::append_range(types, adaptor.getWrt().getTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

LogicalResult VariableOp::verify() {
  if (getInitialValue().getType() == getType())
    return success();
  return emitOpError("has type ") << getType() << " but its initial value has "
                                  << getInitialValue().getType();
}

/// `op` names a variable of type `type`.
static LogicalResult verifyVariableUse(Operation *op, FlatSymbolRefAttr symbol,
                                       Type type,
                                       SymbolTableCollection &table) {
  auto variable = table.lookupNearestSymbolFrom<VariableOp>(op, symbol);
  if (!variable)
    return op->emitOpError("there is no variable ") << symbol;
  if (variable.getType() == type)
    return success();
  InFlightDiagnostic diag = op->emitOpError("has type ")
                            << type << " but variable " << symbol << " has "
                            << variable.getType();
  diag.attachNote(variable.getLoc()) << "the variable is here";
  return diag;
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &table) {
  return verifyVariableUse(*this, getVariableAttr(), getType(), table);
}

LogicalResult AssignOp::verifySymbolUses(SymbolTableCollection &table) {
  return verifyVariableUse(*this, getVariableAttr(), getX().getType(), table);
}

LogicalResult AssignOp::inferReturnTypes(MLIRContext *, MaybeLoc,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

Values AssignOp::vjp(OpBuilder &, ValueRange cotangents) {
  // y = x: dx = dy
  return {cotangents[0]};
}

LogicalResult AfterOp::inferReturnTypes(MLIRContext *, MaybeLoc,
                                        Adaptor adaptor, InferredTypes &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

Values AfterOp::vjp(OpBuilder &, ValueRange cotangents) {
  // y = x: dx = dy, and events are no part of the value
  Values terms((*this)->getNumOperands());
  terms[0] = cotangents[0];
  return terms;
}

bool AfterOp::isDifferentiable(unsigned index) {
  return index == 0 && isa<FloatType>(getX().getType().getElementType());
}

//===----------------------------------------------------------------------===//
// scan: types
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> ScanOp::inferBodyArgumentTypes(MaybeLoc location,
                                                            ValueRange xs,
                                                            ValueRange init) {
  SmallVector<Type> types;
  for (Value x : xs) {
    FailureOr<RankedTensorType> type = inferRanked(location, x);
    if (failed(type))
      return failure();
    if (type->getRank() == 0)
      return emitOptionalError(location,
                               "cannot scan a scalar: it has no time axis");
    types.push_back(type->clone(type->getShape().drop_front()));
  }
  llvm::append_range(types, init.getTypes());
  return types;
}

/// The one extent that the time axes and `length` have.
static FailureOr<int64_t> inferStepCount(MaybeLoc location, ValueRange xs,
                                         std::optional<int64_t> length) {
  if (xs.empty() && !length)
    return emitOptionalError(location, "a scan without xs must have a length");
  if (length && *length < 0)
    return emitOptionalError(location, "length is ", *length,
                             " but must not be negative");
  int64_t steps = length.value_or(ShapedType::kDynamic);
  for (Value x : xs) {
    int64_t extent = cast<RankedTensorType>(x.getType()).getDimSize(0);
    FailureOr<int64_t> merged = mergeExtents(steps, extent);
    if (failed(merged))
      return emitOptionalError(location, "the time axes have ", steps, " and ",
                               extent, " steps");
    steps = *merged;
  }
  return steps;
}

/// The terminator of a scan's body, null when it is malformed.
static YieldOp findYield(Region &body) {
  if (!body.hasOneBlock() || body.front().empty())
    return nullptr;
  return dyn_cast<YieldOp>(body.front().back());
}

static LogicalResult checkScanBody(MaybeLoc location, Region &body,
                                   TypeRange arguments, TypeRange states) {
  if (body.getArgumentTypes() != arguments)
    return emitOptionalError(location, "the body takes ",
                             body.getArgumentTypes(),
                             " but the slices and states are ", arguments);
  YieldOp yield = findYield(body);
  if (!yield)
    return emitOptionalError(location, "the body does not end in ktn.yield");
  TypeRange yielded = yield.getValues().getTypes();
  if (yielded.size() < states.size())
    return emitOptionalError(location, "the body yields ", yielded.size(),
                             " values but there are ", states.size(),
                             " states");
  if (yielded.take_front(states.size()) != states)
    return emitOptionalError(location, "the body yields the states ",
                             yielded.take_front(states.size()),
                             " but they start as ", states);
  return success();
}

LogicalResult ScanOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                       Adaptor adaptor, InferredTypes &types) {
  TypeRange states = adaptor.getInit().getTypes();
  FailureOr<SmallVector<Type>> arguments =
      inferBodyArgumentTypes(location, adaptor.getXs(), adaptor.getInit());
  if (failed(arguments))
    return failure();
  FailureOr<int64_t> steps =
      inferStepCount(location, adaptor.getXs(), adaptor.getLength());
  Region &body = adaptor.getBody();
  if (failed(steps) ||
      failed(checkScanBody(location, body, *arguments, states)))
    return failure();
  llvm::append_range(types, states);
  for (Value output : findYield(body).getValues().drop_front(states.size())) {
    FailureOr<RankedTensorType> type = inferRanked(location, output);
    if (failed(type))
      return failure();
    SmallVector<int64_t> shape{*steps};
    llvm::append_range(shape, type->getShape());
    if (failed(inferTensor(location, shape, type->getElementType(), types)))
      return failure();
  }
  return success();
}

/// The body starts from the slices and states that the operands give it.
LogicalResult ScanOp::refineShapes() {
  FailureOr<SmallVector<Type>> types =
      inferBodyArgumentTypes(getLoc(), getXs(), getInit());
  if (failed(types))
    return failure();
  for (auto [argument, type] :
       llvm::zip_equal(getBody().getArguments(), *types))
    argument.setType(type);
  return success();
}

FailureOr<ScanOp> ScanOp::createChecked(OpBuilder &b, Location location,
                                        ValueRange xs, ValueRange init,
                                        std::optional<int64_t> length,
                                        bool reverse,
                                        std::unique_ptr<Region> body) {
  OperationState state(location, getOperationName());
  state.addOperands(xs);
  state.addOperands(init);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {static_cast<int32_t>(xs.size()),
                                    static_cast<int32_t>(init.size())};
  if (length)
    properties.length = b.getI64IntegerAttr(*length);
  properties.reverse = b.getBoolAttr(reverse);
  state.addRegion(std::move(body));
  if (failed(inferReturnTypes(b.getContext(), location, state.operands,
                              state.attributes.getDictionary(b.getContext()),
                              state.getRawProperties(), state.regions,
                              state.types)))
    return failure();
  return cast<ScanOp>(b.create(state));
}

LogicalResult ScanOp::verify() {
  if (getCheckpointEvery() && *getCheckpointEvery() < 1)
    return emitOpError("keeps states every ")
           << *getCheckpointEvery() << " steps but must do so every 1 or more";
  return success();
}

SmallVector<Value> ScanOp::getCaptures() {
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(getBody(), values);
  return values.takeVector();
}

int64_t ScanOp::getStepCount() {
  // Verified: the time axes and the length do not disagree.
  return *inferStepCount(/*location=*/std::nullopt, getXs(), getLength());
}

OperandRange ScanOp::getYieldedStates() {
  return findYield(getBody()).getValues().take_front(getInit().size());
}

OperandRange ScanOp::getYieldedOutputs() {
  return findYield(getBody()).getValues().drop_front(getInit().size());
}

//===----------------------------------------------------------------------===//
// scan: assembly
//===----------------------------------------------------------------------===//

namespace {
/// `%argument = %operand : type`, as it is parsed.
struct Binding {
  OpAsmParser::Argument argument;
  OpAsmParser::UnresolvedOperand operand;
  Type type;
};
} // namespace

static ParseResult parseBindings(OpAsmParser &parser,
                                 SmallVectorImpl<Binding> &bindings) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] {
    Binding &binding = bindings.emplace_back();
    return failure(parser.parseArgument(binding.argument) ||
                   parser.parseEqual() ||
                   parser.parseOperand(binding.operand) ||
                   parser.parseColonType(binding.type));
  });
}

static ParseResult resolveBindings(OpAsmParser &parser,
                                   ArrayRef<Binding> bindings,
                                   OperationState &result) {
  for (const Binding &binding : bindings)
    if (parser.resolveOperand(binding.operand, binding.type, result.operands))
      return failure();
  return success();
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc start = parser.getCurrentLocation();
  SmallVector<Binding> xs, init;
  if (parseBindings(parser, xs) || parser.parseKeyword("init") ||
      parseBindings(parser, init) || resolveBindings(parser, xs, result) ||
      resolveBindings(parser, init, result))
    return failure();

  auto &properties = result.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {static_cast<int32_t>(xs.size()),
                                    static_cast<int32_t>(init.size())};
  if (succeeded(parser.parseOptionalKeyword("length"))) {
    int64_t length;
    if (parser.parseInteger(length))
      return failure();
    properties.length = parser.getBuilder().getI64IntegerAttr(length);
  }
  bool isReverse = succeeded(parser.parseOptionalKeyword("reverse"));
  properties.reverse = parser.getBuilder().getBoolAttr(isReverse);

  ValueRange operands = result.operands;
  FailureOr<SmallVector<Type>> types = inferBodyArgumentTypes(
      parser.getEncodedSourceLoc(start), operands.take_front(xs.size()),
      operands.drop_front(xs.size()));
  if (failed(types))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  for (const Binding &binding : llvm::concat<Binding>(xs, init)) {
    arguments.push_back(binding.argument);
    arguments.back().type = (*types)[arguments.size() - 1];
  }
  return failure(parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments) ||
                 parser.parseOptionalArrowTypeList(result.types));
}

static void printBindings(OpAsmPrinter &p, ArrayRef<BlockArgument> arguments,
                          OperandRange operands) {
  p << '(';
  llvm::interleaveComma(
      llvm::zip_equal(arguments, operands), p, [&](auto binding) {
        auto [argument, operand] = binding;
        p << argument << " = " << operand << " : " << operand.getType();
      });
  p << ')';
}

void ScanOp::print(OpAsmPrinter &p) {
  p << ' ';
  printBindings(p, getSlices(), getXs());
  p << " init ";
  printBindings(p, getStates(), getInit());
  if (getLength())
    p << " length " << *getLength();
  if (getReverse())
    p << " reverse";
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"operandSegmentSizes", "length", "reverse"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  p.printOptionalArrowTypeList(getResultTypes());
}
