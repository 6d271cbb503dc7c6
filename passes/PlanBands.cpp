//===- PlanBands.cpp - loops that are functions of their own --------------===//
#include "passes/Bands.h"
#include "passes/BatchSizes.h"
#include "passes/Pipelines.h"
#include "passes/PlanRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin {

/// One row of the table of kernels for all that a loop calls.
void PlanRewriter::describeLoop(scf::ForOp loop, DictionaryAttr fields,
                                llvm::StringRef kindOfLoop) {
  std::string shapes;
  llvm::raw_string_ostream stream(shapes);
  auto print = [&](Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!shapes.empty())
      stream << ' ';
    for (int64_t extent : type.getShape())
      ShapedType::isDynamic(extent) ? stream << "?x" : stream << extent << 'x';
    stream << type.getElementType();
  };
  // What comes from outside, in order, and what goes there.
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getBodyRegion(), outside);
  for (Value value : outside)
    if (isa<RankedTensorType>(value.getType()))
      print(value);
  BatchSize offset;
  bool isInArena = false;
  for (Value result : loop.getResults()) {
    print(result);
    const Buffer &buffer = plan.bufferAt(*plan.find(result));
    isInArena = buffer.storage == Storage::Arena;
    offset = buffer.offset;
  }
  StringAttr kind = b.getStringAttr(kindOfLoop);
  loop->walk([&](func::CallOp call) {
    // The entry point asks for tile registers where there is such a row.
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (auto own = callee->getAttrOfType<StringAttr>("ktn.kernel"))
      kind = isInTileRegisters(own.getValue()) ? own : kind;
  });
  auto field = [&](llvm::StringRef name, Attribute otherwise) {
    Attribute known = fields ? fields.get(name) : Attribute();
    return b.getNamedAttr(name, known ? known : otherwise);
  };
  Attribute none = b.getDenseI64ArrayAttr({0, 0});
  SmallVector<int64_t> arena = {-1, 0};
  if (isInArena)
    arena = {offset.fixed, offset.perBatch};
  rows.push_back(b.getDictionaryAttr(
      {field("name", kind), b.getNamedAttr("op", kind),
       b.getNamedAttr("shapes", b.getStringAttr(shapes)), field("flops", none),
       field("bytes", none),
       b.getNamedAttr("arena", b.getDenseI64ArrayAttr(arena))}));
}

/// Computes what the body of `loop` uses of sizes outside again, from the
/// batch.
LogicalResult PlanRewriter::mapSizes(scf::ForOp loop) {
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getBodyRegion(), outside);
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    outside.insert(bound);
  for (Value value : outside) {
    if (!value.getType().isIndex())
      continue;
    std::optional<BatchSize> size = evaluateBatchSize(value);
    if (!size)
      return loop.emitOpError("uses a size that is not linear in the batch");
    scalars.map(value, materialize(*size, loop.getLoc()));
  }
  return success();
}

/// A private function that takes `arguments`, named after what the loop calls
/// first, and a call of it here.
func::FuncOp PlanRewriter::makeFunction(scf::ForOp loop, llvm::StringRef kind,
                                        ValueRange arguments) {
  Location loc = loop.getLoc();
  auto module = old->getParentOfType<ModuleOp>();
  auto function = func::FuncOp::create(
      loc, kind, b.getFunctionType(TypeRange(arguments), {}));
  function.setPrivate();
  function->setAttr("ktn.kernel", b.getStringAttr(kind));
  for (auto [index, argument] : llvm::enumerate(arguments))
    if (isa<MemRefType>(argument.getType()))
      function.setArgAttr(index, basesAttr, b.getUnitAttr());
  for (auto call : loop.getBody()->getOps<func::CallOp>()) {
    function.setName((kind + "." + call.getCallee()).str());
    break;
  }
  SymbolTable(module).insert(function, module.getBody()->end());
  func::CallOp::create(b, loc, function, arguments);
  return function;
}

/// Lets `body` emit what `function` does in place of `loop`, with the bytes and
/// sizes that are its own.
LogicalResult
PlanRewriter::fillFunction(func::FuncOp function, scf::ForOp loop,
                           llvm::function_ref<LogicalResult(Block &)> body) {
  auto entry = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  OpBuilder::InsertionGuard guard(b);
  IRMapping known = std::exchange(scalars, {});
  Block *block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
  takeBases(block->getArguments());
  inFunction = true;
  LogicalResult result = mapSizes(loop);
  if (succeeded(result))
    result = body(*block);
  b.setInsertionPointToEnd(block);
  func::ReturnOp::create(b, loop.getLoc());
  inFunction = false;
  scalars = std::move(known);
  takeBases(entry.getArguments());
  return result;
}

/// The loop itself, from turn `from` to before turn `to`.
LogicalResult PlanRewriter::emitTurns(scf::ForOp loop, Value from, Value to,
                                      Value step) {
  auto bare = scf::ForOp::create(b, loop.getLoc(), from, to, step);
  scalars.map(loop.getInductionVar(), bare.getInductionVar());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(bare.getBody()->getTerminator());
  return emit(*loop.getBody());
}

/// Bytes of a row of images of `type`, whose extents are known.
static int64_t bytesOfRow(MemRefType type) {
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t extent : type.getShape().drop_front(2))
    bytes *= extent;
  return bytes;
}

/// Moves `count` rows to `destination`, and on from there, from where the turn
/// before has computed them, `apart` rows farther back.
void PlanRewriter::moveRows(Value destination, int64_t count, Value apart) {
  Location loc = destination.getLoc();
  auto type = cast<MemRefType>(destination.getType());
  const Place &place = *plan.find(destination);
  int64_t row = bytesOfRow(type);
  auto viewOf = [&](Value offset) {
    return viewAt(baseOf(plan.bufferAt(place)), offset,
                  MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
                  {arith::ConstantIndexOp::create(b, loc, count * row)}, loc);
  };
  Value to = offsetOf(place, loc);
  Value bytes = arith::MulIOp::create(
      b, loc, apart, arith::ConstantIndexOp::create(b, loc, row));
  Value from = arith::AddIOp::create(b, loc, to, bytes);
  memref::CopyOp::create(b, loc, viewOf(from), viewOf(to));
}

/// Whether the turn of `loop` that is emitted begins anew as `start` says, and
/// how many rows from the one before its first row is, if it shares any.
std::pair<Value, Value> PlanRewriter::beginsAnew(scf::ForOp loop,
                                                 const BandStart &start) {
  Location loc = loop.getLoc();
  auto compare = [&](arith::CmpIPredicate how, Value value, Value other) {
    return arith::CmpIOp::create(b, loc, how, value, other).getResult();
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value turn = scalars.lookup(loop.getInductionVar()), band = turn;
  Value begins = compare(arith::CmpIPredicate::eq, turn, firstTurn);
  if (start.bands > 0) {
    band = arith::RemUIOp::create(b, loc, turn, constant(start.bands));
    Value isFirst = compare(arith::CmpIPredicate::eq, band, constant(0));
    begins = arith::OrIOp::create(b, loc, begins, isFirst);
  }
  if (start.steps.empty())
    return {begins, {}};
  Value now = band, before = arith::SubIOp::create(b, loc, band, constant(1));
  for (const FirstRow &step : start.steps) {
    now = step.made(b, loc, step.read(b, loc, now));
    before = step.made(b, loc, step.read(b, loc, before));
  }
  Value apart = arith::SubIOp::create(b, loc, now, before);
  Value isNear =
      compare(arith::CmpIPredicate::slt, apart, constant(start.apart));
  return {arith::OrIOp::create(b, loc, begins, isNear), apart};
}

/// Calls a kernel of a band where a turn begins anew; in others what it makes
/// is there, or is moved to where it belongs.
LogicalResult PlanRewriter::emitStart(func::CallOp call,
                                      DictionaryAttr fields) {
  std::optional<BandStart> start = BandStart::of(fields);
  auto loop = dyn_cast<scf::ForOp>(call->getParentOp());
  if (!start || !loop || !loop->hasAttr(bandsAttr) || !firstTurn)
    return call.emitOpError("begins no turn of a loop over bands");
  std::optional<unsigned> made =
      start->moved > 0 ? onlyDestination(call) : std::nullopt;
  auto type = made ? dyn_cast<MemRefType>(call.getOperand(*made).getType())
                   : MemRefType();
  auto canMove = [&] {
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
        type.getRank() < 3 || type.getNumElements() == 0)
      return false;
    const Buffer &buffer = plan.bufferAt(*plan.find(call.getOperand(*made)));
    return buffer.bytes.isStatic() &&
           start->moved <= buffer.bytes.fixed / bytesOfRow(type);
  };
  if (start->moved > 0 && !canMove())
    return call.emitOpError("makes no rows that could be moved");
  auto [begins, apart] = beginsAnew(loop, *start);
  auto choice = scf::IfOp::create(b, call.getLoc(), begins,
                                  /*withElseRegion=*/start->moved > 0);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(choice.thenBlock()->getTerminator());
  if (failed(emitCall(call)))
    return failure();
  if (start->moved > 0) {
    b.setInsertionPoint(choice.elseBlock()->getTerminator());
    moveRows(call.getOperand(*made), start->moved, apart);
  }
  return success();
}

/// Makes a function of the loop, which like a kernel can be done in parts, with
/// buffers of its own for each that is being done.
LogicalResult PlanRewriter::emitBands(scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto fields = loop->getAttrOfType<DictionaryAttr>(bandsAttr);
  auto most = fields ? fields.getAs<IntegerAttr>("pieces") : IntegerAttr();
  int64_t pieces = most ? std::max<int64_t>(most.getInt(), 1) : 1;
  auto entry = dyn_cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  if (!entry || inFunction || !isOneInteger(loop.getStep()) ||
      !isZeroInteger(loop.getLowerBound()))
    return loop.emitOpError("over bands is in a loop, or does not go from 0 on "
                            "by ones");
  SmallVector<Value> arguments(entry.getArguments());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value count =
      arith::MinUIOp::create(b, loc, scalars.lookup(loop.getUpperBound()),
                             arith::ConstantIndexOp::create(b, loc, pieces));
  count = arith::MaxUIOp::create(b, loc, count,
                                 arith::ConstantIndexOp::create(b, loc, 1));
  arguments.append({zero, zero, count, count});
  func::FuncOp function = makeFunction(loop, "bands", arguments);
  if (pieces > 1) {
    function->setAttr("ktn.parts", b.getI64IntegerAttr(pieces));
    function->setAttr("passthrough",
                      b.getStrArrayAttr({"ktn-parts", "ktn-piece"}));
  }
  describeLoop(loop, fields, "bands");
  return fillFunction(function, loop, [&](Block &body) {
    piece = body.getArguments().take_back(4).front();
    ValueRange part = body.getArguments().take_back(3);
    Value total = scalars.lookup(loop.getUpperBound());
    auto boundary = [&](Value number) -> Value {
      Value turns = arith::MulIOp::create(b, loc, total, number);
      return arith::DivUIOp::create(b, loc, turns, part[2]);
    };
    Value from = boundary(part[0]), to = boundary(part[1]);
    firstTurn = from;
    LogicalResult result =
        emitTurns(loop, from, to, arith::ConstantIndexOp::create(b, loc, 1));
    firstTurn = {};
    piece = {};
    return result;
  });
}

/// Whether `value`, which is copied, is `count` rows and nothing in front of
/// them.
static bool isRows(Value value, int64_t count) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return false;
  ArrayRef<int64_t> shape = type.getShape();
  while (!shape.empty() && shape.front() == 1)
    shape = shape.drop_front();
  return !shape.empty() && shape.front() == count;
}

/// Whether `loop` is one whose rows threads share, as it says, and each of them
/// can do all of its part.
bool PlanRewriter::canShareRows(scf::ForOp loop) {
  auto fields = loop->getAttrOfType<DictionaryAttr>(sharedRowsAttr);
  if (!fields || inFunction ||
      !isa<func::FuncOp>(b.getInsertionBlock()->getParentOp()))
    return false;
  for (llvm::StringRef name : {"rows", "parts", "unit"})
    if (auto field = fields.getAs<IntegerAttr>(name);
        !field || field.getInt() <= 0)
      return false;
  int64_t rows = fields.getAs<IntegerAttr>("rows").getInt();
  return llvm::all_of(*loop.getBody(), [&](Operation &op) {
    auto call = dyn_cast<func::CallOp>(op);
    return op.getNumRegions() == 0 &&
           llvm::all_of(plan.copiesBefore(&op),
                        [&](const BufferCopy &copy) {
                          return plan.find(copy.value) &&
                                 isRows(copy.value, rows);
                        }) &&
           (!call || (call.getNumOperands() >= 3 &&
                      llvm::all_of(call.getOperands().take_back(3).getTypes(),
                                   llvm::IsaPred<IndexType>)));
  });
}

/// Makes a function of all turns of the loop, which like a kernel can be done
/// in parts: shares of the rows, which all its kernels do.
LogicalResult PlanRewriter::emitSharedRows(scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto fields = loop->getAttrOfType<DictionaryAttr>(sharedRowsAttr);
  auto parts = fields.getAs<IntegerAttr>("parts");
  auto entry = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  SmallVector<Value> arguments(entry.getArguments());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value count = arith::ConstantIndexOp::create(b, loc, parts.getInt());
  arguments.append({zero, count, count});
  func::FuncOp function = makeFunction(loop, "loop", arguments);
  function->setAttr("ktn.parts", parts);
  function->setAttr("passthrough", b.getStrArrayAttr({"ktn-parts"}));
  describeLoop(loop, fields, "loop");
  return fillFunction(function, loop, [&](Block &body) {
    part = llvm::to_vector_of<Value>(body.getArguments().take_back(3));
    sharedRows = fields.getAs<IntegerAttr>("rows").getInt();
    int64_t unit = fields.getAs<IntegerAttr>("unit").getInt();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto boundary = [&](Value number) -> Value {
      Value units = constant(int64_t(llvm::divideCeil(sharedRows, unit)));
      units = arith::MulIOp::create(b, loc, units, number);
      units = arith::DivUIOp::create(b, loc, units, part[2]);
      return arith::MulIOp::create(b, loc, units, constant(unit));
    };
    firstRow = boundary(part[0]);
    lastRow =
        arith::MinUIOp::create(b, loc, boundary(part[1]), constant(sharedRows));
    LogicalResult result = emitTurns(loop, scalars.lookup(loop.getLowerBound()),
                                     scalars.lookup(loop.getUpperBound()),
                                     scalars.lookup(loop.getStep()));
    part.clear();
    firstRow = lastRow = {};
    return result;
  });
}

} // namespace keratin
