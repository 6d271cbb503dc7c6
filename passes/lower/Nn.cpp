//===- Nn.cpp - convolutions, pools, bias ---------------------------------===//
#include "passes/lower/Lower.h"

#include "ir/UnrolledTaps.h"
#include "ir/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin::lower {

namespace {

LogicalResult requireChannelsLast(ktn::LayoutOpInterface op) {
  if (!op.isChannelsFirst())
    return success();
  return op->emitOpError(
      "is channels_first; ktn-assign-layout must run before");
}

/// `x` with `padding` = [low, high] of each spatial axis filled with `value`.
Value padSpatial(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> padding,
                 TypedAttr value) {
  if (llvm::all_of(padding, [](int64_t amount) { return amount == 0; }))
    return x;
  SmallVector<OpFoldResult> low = {b.getIndexAttr(0)}, high = low;
  for (size_t i = 0; i < padding.size(); i += 2) {
    low.push_back(b.getIndexAttr(padding[i]));
    high.push_back(b.getIndexAttr(padding[i + 1]));
  }
  low.push_back(b.getIndexAttr(0));
  high.push_back(b.getIndexAttr(0));
  Value scalar = arith::ConstantOp::create(b, loc, value);
  return tensor::PadOp::create(b, loc, /*resultType=*/Type(), x, low, high,
                               scalar);
}

/// The loops of a window that slides over the spatial axes: one loop per output
/// position, one per window position, and the expressions that lead from them
/// to the input.
struct WindowLoops {
  WindowLoops(OpBuilder &b, ArrayRef<int64_t> strides,
              ArrayRef<int64_t> dilation, unsigned firstWindowLoop) {
    for (auto [i, stride, step] : llvm::enumerate(strides, dilation)) {
      output.push_back(b.getAffineDimExpr(1 + i));
      window.push_back(b.getAffineDimExpr(firstWindowLoop + i));
      input.push_back(output.back() * stride + window.back() * step);
    }
  }
  SmallVector<AffineExpr> output, window, input;
};

/// The sizes of the result of a window over the padded `x`: batch, output
/// positions, channels.
SmallVector<OpFoldResult> windowSizes(OpBuilder &b, Location loc, Value padded,
                                      RankedTensorType type,
                                      ArrayRef<int64_t> window,
                                      ArrayRef<int64_t> strides,
                                      ArrayRef<int64_t> dilation) {
  SmallVector<OpFoldResult> sizes = {sizeOf(b, loc, padded, 0)};
  for (auto [i, extent, stride, step] :
       llvm::enumerate(window, strides, dilation)) {
    AffineExpr last = b.getAffineSymbolExpr(0) - ((extent - 1) * step + 1);
    sizes.push_back(applySize(b, loc, last.floorDiv(stride) + 1,
                              {sizeOf(b, loc, padded, 1 + i)}));
  }
  sizes.push_back(b.getIndexAttr(type.getShape().back()));
  return sizes;
}

/// `type` with its last axis as two.
RankedTensorType splitLast(RankedTensorType type, int64_t outer,
                           int64_t inner) {
  SmallVector<int64_t> shape(type.getShape().drop_back());
  llvm::append_values(shape, outer, inner);
  return type.clone(shape);
}

Value splitChannels(OpBuilder &b, Location loc, Value value, int64_t groups,
                    int64_t perGroup) {
  return createReshape(b, loc, value,
                       splitLast(tensorType(value), groups, perGroup));
}

/// y[n, o, g, c] = sum over k, i of
///     x[n, o * stride + k * dilation - low, g, i] * kernel[k, i, g, c]
struct LowerConv : Lowering<ktn::ConvOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ConvOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    if (failed(requireChannelsLast(op)) || failed(ktn::requirePadding(op)))
      return failure();
    Location loc = op.getLoc();
    Type element = type.getElementType();
    Value x = padSpatial(b, loc, operands.getX(), op.getPadding(),
                         b.getZeroAttr(element));
    RankedTensorType kernelType = tensorType(operands.getKernel());
    int64_t spatial = type.getRank() - 2;
    SmallVector<OpFoldResult> sizes =
        windowSizes(b, loc, x, type, kernelType.getShape().take_front(spatial),
                    op.getStrides(), op.getDilation());

    int64_t groups = op.getGroups();
    int64_t inPerGroup = kernelType.getDimSize(spatial);
    int64_t outPerGroup = kernelType.getDimSize(spatial + 1) / groups;
    if (groups == 1)
      return createConv(op, b, type, sizes, x, operands.getKernel(),
                        {b.getAffineDimExpr(spatial + 1)}, {},
                        /*sumsChannels=*/true);
    // More of them fill vectors by themselves.
    constexpr int64_t mostFilters = 8;
    if (inPerGroup == 1 && outPerGroup <= mostFilters)
      return lowerDepthwise(op, b, type, sizes, x, operands.getKernel(),
                            outPerGroup);
    if (groupsFillLanes(kernelType, groups))
      return createConv(op, b, type, sizes, x, operands.getKernel(), {},
                        {b.getAffineDimExpr(spatial + 1)},
                        /*sumsChannels=*/true, outPerGroup);
    return lowerGrouped(op, b, type, sizes, x, operands.getKernel(), inPerGroup,
                        outPerGroup);
  }

private:
  /// Whether the channels of several groups should share a vector: those of one
  /// do not fill it, and tiles unroll the sum over them and a row of the
  /// window.
  static bool groupsFillLanes(RankedTensorType kernel, int64_t groups) {
    constexpr int64_t fewestLanes = 16, mostFilters = 8;
    int64_t spatial = kernel.getRank() - 2;
    int64_t in = kernel.getDimSize(spatial);
    int64_t all = kernel.getDimSize(spatial + 1), own = all / groups;
    int64_t row = kernel.getDimSize(spatial - 1);
    return all >= fewestLanes && own <= mostFilters &&
           llvm::isPowerOf2_64(own) && in <= own && row > 1 &&
           in * row <= mostUnrolledTaps;
  }

  /// The convolution of `x` [n, position.., shared, in] with `kernel`
  /// [window.., in, shared, own] to [n, position.., shared, own]. `shared` axes
  /// are of the same extent in kernel and result, and in x where `filters` is
  /// 1: so many of the result in a row read the same of x. `in` exists where
  /// `sumsChannels`; with `filters` it is not an axis of x: `shared` has it.
  static Value createConv(ktn::ConvOp op, OpBuilder &b, RankedTensorType type,
                          ArrayRef<OpFoldResult> sizes, Value x, Value kernel,
                          ArrayRef<AffineExpr> own, ArrayRef<AffineExpr> shared,
                          bool sumsChannels, int64_t filters = 1) {
    int64_t spatial = op.getStrides().size();
    unsigned firstWindowLoop = type.getRank();
    unsigned reductions = spatial + sumsChannels;
    unsigned loops = firstWindowLoop + reductions;
    WindowLoops window(b, op.getStrides(), op.getDilation(), firstWindowLoop);

    SmallVector<AffineExpr> xExprs = {b.getAffineDimExpr(0)}, yExprs = xExprs;
    SmallVector<AffineExpr> kernelExprs = window.window;
    llvm::append_range(xExprs, window.input);
    for (AffineExpr channel : shared)
      xExprs.push_back(channel.floorDiv(filters));
    if (sumsChannels) {
      AffineExpr in = b.getAffineDimExpr(loops - 1);
      int64_t axis = op.getStrides().size();
      if (filters > 1)
        xExprs.back() =
            xExprs.back() * tensorType(kernel).getDimSize(axis) + in;
      else
        xExprs.push_back(in);
      kernelExprs.push_back(b.getAffineDimExpr(loops - 1));
    }
    llvm::append_range(kernelExprs, shared);
    llvm::append_range(kernelExprs, own);
    llvm::append_range(yExprs, window.output);
    llvm::append_range(yExprs, shared);
    llvm::append_range(yExprs, own);

    MLIRContext *context = b.getContext();
    return createContraction(b, op.getLoc(), type, sizes, {x, kernel},
                             {AffineMap::get(loops, 0, xExprs, context),
                              AffineMap::get(loops, 0, kernelExprs, context),
                              AffineMap::get(loops, 0, yExprs, context)},
                             reductions);
  }

  /// Each channel has its own windows, `filters` of them: kernel [window.., 1,
  /// c] is read as [window.., c].
  static FailureOr<Value> lowerDepthwise(ktn::ConvOp op, OpBuilder &b,
                                         RankedTensorType type,
                                         ArrayRef<OpFoldResult> sizes, Value x,
                                         Value kernel, int64_t filters) {
    int64_t spatial = type.getRank() - 2;
    SmallVector<int64_t> shape(tensorType(kernel).getShape());
    shape.erase(shape.begin() + spatial);
    kernel = createReshape(b, op.getLoc(), kernel,
                           RankedTensorType::get(shape, type.getElementType()));
    return createConv(op, b, type, sizes, x, kernel, {},
                      {b.getAffineDimExpr(spatial + 1)},
                      /*sumsChannels=*/false, filters);
  }

  /// The channel axes of x, kernel and result are split into groups.
  static FailureOr<Value> lowerGrouped(ktn::ConvOp op, OpBuilder &b,
                                       RankedTensorType type,
                                       ArrayRef<OpFoldResult> sizes, Value x,
                                       Value kernel, int64_t inPerGroup,
                                       int64_t outPerGroup) {
    int64_t groups = op.getGroups();
    Location loc = op.getLoc();
    x = splitChannels(b, loc, x, groups, inPerGroup);
    kernel = splitChannels(b, loc, kernel, groups, outPerGroup);
    SmallVector<OpFoldResult> splitSizes(sizes.drop_back());
    llvm::append_values(splitSizes, OpFoldResult(b.getIndexAttr(groups)),
                        OpFoldResult(b.getIndexAttr(outPerGroup)));
    unsigned groupLoop = type.getRank() - 1;
    RankedTensorType splitType = splitLast(type, groups, outPerGroup);
    Value y = createConv(op, b, splitType, splitSizes, x, kernel,
                         {b.getAffineDimExpr(groupLoop + 1)},
                         {b.getAffineDimExpr(groupLoop)},
                         /*sumsChannels=*/true);
    return createReshape(b, loc, y, type);
  }
};

/// y[k, i, g, c] = sum over n, o of
///     x[n, o * stride + k * dilation - low, g, i] * z[n, o, g, c]
struct LowerConvKernelGrad : Lowering<ktn::ConvKernelGradOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::ConvKernelGradOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    Value x = padSpatial(b, loc, operands.getX(), op.getPadding(),
                         b.getZeroAttr(type.getElementType()));
    Value z = operands.getZ();
    int64_t spatial = type.getRank() - 2, groups = op.getGroups();
    int64_t inPerGroup = type.getDimSize(spatial);
    int64_t outPerGroup = type.getDimSize(spatial + 1) / groups;
    SmallVector<int64_t> shape(op.getWindow());
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), op.getWindow());
    // What follows the window: the channels of x, of both, and of z.
    Channels channels;
    if (groups == 1) {
      channels = {/*own=*/true, /*shared=*/false, /*filters=*/true};
      llvm::append_range(shape, type.getShape().take_back(2));
      sizes.push_back(sizeOf(b, loc, x, spatial + 1));
      sizes.push_back(sizeOf(b, loc, z, spatial + 1));
    } else if (inPerGroup == 1 && outPerGroup == 1) {
      channels = {/*own=*/false, /*shared=*/true, /*filters=*/false};
      shape.push_back(groups);
      sizes.push_back(b.getIndexAttr(groups));
    } else {
      channels = {/*own=*/true, /*shared=*/true, /*filters=*/true};
      x = splitChannels(b, loc, x, groups, inPerGroup);
      z = splitChannels(b, loc, z, groups, outPerGroup);
      for (int64_t extent : {inPerGroup, groups, outPerGroup}) {
        shape.push_back(extent);
        sizes.push_back(b.getIndexAttr(extent));
      }
    }
    Value y = createSum(op, b, type.clone(shape), sizes, x, z, channels);
    return createReshape(b, loc, y, type);
  }

private:
  /// Which axes of channels follow the window in the result.
  struct Channels {
    bool own, shared, filters;
  };

  static Value createSum(ktn::ConvKernelGradOp op, OpBuilder &b,
                         RankedTensorType type, ArrayRef<OpFoldResult> sizes,
                         Value x, Value z, Channels channels) {
    unsigned spatial = op.getWindow().size(), parallel = type.getRank();
    unsigned loops = parallel + 1 + spatial, next = spatial;
    SmallVector<AffineExpr> xExprs = {b.getAffineDimExpr(parallel)};
    SmallVector<AffineExpr> zExprs = xExprs;
    for (unsigned i = 0; i < spatial; ++i) {
      AffineExpr position = b.getAffineDimExpr(parallel + 1 + i);
      xExprs.push_back(position * op.getStrides()[i] +
                       b.getAffineDimExpr(i) * op.getDilation()[i]);
      zExprs.push_back(position);
    }
    AffineExpr own = channels.own ? b.getAffineDimExpr(next++) : AffineExpr();
    if (channels.shared) {
      xExprs.push_back(b.getAffineDimExpr(next));
      zExprs.push_back(b.getAffineDimExpr(next++));
    }
    if (own)
      xExprs.push_back(own);
    if (channels.filters)
      zExprs.push_back(b.getAffineDimExpr(next));
    return createContraction(
        b, op.getLoc(), type, sizes, {x, z},
        {AffineMap::get(loops, 0, xExprs, b.getContext()),
         AffineMap::get(loops, 0, zExprs, b.getContext()),
         b.getMultiDimIdentityMap(loops).getMajorSubMap(parallel)},
        /*reductions=*/1 + spatial);
  }
};

/// The windows of a pool, without padding that is in all of them.
struct PoolWindows {
  SmallVector<int64_t> sizes, padding;

  template <typename OpT>
  PoolWindows(OpT op, RankedTensorType type)
      : sizes(op.getPoolSize()), padding(op.getPadding()) {
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      int64_t extent = op.getX().getType().getDimSize(1 + axis);
      int64_t windows = type.getDimSize(1 + axis);
      if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(windows))
        continue;
      int64_t &low = padding[2 * axis], &high = padding[2 * axis + 1];
      ktn::PoolWindow window = ktn::withoutCommonPadding(
          {size, low, high}, op.getStrides()[axis], extent, windows);
      std::tie(size, low, high) =
          std::tie(window.size, window.low, window.high);
    }
  }
};

/// y[n, o, c] = body over k of x[n, o * stride + k - low, c]. The extents of
/// the window are those of an unset tensor that is an input beside x.
template <typename OpT>
Value createPool(OpT op, OpBuilder &b, RankedTensorType type, Value x,
                 TypedAttr outside, TypedAttr neutral, ScalarBody body) {
  Location loc = op.getLoc();
  int64_t spatial = type.getRank() - 2;
  SmallVector<int64_t> dilation(spatial, 1);
  PoolWindows windows(op, type);
  x = padSpatial(b, loc, x, windows.padding, outside);
  SmallVector<OpFoldResult> sizes =
      windowSizes(b, loc, x, type, windows.sizes, op.getStrides(), dilation);
  Value extents =
      tensor::EmptyOp::create(b, loc, windows.sizes, type.getElementType());

  unsigned firstWindowLoop = type.getRank();
  unsigned loops = firstWindowLoop + spatial;
  WindowLoops window(b, op.getStrides(), dilation, firstWindowLoop);
  SmallVector<AffineExpr> xExprs = {b.getAffineDimExpr(0)};
  llvm::append_range(xExprs, window.input);
  xExprs.push_back(b.getAffineDimExpr(spatial + 1));
  AffineMap identity = b.getMultiDimIdentityMap(loops);
  return createReduction(
      b, loc, type, sizes, neutral, {x, extents},
      {AffineMap::get(loops, 0, xExprs, b.getContext()),
       AffineMap::get(loops, 0, window.window, b.getContext()),
       identity.getMajorSubMap(type.getRank())},
      spatial, [&](OpBuilder &b, Location loc, ValueRange args) {
        return body(b, loc, {args[0], args[2]});
      });
}

/// y = the largest element of the window that is inside x
struct LowerMaxPool : Lowering<ktn::MaxPoolOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::MaxPoolOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    if (failed(requireChannelsLast(op)) || failed(ktn::requirePadding(op)))
      return failure();
    bool isUnsigned = op.getX().getType().getElementType().isUnsignedInteger();
    TypedAttr lowest = lowestElement(type.getElementType(), isUnsigned);
    return createPool(
        op, b, type, operands.getX(), lowest, lowest,
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          if (isa<FloatType>(args[0].getType()))
            return arith::MaximumFOp::create(b, loc, args[0], args[1]);
          if (isUnsigned)
            return arith::MaxUIOp::create(b, loc, args[0], args[1]);
          return arith::MaxSIOp::create(b, loc, args[0], args[1]);
        });
  }
};

/// y[n, o, c] = the least k, counted in row-major order, at which
/// x[n, o * stride + k - low, c] = max[n, o, c]. The padding is equal to
/// nothing, as NaN is.
struct LowerMaxPoolIndex : Lowering<ktn::MaxPoolIndexOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::MaxPoolIndexOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    Location loc = op.getLoc();
    auto element = cast<FloatType>(op.getX().getType().getElementType());
    Value x = padSpatial(
        b, loc, operands.getX(), op.getPadding(),
        b.getFloatAttr(element, APFloat::getNaN(element.getFloatSemantics())));
    unsigned spatial = op.getPoolSize().size();
    int64_t count = llvm::product_of(op.getPoolSize());
    auto order = llvm::map_to_vector(
        llvm::seq(count), [](int64_t k) { return static_cast<int32_t>(k); });
    Value numbers = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            RankedTensorType::get(op.getPoolSize(), b.getI32Type()),
            ArrayRef<int32_t>(order)));
    TypedAttr none = b.getI32IntegerAttr(static_cast<int32_t>(count));

    unsigned firstWindowLoop = type.getRank();
    unsigned loops = firstWindowLoop + spatial;
    SmallVector<int64_t> dilation(spatial, 1);
    WindowLoops window(b, op.getStrides(), dilation, firstWindowLoop);
    SmallVector<AffineExpr> xExprs = {b.getAffineDimExpr(0)};
    llvm::append_range(xExprs, window.input);
    xExprs.push_back(b.getAffineDimExpr(spatial + 1));
    AffineMap result =
        b.getMultiDimIdentityMap(loops).getMajorSubMap(type.getRank());
    return createReduction(
        b, loc, type, sizesOf(b, loc, operands.getMax()), none,
        {x, operands.getMax(), numbers},
        {AffineMap::get(loops, 0, xExprs, b.getContext()), result,
         AffineMap::get(loops, 0, window.window, b.getContext()), result},
        spatial, [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          Value isMax = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              args[0], args[1]);
          Value nothing = arith::ConstantOp::create(b, loc, none);
          Value number =
              arith::SelectOp::create(b, loc, isMax, args[2], nothing);
          return arith::MinSIOp::create(b, loc, number, args[3]);
        });
  }
};

/// y = the mean of the elements of the window that are inside x. How many those
/// are is the product of their numbers along each axis.
struct LowerAvgPool : Lowering<ktn::AvgPoolOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::AvgPoolOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    if (failed(requireChannelsLast(op)) || failed(ktn::requirePadding(op)))
      return failure();
    Location loc = op.getLoc();
    Type element = type.getElementType();
    TypedAttr zero = b.getZeroAttr(element);

    double scale = 1;
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (int64_t axis = 0; axis < type.getRank() - 2; ++axis) {
      FailureOr<SmallVector<double>> shares = reciprocalCounts(op, type, axis);
      if (failed(shares))
        return failure();
      if (llvm::all_equal(*shares)) {
        scale *= shares->empty() ? 1 : shares->front();
        continue;
      }
      inputs.push_back(createVector(b, loc, element, *shares));
      maps.push_back(
          AffineMap::get(type.getRank(), 0, b.getAffineDimExpr(1 + axis)));
    }

    Value sum =
        createPool(op, b, type, operands.getX(), zero, zero,
                   [](OpBuilder &b, Location loc, ValueRange args) -> Value {
                     return arith::AddFOp::create(b, loc, args[0], args[1]);
                   });
    inputs.insert(inputs.begin(), sum);
    maps.insert(maps.begin(), b.getMultiDimIdentityMap(type.getRank()));
    return createParallel(
        b, loc, type, sizesOf(b, loc, sum), inputs, maps,
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value mean = args[0];
          for (Value share : args.drop_front())
            mean = arith::MulFOp::create(b, loc, mean, share);
          if (scale == 1)
            return mean;
          Value factor =
              arith::ConstantOp::create(b, loc, elementAttr(element, scale));
          return arith::MulFOp::create(b, loc, mean, factor).getResult();
        });
  }

private:
  /// One over the number of window positions inside x along spatial axis
  /// `axis`, for each position of the result; a single value where it is the
  /// same for all.
  static FailureOr<SmallVector<double>>
  reciprocalCounts(ktn::AvgPoolOp op, RankedTensorType type, int64_t axis) {
    int64_t window = op.getPoolSize()[axis], stride = op.getStrides()[axis];
    int64_t low = op.getPadding()[2 * axis],
            high = op.getPadding()[2 * axis + 1];
    if (low == 0 && high == 0)
      return SmallVector<double>{1.0 / window};
    int64_t extent = op.getX().getType().getDimSize(1 + axis);
    if (ShapedType::isDynamic(extent)) {
      op.emitOpError("padding needs the extent of spatial axis ")
          << axis << ", but x has type " << op.getX().getType();
      return failure();
    }
    SmallVector<double> shares;
    for (int64_t o = 0; o < type.getDimSize(1 + axis); ++o) {
      int64_t begin = std::max<int64_t>(o * stride - low, 0);
      int64_t end = std::min(o * stride - low + window, extent);
      shares.push_back(1.0 / std::max<int64_t>(end - begin, 1));
    }
    return shares;
  }

  static Value createVector(OpBuilder &b, Location loc, Type element,
                            ArrayRef<double> values) {
    SmallVector<Attribute> elements;
    for (double value : values)
      elements.push_back(elementAttr(element, value));
    auto type = RankedTensorType::get(values.size(), element);
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, elements));
  }
};

/// y[n, .., c, ..] = x[n, .., c, ..] + bias[c]
struct LowerBiasAdd : Lowering<ktn::BiasAddOp> {
  using Lowering::Lowering;

  FailureOr<Value> lower(ktn::BiasAddOp op, Operands operands,
                         RankedTensorType type, OpBuilder &b) const override {
    AffineMap whole = b.getMultiDimIdentityMap(type.getRank());
    unsigned channel = op.getChannelAxis();
    return createParallel(
        b, op.getLoc(), type, sizesOf(b, op.getLoc(), operands.getX()),
        operands.getOperands(), {whole, whole.getSubMap(channel)},
        [](OpBuilder &b, Location loc, ValueRange args) -> Value {
          if (isa<FloatType>(args[0].getType()))
            return arith::AddFOp::create(b, loc, args[0], args[1]);
          return arith::AddIOp::create(b, loc, args[0], args[1]);
        });
  }
};

} // namespace

void populateNn(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerAvgPool, LowerBiasAdd, LowerConv, LowerConvKernelGrad,
               LowerMaxPool, LowerMaxPoolIndex>(converter,
                                                patterns.getContext());
}

} // namespace keratin::lower
