//===- SharedRows.cpp - loops whose rows threads share --------------------===//
//
// What has rows is known by the axis along which they are: of the states of a
// loop that is axis 0, and kernels are followed op by op to what they make. All
// else in a turn is made of what no turn writes, and is the same for all.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/SharedRows.h"

#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/DotTiles.h"
#include "codegen/cpu/KernelCalls.h"
#include "codegen/cpu/KernelForm.h"
#include "passes/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin {

namespace {

/// Along which axis values have the rows.
class Rows {
public:
  explicit Rows(int64_t count) : count(count) {}

  bool areIn(Value value) const { return axes.contains(value); }
  /// False where the axis has another extent.
  bool set(Value value, unsigned axis);
  /// Sets what `op` makes of rows; false where those of one row do not follow
  /// from the same row, or where that is not known.
  bool follow(Operation *op);
  unsigned axisOf(Value value) const { return axes.lookup(value); }

private:
  bool followGeneric(linalg::GenericOp op);
  bool followView(Operation *op, ArrayRef<ReassociationIndices> groups,
                  bool expands);
  bool followConcat(tensor::ConcatOp op);
  bool followPad(tensor::PadOp op);

  int64_t count;
  llvm::DenseMap<Value, unsigned> axes;
};

/// Whether threads can share the rows of a loop, and its calls.
class RowLoop {
public:
  RowLoop(scf::ForOp loop, SymbolTable &symbols)
      : loop(loop), symbols(symbols) {}

  bool matches();
  int64_t numRows() const { return rows; }
  int64_t weightBytes() const { return bytesOfWeights; }
  ArrayRef<func::CallOp> kernelCalls() const { return calls; }

private:
  bool findStates();
  bool visit(Operation &op, Rows &values);
  bool visitCall(func::CallOp call, Rows &values);
  bool visitInsert(tensor::InsertSliceOp insert, Rows &values);
  bool isStack(Value value) const { return stacks.contains(value); }

  scf::ForOp loop;
  SymbolTable &symbols;
  int64_t rows = 0, bytesOfWeights = 0;
  SmallVector<func::CallOp> calls;
  /// What steps write their parts of, and nobody reads: which argument of the
  /// loop each of its values is of, and places in it.
  llvm::DenseMap<Value, Value> stacks;
  llvm::DenseSet<Value> slots;
};

} // namespace

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

bool Rows::set(Value value, unsigned axis) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || axis >= type.getRank() || type.getDimSize(axis) != count)
    return false;
  auto [known, isNew] = axes.try_emplace(value, axis);
  return isNew || known->second == axis;
}

/// One parallel loop goes along all rows that are read and written.
bool Rows::followGeneric(linalg::GenericOp op) {
  std::optional<unsigned> loop;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!areIn(operand.get()))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(
        op.getMatchingIndexingMap(&operand).getResult(axisOf(operand.get())));
    if (!dim || (loop && *loop != dim.getPosition()))
      return false;
    loop = dim.getPosition();
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  if (llvm::any_of(captured, [&](Value value) { return areIn(value); }))
    return false; // which row an element asks for is not known
  if (!loop)
    return true;
  AffineExpr row = getAffineDimExpr(*loop, op.getContext());
  for (OpResult result : op->getResults()) {
    ArrayRef<AffineExpr> place =
        op.getIndexingMapMatchingResult(result).getResults();
    const auto *axis = llvm::find(place, row);
    if (axis == place.end() || !set(result, axis - place.begin()))
      return false;
  }
  return true;
}

/// Of the axes of a group the rows are the only ones with an extent.
bool Rows::followView(Operation *op, ArrayRef<ReassociationIndices> groups,
                      bool expands) {
  Value from = op->getOperand(0), to = op->getResult(0);
  ArrayRef<int64_t> wide =
      cast<RankedTensorType>((expands ? to : from).getType()).getShape();
  unsigned axis = axisOf(from);
  for (auto [number, group] : llvm::enumerate(groups)) {
    if (expands ? number != axis : !llvm::is_contained(group, int64_t(axis)))
      continue;
    const auto *rows = llvm::find_if(
        group, [&](int64_t inner) { return wide[inner] == count; });
    if (rows == group.end() || llvm::any_of(group, [&](int64_t inner) {
          return inner != *rows && wide[inner] != 1;
        }))
      return false;
    return set(to, expands ? unsigned(*rows) : unsigned(number));
  }
  return false;
}

bool Rows::followConcat(tensor::ConcatOp op) {
  std::optional<unsigned> axis;
  for (Value piece : op.getInputs())
    if (areIn(piece)) {
      if (axisOf(piece) == op.getDim() || (axis && *axis != axisOf(piece)))
        return false;
      axis = axisOf(piece);
    }
  return !axis || set(op.getResult(), *axis);
}

bool Rows::followPad(tensor::PadOp op) {
  Value source = op.getSource();
  if (!areIn(source))
    return true;
  unsigned axis = axisOf(source);
  return isZeroInteger(op.getMixedLowPad()[axis]) &&
         isZeroInteger(op.getMixedHighPad()[axis]) &&
         op.getConstantPaddingValue() && set(op.getResult(), axis);
}

bool Rows::follow(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return followGeneric(generic);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return followConcat(concat);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return followPad(pad);
  if (llvm::none_of(op->getOperands(),
                    [&](Value operand) { return areIn(operand); }) ||
      isa<tensor::DimOp>(op))
    return true;
  if (auto view = dyn_cast<tensor::ExpandShapeOp>(op))
    return followView(op, view.getReassociationIndices(), /*expands=*/true);
  if (auto view = dyn_cast<tensor::CollapseShapeOp>(op))
    return followView(op, view.getReassociationIndices(), /*expands=*/false);
  return false;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Tells states, which have rows, from what steps only write parts of.
bool RowLoop::findStates() {
  for (BlockArgument argument : loop.getRegionIterArgs()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() || type.getRank() == 0)
      return false;
    bool isWritten = llvm::any_of(argument.getUses(), [](OpOperand &use) {
      auto insert = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
      return insert && insert.getDest() == use.get();
    });
    if (isWritten) {
      stacks[argument] = argument;
      continue;
    }
    if (rows != 0 && type.getDimSize(0) != rows)
      return false;
    rows = type.getDimSize(0);
  }
  return rows != 0;
}

/// A kernel: each row of its results follows from the same row of what has
/// rows.
bool RowLoop::visitCall(func::CallOp call, Rows &values) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || !kernel->hasAttr(kernelAttr) || kernel.isExternal() ||
      !kernel.getBody().hasOneBlock() ||
      kernel.getNumResults() != call.getNumResults())
    return false;
  Rows inside(rows);
  unsigned first = call.getNumOperands() - call.getNumResults();
  for (auto [number, operand, argument] :
       llvm::enumerate(call.getOperands(), kernel.getArguments())) {
    if (number >= first) {
      if (!operand.getDefiningOp<tensor::EmptyOp>() && !slots.contains(operand))
        return false;
      continue;
    }
    if (isStack(operand) || slots.contains(operand))
      return false;
    if (values.areIn(operand) && !inside.set(argument, values.axisOf(operand)))
      return false;
    // Weights are all read in each turn, rows of a table are not.
    bool isFactor = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      auto generic = dyn_cast<linalg::GenericOp>(user);
      return generic && llvm::is_contained(generic.getInputs(), argument);
    });
    if (operand.getDefiningOp<arith::ConstantOp>() && isFactor)
      bytesOfWeights =
          llvm::SaturatingAdd<uint64_t>(bytesOfWeights, bytesOf(operand));
  }
  for (Operation &op : kernel.front().without_terminator())
    if (!inside.follow(&op))
      return false;
  for (auto [made, result] : llvm::zip_equal(
           kernel.front().getTerminator()->getOperands(), call.getResults()))
    if (!inside.set(made, 0) || !values.set(result, 0))
      return false;
  calls.push_back(call);
  return true;
}

/// Of rows that go to a stack each has a place of its own.
bool RowLoop::visitInsert(tensor::InsertSliceOp insert, Rows &values) {
  if (!isStack(insert.getDest()) || !values.areIn(insert.getSource()))
    return false;
  Value argument = stacks.lookup(insert.getDest());
  stacks[insert.getResult()] = argument;
  return true;
}

bool RowLoop::visit(Operation &op, Rows &values) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call, values);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return visitInsert(insert, values);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (isStack(slice.getSource()))
      slots.insert(slice.getResult());
    return !values.areIn(slice.getSource()) &&
           !slots.contains(slice.getSource());
  }
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return !isStack(op.getOperand(0)) && !slots.contains(op.getOperand(0)) &&
           values.follow(&op);
  if (isa<tensor::EmptyOp, tensor::DimOp>(op))
    return true;
  return isa<arith::ArithDialect>(op.getDialect()) &&
         llvm::none_of(op.getOperandTypes(), llvm::IsaPred<TensorType>);
}

bool RowLoop::matches() {
  if (loop->hasAttr("ktn.bands") || !isa<func::FuncOp>(loop->getParentOp()) ||
      !loop.getStaticTripCount() || !findStates())
    return false;
  Rows values(rows);
  for (BlockArgument argument : loop.getRegionIterArgs())
    if (!isStack(argument) && !values.set(argument, 0))
      return false;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!visit(op, values))
      return false;
  return !calls.empty() &&
         llvm::all_of(
             llvm::zip_equal(loop.getBody()->getTerminator()->getOperands(),
                             loop.getRegionIterArgs()),
             [&](auto pair) {
               auto [next, argument] = pair;
               return isStack(argument)
                          ? stacks.lookup(next) == argument
                          : values.areIn(next) && values.axisOf(next) == 0;
             });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// How the rows of a loop are shared: in so many parts of some whole units.
struct Shares {
  int64_t parts = 0, unit = 0;
};

/// Emits the kernels of the loop once more, for shares of its rows; none where
/// one of them cannot be shared so. Units are tiles in tile registers, if there
/// is a kernel that has such.
static llvm::MapVector<StringRef, func::FuncOp> emitShared(const RowLoop &loop,
                                                           SymbolTable &symbols,
                                                           Shares shares,
                                                           EmitKernel emit) {
  llvm::MapVector<StringRef, func::FuncOp> made;
  auto forget = [&] {
    for (auto &[name, other] : made)
      symbols.erase(other);
    made.clear();
  };
  for (func::CallOp call : loop.kernelCalls()) {
    if (made.contains(call.getCallee()))
      continue;
    auto source = symbols.lookup<func::FuncOp>(call.getCallee());
    func::FuncOp copy = source.clone();
    copy.setName((source.getName() + ".rows").str());
    symbols.insert(copy, Block::iterator(source));
    Kernel kernel(copy);
    kernel.allowRows(loop.numRows(), shares.parts, shares.unit);
    if (emit(kernel, source.getName()) && kernel.sharesRows()) {
      symbols.remove(copy); // the emitted one takes its place
      func::FuncOp emitted = kernel.finish();
      symbols.insert(emitted);
      made[call.getCallee()] = emitted;
      continue;
    }
    kernel.discard();
    symbols.erase(copy);
    forget();
    return made;
  }
  bool inTiles = llvm::any_of(made, [](auto &pair) {
    auto kind = pair.second->template getAttrOfType<StringAttr>(kernelAttr);
    return kind && isInTileRegisters(kind.getValue());
  });
  if (inTiles != (shares.unit == mostTileRows))
    forget();
  return made;
}

/// What ktn-plan-memory makes a row of the table of kernels of.
static DictionaryAttr describe(const RowLoop &loop, Shares shares) {
  func::CallOp first = loop.kernelCalls().front();
  Builder b(first.getContext());
  SmallVector<int64_t> flops(2), bytes(2);
  std::string name = first.getCallee().str();
  int64_t most = -1;
  for (func::CallOp call : loop.kernelCalls()) {
    auto add = [&](SmallVector<int64_t> &sum, llvm::StringRef attribute) {
      if (auto own = call->getAttrOfType<DenseI64ArrayAttr>(attribute))
        for (auto [total, number] : llvm::zip(sum, own.asArrayRef()))
          total = llvm::SaturatingAdd<uint64_t>(total, number);
    };
    int64_t before = flops[0];
    add(flops, "ktn.flops");
    add(bytes, "ktn.bytes");
    // The layer of the most work has given the loop its name.
    auto layer = dyn_cast<NameLoc>(call.getLoc());
    if (layer && flops[0] - before > most) {
      most = flops[0] - before;
      name = layer.getName().str();
    }
  }
  return b.getDictionaryAttr(
      {b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("rows", b.getI64IntegerAttr(loop.numRows())),
       b.getNamedAttr("unit", b.getI64IntegerAttr(shares.unit)),
       b.getNamedAttr("parts", b.getI64IntegerAttr(shares.parts)),
       b.getNamedAttr("flops", b.getDenseI64ArrayAttr(flops)),
       b.getNamedAttr("bytes", b.getDenseI64ArrayAttr(bytes))});
}

/// In how many parts, some whole units of rows each; 1 where that would not be
/// equal shares.
static int64_t partsOf(const RowLoop &loop, int64_t unit) {
  // Few threads have the same number of shares each, of which one is worth
  // tiles of some rows.
  constexpr int64_t fewestShares = 4, mostShares = 64, enoughRows = 32;
  int64_t rows = loop.numRows();
  int64_t shares = std::clamp(rows / enoughRows, fewestShares, mostShares);
  int64_t parts =
      std::min({partsOfAll(loop.kernelCalls()), shares, rows / unit});
  if (parts == 3)
    parts = 2; // in equal shares for two threads
  if (parts <= 1 || (unit == mostTileRows && rows % unit != 0))
    return 1;
  int64_t most = mostOfThread(rows, unit, parts, /*threads=*/2);
  return most - rows / 2 <= rows / 20 ? parts : 1;
}

llvm::SmallDenseSet<Operation *> shareRowsOfLoops(ModuleOp module,
                                                  int64_t cacheBytes,
                                                  bool hasTiles,
                                                  EmitKernel emit) {
  constexpr int64_t fewestRows = 16;
  llvm::SmallDenseSet<Operation *> emitted;
  SymbolTable symbols(module);
  SmallVector<scf::ForOp> loops;
  module.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp forOp : loops) {
    RowLoop loop(forOp, symbols);
    if (!loop.matches() || loop.numRows() < fewestRows ||
        loop.weightBytes() > cacheBytes)
      continue;
    llvm::MapVector<StringRef, func::FuncOp> made;
    for (int64_t unit : {mostTileRows, Kernel::rowsAtOnce}) {
      Shares shares = {partsOf(loop, unit), unit};
      if (shares.parts <= 1 || (unit == mostTileRows && !hasTiles))
        continue;
      made = emitShared(loop, symbols, shares, emit);
      if (made.empty())
        continue;
      forOp->setAttr(sharedRowsAttr, describe(loop, shares));
      break;
    }
    if (made.empty())
      continue;
    for (func::CallOp call : loop.kernelCalls())
      call.setCallee(made.lookup(call.getCallee()).getName());
    for (auto &[name, kernel] : made) {
      emitted.insert(kernel);
      auto old = symbols.lookup<func::FuncOp>(name);
      if (SymbolTable::symbolKnownUseEmpty(old, module))
        symbols.erase(old);
    }
  }
  return emitted;
}

} // namespace keratin
