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
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<VjpOpInterface, ["isDifferentiable"]>]> {
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

def Ktn_ChooseOp : Ktn_PureOp<"choose", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>]> {
  let summary = "one of two tensors, whole";
  let description = [{
    `y = cond ? a : b`. The two may differ in shape but not in rank; an extent
    in which they differ is `?` in `y`. Where `cond` is a constant the other
    tensor is not computed. Otherwise both are, and their shapes must be the
    same by the time the op is decomposed.

    ```mlir
    %y = ktn.choose %c, %a, %b : tensor<i1>, tensor<2x3xf32>, tensor<4x3xf32> -> tensor<?x3xf32>
    ```
  }];
  let arguments = (ins 0DTensorOf<[I1]>:$cond, Ktn_Tensor:$a, Ktn_Tensor:$b);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $cond `,` $a `,` $b attr-dict `:` type($cond) `,` type($a) `,` type($b)
    `->` type($y)
  }];
  let hasFolder = 1;
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
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<VjpOpInterface>,
    MemoryEffects<[MemWrite<Ktn_Variables>]>]> {
  let summary = "new value of a variable";
  let description = [{
    `variable = x` from here on, and `y = x`.

    ```mlir
    %y = ktn.assign @w, %x : tensor<4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Ktn_Tensor:$x);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$variable `,` $x attr-dict `:` type($x)";
  string kerasName = "";
}

def Ktn_AfterOp : Ktn_PureOp<"after", [
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<VjpOpInterface, ["isDifferentiable"]>]> {
  let summary = "a value together with assignments";
  let description = [{
    `y = x`, and who asks for `y` wants the assignments that `events` depend on
    as well. Occurs in graphs only: in a finished function they stand on their
    own.

    ```mlir
    %y = ktn.after %x, %e : tensor<4xf32>, tensor<f32>
    ```
  }];
  let arguments = (ins Ktn_Tensor:$x, Variadic<Ktn_Tensor>:$events);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat =
    "$x `,` $events attr-dict `:` type($x) `,` type($events)";
  string kerasName = "";
}

//===----------------------------------------------------------------------===//
// The program around the function
//===----------------------------------------------------------------------===//

def Ktn_HostOp : Ktn_Op<"host"> {
  let summary = "what the program makes of values of a call";
  let description = [{
    After each call of the function the program applies its own function number
    `task` to the values of `operands`; `results` are what it returns, and their
    extents may depend on the values. Occurs in graphs only: a finished function
    has the operands as outputs.

    ```mlir
    %y = ktn.host 3 (%x) : (tensor<?x8xi32>) -> tensor<?x?xi32>
    ```
  }];
  let arguments = (ins Ktn_I64Attr:$task, Variadic<Ktn_Tensor>:$operands);
  let results = (outs Variadic<Ktn_Tensor>:$results);
  let assemblyFormat =
    "$task `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
  string kerasName = "";
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

def Ktn_ScanOp : Ktn_Op<"scan", [
    InferTypeOpAdaptor, AttrSizedOperandSegments, RecursiveMemoryEffects,
    SingleBlock, DeclareOpInterfaceMethods<ShapeRefinementOpInterface>,
    DeclareOpInterfaceMethods<VjpOpInterface, ["getVjpInputs"]>]> {
  let summary = "a step repeated along the time axis";
  let description = [{
    For each step `t`, the body takes the slices `xs[t]` and the states, which
    start as `init`, and yields the new states and the outputs of the step. The
    results are the last states and the outputs stacked along a new axis 0. `t`
    runs over axis 0 of `xs`, backwards when `reverse` is set; the outputs of
    step `t` are at `t` either way. Without `xs` there are `length` steps. The
    body may use values from outside.

    The gradient is a scan in the other direction that computes the step again
    from the state before it. These states are kept: all of them, or with
    `checkpoint_every` one in so many steps, from which the others are computed
    again.

    ```mlir
    %h, %ys = ktn.scan (%x = %xs : tensor<10x?x8xf32>) init (%s = %s0 : tensor<?x8xf32>) {
      %n = ktn.add %x, %s : tensor<?x8xf32>
      ktn.yield %n, %n : tensor<?x8xf32>, tensor<?x8xf32>
    } -> (tensor<?x8xf32>, tensor<10x?x8xf32>)
    ```
  }];
  let arguments = (ins Variadic<Ktn_Tensor>:$xs, Variadic<Ktn_Tensor>:$init,
                       OptionalAttr<Ktn_I64Attr>:$length,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse,
                       OptionalAttr<Ktn_I64Attr>:$checkpoint_every);
  let results = (outs Variadic<Ktn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
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
    /// Values from outside that the body uses.
    ::llvm::SmallVector<::mlir::Value> getCaptures();
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
