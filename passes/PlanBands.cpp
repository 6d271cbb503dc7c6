//===- PlanBands.cpp - functions of loops over bands ----------------------===//
#include "passes/Bands.h"
#include "passes/BatchSizes.h"
#include "passes/PlanRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin {

/// One row of the table of kernels for all that a loop over bands calls.
void PlanRewriter::describeBands(scf::ForOp loop) {
  auto fields = loop->getAttrOfType<DictionaryAttr>(bandsAttr);
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
  StringAttr kind = b.getStringAttr("bands");
  loop->walk([&](func::CallOp call) {
    // The entry point asks for tile registers where there is such a row.
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (auto own = callee->getAttrOfType<StringAttr>("ktn.kernel"))
      kind = own == "tiles" ? own : kind;
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
      {field("name", b.getStringAttr("bands")), b.getNamedAttr("op", kind),
       b.getNamedAttr("shapes", b.getStringAttr(shapes)), field("flops", none),
       field("bytes", none),
       b.getNamedAttr("arena", b.getDenseI64ArrayAttr(arena))}));
}

/// Computes what the body of `loop` uses of sizes outside again, from the
/// batch.
LogicalResult PlanRewriter::mapSizes(scf::ForOp loop) {
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(loop.getBodyRegion(), outside);
  outside.insert(loop.getUpperBound());
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

/// Makes a function of the loop, which like a kernel can be done in parts, with
/// buffers of its own for each that is being done.
LogicalResult PlanRewriter::emitBands(scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto fields = loop->getAttrOfType<DictionaryAttr>(bandsAttr);
  auto most = fields ? fields.getAs<IntegerAttr>("pieces") : IntegerAttr();
  int64_t pieces = most ? std::max<int64_t>(most.getInt(), 1) : 1;
  auto entry = dyn_cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  if (!entry || inBands || !isOneInteger(loop.getStep()) ||
      !isZeroInteger(loop.getLowerBound()))
    return loop.emitOpError("over bands is in a loop, or does not go from 0 on "
                            "by ones");

  // The call.
  SmallVector<Value> arguments(entry.getArguments());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value count =
      arith::MinUIOp::create(b, loc, scalars.lookup(loop.getUpperBound()),
                             arith::ConstantIndexOp::create(b, loc, pieces));
  count = arith::MaxUIOp::create(b, loc, count,
                                 arith::ConstantIndexOp::create(b, loc, 1));
  arguments.append({zero, zero, count, count});
  auto module = old->getParentOfType<ModuleOp>();
  auto function = func::FuncOp::create(
      loc, "bands", b.getFunctionType(TypeRange(ValueRange(arguments)), {}));
  function.setPrivate();
  function->setAttr("ktn.kernel", b.getStringAttr("bands"));
  for (auto [index, argument] : llvm::enumerate(arguments))
    if (isa<MemRefType>(argument.getType()))
      function.setArgAttr(index, basesAttr, b.getUnitAttr());
  if (pieces > 1) {
    function->setAttr("ktn.parts", b.getI64IntegerAttr(pieces));
    function->setAttr("passthrough",
                      b.getStrArrayAttr({"ktn-parts", "ktn-piece"}));
  }
  // Named after what it calls first.
  for (auto call : loop.getBody()->getOps<func::CallOp>()) {
    function.setName(("bands." + call.getCallee()).str());
    break;
  }
  SymbolTable(module).insert(function, module.getBody()->end());
  describeBands(loop);
  func::CallOp::create(b, loc, function, arguments);

  // The function.
  OpBuilder::InsertionGuard guard(b);
  IRMapping known = std::exchange(scalars, {});
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  takeBases(body->getArguments());
  piece = body->getArguments().take_back(4).front();
  inBands = true;
  LogicalResult result = mapSizes(loop);
  if (succeeded(result)) {
    ValueRange part = body->getArguments().take_back(3);
    Value total = scalars.lookup(loop.getUpperBound());
    auto boundary = [&](Value number) -> Value {
      Value turns = arith::MulIOp::create(b, loc, total, number);
      return arith::DivUIOp::create(b, loc, turns, part[2]);
    };
    auto bare = scf::ForOp::create(b, loc, boundary(part[0]), boundary(part[1]),
                                   arith::ConstantIndexOp::create(b, loc, 1));
    scalars.map(loop.getInductionVar(), bare.getInductionVar());
    OpBuilder::InsertionGuard inside(b);
    b.setInsertionPoint(bare.getBody()->getTerminator());
    result = emit(*loop.getBody());
  }
  b.setInsertionPointToEnd(body);
  func::ReturnOp::create(b, loc);
  inBands = false;
  piece = {};
  scalars = std::move(known);
  takeBases(entry.getArguments());
  return result;
}

} // namespace keratin
