//===- PoolGradients.cpp - gradients of pools -----------------------------===//
//
// Windows give back to the elements that they saw. Element i of an axis lies,
// behind `low` elements of padding, in block q = (i + low) / stride at phase
// r = (i + low) % stride. The window p sees it at k when
//
//   p * stride + k = i + low  =>  p = q - t, k = r + t * stride
//
// for one t below taps = ceil(size / stride). So with an axis for the phase,
//
//   dx[.., q, r, ..] = sum over t of what window q - t gives at r + t * stride
//
// which are slices of one padded tensor.
//
//===----------------------------------------------------------------------===//
#include "ir/Vjp.h"
#include "ir/Windows.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// max_pool_index
//===----------------------------------------------------------------------===//

LogicalResult MaxPoolIndexOp::inferReturnTypes(MLIRContext *context,
                                               MaybeLoc location,
                                               Adaptor adaptor,
                                               InferredTypes &types) {
  FailureOr<RankedTensorType> max = inferRanked(location, adaptor.getMax());
  Window window{adaptor.getStrides(), adaptor.getPadding(), /*dilation=*/{}};
  SmallVector<Type> pooled;
  if (failed(max) ||
      failed(inferPool(location, adaptor.getX(), adaptor.getPoolSize(), window,
                       /*same=*/false, DataFormat::ChannelsLast, pooled)))
    return failure();
  if (failed(verifyCompatibleShape(pooled[0], *max)) ||
      cast<RankedTensorType>(pooled[0]).getElementType() !=
          max->getElementType())
    return emitOptionalError(location, "max has the type ", *max,
                             " but the pool of x has ", pooled[0]);
  // Lowering numbers them in a constant.
  constexpr int64_t mostElements = 1 << 24;
  std::optional<int64_t> elements = 1;
  for (int64_t size : adaptor.getPoolSize())
    if (elements)
      elements = llvm::checkedMul(*elements, size);
  if (!elements || *elements > mostElements)
    return emitOptionalError(location, "windows have at most ", mostElements,
                             " elements, got a pool_size of ",
                             adaptor.getPoolSize());
  return inferTensor(location, max->getShape(), IntegerType::get(context, 32),
                     types);
}

//===----------------------------------------------------------------------===//
// From windows to elements
//===----------------------------------------------------------------------===//

namespace {

using Shape = SmallVector<int64_t>;

/// A spatial axis of a channels_last image and the windows along it.
struct PooledAxis {
  int64_t axis, size, stride, low, high, extent, windows;
  int64_t weight; ///< of k in the row-major number of an element of the window

  int64_t taps() const { return llvm::divideCeil(size, stride); }
  /// Windows of nothing before the first. One more than taps see, so that no
  /// tap begins with the first: a slice from 0 is no affine map.
  int64_t before() const { return taps() == 1 ? 0 : taps(); }
  int64_t blocks() const { return llvm::divideCeil(low + extent, stride); }
};

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The sum of what windows give to the elements that they saw.
class WindowScatter {
public:
  WindowScatter(OpBuilder &b, Location loc, ArrayRef<PooledAxis> axes)
      : b(b), loc(loc), axes(axes) {}

  /// Each window gives `dy`, times `share`, to all of its elements.
  Value spreadEvenly(Value dy, double share) {
    Type element = typeOf(dy).getElementType();
    Value padded = padWindows(dy, b.getFloatAttr(element, 0));
    return sumOverTaps(dy, [&](ArrayRef<int64_t> taps) -> Value {
      Value shares = perPhase(dy, taps, element, [&](int64_t number) {
        return b.getFloatAttr(element, number < 0 ? 0 : share);
      });
      return MulOp::create(b, loc, atTap(padded, taps), shares);
    });
  }

  /// Each window of `x` gives `dy` to the first of its largest elements, which
  /// is looked for where it is wanted: one op reads each window once, and
  /// writes what its elements get. Windows are all that there is of x, and each
  /// is by itself.
  Value giveToLargest(Value x, Value dy) {
    Shape split = splitShape(typeOf(x));
    x = ReshapeOp::create(b, loc, x, split);
    SmallVector<Value> elements;
    SmallVector<int64_t> sizes;
    for (const PooledAxis &axis : axes)
      sizes.push_back(axis.size);
    for (int64_t number : llvm::seq(llvm::product_of(sizes))) {
      Shape starts(split.size(), 0), ends = split;
      int64_t rest = number;
      for (size_t i = axes.size(); i-- > 0; rest /= sizes[i]) {
        int64_t phase = axes[i].axis + 1 + int64_t(i);
        starts[phase] = rest % sizes[i];
        ends[phase] = starts[phase] + 1;
      }
      Value element =
          SliceOp::create(b, loc, x, starts, ends, Shape(split.size(), 1));
      elements.push_back(BroadcastToOp::create(b, loc, element, split));
    }
    Value largest = elements.front();
    for (Value element : ArrayRef(elements).drop_front())
      largest = MaximumOp::create(b, loc, largest, element);
    auto number = [&](int64_t value) -> Value {
      return ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(RankedTensorType::get({}, b.getI32Type()),
                                 static_cast<int32_t>(value)));
    };
    // NaN is equal to nothing.
    Value index = number(elements.size());
    for (int64_t i = elements.size(); i-- > 0;) {
      Value isLargest = EqualOp::create(b, loc, elements[i], largest);
      index = SelectOp::create(b, loc, isLargest, number(i), index);
    }
    return giveTo(index, dy);
  }

  /// Each window gives `dy` to the element whose number is `index`, which may
  /// have the axes of the phases.
  Value giveTo(Value index, Value dy) {
    Type integer = b.getI32Type();
    Value zero = createScalarLike(b, loc, dy, 0);
    bool hasPhases = typeOf(index).getRank() != typeOf(dy).getRank();
    Value indices =
        hasPhases ? index : padWindows(index, b.getI32IntegerAttr(-1));
    Value padded =
        padWindows(dy, b.getFloatAttr(typeOf(dy).getElementType(), 0));
    return sumOverTaps(dy, [&](ArrayRef<int64_t> taps) -> Value {
      Value numbers = perPhase(dy, taps, integer, [&](int64_t number) {
        return b.getI32IntegerAttr(static_cast<int32_t>(number));
      });
      Value indicesHere = hasPhases ? indices : atTap(indices, taps);
      Value isHere = EqualOp::create(b, loc, indicesHere, numbers);
      return SelectOp::create(b, loc, isHere, atTap(padded, taps), zero);
    });
  }

private:
  /// The shape of images of `type` with an axis for the phases behind each
  /// spatial one.
  Shape splitShape(RankedTensorType type) {
    Shape shape(type.getShape());
    for (const PooledAxis &axis : llvm::reverse(axes)) {
      shape[axis.axis] = axis.windows;
      shape.insert(shape.begin() + axis.axis + 1, axis.stride);
    }
    return shape;
  }

  /// `perWindow` with windows that give `nothing` before the first and up to
  /// the last block.
  Value padWindows(Value perWindow, TypedAttr nothing) {
    Shape low(typeOf(perWindow).getRank(), 0), high = low;
    for (const PooledAxis &axis : axes) {
      low[axis.axis] = axis.before();
      high[axis.axis] = axis.blocks() - axis.windows;
    }
    auto isZero = [](int64_t amount) { return amount == 0; };
    if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
      return perWindow;
    return PadOp::create(b, loc, perWindow, low, high, nothing);
  }

  /// For each block the window `taps` before it, and an axis for the phases.
  Value atTap(Value padded, ArrayRef<int64_t> taps) {
    RankedTensorType type = typeOf(padded);
    Shape starts(type.getRank(), 0), ends(type.getRank(), ShapedType::kDynamic);
    Shape phases;
    bool isWhole = true;
    for (auto [axis, tap] : llvm::zip_equal(axes, taps)) {
      starts[axis.axis] = axis.before() - tap;
      ends[axis.axis] = starts[axis.axis] + axis.blocks();
      isWhole &= axis.blocks() == type.getDimSize(axis.axis);
      phases.push_back(axis.axis + 1 + phases.size());
    }
    if (!isWhole)
      padded = SliceOp::create(b, loc, padded, starts, ends,
                               Shape(type.getRank(), 1));
    return ExpandDimsOp::create(b, loc, padded, phases);
  }

  /// A constant along the axes of the phases: `element` of the number within
  /// its window of the element at each phase, -1 for none.
  Value perPhase(Value dy, ArrayRef<int64_t> taps, Type type,
                 llvm::function_ref<Attribute(int64_t)> element) {
    Shape shape(typeOf(dy).getRank() + axes.size(), 1);
    SmallVector<int64_t> numbers = {0};
    for (auto [i, axis] : llvm::enumerate(axes)) {
      shape[axis.axis + 1 + i] = axis.stride;
      SmallVector<int64_t> inner;
      for (int64_t outer : numbers)
        for (int64_t phase : llvm::seq(axis.stride)) {
          int64_t k = phase + taps[i] * axis.stride;
          inner.push_back(
              outer < 0 || k >= axis.size ? -1 : outer + k * axis.weight);
        }
      numbers = std::move(inner);
    }
    auto attributes = llvm::map_to_vector(numbers, element);
    return ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get(shape, type), attributes));
  }

  /// The sum of `term` over all taps, blocks and phases as elements again.
  Value sumOverTaps(Value dy,
                    llvm::function_ref<Value(ArrayRef<int64_t>)> term) {
    Shape taps(axes.size(), 0);
    Value sum;
    size_t next;
    do {
      Value value = term(taps);
      sum = sum ? AddOp::create(b, loc, sum, value) : value;
      for (next = axes.size(); next > 0; taps[--next] = 0)
        if (++taps[next - 1] < axes[next - 1].taps())
          break;
    } while (next > 0);
    return joinPhases(sum, typeOf(dy).getRank());
  }

  Value joinPhases(Value sum, int64_t rank) {
    Shape joined, starts(rank, 0), ends(rank, ShapedType::kDynamic);
    bool crops = false;
    for (int64_t from = 0, axis = 0; axis < rank; ++axis, ++from) {
      joined.push_back(typeOf(sum).getDimSize(from));
      const auto *pooled = llvm::find_if(
          axes, [&](const PooledAxis &at) { return at.axis == axis; });
      if (pooled == axes.end())
        continue;
      joined.back() = pooled->blocks() * pooled->stride;
      starts[axis] = pooled->low;
      ends[axis] = pooled->low + pooled->extent;
      crops |= starts[axis] != 0 || ends[axis] != joined.back();
      ++from; // the phases
    }
    Value elements = ReshapeOp::create(b, loc, sum, joined);
    if (!crops)
      return elements;
    return SliceOp::create(b, loc, elements, starts, ends, Shape(rank, 1));
  }

  OpBuilder &b;
  Location loc;
  ArrayRef<PooledAxis> axes;
};

/// The spatial axes of a pool of the channels_last images `x` to `y`, with the
/// smallest windows that see the same elements.
template <typename PoolOp>
FailureOr<SmallVector<PooledAxis>> pooledAxes(PoolOp op) {
  DataFormat format = op.getDataFormat();
  FailureOr<SmallVector<int64_t>> extents =
      knownSpatialExtents(op, op.getX(), format);
  if (failed(extents))
    return failure();
  SmallVector<int64_t> axes = op.getSpatialAxes();
  SmallVector<PooledAxis> pooled(extents->size());
  int64_t weight = 1;
  for (int64_t i = pooled.size(); i-- > 0; weight *= pooled[i].size) {
    int64_t stride = op.getStrides()[i], extent = (*extents)[i];
    int64_t windows = op.getY().getType().getDimSize(axes[i]);
    PoolWindow window =
        withoutCommonPadding({op.getPoolSize()[i], op.getPadding()[2 * i],
                              op.getPadding()[2 * i + 1]},
                             stride, extent, windows);
    pooled[i] = {1 + i,       window.size, stride,  window.low,
                 window.high, extent,      windows, weight};
  }
  return pooled;
}

/// Whether windows lie side by side, all elements of x are in the blocks of
/// one, and to look at a window for each of its elements is little work.
bool areSideBySide(ArrayRef<PooledAxis> axes) {
  constexpr int64_t mostElements = 9;
  int64_t elements = 1;
  for (const PooledAxis &axis : axes) {
    elements = llvm::SaturatingMultiply<uint64_t>(elements, axis.stride);
    if (axis.taps() != 1 || axis.low != 0 ||
        axis.windows * axis.stride != axis.extent)
      return false;
  }
  return elements <= mostElements;
}

/// Fails where more windows see an element than there can be terms.
LogicalResult requireFewTerms(Operation *op, ArrayRef<PooledAxis> axes) {
  constexpr int64_t mostTerms = 4096;
  int64_t terms = 1;
  for (const PooledAxis &axis : axes) {
    terms *= axis.taps();
    if (terms > mostTerms)
      return op->emitOpError()
             << "has no gradient where more than " << mostTerms
             << " windows see an element: use larger strides or smaller "
                "windows";
  }
  return success();
}

/// The number of elements of a window over the number of those that are inside
/// x, at each position along `axis`.
SmallVector<double> windowExcess(const PooledAxis &axis) {
  SmallVector<double> excess;
  for (int64_t p : llvm::seq(axis.windows)) {
    int64_t begin = p * axis.stride - axis.low;
    int64_t inside =
        std::min(begin + axis.size, axis.extent) - std::max<int64_t>(begin, 0);
    excess.push_back(double(axis.size) / double(std::max<int64_t>(inside, 1)));
  }
  return excess;
}

} // namespace

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Values MaxPoolOp::vjp(OpBuilder &b, ValueRange cotangents) {
  if (failed(requirePadding(*this)))
    return {};
  // The first of the largest elements of a window has all of its dy.
  Location loc = getLoc();
  DataFormat format = getDataFormat();
  FailureOr<SmallVector<PooledAxis>> axes = pooledAxes(*this);
  if (failed(axes) || failed(requireFewTerms(*this, *axes)))
    return {};
  Value x = imageToLast(b, loc, getX(), format);
  Value dy = imageToLast(b, loc, cotangents[0], format), dx;
  WindowScatter scatter(b, loc, *axes);
  if (areSideBySide(*axes)) {
    dx = scatter.giveToLargest(x, dy);
  } else {
    SmallVector<int64_t> poolSize, padding;
    for (const PooledAxis &axis : *axes) {
      poolSize.push_back(axis.size);
      padding.append({axis.low, axis.high});
    }
    Value index =
        MaxPoolIndexOp::create(b, loc, x, imageToLast(b, loc, getY(), format),
                               poolSize, getStrides(), padding);
    dx = scatter.giveTo(index, dy);
  }
  return {sumLike(b, loc, imageFromLast(b, loc, dx, format), getX())};
}

Values AvgPoolOp::vjp(OpBuilder &b, ValueRange cotangents) {
  if (failed(requirePadding(*this)))
    return {};
  // y[p] = sum of x / count[p] over a window, so each of its elements has
  // dy[p] / count[p]. count is a product of one factor an axis.
  Location loc = getLoc();
  DataFormat format = getDataFormat();
  FailureOr<SmallVector<PooledAxis>> axes = pooledAxes(*this);
  if (failed(axes))
    return {};
  Value dx = imageToLast(b, loc, cotangents[0], format);
  Type element = typeOf(dx).getElementType();
  for (const PooledAxis &axis : *axes) {
    if (failed(requireFewTerms(*this, axis)))
      return {};
    SmallVector<double> excess = windowExcess(axis);
    if (llvm::all_of(excess, [](double value) { return value == 1; }))
      continue;
    Shape shape(typeOf(dx).getRank(), 1);
    shape[axis.axis] = axis.windows;
    auto values = llvm::map_to_vector(excess, [&](double value) -> Attribute {
      return b.getFloatAttr(element, value);
    });
    Value factors = ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get(shape, element), values));
    dx = MulOp::create(b, loc, dx, factors);
  }
  // Axis by axis it is a sum of terms instead of a product.
  constexpr int64_t mostTogether = 9;
  int64_t together = 1;
  for (const PooledAxis &axis : *axes)
    together *= axis.taps();
  bool movesByOne = llvm::all_of(
      *axes, [](const PooledAxis &axis) { return axis.stride == 1; });
  if (together <= mostTogether && movesByOne) {
    // The windows that see an element are a window as well.
    Shape low(typeOf(dx).getRank(), 0), high = low;
    SmallVector<int64_t> poolSize;
    for (const PooledAxis &axis : *axes) {
      low[axis.axis] = axis.size - 1 - axis.low;
      high[axis.axis] = axis.extent + axis.low - axis.windows;
      poolSize.push_back(axis.size);
    }
    dx = PadOp::create(b, loc, dx, low, high, b.getFloatAttr(element, 0));
    dx = AvgPoolOp::create(b, loc, dx, poolSize, getStrides(),
                           Shape(2 * axes->size(), 0), DataFormat::ChannelsLast,
                           /*same=*/false);
  } else if (together <= mostTogether) {
    int64_t size = 1;
    for (const PooledAxis &axis : *axes)
      size *= axis.size;
    dx = WindowScatter(b, loc, *axes).spreadEvenly(dx, 1.0 / double(size));
  } else {
    for (const PooledAxis &axis : *axes)
      dx =
          WindowScatter(b, loc, axis).spreadEvenly(dx, 1.0 / double(axis.size));
  }
  return {sumLike(b, loc, imageFromLast(b, loc, dx, format), getX())};
}
