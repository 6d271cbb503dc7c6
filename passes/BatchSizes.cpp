//===- BatchSizes.cpp - extents as functions of the batch -----------------===//
#include "passes/BatchSizes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

std::optional<BatchSize> add(BatchSize a, BatchSize b) {
  BatchSize sum;
  if (llvm::AddOverflow(a.fixed, b.fixed, sum.fixed) ||
      llvm::AddOverflow(a.perBatch, b.perBatch, sum.perBatch))
    return std::nullopt;
  return sum;
}

std::optional<BatchSize> multiply(BatchSize a, BatchSize b) {
  if (!a.isStatic() && !b.isStatic())
    return std::nullopt;
  if (!a.isStatic())
    std::swap(a, b);
  BatchSize product;
  if (llvm::MulOverflow(a.fixed, b.fixed, product.fixed) ||
      llvm::MulOverflow(a.fixed, b.perBatch, product.perBatch))
    return std::nullopt;
  return product;
}

static std::optional<int64_t> alignTo(int64_t value, int64_t alignment) {
  int64_t padded;
  if (llvm::AddOverflow(value, alignment - 1, padded))
    return std::nullopt;
  return padded / alignment * alignment;
}

std::optional<BatchSize> alignTo(BatchSize size, int64_t alignment) {
  std::optional<int64_t> fixed = alignTo(size.fixed, alignment);
  std::optional<int64_t> perBatch = alignTo(size.perBatch, alignment);
  if (!fixed || !perBatch)
    return std::nullopt;
  return BatchSize{*fixed, *perBatch};
}

/// The operand of a call that the result `result` is written to: the last ones
/// of a call of a kernel are destinations, one a result. Null for others.
static Value destinationOf(OpResult result) {
  auto call = dyn_cast<func::CallOp>(result.getOwner());
  if (!call || call.getNumOperands() < call.getNumResults())
    return {};
  Value destination = call.getOperand(
      call.getNumOperands() - call.getNumResults() + result.getResultNumber());
  return destination.getType() == result.getType() ? destination : Value();
}

/// The tensor whose shape `value` has by construction, or `value` itself.
static Value followShape(Value value) {
  while (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
      value = style.getTiedOpOperand(result)->get();
    else if (auto cast = dyn_cast<tensor::CastOp>(op))
      value = cast.getSource();
    else if (isa<UnrealizedConversionCastOp>(op) && op->getNumOperands() == 1)
      value = op->getOperand(0); // a memref that stands for a tensor
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      value = loop.getInitArgs()[result.getResultNumber()];
    else if (Value destination = destinationOf(result))
      value = destination;
    else
      break;
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      if (OpOperand *init = loop.getTiedLoopInit(argument))
        return followShape(init->get());
  return value;
}

static std::optional<BatchSize> evaluateDim(Value tensor, int64_t axis) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || axis < 0 || axis >= type.getRank())
    return std::nullopt;
  if (!type.isDynamicDim(axis))
    return BatchSize{type.getDimSize(axis), 0};
  tensor = followShape(tensor);
  type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type)
    return std::nullopt;
  if (!type.isDynamicDim(axis))
    return BatchSize{type.getDimSize(axis), 0};

  if (isa<BlockArgument>(tensor))
    return axis == 0 ? std::optional(BatchSize{0, 1}) : std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<BatchSize>>(
             tensor.getDefiningOp())
      .Case([&](tensor::EmptyOp op) {
        return evaluateBatchSize(op.getDynamicSize(axis));
      })
      .Case([&](tensor::CollapseShapeOp op) {
        std::optional<BatchSize> count = BatchSize{1, 0};
        ReassociationIndices collapsed = op.getReassociationIndices()[axis];
        for (int64_t source : collapsed)
          if (std::optional<BatchSize> extent =
                  count ? evaluateDim(op.getSrc(), source) : std::nullopt)
            count = multiply(*count, *extent);
          else
            return std::optional<BatchSize>();
        return count;
      })
      .Case([&](tensor::ExpandShapeOp op) {
        OpFoldResult extent = op.getMixedOutputShape()[axis];
        if (auto value = dyn_cast<Value>(extent))
          return evaluateBatchSize(value);
        return std::optional(BatchSize{*getConstantIntValue(extent), 0});
      })
      .Case([&](tensor::PadOp op) -> std::optional<BatchSize> {
        std::optional<BatchSize> inner = evaluateDim(op.getSource(), axis);
        std::optional<int64_t> low =
            getConstantIntValue(op.getMixedLowPad()[axis]);
        std::optional<int64_t> high =
            getConstantIntValue(op.getMixedHighPad()[axis]);
        if (!inner || !low || !high)
          return std::nullopt;
        std::optional<BatchSize> border =
            add(BatchSize{*low, 0}, BatchSize{*high, 0});
        return border ? add(*inner, *border) : std::nullopt;
      })
      .Case([&](tensor::ConcatOp op) {
        if (static_cast<int64_t>(op.getDim()) != axis)
          return evaluateDim(op.getInputs().front(), axis);
        std::optional<BatchSize> sum = BatchSize{};
        for (Value input : op.getInputs()) {
          std::optional<BatchSize> extent = evaluateDim(input, axis);
          sum = sum && extent ? add(*sum, *extent) : std::nullopt;
        }
        return sum;
      })
      .Case([&](tensor::ExtractSliceOp op) -> std::optional<BatchSize> {
        // Rank-reducing slices drop unit extents, which are static.
        int64_t kept = -1;
        llvm::SmallBitVector dropped = op.getDroppedDims();
        for (auto [index, size] : llvm::enumerate(op.getMixedSizes())) {
          if (dropped.test(index) || ++kept != axis)
            continue;
          if (auto value = dyn_cast<Value>(size))
            return evaluateBatchSize(value);
          return BatchSize{*getConstantIntValue(size), 0};
        }
        return std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<BatchSize> evaluateBatchSize(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return BatchSize{constant.getSExtValue(), 0};
  Operation *op = index.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto evaluateBoth = [&](auto combine) -> std::optional<BatchSize> {
    std::optional<BatchSize> a = evaluateBatchSize(op->getOperand(0));
    std::optional<BatchSize> b = evaluateBatchSize(op->getOperand(1));
    return a && b ? combine(*a, *b) : std::nullopt;
  };
  auto divide = [](BatchSize a, BatchSize b) -> std::optional<BatchSize> {
    if (!b.isStatic() || b.fixed <= 0 || a.fixed % b.fixed != 0 ||
        a.perBatch % b.fixed != 0)
      return std::nullopt;
    return BatchSize{a.fixed / b.fixed, a.perBatch / b.fixed};
  };
  auto subtract = [](BatchSize a, BatchSize b) -> std::optional<BatchSize> {
    BatchSize difference;
    if (llvm::SubOverflow(a.fixed, b.fixed, difference.fixed) ||
        llvm::SubOverflow(a.perBatch, b.perBatch, difference.perBatch))
      return std::nullopt;
    return difference;
  };
  return llvm::TypeSwitch<Operation *, std::optional<BatchSize>>(op)
      .Case([&](tensor::DimOp dim) -> std::optional<BatchSize> {
        std::optional<int64_t> axis = dim.getConstantIndex();
        return axis ? evaluateDim(dim.getSource(), *axis) : std::nullopt;
      })
      .Case([&](arith::MulIOp) { return evaluateBoth(multiply); })
      .Case([&](arith::AddIOp) { return evaluateBoth(add); })
      .Case([&](arith::SubIOp) { return evaluateBoth(subtract); })
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(
          [&](Operation *) { return evaluateBoth(divide); })
      // Extents fit into the integers of shapes, which in Keras are int32.
      .Case<arith::IndexCastOp, arith::TruncIOp, arith::ExtSIOp>(
          [&](Operation *) { return evaluateBatchSize(op->getOperand(0)); })
      .Case([&](affine::AffineApplyOp apply) -> std::optional<BatchSize> {
        // Evaluated at batch 0, 1 and 2: linear if the steps agree.
        SmallVector<std::optional<BatchSize>> operands =
            llvm::map_to_vector(apply.getMapOperands(),
                                [](Value v) { return evaluateBatchSize(v); });
        int64_t at[3];
        for (int64_t batch = 0; batch < 3; ++batch) {
          SmallVector<Attribute> values;
          for (std::optional<BatchSize> size : operands) {
            std::optional<int64_t> value =
                size ? llvm::checkedMulAdd(size->perBatch, batch, size->fixed)
                     : std::nullopt;
            if (!value)
              return std::nullopt;
            values.push_back(
                IntegerAttr::get(IndexType::get(op->getContext()), *value));
          }
          SmallVector<Attribute> folded;
          if (failed(apply.getAffineMap().constantFold(values, folded)))
            return std::nullopt;
          at[batch] = cast<IntegerAttr>(folded[0]).getInt();
        }
        std::optional<BatchSize> step = subtract({at[1], 0}, {at[0], 0});
        if (!step || step != subtract({at[2], 0}, {at[1], 0}))
          return std::nullopt;
        return BatchSize{at[0], step->fixed};
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<SmallVector<BatchSize>> evaluateShape(Value tensor) {
  SmallVector<BatchSize> shape;
  for (int64_t axis = 0,
               rank = cast<RankedTensorType>(tensor.getType()).getRank();
       axis < rank; ++axis) {
    std::optional<BatchSize> extent = evaluateDim(tensor, axis);
    if (!extent)
      return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

std::optional<BatchSize> evaluateCount(ArrayRef<BatchSize> shape) {
  std::optional<BatchSize> count = BatchSize{1, 0};
  for (BatchSize extent : shape)
    count = count ? multiply(*count, extent) : std::nullopt;
  return count;
}

} // namespace keratin
