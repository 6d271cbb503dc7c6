#ifndef KERATIN_IR_CONTROL_TD
#define KERATIN_IR_CONTROL_TD

include "ir/Base.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def Ktn_ConstantOp : Ktn_PureOp<"constant", [
    ConstantLike, AllTypesMatch<["value", "y"]>]> {
  let summary = "a tensor known at compile time";
  let description = [{
    The value is dense, a splat, or a `dense_resource` held outside the IR text.

    ```mlir
    %c = ktn.constant dense<1.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  string kerasName = "";
}

#endif // KERATIN_IR_CONTROL_TD
