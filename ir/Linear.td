//===- Linear.td - products -------------------------------*- tablegen -*-===//
#ifndef KERATIN_IR_LINEAR_TD
#define KERATIN_IR_LINEAR_TD

include "ir/Base.td"

def Ktn_DotGeneralOp : Ktn_PureOp<"dot_general", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<LinearInKernelOpInterface>,
    DeclareOpInterfaceMethods<StackableOpInterface>,
    DeclareOpInterfaceMethods<JoinableOpInterface>,
    DeclareOpInterfaceMethods<RowwiseOpInterface>,
    DeclareOpInterfaceMethods<StepSumOpInterface,
                              ["buildStepSum", "isAdditive"]>]> {
  let summary = "sum of products over paired axes";
  let description = [{
    `y[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, j, k]`: `b` are the axes
    `lhs_batch` of lhs and `rhs_batch` of rhs, `k` are `lhs_contract` and
    `rhs_contract`, `i` and `j` are the other axes of lhs and of rhs in their
    order. Paired axes have the same extent. The order of the sum is any.

    ```mlir
    %y = ktn.dot_general %a, %b batch [0] x [0] contract [2] x [1]
        : tensor<?x8x16xf32>, tensor<?x16x4xf32> -> tensor<?x8x4xf32>
    ```
  }];
  let arguments = (ins Ktn_NumberTensor:$lhs, Ktn_NumberTensor:$rhs,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhs_batch,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhs_batch,
      DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Ktn_NumberTensor:$y);
  let assemblyFormat = [{
    $lhs `,` $rhs (`batch` $lhs_batch^ `x` $rhs_batch)?
    `contract` $lhs_contract `x` $rhs_contract attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($y)
  }];
  let hasCanonicalizeMethod = 1;
  string kerasName = "";
}

#endif // KERATIN_IR_LINEAR_TD
