//===- FormKernels.cpp - linalg on tensors becomes a list of kernels ------===//
#include "passes/BatchSizes.h"
#include "passes/KernelGroups.h"
#include "passes/Passes.h"
#include "passes/PlaceParts.h"
#include "passes/SplitGates.h"
#include "passes/UnitAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_FORMKERNELS
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The Keras layer that `loc` names, or nothing.
llvm::StringRef layerName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return layerName(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (llvm::StringRef name = layerName(part); !name.empty())
        return name;
  return {};
}

/// A symbol made of a layer path. The dot keeps it from being that of a C
/// function: a layer may be called erf, or memcpy.
std::string symbolFor(llvm::StringRef layer) {
  std::string symbol = "kernel.";
  for (char c : layer)
    symbol += llvm::isAlnum(c) ? c : '_';
  return symbol;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

BatchSize addOrSaturate(BatchSize a, BatchSize b) {
  return add(a, b).value_or(BatchSize{INT64_MAX, 0});
}

/// The turns of `loop`: of whatever operand has it as an axis, for other axes
/// may be windows, or one position.
std::optional<BatchSize> countTurns(linalg::GenericOp generic, unsigned loop) {
  AffineExpr dim = getAffineDimExpr(loop, generic.getContext());
  for (OpOperand &operand : generic->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    std::optional<unsigned> axis =
        generic.getMatchingIndexingMap(&operand).getResultPosition(dim);
    if (!axis)
      continue;
    std::optional<SmallVector<BatchSize>> shape = evaluateShape(operand.get());
    return shape ? std::optional((*shape)[*axis]) : std::nullopt;
  }
  return std::nullopt;
}

/// Points of the iteration space; nothing when it is not linear in the batch.
std::optional<BatchSize> countPoints(linalg::GenericOp generic) {
  std::optional<BatchSize> points = BatchSize{1, 0};
  for (unsigned loop = 0; loop < generic.getNumLoops() && points; ++loop) {
    std::optional<BatchSize> turns = countTurns(generic, loop);
    points = turns ? multiply(*points, *turns) : std::nullopt;
  }
  return points;
}

/// Operations on floats of `op` when it runs once over its iteration space:
/// arithmetic and functions, not conversions.
BatchSize countFlops(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return {};
  int64_t perPoint = 0;
  for (Operation &scalar : *generic.getBody())
    if (isa_and_nonnull<arith::ArithDialect>(scalar.getDialect()))
      perPoint += isa<FloatType>(scalar.getResult(0).getType()) &&
                  !isa<arith::ConstantOp, CastOpInterface>(scalar);
    else if (scalar.getDialect()->getNamespace() == "math")
      ++perPoint;
  std::optional<BatchSize> points = countPoints(generic);
  return points
             ? multiply(*points, BatchSize{perPoint, 0}).value_or(BatchSize{})
             : BatchSize{};
}

/// Bytes of so many elements of a tensor.
BatchSize bytesOf(std::optional<BatchSize> count, RankedTensorType type) {
  if (!count)
    return {};
  int64_t bits =
      type.getElementType().isIntOrFloat() ? type.getElementTypeBitWidth() : 64;
  return multiply(*count, BatchSize{(bits + 7) / 8, 0}).value_or(BatchSize{});
}

/// Bytes of a tensor.
BatchSize countBytes(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  std::optional<SmallVector<BatchSize>> shape =
      type ? evaluateShape(tensor) : std::nullopt;
  return shape ? bytesOf(evaluateCount(*shape), type) : BatchSize{};
}

/// Bytes that a group reads of a tensor: of one that it only picks elements
/// from, such as a table of words, no more than those. Of a scalar none.
BatchSize countBytesRead(Value input, ArrayRef<Operation *> group) {
  auto tensor = dyn_cast<TypedValue<RankedTensorType>>(input);
  if (!tensor)
    return {};
  BatchSize all = countBytes(tensor), picked;
  for (Operation *user : tensor.getUsers()) {
    auto generic = user->getParentOfType<linalg::GenericOp>();
    if (generic && llvm::is_contained(group, generic.getOperation()))
      picked = addOrSaturate(picked,
                             bytesOf(countPoints(generic), tensor.getType()));
    else if (llvm::is_contained(group, user))
      return all;
  }
  if (picked == BatchSize{} ||
      (picked.isStatic() && all.isStatic() && all.fixed < picked.fixed))
    return all;
  return picked;
}

/// How often `op` runs when its function runs once.
int64_t tripCount(Operation *op) {
  uint64_t trips = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (std::optional<APInt> count = loop.getStaticTripCount())
      trips = llvm::SaturatingMultiply(trips, count->getLimitedValue());
  return std::min<uint64_t>(trips, INT64_MAX);
}

DenseI64ArrayAttr toAttr(OpBuilder &b, BatchSize size) {
  return b.getDenseI64ArrayAttr({size.fixed, size.perBatch});
}

//===----------------------------------------------------------------------===//
// Outlining
//===----------------------------------------------------------------------===//

/// Puts the ops of every group next to each other, in an order that respects
/// all uses.
void sortByGroup(Block &block, ArrayRef<KernelGroup> groups) {
  llvm::DenseMap<Operation *, const KernelGroup *> groupOf;
  for (const KernelGroup &group : groups)
    for (Operation *op : group.ops)
      groupOf[op] = &group;

  llvm::SetVector<Operation *> sorted;
  llvm::DenseSet<Operation *> visiting;
  auto place = [&](auto &self, Operation *op) -> void {
    if (sorted.contains(op) || !visiting.insert(op).second)
      return;
    ArrayRef<Operation *> members(op);
    if (const KernelGroup *group = groupOf.lookup(op)) {
      members = group->ops;
      visiting.insert(members.begin(), members.end());
    }
    for (Operation *member : members) {
      auto placeInput = [&](Value input) {
        Operation *def = input.getDefiningOp();
        def = def ? block.findAncestorOpInBlock(*def) : nullptr;
        if (def && def->getBlock() == &block)
          self(self, def);
      };
      for (Value operand : member->getOperands())
        placeInput(operand);
      for (Region &region : member->getRegions())
        visitUsedValuesDefinedAbove(
            region, [&](OpOperand *use) { placeInput(use->get()); });
    }
    sorted.insert(members.begin(), members.end());
  };
  Operation *terminator = block.getTerminator();
  for (Operation &op : block.without_terminator())
    place(place, &op);
  for (Operation *op : sorted)
    op->moveBefore(terminator);
}

class Outliner {
public:
  Outliner(ModuleOp module) : module(module), symbols(module) {}

  /// Replaces the ops of `group`, which stand next to each other, by a call.
  LogicalResult outline(const KernelGroup &group);

private:
  FailureOr<func::FuncOp> build(const KernelGroup &group,
                                ArrayRef<Value> operands,
                                ArrayRef<OpOperand *> again,
                                ArrayRef<Value> results);
  func::FuncOp unique(func::FuncOp kernel, ArrayRef<Value> operands,
                      llvm::StringRef layer);

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> byStructure;
};

/// Scalars known at compile time are part of the kernel.
bool isScalarConstant(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant && !isa<ShapedType>(constant.getType());
}

/// The empty tensor behind an init that only starts an accumulator or gives
/// the shape of a result; null for an init whose elements matter.
tensor::EmptyOp shapeOnly(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs().front();
  return init.getDefiningOp<tensor::EmptyOp>();
}

void forEachInput(Operation *op, llvm::function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands())
    visit(operand);
  for (Region &region : op->getRegions())
    visitUsedValuesDefinedAbove(region,
                                [&](OpOperand *use) { visit(use->get()); });
}

/// `size` of the batch that the function in which `b` builds is called with.
Value materialize(OpBuilder &b, Location loc, BatchSize size) {
  if (size.isStatic())
    return arith::ConstantIndexOp::create(b, loc, size.fixed);
  auto function =
      b.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
  if (!function)
    function = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  auto hasBatch = [](BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    return type && type.getRank() && type.isDynamicDim(0);
  };
  Value batched = *llvm::find_if(function.getArguments(), hasBatch);
  Value batch = tensor::DimOp::create(b, loc, batched, 0);
  Value factor = arith::ConstantIndexOp::create(b, loc, size.perBatch);
  Value offset = arith::ConstantIndexOp::create(b, loc, size.fixed);
  Value scaled = arith::MulIOp::create(b, loc, batch, factor);
  return arith::AddIOp::create(b, loc, scaled, offset);
}

/// A tensor of the shape of `result` for a kernel to write into. Its sizes do
/// not depend on values that the kernel computes.
FailureOr<Value> makeDestination(OpBuilder &b, OpResult result) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(result.getOwner());
  if (auto style = dyn_cast<DestinationStyleOpInterface>(result.getOwner()))
    if (auto empty = shapeOnly(style.getTiedOpOperand(result)->get()))
      return empty.getResult();
  auto type = cast<RankedTensorType>(result.getType());
  std::optional<SmallVector<BatchSize>> shape = evaluateShape(result);
  if (!shape)
    return result.getOwner()->emitOpError(
        "has an extent that is not linear in the batch");
  SmallVector<Value> sizes;
  for (auto [axis, extent] : llvm::enumerate(*shape))
    if (type.isDynamicDim(axis))
      sizes.push_back(materialize(b, result.getLoc(), extent));
  return tensor::EmptyOp::create(b, result.getLoc(), type, sizes).getResult();
}

/// The layer that a group computes: that of its root, or of its last op.
std::string layerOf(const KernelGroup &group) {
  for (Operation *op : group.ops)
    if (auto generic = dyn_cast<linalg::GenericOp>(op);
        generic && generic.getNumReductionLoops())
      if (llvm::StringRef name = layerName(op->getLoc()); !name.empty())
        return name.str();
  for (Operation *op : llvm::reverse(group.ops))
    if (llvm::StringRef name = layerName(op->getLoc()); !name.empty())
      return name.str();
  return group.kind.str();
}

/// `tensor.dim` of the kernel's argument that has an axis of this extent.
Value extentFromArguments(OpBuilder &b, Location loc, BatchSize extent,
                          ArrayRef<Value> operands, ValueRange arguments) {
  for (auto [operand, argument] : llvm::zip_equal(operands, arguments)) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    std::optional<SmallVector<BatchSize>> shape =
        type ? evaluateShape(operand) : std::nullopt;
    if (!shape)
      continue;
    for (auto [axis, candidate] : llvm::enumerate(*shape))
      if (type.isDynamicDim(axis) && candidate == extent)
        return tensor::DimOp::create(b, loc, argument,
                                     static_cast<int64_t>(axis));
  }
  return {};
}

/// An empty tensor in the kernel with the shape of `empty` outside.
FailureOr<Value> cloneEmpty(OpBuilder &b, tensor::EmptyOp empty,
                            ArrayRef<Value> operands, ValueRange arguments) {
  SmallVector<Value> sizes;
  for (Value size : empty.getDynamicSizes()) {
    std::optional<BatchSize> extent = evaluateBatchSize(size);
    Value inside = extent ? extentFromArguments(b, empty.getLoc(), *extent,
                                                operands, arguments)
                          : Value();
    if (!inside)
      return empty.emitOpError(
          "has an extent that is not a multiple of the batch");
    sizes.push_back(inside);
  }
  return tensor::EmptyOp::create(b, empty.getLoc(), empty.getType(), sizes)
      .getResult();
}

/// Where a sum of `group` multiplies what is not made in it with itself, read
/// another way: the factors of Gram's matrix. Tiles read one of them in blocks
/// and the other as it is, so those are two arguments.
SmallVector<OpOperand *> readAgain(const KernelGroup &group) {
  SmallVector<OpOperand *> again;
  for (Operation *op : group.ops) {
    auto sum = dyn_cast<linalg::GenericOp>(op);
    if (!sum || sum.getNumReductionLoops() == 0)
      continue;
    SmallVector<OpOperand *> factors = sum.getDpsInputOperands();
    if (factors.size() == 2 && factors[0]->get() == factors[1]->get() &&
        sum.getMatchingIndexingMap(factors[0]) !=
            sum.getMatchingIndexingMap(factors[1]) &&
        !llvm::is_contained(group.ops, factors[0]->get().getDefiningOp()))
      again.push_back(factors[1]);
  }
  return again;
}

/// `operands` are what the group reads, then that of `again`, and destinations
/// for `results`.
FailureOr<func::FuncOp> Outliner::build(const KernelGroup &group,
                                        ArrayRef<Value> operands,
                                        ArrayRef<OpOperand *> again,
                                        ArrayRef<Value> results) {
  Location loc = group.ops.back()->getLoc();
  OpBuilder b(module.getContext());
  auto kernel =
      func::FuncOp::create(loc, "kernel",
                           b.getFunctionType(TypeRange(ValueRange(operands)),
                                             TypeRange(ValueRange(results))));
  kernel.setPrivate();
  kernel->setAttr("ktn.kernel", b.getStringAttr(group.kind));

  Block *body = kernel.addEntryBlock();
  b.setInsertionPointToStart(body);
  size_t numInputs = operands.size() - results.size() - again.size();
  IRMapping map;
  map.map(operands.take_front(numInputs),
          body->getArguments().take_front(numInputs));
  ValueRange others = body->getArguments().drop_front(numInputs);
  ValueRange targets = others.drop_front(again.size());

  auto cloneScalar = [&](Value value) {
    if (isScalarConstant(value) && !map.contains(value))
      b.clone(*value.getDefiningOp(), map);
  };
  for (Operation *op : group.ops) {
    forEachInput(op, cloneScalar);
    // Each op gets destinations of its own: an output of the kernel, or an
    // empty tensor that only says the shape of a value within.
    IRMapping local = map;
    if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
      for (auto [index, init] : llvm::enumerate(style.getDpsInits())) {
        auto empty = shapeOnly(init);
        if (!empty)
          continue;
        const auto *output = llvm::find(results, op->getResult(index));
        FailureOr<Value> target =
            output != results.end()
                ? FailureOr<Value>(targets[output - results.begin()])
                : cloneEmpty(b, empty, operands, body->getArguments());
        if (failed(target)) {
          kernel.erase();
          return failure();
        }
        if (auto fill = init.getDefiningOp<linalg::FillOp>()) {
          cloneScalar(fill.getInputs().front());
          target = linalg::FillOp::create(b, fill.getLoc(),
                                          map.lookup(fill.getInputs().front()),
                                          *target)
                       .getResult(0);
        }
        local.map(init, *target);
      }
    Operation *clone = b.clone(*op, local);
    for (auto [operand, argument] : llvm::zip(again, others))
      if (operand->getOwner() == op)
        clone->setOperand(operand->getOperandNumber(), argument);
    map.map(op->getResults(), clone->getResults());
  }
  func::ReturnOp::create(b, loc, llvm::map_to_vector(results, [&](Value v) {
                           return map.lookup(v);
                         }));
  return kernel;
}

/// The kernel of the same structure that exists already, or `kernel` itself
/// under a name of its own.
func::FuncOp Outliner::unique(func::FuncOp kernel, ArrayRef<Value> operands,
                              llvm::StringRef layer) {
  // Which arguments are constant decides how they are packed.
  for (auto [index, operand] : llvm::enumerate(operands))
    if (operand.getDefiningOp<arith::ConstantOp>())
      kernel.setArgAttr(index, "ktn.constant",
                        UnitAttr::get(module.getContext()));
  std::string structure;
  llvm::raw_string_ostream stream(structure);
  kernel.print(stream, OpPrintingFlags().useLocalScope());
  auto [known, isNew] = byStructure.try_emplace(structure, kernel);
  if (!isNew) {
    kernel.erase();
    return known->second;
  }
  kernel.setName(symbolFor(layer));
  symbols.insert(kernel, module.getBody()->end());
  return kernel;
}

LogicalResult Outliner::outline(const KernelGroup &group) {
  Operation *last = group.ops.back();
  OpBuilder b(last);

  llvm::SmallSetVector<Value, 8> inputs;
  SmallVector<Value> results, destinations;
  BatchSize flops;
  auto isMember = [&](Operation *op) {
    return op && llvm::is_contained(group.ops, op);
  };
  for (Operation *op : group.ops) {
    auto style = dyn_cast<DestinationStyleOpInterface>(op);
    forEachInput(op, [&](Value input) {
      bool init = style && llvm::is_contained(style.getDpsInits(), input);
      if (!isMember(input.getDefiningOp()) && !isScalarConstant(input) &&
          !(init && shapeOnly(input)))
        inputs.insert(input);
    });
    for (OpResult result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !isMember(
                user->getBlock() == op->getBlock()
                    ? user
                    : op->getBlock()->findAncestorOpInBlock(*user));
          })) {
        FailureOr<Value> destination = makeDestination(b, result);
        if (failed(destination))
          return failure();
        results.push_back(result);
        destinations.push_back(*destination);
      }
    flops = addOrSaturate(flops, countFlops(op));
  }
  if (results.empty())
    return success(); // nobody needs it: left to be erased as dead

  SmallVector<Value> operands(inputs.getArrayRef());
  SmallVector<OpOperand *> again = readAgain(group);
  for (OpOperand *operand : again)
    operands.push_back(operand->get());
  llvm::append_range(operands, destinations);
  BatchSize bytes;
  for (Value input : inputs)
    bytes = addOrSaturate(bytes, countBytesRead(input, group.ops));
  for (Value destination : destinations)
    bytes = addOrSaturate(bytes, countBytes(destination));

  FailureOr<func::FuncOp> kernel = build(group, operands, again, results);
  if (failed(kernel))
    return failure();
  std::string layer = layerOf(group);
  func::FuncOp callee = unique(*kernel, operands, layer);
  auto call = func::CallOp::create(
      b, NameLoc::get(b.getStringAttr(layer), last->getLoc()), callee,
      operands);
  BatchSize trips{tripCount(last), 0};
  call->setAttr("ktn.flops", toAttr(b, multiply(flops, trips).value_or(flops)));
  call->setAttr("ktn.bytes", toAttr(b, multiply(bytes, trips).value_or(bytes)));
  for (auto [result, replacement] : llvm::zip_equal(results, call.getResults()))
    result.replaceAllUsesWith(replacement);
  for (Operation *op : llvm::reverse(group.ops))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr("ktn.kernel"))
        functions.push_back(function);
    Outliner outliner(getOperation());
    for (func::FuncOp function : functions)
      if (failed(run(function, outliner)))
        return signalPassFailure();
    if (fuse)
      llvm::for_each(functions, placeParts);
  }

  LogicalResult run(func::FuncOp function, Outliner &outliner) {
    if (fuse) {
      foldUnitAxes(function);
      splitGates(function);
    }
    SmallVector<Block *> blocks = {&function.front()};
    function.walk([&](scf::ForOp loop) { blocks.push_back(loop.getBody()); });
    for (Block *block : blocks) {
      SmallVector<KernelGroup> groups = formKernelGroups(*block, fuse);
      sortByGroup(*block, groups);
      for (const KernelGroup &group : groups)
        if (failed(outliner.outline(group)))
          return failure();
    }
    return success();
  }
};

} // namespace
} // namespace keratin
