//===- Base.td - dialect, types, attributes, op classes ---*- tablegen -*-===//
#ifndef KERATIN_IR_BASE_TD
#define KERATIN_IR_BASE_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/Interfaces.td"

def Ktn_Dialect : Dialect {
  let name = "ktn";
  let cppNamespace = "::keratin::ktn";
  let summary = "Operations of the Keras backend API on ranked tensors.";
  let description = [{
    A graph is a module of functions over ranked tensors. A dynamic dimension
    `?` is Keras' `None`. Broadcasting follows NumPy; a `?` against a static
    extent other than 1 has that extent, and two `?` are the same extent.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def Ktn_DataFormat : I32EnumAttr<"DataFormat", "position of the channel axis", [
    I32EnumAttrCase<"ChannelsFirst", 0, "channels_first">,
    I32EnumAttrCase<"ChannelsLast", 1, "channels_last">]> {
  let cppNamespace = "::keratin::ktn";
  let genSpecializedAttr = 0;
}
def Ktn_DataFormatAttr : EnumAttr<Ktn_Dialect, Ktn_DataFormat, "data_format">;

def Ktn_Float : AnyTypeOf<[F16, BF16, F32, F64]>;
def Ktn_SignlessInteger : AnyTypeOf<[I8, I16, I32, I64]>;
def Ktn_Integer : AnyTypeOf<[Ktn_SignlessInteger, UI8]>;
def Ktn_Element : AnyTypeOf<[Ktn_Float, Ktn_Integer, I1]>;
/// A tensor whose element types the messages sum up as `words`.
class Ktn_TensorOf<list<Type> elements, string words> : RankedTensorOf<elements> {
  let summary = "ranked tensor of " # words;
}
def Ktn_Tensor : Ktn_TensorOf<[Ktn_Element], "floats, integers or i1">;
/// What arithmetic takes: ui8 is a storage type, cast it first.
def Ktn_NumberTensor : Ktn_TensorOf<[Ktn_Float, Ktn_SignlessInteger],
    "floats or signless integers">;
def Ktn_FloatTensor : Ktn_TensorOf<[Ktn_Float], "floats">;
def Ktn_IntegerTensor : Ktn_TensorOf<[Ktn_Integer], "integers">;
def Ktn_BoolTensor : Ktn_TensorOf<[I1], "i1">;
/// Extents of a shape, known at run time.
def Ktn_ExtentsTensor : 1DTensorOf<[I64]>;

/// A signed 64-bit integer: an axis, a count.
def Ktn_I64Attr
    : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer attribute"> {
  let convertFromStorage = "$_self.getInt()";
}
def Ktn_ElementTypeAttr
    : TypeAttrBase<"::mlir::Type", "element type attribute"> {
  let constBuilderCall = "::mlir::TypeAttr::get($0)";
}

/// Every op of the dialect. `kerasName` is the function of the backend API that
/// keratin-opgen declares for it; empty for ops that the API does not show.
class Ktn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ktn_Dialect, mnemonic, traits> {
  string kerasName = mnemonic;
  /// What Keras calls the operands; empty where these are the op's own names.
  list<string> kerasArguments = [];
}

class Ktn_PureOp<string mnemonic, list<Trait> traits = []>
    : Ktn_Op<mnemonic, traits # [Pure]>;

#endif // KERATIN_IR_BASE_TD
