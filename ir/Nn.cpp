#include "ir/Inference.h"
#include "ir/Ktn.h"
#include "ir/Vjp.h"
#include "ir/Windows.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace keratin::ktn;

//===----------------------------------------------------------------------===//
// conv
//===----------------------------------------------------------------------===//

LogicalResult ConvOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                       Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  FailureOr<RankedTensorType> kernel =
      inferRanked(location, adaptor.getKernel());
  Window window{adaptor.getStrides(), adaptor.getPadding(),
                adaptor.getDilation()};
  int64_t groups = adaptor.getGroups();
  if (failed(checkConvOperands(location, x, kernel, window, groups)))
    return failure();

  DataFormat format = adaptor.getDataFormat();
  SmallVector<int64_t> padding;
  if (adaptor.getSame()) {
    padding = samePadding(window, spatialExtents(*x, format),
                          kernel->getShape().drop_back(2));
    window.padding = padding;
  }
  int64_t rank = x->getRank();
  int64_t channels = x->getDimSize(channelAxis(rank, format));
  int64_t perGroup = kernel->getDimSize(rank - 2);
  int64_t filters = kernel->getDimSize(rank - 1);
  bool isKnown =
      ShapedType::isStatic(channels) && ShapedType::isStatic(perGroup);
  if (isKnown && llvm::checkedMul(perGroup, groups) != channels)
    return emitOptionalError(
        location, "x has ", channels, " channels (",
        stringifyDataFormat(format), ") but the kernel takes ", perGroup,
        " in each of ", groups, groups == 1 ? " group" : " groups");
  if (ShapedType::isStatic(filters) && filters % groups != 0)
    return emitOptionalError(location, "the kernel has ", filters,
                             " filters, which ", groups,
                             " groups cannot share evenly");

  SmallVector<int64_t> spatial;
  for (auto [i, axis] : llvm::enumerate(spatialAxes(rank, format))) {
    FailureOr<int64_t> count = windowCount(
        location, window, i, x->getDimSize(axis), kernel->getDimSize(i));
    if (failed(count))
      return failure();
    spatial.push_back(*count);
  }
  return inferTensor(location, imageShape(*x, spatial, filters, format),
                     x->getElementType(), types);
}

//===----------------------------------------------------------------------===//
// conv_transpose
//===----------------------------------------------------------------------===//

/// The extent of spatial axis `i` of the result, of which a convolution makes
/// `extent`. `target` is what the op says, maybe `?`.
static FailureOr<int64_t> transposedExtent(MaybeLoc location,
                                           const Window &window, size_t i,
                                           int64_t extent, int64_t size,
                                           int64_t target) {
  if (ShapedType::isStatic(target)) {
    FailureOr<int64_t> count = windowCount(location, window, i, target, size);
    if (failed(count))
      return failure();
    if (failed(mergeExtents(*count, extent)))
      return emitOptionalError(
          location, "spatial axis ", i, " of x has extent ", extent,
          " but a convolution of extent ", target, " gives ", *count);
    return target;
  }
  if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(size))
    return ShapedType::kDynamic;
  std::optional<int64_t> reach = dilatedExtent(size, window.dilationOf(i));
  std::optional<int64_t> padded;
  if (reach)
    padded = llvm::checkedMulAdd(extent - 1, window.strides[i], *reach);
  if (!padded)
    return emitOptionalError(location, "the extent ", extent,
                             " of spatial axis ", i, " overflows");
  int64_t least = *padded - window.padding[2 * i] - window.padding[2 * i + 1];
  if (least < 1)
    return emitOptionalError(location, "spatial axis ", i,
                             " of the result has extent ", least, ": x has ",
                             extent, " and the padding takes ",
                             window.padding[2 * i] + window.padding[2 * i + 1]);
  return least;
}

LogicalResult ConvTransposeOp::inferReturnTypes(MLIRContext *,
                                                MaybeLoc location,
                                                Adaptor adaptor,
                                                InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  FailureOr<RankedTensorType> kernel =
      inferRanked(location, adaptor.getKernel());
  Window window{adaptor.getStrides(), adaptor.getPadding(),
                adaptor.getDilation()};
  int64_t groups = adaptor.getGroups();
  ArrayRef<int64_t> target = adaptor.getOutputShape();
  if (failed(checkConvOperands(location, x, kernel, window, groups)) ||
      failed(checkCount(location, "output_shape", target, x->getRank() - 2,
                        "spatial axis")) ||
      failed(checkShapeOperand(location, adaptor.getShape(), target)))
    return failure();

  DataFormat format = adaptor.getDataFormat();
  SmallVector<int64_t> padding;
  if (adaptor.getSame()) {
    padding = transposedSamePadding(window, spatialExtents(*x, format),
                                    kernel->getShape().drop_back(2), target);
    window.padding = padding;
  }
  int64_t rank = x->getRank();
  int64_t channels = x->getDimSize(channelAxis(rank, format));
  int64_t perGroup = kernel->getDimSize(rank - 2);
  int64_t taken = kernel->getDimSize(rank - 1);
  if (failed(mergeExtents(channels, taken)))
    return emitOptionalError(location, "x has ", channels, " channels (",
                             stringifyDataFormat(format),
                             ") but the kernel takes ", taken);
  if (ShapedType::isStatic(taken) && taken % groups != 0)
    return emitOptionalError(location, "the kernel takes ", taken,
                             " channels, which ", groups,
                             " groups cannot share evenly");
  std::optional<int64_t> filters = ShapedType::kDynamic;
  if (ShapedType::isStatic(perGroup))
    filters = llvm::checkedMul(perGroup, groups);
  if (!filters)
    return emitOptionalError(location, perGroup, " channels in each of ",
                             groups, " groups overflow");

  SmallVector<int64_t> spatial;
  for (auto [i, axis] : llvm::enumerate(spatialAxes(rank, format))) {
    // Of `same` the padding is known where the target and x are.
    int64_t have = x->getDimSize(axis);
    bool isOpen = ShapedType::isDynamic(target[i])
                      ? adaptor.getSame() || adaptor.getShape()
                      : adaptor.getSame() && ShapedType::isDynamic(have);
    FailureOr<int64_t> extent = target[i];
    if (!isOpen)
      extent = transposedExtent(location, window, i, have,
                                kernel->getDimSize(i), target[i]);
    if (failed(extent))
      return failure();
    spatial.push_back(*extent);
  }
  return inferTensor(location, imageShape(*x, spatial, *filters, format),
                     x->getElementType(), types);
}

//===----------------------------------------------------------------------===//
// max_pool, avg_pool
//===----------------------------------------------------------------------===//

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  Window window{adaptor.getStrides(), adaptor.getPadding(), /*dilation=*/{}};
  return inferPool(location, adaptor.getX(), adaptor.getPoolSize(), window,
                   adaptor.getSame(), adaptor.getDataFormat(), types);
}

LogicalResult AvgPoolOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  Window window{adaptor.getStrides(), adaptor.getPadding(), /*dilation=*/{}};
  return inferPool(location, adaptor.getX(), adaptor.getPoolSize(), window,
                   adaptor.getSame(), adaptor.getDataFormat(), types);
}

//===----------------------------------------------------------------------===//
// bias_add
//===----------------------------------------------------------------------===//

/// The result has x's type.
static LogicalResult inferSameType(MaybeLoc location, Value x,
                                   InferredTypes &types) {
  FailureOr<RankedTensorType> type = inferRanked(location, x);
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

LogicalResult BiasAddOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  return inferSameType(location, adaptor.getX(), types);
}

int64_t BiasAddOp::getChannelAxis() {
  return channelAxis(getX().getType().getRank(), getDataFormat());
}

bool BiasAddOp::isChannelsFirst() {
  return getDataFormat() == DataFormat::ChannelsFirst;
}

void BiasAddOp::markChannelsLast() { setDataFormat(DataFormat::ChannelsLast); }

LogicalResult BiasAddOp::verify() {
  RankedTensorType x = getX().getType();
  RankedTensorType bias = getBias().getType();
  if (x.getRank() < 2)
    return emitOpError("x has rank ")
           << x.getRank() << " but must have a batch and a channel axis";
  if (bias.getRank() != 1)
    return emitOpError("bias has rank ")
           << bias.getRank() << " but must have 1";
  if (bias.getElementType() != x.getElementType())
    return emitOpError("bias has element type ")
           << bias.getElementType() << " but x has " << x.getElementType();
  int64_t axis = getChannelAxis();
  if (succeeded(mergeExtents(x.getDimSize(axis), bias.getDimSize(0))))
    return success();
  InFlightDiagnostic diag = emitOpError("bias has ")
                            << bias.getDimSize(0) << " channels but x has "
                            << x.getDimSize(axis) << " on axis " << axis << " ("
                            << stringifyDataFormat(getDataFormat()) << ')';
  if (axis != 1 && x.getDimSize(1) == bias.getDimSize(0))
    diag.attachNote() << "axis 1 has that size: is the input channels_first?";
  return diag;
}

//===----------------------------------------------------------------------===//
// batch_norm
//===----------------------------------------------------------------------===//

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                            Adaptor adaptor,
                                            InferredTypes &types) {
  return inferSameType(location, adaptor.getX(), types);
}

LogicalResult BatchNormOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(checkAxis(getLoc(), "axis", getAxis(), x.getRank())))
    return failure();
  int64_t channels = x.getDimSize(getAxis());
  const std::pair<StringRef, Value> parameters[] = {{"mean", getMean()},
                                                    {"variance", getVariance()},
                                                    {"gamma", getGamma()},
                                                    {"beta", getBeta()}};
  for (auto [name, parameter] : parameters) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    bool fits = type.getRank() == 1 &&
                type.getElementType() == x.getElementType() &&
                succeeded(mergeExtents(type.getDimSize(0), channels));
    if (!fits)
      return emitOpError() << name << " has type " << type
                           << " but x has the type " << x
                           << " and its channels on axis " << getAxis();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                          Adaptor adaptor,
                                          InferredTypes &types) {
  return inferSameType(location, adaptor.getX(), types);
}

LogicalResult SoftmaxOp::verify() {
  return checkAxis(getLoc(), "axis", getAxis(), getX().getType().getRank());
}

//===----------------------------------------------------------------------===//
// Gradients and formulas
//===----------------------------------------------------------------------===//

Values BiasAddOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y[i] = x[i] + bias[c(i)], so dx = dy and dbias sums dy over all axes but c.
  Value dy = cotangents[0];
  SmallVector<int64_t> axes;
  for (int64_t axis : llvm::seq(getX().getType().getRank()))
    if (axis != getChannelAxis())
      axes.push_back(axis);
  Value dbias = SumOp::create(b, getLoc(), dy, axes);
  return {dy, sumLike(b, getLoc(), dbias, getBias())};
}

/// One of the parameters of batch_norm, so that it broadcasts along `axis`.
static Value alongAxis(OpBuilder &b, BatchNormOp op, Value parameter) {
  SmallVector<int64_t> others;
  for (int64_t axis : llvm::seq(op.getType().getRank()))
    if (axis != op.getAxis())
      others.push_back(axis);
  return ExpandDimsOp::create(b, op.getLoc(), parameter, others);
}

/// 1 / sqrt(variance + epsilon)
static Value createInverseDeviation(OpBuilder &b, BatchNormOp op) {
  Value epsilon = createScalarLike(b, op.getLoc(), op.getVariance(),
                                   op.getEpsilon().convertToDouble());
  Value padded = AddOp::create(b, op.getLoc(), op.getVariance(), epsilon);
  return RsqrtOp::create(b, op.getLoc(), padded);
}

FailureOr<SmallVector<Value>> BatchNormOp::decompose(OpBuilder &b) {
  // y = (x - mean) * scale + beta, scale = gamma / sqrt(variance + epsilon)
  Location loc = getLoc();
  Value scale = createInverseDeviation(b, *this);
  if (getGamma())
    scale = MulOp::create(b, loc, scale, getGamma());
  Value centred = SubOp::create(b, loc, getX(), alongAxis(b, *this, getMean()));
  Value y = MulOp::create(b, loc, centred, alongAxis(b, *this, scale));
  if (getBeta())
    y = AddOp::create(b, loc, y, alongAxis(b, *this, getBeta()));
  return SmallVector<Value>{y};
}

Values BatchNormOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // y = (x - mean) r gamma + beta with r = (variance + epsilon)^(-1/2), so
  // dx = dy r gamma, dmean = -r gamma sum dy, dgamma = r sum dy (x - mean),
  // dvariance = -1/2 r^2 gamma dgamma, dbeta = sum dy.
  Location loc = getLoc();
  Value dy = cotangents[0];
  SmallVector<int64_t> others;
  for (int64_t axis : llvm::seq(getType().getRank()))
    if (axis != getAxis())
      others.push_back(axis);
  auto sumLikeParameter = [&](Value value, Value parameter) {
    return sumLike(b, loc, SumOp::create(b, loc, value, others), parameter);
  };

  Value inverse = createInverseDeviation(b, *this);
  Value scale = inverse;
  if (getGamma())
    scale = MulOp::create(b, loc, scale, getGamma());
  Value dx = MulOp::create(b, loc, dy, alongAxis(b, *this, scale));
  Value total = sumLikeParameter(dy, getMean());
  Value dmean = NegOp::create(b, loc, MulOp::create(b, loc, total, scale));

  Value centred = SubOp::create(b, loc, getX(), alongAxis(b, *this, getMean()));
  Value product = MulOp::create(b, loc, dy, centred);
  Value dgamma =
      MulOp::create(b, loc, sumLikeParameter(product, getVariance()), inverse);
  Value factor = createScalarLike(b, loc, getX(), -0.5);
  Value slope =
      MulOp::create(b, loc, MulOp::create(b, loc, scale, inverse), factor);
  Value dvariance = MulOp::create(b, loc, dgamma, slope);

  Values grads{dx, dmean, dvariance};
  if (getGamma())
    grads.push_back(dgamma);
  if (getBeta())
    grads.push_back(sumLikeParameter(dy, getBeta()));
  return grads;
}

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &b) {
  // y = e^(x - max x) / sum e^(x - max x), of 16 bits computed in f32.
  Location loc = getLoc();
  int64_t axis = getAxis();
  Type element = getType().getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  Value x = getX();
  if (isHalf)
    x = CastOp::create(b, loc, x, b.getF32Type());
  auto largest = MaxOp::create(b, loc, x, axis, /*keepdims=*/true);
  // By way of its power a NaN gets into the sum, and so everywhere.
  largest->setAttr("ktn.skip_nan", b.getUnitAttr());
  auto powers = ExpOp::create(b, loc, SubOp::create(b, loc, x, largest));
  // No exponent is positive, and what underflows is nothing in the sum.
  powers->setAttr("ktn.flush", b.getUnitAttr());
  Value total = SumOp::create(b, loc, powers, axis, /*keepdims=*/true);
  Value weights = DivOp::create(b, loc, powers, total);
  if (isHalf)
    weights = CastOp::create(b, loc, weights, element);
  return SmallVector<Value>{weights};
}

Values SoftmaxOp::vjp(OpBuilder &b, ValueRange cotangents) {
  // dx = y (dy - sum(dy y))
  Location loc = getLoc();
  int64_t axis = getAxis();
  Value product = MulOp::create(b, loc, cotangents[0], getY());
  Value total = SumOp::create(b, loc, product, axis, /*keepdims=*/true);
  Value rest = SubOp::create(b, loc, cotangents[0], total);
  return {MulOp::create(b, loc, rest, getY())};
}

//===----------------------------------------------------------------------===//
// What passes ask
//===----------------------------------------------------------------------===//

unsigned ConvOp::getKernelOperandIndex() { return 1; }
int64_t ConvOp::getKernelOutputAxis() {
  return getKernel().getType().getRank() - 1;
}
int64_t ConvOp::getKernelResultAxis() { return getChannelAxis(); }

std::optional<std::pair<int64_t, int64_t>> ConvOp::getSummedAxes() {
  if (getGroups() != 1)
    return std::nullopt;
  return std::pair(getChannelAxis(), getKernel().getType().getRank() - 2);
}

unsigned ConvTransposeOp::getKernelOperandIndex() { return 1; }
int64_t ConvTransposeOp::getKernelOutputAxis() {
  return getGroups() == 1 ? getKernel().getType().getRank() - 2 : -1;
}
int64_t ConvTransposeOp::getKernelResultAxis() { return getChannelAxis(); }

Value BiasAddOp::buildStacked(OpBuilder &b, ValueRange operands,
                              ArrayRef<bool> stacked) {
  // The channels must stay at axis 1 or at the end.
  bool isLast = getChannelAxis() == getX().getType().getRank() - 1;
  if (!stacked[0] || stacked[1] || !isLast)
    return {};
  return BiasAddOp::create(b, getLoc(), operands[0], operands[1],
                           DataFormat::ChannelsLast);
}
