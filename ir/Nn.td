//===- Nn.td - ops of neural networks ---------------------*- tablegen -*-===//
#ifndef KERATIN_IR_NN_TD
#define KERATIN_IR_NN_TD

include "ir/Base.td"

/// Ops with a moving window over 1 to 3 spatial axes. `padding` is the flat
/// list [low, high] of each spatial axis. With `same` it is not known yet, as
/// it depends on extents that are not: it becomes that of TensorFlow's "same".
class Ktn_WindowOp<string mnemonic, list<Trait> traits = []>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor,
          DeclareOpInterfaceMethods<ShapeRefinementOpInterface>,
          DeclareOpInterfaceMethods<LayoutOpInterface>] # traits> {
  string kerasName = "";
  let extraClassDeclaration = [{
    /// The axes of operand 0 and the result that carry the image.
    ::llvm::SmallVector<int64_t> getSpatialAxes() {
      return spatialAxes(getX().getType().getRank(), getDataFormat());
    }
    int64_t getChannelAxis() {
      return channelAxis(getX().getType().getRank(), getDataFormat());
    }
  }];
  let extraClassDefinition = [{
    bool $cppClass::isChannelsFirst() {
      return getDataFormat() == DataFormat::ChannelsFirst;
    }
    void $cppClass::markChannelsLast() {
      setDataFormat(DataFormat::ChannelsLast);
    }
  }];
}

def Ktn_ConvOp : Ktn_WindowOp<"conv", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<LinearInKernelOpInterface, ["getSummedAxes"]>]> {
  let summary = "convolution (cross-correlation)";
  let description = [{
    `y[n, p, o] = sum over k, c of x[n, p * stride + k * dilation - low, g(o) + c] * kernel[k, c, o]`
    with zeros outside of `x`; `p` and `k` run over 1 to 3 spatial axes. Output
    channel `o` sees the input channels of its group, `g(o)` is the first of
    them. `kernel` is `spatial.., in / groups, out`. The order of the sum is any.

    ```mlir
    %y = ktn.conv %x, %k strides [2, 2] padding [0, 1, 0, 1] dilation [1, 1] channels_last
        : tensor<?x32x32x3xf32>, tensor<3x3x3x16xf32> -> tensor<?x16x16x16xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$kernel,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding,
      DenseI64ArrayAttr:$dilation, DefaultValuedAttr<Ktn_I64Attr, "1">:$groups,
      Ktn_DataFormatAttr:$data_format, UnitAttr:$same);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = [{
    $x `,` $kernel `strides` $strides `padding` $padding `dilation` $dilation
    $data_format attr-dict `:` type($x) `,` type($kernel) `->` type($y)
  }];
}

def Ktn_ConvTransposeOp : Ktn_WindowOp<"conv_transpose", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>,
    DeclareOpInterfaceMethods<LinearInKernelOpInterface>]> {
  let summary = "transposed convolution";
  let description = [{
    The gradient of `ktn.conv` with respect to its input: for `z` of the result's
    shape, `sum(conv(z, kernel) * x) = sum(z * y)`, where `conv` has the same
    strides, padding, dilation and groups. `kernel` is
    `spatial.., out / groups, in`. `output_shape` are the spatial extents of the
    result, from which `conv` gives those of `x`; a `?` among them is the element
    of `shape`, which has one element a spatial axis, or without `shape` the
    least that does.

    ```mlir
    %y = ktn.conv_transpose %x, %k strides [2, 2] padding [0, 1, 0, 1] dilation [1, 1] to [32, 32] channels_last
        : tensor<?x16x16x8xf32>, tensor<3x3x4x8xf32> -> tensor<?x32x32x4xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$kernel,
      Optional<Ktn_ExtentsTensor>:$shape,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding,
      DenseI64ArrayAttr:$dilation, DenseI64ArrayAttr:$output_shape,
      DefaultValuedAttr<Ktn_I64Attr, "1">:$groups,
      Ktn_DataFormatAttr:$data_format, UnitAttr:$same);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = [{
    $x `,` $kernel (`shape` $shape^ `:` type($shape))? `strides` $strides `padding` $padding `dilation` $dilation
    `to` custom<Extents>($output_shape) $data_format attr-dict
    `:` type($x) `,` type($kernel) `->` type($y)
  }];
}

/// The third of the derivatives of `sum(conv(x, kernel) * z)`, which is linear
/// in each of x, kernel and z: by kernel. By z it is `conv`, by x it is
/// `conv_transpose`, so the three are each other's gradients.
def Ktn_ConvKernelGradOp : Ktn_PureOp<"conv_kernel_grad", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "gradient of a convolution with respect to its kernel";
  let description = [{
    `y[k, c, o] = sum over n, p of x[n, p * stride + k * dilation - low, g(o) + c] * z[n, p, o]`
    for `k` below `window`, with zeros outside of `x`: `sum(y * w)` is
    `sum(conv(x, w) * z)` for every kernel `w`, where `conv` has the same
    strides, padding, dilation and groups. `x` and `z` are channels_last.

    ```mlir
    %y = ktn.conv_kernel_grad %x, %z window [3, 3] strides [2, 2] padding [0, 1, 0, 1] dilation [1, 1]
        : tensor<?x32x32x3xf32>, tensor<?x16x16x16xf32> -> tensor<3x3x3x16xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$z,
      DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
      DefaultValuedAttr<Ktn_I64Attr, "1">:$groups);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = [{
    $x `,` $z `window` $window `strides` $strides `padding` $padding
    `dilation` $dilation attr-dict `:` type($x) `,` type($z) `->` type($y)
  }];
  string kerasName = "";
}

class Ktn_PoolOp<string mnemonic, string formula>
    : Ktn_WindowOp<mnemonic, [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let description = formula # [{ The window at
    `p` holds `x[n, p * stride + k - low, c]` for `k` below `pool_size`, 1 to 3
    spatial axes; the padding is less than the window on each side.

    ```mlir
    %y = ktn.}] # mnemonic # [{ %x size [2, 2] strides [2, 2] padding [0, 0, 0, 0] channels_last
        : tensor<?x32x32x8xf32> -> tensor<?x16x16x8xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, DenseI64ArrayAttr:$pool_size,
      DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding,
      Ktn_DataFormatAttr:$data_format, UnitAttr:$same);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = [{
    $x `size` $pool_size `strides` $strides `padding` $padding $data_format
    attr-dict `:` type($x) `->` type($y)
  }];
}
def Ktn_MaxPoolOp : Ktn_PoolOp<"max_pool", [{
    `y[n, p, c]` is the largest element of the window at `p` that lies inside
    `x`; NaN if one is NaN. Of equal elements the first one in row-major order
    has the gradient.}]> {
  let summary = "maximum over a moving window";
}
def Ktn_AvgPoolOp : Ktn_PoolOp<"avg_pool", [{
    `y[n, p, c]` is the mean of the elements of the window at `p` that lie
    inside `x`: the padding does not count.}]> {
  let summary = "mean over a moving window";
}

/// What a gradient has to know of a max_pool, by numbers and not by elements.
def Ktn_MaxPoolIndexOp : Ktn_PureOp<"max_pool_index", [InferTypeOpAdaptor]> {
  let summary = "where in its window a maximum is";
  let description = [{
    `y[n, p, c]` is the number, counted in row-major order, of the first element
    of the window at `p` that lies inside `x` and equals `max[n, p, c]`; the
    number of elements of a window where none does, as for NaN. `max` is
    `ktn.max_pool` of `x` with the same window; both are channels_last.

    ```mlir
    %y = ktn.max_pool_index %x, %max size [2, 2] strides [2, 2] padding [0, 0, 0, 0]
        : tensor<?x32x32x8xf32>, tensor<?x16x16x8xf32> -> tensor<?x16x16x8xi32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$max,
      DenseI64ArrayAttr:$pool_size, DenseI64ArrayAttr:$strides,
      DenseI64ArrayAttr:$padding);
  let results = (outs RankedTensorOf<[I32]>:$y);
  let assemblyFormat = [{
    $x `,` $max `size` $pool_size `strides` $strides `padding` $padding
    attr-dict `:` type($x) `,` type($max) `->` type($y)
  }];
  string kerasName = "";
}

def Ktn_BiasAddOp : Ktn_PureOp<"bias_add", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<LayoutOpInterface>,
    DeclareOpInterfaceMethods<StackableOpInterface>,
    DeclareOpInterfaceMethods<AffineOpInterface,
                              ["isAffineIn", "getAxisInResult"]>]> {
  let summary = "adds a per-channel bias";
  let description = [{
    `y[n, .., c, ..] = x[n, .., c, ..] + bias[c]`. The channel axis is axis 1
    for `channels_first` and the last for `channels_last`; axis 0 is the batch.

    ```mlir
    %y = ktn.bias_add %x, %b, channels_last : tensor<8x28x16xf32>, tensor<16xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$bias,
                       Ktn_DataFormatAttr:$data_format);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat =
    "$x `,` $bias `,` $data_format attr-dict `:` type($x) `,` type($bias)";
  let hasVerifier = 1;
  let extraClassDeclaration = "int64_t getChannelAxis();";
  string kerasName = "";
}

def Ktn_BatchNormOp : Ktn_PureOp<"batch_norm", [
    InferTypeOpAdaptor, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>]> {
  let summary = "normalisation with given statistics";
  let description = [{
    `y = (x - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c]`, `c`
    the index along `axis`; without `gamma` it is 1, without `beta` 0.

    ```mlir
    %y = ktn.batch_norm %x, %m, %v gamma %g : tensor<4xf32> beta %b : tensor<4xf32> {axis = 3, epsilon = 0.001}
        : tensor<?x8x8x4xf32>, tensor<4xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$mean,
      Ktn_FloatTensor:$variance, Optional<Ktn_FloatTensor>:$gamma,
      Optional<Ktn_FloatTensor>:$beta, Ktn_I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = [{
    $x `,` $mean `,` $variance (`gamma` $gamma^ `:` type($gamma))?
    (`beta` $beta^ `:` type($beta))? attr-dict
    `:` type($x) `,` type($mean) `,` type($variance)
  }];
  let hasVerifier = 1;
  string kerasName = "";
}

def Ktn_SoftmaxOp : Ktn_PureOp<"softmax", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>]> {
  let summary = "exponentials that sum to one along an axis";
  let description = [{
    `y = e^(x - m) / sum of e^(x - m)` along `axis`, `m` the maximum of `x`
    along `axis`.

    ```mlir
    %y = ktn.softmax %x {axis = 1} : tensor<?x10xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_I64Attr:$axis);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
  string kerasName = "";
}

#endif // KERATIN_IR_NN_TD
