//===- PlanMemory.cpp - every buffer gets its place in the arena ----------===//
#include "passes/Bands.h"
#include "passes/BatchSizes.h"
#include "passes/Passes.h"
#include "passes/PlaceParts.h"
#include "passes/PlanRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

Value PlanRewriter::materialize(BatchSize size, Location loc) {
  Value fixed = arith::ConstantIndexOp::create(b, loc, size.fixed);
  if (size.isStatic())
    return fixed;
  Value factor = arith::ConstantIndexOp::create(b, loc, size.perBatch);
  Value scaled = arith::MulIOp::create(b, loc, batch, factor);
  return size.fixed ? arith::AddIOp::create(b, loc, scaled, fixed).getResult()
                    : scaled;
}

Value PlanRewriter::baseOf(const Buffer &buffer) {
  switch (buffer.storage) {
  case Storage::Arena:
    return arenaBase;
  case Storage::Weights:
    return weightsBase;
  case Storage::Input:
    return inputBases[buffer.index];
  case Storage::Output:
    return outputBases[buffer.index];
  }
  return {};
}

Value PlanRewriter::offsetOf(const Place &place, Location loc) {
  const Buffer &buffer = plan.bufferAt(place);
  Value offset =
      buffer.weight
          ? materialize({addWeight(buffer.weight, {}, buffer.bytes.fixed), 0},
                        loc)
          : materialize(buffer.offset, loc);
  for (auto [index, stride] : place.steps) {
    Value step = isa<Value>(index) ? scalars.lookup(cast<Value>(index))
                                   : arith::ConstantIndexOp::create(
                                         b, loc, *getConstantIntValue(index));
    Value bytes = arith::MulIOp::create(b, loc, step, materialize(stride, loc));
    offset = arith::AddIOp::create(b, loc, offset, bytes);
  }
  if (buffer.pieces > 1 && piece) {
    BatchSize apart = *alignTo(buffer.bytes, bufferAlignment);
    Value bytes = arith::MulIOp::create(b, loc, piece, materialize(apart, loc));
    offset = arith::AddIOp::create(b, loc, offset, bytes);
  }
  return offset;
}

/// Whether `type` goes from element to element as `place` does.
static bool hasStridesOf(MemRefType type, const Place &place) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  if (type.getLayout().isIdentity() && place.strides.empty())
    return true;
  SmallVector<int64_t> wanted = place.strides;
  if (wanted.empty())
    wanted = denseStrides(type.getShape());
  return wanted.size() == strides.size() &&
         llvm::all_of(llvm::zip(type.getShape(), strides, wanted),
                      [](auto axis) {
                        auto [extent, stride, wanted] = axis;
                        return extent == 1 || stride == wanted;
                      });
}

/// The memory at `offset` as `type`, whose open extents are `sizes`.
Value PlanRewriter::viewAt(Value base, Value offset, MemRefType type,
                           ArrayRef<Value> sizes, Location loc) {
  if (type.getLayout().isIdentity())
    return memref::ViewOp::create(b, loc, type, base, offset, sizes);
  SmallVector<int64_t> strides;
  int64_t none = 0;
  [[maybe_unused]] LogicalResult known =
      type.getStridesAndOffset(strides, none);
  assert(succeeded(known) && "the type was compared with its place");
  // Of the parts of rows the first element; the strides lead to the others.
  auto first = MemRefType::get({1}, type.getElementType());
  Value start =
      memref::ViewOp::create(b, loc, first, base, offset, ValueRange());
  SmallVector<OpFoldResult> extents = getAsIndexOpFoldResult(
      b.getContext(), SmallVector<int64_t>(type.getShape()));
  for (OpFoldResult &extent : extents)
    if (ShapedType::isDynamic(*getConstantIntValue(extent))) {
      extent = sizes.front();
      sizes = sizes.drop_front();
    }
  return memref::ReinterpretCastOp::create(
      b, loc, type, start, b.getIndexAttr(0), extents,
      getAsIndexOpFoldResult(b.getContext(), strides));
}

Value PlanRewriter::bytesOf(const Place &place, BatchSize bytes, Location loc) {
  auto type = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  return viewAt(baseOf(plan.bufferAt(place)), offsetOf(place, loc), type,
                {materialize(bytes, loc)}, loc);
}

/// The rows that are here of `bytes` that begin at `place`.
Value PlanRewriter::rowsOf(const Place &place, BatchSize bytes, Location loc) {
  Value row = arith::ConstantIndexOp::create(b, loc, bytes.fixed / sharedRows);
  Value from = arith::MulIOp::create(b, loc, firstRow, row);
  Value to = arith::MulIOp::create(b, loc, lastRow, row);
  Value offset = arith::AddIOp::create(b, loc, offsetOf(place, loc), from);
  return viewAt(baseOf(plan.bufferAt(place)), offset,
                MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
                {arith::SubIOp::create(b, loc, to, from)}, loc);
}

/// Where the function has `ktn.weights` already, they are those of its code for
/// another target: what is the same has one place.
void PlanRewriter::takePlacedWeights() {
  auto rows = old->getAttrOfType<ArrayAttr>("ktn.weights");
  auto total = old->getAttrOfType<IntegerAttr>("ktn.weights_bytes");
  if (!rows || !total)
    return;
  for (auto row : rows.getAsRange<DictionaryAttr>()) {
    auto value = row.getAs<ElementsAttr>("value");
    auto packed = row.getAs<DictionaryAttr>("packed");
    auto offset = row.getAs<IntegerAttr>("offset");
    auto bytes = row.getAs<IntegerAttr>("bytes");
    if (value && offset && bytes)
      weights[{value, packed}] =
          Weight{value, packed, {bytes.getInt(), 0}, offset.getInt()};
  }
  weightsBytes = total.getInt();
}

/// Where a constant is: behind those of the calls before. Products ask for what
/// follows their own.
int64_t PlanRewriter::addWeight(ElementsAttr value, DictionaryAttr packed,
                                int64_t bytes) {
  auto [it, isNew] = weights.try_emplace({value, packed});
  if (isNew) {
    it->second = Weight{value, packed, BatchSize{bytes, 0}, weightsBytes};
    weightsBytes += llvm::alignTo(bytes, bufferAlignment);
  }
  return it->second.offset;
}

/// Nothing when it overflows.
static std::optional<int64_t> bytesOfType(ShapedType type) {
  std::optional<int64_t> bytes = elementBytes(type.getElementType());
  for (int64_t extent : type.getShape())
    bytes = bytes ? llvm::checkedMul(*bytes, extent) : std::nullopt;
  return bytes;
}

/// The elements of `tensor` as a memref of `type`.
Value PlanRewriter::view(Value tensor, MemRefType type, DictionaryAttr packed,
                         Location loc) {
  if (ElementsAttr constant = constantBehind(tensor)) {
    std::optional<int64_t> bytes = bytesOfType(type);
    if (!bytes)
      return {};
    int64_t offset = addWeight(constant, packed, *bytes);
    return viewAt(weightsBase, arith::ConstantIndexOp::create(b, loc, offset),
                  type, {}, loc);
  }
  const Place *place = plan.find(tensor);
  if (!place || !hasStridesOf(type, *place))
    return {};
  SmallVector<Value> sizes;
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
  for (auto [axis, extent] : llvm::enumerate(*shape))
    if (type.isDynamicDim(axis))
      sizes.push_back(materialize(extent, loc));
  return viewAt(baseOf(plan.bufferAt(*place)), offsetOf(*place, loc), type,
                sizes, loc);
}

void PlanRewriter::emitCopies(Operation *before) {
  Location loc = before->getLoc();
  for (const auto &[value, target, aside] : plan.copiesBefore(before)) {
    BatchSize bytes = plan.bufferAt(target).bytes;
    if (!target.steps.empty() || constantBehind(value)) {
      std::optional<BatchSize> count = evaluateCount(*evaluateShape(value));
      Type element = cast<RankedTensorType>(value.getType()).getElementType();
      bytes = *multiply(*count, BatchSize{elementBytes(element), 0});
    }
    Value source;
    if (!part.empty()) {
      const Place &from = aside ? *aside : *plan.find(value);
      memref::CopyOp::create(b, loc, rowsOf(from, bytes, loc),
                             rowsOf(target, bytes, loc));
      continue;
    }
    if (aside) {
      source = bytesOf(*aside, bytes, loc);
    } else if (ElementsAttr constant = constantBehind(value)) {
      int64_t offset = addWeight(constant, {}, bytes.fixed);
      source =
          viewAt(weightsBase, arith::ConstantIndexOp::create(b, loc, offset),
                 MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
                 {materialize(bytes, loc)}, loc);
    } else {
      source = bytesOf(*plan.find(value), bytes, loc);
    }
    memref::CopyOp::create(b, loc, source, bytesOf(target, bytes, loc));
  }
}

/// Beside memrefs for tensors kernels may take sizes, memory to work in, and
/// what they only ask for.
static bool isTensor(func::FuncOp callee, OpOperand &operand) {
  return isa<MemRefType>(operand.get().getType()) &&
         !callee.getArgAttr(operand.getOperandNumber(), "ktn.scratch") &&
         !callee.getArgAttr(operand.getOperandNumber(), "ktn.ahead") &&
         !callee.getArgAttr(operand.getOperandNumber(), "ktn.kept");
}

/// One row of the table of kernels.
void PlanRewriter::describe(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  SmallVector<Value> tensors;
  for (OpOperand &operand : call->getOpOperands())
    if (isTensor(callee, operand))
      tensors.push_back(operand.get());
  std::string shapes;
  llvm::raw_string_ostream stream(shapes);
  llvm::interleave(
      tensors, stream,
      [&](Value operand) {
        auto type =
            cast<ShapedType>(operand.getDefiningOp<UnrealizedConversionCastOp>()
                                 .getOperand(0)
                                 .getType());
        for (int64_t extent : type.getShape())
          ShapedType::isDynamic(extent) ? stream << "?x"
                                        : stream << extent << 'x';
        stream << type.getElementType();
      },
      " ");
  // Where the first result goes, which may be a part of a larger tensor.
  SmallVector<int64_t> arena = {-1, 0};
  for (OpOperand &operand : call->getOpOperands()) {
    auto tensor = operand.get().getDefiningOp<UnrealizedConversionCastOp>();
    // Of a pool the unset tensor of its extents comes before.
    if (!isTensor(callee, operand) ||
        (!callee.isExternal() &&
         callee.getArgument(operand.getOperandNumber()).use_empty()) ||
        (!tensor.getOperand(0).getDefiningOp<tensor::EmptyOp>() &&
         !callee.getArgAttr(operand.getOperandNumber(), slotAttr)))
      continue;
    const Place &place = *plan.find(operand.get());
    const Buffer &buffer = plan.bufferAt(place);
    BatchSize offset = buffer.offset;
    for (auto [index, stride] : place.steps) {
      // In a loop, where it is in the first turn.
      int64_t steps = getConstantIntValue(index).value_or(0);
      if (std::optional<BatchSize> bytes = multiply(stride, {steps, 0}))
        offset = add(offset, *bytes).value_or(offset);
    }
    if (buffer.storage == Storage::Arena)
      arena = {offset.fixed, offset.perBatch};
    break;
  }
  std::string layer = callee.getName().str();
  if (auto name = dyn_cast<NameLoc>(call.getLoc()))
    layer = name.getName().str();
  // A call that somebody wrote by hand may not say what it costs.
  auto work = [&](llvm::StringRef name) -> Attribute {
    Attribute known = call->getAttr(name);
    return known ? known : b.getDenseI64ArrayAttr({0, 0});
  };
  rows.push_back(b.getDictionaryAttr({
      b.getNamedAttr("name", b.getStringAttr(layer)),
      b.getNamedAttr("op", callee->getAttr("ktn.kernel")),
      b.getNamedAttr("shapes", b.getStringAttr(shapes)),
      b.getNamedAttr("flops", work("ktn.flops")),
      b.getNamedAttr("bytes", work("ktn.bytes")),
      b.getNamedAttr("arena", b.getDenseI64ArrayAttr(arena)),
  }));
}

/// How `kernel` wants its argument packed: {block, dim, type}, where `type` is
/// that of the tensor before. Null when it takes the tensor as it is.
static DictionaryAttr packingOf(func::FuncOp kernel, unsigned argument) {
  auto packed = kernel.getArgAttrOfType<DictionaryAttr>(argument, "ktn.packed");
  if (!packed)
    return {};
  NamedAttrList fields(packed);
  fields.set("type", kernel.getArgAttr(argument, "ktn.unpacked_type"));
  return fields.getDictionary(kernel.getContext());
}

LogicalResult PlanRewriter::emitCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee->hasAttr("ktn.kernel"))
    return call.emitOpError("calls ")
           << call.getCalleeAttr() << ", which is no kernel";
  SmallVector<Value> operands;
  for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
    if (operand.getType().isIndex()) {
      operands.push_back(scalars.lookup(operand));
      continue;
    }
    auto type = dyn_cast<MemRefType>(operand.getType());
    auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
    if (!type || !cast)
      return call.emitOpError("operand #") << index << " is not a memref";
    Value tensor = cast.getOperand(0);
    bool isDestination = bool(tensor.getDefiningOp<tensor::EmptyOp>());
    Value memref;
    if (isDestination) {
      // No two values that live at the same time share bytes.
      callee.setArgAttr(index, "llvm.noalias", b.getUnitAttr());
      const Place &place = *plan.find(operand);
      std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
      SmallVector<Value> sizes;
      for (auto [axis, extent] : llvm::enumerate(*shape))
        if (type.isDynamicDim(axis))
          sizes.push_back(materialize(extent, call.getLoc()));
      memref =
          viewAt(baseOf(plan.bufferAt(place)), offsetOf(place, call.getLoc()),
                 type, sizes, call.getLoc());
    } else {
      DictionaryAttr packing = packingOf(callee, index);
      if (packing && !constantBehind(tensor))
        return call.emitOpError("operand #")
               << index << " is not a constant, which the kernel wants packed";
      memref = view(tensor, type, packing, call.getLoc());
      if (callee.getArgAttr(index, slotAttr))
        callee.setArgAttr(index, "llvm.noalias", b.getUnitAttr());
    }
    if (!memref)
      return call.emitOpError("operand #") << index << " has no buffer";
    operands.push_back(memref);
  }
  if (!part.empty())
    llvm::copy(part, operands.end() - part.size());
  if (!inFunction)
    describe(call);
  func::CallOp::create(b, call.getLoc(), callee, operands);
  return success();
}

/// Stores scalars, such as sizes that a formula divides by.
void PlanRewriter::emitElements(tensor::FromElementsOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getType();
  Value memref = view(
      op.getResult(),
      MemRefType::get({type.getNumElements()}, type.getElementType()), {}, loc);
  for (auto [index, element] : llvm::enumerate(op.getElements()))
    memref::StoreOp::create(
        b, loc, scalars.lookup(element), memref,
        arith::ConstantIndexOp::create(b, loc, index).getResult());
}

/// Loads a scalar that an address depends on, such as the row that an update
/// goes to.
void PlanRewriter::emitElement(tensor::ExtractOp op) {
  RankedTensorType type = op.getTensor().getType();
  Value memref = view(op.getTensor(),
                      MemRefType::get(type.getShape(), type.getElementType()),
                      {}, op.getLoc());
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(scalars.lookup(index));
  scalars.map(
      op.getResult(),
      memref::LoadOp::create(b, op.getLoc(), memref, indices).getResult());
}

LogicalResult PlanRewriter::emit(Block &block) {
  for (Operation &op : block) {
    emitCopies(&op);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto start = call->getAttrOfType<DictionaryAttr>(startAttr);
      if (failed(start ? emitStart(call, start) : emitCall(call)))
        return failure();
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && loop->hasAttr(bandsAttr)) {
      if (failed(emitBands(loop)))
        return failure();
    } else if (auto loop = dyn_cast<scf::ForOp>(op);
               loop && canShareRows(loop)) {
      if (failed(emitSharedRows(loop)))
        return failure();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(emitTurns(loop, scalars.lookup(loop.getLowerBound()),
                           scalars.lookup(loop.getUpperBound()),
                           scalars.lookup(loop.getStep()))))
        return failure();
    } else if (isa<func::ReturnOp>(op)) {
      func::ReturnOp::create(b, op.getLoc());
    } else if (auto elements = dyn_cast<tensor::FromElementsOp>(op)) {
      emitElements(elements);
    } else if (auto element = dyn_cast<tensor::ExtractOp>(op)) {
      emitElement(element);
    } else if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      std::optional<BatchSize> extent = evaluateBatchSize(dim.getResult());
      if (!extent)
        return dim.emitOpError("is not a multiple of the batch");
      scalars.map(dim.getResult(), materialize(*extent, dim.getLoc()));
    } else if (isa<arith::ArithDialect>(op.getDialect()) &&
               llvm::none_of(op.getResultTypes(), llvm::IsaPred<TensorType>)) {
      b.clone(op, scalars);
    }
  }
  return success();
}

/// `isUnsigned` is what the type has not said since the stage linalg.
static DictionaryAttr describeTensor(OpBuilder &b, Attribute name, Type type,
                                     bool isUnsigned) {
  auto tensor = cast<RankedTensorType>(type);
  if (isUnsigned)
    type = tensor.clone(
        b.getIntegerType(tensor.getElementTypeBitWidth(), /*isSigned=*/false));
  return b.getDictionaryAttr(
      {b.getNamedAttr("name", name ? name : b.getStringAttr("")),
       b.getNamedAttr("type", TypeAttr::get(type))});
}

void PlanRewriter::setAttributes(func::FuncOp function) {
  SmallVector<Attribute> inputs, outputs, weightRows;
  for (auto [index, type] : llvm::enumerate(old.getArgumentTypes()))
    inputs.push_back(
        describeTensor(b, old.getArgAttr(index, "ktn.name"), type,
                       bool(old.getArgAttr(index, "ktn.unsigned"))));
  for (auto [index, type] : llvm::enumerate(old.getResultTypes()))
    outputs.push_back(
        describeTensor(b, old.getResultAttr(index, "ktn.name"), type,
                       bool(old.getResultAttr(index, "ktn.unsigned"))));
  for (const auto &[key, weight] : weights) {
    SmallVector<NamedAttribute> row = {
        b.getNamedAttr("offset", b.getI64IntegerAttr(weight.offset)),
        b.getNamedAttr("bytes", b.getI64IntegerAttr(weight.bytes.fixed)),
        b.getNamedAttr("value", weight.value)};
    if (weight.packed)
      row.push_back(b.getNamedAttr("packed", weight.packed));
    weightRows.push_back(b.getDictionaryAttr(row));
  }
  const ArenaLayout &layout = plan.layout;
  function->setAttr(
      "ktn.arena_bytes",
      b.getDenseI64ArrayAttr({layout.bytes.fixed, layout.bytes.perBatch}));
  function->setAttr(
      "ktn.arena_least",
      b.getDenseI64ArrayAttr({layout.least.fixed, layout.least.perBatch}));
  function->setAttr("ktn.weights_bytes", b.getI64IntegerAttr(weightsBytes));
  function->setAttr("ktn.weights", b.getArrayAttr(weightRows));
  function->setAttr("ktn.kernels", b.getArrayAttr(rows));
  function->setAttr("ktn.inputs", b.getArrayAttr(inputs));
  function->setAttr("ktn.outputs", b.getArrayAttr(outputs));
  if (llvm::any_of(plan.inPlace, [](int64_t input) { return input >= 0; }))
    function->setAttr("ktn.in_place", b.getDenseI64ArrayAttr(plan.inPlace));
}

/// What a function gets: weights, arena, batch, inputs and outputs.
void PlanRewriter::takeBases(ValueRange bytes) {
  weightsBase = bytes[0];
  arenaBase = bytes[1];
  batch = bytes[2];
  bytes = bytes.drop_front(3);
  inputBases = llvm::to_vector(bytes.take_front(old.getNumArguments()));
  outputBases =
      llvm::to_vector(bytes.slice(old.getNumArguments(), old.getNumResults()));
}

/// A caller knows of an open extent that it is the batch: it has no memory for
/// the rows of two batches, one behind the other.
LogicalResult PlanRewriter::checkOutputs() {
  auto results = cast<func::ReturnOp>(old.front().getTerminator());
  for (OpOperand &result : results->getOpOperands()) {
    std::optional<SmallVector<BatchSize>> shape = evaluateShape(result.get());
    if (!shape)
      continue; // its buffer has told why
    for (auto [axis, extent] : llvm::enumerate(*shape)) {
      if (extent.isStatic() || extent == BatchSize{0, 1})
        continue;
      auto name = old.getResultAttrOfType<StringAttr>(result.getOperandNumber(),
                                                      "ktn.name");
      InFlightDiagnostic diag = emitError(result.get().getLoc())
                                << "output '" << (name ? name.str() : "")
                                << "' has ";
      if (extent.fixed != 0)
        diag << extent.fixed << (extent.perBatch < 0 ? " - " : " + ");
      return diag << std::abs(extent.perBatch) << " b rows on axis " << axis
                  << " for a batch of b, and only b itself may be open: fix "
                     "the batch (--batch=N, or the shapes of the inputs)";
    }
  }
  return success();
}

LogicalResult PlanRewriter::run() {
  if (failed(checkOutputs()))
    return failure();
  auto bytes = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  SmallVector<Type> types = {bytes, bytes, b.getIndexType()};
  types.append(old.getNumArguments() + old.getNumResults(), bytes);
  auto function = func::FuncOp::create(old.getLoc(), old.getName(),
                                       b.getFunctionType(types, {}));
  Block *body = function.addEntryBlock();
  takePlacedWeights();
  takeBases(body->getArguments());

  b.setInsertionPointToStart(body);
  LogicalResult result = emit(old.front());
  if (failed(result)) {
    function.erase();
    return failure();
  }
  setAttributes(function);
  b.setInsertionPoint(old);
  b.insert(function);
  old.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    SmallVector<std::pair<func::FuncOp, unsigned>> shared;
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || function->hasAttr("ktn.kernel"))
        continue;
      BufferPlan plan(function);
      if (failed(plan.run()) || failed(PlanRewriter(function, plan).run()))
        return signalPassFailure();
      llvm::append_range(shared, plan.shared);
    }
    for (auto [kernel, argument] : shared)
      kernel.removeArgAttr(argument, "llvm.noalias");
  }
};

} // namespace
} // namespace keratin
