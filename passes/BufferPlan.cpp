//===- BufferPlan.cpp - which tensors share a buffer, and where -----------===//
#include "passes/BufferPlan.h"

#include "passes/Bands.h"
#include "passes/PlaceParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace keratin {

int64_t elementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static constexpr llvm::StringLiteral noBuffer =
    "a value between kernels has no buffer";

/// The constant that `tensor` is, seen through reshapes; or null.
ElementsAttr constantBehind(Value tensor) {
  while (auto *op = tensor.getDefiningOp()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return dyn_cast<ElementsAttr>(constant.getValue());
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
             UnrealizedConversionCastOp>(op))
      break;
    tensor = op->getOperand(0);
  }
  return {};
}

FailureOr<unsigned> BufferPlan::makeBuffer(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.getElementType().isIntOrIndexOrFloat())
    return emitError(tensor.getLoc())
           << "a buffer holds a tensor of numbers, not a " << tensor.getType();
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
  std::optional<BatchSize> bytes = shape ? evaluateCount(*shape) : std::nullopt;
  if (bytes)
    bytes = multiply(*bytes, BatchSize{elementBytes(type.getElementType()), 0});
  if (!bytes)
    return emitError(tensor.getLoc())
           << "size of " << type
           << " overflows, or is no sum of a constant and a multiple of the "
              "batch: fix the batch (--batch=N, or the shapes of the inputs)";
  Buffer buffer;
  buffer.bytes = *bytes;
  buffer.life = {now, now};
  buffer.block = tensor.getParentBlock();
  buffers.push_back(buffer);
  return buffers.size() - 1;
}

/// Where `tensor` is; a constant gets a place among the weights.
FailureOr<Place> BufferPlan::placeOf(Value tensor) {
  if (const Place *place = find(tensor))
    return *place;
  ElementsAttr constant = constantBehind(tensor);
  if (!constant)
    return emitError(tensor.getLoc()) << noBuffer;
  FailureOr<unsigned> buffer = makeBuffer(tensor);
  if (failed(buffer))
    return failure();
  buffers[*buffer].storage = Storage::Weights;
  buffers[*buffer].weight = constant;
  return Place{*buffer, {}, {}};
}

void BufferPlan::touch(const Place &place) {
  Buffer &buffer = buffers[place.buffer];
  buffer.life.last = std::max(buffer.life.last, now);
  for (auto [loop, begin] : openLoops)
    if (buffer.life.first <= begin)
      usedInLoop[loop].insert(place.buffer);
}

void BufferPlan::touch(Value value) {
  if (const Place *place = find(value)) {
    ++buffers[place->buffer].reads;
    touch(*place);
  }
}

LogicalResult BufferPlan::copy(Operation *before, Value from, const Place &to) {
  touch(from);
  touch(to);
  if (from.getDefiningOp<tensor::EmptyOp>())
    return success(); // whatever is there will do
  const Place *source = find(from);
  if (!source && !constantBehind(from))
    return emitError(from.getLoc()) << noBuffer;
  if (!to.strides.empty() || (source && !source->strides.empty()))
    return before->emitOpError("needs a copy of a part of rows");
  copies[before].push_back({from, to, std::nullopt});
  return success();
}

/// Whether elements of `shape` that are `strides` apart are dense.
static bool isDense(ArrayRef<OpFoldResult> shape, ArrayRef<int64_t> strides) {
  int64_t next = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    std::optional<int64_t> extent = getConstantIntValue(shape[axis]);
    if (extent != 1 && strides[axis] != next)
      return false;
    if (!extent)
      return axis == 0;
    next *= *extent;
  }
  return true;
}

/// The place of a slice: whole in all axes but the first, or of a tensor whose
/// inner extents are known.
FailureOr<Place> BufferPlan::slice(Operation *op, Place place, Value whole,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes,
                                   ArrayRef<OpFoldResult> steps) {
  auto type = cast<RankedTensorType>(whole.getType());
  int64_t bytes = elementBytes(type.getElementType());
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(whole);
  std::optional<BatchSize> stride =
      shape ? evaluateCount(ArrayRef(*shape).drop_front()) : std::nullopt;
  if (stride)
    stride = multiply(*stride, BatchSize{bytes, 0});
  auto extentOf = [](OpFoldResult size) -> std::optional<BatchSize> {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return BatchSize{*constant, 0};
    return evaluateBatchSize(cast<Value>(size));
  };
  bool inOrder = llvm::all_of(steps, isOneInteger), isWhole = inOrder && stride;
  bool isKnown =
      inOrder && type.getRank() > 0 &&
      llvm::none_of(type.getShape().drop_front(), ShapedType::isDynamic);
  for (unsigned axis = 1; axis < offsets.size(); ++axis)
    isWhole = isWhole && isZeroInteger(offsets[axis]) &&
              extentOf(sizes[axis]) == (*shape)[axis];
  if (isWhole && place.strides.empty()) {
    place.steps.emplace_back(offsets.front(), *stride);
    return place;
  }
  if (!isKnown)
    return op->emitOpError("is not a slice along the outermost axis");
  if (place.strides.empty())
    place.strides = denseStrides(type.getShape());
  for (auto [offset, apart] : llvm::zip_equal(offsets, place.strides))
    if (!isZeroInteger(offset))
      place.steps.emplace_back(offset, BatchSize{apart * bytes, 0});
  if (isDense(sizes, place.strides))
    place.strides.clear();
  return place;
}

/// The buffer that an insertion goes on with: a new one after an unset tensor,
/// which several may start from, and one filled with it after what stays as it
/// is, a constant or an input.
FailureOr<Place> BufferPlan::destinationOf(tensor::InsertSliceOp insert) {
  Value whole = insert.getDest();
  bool isKept = staysAsItIs(whole);
  if (const Place *place = find(whole); place && !isKept)
    return *place;
  if (!isKept && !whole.getDefiningOp<tensor::EmptyOp>())
    return insert.emitOpError("inserts into a tensor that has no buffer");
  FailureOr<unsigned> buffer = makeBuffer(whole);
  if (failed(buffer))
    return failure();
  Place fresh{*buffer, {}, {}};
  if (!isKept)
    return fresh;
  buffers[*buffer].block = insert->getBlock();
  if (failed(copy(insert, whole, fresh)))
    return failure();
  return fresh;
}

/// Whether nothing is written over `tensor`.
bool BufferPlan::staysAsItIs(Value tensor) const {
  if (const Place *place = find(tensor))
    return bufferAt(*place).storage != Storage::Arena;
  return bool(constantBehind(tensor));
}

LogicalResult BufferPlan::visitInsert(tensor::InsertSliceOp insert) {
  FailureOr<Place> destination = destinationOf(insert);
  if (failed(destination))
    return failure();
  Place whole = *destination;
  FailureOr<Place> target =
      slice(insert, whole, insert.getDest(), insert.getMixedOffsets(),
            insert.getMixedSizes(), insert.getMixedStrides());
  if (failed(target))
    return failure();
  places[insert.getResult()] = whole;
  const Place *made = find(insert.getSource());
  if (made && made->buffer == target->buffer && made->steps == target->steps &&
      made->strides == target->strides) {
    touch(*target);
    return success(); // there already
  }

  // A value that is only made to be inserted is made in place.
  auto isKnownBefore = [&](const std::pair<OpFoldResult, BatchSize> &step,
                           const Buffer &buffer) {
    auto value = dyn_cast<Value>(step.first);
    if (!value || isa<BlockArgument>(value) ||
        value.getParentBlock() != buffer.block)
      return true;
    return buffer.maker && value.getDefiningOp()->isBeforeInBlock(buffer.maker);
  };
  // Not in what is filled first, just before the insertion.
  if (const Place *source = find(insert.getSource());
      source && !staysAsItIs(insert.getDest())) {
    Buffer &buffer = buffers[source->buffer];
    if (buffer.storage == Storage::Arena && source->steps.empty() &&
        buffer.reads == 0 && buffer.block == insert->getBlock() &&
        insert.getSource().hasOneUse() && target->strides.empty() &&
        llvm::all_of(target->steps, [&](const auto &step) {
          return isKnownBefore(step, buffer);
        })) {
      unsigned inserted = source->buffer;
      buffer.bytes = {}; // it has no memory of its own
      // What starts here is written where the value is made.
      BufferLife &life = buffers[target->buffer].life;
      life.first = std::min(life.first, buffer.life.first);
      // Parts of it, such as the steps of an inner loop, are parts of the
      // whole.
      auto redirect = [&](Place &place) {
        if (place.buffer != inserted)
          return;
        Place part = *target;
        llvm::append_range(part.steps, place.steps);
        place = std::move(part);
      };
      for (auto &[value, place] : places)
        redirect(place);
      for (auto &[before, list] : copies)
        for (BufferCopy &copy : list)
          redirect(copy.to);
      touch(*target);
      return success();
    }
  }
  return copy(insert, insert.getSource(), *target);
}

LogicalResult BufferPlan::visitLoop(scf::ForOp loop) {
  SmallVector<Place> carried;
  for (auto [argument, init, result] : llvm::zip_equal(
           loop.getRegionIterArgs(), loop.getInitArgs(), loop.getResults())) {
    const Place *start = find(init);
    // An init that only the loop uses is where the loop goes on.
    if (start && start->steps.empty() && start->strides.empty() &&
        init.hasOneUse() && bufferAt(*start).storage == Storage::Arena &&
        bufferAt(*start).block == loop->getBlock() &&
        bufferAt(*start).reads == 0) {
      carried.push_back(*start);
    } else {
      FailureOr<unsigned> buffer = makeBuffer(init);
      if (failed(buffer))
        return failure();
      buffers[*buffer].block = loop->getBlock();
      carried.push_back(Place{*buffer, {}, {}});
      if (failed(copy(loop, init, carried.back())))
        return failure();
    }
    places[result] = carried.back();
    places[argument] = carried.back();
  }

  unsigned begin = now, known = buffers.size();
  openLoops.emplace_back(loop, begin);
  for (const Place &place : carried)
    touch(place);
  if (failed(visit(*loop.getBody())))
    return failure();

  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  ++now;
  for (auto [number, state] : llvm::enumerate(carried))
    if (goesOnInPlace(loop, number, state))
      touch(state);
  for (auto [value, place] : llvm::zip_equal(yield.getOperands(), carried)) {
    const Place *from = find(value);
    if (from && from->buffer == place.buffer && from->steps.empty() &&
        from->strides.empty())
      continue;
    bool isCarried = from && llvm::any_of(carried, [&](const Place &other) {
                       return other.buffer == from->buffer;
                     });
    if (!isCarried) {
      if (failed(copy(yield, value, place)))
        return failure();
      continue;
    }
    // States that trade places go through a buffer of their own.
    FailureOr<unsigned> buffer = makeBuffer(value);
    if (failed(buffer))
      return failure();
    Place aside = {*buffer, {}, {}};
    copies[yield].insert(copies[yield].begin(), {value, aside, std::nullopt});
    copies[yield].push_back({value, place, aside});
    touch(value);
    touch(aside);
    touch(place);
  }
  openLoops.pop_back();
  ++now;
  for (unsigned buffer : usedInLoop[loop])
    buffers[buffer].life.last = std::max(buffers[buffer].life.last, now);
  if (loop->hasAttr(bandsAttr) || loop->hasAttr(sharedRowsAttr))
    keepInTurns(loop, begin, known);
  return success();
}

/// Keeps the buffers behind `known` to the end of `loop`: one turn may fill
/// some while another, of another band or for other rows, is elsewhere. Bands
/// that may be done at the same time have pieces of their own.
void BufferPlan::keepInTurns(scf::ForOp loop, unsigned begin, unsigned known) {
  auto fields = loop->getAttrOfType<DictionaryAttr>(bandsAttr);
  auto pieces = fields ? fields.getAs<IntegerAttr>("pieces") : IntegerAttr();
  for (Buffer &buffer : llvm::MutableArrayRef(buffers).drop_front(known))
    if (buffer.storage == Storage::Arena) {
      buffer.pieces = pieces ? std::max<int64_t>(pieces.getInt(), 1) : 1;
      buffer.life = {begin, now};
    }
}

LogicalResult BufferPlan::visitReturn(func::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    const Place *place = find(value);
    if (place && place->steps.empty() && place->strides.empty() &&
        bufferAt(*place).storage == Storage::Arena) {
      buffers[place->buffer].storage = Storage::Output;
      buffers[place->buffer].index = index;
      continue;
    }
    FailureOr<unsigned> buffer = makeBuffer(value);
    if (failed(buffer))
      return failure();
    buffers[*buffer].storage = Storage::Output;
    buffers[*buffer].index = index;
    if (failed(copy(op, value, Place{*buffer, {}, {}})))
      return failure();
  }
  return success();
}

/// Views are where their source is. Of parts of rows there are such with more
/// axes, and back.
LogicalResult BufferPlan::visitView(Operation *view) {
  const Place *place = find(view->getOperand(0));
  if (!place)
    return success();
  Place same = *place;
  if (!same.strides.empty()) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(view)) {
      same.strides =
          expandedStrides(expand.getResultType().getShape(),
                          expand.getReassociationIndices(), place->strides);
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(view)) {
      SmallVector<int64_t> strides;
      for (const ReassociationIndices &group :
           collapse.getReassociationIndices())
        strides.push_back(place->strides[group.back()]);
      if (place->strides != expandedStrides(collapse.getSrcType().getShape(),
                                            collapse.getReassociationIndices(),
                                            strides))
        return view->emitOpError("is a view of a part of rows");
      same.strides = strides;
    }
  }
  places[view->getResult(0)] = std::move(same);
  return success();
}

LogicalResult BufferPlan::visitSlice(tensor::ExtractSliceOp extract) {
  // A slot of a buffer that is about to be filled.
  if (Value unset = extract.getSource();
      unset.getDefiningOp<tensor::EmptyOp>() && !find(unset)) {
    FailureOr<unsigned> buffer = makeBuffer(unset);
    if (failed(buffer))
      return failure();
    places[unset] = Place{*buffer, {}, {}};
  }
  FailureOr<Place> whole = placeOf(extract.getSource());
  if (failed(whole))
    return failure();
  FailureOr<Place> part =
      slice(extract, *whole, extract.getSource(), extract.getMixedOffsets(),
            extract.getMixedSizes(), extract.getMixedStrides());
  if (failed(part))
    return failure();
  places[extract.getResult()] = *part;
  return success();
}

LogicalResult BufferPlan::visitMemory(UnrealizedConversionCastOp cast) {
  if (cast.getNumOperands() != 1 || cast.getNumResults() != 1)
    return cast.emitOpError("is not expected between kernels");
  Value source = cast.getOperand(0), result = cast.getResult(0);
  if (source.getDefiningOp<tensor::EmptyOp>()) {
    FailureOr<unsigned> buffer = makeBuffer(source);
    if (failed(buffer))
      return failure();
    buffers[*buffer].block = cast->getBlock();
    buffers[*buffer].maker = cast;
    buffers[*buffer].isKept = source.getDefiningOp()->hasAttr("ktn.kept");
    places[result] = Place{*buffer, {}, {}};
  } else if (const Place *place = find(source)) {
    Place same = *place;
    places[result] = same;
  }
  return success();
}

LogicalResult BufferPlan::visitCall(func::CallOp call) {
  calls.insert({call, now});
  // The last operands are destinations, written and not read.
  for (Value operand : call.getOperands()) {
    if (operand.getType().isIndex())
      continue;
    // Calls of kernels take memrefs already.
    auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
    if (!cast || !isa<RankedTensorType>(cast.getOperand(0).getType()))
      return call.emitOpError("calls ")
             << call.getCalleeAttr() << ", which is no kernel";
    Value tensor = cast.getOperand(0);
    if (const Place *place = find(operand)) {
      touch(*place);
      buffers[place->buffer].reads += !tensor.getDefiningOp<tensor::EmptyOp>();
    }
  }
  return success();
}

LogicalResult BufferPlan::visit(Operation *op) {
  ++now;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return visitLoop(loop); })
      .Case([&](tensor::InsertSliceOp insert) { return visitInsert(insert); })
      .Case([&](tensor::ExtractSliceOp slice) { return visitSlice(slice); })
      .Case([&](func::CallOp call) { return visitCall(call); })
      .Case([&](func::ReturnOp ret) { return visitReturn(ret); })
      .Case([&](UnrealizedConversionCastOp cast) { return visitMemory(cast); })
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(
          [&](Operation *view) { return visitView(view); })
      .Case([&](tensor::ExtractOp element) -> LogicalResult {
        Value tensor = element.getTensor();
        if (!find(tensor) && !constantBehind(tensor))
          return element.emitError(noBuffer);
        touch(tensor);
        return success();
      })
      .Case([&](tensor::FromElementsOp elements) {
        FailureOr<unsigned> buffer = makeBuffer(elements.getResult());
        if (failed(buffer))
          return failure();
        places[elements.getResult()] = Place{*buffer, {}, {}};
        return success();
      })
      .Case<tensor::EmptyOp, tensor::DimOp, scf::YieldOp>(
          [](Operation *) { return success(); })
      .Default([](Operation *other) -> LogicalResult {
        if (isa<arith::ArithDialect>(other->getDialect()))
          return success();
        return other->emitOpError("is not expected between kernels");
      });
}

LogicalResult BufferPlan::visit(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult BufferPlan::run() {
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<unsigned> buffer = makeBuffer(argument);
    if (failed(buffer))
      return failure();
    buffers[*buffer].storage = Storage::Input;
    buffers[*buffer].index = argument.getArgNumber();
    places[argument] = Place{*buffer, {}, {}};
  }
  if (failed(visit(function.front())))
    return failure();
  findInPlace();
  SmallVector<Behind> behind;
  for (auto [op, when] : calls)
    for (unsigned number = 0; number < op->getNumOperands(); ++number)
      if (auto found = findBehind(cast<func::CallOp>(op), number))
        behind.push_back(*found);
  makeInPlace();
  layBehind(behind);

  SmallVector<ArenaRequest> requests;
  SmallVector<unsigned> owners;
  llvm::DenseMap<unsigned, unsigned> numbers; // of the requests of buffers
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.storage == Storage::Arena && !(buffer.bytes == BatchSize{})) {
      std::optional<BatchSize> bytes = buffer.bytes;
      if (buffer.pieces > 1) {
        bytes = alignTo(*bytes, bufferAlignment);
        bytes = bytes ? multiply(*bytes, {buffer.pieces, 0}) : std::nullopt;
        if (!bytes)
          return function.emitOpError("needs an arena whose size overflows");
      }
      requests.push_back(
          {*bytes, buffer.isKept ? BufferLife{0, now} : buffer.life});
      if (auto base = buffer.over ? numbers.find(*buffer.over) : numbers.end();
          base != numbers.end()) {
        requests.back().over = base->second;
        requests.back().bytesBehind = buffer.bytesBehind;
      }
      numbers[index] = owners.size();
      owners.push_back(index);
    }
  FailureOr<ArenaLayout> planned = layoutArena(requests, bufferAlignment);
  if (failed(planned))
    return function.emitOpError("needs an arena whose size overflows");
  layout = *planned;
  for (auto [owner, offset] : llvm::zip_equal(owners, layout.offsets))
    buffers[owner].offset = offset;
  for (Buffer &buffer : buffers)
    if (buffer.over && buffer.bytes == BatchSize{}) {
      const Buffer &base = buffers[*buffer.over];
      buffer.offset = {base.offset.fixed + buffer.bytesBehind,
                       base.offset.perBatch};
      buffer.bytes = base.bytes; // as far apart from piece to piece
    }
  return success();
}

} // namespace keratin
