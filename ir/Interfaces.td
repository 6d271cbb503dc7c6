//===- Interfaces.td - what a pass may ask an op ----------*- tablegen -*-===//
//
// Passes name interfaces, never ops. An op takes part in a pass by
// implementing the interface that the pass asks for.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_IR_INTERFACES_TD
#define KERATIN_IR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def VjpOpInterface : OpInterface<"VjpOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    Reverse-mode derivative rule of one operation (vector-Jacobian product).
  }];
  let methods = [InterfaceMethod<[{
      Returns, for each of `getVjpInputs`, the cotangent that flows back to it,
      or a null Value where it is not differentiable. `cotangents` has one entry
      per result; an entry may be null when that result is unused. Emits only
      `ktn` ops, so that gradients have gradients. Returns nothing at all, and
      reports an error, when there is a derivative but no rule for it. May give
      the uses of the results to a new op that has more results, and leave this
      one without any.
    }],
    "::llvm::SmallVector<::mlir::Value>", "vjp",
    (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$cotangents)>,
    InterfaceMethod<[{
      The values that `vjp` gives cotangents for: the operands, and what the
      regions of the op use from outside.
    }],
    "::llvm::SmallVector<::mlir::Value>", "getVjpInputs", (ins), "", [{
      return ::llvm::to_vector($_op->getOperands());
    }]>,
    InterfaceMethod<[{
      Whether `vjp` gives a cotangent for operand `index`. What Keras answers
      with None, although the operand is a float, says no.
    }],
    "bool", "isDifferentiable", (ins "unsigned":$index), "", [{
      auto type = ::mlir::dyn_cast<::mlir::ShapedType>(
          $_op->getOperand(index).getType());
      return type && ::mlir::isa<::mlir::FloatType>(type.getElementType());
    }]>];
}

def ScalarBodyOpInterface : OpInterface<"ScalarBodyOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An elementwise op: each element of the result is a function of the elements
    at the same (broadcast) position of the operands.
  }];
  let methods = [InterfaceMethod<[{
      Emits the op on scalars (`arith` and `math`) and returns its value.
    }],
    "::mlir::Value", "buildScalar",
    (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$args)>];
}

def ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    A reduction of operand 0 over `axes` by an associative combination with a
    neutral element.
  }];
  let methods = [
    InterfaceMethod<"The axes that are reduced, sorted, each in 0..rank-1.",
      "::llvm::SmallVector<int64_t>", "getReducedAxes">,
    InterfaceMethod<"The neutral element as a scalar attribute of the result's element type.",
      "::mlir::TypedAttr", "getNeutralElement", (ins "::mlir::OpBuilder &":$b)>,
    InterfaceMethod<"Emits the combination of two scalars.",
      "::mlir::Value", "buildCombiner",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Value":$element, "::mlir::Value":$accumulator)>];
}

def DecomposeOpInterface : OpInterface<"DecomposeOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that is kept for readable dumps or for an optimisation on the graph,
    and that the `core` stage replaces by a formula over smaller `ktn` ops.
  }];
  let methods = [InterfaceMethod<[{
      Emits the formula before the op and returns one value per result, or
      failure, with a diagnostic, when the op has no formula.
    }],
    "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
    (ins "::mlir::OpBuilder &":$b)>];
}

def LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op with an image operand whose channels are at axis 1 (channels_first)
    or at the last axis (channels_last): operand 0 and result 0 carry the
    layout, the other operands do not depend on it.
  }];
  let methods = [
    InterfaceMethod<"Whether channels are first.", "bool", "isChannelsFirst">,
    InterfaceMethod<"Marks the op channels_last; the caller transposes operand 0 and result 0.",
      "void", "markChannelsLast">];
}

def LinearInKernelOpInterface : OpInterface<"LinearInKernelOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op whose result is linear in one operand, the kernel, one axis of which
    is an axis of the result: scaling the kernel along it scales the result.
  }];
  let methods = [
    InterfaceMethod<"The number of the kernel among the operands.",
      "unsigned", "getKernelOperandIndex">,
    InterfaceMethod<[{
        The axis of the kernel that is `getKernelResultAxis` of the result, or
        -1 when no single axis is.
      }],
      "int64_t", "getKernelOutputAxis">,
    InterfaceMethod<"The axis of the result that the kernel gives.",
      "int64_t", "getKernelResultAxis">,
    InterfaceMethod<[{
        The axis of operand 0 and that of the kernel whose products are summed:
        scaling operand 0 along its axis, or the kernel along its own, gives the
        same. Nothing where no two axes are such.
      }],
      "::std::optional<::std::pair<int64_t, int64_t>>", "getSummedAxes", (ins),
      "", "return ::std::nullopt;">];
}

def StackableOpInterface : OpInterface<"StackableOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that can do many steps of a loop at once.
  }];
  let methods = [InterfaceMethod<[{
      Emits the op on `operands`, of which the `stacked` ones have a new axis 0
      with one entry a step and the others are the same in every step. Returns
      the results of all steps along axis 0, or null where the op cannot do it.
    }],
    "::mlir::Value", "buildStacked",
    (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$operands,
         "::llvm::ArrayRef<bool>":$stacked)>];
}

def StepSumOpInterface : OpInterface<"StepSumOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that need not be done in each step of a loop when only the sum of its
    results over all steps is wanted. `changing` tells the operands that are not
    the same in every step.
  }];
  let methods = [
    InterfaceMethod<[{
        Emits the sum over the steps on `operands`, of which the `changing` ones
        have a new axis 0 with one entry a step. Null where the op cannot do it.
      }],
      "::mlir::Value", "buildStepSum",
      (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$operands,
           "::llvm::ArrayRef<bool>":$changing), "", "return {};">,
    InterfaceMethod<[{
        Whether the op gives the sum of its results when the `changing` operands
        are their sums.
      }],
      "bool", "isAdditive", (ins "::llvm::ArrayRef<bool>":$changing), "",
      "return true;">];
}

def StepwiseOpInterface : OpInterface<"StepwiseOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op of which one entry along an axis of the result follows from one entry
    along an axis of an operand, at the same place: a loop over that axis can
    compute the entries one by one.
  }];
  let methods = [
    InterfaceMethod<[{
        The number of the operand, and its axis, that the entries along `axis`
        of the result follow from. Nothing where each needs more of it.
      }],
      "::std::optional<::std::pair<unsigned, int64_t>>", "getStepSource",
      (ins "int64_t":$axis)>,
    InterfaceMethod<[{
        Emits one entry along `axis` of the result from `entry`, that of the
        operand of `getStepSource`. Neither has the axis that it is an entry of.
      }],
      "::mlir::Value", "buildStep",
      (ins "::mlir::OpBuilder &":$b, "int64_t":$axis, "::mlir::Value":$entry)>];
}

def LookupOpInterface : OpInterface<"LookupOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that may look up rows: those of a matrix, operand 0, that its indices,
    operand 1, tell: `y[i.., k] = x[indices[i..], k]`.
  }];
  let methods = [
    InterfaceMethod<"Whether that is what it does.", "bool", "looksUpRows">,
    InterfaceMethod<"Emits the lookup of the same rows of another matrix.",
      "::mlir::Value", "buildLookup",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Value":$matrix)>];
}

def RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that may compute each row of its result, along the last axis, from the
    row of operand 0 at the same place and from its other operands, which have
    nothing to do with the place.
  }];
  let methods = [
    InterfaceMethod<"Whether that is what it does.", "bool", "isRowwise">,
    InterfaceMethod<[{
        Emits the op on `operands`, of which the first is a matrix of other rows.
      }],
      "::mlir::Value", "buildRows",
      (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$operands)>];
}

def JoinableOpInterface : OpInterface<"JoinableOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op of two operands that sums products of them, so that the sum of two
    such ops is one of them: `x W + h U = [x, h] [W; U]`.
  }];
  let methods = [InterfaceMethod<[{
      The axis of operand 0 and that of operand 1 along which the operands of
      two such ops of equal attributes are to follow one another. Nothing where
      no two axes are such.
    }],
    "::std::optional<::std::pair<int64_t, int64_t>>", "getJoinedAxes">];
}

def TransposableOpInterface : OpInterface<"TransposableOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that does on transposed operands what it can do before the transpose:
    `op(transpose(x, p)) = transpose(op'(x), q)`. Ops with a scalar body need
    not say so.
  }];
  let methods = [InterfaceMethod<[{
      Emits op' on `operands`, those of the op before a transpose by
      `permutation` of all axes, and sets `permutation` to q.
    }],
    "::mlir::Value", "buildUntransposed",
    (ins "::mlir::OpBuilder &":$b, "::mlir::ValueRange":$operands,
         "::llvm::SmallVector<int64_t> &":$permutation)>];
}

def AffineOpInterface : OpInterface<"AffineOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op of two operands whose result is `x * scale + shift` for one of them,
    x, where the other one gives scale and shift.
  }];
  let methods = [
    InterfaceMethod<"Whether operand `index` can be x.",
      "bool", "isAffineIn", (ins "unsigned":$index), "",
      "return true;">,
    InterfaceMethod<"The axis of the result that `axis` of operand `index` is.",
      "int64_t", "getAxisInResult", (ins "unsigned":$index, "int64_t":$axis), "", [{
        auto rank = [](::mlir::Value value) {
          return ::mlir::cast<::mlir::RankedTensorType>(value.getType()).getRank();
        };
        return axis + rank($_op->getResult(0)) - rank($_op->getOperand(index));
      }]>,
    InterfaceMethod<[{
        Takes the op into `scale` and `shift`: operand `index` is
        `v * scale + shift` before, the result of the op after it. Null is 1 and
        0. Emits `ktn` ops on the two and `other`, which stands for the other
        operand.
      }],
      "void", "composeAffine",
      (ins "::mlir::OpBuilder &":$b, "unsigned":$index, "::mlir::Value":$other,
           "::mlir::Value &":$scale, "::mlir::Value &":$shift)>,
    InterfaceMethod<"Whether the result is the sum of the operands, broadcast.",
      "bool", "isSum", (ins), "", "return false;">,
    InterfaceMethod<"Whether the result is the product of the operands, broadcast.",
      "bool", "isProduct", (ins), "", "return false;">];
}

def ShapeRefinementOpInterface : OpInterface<"ShapeRefinementOpInterface"> {
  let cppNamespace = "::keratin::ktn";
  let description = [{
    An op that holds more of shapes than the types of its results: attributes,
    or the types of the arguments of its regions.
  }];
  let methods = [InterfaceMethod<[{
      Takes into the op what its operands have come to say of shapes. Its
      regions and the types of its results are for the caller to infer again.
      Failure, with a diagnostic, when the operands do not fit.
    }],
    "::llvm::LogicalResult", "refineShapes">];
}

#endif // KERATIN_IR_INTERFACES_TD
