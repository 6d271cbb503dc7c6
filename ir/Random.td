//===- Random.td - random numbers -------------------------*- tablegen -*-===//
#ifndef KERATIN_IR_RANDOM_TD
#define KERATIN_IR_RANDOM_TD

include "ir/Base.td"

def Ktn_RandomTensor : Ktn_TensorOf<[Ktn_Float, I32], "floats or i32">;

/// A primitive: no formula over other ops can make bits. Distributions are
/// composites over it.
def Ktn_RandomOp : Ktn_PureOp<"random", [
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<ShapeRefinementOpInterface>]> {
  let summary = "random numbers that a key and a counter determine";
  let description = [{
    Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
    2011) of `state = [key, call]`: block `j` is the cipher of the counter
    `(j, call)`, low words first, under `key`. Element `i` of the `n` of the
    result, in row-major order, is word `i / m` of block `i mod m` with
    `m = ceil(n / 4)`; an element of f64 takes two words, so there `m` is
    `ceil(n / 2)`. An i32 is the word itself. A float is uniform in [0, 1): a
    multiple of 2^-8 (bf16), 2^-11 (f16), 2^-24 (f32) or 2^-53 (f64), made of
    the upper bits. A `?` of `target` is the element of `shape`, which has one
    element an axis. Pure: the same state gives the same numbers. Not
    differentiable.

    ```mlir
    %u = ktn.random %state : tensor<2xi64> to [8, 16], f32 : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Ktn_ExtentsTensor:$state,
                       Optional<Ktn_ExtentsTensor>:$shape,
                       DenseI64ArrayAttr:$target, Ktn_ElementTypeAttr:$dtype);
  let results = (outs Ktn_RandomTensor:$y);
  let assemblyFormat = [{
    $state `:` type($state) (`shape` $shape^ `:` type($shape))? `to` custom<Extents>($target)
    `,` $dtype attr-dict `:` type($y)
  }];
  string kerasName = "";
}

#endif // KERATIN_IR_RANDOM_TD
