//===- SplitWindows.cpp - windows with few outputs have more columns ------===//
//
// A convolution computes its outputs side by side, as lanes of a vector: of an
// image with three colours three lanes work. But the products of one input with
// the weights of several taps can be computed side by side as well:
//
//   y[w, t, o] = sum over c of x[w, c] * k[t, c, o]     columns (t, o)
//   z[w, o]    = sum over t of y[w + t, t, o]
//
//===----------------------------------------------------------------------===//
#include "passes/OpKinds.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_SPLITWINDOWS
#include "passes/Passes.h.inc"

namespace {

/// A way that a window goes: the input is read at `place + tap * step`.
struct Way {
  unsigned place, tap; ///< loops
  int64_t step;
  size_t axis; ///< of the input
};

/// A product over windows with known weights, `[taps.., inputs, outputs]` in
/// any order but for the outputs, which are last.
struct Window {
  linalg::GenericOp op;
  DenseResourceElementsAttr weights;
  unsigned output; ///< loop
  SmallVector<Way> ways;
};

/// `place + tap * step` of two loops, which are nowhere else in `map`.
std::optional<Way> wayOf(AffineMap map, size_t axis,
                         ArrayRef<utils::IteratorType> types) {
  auto sum = dyn_cast<AffineBinaryOpExpr>(map.getResult(unsigned(axis)));
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  std::optional<Way> way;
  auto match = [&](AffineExpr place, AffineExpr tap) {
    int64_t step = 1;
    if (auto product = dyn_cast<AffineBinaryOpExpr>(tap);
        product && product.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(product.getRHS())) {
        step = factor.getValue();
        tap = product.getLHS();
      }
    auto at = dyn_cast<AffineDimExpr>(place), by = dyn_cast<AffineDimExpr>(tap);
    if (at && by && types[at.getPosition()] == utils::IteratorType::parallel &&
        types[by.getPosition()] == utils::IteratorType::reduction)
      way = {at.getPosition(), by.getPosition(), step, axis};
  };
  match(sum.getLHS(), sum.getRHS());
  match(sum.getRHS(), sum.getLHS());
  if (!way)
    return std::nullopt;
  for (auto [other, expr] : llvm::enumerate(map.getResults()))
    if (other != axis &&
        (expr.isFunctionOfDim(way->place) || expr.isFunctionOfDim(way->tap)))
      return std::nullopt;
  return way;
}

/// Whether the resource is there, elided from no dump, with all its elements.
bool hasItsBytes(DenseResourceElementsAttr weights) {
  AsmResourceBlob *blob = weights.getRawHandle().getBlob();
  auto type = cast<RankedTensorType>(weights.getType());
  return blob && type.getElementType().isF32() &&
         int64_t(blob->getData().size() / sizeof(float)) ==
             type.getNumElements();
}

std::optional<Window> windowOf(linalg::GenericOp op) {
  if (!isProduct(op) || op->getNumResults() != 1 ||
      !op.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return std::nullopt;
  Window window = {op, {}, 0, {}};
  auto constant = op.getInputs()[1].getDefiningOp<arith::ConstantOp>();
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  auto input = cast<RankedTensorType>(op.getInputs()[0].getType());
  if (constant)
    window.weights = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
  AffineMap x = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap w = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  AffineMap y = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!window.weights || !hasItsBytes(window.weights) ||
      !type.getElementType().isF32() || type.getRank() == 0 ||
      input.getElementType() != type.getElementType() ||
      !w.isProjectedPermutation() || !y.isProjectedPermutation() ||
      w.getNumResults() == 0)
    return std::nullopt;
  auto output = dyn_cast<AffineDimExpr>(y.getResults().back());
  if (!output || w.getResults().back() != output ||
      x.isFunctionOfDim(output.getPosition()))
    return std::nullopt;
  window.output = output.getPosition();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto types = op.getIteratorTypesArray();
  for (size_t axis = 0; axis < x.getNumResults(); ++axis) {
    std::optional<Way> way = wayOf(x, axis, types);
    if (way && w.isFunctionOfDim(way->tap) && !w.isFunctionOfDim(way->place) &&
        extents[way->tap] > 1 && !ShapedType::isDynamic(extents[way->place]) &&
        !input.isDynamicDim(unsigned(axis)))
      window.ways.push_back(*way);
  }
  return window;
}

/// Operations of vectors for an output: products, and for each tap that is
/// apart what its column goes through until it is part of the sum.
double costOf(const Window &window, ArrayRef<Way> apart, int64_t lanes) {
  constexpr double ofTap = 4, ofColumn = 1;
  linalg::GenericOp op = window.op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t taps = 1;
  double around = 1;
  for (const Way &way : apart) {
    taps *= extents[way.tap];
    around *= double(extents[way.place] + (extents[way.tap] - 1) * way.step) /
              double(extents[way.place]);
  }
  double depth = 1;
  for (auto [extent, type] : llvm::zip(extents, op.getIteratorTypesArray()))
    if (type == utils::IteratorType::reduction)
      depth *= double(extent);
  int64_t columns = taps * extents[window.output];
  double products =
      depth / double(taps) * double(llvm::divideCeil(columns, lanes)) * around;
  return apart.empty()
             ? products
             : products + ofTap * double(taps) + ofColumn * double(columns);
}

/// The loop that sums along the last axis of the image, its inputs; null where
/// that axis is pixels.
std::optional<unsigned> loopOfInputs(linalg::GenericOp op) {
  auto input = dyn_cast<AffineDimExpr>(
      op.getMatchingIndexingMap(op.getDpsInputOperand(0)).getResults().back());
  if (!input || op.getIteratorTypesArray()[input.getPosition()] !=
                    utils::IteratorType::reduction)
    return std::nullopt;
  return input.getPosition();
}

/// The same where vectors go along the inputs, which takes as many of them, and
/// adds up the lanes of each (codegen/cpu/NarrowProducts.h). Null where inputs
/// fill none, or weights no cache.
std::optional<double> costAlongInputs(const Window &window, int64_t lanes) {
  constexpr double ofLoads = 1.1, ofOutput = 2.5, ofPlace = 2;
  constexpr int64_t mostBytes = 256 << 10;
  linalg::GenericOp op = window.op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  std::optional<unsigned> input = loopOfInputs(op);
  if (!input || extents[*input] < lanes)
    return std::nullopt;
  auto types = op.getIteratorTypesArray();
  int64_t outputs = extents[window.output], vectors = 1;
  for (auto [loop, extent] : llvm::enumerate(extents)) {
    if (types[loop] != utils::IteratorType::reduction)
      continue;
    vectors = llvm::SaturatingMultiply<uint64_t>(
        vectors,
        loop == *input ? llvm::divideCeil(extent, lanes) : uint64_t(extent));
  }
  if (llvm::SaturatingMultiply<uint64_t>(vectors * lanes, outputs) >
      mostBytes / sizeof(float))
    return std::nullopt;
  return double(outputs) * (double(vectors) * ofLoads + ofOutput) + ofPlace;
}

/// The same for one output of inputs that fill no vector: each tap waits for
/// the one before. Null where there are no inputs, which are then pixels.
std::optional<double> costOfOneOutput(const Window &window, int64_t lanes) {
  constexpr double ofTap = 2.7;
  linalg::GenericOp op = window.op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  std::optional<unsigned> input = loopOfInputs(op);
  if (!input || extents[*input] < 2 || extents[*input] >= lanes)
    return std::nullopt;
  auto types = op.getIteratorTypesArray();
  double taps = 1;
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (types[loop] == utils::IteratorType::reduction && loop != *input)
      taps *= double(extent);
  return ofTap * taps;
}

/// The weights with the loops `order` from the outermost on, and `taps` and the
/// outputs as one axis behind them.
Value reorder(OpBuilder &b, const Window &window, ArrayRef<unsigned> order,
              RankedTensorType type) {
  linalg::GenericOp op = window.op;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  llvm::DenseMap<unsigned, int64_t> strides;
  int64_t stride = 1;
  for (AffineExpr expr : llvm::reverse(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    strides[loop] = stride;
    stride *= extents[loop];
  }
  ArrayRef<char> from = window.weights.getRawHandle().getBlob()->getData();
  constexpr size_t size = sizeof(float);
  AsmResourceBlob blob =
      HeapAsmResourceBlob::allocate(from.size(), /*align=*/64);
  char *to = blob.getMutableData().data();
  SmallVector<int64_t> at(order.size(), 0);
  for (size_t done = 0; done < from.size(); done += size) {
    int64_t place = 0;
    for (auto [loop, index] : llvm::zip(order, at))
      place += strides[loop] * index;
    std::memcpy(to + done, from.data() + place * int64_t(size), size);
    for (size_t dim = order.size(); dim-- > 0;) {
      if (++at[dim] < extents[order[dim]])
        break;
      at[dim] = 0;
    }
  }
  auto value = DenseResourceElementsAttr::get(
      type, (window.weights.getRawHandle().getKey() + "_columns").str(),
      std::move(blob));
  return arith::ConstantOp::create(b, op.getLoc(), type, value);
}

/// The products of all inputs with the weights of the taps of `apart`.
Value emitColumns(OpBuilder &b, const Window &window, ArrayRef<Way> apart,
                  Value zero) {
  linalg::GenericOp op = window.op;
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto isApart = [&](unsigned loop) {
    return llvm::any_of(apart, [&](Way way) { return way.tap == loop; });
  };
  // The loops of the taps are gone: they are part of that of the outputs.
  SmallVector<AffineExpr> dims(op.getNumLoops());
  SmallVector<utils::IteratorType> types;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (isApart(loop)) {
      dims[loop] = getAffineConstantExpr(0, context);
      continue;
    }
    dims[loop] = getAffineDimExpr(types.size(), context);
    types.push_back(type);
  }
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getIndexingMapsArray())
    maps.push_back(map.replaceDimsAndSymbols(dims, {}, types.size(), 0));

  SmallVector<unsigned> order;
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> places;
  AffineMap w = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  for (AffineExpr expr : w.getResults().drop_back()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    if (isApart(loop))
      continue;
    order.push_back(loop);
    shape.push_back(extents[loop]);
    places.push_back(dims[loop]);
  }
  int64_t columns = extents[window.output];
  for (const Way &way : apart) {
    order.push_back(way.tap);
    columns *= extents[way.tap];
  }
  order.push_back(window.output);
  shape.push_back(columns);
  places.push_back(dims[window.output]);
  maps[1] = AffineMap::get(types.size(), 0, places, context);
  auto result = cast<RankedTensorType>(op.getResult(0).getType());
  Type element = result.getElementType();
  Value weights =
      reorder(b, window, order, RankedTensorType::get(shape, element));

  SmallVector<int64_t> of(result.getShape());
  of.back() = columns;
  AffineMap y = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (auto [extent, expr] : llvm::zip(of, y.getResults()))
    for (const Way &way : apart)
      if (expr == getAffineDimExpr(way.place, context))
        extent += (extents[way.tap] - 1) * way.step;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto unset = fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>();
  Value init = tensor::EmptyOp::create(b, op.getLoc(), of, element,
                                       unset.getDynamicSizes());
  init = linalg::FillOp::create(b, op.getLoc(), zero, init).getResult(0);
  auto product = linalg::GenericOp::create(
      b, op.getLoc(), init.getType(), ValueRange{op.getInputs()[0], weights},
      init, maps, types);
  IRMapping none;
  op.getRegion().cloneInto(&product.getRegion(), none);
  return product.getResult(0);
}

/// Replaces the window by products of the taps of `apart` and their sum.
void split(const Window &window, ArrayRef<Way> apart) {
  linalg::GenericOp op = window.op;
  OpBuilder b(op);
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  Value columns = emitColumns(b, window, apart, zero);

  // Loops: the axes of the result, then the taps.
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  unsigned rank = type.getRank(), loops = rank + apart.size();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  AffineMap y = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<AffineExpr> places;
  for (unsigned axis = 0; axis < rank; ++axis) {
    AffineExpr place = getAffineDimExpr(axis, context);
    for (auto [number, way] : llvm::enumerate(apart))
      if (y.getResult(axis) == getAffineDimExpr(way.place, context))
        place = place + getAffineDimExpr(rank + number, context) * way.step;
    places.push_back(place);
  }
  // The column of a tap and an output; the columns become axes again.
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(columns.getType()).getShape().drop_back());
  SmallVector<ReassociationIndices> groups;
  for (unsigned axis = 0; axis < rank; ++axis)
    groups.push_back({axis});
  for (auto [number, way] : llvm::enumerate(apart)) {
    shape.push_back(extents[way.tap]);
    groups.back().push_back(int64_t(rank + number));
  }
  shape.push_back(extents[window.output]);
  AffineExpr output = places.pop_back_val();
  for (unsigned number = 0; number < apart.size(); ++number)
    places.push_back(getAffineDimExpr(rank + number, context));
  places.push_back(output);
  Value parted =
      tensor::ExpandShapeOp::create(b, loc, type.clone(shape), columns, groups);
  SmallVector<utils::IteratorType> types(rank, utils::IteratorType::parallel);
  types.append(apart.size(), utils::IteratorType::reduction);
  auto sum = linalg::GenericOp::create(
      b, loc, type, parted, op.getDpsInits()[0],
      {AffineMap::get(loops, 0, places, context),
       AffineMap::getMultiDimIdentityMap(loops, context).getMajorSubMap(rank)},
      types, [](OpBuilder &b, Location loc, ValueRange values) {
        Value sum = arith::AddFOp::create(b, loc, values[1], values[0]);
        linalg::YieldOp::create(b, loc, sum);
      });
  op.getResult(0).replaceAllUsesWith(sum.getResult(0));
  op.erase();
}

struct SplitWindows : impl::SplitWindowsBase<SplitWindows> {
  using Base::Base;

  void runOnOperation() override {
    constexpr double worthIt = .75;
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : ops) {
      std::optional<Window> window = windowOf(op);
      if (!window)
        continue;
      int64_t lanes = vectorBits / 32;
      int64_t outputs = op.getStaticLoopRanges()[window->output];
      if (outputs >= lanes)
        continue;
      double best = 0;
      if (outputs == 1) {
        best = worthIt * costOfOneOutput(*window, lanes).value_or(0);
      } else {
        best = worthIt * costOf(*window, {}, lanes);
        if (std::optional<double> cost = costAlongInputs(*window, lanes))
          best = std::min(best, *cost);
      }
      size_t apart = 0;
      ArrayRef<Way> ways = window->ways;
      for (size_t count = 1; count <= ways.size(); ++count)
        if (double cost = costOf(*window, ways.take_back(count), lanes);
            cost < best) {
          best = cost;
          apart = count;
        }
      if (apart != 0)
        split(*window, ways.take_back(apart));
    }
  }
};

} // namespace
} // namespace keratin
