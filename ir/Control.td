//===- Control.td - values, variables, gradients, loops ---*- tablegen -*-===//
#ifndef KERATIN_IR_CONTROL_TD
#define KERATIN_IR_CONTROL_TD

include "ir/Base.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

def Ktn_Variables : Resource<"::keratin::ktn::Variables">;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

def Ktn_PlaceholderOp : Ktn_Op<"placeholder"> {
  let summary = "a value that the caller of the function gives";
  let description = [{
    The argument `name` of the function that is made of the graph. It has no
    value before: `ktn.placeholder` does not occur in a finished function. Not
    pure, so that two placeholders never become one.

    ```mlir
    %x = ktn.placeholder "image" : tensor<?x784xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$name attr-dict `:` type($y)";
  string kerasName = "";
}

def Ktn_ConstantOp : Ktn_PureOp<"constant", [
    ConstantLike, InferTypeOpAdaptor]> {
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

def Ktn_StopGradientOp : Ktn_PureOp<"stop_gradient", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "a value through which no gradient flows";
  let description = [{
    `y = x`, and the gradient by `x` is none.

    ```mlir
    %y = ktn.stop_gradient %x : tensor<?x16xf32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Ktn_TrainingPhaseOp : Ktn_PureOp<"training_phase", [InferTypeOpAdaptor]> {
  let summary = "whether the function trains";
  let description = [{
    True in a training step, false in inference: a constant of the compiled
    function.

    ```mlir
    %t = ktn.training_phase : tensor<i1>
    ```
  }];
  let results = (outs Ktn_BoolTensor:$y);
  let assemblyFormat = "attr-dict `:` type($y)";
  string kerasName = "";
}

def Ktn_GradientsOp : Ktn_PureOp<"gradients", [
    InferTypeOpAdaptor, AttrSizedOperandSegments]> {
  let summary = "gradients of the sum of targets";
  let description = [{
    `grads[i]` is the derivative of the sum of all elements of all `targets` by
    `wrt[i]`, and has its type.

    ```mlir
    %dw, %db = ktn.gradients %loss wrt %w, %b : tensor<f32> wrt tensor<16x4xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<Ktn_FloatTensor>:$targets,
                       Variadic<Ktn_FloatTensor>:$wrt);
  let results = (outs Variadic<Ktn_FloatTensor>:$grads);
  let assemblyFormat = [{
    $targets `wrt` $wrt attr-dict `:` type($targets) `wrt` type($wrt)
  }];
  string kerasName = "";
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

def Ktn_VariableOp : Ktn_Op<"variable", [Symbol]> {
  let summary = "a tensor that lives longer than a call";
  let description = [{
    A symbol of the module with a type and the value it starts with. A variable
    that no function assigns is a constant.

    ```mlir
    ktn.variable @w : tensor<4xf32> = dense<0.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Ktn_Tensor>:$type,
                       ElementsAttr:$initial_value);
  let assemblyFormat = "$sym_name `:` $type `=` $initial_value attr-dict";
  let hasVerifier = 1;
  string kerasName = "";
}

def Ktn_ReadOp : Ktn_Op<"read", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead<Ktn_Variables>]>]> {
  let summary = "value of a variable";
  let description = [{
    The value of `variable` where the op stands among the assignments.

    ```mlir
    %w = ktn.read @w : tensor<4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$variable attr-dict `:` type($y)";
  string kerasName = "";
}

def Ktn_AssignOp : Ktn_Op<"assign", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite<Ktn_Variables>]>]> {
  let summary = "new value of a variable";
  let description = [{
    `variable = x` from here on.

    ```mlir
    ktn.assign @w, %x : tensor<4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Ktn_Tensor:$x);
  let assemblyFormat = "$variable `,` $x attr-dict `:` type($x)";
  string kerasName = "";
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

def Ktn_ScanOp : Ktn_Op<"scan", [
    InferTypeOpAdaptor, AttrSizedOperandSegments, RecursiveMemoryEffects,
    SingleBlock]> {
  let summary = "a step repeated along the time axis";
  let description = [{
    For each step `t`, the body takes the slices `xs[t]` and the states, which
    start as `init`, and yields the new states and the outputs of the step. The
    results are the last states and the outputs stacked along a new axis 0. `t`
    runs over axis 0 of `xs`, backwards when `reverse` is set; the outputs of
    step `t` are at `t` either way. Without `xs` there are `length` steps. The
    body may use values from outside.

    ```mlir
    %h, %ys = ktn.scan (%x = %xs : tensor<10x?x8xf32>) init (%s = %s0 : tensor<?x8xf32>) {
      %n = ktn.add %x, %s : tensor<?x8xf32>
      ktn.yield %n, %n : tensor<?x8xf32>, tensor<?x8xf32>
    } -> (tensor<?x8xf32>, tensor<10x?x8xf32>)
    ```
  }];
  let arguments = (ins Variadic<Ktn_Tensor>:$xs, Variadic<Ktn_Tensor>:$init,
                       OptionalAttr<Ktn_I64Attr>:$length,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Variadic<Ktn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The body's argument types for these operands: slices, then states.
    static ::mlir::FailureOr<::llvm::SmallVector<::mlir::Type>>
    inferBodyArgumentTypes(std::optional<::mlir::Location> location,
                           ::mlir::ValueRange xs, ::mlir::ValueRange init);
    /// Makes the op from a traced `body` that ends in `ktn.yield`, or fails with
    /// a diagnostic when the body does not fit the operands.
    static ::mlir::FailureOr<ScanOp>
    createChecked(::mlir::OpBuilder &b, ::mlir::Location location,
                  ::mlir::ValueRange xs, ::mlir::ValueRange init,
                  std::optional<int64_t> length, bool reverse,
                  std::unique_ptr<::mlir::Region> body);
    /// The number of steps, kDynamic when it is known at run time only.
    int64_t getStepCount();
    ::mlir::Block::BlockArgListType getSlices() {
      return getBody().getArguments().take_front(getXs().size());
    }
    ::mlir::Block::BlockArgListType getStates() {
      return getBody().getArguments().drop_front(getXs().size());
    }
    ::mlir::OperandRange getYieldedStates();
    ::mlir::OperandRange getYieldedOutputs();
    ::mlir::ResultRange getFinalStates() {
      return getResults().take_front(getInit().size());
    }
    ::mlir::ResultRange getStackedOutputs() {
      return getResults().drop_front(getInit().size());
    }
  }];
  string kerasName = "";
}

def Ktn_YieldOp : Ktn_PureOp<"yield", [
    Terminator, ReturnLike, HasParent<"ScanOp">]> {
  let summary = "results of one step";
  let description = [{
    Ends the body of `ktn.scan`: first the new states, then the outputs of the
    step.

    ```mlir
    %h, %ys = ktn.scan (%x = %xs : tensor<10x8xf32>) init (%s = %s0 : tensor<8xf32>) {
      ktn.yield %x, %s : tensor<8xf32>, tensor<8xf32>
    } -> (tensor<8xf32>, tensor<10x8xf32>)
    ```
  }];
  let arguments = (ins Variadic<Ktn_Tensor>:$values);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
  string kerasName = "";
}

#endif // KERATIN_IR_CONTROL_TD
