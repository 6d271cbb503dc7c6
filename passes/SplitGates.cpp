//===- SplitGates.cpp - gates of a recurrent step as an axis --------------===//
#include "passes/SplitGates.h"

#include "passes/OpKinds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin {

static bool isParallel(linalg::GenericOp op) {
  return op && op.getNumReductionLoops() == 0 && op->getNumResults() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity();
}

/// The constant of the last axis but one where `map` is the loops in order with
/// it in between.
static std::optional<int64_t> gateOf(AffineMap map) {
  unsigned loops = map.getNumDims();
  if (loops == 0 || map.getNumResults() != loops + 1)
    return std::nullopt;
  auto gate = dyn_cast<AffineConstantExpr>(map.getResult(loops - 1));
  for (unsigned dim = 0; dim < loops; ++dim)
    if (map.getResult(dim + (dim + 1 == loops)) !=
        getAffineDimExpr(dim, map.getContext()))
      return std::nullopt;
  return gate ? std::optional(gate.getValue()) : std::nullopt;
}

bool readsGates(linalg::GenericOp consumer, Value value) {
  bool reads = false;
  for (OpOperand &operand : consumer->getOpOperands()) {
    if (operand.get() != value)
      continue;
    reads = true;
    if (!consumer.isDpsInput(&operand) ||
        !gateOf(consumer.getMatchingIndexingMap(&operand)))
      return false;
  }
  return reads && isParallel(consumer);
}

namespace {

/// Reads of a value that are parts of its columns.
struct Gates {
  int64_t count = 0, units = 0;
  /// Each with the gate it reads.
  SmallVector<std::pair<OpOperand *, int64_t>> reads;
  SmallVector<tensor::ExpandShapeOp> views;
};

class Splitter {
public:
  explicit Splitter(linalg::GenericOp product)
      : product(product), b(product.getContext()) {}

  void run();

private:
  bool isProductOfWeights();
  bool mayBeTransformed();
  bool findGates(Value value);
  bool addRead(OpOperand &use, int64_t shift);
  bool canSplit(linalg::GenericOp addition);
  Value split(linalg::GenericOp op, unsigned columns, const IRMapping &known);
  Value expand(Value value, unsigned axis);
  SmallVector<int64_t> splitShape(ArrayRef<int64_t> shape, unsigned axis);

  linalg::GenericOp product;
  OpBuilder b;
  Gates gates;
};

} // namespace

/// Whether columns are the last loop of the output and an axis of a constant,
/// and of nothing else.
bool Splitter::isProductOfWeights() {
  if (product->getNumResults() != 1 || product.getNumDpsInputs() != 2 ||
      product.getNumReductionLoops() == 0 || product.hasIndexSemantics() ||
      !product.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return false;
  unsigned loops = product.getNumLoops(), rows = product.getNumParallelLoops();
  AffineMap output =
      product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  if (rows == 0 ||
      output != AffineMap::getMultiDimIdentityMap(loops, product.getContext())
                    .getMajorSubMap(rows))
    return false;
  OpOperand *weights = product.getDpsInputOperand(1);
  AffineMap map = product.getMatchingIndexingMap(weights);
  auto constant = weights->get().getDefiningOp<arith::ConstantOp>();
  return constant && isa<DenseResourceElementsAttr>(constant.getValue()) &&
         map.isProjectedPermutation() && map.isFunctionOfDim(rows - 1) &&
         !product.getMatchingIndexingMap(product.getDpsInputOperand(0))
              .isFunctionOfDim(rows - 1);
}

/// Whether it is a sum over windows that overlap, of channels enough to be
/// computed by tiles of the image: that gains more than gates which are read in
/// registers, and has none.
bool Splitter::mayBeTransformed() {
  SmallVector<int64_t> extents = product.getStaticLoopRanges();
  unsigned rows = product.getNumParallelLoops();
  AffineMap image =
      product.getMatchingIndexingMap(product.getDpsInputOperand(0));
  llvm::SmallDenseSet<unsigned> taps;
  for (AffineExpr expr : image.getResults()) {
    auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!sum || sum.getKind() != AffineExprKind::Add)
      continue;
    // Taps are neighbours, and so are windows.
    auto left = dyn_cast<AffineDimExpr>(sum.getLHS());
    auto right = dyn_cast<AffineDimExpr>(sum.getRHS());
    if (!left || !right)
      continue;
    for (unsigned loop : {left.getPosition(), right.getPosition()})
      if (loop >= rows && extents[loop] > 1)
        taps.insert(loop);
  }
  int64_t channels = 1;
  for (unsigned loop = rows; loop < product.getNumLoops(); ++loop)
    if (!taps.contains(loop) && image.isFunctionOfDim(loop))
      channels = llvm::SaturatingMultiply<uint64_t>(channels, extents[loop]);
  return !taps.empty() && channels >= fewestChannelsOfTiles;
}

/// Notes that `use` reads the columns from `shift` on.
bool Splitter::addRead(OpOperand &use, int64_t shift) {
  auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!isParallel(reader) || !reader.isDpsInput(&use) || shift < 0)
    return false;
  SmallVector<int64_t> extents = reader.getStaticLoopRanges();
  if (extents.empty() || extents.back() <= 1 ||
      (gates.units != 0 && gates.units != extents.back()))
    return false;
  gates.units = extents.back();
  if (shift % gates.units != 0)
    return false;
  gates.reads.emplace_back(&use, shift / gates.units);
  return true;
}

bool Splitter::findGates(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = type.getRank(), columns = type.getShape().back();
  gates = Gates();
  for (OpOperand &use : value.getUses()) {
    if (auto view = dyn_cast<tensor::ExpandShapeOp>(use.getOwner())) {
      RankedTensorType wide = view.getResultType();
      if (wide.getRank() != rank + 1 ||
          view.getReassociationIndices().back().size() != 2 ||
          ShapedType::isDynamic(wide.getShape().back()))
        return false;
      gates.views.push_back(view);
      for (OpOperand &read : view->getUses()) {
        auto reader = dyn_cast<linalg::GenericOp>(read.getOwner());
        std::optional<int64_t> gate =
            reader ? gateOf(reader.getMatchingIndexingMap(&read))
                   : std::nullopt;
        if (!gate || !addRead(read, *gate * wide.getShape().back()))
          return false;
      }
      continue;
    }
    auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!reader || reader.getNumLoops() != rank)
      return false;
    AffineMap map = reader.getMatchingIndexingMap(&use);
    AffineExpr last = getAffineDimExpr(rank - 1, b.getContext());
    AffineExpr shift = map.getNumResults() == rank
                           ? map.getResult(rank - 1) - last
                           : AffineExpr();
    auto known = dyn_cast_or_null<AffineConstantExpr>(shift);
    if (!known || map.getMajorSubMap(rank - 1) !=
                      AffineMap::getMultiDimIdentityMap(rank, b.getContext())
                          .getMajorSubMap(rank - 1))
      return false;
    if (!addRead(use, known.getValue()))
      return false;
  }
  if (gates.units == 0 || columns % gates.units != 0)
    return false;
  gates.count = columns / gates.units;
  constexpr int64_t mostGates = 4; // whose sums registers hold
  return gates.count > 1 && gates.count <= mostGates &&
         llvm::all_of(gates.reads, [&](const auto &read) {
           return read.second < gates.count;
         });
}

/// Whether all that `addition` reads has its columns last, or none.
bool Splitter::canSplit(linalg::GenericOp addition) {
  if (!isParallel(addition) || addition.hasIndexSemantics())
    return false;
  unsigned last = addition.getNumLoops() - 1;
  return llvm::all_of(addition.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = addition.getMatchingIndexingMap(input);
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    if (!type || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
    return !map.isFunctionOfDim(last) ||
           (map.getResult(map.getNumResults() - 1) ==
                getAffineDimExpr(last, b.getContext()) &&
            type.getNumDynamicDims() <= 1 &&
            (type.hasStaticShape() || type.isDynamicDim(0)));
  });
}

SmallVector<int64_t> Splitter::splitShape(ArrayRef<int64_t> shape,
                                          unsigned axis) {
  SmallVector<int64_t> wide(shape);
  wide[axis] = gates.units;
  wide.insert(wide.begin() + axis, gates.count);
  return wide;
}

/// `value` with two axes for its axis `axis`.
Value Splitter::expand(Value value, unsigned axis) {
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType wide = type.clone(splitShape(type.getShape(), axis));
  Location loc = value.getLoc();
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    if (auto known = dyn_cast<DenseResourceElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(
          b, loc, wide,
          DenseResourceElementsAttr::get(wide, known.getRawHandle()));
    if (auto known = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(b, loc, wide, known.reshape(wide));
  }
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t first = dim + (dim > axis);
    groups.push_back({first});
    if (dim == axis)
      groups.back().push_back(first + 1);
  }
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(
      b.getContext(), SmallVector<int64_t>(wide.getShape()));
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (wide.isDynamicDim(dim))
      size = tensor::DimOp::create(b, loc, value, dim).getResult();
  return tensor::ExpandShapeOp::create(b, loc, wide, value, groups, sizes);
}

/// `op` with two loops for its parallel loop `columns`; `known` are its inputs
/// that are split already.
Value Splitter::split(linalg::GenericOp op, unsigned columns,
                      const IRMapping &known) {
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  unsigned loops = op.getNumLoops();
  auto widen = [&](AffineMap map,
                   AffineMap &result) -> std::optional<unsigned> {
    std::optional<unsigned> axis;
    SmallVector<AffineExpr> exprs;
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (dim && dim.getPosition() == columns) {
        axis = position;
        exprs.push_back(getAffineDimExpr(columns, context));
        exprs.push_back(getAffineDimExpr(columns + 1, context));
      } else {
        exprs.push_back(expr.shiftDims(loops, 1, columns + 1));
      }
    }
    result = AffineMap::get(loops + 1, 0, exprs, context);
    return axis;
  };
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<unsigned> axis =
        widen(op.getMatchingIndexingMap(input), maps.emplace_back());
    Value value = input->get();
    inputs.push_back(known.contains(value) ? known.lookup(value)
                     : axis                ? expand(value, *axis)
                                           : value);
  }
  OpOperand *init = op.getDpsInitOperand(0);
  std::optional<unsigned> axis =
      widen(op.getMatchingIndexingMap(init), maps.emplace_back());
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  RankedTensorType wide = type.clone(splitShape(type.getShape(), *axis));
  Value start = init->get();
  auto fill = start.getDefiningOp<linalg::FillOp>();
  auto empty =
      (fill ? fill.getOutputs()[0] : start).getDefiningOp<tensor::EmptyOp>();
  start = tensor::EmptyOp::create(b, loc, wide, empty.getDynamicSizes());
  if (fill)
    start =
        linalg::FillOp::create(b, loc, fill.getInputs()[0], start).getResult(0);
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  kinds.insert(kinds.begin() + columns, utils::IteratorType::parallel);
  auto result =
      linalg::GenericOp::create(b, loc, wide, inputs, start, maps, kinds);
  IRMapping mapping;
  op.getRegion().cloneInto(&result.getRegion(), mapping);
  return result.getResult(0);
}

static bool startsUnset(linalg::GenericOp op) {
  Value init = op.getDpsInits()[0];
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs()[0];
  return init.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

void Splitter::run() {
  if (!isProductOfWeights() || mayBeTransformed() || !startsUnset(product))
    return;
  Value sums = product.getResult(0);
  linalg::GenericOp addition;
  if (sums.hasOneUse()) {
    addition = dyn_cast<linalg::GenericOp>(*sums.user_begin());
    if (addition && (!canSplit(addition) || !startsUnset(addition) ||
                     !findGates(addition.getResult(0))))
      return;
  }
  if (!addition && !findGates(sums))
    return;

  unsigned columns = product.getNumParallelLoops() - 1;
  Value value = split(product, columns, {});
  if (addition) {
    IRMapping known;
    known.map(sums, value);
    value = split(addition, addition.getNumLoops() - 1, known);
  }
  for (auto [read, gate] : gates.reads) {
    auto reader = cast<linalg::GenericOp>(read->getOwner());
    unsigned loops = reader.getNumLoops();
    SmallVector<AffineExpr> exprs;
    for (unsigned dim = 0; dim < loops; ++dim) {
      if (dim + 1 == loops)
        exprs.push_back(getAffineConstantExpr(gate, b.getContext()));
      exprs.push_back(getAffineDimExpr(dim, b.getContext()));
    }
    SmallVector<AffineMap> maps = reader.getIndexingMapsArray();
    maps[read->getOperandNumber()] =
        AffineMap::get(loops, 0, exprs, b.getContext());
    reader.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
    read->set(value);
  }
  for (tensor::ExpandShapeOp view : gates.views)
    view.erase();
  if (addition)
    addition.erase();
  product.erase();
}

void splitGates(func::FuncOp function) {
  SmallVector<linalg::GenericOp> products;
  // What is split takes an addition behind it along, which is no product.
  function.walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() != 0)
      products.push_back(op);
  });
  for (linalg::GenericOp op : products)
    Splitter(op).run();
}

} // namespace keratin
