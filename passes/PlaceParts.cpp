//===- PlaceParts.cpp - parts of a tensor are made in their places --------===//
//
// From the last call to the first: a concat or pad whose result has a place in
// a larger buffer, or is one, gives each operand a place in it. An operand is
// placed when a kernel of the same block makes it and nothing but kernels reads
// it; others are copied. Then, from the first call to the last, the calls write
// to slices of the buffers.
//
//===----------------------------------------------------------------------===//
#include "passes/PlaceParts.h"

#include "passes/Frames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace keratin {

bool canBeSlice(RankedTensorType type) {
  return type.getRank() >= 2 && isa<FloatType>(type.getElementType()) &&
         type.getShape().back() > 1 &&
         !llvm::is_contained(type.getShape(), 0) &&
         llvm::none_of(type.getShape().drop_front(), ShapedType::isDynamic);
}

SmallVector<int64_t> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

SmallVector<int64_t>
expandedStrides(ArrayRef<int64_t> shape,
                ArrayRef<ReassociationIndices> reassociation,
                ArrayRef<int64_t> strides) {
  SmallVector<int64_t> expanded(shape.size());
  for (auto [group, stride] : llvm::zip_equal(reassociation, strides)) {
    int64_t apart = stride;
    for (int64_t axis : llvm::reverse(group)) {
      expanded[axis] = apart;
      if (axis != group.front()) // whose extent may be open
        apart *= shape[axis];
    }
  }
  return expanded;
}

namespace {

/// Where a value is: at `offsets` in a buffer.
struct Spot {
  unsigned buffer;
  SmallVector<int64_t> offsets;
};

struct WholeBuffer {
  RankedTensorType type;
  Operation *first = nullptr; ///< that writes to it
  Value batch;                ///< its first extent, where that is open
  Value current;              ///< with what has been written so far
};

class PartPlacer {
public:
  explicit PartPlacer(func::FuncOp function)
      : block(function.front()), module(function->getParentOfType<ModuleOp>()),
        symbols(module), b(function.getContext()) {}

  void run();

private:
  func::FuncOp calleeOf(func::CallOp call) {
    return symbols.lookup<func::FuncOp>(call.getCallee());
  }
  bool takesStrides(func::CallOp call, unsigned operand);
  OpResult madeAs(Value value);
  bool canPlace(Value value);
  bool canMove(Value size, Operation *before);
  Value move(Value size, Operation *before);
  void plan(func::CallOp call, Frame frame);

  Value slice(const Spot &location, RankedTensorType type);
  void insert(const Spot &location, Value part);
  SmallVector<OpFoldResult> sizesOf(const Spot &location,
                                    RankedTensorType type);
  Value expand(Value slot, tensor::CollapseShapeOp view);
  void writeToSlots(func::CallOp call);
  void rewriteFrame(func::CallOp call, Frame &frame);
  void copyPart(Spot location, Value part, func::CallOp like);
  void fillBorder(const Spot &whole, const Frame &frame, func::CallOp like);
  func::FuncOp
  makeKernel(func::CallOp like, StringRef kind, TypeRange inputs,
             RankedTensorType type,
             llvm::function_ref<Value(OpBuilder &, ValueRange)> body);
  Value callKernel(func::FuncOp kernel, ValueRange inputs, Value destination,
                   func::CallOp like);
  void useStrides(func::CallOp call);

  Block &block;
  ModuleOp module;
  SymbolTable symbols;
  OpBuilder b;
  SmallVector<WholeBuffer> buffers;
  llvm::DenseMap<Value, Spot> located;
  llvm::DenseMap<Operation *, Frame> frames;
  llvm::DenseMap<Value, Value> joined; ///< what results of frames became
  llvm::DenseMap<Value, SmallVector<int64_t>> strided;
  llvm::StringMap<func::FuncOp> variants;
  llvm::StringMap<func::FuncOp> made;
};

} // namespace

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// Whether an operand of `call` may be other than dense: kernels reshape dense
/// arguments only.
bool PartPlacer::takesStrides(func::CallOp call, unsigned operand) {
  func::FuncOp kernel = calleeOf(call);
  if (!kernel || !kernel->hasAttr("ktn.kernel") || kernel.isExternal())
    return false;
  return llvm::none_of(
      kernel.getArgument(operand).getUsers(),
      llvm::IsaPred<tensor::CollapseShapeOp, tensor::ExpandShapeOp>);
}

/// The result of a call that `value` is, or is a view with fewer axes of.
OpResult PartPlacer::madeAs(Value value) {
  if (auto view = value.getDefiningOp<tensor::CollapseShapeOp>())
    if (view.getSrc().hasOneUse() && canBeSlice(view.getSrcType()))
      value = view.getSrc();
  auto call = value.getDefiningOp<func::CallOp>();
  return call && call->getBlock() == &block ? cast<OpResult>(value)
                                            : OpResult();
}

bool PartPlacer::canPlace(Value value) {
  OpResult result = madeAs(value);
  if (!result || located.contains(value) ||
      !canBeSlice(cast<RankedTensorType>(value.getType())))
    return false;
  auto producer = cast<func::CallOp>(result.getOwner());
  unsigned destination = producer.getNumOperands() - producer.getNumResults() +
                         result.getResultNumber();
  if (!producer.getOperand(destination).getDefiningOp<tensor::EmptyOp>() ||
      !takesStrides(producer, destination))
    return false;
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (isa<tensor::DimOp>(use.getOwner()))
      return true;
    auto reader = dyn_cast<func::CallOp>(use.getOwner());
    return reader && reader->getBlock() == &block &&
           takesStrides(reader, use.getOperandNumber());
  });
}

/// Whether `size` is known, or can be computed, before an operation.
bool PartPlacer::canMove(Value size, Operation *before) {
  Operation *op = size.getDefiningOp();
  if (!op || op->getBlock() != &block || op->isBeforeInBlock(before))
    return true;
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return isa<BlockArgument>(dim.getSource()) &&
           canMove(dim.getIndex(), before);
  return isa<arith::ArithDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return canMove(operand, before); });
}

Value PartPlacer::move(Value size, Operation *before) {
  Operation *op = size.getDefiningOp();
  if (!op || op->getBlock() != &block || op->isBeforeInBlock(before))
    return size;
  for (Value operand : op->getOperands())
    move(operand, before);
  op->moveBefore(before);
  return size;
}

void PartPlacer::plan(func::CallOp call, Frame frame) {
  Value whole = call.getResult(0);
  auto type = cast<RankedTensorType>(whole.getType());
  Operation *first = call;
  bool places = false;
  for (Part &part : frame.parts) {
    bool again = llvm::count_if(frame.parts, [&](const Part &other) {
                   return other.value == part.value;
                 }) > 1;
    part.placed = !again && canPlace(part.value);
    places |= part.placed;
    Operation *maker = part.placed ? madeAs(part.value).getOwner() : first;
    if (maker->isBeforeInBlock(first))
      first = maker;
  }
  if (!places || !canBeSlice(type))
    return;
  auto inner = located.find(whole);
  bool isNew = inner == located.end();
  Spot location = {unsigned(buffers.size()),
                   SmallVector<int64_t>(type.getRank(), 0)};
  if (!isNew)
    location = inner->second;
  Value batch;
  if (type.isDynamicDim(0)) {
    auto empty = call.getOperands().back().getDefiningOp<tensor::EmptyOp>();
    if (!isNew)
      batch = buffers[location.buffer].batch;
    else if (empty)
      batch = empty.getDynamicSizes()[0];
    if (!batch || !canMove(batch, first))
      return;
  }
  if (isNew)
    buffers.push_back({type, first, batch, {}});
  WholeBuffer &buffer = buffers[location.buffer];
  if (first->isBeforeInBlock(buffer.first))
    buffer.first = first;
  for (Part &part : frame.parts) {
    if (!part.placed)
      continue;
    Spot place = location;
    for (auto [offset, more] : llvm::zip_equal(place.offsets, part.offsets))
      offset += more;
    located[part.value] = place;
  }
  located[whole] = location;
  frames[call] = std::move(frame);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

SmallVector<OpFoldResult> PartPlacer::sizesOf(const Spot &location,
                                              RankedTensorType type) {
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(
      b.getContext(), SmallVector<int64_t>(type.getShape()));
  if (type.isDynamicDim(0))
    sizes[0] = buffers[location.buffer].batch;
  return sizes;
}

/// What is at `location` now.
Value PartPlacer::slice(const Spot &location, RankedTensorType type) {
  const WholeBuffer &buffer = buffers[location.buffer];
  if (type == buffer.type)
    return buffer.current;
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  Value part = tensor::ExtractSliceOp::create(
      b, b.getUnknownLoc(), type, buffer.current,
      getAsIndexOpFoldResult(b.getContext(), location.offsets),
      sizesOf(location, type), ones);
  SmallVector<int64_t> strides = denseStrides(buffer.type.getShape());
  bool isDense = true;
  for (auto [extent, stride, dense] :
       llvm::zip_equal(type.getShape(), strides, denseStrides(type.getShape())))
    isDense &= extent == 1 || stride == dense;
  if (!isDense)
    strided[part] = strides;
  return part;
}

/// `part` has been written to its slot.
void PartPlacer::insert(const Spot &location, Value part) {
  WholeBuffer &buffer = buffers[location.buffer];
  auto type = cast<RankedTensorType>(part.getType());
  if (type == buffer.type) {
    buffer.current = part;
    return;
  }
  SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
  buffer.current = tensor::InsertSliceOp::create(
      b, b.getUnknownLoc(), part, buffer.current,
      getAsIndexOpFoldResult(b.getContext(), location.offsets),
      sizesOf(location, type), ones);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The kernel of one operation, named after the one that `like` calls.
func::FuncOp PartPlacer::makeKernel(
    func::CallOp like, StringRef kind, TypeRange inputs, RankedTensorType type,
    llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  SmallVector<Type> types(inputs);
  types.push_back(type);
  OpBuilder builder(b.getContext());
  auto kernel = func::FuncOp::create(like.getLoc(), "kernel",
                                     builder.getFunctionType(types, {type}));
  kernel.setPrivate();
  kernel->setAttr("ktn.kernel", b.getStringAttr(kind));
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  Value result = body(builder, kernel.getArguments());
  func::ReturnOp::create(builder, like.getLoc(), result);
  std::string structure;
  llvm::raw_string_ostream stream(structure);
  kernel.print(stream, OpPrintingFlags().useLocalScope());
  auto [known, isNew] = made.try_emplace(structure, kernel);
  if (!isNew) {
    kernel.erase();
    return known->second;
  }
  kernel.setName((like.getCallee() + "." + kind).str());
  symbols.insert(kernel, module.getBody()->end());
  return kernel;
}

Value PartPlacer::callKernel(func::FuncOp kernel, ValueRange inputs,
                             Value destination, func::CallOp like) {
  SmallVector<Value> operands(inputs);
  operands.push_back(destination);
  auto call = func::CallOp::create(b, like.getLoc(), kernel, operands);
  int64_t fixed = 0, perBatch = 0;
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    for (int64_t extent : type.getShape())
      bytes *= ShapedType::isDynamic(extent) ? 1 : extent;
    (type.isDynamicDim(0) ? perBatch : fixed) += bytes;
  }
  call->setAttr("ktn.flops", b.getDenseI64ArrayAttr({0, 0}));
  call->setAttr("ktn.bytes", b.getDenseI64ArrayAttr({fixed, perBatch}));
  if (auto known = strided.find(destination); known != strided.end()) {
    SmallVector<int64_t> strides = known->second;
    strided[call.getResult(0)] = strides;
  }
  useStrides(call);
  return call.getResult(0);
}

/// Lets `call` be of a kernel that takes its operands with their strides.
void PartPlacer::useStrides(func::CallOp call) {
  func::FuncOp kernel = calleeOf(call);
  unsigned inputs = call.getNumOperands() - call.getNumResults();
  SmallVector<std::pair<unsigned, SmallVector<int64_t>>> wanted;
  std::string key = call.getCallee().str();
  llvm::raw_string_ostream stream(key);
  for (auto [number, operand] : llvm::enumerate(call.getOperands()))
    if (auto known = strided.find(operand); known != strided.end()) {
      wanted.emplace_back(number, known->second);
      stream << ' ' << number << ':';
      llvm::interleave(known->second, stream, "x");
    }
  if (wanted.empty())
    return;
  auto [variant, isNew] = variants.try_emplace(key);
  if (isNew) {
    func::FuncOp clone = kernel.clone();
    for (const auto &[number, strides] : wanted) {
      clone.setArgAttr(number, stridesAttr, b.getDenseI64ArrayAttr(strides));
      if (number >= inputs)
        clone.setArgAttr(number, slotAttr, b.getUnitAttr());
    }
    symbols.insert(clone, module.getBody()->end());
    variant->second = clone;
  }
  call.setCallee(variant->second.getName());
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// The slot with the axes that `view` takes away.
Value PartPlacer::expand(Value slot, tensor::CollapseShapeOp view) {
  RankedTensorType type = view.getSrcType();
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(
      b.getContext(), SmallVector<int64_t>(type.getShape()));
  if (type.isDynamicDim(0))
    sizes[0] = slot.getDefiningOp<tensor::ExtractSliceOp>().getMixedSizes()[0];
  Value wide = tensor::ExpandShapeOp::create(
      b, view.getLoc(), type, slot, view.getReassociationIndices(), sizes);
  if (auto known = strided.find(slot); known != strided.end()) {
    SmallVector<int64_t> strides = expandedStrides(
        type.getShape(), view.getReassociationIndices(), known->second);
    strided[wide] = strides;
  }
  return wide;
}

void PartPlacer::writeToSlots(func::CallOp call) {
  unsigned inputs = call.getNumOperands() - call.getNumResults();
  // All slots before the call, then what it wrote to them: a kernel may make
  // several parts of a buffer.
  SmallVector<std::pair<Value, Spot>> parts;
  Operation *last = call;
  b.setInsertionPoint(call);
  for (OpResult result : call->getResults()) {
    tensor::CollapseShapeOp view;
    if (!located.contains(result) && result.hasOneUse())
      view = dyn_cast<tensor::CollapseShapeOp>(*result.user_begin());
    Value part = view ? view.getResult() : Value(result);
    auto place = located.find(part);
    if (place == located.end())
      continue;
    Value slot = slice(place->second, cast<RankedTensorType>(part.getType()));
    if (auto known = strided.find(slot); known != strided.end()) {
      SmallVector<int64_t> strides = known->second;
      strided[part] = strides;
    }
    if (view) {
      slot = expand(slot, view);
      view->moveAfter(last);
      last = view;
    }
    unsigned number = inputs + result.getResultNumber();
    auto before = call.getOperand(number).getDefiningOp<tensor::EmptyOp>();
    call.setOperand(number, slot);
    if (before->use_empty())
      before->erase();
    parts.emplace_back(part, place->second);
  }
  b.setInsertionPointAfter(last);
  for (const auto &[part, place] : parts)
    insert(place, part);
  useStrides(call);
}

void PartPlacer::copyPart(Spot location, Value part, func::CallOp like) {
  auto type = cast<RankedTensorType>(part.getType());
  func::FuncOp kernel = makeKernel(
      like, "elementwise", {type}, type,
      [&](OpBuilder &builder, ValueRange arguments) -> Value {
        AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
        SmallVector<utils::IteratorType> loops(type.getRank(),
                                               utils::IteratorType::parallel);
        return linalg::GenericOp::create(
                   builder, like.getLoc(), type, arguments[0], arguments[1],
                   ArrayRef<AffineMap>{identity, identity}, loops,
                   [](OpBuilder &inner, Location loc, ValueRange elements) {
                     linalg::YieldOp::create(inner, loc, elements[0]);
                   })
            .getResult(0);
      });
  insert(location, callKernel(kernel, part, slice(location, type), like));
}

/// The slabs below and above the part, axis by axis: those of an axis are as
/// narrow as the part on the axes before it and full on the others.
void PartPlacer::fillBorder(const Spot &whole, const Frame &frame,
                            func::CallOp like) {
  tensor::PadOp pad = frame.pad;
  RankedTensorType type = pad.getResultType(), inner = pad.getSourceType();
  Value border = pad.getConstantPaddingValue();
  Spot place = whole;
  SmallVector<int64_t> shape(type.getShape());
  auto fill = [&](int64_t axis, int64_t offset, int64_t extent) {
    if (extent == 0)
      return;
    Spot slab = place;
    slab.offsets[axis] += offset;
    SmallVector<int64_t> extents = shape;
    extents[axis] = extent;
    auto slabType = RankedTensorType::get(extents, type.getElementType());
    func::FuncOp kernel =
        makeKernel(like, "fill", {}, slabType,
                   [&](OpBuilder &builder, ValueRange arguments) -> Value {
                     Value value =
                         builder.clone(*border.getDefiningOp())->getResult(0);
                     return linalg::FillOp::create(builder, like.getLoc(),
                                                   value, arguments[0])
                         .getResult(0);
                   });
    insert(slab, callKernel(kernel, {}, slice(slab, slabType), like));
  };
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    int64_t low = pad.getStaticLow()[axis], high = pad.getStaticHigh()[axis];
    fill(axis, 0, low);
    if (!type.isDynamicDim(axis))
      fill(axis, low + inner.getDimSize(axis), high);
    place.offsets[axis] += low;
    shape[axis] = inner.getDimSize(axis);
  }
}

void PartPlacer::rewriteFrame(func::CallOp call, Frame &frame) {
  b.setInsertionPoint(call);
  Spot whole = located.lookup(call.getResult(0));
  for (const Part &part : frame.parts) {
    Spot place = whole;
    for (auto [offset, more] : llvm::zip_equal(place.offsets, part.offsets))
      offset += more;
    if (part.placed)
      continue;
    Value made = joined.lookup(part.value);
    copyPart(place, made ? made : part.value, call);
  }
  if (frame.pad)
    fillBorder(whole, frame, call);
  Value result =
      slice(whole, cast<RankedTensorType>(call.getResult(0).getType()));
  call.getResult(0).replaceAllUsesWith(result);
  joined[call.getResult(0)] = result;
}

void PartPlacer::run() {
  SmallVector<func::CallOp> calls(block.getOps<func::CallOp>());
  for (func::CallOp call : llvm::reverse(calls))
    if (std::optional<Frame> frame = frameOf(call, calleeOf(call)))
      plan(call, std::move(*frame));
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    SmallVector<Value> sizes;
    if (buffer.batch)
      sizes.push_back(move(buffer.batch, buffer.first));
    b.setInsertionPoint(buffer.first);
    auto empty =
        tensor::EmptyOp::create(b, buffer.first->getLoc(), buffer.type, sizes);
    // Two buffers of one type are not one.
    empty->setAttr("ktn.buffer", b.getI64IntegerAttr(number));
    buffer.current = empty;
  }
  if (buffers.empty())
    return;
  SmallVector<func::CallOp> done;
  for (func::CallOp call : calls) {
    auto frame = frames.find(call);
    if (frame == frames.end()) {
      writeToSlots(call);
      continue;
    }
    rewriteFrame(call, frame->second);
    done.push_back(call);
  }
  for (func::CallOp call : llvm::reverse(done))
    call.erase();
  // Kernels of which there are only variants now.
  SymbolTableCollection tables;
  SymbolUserMap users(tables, module);
  for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (kernel->hasAttr("ktn.kernel") && kernel.isPrivate() &&
        users.useEmpty(kernel))
      kernel.erase();
}

void placeParts(func::FuncOp function) {
  if (function.getBody().hasOneBlock())
    PartPlacer(function).run();
}

} // namespace keratin
