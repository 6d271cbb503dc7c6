//===- Index.td - ops with computed positions -------------*- tablegen -*-===//
#ifndef KERATIN_IR_INDEX_TD
#define KERATIN_IR_INDEX_TD

include "ir/Base.td"

class Ktn_IndexOp<string mnemonic, list<Trait> traits = []>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor] # traits> {
  string kerasName = "";
}

def Ktn_GatherOp : Ktn_IndexOp<"gather", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<StepwiseOpInterface>,
    DeclareOpInterfaceMethods<LookupOpInterface>]> {
  let summary = "slices of a tensor by index";
  let description = [{
    `y[b.., i.., j.., k..] = x[b.., i.., indices[b.., j..], k..]`: `b` are the
    `batch_dims` leading axes, which x and indices share, `i` the other axes of
    x before `axis`, `k` those after it. An index is clamped into the axis.

    ```mlir
    %y = ktn.gather %x, %i {axis = 0} : tensor<100x16xf32>, tensor<?x8xi32> -> tensor<?x8x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, Ktn_IntegerTensor:$indices,
      Ktn_I64Attr:$axis, DefaultValuedAttr<Ktn_I64Attr, "0">:$batch_dims);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $x `,` $indices attr-dict `:` type($x) `,` type($indices) `->` type($y)
  }];
  let hasFolder = 1;
}

def Ktn_ScatterAddOp : Ktn_IndexOp<"scatter_add", [
    DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "sum of slices by index";
  let description = [{
    `y = x`, and then `y[indices[j..], k..] += updates[j.., k..]` for every
    `j`, in any order. An index is clamped into axis 0: this is the gradient of
    `ktn.gather` along axis 0.

    ```mlir
    %y = ktn.scatter_add %x, %i, %u : tensor<100x16xf32>, tensor<?x8xi32>, tensor<?x8x16xf32>
    ```
  }];
  let arguments = (ins Ktn_NumberTensor:$x, Ktn_IntegerTensor:$indices,
                       Ktn_NumberTensor:$updates);
  let results = (outs Ktn_NumberTensor:$y);
  let assemblyFormat = [{
    $x `,` $indices `,` $updates attr-dict
    `:` type($x) `,` type($indices) `,` type($updates)
  }];
  let hasVerifier = 1;
}

def Ktn_SparseOp : Ktn_IndexOp<"sparse", [
    DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>]> {
  let summary = "a matrix of zeros but for some elements";
  let description = [{
    `y[rows[i], columns[i]]` is the sum of `values[i]` over all such `i`, and 0
    elsewhere; `target` are the extents of y. Who multiplies by y or joins it
    can work on its elements instead. An index out of range is clamped.

    ```mlir
    %y = ktn.sparse %v at %r, %c to [100, 50] : tensor<7xf32> at tensor<7xi32>, tensor<7xi32> -> tensor<100x50xf32>
    ```
  }];
  let arguments = (ins Ktn_NumberTensor:$values, Ktn_IntegerTensor:$rows,
                       Ktn_IntegerTensor:$columns, DenseI64ArrayAttr:$target);
  let results = (outs Ktn_NumberTensor:$y);
  let assemblyFormat = [{
    $values `at` $rows `,` $columns `to` $target attr-dict
    `:` type($values) `at` type($rows) `,` type($columns) `->` type($y)
  }];
}

def Ktn_IotaOp : Ktn_IndexOp<"iota", [
    DeclareOpInterfaceMethods<ShapeRefinementOpInterface>]> {
  let summary = "positions along an axis";
  let description = [{
    `y[.., i, ..] = i` along `axis`, of shape `target` and element type `dtype`,
    in which every index is exact or rounded to nearest. A `?` of `target` is
    the element of `shape`, which has one element an axis.

    ```mlir
    %y = ktn.iota [4, 8], f32 {axis = 1} : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Optional<Ktn_ExtentsTensor>:$shape,
                       DenseI64ArrayAttr:$target, Ktn_I64Attr:$axis,
                       Ktn_ElementTypeAttr:$dtype);
  let results = (outs Ktn_NumberTensor:$y);
  let assemblyFormat = [{
    (`shape` $shape^ `:` type($shape) `to`)? custom<Extents>($target) `,` $dtype
    attr-dict `:` type($y)
  }];
}

#endif // KERATIN_IR_INDEX_TD
