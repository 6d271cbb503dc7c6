//===- PlainLoops.cpp - kernels as scalar loops ---------------------------===//
//
// The reference. A result is computed element by element: a loop for each of
// its dimensions, inside them the loops of the reduction. An operand that the
// kernel computes itself is computed again wherever it is read, so nothing
// needs memory of its own.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/PlainLoops.h"

#include "codegen/cpu/CpuPasses.h"
#include "codegen/cpu/KernelCalls.h"
#include "codegen/cpu/KernelForm.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EMITPLAINLOOPS
#include "codegen/cpu/CpuPasses.h.inc"

namespace {

class PlainEmitter {
public:
  explicit PlainEmitter(Kernel &kernel)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()) {}

  LogicalResult emitAll();

private:
  using Body = llvm::function_ref<void(ValueRange ivs)>;

  void emitGeneric(linalg::GenericOp op);
  LogicalResult emitInMemory(linalg::GenericOp op);
  void emitPad(tensor::PadOp op, Value destination);
  void emitConcat(tensor::ConcatOp op, Value destination);
  void emitCopy(Value result, Value destination);

  Value read(Value tensor, ValueRange position);
  Value readPad(tensor::PadOp op, ValueRange position);
  Value readConcat(ValueRange pieces, int64_t axis, ValueRange position);
  SmallVector<Value> evaluate(linalg::GenericOp op, MutableArrayRef<Value> ivs);
  SmallVector<Value> reduce(linalg::GenericOp op, ArrayRef<unsigned> loops,
                            MutableArrayRef<Value> ivs, ValueRange sums);
  SmallVector<Value> inlineBody(linalg::GenericOp op, ArrayRef<Value> ivs,
                                ValueRange sums);
  Value padValue(tensor::PadOp op, ValueRange position);

  SmallVector<Value> apply(AffineMap map, ArrayRef<Value> ivs);
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(b, loc, lhs, rhs);
  }
  Value size(OpFoldResult size) {
    if (std::optional<int64_t> constant = getConstantIntValue(size))
      return kernel.index(*constant);
    return kernel.scalar(cast<Value>(size));
  }
  SmallVector<Value> shape(Value tensor);
  void loops(ValueRange extents, Body body);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
};

} // namespace

void PlainEmitter::loops(ValueRange extents, Body body) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> ivs;
  for (Value extent : extents) {
    auto loop =
        scf::ForOp::create(b, loc, kernel.index(0), extent, kernel.index(1));
    ivs.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  body(ivs);
}

SmallVector<Value> PlainEmitter::shape(Value tensor) {
  SmallVector<Value> extents;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    extents.push_back(kernel.extent(tensor, dim));
  return extents;
}

SmallVector<Value> PlainEmitter::apply(AffineMap map, ArrayRef<Value> ivs) {
  SmallVector<Value> position;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      position.push_back(ivs[dim.getPosition()]);
    else if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      position.push_back(kernel.index(constant.getValue()));
    else
      position.push_back(affine::expandAffineExpr(b, loc, expr, ivs, {}));
  }
  return position;
}

Value PlainEmitter::read(Value tensor, ValueRange position) {
  if (Value memref = kernel.memrefOf(tensor))
    return memref::LoadOp::create(b, loc, memref, position);
  Operation *op = tensor.getDefiningOp();
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return kernel.scalar(fill.getInputs()[0]);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return readPad(pad, position);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return readConcat(concat.getInputs(), concat.getDim(), position);
  if (isa<tensor::EmptyOp>(op)) // its values mean nothing, but they exist
    return arith::ConstantOp::create(
        b, loc, b.getZeroAttr(getElementTypeOrSelf(tensor)));

  auto generic = cast<linalg::GenericOp>(op);
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  SmallVector<Value> ivs(generic.getNumLoops());
  AffineMap map =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(number));
  for (auto [expr, value] : llvm::zip_equal(map.getResults(), position))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      ivs[dim.getPosition()] = value;
  return evaluate(generic, ivs)[number];
}

/// Values of all results of `op` at the parallel `ivs`.
SmallVector<Value> PlainEmitter::evaluate(linalg::GenericOp op,
                                          MutableArrayRef<Value> ivs) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  SmallVector<Value> sums;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (!op.getMatchingBlockArgument(&init).use_empty())
      sums.push_back(
          read(init.get(), apply(op.getMatchingIndexingMap(&init), ivs)));
    else // overwritten before it is read
      sums.push_back(arith::ConstantOp::create(
          b, loc, b.getZeroAttr(getElementTypeOrSelf(init.get()))));
  }
  return reduce(op, reductions, ivs, sums);
}

SmallVector<Value> PlainEmitter::reduce(linalg::GenericOp op,
                                        ArrayRef<unsigned> loops,
                                        MutableArrayRef<Value> ivs,
                                        ValueRange sums) {
  if (loops.empty())
    return inlineBody(op, ivs, sums);
  return emitLoop(b, loc, kernel.index(0), kernel.loopExtent(op, loops[0]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    ivs[loops[0]] = iv;
                    return reduce(op, loops.drop_front(), ivs, inner);
                  });
}

SmallVector<Value> PlainEmitter::inlineBody(linalg::GenericOp op,
                                            ArrayRef<Value> ivs,
                                            ValueRange sums) {
  IRMapping values;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (argument.use_empty())
      continue;
    Value value =
        isa<TensorType>(input->get().getType())
            ? read(input->get(), apply(op.getMatchingIndexingMap(input), ivs))
            : kernel.scalar(input->get());
    values.map(argument, value);
  }
  for (auto [argument, sum] : llvm::zip_equal(op.getRegionOutputArgs(), sums))
    values.map(argument, sum);

  for (Operation &inner : op.getBody()->without_terminator()) {
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() == op->getBlock() &&
          !isa<TensorType>(operand.getType()))
        values.map(operand, kernel.scalar(operand));
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      values.map(index.getResult(), ivs[index.getDim()]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> position;
      for (Value at : extract.getIndices())
        position.push_back(values.lookup(at));
      values.map(extract.getResult(), read(extract.getTensor(), position));
    } else {
      b.clone(inner, values);
    }
  }
  SmallVector<Value> results;
  for (Value yielded : op.getBody()->getTerminator()->getOperands())
    results.push_back(yielded.getParentBlock() == op->getBlock()
                          ? kernel.scalar(yielded)
                          : values.lookup(yielded));
  return results;
}

/// The value of the border of `op` at `position`.
Value PlainEmitter::padValue(tensor::PadOp op, ValueRange position) {
  IRMapping values;
  Block *body = op.getBody();
  values.map(body->getArguments(), position);
  Value yielded = body->getTerminator()->getOperand(0);
  for (Operation &inner : body->without_terminator()) {
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != body)
        values.map(operand, kernel.scalar(operand));
    b.clone(inner, values);
  }
  return yielded.getParentBlock() == body ? values.lookup(yielded)
                                          : kernel.scalar(yielded);
}

/// (position[d] - low[d] < extent[d] for all d) ? x[position - low] : border.
/// Compared unsigned, so that a negative difference is outside as well.
Value PlainEmitter::readPad(tensor::PadOp op, ValueRange position) {
  Value inside = arith::ConstantIntOp::create(b, loc, 1, 1);
  SmallVector<Value> shifted;
  SmallVector<Value> extents = shape(op.getSource());
  for (auto [at, low, extent] :
       llvm::zip_equal(position, op.getMixedLowPad(), extents)) {
    shifted.push_back(arith::SubIOp::create(b, loc, at, size(low)));
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       shifted.back(), extent);
    inside = arith::AndIOp::create(b, loc, inside, fits);
  }
  auto branch = scf::IfOp::create(b, loc, getElementTypeOrSelf(op.getType()),
                                  inside, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, read(op.getSource(), shifted));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, padValue(op, position));
  return branch.getResult(0);
}

/// The first of `pieces` along `axis` that `position` falls into.
Value PlainEmitter::readConcat(ValueRange pieces, int64_t axis,
                               ValueRange position) {
  if (pieces.size() == 1)
    return read(pieces[0], position);
  Value extent = kernel.extent(pieces[0], axis);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       position[axis], extent);
  auto branch = scf::IfOp::create(b, loc, getElementTypeOrSelf(pieces[0]),
                                  inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, read(pieces[0], position));
  b.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> rest(position);
  rest[axis] = arith::SubIOp::create(b, loc, position[axis], extent);
  scf::YieldOp::create(b, loc, readConcat(pieces.drop_front(), axis, rest));
  return branch.getResult(0);
}

/// All elements of the destination are the border, then the middle is written.
void PlainEmitter::emitPad(tensor::PadOp op, Value destination) {
  loops(shape(op.getResult()), [&](ValueRange ivs) {
    memref::StoreOp::create(b, loc, padValue(op, ivs), destination, ivs);
  });
  loops(shape(op.getSource()), [&](ValueRange ivs) {
    SmallVector<Value> shifted;
    for (auto [iv, low] : llvm::zip_equal(ivs, op.getMixedLowPad()))
      shifted.push_back(isZeroInteger(low) ? iv : add(iv, size(low)));
    memref::StoreOp::create(b, loc, read(op.getSource(), ivs), destination,
                            shifted);
  });
}

void PlainEmitter::emitConcat(tensor::ConcatOp op, Value destination) {
  Value offset = kernel.index(0);
  for (Value piece : op.getInputs()) {
    loops(shape(piece), [&](ValueRange ivs) {
      SmallVector<Value> shifted(ivs);
      shifted[op.getDim()] = add(ivs[op.getDim()], offset);
      memref::StoreOp::create(b, loc, read(piece, ivs), destination, shifted);
    });
    offset = add(offset, kernel.extent(piece, op.getDim()));
  }
}

/// Computes all results of `op` that the kernel returns in one nest.
void PlainEmitter::emitGeneric(linalg::GenericOp op) {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  SmallVector<Value> extents;
  for (unsigned loop : parallel)
    extents.push_back(kernel.loopExtent(op, loop));
  loops(extents, [&](ValueRange inner) {
    SmallVector<Value> ivs(op.getNumLoops());
    for (auto [loop, iv] : llvm::zip_equal(parallel, inner))
      ivs[loop] = iv;
    SmallVector<Value> values = evaluate(op, ivs);
    for (auto [number, returned] : llvm::enumerate(kernel.results())) {
      if (returned.getDefiningOp() != op)
        continue;
      unsigned result = cast<OpResult>(returned).getResultNumber();
      AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
      memref::StoreOp::create(b, loc, values[result],
                              kernel.destination(number), apply(map, ivs));
    }
  });
}

/// For output maps that skip elements or write them more than once: the
/// initial values go to the destination, which then holds the accumulators.
LogicalResult PlainEmitter::emitInMemory(linalg::GenericOp op) {
  SmallVector<Value> places(op.getNumDpsInits());
  SmallVector<std::pair<Value, Value>> again; // results that are returned twice
  for (auto [number, returned] : llvm::enumerate(kernel.results()))
    if (returned.getDefiningOp() == op) {
      Value destination = kernel.destination(number);
      Value &place = places[cast<OpResult>(returned).getResultNumber()];
      if (place)
        again.emplace_back(place, destination);
      else
        place = destination;
    }
  for (auto [place, init] : llvm::zip_equal(places, op.getDpsInits())) {
    if (!place)
      return op.emitError("each result must be returned by the kernel, for its "
                          "map tells no loops");
    if (kernel.memrefOf(init) != place &&
        !init.getDefiningOp<tensor::EmptyOp>())
      loops(shape(init), [&, place = place, init = init](ValueRange ivs) {
        memref::StoreOp::create(b, loc, read(init, ivs), place, ivs);
      });
  }
  SmallVector<Value> extents;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    extents.push_back(kernel.loopExtent(op, loop));
  loops(extents, [&](ValueRange inner) {
    SmallVector<Value> ivs(inner), sums;
    SmallVector<SmallVector<Value>> positions;
    for (auto [place, init] :
         llvm::zip_equal(places, op.getDpsInitsMutable())) {
      positions.push_back(apply(op.getMatchingIndexingMap(&init), ivs));
      sums.push_back(memref::LoadOp::create(b, loc, place, positions.back()));
    }
    SmallVector<Value> values = inlineBody(op, ivs, sums);
    for (auto [value, place, position] :
         llvm::zip_equal(values, places, positions))
      memref::StoreOp::create(b, loc, value, place, position);
  });
  for (auto [place, destination] : again)
    memref::CopyOp::create(b, loc, place, destination);
  return success();
}

void PlainEmitter::emitCopy(Value result, Value destination) {
  loops(shape(result), [&](ValueRange ivs) {
    memref::StoreOp::create(b, loc, read(result, ivs), destination, ivs);
  });
}

LogicalResult PlainEmitter::emitAll() {
  for (auto op : kernel.from().getOps<linalg::GenericOp>())
    if (!tellsItsLoops(op) &&
        !llvm::all_of(op->getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        }))
      return op.emitError("is read in the kernel, but its map tells no loops");
  llvm::SmallPtrSet<Operation *, 4> done;
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    Value destination = kernel.destination(number);
    Operation *op = result.getDefiningOp();
    if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op)) {
      if (!done.insert(op).second)
        continue;
      if (tellsItsLoops(generic))
        emitGeneric(generic);
      else if (failed(emitInMemory(generic)))
        return failure();
    } else if (auto pad = dyn_cast_or_null<tensor::PadOp>(op)) {
      emitPad(pad, destination);
    } else if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op)) {
      emitConcat(concat, destination);
    } else if (kernel.memrefOf(result) != destination &&
               !isa_and_nonnull<tensor::EmptyOp>(op)) {
      emitCopy(result, destination);
    }
  }
  return success();
}

LogicalResult emitPlainLoops(Kernel &kernel) {
  return PlainEmitter(kernel).emitAll();
}

namespace {
struct EmitPlainLoops : impl::EmitPlainLoopsBase<EmitPlainLoops> {
  void runOnOperation() override {
    for (func::FuncOp func : kernelsOf(getOperation())) {
      if (failed(verifyKernel(func)))
        return signalPassFailure();
      Kernel kernel(func);
      if (failed(emitPlainLoops(kernel)))
        return signalPassFailure();
      kernel.finish();
    }
    if (failed(adaptKernelCalls(getOperation())))
      return signalPassFailure();
  }
};
} // namespace

} // namespace keratin
