//===- Shape.td - ops that move elements ------------------*- tablegen -*-===//
#ifndef KERATIN_IR_SHAPE_TD
#define KERATIN_IR_SHAPE_TD

include "ir/Base.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class Ktn_MovementOp<string mnemonic, list<Trait> traits = []>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor] # traits> {
  string kerasName = ""; // Keras takes negative axes, single ones, or a shape
}

def Ktn_ShapeOp : Ktn_MovementOp<"shape"> {
  let summary = "extents of a tensor";
  let description = [{
    `y[i]` is the extent of axis `i` of `x`.

    ```mlir
    %y = ktn.shape %x : tensor<?x16xf32> -> tensor<2xi64>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x);
  let results = (outs Ktn_ExtentsTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasFolder = 1;
}

def Ktn_ReshapeOp : Ktn_MovementOp<"reshape", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>,
    DeclareOpInterfaceMethods<ShapeRefinementOpInterface>]> {
  let summary = "same elements, other shape";
  let description = [{
    The elements of `x` in row-major order, with the extents `target`. One `?`
    of `target` follows from the element count. With the operand `shape`, which
    has one element an axis, each `?` is the element of `shape` at its axis.
    Undefined when the element counts differ at run time.

    ```mlir
    %y = ktn.reshape %x to [?, 4, 4] : tensor<?x16xf32> -> tensor<?x4x4xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, Optional<Ktn_ExtentsTensor>:$shape,
                       DenseI64ArrayAttr:$target);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $x (`shape` $shape^ `:` type($shape))? `to` custom<Extents>($target)
    attr-dict `:` type($x) `->` type($y)
  }];
  let builders = [OpBuilder<
      (ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$target), [{
    build($_builder, $_state, x, /*shape=*/::mlir::Value(), target);
  }]>];
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Ktn_TransposeOp : Ktn_MovementOp<"transpose", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>,
    DeclareOpInterfaceMethods<StepwiseOpInterface>]> {
  let summary = "permutation of the axes";
  let description = [{
    Axis `i` of `y` is axis `permutation[i]` of `x`.

    ```mlir
    %y = ktn.transpose %x, [0, 2, 1] : tensor<?x8x16xf32> -> tensor<?x16x8xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x `,` $permutation attr-dict `:` type($x) `->` type($y)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Ktn_BroadcastToOp : Ktn_MovementOp<"broadcast_to", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>,
    DeclareOpInterfaceMethods<ShapeRefinementOpInterface>]> {
  let summary = "repetition along axes of extent 1 and new leading axes";
  let description = [{
    `x` repeated to the extents `target`, axes aligned at the right as in NumPy.
    A `?` of `target` is the extent of `x` at that axis or, with the operand
    `shape`, which has one element an axis, the element of `shape`. Undefined
    when an extent of `x` is neither 1 nor the target's at run time.

    ```mlir
    %y = ktn.broadcast_to %x to [?, 8, 16] : tensor<?x1x16xf32> -> tensor<?x8x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, Optional<Ktn_ExtentsTensor>:$shape,
                       DenseI64ArrayAttr:$target);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $x (`shape` $shape^ `:` type($shape))? `to` custom<Extents>($target)
    attr-dict `:` type($x) `->` type($y)
  }];
  let builders = [OpBuilder<
      (ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$target), [{
    build($_builder, $_state, x, /*shape=*/::mlir::Value(), target);
  }]>];
  let hasFolder = 1;
}

def Ktn_ExpandDimsOp : Ktn_MovementOp<"expand_dims", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>]> {
  let summary = "insertion of axes of extent 1";
  let description = [{
    `x` with an axis of extent 1 at each of `axes`, which are sorted and count
    in the result.

    ```mlir
    %y = ktn.expand_dims %x, [1] : tensor<?x16xf32> -> tensor<?x1x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x `,` $axes attr-dict `:` type($x) `->` type($y)";
  let hasFolder = 1;
}

def Ktn_SqueezeOp : Ktn_MovementOp<"squeeze", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>,
    DeclareOpInterfaceMethods<TransposableOpInterface>]> {
  let summary = "removal of axes of extent 1";
  let description = [{
    `x` without `axes`, which are sorted. Undefined when a `?` among them is not
    1 at run time.

    ```mlir
    %y = ktn.squeeze %x, [1] : tensor<?x1x16xf32> -> tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x `,` $axes attr-dict `:` type($x) `->` type($y)";
  let hasFolder = 1;
}

def Ktn_ConcatOp : Ktn_MovementOp<"concat", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface, ["isAdditive"]>,
    DeclareOpInterfaceMethods<TransposableOpInterface>]> {
  let summary = "tensors after one another";
  let description = [{
    `xs` one after another along `axis`; the other extents are the same.

    ```mlir
    %y = ktn.concat %a, %b {axis = 1} : tensor<?x4xf32>, tensor<?x8xf32> -> tensor<?x12xf32>
    ```
  }];
  let arguments = (ins Variadic<Ktn_Tensor>:$xs, Ktn_I64Attr:$axis);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$xs attr-dict `:` type($xs) `->` type($y)";
  let hasFolder = 1;
}

def Ktn_SliceOp : Ktn_MovementOp<"slice", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface>,
    DeclareOpInterfaceMethods<TransposableOpInterface>]> {
  let summary = "evenly spaced elements of each axis";
  let description = [{
    `y[i, ..] = x[starts[0] + i * strides[0], ..]` below `ends[0]`, for each
    axis; the end `?` is the extent of the axis. Undefined when an axis of
    extent `?` is shorter than `starts` or `ends` say.

    ```mlir
    %y = ktn.slice %x[0:?:1, 1:8:2] : tensor<?x16xf32> -> tensor<?x4xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$starts,
                       DenseI64ArrayAttr:$ends, DenseI64ArrayAttr:$strides);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $x `` custom<Ranges>($starts, $ends, $strides) attr-dict
    `:` type($x) `->` type($y)
  }];
  let hasFolder = 1;
}

def Ktn_PadOp : Ktn_MovementOp<"pad", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface, ["isAdditive"]>,
    DeclareOpInterfaceMethods<TransposableOpInterface>]> {
  let summary = "constant margin";
  let description = [{
    `x` with `low[i]` elements `value` before and `high[i]` after it along each
    axis `i`.

    ```mlir
    %y = ktn.pad %x low [0, 1] high [0, 2] value 0.0 : f32 : tensor<?x16xf32> -> tensor<?x19xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high, TypedAttrInterface:$value);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $x `low` $low `high` $high `value` $value attr-dict
    `:` type($x) `->` type($y)
  }];
  let hasVerifier = 1;
}

def Ktn_ReverseOp : Ktn_MovementOp<"reverse", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<TransposableOpInterface>]> {
  let summary = "reversal of axes";
  let description = [{
    `y[.., i, ..] = x[.., n - 1 - i, ..]` along each of `axes`, which are
    sorted.

    ```mlir
    %y = ktn.reverse %x, [1] : tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, DenseI64ArrayAttr:$axes);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x `,` $axes attr-dict `:` type($x)";
}

#endif // KERATIN_IR_SHAPE_TD
