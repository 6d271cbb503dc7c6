//===- PlanMemory.cpp - every buffer gets its place in the arena ----------===//
#include "passes/ArenaLayout.h"
#include "passes/BatchSizes.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t alignment = 64;

int64_t elementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

/// What a buffer is part of.
enum class Region { Arena, Weights, Input, Output };

struct Buffer {
  Region region = Region::Arena;
  unsigned index = 0; ///< of the input or output
  BatchSize bytes;
  BatchSize offset;   ///< within its region, but for weights
  ElementsAttr weight; ///< the elements, of weights
  BufferLife life;
  Block *block = nullptr; ///< where it is written first
  unsigned reads = 0;
};

/// Where the elements of a tensor are: in a buffer, `index * stride` bytes
/// after its start for each step.
struct Place {
  unsigned buffer = 0;
  SmallVector<std::pair<OpFoldResult, BatchSize>, 2> steps;
};

/// A weight as the artefact stores it.
struct Weight {
  ElementsAttr value;
  DictionaryAttr packed;
  BatchSize bytes;
  int64_t offset;
};

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

//===----------------------------------------------------------------------===//
// Which tensors share a buffer, and how long each lives
//===----------------------------------------------------------------------===//

class Analysis {
public:
  explicit Analysis(func::FuncOp function) : function(function) {}

  LogicalResult run();

  const Buffer &bufferAt(const Place &place) const {
    return buffers[place.buffer];
  }
  /// Null for constants, which have no place but among the weights.
  const Place *find(Value value) const {
    auto it = places.find(value);
    return it == places.end() ? nullptr : &it->second;
  }
  /// Copies that must be made just before an operation.
  ArrayRef<std::pair<Value, Place>> copiesBefore(Operation *op) const {
    auto it = copies.find(op);
    return it == copies.end() ? ArrayRef<std::pair<Value, Place>>()
                              : ArrayRef(it->second);
  }
  ArenaLayout layout;

private:
  LogicalResult visit(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitLoop(scf::ForOp loop);
  LogicalResult visitInsert(tensor::InsertSliceOp insert);
  LogicalResult visitReturn(func::ReturnOp op);

  FailureOr<unsigned> makeBuffer(Value tensor);
  FailureOr<Place> placeOf(Value tensor);
  FailureOr<Place> slice(Operation *op, Place place, Value whole,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes);
  void touch(Value value);
  void touch(const Place &place);
  void copy(Operation *before, Value from, const Place &to);

  func::FuncOp function;
  SmallVector<Buffer> buffers;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Operation *, SmallVector<std::pair<Value, Place>>> copies;
  /// Buffers of a block that are used in loops within it live to their end.
  SmallVector<std::pair<scf::ForOp, unsigned>> openLoops;
  llvm::DenseMap<Operation *, llvm::SetVector<unsigned>> usedInLoop;
  unsigned now = 0;
};

FailureOr<unsigned> Analysis::makeBuffer(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
  std::optional<BatchSize> bytes =
      shape ? evaluateCount(*shape) : std::nullopt;
  if (bytes)
    bytes = multiply(*bytes, BatchSize{elementBytes(type.getElementType()), 0});
  if (!bytes)
    return emitError(tensor.getLoc())
           << "size of " << type
           << " is not a multiple of the batch or overflows";
  Buffer buffer;
  buffer.bytes = *bytes;
  buffer.life = {now, now};
  buffer.block = tensor.getParentBlock();
  buffers.push_back(buffer);
  return buffers.size() - 1;
}

/// Where `tensor` is; a constant gets a place among the weights.
FailureOr<Place> Analysis::placeOf(Value tensor) {
  if (const Place *place = find(tensor))
    return *place;
  ElementsAttr constant = constantBehind(tensor);
  if (!constant)
    return emitError(tensor.getLoc()) << "a value between kernels has no buffer";
  FailureOr<unsigned> buffer = makeBuffer(tensor);
  if (failed(buffer))
    return failure();
  buffers[*buffer].region = Region::Weights;
  buffers[*buffer].weight = constant;
  return Place{*buffer, {}};
}

void Analysis::touch(const Place &place) {
  Buffer &buffer = buffers[place.buffer];
  buffer.life.last = std::max(buffer.life.last, now);
  for (auto [loop, begin] : openLoops)
    if (buffer.life.first <= begin)
      usedInLoop[loop].insert(place.buffer);
}

void Analysis::touch(Value value) {
  if (const Place *place = find(value)) {
    ++buffers[place->buffer].reads;
    touch(*place);
  }
}

void Analysis::copy(Operation *before, Value from, const Place &to) {
  touch(from);
  touch(to);
  copies[before].emplace_back(from, to);
}

/// The place of a slice that is contiguous: whole in all axes but the first.
FailureOr<Place> Analysis::slice(Operation *op, Place place, Value whole,
                                 ArrayRef<OpFoldResult> offsets,
                                 ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(whole.getType());
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(whole);
  std::optional<BatchSize> stride =
      shape ? evaluateCount(ArrayRef(*shape).drop_front()) : std::nullopt;
  if (stride)
    stride =
        multiply(*stride, BatchSize{elementBytes(type.getElementType()), 0});
  auto extentOf = [](OpFoldResult size) -> std::optional<BatchSize> {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return BatchSize{*constant, 0};
    return evaluateBatchSize(cast<Value>(size));
  };
  for (unsigned axis = 1; stride && axis < offsets.size(); ++axis)
    if (!isZeroInteger(offsets[axis]) ||
        extentOf(sizes[axis]) != (*shape)[axis])
      stride = std::nullopt;
  if (!stride)
    return op->emitOpError("is not a slice along the outermost axis");
  place.steps.emplace_back(offsets.front(), *stride);
  return place;
}

LogicalResult Analysis::visitInsert(tensor::InsertSliceOp insert) {
  const Place *destination = find(insert.getDest());
  if (!destination)
    return insert.emitOpError("inserts into a tensor that has no buffer");
  Place whole = *destination;
  FailureOr<Place> target =
      slice(insert, whole, insert.getDest(), insert.getMixedOffsets(),
            insert.getMixedSizes());
  if (failed(target))
    return failure();
  places[insert.getResult()] = whole;

  // A value that is only made to be inserted is made in place.
  auto isKnownBefore = [&](OpFoldResult index, const Buffer &buffer) {
    auto value = dyn_cast<Value>(index);
    if (!value || isa<BlockArgument>(value))
      return true;
    return value.getParentBlock() != buffer.block;
  };
  if (const Place *source = find(insert.getSource())) {
    Buffer &buffer = buffers[source->buffer];
    if (buffer.region == Region::Arena && source->steps.empty() &&
        buffer.reads == 0 && buffer.block == insert->getBlock() &&
        insert.getSource().hasOneUse() &&
        isKnownBefore(target->steps.back().first, buffer)) {
      unsigned inserted = source->buffer;
      for (auto &[value, place] : places)
        if (place.buffer == inserted)
          place = *target;
      touch(*target);
      return success();
    }
  }
  copy(insert, insert.getSource(), *target);
  return success();
}

LogicalResult Analysis::visitLoop(scf::ForOp loop) {
  SmallVector<Place> carried;
  for (auto [argument, init, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(),
                       loop.getResults())) {
    const Place *start = find(init);
    // An init that only the loop uses is where the loop goes on.
    if (start && start->steps.empty() && init.hasOneUse() &&
        bufferAt(*start).region == Region::Arena &&
        bufferAt(*start).block == loop->getBlock() &&
        bufferAt(*start).reads == 0) {
      carried.push_back(*start);
    } else {
      FailureOr<unsigned> buffer = makeBuffer(init);
      if (failed(buffer))
        return failure();
      buffers[*buffer].block = loop->getBlock();
      carried.push_back(Place{*buffer, {}});
      if (!init.getDefiningOp<tensor::EmptyOp>())
        copy(loop, init, carried.back());
    }
    places[argument] = places[result] = carried.back();
  }

  unsigned begin = now;
  openLoops.emplace_back(loop, begin);
  for (const Place &place : carried)
    touch(place);
  if (failed(visit(*loop.getBody())))
    return failure();

  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  ++now;
  for (auto [value, place] : llvm::zip_equal(yield.getOperands(), carried)) {
    const Place *from = find(value);
    if (from && from->buffer == place.buffer && from->steps.empty())
      continue;
    bool isCarried = from && llvm::any_of(carried, [&](const Place &other) {
                       return other.buffer == from->buffer;
                     });
    if (!isCarried) {
      copy(yield, value, place);
      continue;
    }
    // States that trade places go through a buffer of their own.
    FailureOr<unsigned> buffer = makeBuffer(value);
    if (failed(buffer))
      return failure();
    copies[yield].insert(copies[yield].begin(),
                         {value, Place{*buffer, {}}});
    touch(value);
    places[value] = Place{*buffer, {}};
    copy(yield, value, place);
  }
  openLoops.pop_back();
  ++now;
  for (unsigned buffer : usedInLoop[loop])
    buffers[buffer].life.last = std::max(buffers[buffer].life.last, now);
  return success();
}

LogicalResult Analysis::visitReturn(func::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    const Place *place = find(value);
    if (place && place->steps.empty() &&
        bufferAt(*place).region == Region::Arena) {
      buffers[place->buffer].region = Region::Output;
      buffers[place->buffer].index = index;
      continue;
    }
    FailureOr<unsigned> buffer = makeBuffer(value);
    if (failed(buffer))
      return failure();
    buffers[*buffer].region = Region::Output;
    buffers[*buffer].index = index;
    copy(op, value, Place{*buffer, {}});
  }
  return success();
}

LogicalResult Analysis::visit(Operation *op) {
  ++now;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return visitLoop(loop); })
      .Case([&](tensor::InsertSliceOp insert) { return visitInsert(insert); })
      .Case([&](func::ReturnOp ret) { return visitReturn(ret); })
      .Case<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(
          [&](Operation *view) {
            if (const Place *place = find(view->getOperand(0))) {
              Place same = *place;
              places[view->getResult(0)] = same;
            }
            return success();
          })
      .Case([&](tensor::ExtractSliceOp extract) {
        FailureOr<Place> whole = placeOf(extract.getSource());
        if (failed(whole))
          return failure();
        FailureOr<Place> part =
            slice(extract, *whole, extract.getSource(),
                  extract.getMixedOffsets(), extract.getMixedSizes());
        if (failed(part))
          return failure();
        places[extract.getResult()] = *part;
        return success();
      })
      .Case([&](tensor::FromElementsOp elements) {
        FailureOr<unsigned> buffer = makeBuffer(elements.getResult());
        if (failed(buffer))
          return failure();
        places[elements.getResult()] = Place{*buffer, {}};
        return success();
      })
      .Case([&](UnrealizedConversionCastOp cast) {
        Value source = cast.getOperand(0), result = cast.getResult(0);
        if (source.getDefiningOp<tensor::EmptyOp>()) {
          FailureOr<unsigned> buffer = makeBuffer(source);
          if (failed(buffer))
            return failure();
          buffers[*buffer].block = cast->getBlock();
          places[result] = Place{*buffer, {}};
        } else if (const Place *place = find(source)) {
          Place same = *place;
          places[result] = same;
        }
        return success();
      })
      .Case([&](func::CallOp call) {
        // The last operands are destinations, written and not read.
        for (Value operand : call.getOperands()) {
          Value tensor =
              operand.getDefiningOp<UnrealizedConversionCastOp>().getOperand(0);
          if (const Place *place = find(operand)) {
            touch(*place);
            buffers[place->buffer].reads +=
                !tensor.getDefiningOp<tensor::EmptyOp>();
          }
        }
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

LogicalResult Analysis::visit(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult Analysis::run() {
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<unsigned> buffer = makeBuffer(argument);
    if (failed(buffer))
      return failure();
    buffers[*buffer].region = Region::Input;
    buffers[*buffer].index = argument.getArgNumber();
    places[argument] = Place{*buffer, {}};
  }
  if (failed(visit(function.front())))
    return failure();

  SmallVector<ArenaRequest> requests;
  SmallVector<unsigned> owners;
  for (auto [index, buffer] : llvm::enumerate(buffers))
    if (buffer.region == Region::Arena) {
      requests.push_back({buffer.bytes, buffer.life});
      owners.push_back(index);
    }
  FailureOr<ArenaLayout> planned = layoutArena(requests, alignment);
  if (failed(planned))
    return function.emitOpError("needs an arena whose size overflows");
  layout = *planned;
  for (auto [owner, offset] : llvm::zip_equal(owners, layout.offsets))
    buffers[owner].offset = offset;
  return success();
}

//===----------------------------------------------------------------------===//
// The function on bytes
//===----------------------------------------------------------------------===//

class Rewriter {
public:
  Rewriter(func::FuncOp function, Analysis &analysis)
      : old(function), analysis(analysis), b(function.getContext()) {}

  LogicalResult run();

private:
  LogicalResult emit(Block &block);
  LogicalResult emitCall(func::CallOp call);
  void emitElements(tensor::FromElementsOp op);
  void emitCopies(Operation *before);
  Value view(Value tensor, MemRefType type, DictionaryAttr packed,
             Location loc);
  Value viewAt(Value base, Value offset, MemRefType type,
               ArrayRef<Value> sizes, Location loc);
  Value bytesOf(const Place &place, BatchSize bytes, Location loc);
  Value offsetOf(const Place &place, Location loc);
  Value baseOf(const Buffer &buffer);
  Value materialize(BatchSize size, Location loc);
  int64_t addWeight(ElementsAttr value, DictionaryAttr packed, int64_t bytes);
  void describe(func::CallOp call);
  void setAttributes(func::FuncOp function);

  func::FuncOp old;
  Analysis &analysis;
  OpBuilder b;
  IRMapping scalars;
  Value weightsBase, arenaBase, batch;
  SmallVector<Value> inputBases, outputBases;
  llvm::MapVector<std::pair<Attribute, Attribute>, Weight> weights;
  int64_t weightsBytes = 0;
  SmallVector<Attribute> rows;
};

Value Rewriter::materialize(BatchSize size, Location loc) {
  Value fixed = arith::ConstantIndexOp::create(b, loc, size.fixed);
  if (size.isStatic())
    return fixed;
  Value factor = arith::ConstantIndexOp::create(b, loc, size.perBatch);
  Value scaled = arith::MulIOp::create(b, loc, batch, factor);
  return size.fixed ? arith::AddIOp::create(b, loc, scaled, fixed).getResult()
                    : scaled;
}

Value Rewriter::baseOf(const Buffer &buffer) {
  switch (buffer.region) {
  case Region::Arena:
    return arenaBase;
  case Region::Weights:
    return weightsBase;
  case Region::Input:
    return inputBases[buffer.index];
  case Region::Output:
    return outputBases[buffer.index];
  }
  return {};
}

Value Rewriter::offsetOf(const Place &place, Location loc) {
  const Buffer &buffer = analysis.bufferAt(place);
  Value offset =
      buffer.weight
          ? materialize({addWeight(buffer.weight, {}, buffer.bytes.fixed), 0},
                        loc)
          : materialize(buffer.offset, loc);
  for (auto [index, stride] : place.steps) {
    Value step = isa<Value>(index)
                     ? scalars.lookup(cast<Value>(index))
                     : arith::ConstantIndexOp::create(
                           b, loc, *getConstantIntValue(index));
    Value bytes =
        arith::MulIOp::create(b, loc, step, materialize(stride, loc));
    offset = arith::AddIOp::create(b, loc, offset, bytes);
  }
  return offset;
}

Value Rewriter::viewAt(Value base, Value offset, MemRefType type,
                       ArrayRef<Value> sizes, Location loc) {
  return memref::ViewOp::create(b, loc, type, base, offset, sizes);
}

Value Rewriter::bytesOf(const Place &place, BatchSize bytes, Location loc) {
  auto type = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  return viewAt(baseOf(analysis.bufferAt(place)), offsetOf(place, loc), type,
                {materialize(bytes, loc)}, loc);
}

int64_t Rewriter::addWeight(ElementsAttr value, DictionaryAttr packed,
                            int64_t bytes) {
  auto [it, isNew] = weights.try_emplace({value, packed});
  if (isNew) {
    it->second = Weight{value, packed, BatchSize{bytes, 0}, weightsBytes};
    weightsBytes += llvm::alignTo(bytes, alignment);
  }
  return it->second.offset;
}

int64_t bytesOfType(ShapedType type) {
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t extent : type.getShape())
    bytes *= extent;
  return bytes;
}

/// The elements of `tensor` as a memref of `type`.
Value Rewriter::view(Value tensor, MemRefType type, DictionaryAttr packed,
                     Location loc) {
  if (ElementsAttr constant = constantBehind(tensor)) {
    int64_t offset = addWeight(constant, packed, bytesOfType(type));
    return viewAt(weightsBase, arith::ConstantIndexOp::create(b, loc, offset),
                  type, {}, loc);
  }
  const Place *place = analysis.find(tensor);
  if (!place)
    return {};
  SmallVector<Value> sizes;
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
  for (auto [axis, extent] : llvm::enumerate(*shape))
    if (type.isDynamicDim(axis))
      sizes.push_back(materialize(extent, loc));
  return viewAt(baseOf(analysis.bufferAt(*place)), offsetOf(*place, loc), type,
                sizes, loc);
}

void Rewriter::emitCopies(Operation *before) {
  Location loc = before->getLoc();
  for (auto [value, target] : analysis.copiesBefore(before)) {
    BatchSize bytes = analysis.bufferAt(target).bytes;
    if (!target.steps.empty() || constantBehind(value)) {
      std::optional<BatchSize> count = evaluateCount(*evaluateShape(value));
      Type element = cast<RankedTensorType>(value.getType()).getElementType();
      bytes = *multiply(*count, BatchSize{elementBytes(element), 0});
    }
    Value source;
    if (ElementsAttr constant = constantBehind(value)) {
      int64_t offset = addWeight(constant, {}, bytes.fixed);
      source = viewAt(
          weightsBase, arith::ConstantIndexOp::create(b, loc, offset),
          MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
          {materialize(bytes, loc)}, loc);
    } else {
      source = bytesOf(*analysis.find(value), bytes, loc);
    }
    memref::CopyOp::create(b, loc, source, bytesOf(target, bytes, loc));
  }
}

/// One row of the table of kernels.
void Rewriter::describe(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  std::string shapes;
  llvm::raw_string_ostream stream(shapes);
  llvm::interleave(
      call.getOperands(), stream,
      [&](Value operand) {
        auto type = cast<ShapedType>(
            operand.getDefiningOp<UnrealizedConversionCastOp>()
                .getOperand(0)
                .getType());
        for (int64_t extent : type.getShape())
          ShapedType::isDynamic(extent) ? stream << "?x"
                                        : stream << extent << 'x';
        stream << type.getElementType();
      },
      " ");
  // Where the first result goes.
  SmallVector<int64_t> arena = {-1, 0};
  for (Value operand : call.getOperands())
    if (operand.getDefiningOp<UnrealizedConversionCastOp>()
            .getOperand(0)
            .getDefiningOp<tensor::EmptyOp>()) {
      const Buffer &buffer = analysis.bufferAt(*analysis.find(operand));
      if (buffer.region == Region::Arena)
        arena = {buffer.offset.fixed, buffer.offset.perBatch};
      break;
    }
  std::string layer = callee.getName().str();
  if (auto name = dyn_cast<NameLoc>(call.getLoc()))
    layer = name.getName().str();
  rows.push_back(b.getDictionaryAttr({
      b.getNamedAttr("name", b.getStringAttr(layer)),
      b.getNamedAttr("op", callee->getAttr("ktn.kernel")),
      b.getNamedAttr("shapes", b.getStringAttr(shapes)),
      b.getNamedAttr("flops", call->getAttr("ktn.flops")),
      b.getNamedAttr("bytes", call->getAttr("ktn.bytes")),
      b.getNamedAttr("arena", b.getDenseI64ArrayAttr(arena)),
  }));
}

/// How `kernel` wants its argument packed: {block, dim, type}, where `type` is
/// that of the tensor before. Null when it takes the tensor as it is.
static DictionaryAttr packingOf(func::FuncOp kernel, unsigned argument) {
  auto packed =
      kernel.getArgAttrOfType<DictionaryAttr>(argument, "ktn.packed");
  if (!packed)
    return {};
  NamedAttrList fields(packed);
  fields.set("type", kernel.getArgAttr(argument, "ktn.unpacked_type"));
  return fields.getDictionary(kernel.getContext());
}

LogicalResult Rewriter::emitCall(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  SmallVector<Value> operands;
  for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    auto cast = operand.getDefiningOp<UnrealizedConversionCastOp>();
    if (!type || !cast)
      return call.emitOpError("operand #") << index << " is not a memref";
    Value tensor = cast.getOperand(0);
    bool isDestination = bool(tensor.getDefiningOp<tensor::EmptyOp>());
    Value memref;
    if (isDestination) {
      const Place &place = *analysis.find(operand);
      std::optional<SmallVector<BatchSize>> shape = evaluateShape(tensor);
      SmallVector<Value> sizes;
      for (auto [axis, extent] : llvm::enumerate(*shape))
        if (type.isDynamicDim(axis))
          sizes.push_back(materialize(extent, call.getLoc()));
      memref = viewAt(baseOf(analysis.bufferAt(place)),
                      offsetOf(place, call.getLoc()), type, sizes,
                      call.getLoc());
    } else {
      memref = view(tensor, type, packingOf(callee, index), call.getLoc());
    }
    if (!memref)
      return call.emitOpError("operand #") << index << " has no buffer";
    operands.push_back(memref);
  }
  describe(call);
  func::CallOp::create(b, call.getLoc(), callee, operands);
  return success();
}

/// Stores scalars, such as sizes that a formula divides by.
void Rewriter::emitElements(tensor::FromElementsOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getType();
  Value memref = view(op.getResult(),
                      MemRefType::get({type.getNumElements()},
                                      type.getElementType()),
                      {}, loc);
  for (auto [index, element] : llvm::enumerate(op.getElements()))
    memref::StoreOp::create(
        b, loc, scalars.lookup(element), memref,
        arith::ConstantIndexOp::create(b, loc, index).getResult());
}

LogicalResult Rewriter::emit(Block &block) {
  for (Operation &op : block) {
    emitCopies(&op);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(emitCall(call)))
        return failure();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto bare = scf::ForOp::create(
          b, loop.getLoc(), scalars.lookup(loop.getLowerBound()),
          scalars.lookup(loop.getUpperBound()), scalars.lookup(loop.getStep()));
      scalars.map(loop.getInductionVar(), bare.getInductionVar());
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(bare.getBody()->getTerminator());
      if (failed(emit(*loop.getBody())))
        return failure();
    } else if (isa<func::ReturnOp>(op)) {
      func::ReturnOp::create(b, op.getLoc());
    } else if (auto elements = dyn_cast<tensor::FromElementsOp>(op)) {
      emitElements(elements);
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

DictionaryAttr describeTensor(OpBuilder &b, Attribute name, Type type) {
  return b.getDictionaryAttr(
      {b.getNamedAttr("name", name ? name : b.getStringAttr("")),
       b.getNamedAttr("type", TypeAttr::get(type))});
}

void Rewriter::setAttributes(func::FuncOp function) {
  SmallVector<Attribute> inputs, outputs, weightRows;
  for (auto [index, type] : llvm::enumerate(old.getArgumentTypes()))
    inputs.push_back(
        describeTensor(b, old.getArgAttr(index, "ktn.name"), type));
  for (auto [index, type] : llvm::enumerate(old.getResultTypes()))
    outputs.push_back(
        describeTensor(b, old.getResultAttr(index, "ktn.name"), type));
  for (const auto &[key, weight] : weights) {
    SmallVector<NamedAttribute> row = {
        b.getNamedAttr("offset", b.getI64IntegerAttr(weight.offset)),
        b.getNamedAttr("bytes", b.getI64IntegerAttr(weight.bytes.fixed)),
        b.getNamedAttr("value", weight.value)};
    if (weight.packed)
      row.push_back(b.getNamedAttr("packed", weight.packed));
    weightRows.push_back(b.getDictionaryAttr(row));
  }
  const ArenaLayout &layout = analysis.layout;
  function->setAttr("ktn.arena_bytes",
                    b.getDenseI64ArrayAttr(
                        {layout.bytes.fixed, layout.bytes.perBatch}));
  function->setAttr("ktn.weights_bytes", b.getI64IntegerAttr(weightsBytes));
  function->setAttr("ktn.weights", b.getArrayAttr(weightRows));
  function->setAttr("ktn.kernels", b.getArrayAttr(rows));
  function->setAttr("ktn.inputs", b.getArrayAttr(inputs));
  function->setAttr("ktn.outputs", b.getArrayAttr(outputs));
}

LogicalResult Rewriter::run() {
  auto bytes = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  SmallVector<Type> types = {bytes, bytes, b.getIndexType()};
  types.append(old.getNumArguments() + old.getNumResults(), bytes);
  auto function = func::FuncOp::create(old.getLoc(), old.getName(),
                                       b.getFunctionType(types, {}));
  Block *body = function.addEntryBlock();
  weightsBase = body->getArgument(0);
  arenaBase = body->getArgument(1);
  batch = body->getArgument(2);
  ValueRange ends = body->getArguments().drop_front(3);
  inputBases = llvm::to_vector(ends.take_front(old.getNumArguments()));
  outputBases = llvm::to_vector(ends.drop_front(old.getNumArguments()));

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

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || function->hasAttr("ktn.kernel"))
        continue;
      Analysis analysis(function);
      if (failed(analysis.run()) ||
          failed(Rewriter(function, analysis).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace keratin
