//===- ConvTranspose.cpp - a transposed convolution as a convolution ------===//
//
// With stride s, the results at positions o = q * s + p for one phase p are a
// convolution of x of stride 1 with every s-th element of the kernel,
// backwards. All phases are made by one convolution, as channels, and then
// interleaved:
//
//   o + low - k = i * s,  i = q + t  =>  k = p + low - t * s
//
// With t = tmin .. tmin + taps - 1 and the kernel padded in front by `front` so
// that k + front = (taps - 1 - (t - tmin)) * s + p, the kernel is the padded
// one reshaped to [taps, s] with the taps reversed.
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
  /// Taps of each phase, and the elements before the kernel and after it.
  int64_t taps, front, back;
  /// Positions of each phase, and what x lacks before (or has too much, below
  /// 0) and after them.
  int64_t positions, before, after;

  TransposedAxis(int64_t input, int64_t output, int64_t size, int64_t stride,
                 int64_t low, int64_t step)
      : input(input), output(output), stride(stride), low(low) {
    if (stride == 1) {
      dilation = step;
      kernel = taps = size;
      front = back = 0;
      before = (size - 1) * step - low;
    } else {
      stretch = step;
      kernel = size * step;
      int64_t first = -llvm::divideFloorSigned(kernel - 1 - low, stride);
      int64_t last = llvm::divideFloorSigned(low + stride - 1, stride);
      taps = last - first + 1;
      front = last * stride - low;
      back = taps * stride - kernel - front;
      before = -first;
    }
    positions = llvm::divideCeil(output, stride);
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

/// [kernel.., out, groups * in] to [taps.., in, groups * strides.. * out]
Value rearrangeKernel(OpBuilder &b, Location loc, Value kernel,
                      ArrayRef<TransposedAxis> axes, int64_t groups) {
  int64_t spatial = axes.size();
  Shape shape = shapeOf(kernel);
  int64_t out = shape[spatial], in = shape[spatial + 1] / groups;
  kernel = stretchKernel(b, loc, kernel, axes);

  Shape low(shape.size(), 0), high = low, split, taps, phases, target;
  int64_t channels = groups * out;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    low[i] = axis.front;
    high[i] = axis.back;
    taps.push_back(split.size());
    split.push_back(axis.taps);
    if (axis.stride != 1) {
      phases.push_back(split.size());
      split.push_back(axis.stride);
    }
    target.push_back(axis.taps);
    channels *= axis.stride;
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

/// [n, positions.., groups * strides.. * out] to [n, output.., groups * out]
Value interleave(OpBuilder &b, Location loc, Value y,
                 ArrayRef<TransposedAxis> axes, int64_t groups, int64_t out) {
  int64_t spatial = axes.size();
  int64_t batch = shapeOf(y)[0];
  Shape split = {batch}, permutation = {0}, joined = {batch};
  for (const TransposedAxis &axis : axes)
    split.push_back(axis.positions);
  split.push_back(groups);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    split.push_back(axis.stride);
    llvm::append_values(permutation, 1 + i, spatial + 2 + i);
    joined.push_back(axis.positions * axis.stride);
  }
  llvm::append_values(permutation, spatial + 1, 2 * spatial + 2);
  split.push_back(out);
  joined.push_back(groups * out);
  y = TransposeOp::create(b, loc, reshape(b, loc, y, split), permutation);
  y = reshape(b, loc, y, joined);

  Shape ends(spatial + 2, ShapedType::kDynamic);
  bool crops = false;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    ends[1 + i] = axis.output;
    crops |= axis.positions * axis.stride != axis.output;
  }
  if (!crops)
    return y;
  return takeRange(b, loc, y, Shape(spatial + 2, 0), ends);
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
  x = cropInput(b, loc, x, axes);
  Value kernel = rearrangeKernel(b, loc, getKernel(), axes, groups);
  Shape padding, dilation;
  bool hasPhases = false;
  for (const TransposedAxis &axis : axes) {
    llvm::append_values(padding, axis.before, axis.after);
    dilation.push_back(axis.dilation);
    hasPhases |= axis.stride != 1;
  }
  Value y = ConvOp::create(b, loc, x, kernel, Shape(axes.size(), 1), padding,
                           dilation, groups, DataFormat::ChannelsLast);
  if (hasPhases)
    y = interleave(b, loc, y, axes, groups, out);
  if (isChannelsFirst())
    y = TransposeOp::create(b, loc, y, toFirst);
  return SmallVector<Value>{y};
}
