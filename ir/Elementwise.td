//===- Elementwise.td - ops on the elements at one position -*- tablegen -*-===//
#ifndef KERATIN_IR_ELEMENTWISE_TD
#define KERATIN_IR_ELEMENTWISE_TD

include "ir/Base.td"

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

/// Operands broadcast by NumPy's rule. An op says its formula once, in its
/// description; `example` is a line of IR that parses.
class Ktn_ElementwiseOp<string mnemonic, string formula, string example,
                        list<Trait> traits = []>
    : Ktn_PureOp<mnemonic, [InferTypeOpAdaptor,
          DeclareOpInterfaceMethods<ScalarBodyOpInterface>] # traits> {
  let description =
      formula # "\n\n    ```mlir\n    %y = ktn." # mnemonic # " " # example #
      "\n    ```\n";
  code inferSameElement = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, adaptor.getOperands(), types);
    }
  }];
  let extraClassDefinition = inferSameElement;
}

class Ktn_UnaryOp<string mnemonic, string formula, Type tensor = Ktn_FloatTensor,
                  string exampleType = "tensor<8x16xf32>",
                  list<Trait> traits = [DeclareOpInterfaceMethods<VjpOpInterface>]>
    : Ktn_ElementwiseOp<mnemonic, formula, "%x : " # exampleType, traits> {
  let arguments = (ins tensor:$x);
  let results = (outs tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

/// Of an op that is constant between its jumps: no gradient at all, not zeros.
def Ktn_NoGradient : DeclareOpInterfaceMethods<VjpOpInterface, ["isDifferentiable"]>;

/// A unary op that is one op of `math` or `arith` on a scalar.
class Ktn_UnaryMathOp<string mnemonic, string scalarOp, string formula,
                      Trait gradient = DeclareOpInterfaceMethods<VjpOpInterface>>
    : Ktn_UnaryOp<mnemonic, formula, Ktn_FloatTensor, "tensor<8x16xf32>",
                  [gradient]> {
  let extraClassDefinition = inferSameElement # [{
    ::mlir::Value $cppClass::buildScalar(::mlir::OpBuilder &b,
                                         ::mlir::ValueRange args) {
      return }] # scalarOp # [{::create(b, getLoc(), args[0]);
    }
  }];
}

class Ktn_BinaryOp<string mnemonic, string formula, Type tensor = Ktn_NumberTensor,
                   list<Trait> traits = [],
                   string exampleTypes = "tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>">
    : Ktn_ElementwiseOp<mnemonic, formula, "%a, %b : " # exampleTypes, traits> {
  let arguments = (ins tensor:$a, tensor:$b);
  let results = (outs tensor:$y);
  let kerasArguments = ["x", "y"];
  // One type stands for all when they are the same.
  let assemblyFormat = [{
    $a `,` $b attr-dict `:` custom<BroadcastTypes>(type($a), type($b), type($y))
  }];
}

/// A binary op that is one op of `arith` for floats and one for integers.
class Ktn_BinaryArithOp<string mnemonic, string floatOp, string integerOp,
                        string formula, list<Trait> traits = []>
    : Ktn_BinaryOp<mnemonic, formula, Ktn_NumberTensor,
                   [DeclareOpInterfaceMethods<VjpOpInterface>] # traits> {
  let extraClassDefinition = inferSameElement # [{
    ::mlir::Value $cppClass::buildScalar(::mlir::OpBuilder &b,
                                         ::mlir::ValueRange args) {
      if (::mlir::isa<::mlir::FloatType>(args[0].getType()))
        return }] # floatOp # [{::create(b, getLoc(), args[0], args[1]);
      return }] # integerOp # [{::create(b, getLoc(), args[0], args[1]);
    }
  }];
}

class Ktn_LogicalOp<string mnemonic, string scalarOp, string formula>
    : Ktn_BinaryOp<mnemonic, formula, Ktn_BoolTensor, [Commutative],
                   "tensor<8x16xi1>"> {
  let extraClassDefinition = inferSameElement # [{
    ::mlir::Value $cppClass::buildScalar(::mlir::OpBuilder &b,
                                         ::mlir::ValueRange args) {
      return }] # scalarOp # [{::create(b, getLoc(), args[0], args[1]);
    }
  }];
}

class Ktn_ComparisonOp<string mnemonic, string floatPredicate,
                       string integerPredicate, string formula,
                       Type tensor = Ktn_NumberTensor, list<Trait> traits = []>
    : Ktn_BinaryOp<mnemonic, formula, tensor, traits,
                   "tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xi1>"> {
  let results = (outs Ktn_BoolTensor:$y);
  let assemblyFormat =
      "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($y)";
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferComparison(location, adaptor.getOperands(), types);
    }
    ::mlir::Value $cppClass::buildScalar(::mlir::OpBuilder &b,
                                         ::mlir::ValueRange args) {
      if (::mlir::isa<::mlir::FloatType>(args[0].getType()))
        return ::mlir::arith::CmpFOp::create(b, getLoc(),
            ::mlir::arith::CmpFPredicate::}] # floatPredicate # [{, args[0], args[1]);
      return ::mlir::arith::CmpIOp::create(b, getLoc(),
          ::mlir::arith::CmpIPredicate::}] # integerPredicate # [{, args[0], args[1]);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

def Ktn_NegOp : Ktn_UnaryOp<"neg", [{
    `y = -x`. The least integer is its own negative.}], Ktn_NumberTensor> {
  let summary = "negative";
  string kerasName = "negative";
  let hasFolder = 1;
}
def Ktn_AbsOp : Ktn_UnaryOp<"abs", [{
    `y = |x|`. The least integer is its own absolute value. The derivative is
    `sign(x)`.}], Ktn_NumberTensor> {
  let summary = "absolute value";
}
def Ktn_SignOp : Ktn_UnaryOp<"sign", [{
    `y = 1` where `x > 0`, `-1` where `x < 0`, else `x` (so zeros keep their
    sign and NaN stays). The derivative is 0.}], Ktn_NumberTensor> {
  let summary = "sign";
}
def Ktn_ExpOp : Ktn_UnaryMathOp<"exp", "::mlir::math::ExpOp", [{
    `y = e^x`.}]> { let summary = "exponential"; }
def Ktn_Expm1Op : Ktn_UnaryMathOp<"expm1", "::mlir::math::ExpM1Op", [{
    `y = e^x - 1`, exact for small `x`.}]> {
  let summary = "exponential minus one";
}
def Ktn_LogOp : Ktn_UnaryMathOp<"log", "::mlir::math::LogOp", [{
    `y = ln x`: `-inf` at 0 and NaN below.}]> {
  let summary = "natural logarithm";
}
def Ktn_Log1pOp : Ktn_UnaryMathOp<"log1p", "::mlir::math::Log1pOp", [{
    `y = ln(1 + x)`, exact for small `x`: `-inf` at -1 and NaN below.}]> {
  let summary = "natural logarithm of one plus x";
}
def Ktn_SqrtOp : Ktn_UnaryMathOp<"sqrt", "::mlir::math::SqrtOp", [{
    `y = sqrt(x)`: NaN below 0.}]> {
  let summary = "square root";
  string kerasName = ""; // Keras clamps negative numbers to 0
}
def Ktn_RsqrtOp : Ktn_UnaryOp<"rsqrt", [{
    `y = 1 / sqrt(x)`: `inf` at 0 and NaN below.}]> {
  let summary = "reciprocal square root";
}
def Ktn_SinOp : Ktn_UnaryMathOp<"sin", "::mlir::math::SinOp", [{
    `y = sin x`, `x` in radians.}]> { let summary = "sine"; }
def Ktn_CosOp : Ktn_UnaryMathOp<"cos", "::mlir::math::CosOp", [{
    `y = cos x`, `x` in radians.}]> { let summary = "cosine"; }
def Ktn_TanhOp : Ktn_UnaryMathOp<"tanh", "::mlir::math::TanhOp", [{
    `y = tanh x`.}]> { let summary = "hyperbolic tangent"; }
def Ktn_SigmoidOp : Ktn_UnaryOp<"sigmoid", [{
    `y = 1 / (1 + e^-x)`, computed from `e^-|x|` so that it never overflows.}]> {
  let summary = "logistic function";
}
def Ktn_ErfOp : Ktn_UnaryMathOp<"erf", "::mlir::math::ErfOp", [{
    `y = 2/sqrt(pi) * integral of e^(-t^2) from 0 to x`.}]> {
  let summary = "error function";
}
def Ktn_FloorOp : Ktn_UnaryMathOp<"floor", "::mlir::math::FloorOp", [{
    The largest integer not above `x`. Not differentiable.}], Ktn_NoGradient> {
  let summary = "rounding down";
}
def Ktn_CeilOp : Ktn_UnaryMathOp<"ceil", "::mlir::math::CeilOp", [{
    The least integer not below `x`. Not differentiable.}], Ktn_NoGradient> {
  let summary = "rounding up";
}
def Ktn_RoundOp : Ktn_UnaryMathOp<"round", "::mlir::math::RoundEvenOp", [{
    The integer nearest to `x`, halves to the even one. Not differentiable.}], Ktn_NoGradient> {
  let summary = "rounding half to even";
}
def Ktn_ReluOp : Ktn_UnaryOp<"relu", [{
    `y = max(x, 0)`; NaN stays. The derivative at 0 is 0.}], Ktn_NumberTensor> {
  let summary = "rectified linear unit";
  string kerasName = ""; // Keras' relu has three more arguments
}
def Ktn_LogicalNotOp : Ktn_UnaryOp<"logical_not", [{
    `y = not x`.}], Ktn_BoolTensor, "tensor<8x16xi1>", []> {
  let summary = "logical negation";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

def Ktn_AddOp : Ktn_BinaryArithOp<"add", "::mlir::arith::AddFOp",
    "::mlir::arith::AddIOp", [{
    `y = a + b`; integers wrap.}], [Commutative,
    DeclareOpInterfaceMethods<StepSumOpInterface, ["isAdditive"]>,
    DeclareOpInterfaceMethods<AffineOpInterface, ["isSum"]>]> {
  let summary = "sum of two tensors";
}
def Ktn_SubOp : Ktn_BinaryArithOp<"sub", "::mlir::arith::SubFOp",
    "::mlir::arith::SubIOp", [{
    `y = a - b`; integers wrap.}],
    [DeclareOpInterfaceMethods<StepSumOpInterface, ["isAdditive"]>,
    DeclareOpInterfaceMethods<AffineOpInterface>]> {
  let summary = "difference";
  string kerasName = "subtract";
}
def Ktn_MulOp : Ktn_BinaryArithOp<"mul", "::mlir::arith::MulFOp",
    "::mlir::arith::MulIOp", [{
    `y = a * b`; integers wrap.}], [Commutative,
    DeclareOpInterfaceMethods<StepSumOpInterface, ["isAdditive"]>,
    DeclareOpInterfaceMethods<AffineOpInterface, ["isProduct"]>]> {
  let summary = "product of two tensors";
  string kerasName = "multiply";
}
def Ktn_DivOp : Ktn_BinaryOp<"div", [{
    `y = a / b`. Integers truncate toward zero, and a division by zero gives 0.}],
    Ktn_NumberTensor, [DeclareOpInterfaceMethods<VjpOpInterface>,
    DeclareOpInterfaceMethods<AffineOpInterface, ["isAffineIn"]>]> {
  let summary = "quotient";
  string kerasName = ""; // Keras divides integers as floats
}
def Ktn_FloordivOp : Ktn_BinaryOp<"floordiv", [{
    `y = floor(a / b)`. An integer division by zero gives 0. Not
    differentiable.}],
    Ktn_NumberTensor, [Ktn_NoGradient]> {
  let summary = "quotient rounded down";
  string kerasName = "floor_divide";
}
def Ktn_ModOp : Ktn_BinaryOp<"mod", [{
    The remainder of `a / b` with the sign of `b`, as in Python. An integer
    remainder by zero is 0, a float one NaN.}],
    Ktn_NumberTensor, [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "remainder";
}
def Ktn_PowOp : Ktn_BinaryOp<"pow", [{
    `y = a^b`: NaN where `a < 0` and `b` is no integer. The derivative by `b` is
    0 where `a <= 0`. Where `b` is known to be 2, 3, 4, -1, 1/2 or -1/2, it is
    made of products, a quotient and a root.}],
    Ktn_FloatTensor, [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "power";
  let hasCanonicalizeMethod = 1;
  let kerasArguments = ["x", "a"];
  let extraClassDefinition = inferSameElement # [{
    ::mlir::Value $cppClass::buildScalar(::mlir::OpBuilder &b,
                                         ::mlir::ValueRange args) {
      return ::mlir::math::PowFOp::create(b, getLoc(), args[0], args[1]);
    }
  }];
}
def Ktn_MaximumOp : Ktn_BinaryArithOp<"maximum", "::mlir::arith::MaximumFOp",
    "::mlir::arith::MaxSIOp", [{
    `y = a` where `a > b`, else `b`; NaN if either is NaN. Where they are equal
    the gradient flows to `a`.}]> {
  let summary = "larger of two";
}
def Ktn_MinimumOp : Ktn_BinaryArithOp<"minimum", "::mlir::arith::MinimumFOp",
    "::mlir::arith::MinSIOp", [{
    `y = a` where `a < b`, else `b`; NaN if either is NaN. Where they are equal
    the gradient flows to `a`.}]> {
  let summary = "smaller of two";
}
def Ktn_LogicalAndOp : Ktn_LogicalOp<"logical_and", "::mlir::arith::AndIOp", [{
    `y = a and b`.}]> { let summary = "logical conjunction"; }
def Ktn_LogicalOrOp : Ktn_LogicalOp<"logical_or", "::mlir::arith::OrIOp", [{
    `y = a or b`.}]> { let summary = "logical disjunction"; }
def Ktn_LogicalXorOp : Ktn_LogicalOp<"logical_xor", "::mlir::arith::XOrIOp", [{
    `y = a xor b`.}]> { let summary = "logical exclusive disjunction"; }

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

def Ktn_EqualityTensor : Ktn_TensorOf<[Ktn_Float, Ktn_SignlessInteger, I1],
    "floats, signless integers or i1">;

def Ktn_EqualOp : Ktn_ComparisonOp<"equal", "OEQ", "eq", [{
    `y = (a == b)`; NaN equals nothing.}], Ktn_EqualityTensor, [Commutative]> {
  let summary = "equality";
}
def Ktn_NotEqualOp : Ktn_ComparisonOp<"not_equal", "UNE", "ne", [{
    `y = (a != b)`; NaN differs from everything.}], Ktn_EqualityTensor,
    [Commutative]> {
  let summary = "inequality";
}
def Ktn_LessOp : Ktn_ComparisonOp<"less", "OLT", "slt", [{
    `y = (a < b)`; false for NaN.}]> { let summary = "less than"; }
def Ktn_LessEqualOp : Ktn_ComparisonOp<"less_equal", "OLE", "sle", [{
    `y = (a <= b)`; false for NaN.}]> { let summary = "at most"; }
def Ktn_GreaterOp : Ktn_ComparisonOp<"greater", "OGT", "sgt", [{
    `y = (a > b)`; false for NaN.}]> { let summary = "greater than"; }
def Ktn_GreaterEqualOp : Ktn_ComparisonOp<"greater_equal", "OGE", "sge", [{
    `y = (a >= b)`; false for NaN.}]> { let summary = "at least"; }

//===----------------------------------------------------------------------===//
// Selection and conversion
//===----------------------------------------------------------------------===//

def Ktn_SelectOp : Ktn_ElementwiseOp<"select", [{
    `y = cond ? a : b`. The value that is not chosen does not matter, NaN
    included.}],
    "%c, %a, %b : tensor<8x16xi1>, tensor<8x16xf32>, tensor<f32> -> tensor<8x16xf32>",
    [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "choice between two tensors";
  string kerasName = "where";
  let kerasArguments = ["condition", "x", "y"];
  let arguments = (ins Ktn_BoolTensor:$cond, Ktn_Tensor:$a, Ktn_Tensor:$b);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = [{
    $cond `,` $a `,` $b attr-dict `:` type($cond) `,` type($a) `,` type($b)
    `->` type($y)
  }];
  let extraClassDefinition = [{}];
}

def Ktn_CastOp : Ktn_ElementwiseOp<"cast", [{
    `x` in the element type `dtype`. Float to integer truncates toward zero and
    saturates, NaN gives 0; integer to integer wraps; to `i1` is `x != 0`; `i1`
    gives 0 and 1. Only float to float has a gradient.}],
    "%x to i32 : tensor<8x16xf32> -> tensor<8x16xi32>",
    [DeclareOpInterfaceMethods<VjpOpInterface>]> {
  let summary = "conversion of the element type";
  string kerasName = ""; // Keras names the type with a string
  let arguments = (ins Ktn_Tensor:$x, Ktn_ElementTypeAttr:$dtype);
  let results = (outs Ktn_Tensor:$y);
  let assemblyFormat = "$x `to` $dtype attr-dict `:` type($x) `->` type($y)";
  let extraClassDefinition = [{}];
  let hasFolder = 1;
}

#endif // KERATIN_IR_ELEMENTWISE_TD
