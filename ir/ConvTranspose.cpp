//===- ConvTranspose.cpp - a transposed convolution as convolutions -------===//
//
// With stride s, an element o of the result is a sum over the x[i] and
// kernel[k] with
//
//   o + low = i * s + k
//
// Let o + low = q * s + p for a phase p. Then k = p + j * s and i = q - j: the
// elements of a phase are a convolution of stride 1 with every s-th element of
// the kernel, backwards. All phases are made by one convolution, as channels,
// and then interleaved. Where the kernel is no whole number of strides, some
// phases have a tap less than others, and where the result begins within a
// stride, each phase has a position that is in no result: then each is a
// convolution of its own, if that pays and it has channels enough. Where each
// element has one tap at most, all phases are one product of pixels and the
// kernel, whose tiles are written where they belong.
//
//===----------------------------------------------------------------------===//
#include "ir/Windows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace keratin::ktn;

namespace {

/// What becomes of one spatial axis.
struct TransposedAxis {
  /// Extents of x and of the result, and of the kernel after dilation.
  int64_t input, output, kernel;
  int64_t stride, low;
  /// The dilation of the convolution. Phases need a kernel without: then the
  /// kernel is stretched by `stretch`.
  int64_t dilation = 1, stretch = 1;
  /// Phases that have taps, taps of each, and what the kernel lacks at its end.
  int64_t phases, taps, back;
  /// Positions of each phase, and what x lacks before (or has too much, below
  /// 0) and after them.
  int64_t positions, before, after;
  /// Elements of the first position that lie before the result.
  int64_t skipped;

  TransposedAxis(int64_t input, int64_t output, int64_t size, int64_t stride,
                 int64_t low, int64_t step)
      : input(input), output(output), stride(stride), low(low) {
    (stride == 1 ? dilation : stretch) = step;
    kernel = size * stretch;
    phases = std::min(stride, kernel);
    taps = llvm::divideCeil(kernel, stride);
    back = taps * phases - kernel;
    skipped = low % stride; // low is 0 or more
    place(llvm::divideCeil(output + skipped, stride), low / stride);
  }

  /// The one phase of o = q * stride + phase.
  TransposedAxis phase(int64_t number) const {
    TransposedAxis result = *this;
    result.phases = 1;
    result.taps = llvm::divideCeil(kernel - (number + low) % stride, stride);
    result.skipped = result.back = 0;
    result.place(llvm::divideCeil(output, stride), (number + low) / stride);
    return result;
  }

private:
  /// The first tap of the first of `count` positions reads x[first].
  void place(int64_t count, int64_t first) {
    positions = count;
    before = (taps - 1) * dilation - first;
    after = positions + (taps - 1) * dilation - input - before;
  }
};

using Shape = SmallVector<int64_t>;

Shape shapeOf(Value value) {
  return Shape(cast<RankedTensorType>(value.getType()).getShape());
}

Value reshape(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> target) {
  return ReshapeOp::create(b, loc, x, target);
}

Value padZeros(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> low,
               ArrayRef<int64_t> high) {
  auto isZero = [](int64_t amount) { return amount == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  return PadOp::create(b, loc, x, low, high, b.getFloatAttr(element, 0));
}

Value takeRange(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> starts,
                ArrayRef<int64_t> ends) {
  return SliceOp::create(b, loc, x, starts, ends, Shape(starts.size(), 1));
}

/// x without what lies before and after every position; `before` and `after`
/// say what it lacks then.
Value cropInput(OpBuilder &b, Location loc, Value x,
                MutableArrayRef<TransposedAxis> axes) {
  Shape starts(axes.size() + 2, 0), ends(axes.size() + 2, ShapedType::kDynamic);
  bool crops = false;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    starts[1 + i] = std::max<int64_t>(-axis.before, 0);
    ends[1 + i] = axis.input + std::min<int64_t>(axis.after, 0);
    crops |= axis.before < 0 || axis.after < 0;
    axis.before = std::max<int64_t>(axis.before, 0);
    axis.after = std::max<int64_t>(axis.after, 0);
  }
  return crops ? takeRange(b, loc, x, starts, ends) : x;
}

/// Zeros between the elements of the kernel [spatial.., ..] where it is
/// stretched.
Value stretchKernel(OpBuilder &b, Location loc, Value kernel,
                    ArrayRef<TransposedAxis> axes) {
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis.stretch == 1)
      continue;
    Shape shape = shapeOf(kernel), split = shape;
    split.insert(split.begin() + i + 1, 1);
    Shape low(split.size(), 0), high = low;
    high[i + 1] = axis.stretch - 1;
    kernel = padZeros(b, loc, reshape(b, loc, kernel, split), low, high);
    shape[i] = axis.kernel;
    kernel = reshape(b, loc, kernel, shape);
  }
  return kernel;
}

/// [kernel.., out, groups * in] to [taps.., in, groups * phases.. * out]
Value rearrangeKernel(OpBuilder &b, Location loc, Value kernel,
                      ArrayRef<TransposedAxis> axes, int64_t groups) {
  int64_t spatial = axes.size();
  Shape shape = shapeOf(kernel);
  int64_t out = shape[spatial], in = shape[spatial + 1] / groups;

  Shape low(shape.size(), 0), high = low, split, taps, phases, target;
  int64_t channels = groups * out;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    high[i] = axis.back;
    taps.push_back(split.size());
    split.push_back(axis.taps);
    if (axis.phases != 1) {
      phases.push_back(split.size());
      split.push_back(axis.phases);
    }
    target.push_back(axis.taps);
    channels *= axis.phases;
  }
  kernel = padZeros(b, loc, kernel, low, high);
  int64_t outAxis = split.size();
  split.push_back(out);
  if (groups != 1)
    split.push_back(groups);
  split.push_back(in);
  kernel = reshape(b, loc, kernel, split);
  kernel = ReverseOp::create(b, loc, kernel, taps);

  Shape permutation = taps;
  permutation.push_back(split.size() - 1);
  if (groups != 1)
    permutation.push_back(outAxis + 1);
  llvm::append_range(permutation, phases);
  permutation.push_back(outAxis);
  kernel = TransposeOp::create(b, loc, kernel, permutation);
  llvm::append_values(target, in, channels);
  return reshape(b, loc, kernel, target);
}

/// [n, (positions, phases).., channels..] to [n, output.., channels]
Value joinPhases(OpBuilder &b, Location loc, Value y,
                 ArrayRef<TransposedAxis> axes, int64_t channels) {
  Shape shape = shapeOf(y), joined = {shape[0]};
  // No element of the kernel reaches the other phases.
  Shape low(shape.size(), 0), high = low;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    high[2 + 2 * i] = axis.stride - axis.phases;
    joined.push_back(axis.positions * axis.stride);
  }
  joined.push_back(channels);
  y = reshape(b, loc, padZeros(b, loc, y, low, high), joined);

  Shape starts(joined.size(), 0), ends(joined.size(), ShapedType::kDynamic);
  bool crops = false;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    starts[1 + i] = axis.skipped;
    ends[1 + i] = axis.skipped + axis.output;
    crops |= axis.positions * axis.stride != axis.output;
  }
  return crops ? takeRange(b, loc, y, starts, ends) : y;
}

/// [n, positions.., groups * phases.. * out] to [n, output.., groups * out]
Value interleave(OpBuilder &b, Location loc, Value y,
                 ArrayRef<TransposedAxis> axes, int64_t groups, int64_t out) {
  int64_t spatial = axes.size();
  Shape split = {shapeOf(y)[0]}, permutation = {0};
  for (const TransposedAxis &axis : axes)
    split.push_back(axis.positions);
  split.push_back(groups);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    split.push_back(axis.phases);
    llvm::append_values(permutation, 1 + i, spatial + 2 + i);
  }
  llvm::append_values(permutation, spatial + 1, 2 * spatial + 2);
  split.push_back(out);
  y = TransposeOp::create(b, loc, reshape(b, loc, y, split), permutation);
  return joinPhases(b, loc, y, axes, groups * out);
}

/// Channels that fill vectors without those of other phases.
constexpr int64_t fewChannels = 16;

/// Whether each element of the result is of one tap and one pixel at most, all
/// of which x has.
bool isOneTapEach(ArrayRef<TransposedAxis> axes, int64_t groups,
                  int64_t channels) {
  return groups == 1 && channels >= fewChannels &&
         llvm::all_of(axes, [](const TransposedAxis &axis) {
           return axis.stretch == 1 && axis.taps == 1 && axis.after <= 0;
         });
}

/// The product of all pixels with all of the kernel [phases.., out, in].
Value multiplyPixels(OpBuilder &b, Location loc, Value x, Value kernel,
                     SmallVector<TransposedAxis> axes) {
  int64_t spatial = axes.size();
  x = cropInput(b, loc, x, axes);
  Shape none, last = {spatial + 1}, permutation = {0};
  Value y = DotGeneralOp::create(b, loc, x, kernel, none, none, last, last);
  for (int64_t i = 0; i < spatial; ++i)
    llvm::append_values(permutation, 1 + i, 1 + spatial + i);
  permutation.push_back(2 * spatial + 1);
  y = TransposeOp::create(b, loc, y, permutation);
  return joinPhases(b, loc, y, axes, shapeOf(kernel)[spatial]);
}

/// The convolution of all phases of `axes`.
Value convolve(OpBuilder &b, Location loc, Value x, Value kernel,
               SmallVector<TransposedAxis> axes, int64_t groups) {
  x = cropInput(b, loc, x, axes);
  kernel = rearrangeKernel(b, loc, kernel, axes, groups);
  Shape padding, dilation;
  for (const TransposedAxis &axis : axes) {
    llvm::append_values(padding, axis.before, axis.after);
    dilation.push_back(axis.dilation);
  }
  return ConvOp::create(b, loc, x, kernel, Shape(axes.size(), 1), padding,
                        dilation, groups, DataFormat::ChannelsLast);
}

/// Whether each phase is a convolution of its own: one of all phases would
/// multiply by zeros, or has many positions before or behind the result, and
/// vectors are full without the channels of others.
bool isByPhases(ArrayRef<TransposedAxis> axes, int64_t channels) {
  constexpr int64_t mostPhases = 8;
  int64_t number = 1, ofAll = 1, ofOne = 1;
  bool differ = false;
  for (const TransposedAxis &axis : axes) {
    if (axis.stretch != 1 || axis.kernel < axis.stride)
      return false;
    number *= axis.stride;
    differ |= axis.kernel % axis.stride != 0;
    ofAll *= axis.positions;
    ofOne *= llvm::divideCeil(axis.output, axis.stride);
  }
  bool skips = channels > fewChannels && 32 * ofAll > 33 * ofOne;
  return ((differ && channels >= fewChannels) || skips) && number <= mostPhases;
}

/// The phases one by one, side by side as channels.
Value convolvePhases(OpBuilder &b, Location loc, Value x, Value kernel,
                     MutableArrayRef<TransposedAxis> axes, int64_t groups) {
  int64_t number = 1;
  for (const TransposedAxis &axis : axes)
    number *= axis.stride;
  SmallVector<Value> parts;
  for (int64_t part = 0; part < number; ++part) {
    SmallVector<TransposedAxis> own;
    Shape starts(axes.size() + 2, 0), steps(axes.size() + 2, 1);
    Shape ends(axes.size() + 2, ShapedType::kDynamic);
    int64_t rest = part;
    for (size_t i = axes.size(); i-- > 0;) {
      const TransposedAxis &axis = axes[i];
      int64_t phase = rest % axis.stride;
      rest /= axis.stride;
      own.push_back(axis.phase(phase));
      starts[i] = (phase + axis.low) % axis.stride;
      ends[i] = axis.kernel;
      steps[i] = axis.stride;
    }
    std::reverse(own.begin(), own.end());
    Value taps = SliceOp::create(b, loc, kernel, starts, ends, steps);
    parts.push_back(convolve(b, loc, x, taps, own, groups));
  }
  for (TransposedAxis &axis : axes) {
    axis.skipped = 0;
    axis.positions = llvm::divideCeil(axis.output, axis.stride);
  }
  return ConcatOp::create(b, loc, parts, int64_t(axes.size() + 1));
}

} // namespace

FailureOr<SmallVector<Value>> ConvTransposeOp::decompose(OpBuilder &b) {
  if (failed(requirePadding(*this)))
    return failure();
  Location loc = getLoc();
  RankedTensorType type = getY().getType();
  SmallVector<TransposedAxis> axes;
  for (auto [i, axis] : llvm::enumerate(getSpatialAxes())) {
    int64_t input = getX().getType().getDimSize(axis);
    int64_t output = type.getDimSize(axis);
    if (ShapedType::isDynamic(input) || ShapedType::isDynamic(output))
      return emitOpError("spatial axis ")
             << i << " has unknown extents in " << getX().getType() << " and "
             << type;
    axes.emplace_back(input, output, getKernel().getType().getDimSize(i),
                      getStrides()[i], getPadding()[2 * i], getDilation()[i]);
  }

  // The formula is on channels last.
  int64_t rank = type.getRank();
  Shape toLast = {0}, toFirst = {0, rank - 1};
  for (int64_t axis = 1; axis < rank - 1; ++axis) {
    toLast.push_back(axis + 1);
    toFirst.push_back(axis);
  }
  toLast.push_back(1);
  Value x = getX();
  if (isChannelsFirst())
    x = TransposeOp::create(b, loc, x, toLast);

  int64_t groups = getGroups();
  int64_t out = getKernel().getType().getDimSize(axes.size());
  bool hasPhases = llvm::any_of(
      axes, [](const TransposedAxis &axis) { return axis.stride != 1; });
  Value kernel = stretchKernel(b, loc, getKernel(), axes), y;
  if (hasPhases && isOneTapEach(axes, groups, out)) {
    y = multiplyPixels(b, loc, x, kernel, axes);
  } else if (isByPhases(axes, out)) {
    y = convolvePhases(b, loc, x, kernel, axes, groups);
    y = interleave(b, loc, y, axes, /*groups=*/1, groups * out);
  } else {
    y = convolve(b, loc, x, kernel, axes, groups);
    if (hasPhases)
      y = interleave(b, loc, y, axes, groups, out);
  }
  if (isChannelsFirst())
    y = TransposeOp::create(b, loc, y, toFirst);
  return SmallVector<Value>{y};
}
