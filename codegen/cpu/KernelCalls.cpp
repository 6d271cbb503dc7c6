//===- KernelCalls.cpp - calls follow their kernels to memrefs ------------===//
#include "codegen/cpu/KernelCalls.h"

#include "codegen/cpu/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
/// What a call has to do: fixed + batch * perBatch, in FLOPs.
struct Work {
  int64_t fixed = 0, perBatch = 0;
};
} // namespace

/// Some 10 microseconds of one core: what it takes to hand work to a thread
/// that has gone to sleep.
static constexpr int64_t workOfPart = 1 << 20;
/// Where there is work for several threads, they are awake: they look for the
/// next of it. Some 0.3 microseconds are what it takes to hand some out then.
static constexpr int64_t workOfPartAwake = 1 << 17;

static int64_t tripsAround(Operation *op) {
  uint64_t trips = 1;
  while (auto loop = op->getParentOfType<scf::ForOp>()) {
    if (std::optional<APInt> count = loop.getStaticTripCount())
      trips = llvm::SaturatingMultiply<uint64_t>(
          trips, std::max<int64_t>(1, count->getSExtValue()));
    op = loop;
  }
  return std::min<uint64_t>(trips, INT64_MAX);
}

/// The work of a call, of all turns of the loops around it: memory counts by
/// the FLOPs that a core does while it moves a byte.
static Work workOfAll(func::CallOp call, int64_t trips = 1) {
  constexpr int64_t flopsOfByte = 4, largest = int64_t(1) << 40;
  auto flops = call->getAttrOfType<DenseI64ArrayAttr>("ktn.flops");
  auto bytes = call->getAttrOfType<DenseI64ArrayAttr>("ktn.bytes");
  if (!flops || flops.size() != 2 || !bytes || bytes.size() != 2)
    return {}; // written by hand
  auto sum = [&](unsigned index) {
    return std::min(flops[index] / trips, largest) +
           std::min(bytes[index] / trips, largest) * flopsOfByte;
  };
  return {sum(0), sum(1)};
}

/// The work of one turn.
static Work workOf(func::CallOp call) {
  return workOfAll(call, tripsAround(call));
}

int64_t partsOfAll(ArrayRef<func::CallOp> calls) {
  int64_t total = 0;
  for (func::CallOp call : calls)
    total = llvm::SaturatingAdd<uint64_t>(total, workOfAll(call).fixed);
  return total / workOfPart;
}

bool hasLittleWork(ModuleOp module) {
  constexpr int64_t mostWork = 10 * workOfPart;
  int64_t total = 0;
  module.walk([&](func::CallOp call) {
    Work work = workOfAll(call);
    total += work.fixed + (work.perBatch ? mostWork : 0);
  });
  return total < mostWork;
}

static constexpr int64_t evenly = 4;

/// So many that few threads have the same number of parts each.
static int64_t evenParts(int64_t parts) {
  return parts <= 2 ? parts : int64_t(llvm::alignTo(parts, evenly));
}

/// Whether the call does a part of the work of others already: it is in a loop
/// over bands (passes/Bands.h), which threads share.
static bool isInBands(Operation *op) {
  while (op && !op->hasAttr("ktn.bands"))
    op = op->getParentOp();
  return op;
}

namespace {
/// Tells in how many parts calls of known work are to be done.
class PartCounter {
public:
  /// With `symbols` kernels have been emitted, and tell whether they have
  /// parts.
  explicit PartCounter(SymbolTableCollection *symbols = nullptr)
      : symbols(symbols) {}

  int64_t partsOf(func::CallOp call);
  bool isAwake(func::CallOp call);

private:
  SymbolTableCollection *symbols;
  llvm::DenseMap<Operation *, bool> awake; ///< in functions that call kernels
};
} // namespace

/// Whether threads are awake when `call` comes by: there is work for all of
/// them around it, which has to wake them anyway. Steps of a loop follow each
/// other sooner than threads go to sleep. Little work between kernels that one
/// thread does is not worth it: these read what it wrote from the caches of
/// others.
bool PartCounter::isAwake(func::CallOp call) {
  constexpr int64_t leastWork = evenly * workOfPart;
  auto function = call->getParentOfType<func::FuncOp>();
  if (!function)
    return false;
  auto [known, isNew] = awake.try_emplace(function, false);
  if (!isNew)
    return known->second;
  int64_t total = 0, shared = 0;
  function.walk([&](func::CallOp other) {
    func::FuncOp kernel;
    if (symbols)
      kernel = symbols->lookupNearestSymbolFrom<func::FuncOp>(
          other, other.getCalleeAttr());
    auto parts =
        kernel ? kernel->getAttrOfType<IntegerAttr>(partsAttr) : IntegerAttr();
    Work work = workOfAll(other);
    int64_t ofCall = work.fixed + work.perBatch;
    total = llvm::SaturatingAdd<uint64_t>(total, ofCall);
    if (!symbols || (parts && parts.getInt() > 1) || isInBands(other))
      shared = llvm::SaturatingAdd<uint64_t>(shared, ofCall);
  });
  return known->second = total >= leastWork && shared >= total / 2;
}

int64_t PartCounter::partsOf(func::CallOp call) {
  int64_t work = workOf(call).fixed, parts = work / workOfPart;
  if (parts < evenly && isAwake(call))
    parts = std::min(work / workOfPartAwake, evenly);
  return evenParts(parts);
}

/// The argument of the function around `call` whose first extent is the batch.
static Value batchArgument(func::CallOp call) {
  auto function = call->getParentOfType<func::FuncOp>();
  if (!function)
    return {};
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getRank() > 0 && type.isDynamicDim(0))
      return argument;
  }
  return {};
}

llvm::StringMap<int64_t> mostPartsOfKernels(ModuleOp module) {
  llvm::StringMap<int64_t> parts;
  PartCounter counter;
  module.walk([&](func::CallOp call) {
    if (isInBands(call))
      return;
    Work work = workOf(call);
    int64_t &most = parts[call.getCallee()];
    most = std::max(most, work.perBatch > 0 && batchArgument(call)
                              ? INT64_MAX
                              : counter.partsOf(call));
  });
  return parts;
}

/// How many parts the work of `call` is worth, from 1 to `most`.
static Value countParts(OpBuilder &b, func::CallOp call, int64_t most,
                        PartCounter &counter) {
  Location loc = call.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  if (isInBands(call))
    most = 1;
  if (auto rows =
          call->getParentOp()->getAttrOfType<DictionaryAttr>(sharedRowsAttr))
    if (auto parts = rows.getAs<IntegerAttr>("parts"))
      return constant(std::clamp<int64_t>(parts.getInt(), 1, most));
  Work work = workOf(call);
  Value batch = work.perBatch > 0 && most > 1 ? batchArgument(call) : Value();
  if (!batch)
    return constant(std::clamp<int64_t>(counter.partsOf(call), 1, most));
  batch = tensor::DimOp::create(b, loc, batch, 0);
  Value total = arith::MulIOp::create(b, loc, batch, constant(work.perBatch));
  total = arith::AddIOp::create(b, loc, total, constant(work.fixed));
  Value parts = arith::DivUIOp::create(b, loc, total, constant(workOfPart));
  if (counter.isAwake(call)) {
    Value few =
        arith::DivUIOp::create(b, loc, total, constant(workOfPartAwake));
    few = arith::MinUIOp::create(b, loc, few, constant(evenly));
    parts = arith::MaxUIOp::create(b, loc, parts, few);
  }
  Value even = arith::MulIOp::create(
      b, loc, arith::CeilDivUIOp::create(b, loc, parts, constant(evenly)),
      constant(evenly));
  Value isFew = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, parts,
                                      constant(2));
  parts = arith::SelectOp::create(b, loc, isFew, parts, even);
  parts = arith::MinUIOp::create(b, loc, parts, constant(most));
  return arith::MaxUIOp::create(b, loc, parts, constant(1));
}

/// The weights that `call` asks for, in front of it.
static Value weightsFor(func::CallOp call, const WeightsAhead &ahead) {
  Operation *constant = ahead.weights.getDefiningOp();
  if (call->isBeforeInBlock(constant))
    constant->moveBefore(call);
  return ahead.weights;
}

/// Memory that calls of a function have in common, by its type: those that
/// follow each other, for what is in a loop may be done side by side.
using StayingMemory = llvm::DenseMap<std::pair<Operation *, Type>, Value>;

static Value stayingMemory(func::CallOp call, MemRefType type,
                           StayingMemory &known) {
  auto function = call->getParentOfType<func::FuncOp>();
  Value &memory = known[{function, type}];
  if (!memory) {
    OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
    memory = tensor::EmptyOp::create(b, function.getLoc(), type.getShape(),
                                     type.getElementType());
  }
  return memory;
}

static void adaptCall(func::CallOp call, func::FuncOp kernel,
                      const llvm::StringMap<WeightsAhead> &ahead,
                      PartCounter &counter, StayingMemory &staying) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  auto cast = [&](Value value, Type type) -> Value {
    return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
  };
  SmallVector<Value> operands;
  for (auto [operand, type] :
       llvm::zip_first(call.getOperands(), kernel.getArgumentTypes()))
    operands.push_back(operand.getType() == type ? operand
                                                 : cast(operand, type));
  SmallVector<Value> arguments = operands;
  for (unsigned number = operands.size(); number < kernel.getNumArguments();
       ++number) {
    bool isShared = bool(kernel.getArgAttr(number, sharedScratchAttr));
    if (isShared || kernel.getArgAttr(number, scratchAttr)) {
      auto type = mlir::cast<MemRefType>(kernel.getArgumentTypes()[number]);
      bool stays = kernel.getArgAttr(number, staysAttr) &&
                   isa<func::FuncOp>(call->getParentOp());
      Value memory = stays ? stayingMemory(call, type, staying)
                           : tensor::EmptyOp::create(b, loc, type.getShape(),
                                                     type.getElementType());
      arguments.push_back(cast(memory, type));
      // A call of all parts has the first piece.
      if (kernel->hasAttr(partsAttr) && !isShared)
        arguments.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    } else if (kernel.getArgAttr(number, aheadAttr)) {
      Value weights =
          weightsFor(call, ahead.find(call.getCallee())->getValue());
      arguments.push_back(cast(weights, kernel.getArgumentTypes()[number]));
    } else if (kernel.getArgAttr(number, turnAttr)) {
      arguments.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    } else if (kernel.getArgAttr(number, keptAttr)) {
      auto type = mlir::cast<MemRefType>(kernel.getArgumentTypes()[number]);
      auto kept = tensor::EmptyOp::create(b, loc, type.getShape(),
                                          type.getElementType());
      kept->setAttr(keptAttr, b.getUnitAttr());
      arguments.push_back(cast(kept, type));
    }
  }
  if (auto parts = kernel->getAttrOfType<IntegerAttr>(partsAttr)) {
    Value count = countParts(b, call, parts.getInt(), counter);
    llvm::append_values(arguments, arith::ConstantIndexOp::create(b, loc, 0),
                        count, count);
  }
  auto adapted = func::CallOp::create(b, loc, kernel, arguments);
  adapted->setDiscardableAttrs(call->getDiscardableAttrDictionary());

  ArrayRef<Value> destinations =
      ArrayRef(operands).take_back(call.getNumResults());
  for (auto [result, destination] :
       llvm::zip_equal(call.getResults(), destinations))
    result.replaceAllUsesWith(cast(destination, result.getType()));
  call.erase();
}

/// Whether `value` is a slice of a buffer that is made of parts, each by a
/// kernel of its own (passes/PlaceParts.h).
static bool isSlot(Value value) {
  if (auto view = value.getDefiningOp<tensor::ExpandShapeOp>())
    value = view.getSrc();
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return false;
  Value whole = slice.getSource();
  while (auto insert = whole.getDefiningOp<tensor::InsertSliceOp>())
    whole = insert.getDest();
  if (auto loop = whole.getDefiningOp<scf::ForOp>()) // its parts are bands
    whole = loop.getTiedLoopInit(cast<OpResult>(whole))->get();
  auto buffer = whole.getDefiningOp<tensor::EmptyOp>();
  return buffer && buffer->hasAttr("ktn.buffer");
}

/// Whether kernels write their results where nothing is yet, and not to what
/// others read.
static LogicalResult verifyDestinations(func::CallOp call) {
  unsigned first = call.getNumOperands() - call.getNumResults();
  for (auto [number, destination] :
       llvm::enumerate(call.getOperands().drop_front(first)))
    if (!destination.getDefiningOp<tensor::EmptyOp>() && !isSlot(destination))
      return call.emitError("the destination of result #")
             << number << " is no tensor.empty";
  return success();
}

LogicalResult adaptKernelCalls(ModuleOp module,
                               const llvm::StringMap<WeightsAhead> &ahead) {
  SymbolTableCollection symbols;
  SmallVector<std::pair<func::CallOp, func::FuncOp>> calls;
  module.walk([&](func::CallOp call) {
    auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (kernel && kernel->hasAttr(kernelAttr) &&
        kernel.getNumResults() != call.getNumResults())
      calls.emplace_back(call, kernel);
  });
  PartCounter counter(&symbols);
  StayingMemory staying;
  for (auto [call, kernel] : calls) {
    if (failed(verifyDestinations(call)))
      return failure();
    adaptCall(call, kernel, ahead, counter, staying);
  }
  return success();
}

} // namespace keratin
