//===- Signature.cpp - what the artefact knows of the function ------------===//
#include "codegen/Signature.h"

#include "keratin/dtype.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin {

static std::optional<ktn_dtype_t> dtypeOf(Type type) {
  if (type.isInteger(1))
    return KTN_BOOL;
  if (type.isUnsignedInteger(8))
    return KTN_U8;
  if (type.isSignlessInteger(8))
    return KTN_I8;
  if (type.isSignlessInteger(16))
    return KTN_I16;
  if (type.isSignlessInteger(32))
    return KTN_I32;
  if (type.isSignlessInteger(64))
    return KTN_I64;
  if (type.isF16())
    return KTN_F16;
  if (type.isBF16())
    return KTN_BF16;
  if (type.isF32())
    return KTN_F32;
  if (type.isF64())
    return KTN_F64;
  return std::nullopt;
}

/// Bytes that one process can address, on x86-64 without further levels of
/// pages.
static constexpr int64_t addressable = int64_t(1) << 47;

FailureOr<TensorSignature> tensorSignature(Location loc, llvm::StringRef name,
                                           RankedTensorType type) {
  std::optional<ktn_dtype_t> dtype = dtypeOf(type.getElementType());
  if (!dtype)
    return emitError(loc) << "'" << name << "' has the element type "
                          << type.getElementType()
                          << ", an artefact takes bool, i8..i64, ui8, f16, "
                             "bf16, f32 and f64";
  if (type.getRank() > KTN_MAX_RANK)
    return emitError(loc) << "'" << name << "' has rank " << type.getRank()
                          << ", an artefact takes up to " << KTN_MAX_RANK;
  TensorSignature tensor;
  tensor.name = name.str();
  tensor.dtype = *dtype;
  std::optional<int64_t> bytes = ktn_dtype_row(*dtype)->bytes;
  for (int64_t extent : type.getShape()) {
    bool isOpen = ShapedType::isDynamic(extent);
    tensor.shape.push_back(isOpen ? -1 : extent);
    bytes = bytes ? llvm::checkedMul<int64_t>(*bytes, isOpen ? 1 : extent)
                  : std::nullopt;
  }
  if (!bytes || *bytes > addressable)
    return emitError(loc) << "'" << name << "' is a " << type
                          << ", more bytes than a process can address";
  return tensor;
}

bool TensorSignature::hasBatch() const { return llvm::is_contained(shape, -1); }

int64_t TensorSignature::unitBytes() const {
  int64_t bytes = ktn_dtype_row(dtype)->bytes;
  for (int64_t extent : shape)
    bytes *= extent < 0 ? 1 : extent;
  return bytes;
}

/// The tensors that no variable of the state is behind.
static std::vector<TensorSignature>
withoutState(ArrayRef<TensorSignature> tensors, ArrayRef<int> state) {
  std::vector<TensorSignature> result;
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (state.empty() || state[index] < 0)
      result.push_back(tensor);
  return result;
}

std::vector<TensorSignature> Signature::callerInputs() const {
  return withoutState(inputs, inputState);
}

std::vector<TensorSignature> Signature::callerOutputs() const {
  return withoutState(outputs, outputState);
}

bool Signature::updatesState() const {
  return llvm::any_of(outputState, [](int variable) { return variable >= 0; });
}

bool Signature::updatesInPlace(size_t output) const {
  int variable = stateOfOutput(output);
  if (variable < 0)
    return false;
  if (!llvm::is_contained(inputState, variable))
    return true; // nothing reads the old value
  return !inPlace.empty() && inPlace[output] >= 0 &&
         stateOfInput(inPlace[output]) == variable;
}

int64_t Signature::maxBatch() const {
  int64_t largest = INT64_MAX;
  if (arenaBytes[1] > 0)
    largest = (INT64_MAX - arenaBytes[0] - updateBytes) / arenaBytes[1];
  for (const std::vector<TensorSignature> *tensors : {&inputs, &outputs})
    for (const TensorSignature &tensor : *tensors)
      if (tensor.hasBatch() && tensor.unitBytes() > 0)
        largest = std::min(largest, INT64_MAX / tensor.unitBytes());
  return largest;
}

func::FuncOp findFunction(ModuleOp module) {
  func::FuncOp found;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPrivate() || function.isDeclaration())
      continue;
    if (found) {
      InFlightDiagnostic diag =
          function.emitError("more than one public function: '")
          << found.getSymName() << "' and '" << function.getSymName() << "'";
      diag.attachNote() << "make all but the one to compile private";
      return nullptr;
    }
    found = function;
  }
  if (!found)
    module.emitError("the module has no public function to compile");
  return found;
}

/// The attributes of one function, with diagnostics for those that are amiss.
namespace {
class Reader {
public:
  explicit Reader(func::FuncOp function) : function(function) {}

  InFlightDiagnostic missing(StringRef name, StringRef form) {
    return function.emitError("needs the attribute '")
           << name << "' (" << form << ") of the stage loops";
  }

  LogicalResult pair(DictionaryAttr attrs, StringRef name, int64_t (&out)[2]) {
    auto values = attrs.getAs<DenseI64ArrayAttr>(name);
    if (!values || values.size() != 2)
      return missing(name, "array<i64: fixed, per batch>");
    out[0] = values[0];
    out[1] = values[1];
    return success();
  }

  LogicalResult text(DictionaryAttr attrs, StringRef name, std::string &out) {
    auto value = attrs.getAs<StringAttr>(name);
    if (!value)
      return missing(name, "a string");
    out = value.str();
    return success();
  }

  LogicalResult tensors(StringRef name, std::vector<TensorSignature> &out) {
    auto list = function->getAttrOfType<ArrayAttr>(name);
    if (!list)
      return missing(name, "[{name, type}…]");
    for (Attribute entry : list) {
      auto fields = dyn_cast<DictionaryAttr>(entry);
      TensorSignature tensor;
      if (!fields || failed(text(fields, "name", tensor.name)) ||
          failed(tensorType(fields.getAs<TypeAttr>("type"), tensor)))
        return failure();
      out.push_back(std::move(tensor));
    }
    return success();
  }

  LogicalResult tensorType(TypeAttr attr, TensorSignature &tensor) {
    auto type =
        attr ? dyn_cast<RankedTensorType>(attr.getValue()) : RankedTensorType();
    if (!type)
      return missing("type", "a ranked tensor type");
    FailureOr<TensorSignature> read =
        tensorSignature(function.getLoc(), tensor.name, type);
    if (failed(read))
      return failure();
    tensor = std::move(*read);
    return success();
  }

  LogicalResult inPlace(Signature &signature) {
    auto list = function->getAttrOfType<DenseI64ArrayAttr>("ktn.in_place");
    if (!list)
      return success();
    auto isInput = [&](int64_t input) {
      return -1 <= input && input < int64_t(signature.inputs.size());
    };
    if (list.size() != int64_t(signature.outputs.size()) ||
        !llvm::all_of(list.asArrayRef(), isInput))
      return function.emitError("'ktn.in_place' is not an input, or -1, for "
                                "each output");
    signature.inPlace.assign(list.asArrayRef().begin(),
                             list.asArrayRef().end());
    return success();
  }

  LogicalResult kernels(std::vector<KernelRow> &out) {
    auto list = function->getAttrOfType<ArrayAttr>("ktn.kernels");
    if (!list)
      return missing("ktn.kernels",
                     "[{name, op, shapes, flops, bytes, arena}…]");
    for (Attribute entry : list) {
      auto fields = dyn_cast<DictionaryAttr>(entry);
      KernelRow row;
      if (!fields || failed(text(fields, "name", row.name)) ||
          failed(text(fields, "op", row.op)) ||
          failed(text(fields, "shapes", row.shapes)) ||
          failed(pair(fields, "flops", row.flops)) ||
          failed(pair(fields, "bytes", row.bytes)) ||
          failed(pair(fields, "arena", row.arenaOffset)))
        return failure();
      out.push_back(std::move(row));
    }
    return success();
  }

private:
  func::FuncOp function;
};
} // namespace

/// Without a `?` the batch is the leading extent that the inputs share; 1 when
/// they share none.
static int64_t pinnedBatch(const Signature &signature) {
  int64_t batch = -1;
  for (const TensorSignature &input : signature.inputs) {
    if (input.shape.empty() || (batch >= 0 && batch != input.shape[0]))
      return 1;
    batch = input.shape[0];
  }
  return batch < 0 ? 1 : batch;
}

FailureOr<Signature> readSignature(func::FuncOp function) {
  Reader reader(function);
  Signature signature;
  signature.function = function.getSymName().str();
  auto weightsBytes = function->getAttrOfType<IntegerAttr>("ktn.weights_bytes");
  if (!weightsBytes)
    return reader.missing("ktn.weights_bytes", "an i64");
  signature.weightsBytes = weightsBytes.getInt();
  if (failed(reader.pair(function->getAttrDictionary(), "ktn.arena_bytes",
                         signature.arenaBytes)))
    return failure();
  if (signature.arenaBytes[0] < 0 || signature.arenaBytes[1] < 0)
    return function.emitError("'ktn.arena_bytes' is less than nothing");
  if (function->hasAttr("ktn.arena_least") &&
      failed(reader.pair(function->getAttrDictionary(), "ktn.arena_least",
                         signature.arenaLeast)))
    return failure();
  if (failed(reader.tensors("ktn.inputs", signature.inputs)) ||
      failed(reader.tensors("ktn.outputs", signature.outputs)) ||
      failed(reader.inPlace(signature)) ||
      failed(reader.kernels(signature.kernels)))
    return failure();
  if (signature.arenaBytes[0] > addressable ||
      signature.arenaBytes[1] > addressable)
    return function.emitError("the model needs an arena of ")
           << std::max(signature.arenaBytes[0], signature.arenaBytes[1])
           << " bytes, more than a process can address: choose a smaller batch";
  // `static uint8_t arena[NAME_ARENA_BYTES(1)]` must not be an empty array.
  if (signature.arenaBytes[0] == 0 && signature.arenaBytes[1] == 0)
    signature.arenaBytes[0] = KTN_ALIGNMENT;
  auto hasBatch = [](const TensorSignature &t) { return t.hasBatch(); };
  if (llvm::none_of(signature.inputs, hasBatch) &&
      llvm::none_of(signature.outputs, hasBatch))
    signature.batch = pinnedBatch(signature);
  return signature;
}

} // namespace keratin
