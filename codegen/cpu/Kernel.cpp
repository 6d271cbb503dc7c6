//===- Kernel.cpp - a kernel on its way from tensors to memrefs -----------===//
#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/Packing.h"
#include "codegen/cpu/PairPacking.h"
#include "codegen/cpu/PairedWeights.h"
#include "codegen/cpu/Weights24.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace keratin {

static MemRefType memrefType(Type tensor, ArrayRef<int64_t> strides = {}) {
  auto type = cast<RankedTensorType>(tensor);
  MemRefLayoutAttrInterface layout;
  if (!strides.empty())
    layout = StridedLayoutAttr::get(type.getContext(), /*offset=*/0, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// The strides that a kernel was told for an argument; none of a dense one.
static ArrayRef<int64_t> stridesOf(func::FuncOp kernel, unsigned argument) {
  auto known =
      kernel.getArgAttrOfType<DenseI64ArrayAttr>(argument, "ktn.strides");
  auto type = dyn_cast<RankedTensorType>(kernel.getArgumentTypes()[argument]);
  return known && type && type.getRank() == known.size() ? known.asArrayRef()
                                                         : ArrayRef<int64_t>();
}

SmallVector<func::FuncOp> kernelsOf(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr(kernelAttr))
      kernels.push_back(func);
  return kernels;
}

Kernel::Kernel(func::FuncOp from)
    : source(from), b(from.getContext()), location(from.getLoc()) {
  start();
}

void Kernel::start() {
  enoughParts = 256; // for any number of threads
  takesPiece = false;
  turns = 1;
  sharesByRows = sharesOtherwise = false;
  SmallVector<Type> types(source.getArgumentTypes());
  for (auto [number, type] : llvm::enumerate(types))
    if (isa<RankedTensorType>(type))
      type = memrefType(type, stridesOf(source, number));
  target = cast<func::FuncOp>(source->cloneWithoutRegions());
  target.setType(b.getFunctionType(types, {}));
  target.removeResAttrsAttr();
  Block *entry = target.addEntryBlock();
  b.setInsertionPointToStart(entry);
  for (auto [before, after] :
       llvm::zip_equal(source.getArguments(), entry->getArguments())) {
    if (isa<MemRefType>(after.getType()))
      memrefs[before] = after;
    else
      scalars.map(before, after);
  }
}

void Kernel::restart() {
  target.erase();
  memrefs.clear();
  scalars = IRMapping();
  constants.clear();
  start();
  if (inParts)
    allowParts();
}

ValueRange Kernel::results() {
  return source.front().getTerminator()->getOperands();
}

Value Kernel::destination(unsigned index) {
  unsigned first = source.getNumArguments() - source.getNumResults();
  return target.getArgument(first + index);
}

void Kernel::setMemref(Value tensor, Value memref) { memrefs[tensor] = memref; }

Value Kernel::memrefOf(Value tensor) {
  if (Value known = memrefs.lookup(tensor))
    return known;
  OpBuilder::InsertionGuard guard(b);
  Value view;
  if (auto op = tensor.getDefiningOp<tensor::CollapseShapeOp>()) {
    if (Value source = memrefOf(op.getSrc())) {
      b.setInsertionPointAfterValue(source);
      view = memref::CollapseShapeOp::create(b, op.getLoc(), source,
                                             op.getReassociationIndices());
    }
  } else if (auto op = tensor.getDefiningOp<tensor::ExpandShapeOp>()) {
    // A dynamic size is arithmetic that may not stand at the top yet.
    if (Value source = memrefOf(op.getSrc());
        source && op.getOutputShape().empty()) {
      b.setInsertionPointAfterValue(source);
      view = memref::ExpandShapeOp::create(b, op.getLoc(),
                                           memrefType(op.getType()), source,
                                           op.getReassociationIndices());
    }
  }
  if (view)
    memrefs[tensor] = view;
  return view;
}

Value Kernel::scalar(Value value) {
  if (Value known = scalars.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  assert(op && op->getNumRegions() == 0 && "not a scalar of a kernel");
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    if (std::optional<int64_t> number = dim.getConstantIndex())
      return extent(dim.getSource(), *number);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(scalar(operand));
  // At the top, so that every later use is dominated by it.
  OpBuilder::InsertionGuard guard(b);
  Block &entry = target.front();
  b.setInsertionPointToStart(&entry);
  for (Value operand : operands)
    if (Operation *before = operand.getDefiningOp();
        before && !before->isBeforeInBlock(&*b.getInsertionPoint()))
      b.setInsertionPointAfter(before);
  Operation *copy = b.clone(*op, scalars);
  copy->setOperands(operands);
  scalars.map(op->getResults(), copy->getResults());
  return scalars.lookup(value);
}

Value Kernel::index(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&target.front());
    constant = arith::ConstantIndexOp::create(b, location, value);
  }
  return constant;
}

Value Kernel::plus(Value left, Value right) {
  if (isZeroInteger(left))
    return right;
  if (isZeroInteger(right))
    return left;
  std::optional<int64_t> first = getConstantIntValue(left),
                         second = getConstantIntValue(right);
  if (first && second)
    return index(*first + *second);
  return arith::AddIOp::create(b, location, left, right);
}

Value Kernel::times(Value value, int64_t factor) {
  if (factor == 0)
    return index(0);
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return index(*known * factor);
  if (factor == 1)
    return value;
  return arith::MulIOp::create(b, location, value, index(factor));
}

Value Kernel::times(Value left, Value right) {
  if (std::optional<int64_t> known = getConstantIntValue(right))
    return times(left, *known);
  if (std::optional<int64_t> known = getConstantIntValue(left))
    return times(right, *known);
  return arith::MulIOp::create(b, location, left, right);
}

Value Kernel::over(Value value, Value divisor, bool rest) {
  std::optional<int64_t> known = getConstantIntValue(value),
                         by = getConstantIntValue(divisor);
  if (by == 1)
    return rest ? index(0) : value;
  if (known && by)
    return index(rest ? *known % *by : *known / *by);
  if (rest)
    return arith::RemUIOp::create(b, location, value, divisor);
  return arith::DivUIOp::create(b, location, value, divisor);
}

Value Kernel::least(Value left, Value right) {
  std::optional<int64_t> first = getConstantIntValue(left),
                         second = getConstantIntValue(right);
  if (first && second)
    return index(std::min(*first, *second));
  return arith::MinUIOp::create(b, location, left, right);
}

bool tellsItsLoops(linalg::GenericOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    llvm::SmallBitVector told(op.getNumLoops());
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (dim && !told.test(dim.getPosition()))
        told.set(dim.getPosition());
      else if (dim || op.getShape(&init)[position] != 1)
        return false;
    }
    for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
      if (told.test(loop) != (type == utils::IteratorType::parallel))
        return false;
  }
  return true;
}

/// Where result `position` of some map of `op` is exactly the loop `dim`.
static std::optional<std::pair<OpOperand *, unsigned>>
findLoop(linalg::GenericOp op, unsigned dim) {
  for (OpOperand &operand : op->getOpOperands())
    for (auto [position, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (expr == getAffineDimExpr(dim, op.getContext()))
        return std::pair(&operand, unsigned(position));
  return std::nullopt;
}

int64_t staticLoopExtent(linalg::GenericOp op, unsigned dim) {
  for (OpOperand &operand : op->getOpOperands())
    for (auto [position, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (expr == getAffineDimExpr(dim, op.getContext()))
        if (int64_t extent = op.getShape(&operand)[position];
            !ShapedType::isDynamic(extent))
          return extent;
  return ShapedType::kDynamic;
}

Value Kernel::loopExtent(linalg::GenericOp op, unsigned dim) {
  if (int64_t extent = staticLoopExtent(op, dim);
      !ShapedType::isDynamic(extent))
    return index(extent);
  auto place = findLoop(op, dim);
  assert(place && "linalg verifies that every loop has an extent");
  return extent(place->first->get(), place->second);
}

Value Kernel::extent(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return index(type.getDimSize(dim));
  if (Value memref = memrefOf(tensor)) {
    OpBuilder::InsertionGuard guard(b);
    Value position = index(dim);
    b.setInsertionPointAfter(position.getDefiningOp());
    if (Operation *view = memref.getDefiningOp();
        view && position.getDefiningOp()->isBeforeInBlock(view))
      b.setInsertionPointAfter(view);
    return memref::DimOp::create(b, location, memref, position);
  }
  Operation *op = tensor.getDefiningOp();
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return scalar(empty.getDynamicSize(dim));
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    OpOperand *init =
        generic.getDpsInitOperand(cast<OpResult>(tensor).getResultNumber());
    return extent(init->get(), dim);
  }
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return extent(fill.getOutputs()[0], dim);
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Value sum = extent(pad.getSource(), dim);
    for (OpFoldResult border :
         {pad.getMixedLowPad()[dim], pad.getMixedHighPad()[dim]}) {
      std::optional<int64_t> known = getConstantIntValue(border);
      Value width = known ? index(*known) : scalar(cast<Value>(border));
      sum = arith::AddIOp::create(b, location, sum, width);
    }
    return sum;
  }
  // verifyKernel lets in no other op with a tensor result.
  auto concat = cast<tensor::ConcatOp>(op);
  Value sum = extent(concat.getInputs().front(), dim);
  if (dim == static_cast<int64_t>(concat.getDim()))
    for (Value piece : concat.getInputs().drop_front())
      sum = arith::AddIOp::create(b, location, sum, extent(piece, dim));
  return sum;
}

void Kernel::setPackedArgument(unsigned number, const Packing &packing) {
  SmallVector<NamedAttribute> order = {
      b.getNamedAttr("dim", b.getI64IntegerAttr(packing.dim)),
      b.getNamedAttr("block", b.getI64IntegerAttr(packing.block))};
  if (!packing.outer.empty())
    order.push_back(
        b.getNamedAttr("outer", b.getDenseI64ArrayAttr(packing.outer)));
  if (packing.interleaved)
    order.push_back(b.getNamedAttr("interleaved", b.getUnitAttr()));
  RankedTensorType type = packedType(
      cast<RankedTensorType>(source.getArgumentTypes()[number]), packing);
  setPackedArgument(number,
                    MemRefType::get(type.getShape(), type.getElementType()),
                    b.getDictionaryAttr(order));
}

static NamedAttribute numbers(OpBuilder &b, StringRef name,
                              ArrayRef<int64_t> values) {
  return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
}

void Kernel::setPackedArgument(unsigned number, const Packing24 &packing) {
  RankedTensorType type = packedType(
      cast<RankedTensorType>(source.getArgumentTypes()[number]), packing);
  setPackedArgument(
      number, MemRefType::get(type.getShape(), type.getElementType()),
      b.getDictionaryAttr(
          {b.getNamedAttr("columns24", b.getI64IntegerAttr(packing.columns)),
           numbers(b, "outer", packing.outer),
           numbers(b, "sums", packing.sums)}));
}

void Kernel::setPackedArgument(unsigned number, const PairedPacking &packing) {
  SmallVector<NamedAttribute> order = {
      b.getNamedAttr("block", b.getI64IntegerAttr(packing.block)),
      b.getNamedAttr("paired",
                     b.getDenseI64ArrayAttr({packing.sums, packing.columns}))};
  if (packing.columnsInside)
    order.push_back(b.getNamedAttr("columns_inside", b.getUnitAttr()));
  RankedTensorType type = packedType(b.getContext(), packing);
  setPackedArgument(number,
                    MemRefType::get(type.getShape(), type.getElementType()),
                    b.getDictionaryAttr(order));
}

ArrayRef<ElementsAttr> Kernel::valuesOf(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (!argument || argument.getOwner() != &source.front())
    return {};
  auto found = valuesOfArguments.find(argument.getArgNumber());
  return found == valuesOfArguments.end() ? ArrayRef<ElementsAttr>()
                                          : found->second;
}

void Kernel::setPackedArgument(unsigned number, const PairPacking &packing) {
  SmallVector<NamedAttribute> order = {
      b.getNamedAttr("block", b.getI64IntegerAttr(packing.block)),
      b.getNamedAttr("dim", b.getI64IntegerAttr(packing.dim)),
      numbers(b, "outer", packing.outer), numbers(b, "pairs", packing.sums)};
  if (!packing.inner.empty())
    order.push_back(numbers(b, "inner", packing.inner));
  if (packing.split)
    order.push_back(b.getNamedAttr("split", b.getUnitAttr()));
  RankedTensorType type = pairedType(
      cast<RankedTensorType>(source.getArgumentTypes()[number]), packing);
  setPackedArgument(number,
                    MemRefType::get(type.getShape(), type.getElementType()),
                    b.getDictionaryAttr(order));
}

void Kernel::setPackedArgument(unsigned number, MemRefType type,
                               DictionaryAttr packing) {
  SmallVector<Type> types(target.getArgumentTypes());
  types[number] = type;
  target.setType(b.getFunctionType(types, {}));
  target.getArgument(number).setType(type);
  target.setArgAttr(number, "ktn.packed", packing);
  target.setArgAttr(number, "ktn.unpacked_type",
                    TypeAttr::get(source.getArgumentTypes()[number]));
}

std::pair<Value, Value> Kernel::addScratch(Type type, int64_t count,
                                           int64_t parts, bool stays) {
  if (!inParts)
    parts = 1;
  sharesOtherwise = true;
  enoughParts = std::min(enoughParts, parts);
  unsigned number = target.getNumArguments() - (inParts ? 3 : 0);
  SmallVector<NamedAttribute> marks = {
      b.getNamedAttr(scratchAttr, b.getUnitAttr())};
  if (stays)
    marks.push_back(b.getNamedAttr(staysAttr, b.getUnitAttr()));
  auto attrs = b.getDictionaryAttr(marks);
  (void)target.insertArgument(number, MemRefType::get({parts * count}, type),
                              attrs, location);
  Value begin = index(0);
  if (inParts) {
    takesPiece = true;
    (void)target.insertArgument(number + 1, b.getIndexType(), {}, location);
    Value size = index(count);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(size);
    begin = arith::MulIOp::create(b, location, target.getArgument(number + 1),
                                  size);
  }
  return {target.getArgument(number), begin};
}

Value Kernel::addSharedScratch(Type type, int64_t count) {
  sharesOtherwise = true;
  unsigned number = source.getNumArguments();
  auto attrs = b.getDictionaryAttr(
      b.getNamedAttr(sharedScratchAttr, UnitAttr::get(b.getContext())));
  (void)target.insertArgument(number, MemRefType::get({count}, type), attrs,
                              location);
  return target.getArgument(number);
}

Value Kernel::addWeightsAhead() {
  unsigned number = source.getNumArguments();
  auto attrs = b.getDictionaryAttr(
      b.getNamedAttr(aheadAttr, UnitAttr::get(b.getContext())));
  (void)target.insertArgument(number, MemRefType::get({0}, b.getI8Type()),
                              attrs, location);
  return target.getArgument(number);
}

Value Kernel::goesBack() {
  sharesOtherwise = true;
  Type byte = b.getI8Type();
  unsigned number = source.getNumArguments();
  auto attrs = b.getDictionaryAttr(
      b.getNamedAttr(keptAttr, UnitAttr::get(b.getContext())));
  (void)target.insertArgument(number, MemRefType::get({1}, byte), attrs,
                              location);
  Value memory = target.getArgument(number), first = index(0);
  auto turn = [&]() -> Value {
    Value last = memref::LoadOp::create(b, location, memory, first);
    Value one = arith::ConstantIntOp::create(b, location, byte, 1);
    Value next = arith::XOrIOp::create(b, location, last, one);
    memref::StoreOp::create(b, location, next, memory, first);
    return arith::TruncIOp::create(b, location, b.getI1Type(), next);
  };
  if (!inParts)
    return turn();
  ValueRange parts = target.getArguments().take_back(3);
  Value here = arith::SubIOp::create(b, location, parts[1], parts[0]);
  Value all = arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, here,
                                    parts[2]);
  auto branch = scf::IfOp::create(b, location, b.getI1Type(), all,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value back = turn();
  scf::YieldOp::create(b, location, back);
  b.setInsertionPointToStart(branch.elseBlock());
  Value forth = arith::ConstantIntOp::create(b, location, b.getI1Type(), 0);
  scf::YieldOp::create(b, location, forth);
  return branch.getResult(0);
}

func::FuncOp Kernel::finish() {
  if (inParts) {
    target->setAttr(partsAttr,
                    b.getI64IntegerAttr(std::min(mostParts, enoughParts)));
    SmallVector<Attribute> marks = {b.getStringAttr(partsMark)};
    if (takesPiece)
      marks.push_back(b.getStringAttr(pieceMark));
    if (turns > 1)
      marks.push_back(b.getStrArrayAttr({turnsMark, std::to_string(turns)}));
    target->setAttr("passthrough", b.getArrayAttr(marks));
  }
  b.setInsertionPointToEnd(&target.front());
  func::ReturnOp::create(b, location);
  source->getBlock()->getOperations().insert(source->getIterator(),
                                             target.getOperation());
  source.erase();
  return target;
}

Value mirrored(Kernel &kernel, Value number, Value from, Value to, Value back) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Value ends = arith::AddIOp::create(b, loc, from, to);
  ends = arith::SubIOp::create(b, loc, ends, kernel.index(1));
  Value other = arith::SubIOp::create(b, loc, ends, number);
  return arith::SelectOp::create(b, loc, back, other, number);
}

Value sideBySide(Kernel &kernel, Value number, int64_t count, int64_t runs) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Value all = kernel.index(runs);
  Value run = arith::RemUIOp::create(b, loc, number, all);
  run = arith::MulIOp::create(b, loc, run, kernel.index(count / runs));
  Value place = arith::DivUIOp::create(b, loc, number, all);
  return arith::AddIOp::create(b, loc, run, place);
}

Value hidden(Kernel &kernel, Value value) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  Type type = b.getI64Type();
  Value number = arith::IndexCastOp::create(b, loc, type, value);
  number = LLVM::InlineAsmOp::create(
               b, loc, type, number, /*asm_string=*/"",
               /*constraints=*/"=r,0", /*has_side_effects=*/false,
               /*is_align_stack=*/false, LLVM::TailCallKind::None,
               /*asm_dialect=*/{}, /*operand_attrs=*/{})
               .getRes();
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

void freeRegisters(Kernel &kernel) {
  constexpr unsigned registers = 16;
  SmallVector<std::string> names;
  for (unsigned number = 0; number < registers; ++number)
    names.push_back("~{xmm" + std::to_string(number) + "}");
  LLVM::InlineAsmOp::create(
      kernel.builder(), kernel.loc(), /*res=*/Type(), ValueRange(),
      /*asm_string=*/"", llvm::join(names, ","), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      /*asm_dialect=*/{}, /*operand_attrs=*/{});
}

Value viewOf(Kernel &kernel, Value scratch, Value begin,
             ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  OpBuilder &b = kernel.builder();
  Type element = cast<MemRefType>(scratch.getType()).getElementType();
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  return memref::ReinterpretCastOp::create(
      b, kernel.loc(), MemRefType::get(sizes, element, layout), scratch,
      OpFoldResult(begin), getAsIndexOpFoldResult(b.getContext(), sizes),
      getAsIndexOpFoldResult(b.getContext(), strides));
}

ArrayRef<char> bytesOfElements(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? blob->getData() : ArrayRef<char>();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense ? dense.getRawData() : ArrayRef<char>();
}

SmallVector<Value>
emitLoop(OpBuilder &b, Location loc, Value from, Value to, Value step,
         ValueRange carried,
         llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getBody());
  // Without carried values the builder has made the terminator.
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

int64_t stepsOfQuestion(unsigned lanes, int64_t steps) {
  constexpr unsigned many = 16;
  constexpr int64_t together = 4;
  return lanes < many && steps % together == 0 ? together : 1;
}

SmallVector<Value>
emitSteps(Kernel &kernel, Value from, Value to, int64_t together,
          ValueRange carried, llvm::function_ref<void(Value)> ask,
          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return emitLoop(
      kernel.builder(), kernel.loc(), from, to, kernel.index(together), carried,
      [&](Value first, ValueRange before) {
        ask(first);
        SmallVector<Value> after = body(first, before);
        for (int64_t more = 1; more < together; ++more)
          after = body(kernel.plus(first, kernel.index(more)), after);
        return after;
      });
}

void emitTurns(Kernel &kernel, Value from, Value to, int64_t step,
               llvm::function_ref<void(Value)> body) {
  std::optional<int64_t> first = getConstantIntValue(from);
  std::optional<int64_t> last = getConstantIntValue(to);
  if (first && last && *last <= *first)
    return;
  if (first && last && *last <= *first + step)
    return body(from);
  emitLoop(kernel.builder(), kernel.loc(), from, to, kernel.index(step), {},
           [&](Value iv, ValueRange) -> SmallVector<Value> {
             body(iv);
             return {};
           });
}

} // namespace keratin
