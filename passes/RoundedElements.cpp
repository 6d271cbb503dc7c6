//===- RoundedElements.cpp - weights in fewer bits ------------------------===//
#include "passes/RoundedElements.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace keratin {

static constexpr uint32_t infinity = 0x7f800000, allButSign = 0x7fffffff;
/// Of f32, 65520: half way from the largest number of f16 to the next one that
/// more bits of exponent would give.
static constexpr uint32_t pastF16 = 0x477ff000;

/// A NaN stays one.
static uint16_t toBf16(uint32_t bits) {
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  constexpr uint32_t quiet = 0x40;
  bool isNan = (bits & allButSign) > infinity;
  return uint16_t(isNan ? (bits >> 16) | quiet : rounded);
}

/// As in ConvertF16.cpp, which says why.
static uint16_t toF16(uint32_t bits) {
  constexpr uint32_t shift = 23 - 10, half = 126U << 23,
                     leastNormal = 113U << 23, bias = 112U << 23;
  uint32_t magnitude = bits & allButSign, sign = (bits ^ magnitude) >> 16;
  uint32_t odd = (magnitude >> shift) & 1;
  uint32_t result = (magnitude - bias + 0xfff + odd) >> shift;
  if (magnitude > infinity)
    result = 0x7e00 | ((magnitude >> shift) & 0x3ff);
  else if (magnitude >= pastF16)
    result = 0x7c00;
  else if (magnitude < leastNormal)
    result = llvm::bit_cast<uint32_t>(llvm::bit_cast<float>(magnitude) + 0.5F) -
             half;
  return uint16_t(result | sign);
}

/// The elements of `from`, a resource of f32.
static ElementsAttr roundResource(DenseResourceElementsAttr from, FloatType to,
                                  RankedTensorType type) {
  AsmResourceBlob *blob = from.getRawHandle().getBlob();
  if (!blob)
    return {}; // elided from a dump
  ArrayRef<char> bytes = blob->getData();
  size_t count = bytes.size() / sizeof(float);
  bool narrow = type.getElementType() == to, isF16 = to.isF16();
  assert((narrow || !isF16) && "f16 is stored as such");
  constexpr size_t alignment = 64;
  AsmResourceBlob result = HeapAsmResourceBlob::allocate(
      std::max<size_t>(count * (narrow ? 2 : 4), 1), alignment);
  char *out = result.getMutableData().data();
  for (size_t index = 0; index < count; ++index) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + index * sizeof bits, sizeof bits);
    uint16_t rounded = isF16 ? toF16(bits) : toBf16(bits);
    if (narrow) {
      std::memcpy(out + index * sizeof rounded, &rounded, sizeof rounded);
    } else {
      uint32_t wide = uint32_t(rounded) << 16;
      std::memcpy(out + index * sizeof wide, &wide, sizeof wide);
    }
  }
  llvm::StringRef suffix = isF16 ? "_f16" : "_bf16";
  return DenseResourceElementsAttr::get(
      type, (from.getRawHandle().getKey() + suffix).str(), std::move(result));
}

ElementsAttr roundElements(ElementsAttr from, FloatType to,
                           RankedTensorType type) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(from))
    return roundResource(resource, to, type);
  auto dense = dyn_cast<DenseElementsAttr>(from);
  if (!dense)
    return {};
  const llvm::fltSemantics &wanted =
      cast<FloatType>(type.getElementType()).getFloatSemantics();
  return dense.mapValues(type.getElementType(), [&](const APFloat &value) {
    APFloat rounded = value;
    bool lost = false;
    rounded.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &lost);
    rounded.convert(wanted, APFloat::rmNearestTiesToEven, &lost);
    return rounded.bitcastToAPInt();
  });
}

/// The number of f16 as f32.
static uint32_t fromF16(uint16_t half) {
  constexpr uint32_t shift = 23 - 10, infinityOfF16 = 0x7c00, bias = 112U << 23,
                     leastNormal = 113U << 23;
  uint32_t magnitude = half & 0x7fffU, sign = (half ^ magnitude) << 16;
  uint32_t placed = magnitude << shift;
  if (magnitude >= infinityOfF16)
    return sign | infinity | placed;
  if (placed >= 1U << 23)
    return sign | (placed + bias);
  // M * 2^-24: behind the exponent of 2^-14, less that.
  float number = llvm::bit_cast<float>(placed | leastNormal) -
                 llvm::bit_cast<float>(leastNormal);
  return sign | llvm::bit_cast<uint32_t>(number);
}

ElementsAttr widenElements(ElementsAttr from, RankedTensorType type) {
  bool isF16 = cast<ShapedType>(from.getType()).getElementType().isF16();
  if (auto dense = dyn_cast<DenseElementsAttr>(from))
    return dense.mapValues(type.getElementType(), [](APFloat value) {
      bool lost = false;
      value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
      return value.bitcastToAPInt();
    });
  auto resource = dyn_cast<DenseResourceElementsAttr>(from);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return {}; // elided from a dump
  ArrayRef<char> bytes = blob->getData();
  size_t count = bytes.size() / sizeof(uint16_t);
  AsmResourceBlob result = HeapAsmResourceBlob::allocate(
      std::max<size_t>(count * sizeof(float), 1), /*align=*/64);
  char *out = result.getMutableData().data();
  for (size_t index = 0; index < count; ++index) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + index * sizeof half, sizeof half);
    uint32_t bits = isF16 ? fromF16(half) : uint32_t(half) << 16;
    std::memcpy(out + index * sizeof bits, &bits, sizeof bits);
  }
  return DenseResourceElementsAttr::get(
      type, (resource.getRawHandle().getKey() + "_f32").str(),
      std::move(result));
}

bool overflowsF16(ElementsAttr from) {
  ArrayRef<char> bytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(from)) {
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      bytes = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(from)) {
    bytes = dense.getRawData(); // one element for all where they are equal
  }
  bool overflows = false;
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size();
       at += sizeof(uint32_t)) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    overflows |= (bits & allButSign) - pastF16 < infinity - pastF16;
  }
  return overflows;
}

ElementsAttr padElements(ElementsAttr from, int64_t axis,
                         RankedTensorType type) {
  auto before = cast<RankedTensorType>(from.getType());
  ArrayRef<char> bytes;
  bool isSplat = false;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(from)) {
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      bytes = blob->getData();
  } else if (auto dense = dyn_cast<DenseElementsAttr>(from)) {
    bytes = dense.getRawData();
    isSplat = dense.isSplat();
  }
  constexpr size_t size = 2;
  auto elements = size_t(before.getNumElements());
  if (bytes.size() != (isSplat ? size : elements * size))
    return {};
  AsmResourceBlob result = HeapAsmResourceBlob::allocate(
      size_t(type.getNumElements()) * size, /*align=*/64);
  char *out = result.getMutableData().data();
  std::fill_n(out, size_t(type.getNumElements()) * size, 0);
  // Runs of what is inside of the axis.
  size_t inner = 1;
  for (int64_t dim = axis + 1; dim < type.getRank(); ++dim)
    inner *= size_t(type.getDimSize(dim));
  size_t run = inner * size_t(before.getDimSize(axis)),
         place = inner * size_t(type.getDimSize(axis));
  for (size_t index = 0; index < elements; ++index) {
    size_t to = index / run * place + index % run;
    std::memcpy(out + to * size, bytes.data() + (isSplat ? 0 : index * size),
                size);
  }
  return DenseResourceElementsAttr::get(type, "padded_bf16", std::move(result));
}

} // namespace keratin
