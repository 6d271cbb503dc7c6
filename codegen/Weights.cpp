//===- Weights.cpp - the constants of a model as one block of bytes -------===//
#include "codegen/Weights.h"

#include "codegen/Compile.h"
#include "codegen/cpu/Packing.h"
#include "codegen/cpu/PairPacking.h"
#include "codegen/cpu/PairedWeights.h"
#include "codegen/cpu/Weights24.h"
#include "codegen/cpu/WinogradMath.h"
#include "keratin/abi.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin {

/// Bytes of one element in memory: an i1 takes one.
static int64_t elementBytes(Type type) {
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
                             : 0;
}

/// Whether the elements of `type` are as many bytes as `out`.
static bool fills(ShapedType type, ArrayRef<char> out) {
  std::optional<int64_t> bytes = elementBytes(type.getElementType());
  for (int64_t extent : type.getShape())
    bytes = bytes ? llvm::checkedMul(*bytes, extent) : std::nullopt;
  return bytes && *bytes == static_cast<int64_t>(out.size()) &&
         elementBytes(type.getElementType()) != 0;
}

static LogicalResult copyBools(DenseElementsAttr elements,
                               MutableArrayRef<char> out) {
  // DenseElementsAttr packs them eight to a byte.
  for (auto [byte, value] : llvm::zip_equal(out, elements.getValues<bool>()))
    byte = static_cast<char>(value);
  return success();
}

static LogicalResult copyRaw(ArrayRef<char> data, bool isSplat,
                             MutableArrayRef<char> out) {
  if (!isSplat) {
    if (data.size() != out.size())
      return failure();
    std::copy(data.begin(), data.end(), out.begin());
    return success();
  }
  for (size_t offset = 0; offset < out.size(); offset += data.size())
    std::copy(data.begin(), data.end(), out.begin() + offset);
  return success();
}

LogicalResult copyElements(ElementsAttr elements, MutableArrayRef<char> out) {
  ShapedType type = elements.getShapedType();
  if (!type.hasStaticShape() || !fills(type, out))
    return failure();
  if (out.empty())
    return success();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? copyRaw(blob->getData(), /*isSplat=*/false, out) : failure();
  }
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  if (!dense)
    return failure();
  if (type.getElementType().isInteger(1))
    return copyBools(dense, out);
  return copyRaw(dense.getRawData(), dense.isSplat(), out);
}

/// The elements, dense and row-major: where they are, or copied to `copy`.
/// `type` has as many.
static FailureOr<ArrayRef<char>> bytesOf(ElementsAttr elements, ShapedType type,
                                         std::vector<char> &copy) {
  size_t bytes = type.getNumElements() * elementBytes(type.getElementType());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != bytes)
      return failure();
    return blob->getData();
  }
  copy.resize(bytes);
  if (failed(copyElements(elements, copy)))
    return failure();
  return ArrayRef<char>(copy);
}

/// The transforms that `packing`, `{axes, block, strides, taps, winograd,
/// type}` and where it has them `pairs`, asks for.
static LogicalResult copyTransformed(ElementsAttr elements,
                                     DictionaryAttr packing,
                                     MutableArrayRef<char> out) {
  auto m = packing.getAs<IntegerAttr>("winograd");
  auto block = packing.getAs<IntegerAttr>("block");
  auto taps = packing.getAs<IntegerAttr>("taps");
  auto axes = packing.getAs<DenseI64ArrayAttr>("axes");
  auto strides = packing.getAs<DenseI64ArrayAttr>("strides");
  auto typeAttr = packing.getAs<TypeAttr>("type");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                       : RankedTensorType();
  if (!m || !taps || !block || !axes || !type || !type.hasStaticShape() ||
      type.getRank() < 3 || type.getRank() > 5 || type.getNumElements() == 0 ||
      axes.empty() || axes.size() > 2 || axes.asArrayRef().front() < 0 ||
      axes.asArrayRef().back() > type.getRank() - 3 ||
      (axes.size() == 2 && axes[0] >= axes[1]) || !strides ||
      strides.size() != axes.size() ||
      llvm::any_of(
          strides.asArrayRef(),
          [](int64_t stride) { return stride < 1 || stride > INT16_MAX; }) ||
      !(type.getElementType().isF32() || type.getElementType().isF64() ||
        type.getElementType().isBF16()) ||
      !isKnown({m.getInt(), taps.getInt()}) || block.getInt() < 1 ||
      type.getNumElements() != elements.getNumElements())
    return failure();
  WindowTransform transform = {{m.getInt(), taps.getInt()},
                               llvm::to_vector<2>(axes.asArrayRef()),
                               llvm::to_vector<2>(strides.asArrayRef()),
                               packing.contains("pairs")};
  if (transform.inPairs && !type.getElementType().isF32())
    return failure();
  if (block.getInt() > static_cast<int64_t>(out.size()) ||
      !fills(transformedType(type, transform, block.getInt()), out))
    return failure();
  std::vector<char> copy;
  FailureOr<ArrayRef<char>> plain = bytesOf(elements, type, copy);
  if (failed(plain))
    return failure();
  transformWeights(*plain, type, transform, block.getInt(), out);
  return success();
}

/// Elements in pairs, as `packing`, `{block, dim, outer, pairs, type}` and
/// where it has them `inner` and `split`, asks.
static LogicalResult copyPairs(ElementsAttr elements, DictionaryAttr packing,
                               MutableArrayRef<char> out) {
  auto dim = packing.getAs<IntegerAttr>("dim");
  auto block = packing.getAs<IntegerAttr>("block");
  auto outer = packing.getAs<DenseI64ArrayAttr>("outer");
  auto sums = packing.getAs<DenseI64ArrayAttr>("pairs");
  auto typeAttr = packing.getAs<TypeAttr>("type");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                       : RankedTensorType();
  if (!dim || !block || !outer || !sums || !type || !type.hasStaticShape() ||
      type.getNumElements() != elements.getNumElements() ||
      block.getInt() > static_cast<int64_t>(out.size()))
    return failure();
  PairPacking order = {dim.getInt(), block.getInt(),
                       llvm::to_vector(outer.asArrayRef()),
                       llvm::to_vector(sums.asArrayRef())};
  if (auto inner = packing.getAs<DenseI64ArrayAttr>("inner"))
    order.inner.assign(inner.asArrayRef().begin(), inner.asArrayRef().end());
  order.split = packing.contains("split");
  if (!isValid(order, type) || !fills(pairedType(type, order), out))
    return failure();
  std::vector<char> copy;
  FailureOr<ArrayRef<char>> plain = bytesOf(elements, type, copy);
  if (failed(plain))
    return failure();
  packPairs(*plain, type, order, out);
  return success();
}

/// Integers of 24 bits, as `packing`, `{columns24, outer, sums, type}`, asks.
static LogicalResult copy24(ElementsAttr elements, DictionaryAttr packing,
                            MutableArrayRef<char> out) {
  auto columns = packing.getAs<IntegerAttr>("columns24");
  auto sums = packing.getAs<DenseI64ArrayAttr>("sums");
  auto outer = packing.getAs<DenseI64ArrayAttr>("outer");
  auto typeAttr = packing.getAs<TypeAttr>("type");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                       : RankedTensorType();
  if (!columns || !sums || !outer || !type || !type.hasStaticShape() ||
      type.getNumElements() == 0 ||
      type.getNumElements() != elements.getNumElements())
    return failure();
  // Each is three bytes at least: what follows does not overflow.
  if (uint64_t(type.getNumElements()) > out.size())
    return failure();
  Packing24 order = {columns.getInt(), llvm::to_vector(sums.asArrayRef()),
                     llvm::to_vector(outer.asArrayRef())};
  if (!isValid(order, type) || !fills(packedType(type, order), out))
    return failure();
  std::vector<char> copy;
  FailureOr<ArrayRef<char>> plain = bytesOf(elements, type, copy);
  if (failed(plain))
    return failure();
  pack24(*plain, type, order, out);
  return success();
}

/// Weights that are multiplied in pairs, as `packing`, `{block, paired, type}`
/// and where it has it `columns_inside`, asks.
static LogicalResult copyPaired(ElementsAttr elements, DictionaryAttr packing,
                                MutableArrayRef<char> out) {
  auto extents = packing.getAs<DenseI64ArrayAttr>("paired");
  auto block = packing.getAs<IntegerAttr>("block");
  auto typeAttr = packing.getAs<TypeAttr>("type");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                       : RankedTensorType();
  auto isExtent = [&](int64_t extent) {
    return extent > 0 && extent <= static_cast<int64_t>(out.size());
  };
  if (!extents || extents.size() != 2 || !block || !type ||
      !type.hasStaticShape() || !type.getElementType().isF32() ||
      !isExtent(extents[0]) || !isExtent(extents[1]) ||
      !isExtent(block.getInt()) ||
      llvm::checkedMul(extents[0], extents[1]) != type.getNumElements() ||
      type.getNumElements() != elements.getNumElements())
    return failure();
  PairedPacking order = {extents[0], extents[1], block.getInt(),
                         packing.contains("columns_inside")};
  if (!fills(packedType(packing.getContext(), order), out))
    return failure();
  std::vector<char> copy;
  FailureOr<ArrayRef<char>> plain = bytesOf(elements, type, copy);
  if (failed(plain))
    return failure();
  packPaired(*plain, order, out);
  return success();
}

/// Elements in the order that `packing`, `{block, dim, type}` and where it has
/// them `outer` and `interleaved`, asks for.
static LogicalResult copyPacked(ElementsAttr elements, DictionaryAttr packing,
                                MutableArrayRef<char> out) {
  if (packing.contains("winograd"))
    return copyTransformed(elements, packing, out);
  if (packing.contains("pairs"))
    return copyPairs(elements, packing, out);
  if (packing.contains("columns24"))
    return copy24(elements, packing, out);
  if (packing.contains("paired"))
    return copyPaired(elements, packing, out);
  auto dim = packing.getAs<IntegerAttr>("dim");
  auto block = packing.getAs<IntegerAttr>("block");
  auto typeAttr = packing.getAs<TypeAttr>("type");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue())
                       : RankedTensorType();
  if (!dim || !block || !type || !type.hasStaticShape() || dim.getInt() < 0 ||
      dim.getInt() >= type.getRank() || block.getInt() < 1 ||
      type.getNumElements() != elements.getNumElements())
    return failure();
  Packing order = {unsigned(dim.getInt()), block.getInt()};
  if (auto outer = packing.getAs<DenseI64ArrayAttr>("outer"))
    order.outer.assign(outer.asArrayRef().begin(), outer.asArrayRef().end());
  for (auto [number, outer] : llvm::enumerate(order.outer))
    if (outer < 0 || outer >= type.getRank() || outer == dim.getInt() ||
        llvm::is_contained(ArrayRef(order.outer).take_front(number), outer))
      return failure();
  order.interleaved = packing.contains("interleaved");
  if ((order.interleaved && block.getInt() % 2 != 0) ||
      block.getInt() > static_cast<int64_t>(out.size()) ||
      !fills(packedType(type, order), out))
    return failure();
  std::vector<char> copy;
  FailureOr<ArrayRef<char>> plain = bytesOf(elements, type, copy);
  if (failed(plain))
    return failure();
  pack(*plain, type, order, out);
  return success();
}

/// One entry `{offset, bytes, value, packed}` of `ktn.weights`.
static LogicalResult placeWeight(func::FuncOp function, DictionaryAttr entry,
                                 MutableArrayRef<char> blob) {
  auto offset = entry.getAs<IntegerAttr>("offset");
  auto bytes = entry.getAs<IntegerAttr>("bytes");
  auto value = entry.getAs<ElementsAttr>("value");
  if (!offset || !bytes || !value)
    return function.emitError(
        "an entry of 'ktn.weights' is not {offset : i64, bytes : i64, value}");
  uint64_t begin = offset.getInt(), size = bytes.getInt();
  if (begin > blob.size() || size > blob.size() - begin ||
      begin % KTN_ALIGNMENT != 0)
    return function.emitError("a weight of ")
           << size << " bytes at offset " << begin
           << " is misaligned or outside of the " << blob.size()
           << " bytes of weights";
  MutableArrayRef<char> place = blob.slice(begin, size);
  auto packed = entry.getAs<DictionaryAttr>("packed");
  if (failed(packed ? copyPacked(value, packed, place)
                    : copyElements(value, place)))
    return function.emitError("a weight of type ")
           << value.getType() << " does not hold " << size
           << " bytes of data; was it elided from the dump?";
  return success();
}

/// Zeros between entries. Where they are out of order, zeros everywhere, before
/// any entry: so large a block is not to be touched before it has to be.
namespace {
class Gaps {
public:
  Gaps(ArrayAttr entries, MutableArrayRef<char> blob) : blob(blob) {
    uint64_t last = 0;
    for (Attribute entry : entries) {
      auto fields = dyn_cast<DictionaryAttr>(entry);
      auto offset =
          fields ? fields.getAs<IntegerAttr>("offset") : IntegerAttr();
      auto bytes = fields ? fields.getAs<IntegerAttr>("bytes") : IntegerAttr();
      uint64_t begin = offset ? offset.getInt() : 0;
      inOrder &= begin >= last && begin <= blob.size();
      last = begin + (bytes ? bytes.getInt() : 0);
    }
    if (!inOrder)
      std::fill(blob.begin(), blob.end(), 0);
  }
  /// Up to `begin`, where the next entry is.
  void fillTo(uint64_t begin) {
    if (inOrder && begin > filled && begin <= blob.size())
      std::fill(blob.begin() + filled, blob.begin() + begin, 0);
    filled = std::max(filled, begin);
  }
  void skipTo(uint64_t end) { filled = std::max(filled, end); }

private:
  MutableArrayRef<char> blob;
  uint64_t filled = 0;
  bool inOrder = true;
};
} // namespace

std::unique_ptr<llvm::WritableMemoryBuffer>
collectWeights(func::FuncOp function, int64_t bytes,
               llvm::function_ref<void(ElementsAttr)> done) {
  auto entries = function->getAttrOfType<ArrayAttr>("ktn.weights");
  if (!entries) {
    function.emitError("needs the attribute 'ktn.weights' of the stage loops");
    return nullptr;
  }
  if (bytes < 0 || bytes % KTN_ALIGNMENT != 0) {
    function.emitError("'ktn.weights_bytes' is ")
        << bytes << ", not a multiple of " << KTN_ALIGNMENT;
    return nullptr;
  }
  auto blob = takePageBuffer(bytes, "weights");
  if (!blob) {
    function.emitError("no memory for ") << bytes << " bytes of weights";
    return nullptr;
  }
  Gaps gaps(entries, blob->getBuffer());
  for (Attribute entry : entries) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    if (!fields) {
      function.emitError("an entry of 'ktn.weights' is no dictionary");
      return nullptr;
    }
    if (failed(placeWeight(function, fields, blob->getBuffer())))
      return nullptr;
    // They are there, and within the block.
    uint64_t begin = fields.getAs<IntegerAttr>("offset").getInt();
    gaps.fillTo(begin);
    gaps.skipTo(begin + fields.getAs<IntegerAttr>("bytes").getInt());
    if (done)
      done(fields.getAs<ElementsAttr>("value"));
  }
  gaps.fillTo(bytes);
  return blob;
}

} // namespace keratin
