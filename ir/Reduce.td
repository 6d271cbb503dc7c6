//===- Reduce.td - reductions over axes -------------------*- tablegen -*-===//
#ifndef KERATIN_IR_REDUCE_TD
#define KERATIN_IR_REDUCE_TD

include "ir/Base.td"

/// `axes` are sorted, distinct and non-negative; none reduces nothing. With
/// `keepdims` a reduced axis stays with extent 1.
class Ktn_ReduceOp<string mnemonic, string formula, Type tensor = Ktn_NumberTensor,
                   string element = "f32", list<Trait> traits = []>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor,
          DeclareOpInterfaceMethods<ReductionOpInterface>,
          DeclareOpInterfaceMethods<TransposableOpInterface>] # traits> {
  let description = formula # [{ `axes` are
    sorted; a reduced axis goes, or stays with extent 1 when `keepdims` is set.

    ```mlir
    %y = ktn.}] # mnemonic # [{ %x, [1] : tensor<8x16x}] # element # [{> -> tensor<8x}] # element # [{>
    ```
  }];
  let arguments = (ins tensor:$x, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<BoolAttr, "false">:$keepdims);
  let results = (outs tensor:$y);
  let assemblyFormat = "$x `,` $axes attr-dict `:` type($x) `->` type($y)";
  string kerasName = ""; // Keras takes one axis, negative ones, or none
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferReduction(location, adaptor.getX(), adaptor.getAxes(),
                            adaptor.getKeepdims(), types);
    }
    ::llvm::SmallVector<int64_t> $cppClass::getReducedAxes() {
      return ::llvm::to_vector(getAxes());
    }
    ::mlir::Value $cppClass::buildUntransposed(
        ::mlir::OpBuilder &b, ::mlir::ValueRange operands,
        ::llvm::SmallVector<int64_t> &permutation) {
      ::llvm::SmallVector<int64_t> axes = axesBefore(getAxes(), permutation);
      if (!getKeepdims())
        permutation = permutationWithout(permutation, axes);
      return create(b, getLoc(), operands[0], axes, getKeepdims());
    }
  }];
}

def Ktn_SumOp : Ktn_ReduceOp<"sum", [{
    `y` is the sum of `x` over `axes`, in any order; integers wrap; of nothing, 0.}],
    Ktn_NumberTensor, "f32", [
      DeclareOpInterfaceMethods<VjpOpInterface>,
      DeclareOpInterfaceMethods<StepSumOpInterface, ["buildStepSum"]>]> {
  let summary = "sum over axes";
}
def Ktn_ProdOp : Ktn_ReduceOp<"prod", [{
    `y` is the product of `x` over `axes`, in any order; integers wrap; of
    nothing, 1.}],
    Ktn_NumberTensor, "f32", [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "product over axes";
}
def Ktn_MaxOp : Ktn_ReduceOp<"max", [{
    `y` is the largest element of `x` over `axes`; NaN if one is NaN; of nothing,
    the least value of the type. Equal elements share the gradient.}],
    Ktn_NumberTensor, "f32", [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "maximum over axes";
}
def Ktn_MinOp : Ktn_ReduceOp<"min", [{
    `y` is the least element of `x` over `axes`; NaN if one is NaN; of nothing,
    the largest value of the type. Equal elements share the gradient.}],
    Ktn_NumberTensor, "f32", [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "minimum over axes";
}
def Ktn_AnyOp : Ktn_ReduceOp<"any", [{
    Whether one element of `x` over `axes` is true; of nothing, false.}],
    Ktn_BoolTensor, "i1"> {
  let summary = "logical disjunction over axes";
}
def Ktn_AllOp : Ktn_ReduceOp<"all", [{
    Whether every element of `x` over `axes` is true; of nothing, true.}],
    Ktn_BoolTensor, "i1"> {
  let summary = "logical conjunction over axes";
}

def Ktn_SquaredDeviationsOp : Ktn_PureOp<"squared_deviations", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<DecomposeOpInterface>]> {
  let summary = "sum of the squares of what is off the mean";
  let description = [{
    `y` is the sum of `(x - mean)^2` over `axes`, which are sorted and stay with
    extent 1. `mean` is that of `x` over these axes, in the type of `y`: so `y`
    does not change with it to first order, and has no gradient by it.

    ```mlir
    %y = ktn.squared_deviations %x, %mean, [0] : tensor<8x16xf32>, tensor<1x16xf32>
    ```
  }];
  let arguments = (ins Ktn_FloatTensor:$x, Ktn_FloatTensor:$mean,
                       DenseI64ArrayAttr:$axes);
  let results = (outs Ktn_FloatTensor:$y);
  let assemblyFormat =
    "$x `,` $mean `,` $axes attr-dict `:` type($x) `,` type($mean)";
  let hasVerifier = 1;
  string kerasName = "";
}

class Ktn_ArgReduceOp<string mnemonic, string formula>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor]> {
  let description = formula # [{ The first of equal
    ones counts, and a NaN counts before everything. The axis must not be empty.

    ```mlir
    %y = ktn.}] # mnemonic # [{ %x {axis = 1} : tensor<8x16xf32> -> tensor<8xi64>
    ```
  }];
  let arguments = (ins Ktn_NumberTensor:$x, Ktn_I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$keepdims);
  let results = (outs RankedTensorOf<[I64]>:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  string kerasName = "";
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferArgReduction(location, adaptor.getX(), adaptor.getAxis(),
                               adaptor.getKeepdims(), types);
    }
  }];
}
def Ktn_ArgmaxOp : Ktn_ArgReduceOp<"argmax", [{
    The index along `axis` of the largest element.}]> {
  let summary = "index of the maximum";
}
def Ktn_ArgminOp : Ktn_ArgReduceOp<"argmin", [{
    The index along `axis` of the least element.}]> {
  let summary = "index of the minimum";
}

#endif // KERATIN_IR_REDUCE_TD
