//===- EmitTiles.cpp - kernels as register tiles --------------------------===//
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/CpuPasses.h"
#include "codegen/cpu/Dots.h"
#include "codegen/cpu/GateEmitter.h"
#include "codegen/cpu/KernelCalls.h"
#include "codegen/cpu/KernelForm.h"
#include "codegen/cpu/NarrowProducts.h"
#include "codegen/cpu/OneRow.h"
#include "codegen/cpu/PairedProduct.h"
#include "codegen/cpu/PlainLoops.h"
#include "codegen/cpu/RowEmitter.h"
#include "codegen/cpu/SharedRows.h"
#include "codegen/cpu/Strassen.h"
#include "codegen/cpu/TileEmitter.h"
#include "codegen/cpu/WeightsAhead.h"
#include "codegen/cpu/WinogradGradient.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EMITTILES
#include "codegen/cpu/CpuPasses.h.inc"

namespace {
struct EmitTiles : impl::EmitTilesBase<EmitTiles> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// Whether `pad` has a border of known width, with an argument inside that has
/// known extents there.
static bool isReadAround(Kernel &kernel, tensor::PadOp pad) {
  for (auto [low, high, extent] :
       llvm::zip_equal(pad.getStaticLow(), pad.getStaticHigh(),
                       pad.getSourceType().getShape()))
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(high) ||
        ((low != 0 || high != 0) &&
         (ShapedType::isDynamic(extent) || extent == 0)))
      return false;
  return kernel.memrefOf(pad.getSource()) != nullptr;
}

/// Whether the emitters of tiles understand every op of the kernel; what they
/// do not is left to plain loops.
static bool isTileForm(Kernel &kernel) {
  for (Operation &op : kernel.from().front().without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!tellsItsLoops(generic) || !isVectorizable(generic))
        return false;
      for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>())
        if (!kernel.memrefOf(extract.getTensor()))
          return false;
    }
    bool returned = llvm::all_of(op.getUsers(), [](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>();
    });
    if (auto pad = dyn_cast<tensor::PadOp>(op))
      if (!pad.getConstantPaddingValue() ||
          (!returned && !isReadAround(kernel, pad)))
        return false;
    if (isa<tensor::ConcatOp>(op) && !returned)
      return false;
  }
  return true;
}

/// Whether `value` is `other`, or computed from it element by element: then
/// they have the same extents.
static bool followsInPlace(Value value, Value other) {
  SmallVector<Value> pending = {value};
  llvm::SmallDenseSet<Value> seen = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (next == other)
      return true;
    auto op = next.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumReductionLoops() != 0 ||
        !op.getIndexingMapMatchingResult(cast<OpResult>(next)).isIdentity())
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (op.getMatchingIndexingMap(&operand).isIdentity() &&
          isa<TensorType>(operand.get().getType()) &&
          seen.insert(operand.get()).second)
        pending.push_back(operand.get());
  }
  return false;
}

static bool haveSameExtents(Value one, Value other) {
  auto type = cast<RankedTensorType>(one.getType());
  return type.getShape() ==
             cast<RankedTensorType>(other.getType()).getShape() &&
         (type.hasStaticShape() || followsInPlace(one, other) ||
          followsInPlace(other, one));
}

/// Emits results that do not follow from a reduction: those of one shape
/// together, for they often share what they compute.
static void emitWithoutRoot(Kernel &kernel, ArrayRef<Copy> results,
                            const VectorUnit &unit) {
  SmallVector<SmallVector<Copy>> groups;
  for (const Copy &copy : results) {
    Operation *op = copy.source.getDefiningOp();
    if (auto pad = dyn_cast_or_null<tensor::PadOp>(op)) {
      emitPad(kernel, pad, copy.destination, unit);
    } else if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op)) {
      emitConcat(kernel, concat, copy.destination, unit);
    } else if (kernel.memrefOf(copy.source) != copy.destination &&
               !isa_and_nonnull<tensor::EmptyOp>(op)) {
      auto *group = llvm::find_if(groups, [&](ArrayRef<Copy> group) {
        return haveSameExtents(group[0].source, copy.source);
      });
      if (group == groups.end())
        group = &groups.emplace_back();
      group->push_back(copy);
    }
  }
  for (ArrayRef<Copy> group : groups)
    emitElementwise(kernel, group, unit);
}

/// Moves `position` to where a pad with the low borders `low` puts it.
static bool shift(Position &position, ArrayRef<int64_t> low) {
  for (auto [expr, distance] : llvm::zip_equal(position, low)) {
    if (ShapedType::isDynamic(distance))
      return false;
    expr = canonical(expr + distance);
  }
  return true;
}

/// The axis of an output that a loop of the root goes along.
static std::optional<unsigned> axisOf(unsigned loop, const Output &output) {
  for (auto [axis, expr] : llvm::enumerate(output.position))
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && dim.getPosition() == loop)
      return axis;
  return std::nullopt;
}

/// The axis of the outputs that parts share.
static std::optional<unsigned> sharedAxis(const Tiling &tiling,
                                          const Output &output) {
  if (!tiling.shared)
    return std::nullopt;
  return axisOf(tiling.levels[*tiling.shared].loop, output);
}

/// Emits `root` and what follows from it; false when no tile fits. Says which
/// axis of the outputs parts share, where it is one.
static bool emitRoot(Kernel &kernel, linalg::GenericOp root,
                     ArrayRef<Output> outputs, const VectorUnit &unit,
                     Winograd winograd, DotUnit dots,
                     std::optional<unsigned> &axis) {
  std::optional<DotPlan> byPairs = planDots(kernel, root, dots, unit);
  std::optional<NarrowPlan> narrow;
  if (!byPairs)
    narrow = planNarrow(kernel, root, unit);
  // Transforms of an image, which are the same for any number of columns, cost
  // more than they save of so few.
  bool isVeryNarrow =
      narrow && staticLoopExtent(root, narrow->column) * 2 <= narrow->lanes &&
      (winograd == Winograd::Auto || winograd == Winograd::Off);
  std::optional<WinogradPlan> transformed;
  if (!isVeryNarrow)
    transformed = planWinograd(kernel, root, unit, winograd,
                               byPairs ? dots : DotUnit::None);
  if (transformed) {
    emitWinograd(kernel, root, *transformed, outputs);
    return true;
  }
  std::optional<GradientPlan> gradient;
  if (!byPairs && !isVeryNarrow)
    gradient = planGradient(kernel, root, unit, winograd);
  if (gradient) {
    emitGradient(kernel, root, *gradient, outputs);
    return true;
  }
  if (byPairs) {
    if (emitDots(kernel, root, *byPairs, outputs))
      axis = axisOf(byPairs->lane, outputs.front());
    return true;
  }
  if (narrow) {
    emitNarrow(kernel, root, *narrow, outputs);
    return true;
  }
  if (auto oneRow = planOneRow(kernel, root, unit)) {
    emitOneRow(kernel, root, *oneRow, outputs);
    axis = axisOf(oneRow->lane, outputs.front());
    return true;
  }
  if (auto paired = planPaired(kernel, root, outputs, unit)) {
    emitPaired(kernel, root, *paired, outputs);
    return true;
  }
  if (auto halved = planStrassen(kernel, root, unit)) {
    emitStrassen(kernel, root, *halved, outputs);
    return true;
  }
  std::optional<Tiling> tiling =
      tilingOf(kernel, root, unit, holdsSums(root, outputs));
  if (!tiling)
    return false;
  axis = sharedAxis(*tiling, outputs.front());
  if (tiling->reducesLanes) {
    emitLaneReduction(kernel, root, *tiling, outputs);
  } else {
    startWithAddend(kernel, root, *tiling);
    emitTiles(kernel, root, *tiling, outputs);
  }
  return true;
}

/// Emits the kernel in tile form; false when it has another.
static bool emitTileForm(Kernel &kernel, const VectorUnit &unit,
                         Winograd winograd, DotUnit dots) {
  if (!isTileForm(kernel))
    return false;
  SmallVector<linalg::GenericOp> roots;
  for (auto generic : kernel.from().getOps<linalg::GenericOp>())
    if (generic.getNumReductionLoops() != 0)
      roots.push_back(generic);
  if (roots.size() > 1)
    return false;

  SmallVector<Output> outputs;
  SmallVector<Copy> others;
  SmallVector<std::pair<tensor::PadOp, Value>> borders;
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    Value destination = kernel.destination(number);
    if (roots.empty() || !dependsOn(result, roots[0])) {
      others.push_back({result, destination});
      continue;
    }
    auto pad = result.getDefiningOp<tensor::PadOp>();
    Value computed = pad ? pad.getSource() : result;
    std::optional<Position> position = positionOf(computed, roots[0]);
    if (!position)
      return false;
    Position place = *position;
    if (pad && !shift(place, pad.getStaticLow()))
      return false;
    outputs.push_back({computed, *position, destination, place});
    if (pad)
      borders.push_back({pad, destination});
  }
  std::optional<unsigned> axis;
  if (!outputs.empty() &&
      !emitRoot(kernel, roots[0], outputs, unit, winograd, dots, axis))
    return false;
  for (auto [pad, destination] : borders)
    emitPadBorder(kernel, pad, destination, axis, unit);
  emitWithoutRoot(kernel, others, unit);
  if (axis && *axis + 1 == outputs.front().position.size())
    kernel.to()->setAttr(columnsAttr, kernel.builder().getUnitAttr());
  return true;
}

/// Scalar loops are many times slower: the table of kernels says where they
/// are.
static void tellOfPlainLoops(func::FuncOp kernel) {
  StringRef kind = kernel->getAttrOfType<StringAttr>(kernelAttr).getValue();
  kernel->setAttr(kernelAttr,
                  StringAttr::get(kernel.getContext(), kind + ", plain loops"));
}

/// The first call of each kernel, in order.
static llvm::MapVector<StringRef, func::CallOp> firstCallsOf(ModuleOp module) {
  llvm::MapVector<StringRef, func::CallOp> calls;
  module.walk(
      [&](func::CallOp call) { calls.try_emplace(call.getCallee(), call); });
  return calls;
}

/// The kernels in the order of these calls, then those that nobody calls.
static SmallVector<func::FuncOp>
kernelsInOrder(ModuleOp module,
               const llvm::MapVector<StringRef, func::CallOp> &calls) {
  llvm::MapVector<StringRef, func::FuncOp> kernels;
  for (func::FuncOp kernel : kernelsOf(module))
    kernels[kernel.getName()] = kernel;
  SmallVector<func::FuncOp> ordered;
  for (auto [name, call] : calls)
    if (func::FuncOp kernel = kernels.lookup(name))
      ordered.push_back(kernel);
  for (auto [name, kernel] : kernels)
    if (!calls.contains(name))
      ordered.push_back(kernel);
  return ordered;
}

/// Tells `kernel`, which `call` calls, of which arguments threads have shared
/// the columns. What writes them has been emitted.
static void findSharedColumns(Kernel &kernel, func::CallOp call) {
  auto module = kernel.from()->getParentOfType<ModuleOp>();
  for (auto [number, operand] : llvm::enumerate(call.getOperands()))
    if (auto writer = operand.getDefiningOp<func::CallOp>())
      if (auto from = module.lookupSymbol<func::FuncOp>(writer.getCallee());
          from && from->hasAttr(columnsAttr))
        kernel.setSharedColumns(number);
}

/// The constants that the arguments of a kernel are in all its calls, by their
/// numbers.
using ValuesOfArguments = std::map<unsigned, SmallVector<ElementsAttr>>;

/// By the names of kernels.
static llvm::StringMap<ValuesOfArguments> valuesOfKernels(ModuleOp module) {
  llvm::StringMap<ValuesOfArguments> values;
  llvm::StringMap<unsigned> calls;
  module.walk([&](func::CallOp call) {
    ++calls[call.getCallee()];
    for (auto [number, operand] : llvm::enumerate(call.getOperands())) {
      ElementsAttr value;
      if (matchPattern(operand, m_Constant(&value)))
        values[call.getCallee()][unsigned(number)].push_back(value);
    }
  });
  for (auto &entry : values)
    for (auto it = entry.getValue().begin(); it != entry.getValue().end();)
      it = it->second.size() == calls.lookup(entry.getKey())
               ? std::next(it)
               : entry.getValue().erase(it);
  return values;
}

/// Bytes of the constants that kernels are called with.
static uint64_t bytesOfWeights(ModuleOp module) {
  uint64_t bytes = 0;
  llvm::SmallDenseSet<Attribute> seen;
  module.walk([&](arith::ConstantOp op) {
    auto value = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    if (value && seen.insert(value).second)
      bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesOf(op));
  });
  return bytes;
}

/// Whether weights that one row meets become integers of 24 bits in the kernel
/// that `call`, its first one, calls.
static bool takes24(Weights24 which, func::CallOp call,
                    const VectorUnit &unit) {
  if (which != Weights24::Far)
    return which == Weights24::All;
  if (!call)
    return false;
  // A turn of a loop finds what the one before left in the second cache.
  if (!call->getParentOfType<LoopLikeOpInterface>())
    return !unit.nearestWeights();
  int64_t bytes = 0;
  for (Value operand : call.getOperands())
    if (operand.getDefiningOp<arith::ConstantOp>())
      bytes = llvm::SaturatingAdd<uint64_t>(bytes, bytesOf(operand));
  return bytes > unit.secondCache();
}

void EmitTiles::runOnOperation() {
  // In the order of calls: a diagnostic is about the first layer.
  for (func::FuncOp func :
       kernelsInOrder(getOperation(), firstCallsOf(getOperation())))
    if (failed(verifyKernel(func)))
      return signalPassFailure();
  VectorUnit unit = {vectorBits, vectorRegisters, littleCode,
                     int64_t(secondCacheKiB) << 10};
  unit.fetchesAhead = fetchesAhead;
  unit.oneRun = oneRun;
  unit.asksNextRows = asksNextRows;
  unit.halfUnits = halfUnits;
  unit.strassen = strassen;
  unit.pairs = pairs;
  unit.storesAtOnce = storesAtOnce;
  unit.bytesOfWeights = bytesOfWeights(getOperation());
  // Transforms are some thousand instructions.
  Winograd transforms =
      littleCode && winograd == Winograd::Auto ? Winograd::Off : winograd;
  llvm::StringMap<ValuesOfArguments> values;
  if (weights24 != Weights24::None || strassen || pairs)
    values = valuesOfKernels(getOperation());
  llvm::StringMap<int64_t> parts;
  // Shared among threads, little work is done a few microseconds sooner.
  if (parallel && !littleCode)
    parts = mostPartsOfKernels(getOperation());
  llvm::StringMap<WeightsAhead> ahead;
  // With 16 registers a step has 12 products, which take no longer than all
  // else that is in it.
  constexpr unsigned fewRegisters = 16;
  if (asksForLater && !littleCode && vectorRegisters > fewRegisters)
    ahead = findWeightsAhead(getOperation(), weights24 != Weights24::None);
  auto emit = [&](Kernel &kernel, StringRef name) {
    for (auto &[number, constants] : values[name])
      kernel.setValues(number, constants);
    return emitTileForm(kernel, unit, transforms, dots) ||
           (isTileForm(kernel) && emitAttention(kernel, unit, attentionKeys)) ||
           emitGates(kernel, unit, dots) || emitRows(kernel, unit);
  };
  llvm::SmallDenseSet<Operation *> emitted;
  if (parallel && !littleCode)
    emitted = shareRowsOfLoops(getOperation(), unit.secondCache(),
                               dots == DotUnit::Tiles, emit);
  auto calls = firstCallsOf(getOperation());
  for (func::FuncOp func : kernelsInOrder(getOperation(), calls)) {
    if (emitted.contains(func))
      continue;
    unit.weights24 = takes24(weights24, calls.lookup(func.getName()), unit);
    Kernel kernel(func);
    if (auto asked = ahead.find(func.getName()); asked != ahead.end())
      kernel.allowAsking(asked->getValue().from, asked->getValue().bytes);
    if (parts.lookup(func.getName()) > 1) {
      kernel.allowParts();
      findSharedColumns(kernel, calls.lookup(func.getName()));
    }
    if (!emit(kernel, func.getName())) {
      kernel.restart();
      if (failed(emitPlainLoops(kernel)))
        return signalPassFailure();
      tellOfPlainLoops(kernel.to());
    }
    kernel.finish();
  }
  typeWeightsAhead(getOperation(), ahead);
  if (failed(adaptKernelCalls(getOperation(), ahead)))
    return signalPassFailure();
}

} // namespace keratin
