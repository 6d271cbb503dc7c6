//===- Array.cpp - dense arrays and element types -------------------------===//
#include "keratin/array.h"

#include "keratin/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

namespace keratin {

namespace {

const ktn_dtype_row_t &rowOf(DType dtype) {
  if (const ktn_dtype_row_t *row = ktn_dtype_row(static_cast<int32_t>(dtype)))
    return *row;
  throw Error("dtype number " + std::to_string(static_cast<int32_t>(dtype)) +
              " is none of the known ones");
}

/// The upper half of a float, rounded to nearest even.
struct BFloat {
  uint16_t bits;
  BFloat() = default;
  explicit BFloat(float value) {
    auto wide = std::bit_cast<uint32_t>(value);
    if (std::isnan(value))
      bits = static_cast<uint16_t>((wide >> 16) | 0x40);
    else
      bits = static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
  }
  operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

/// IEEE binary16, rounded to nearest even.
struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value) {
    auto wide = std::bit_cast<uint32_t>(value);
    auto sign = static_cast<uint16_t>((wide >> 16) & 0x8000);
    float size = std::fabs(value);
    if (std::isnan(value))
      bits = sign | 0x7e00;
    else if (size >= 65520.0f) // halfway from the largest half to 2^16
      bits = sign | 0x7c00;
    else if (size < 0x1p-14f) // subnormal: a multiple of 2^-24
      bits = sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24f));
    else {
      uint32_t rounded =
          (wide & 0x7fffffff) + 0xfff + ((wide >> 13) & 1) - (112u << 23);
      bits = sign | static_cast<uint16_t>(rounded >> 13);
    }
  }
  operator float() const {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0) {
      float value = static_cast<float>(fraction) * 0x1p-24f;
      return sign ? -value : value;
    }
    uint32_t biased = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | (biased << 23) | (fraction << 13));
  }
};

/// Calls `visitor` with a null pointer to the C++ type of the elements.
template <typename Visitor> auto visitElements(DType dtype, Visitor visitor) {
  switch (dtype) {
  case DType::Bool:
    return visitor(static_cast<bool *>(nullptr));
  case DType::Int8:
    return visitor(static_cast<int8_t *>(nullptr));
  case DType::Int16:
    return visitor(static_cast<int16_t *>(nullptr));
  case DType::Int32:
    return visitor(static_cast<int32_t *>(nullptr));
  case DType::Int64:
    return visitor(static_cast<int64_t *>(nullptr));
  case DType::UInt8:
    return visitor(static_cast<uint8_t *>(nullptr));
  case DType::Float16:
    return visitor(static_cast<Half *>(nullptr));
  case DType::BFloat16:
    return visitor(static_cast<BFloat *>(nullptr));
  case DType::Float32:
    return visitor(static_cast<float *>(nullptr));
  case DType::Float64:
    break;
  }
  return visitor(static_cast<double *>(nullptr));
}

/// Casts as ktn.cast does: towards zero, saturating; NaN becomes 0.
template <typename To, typename From> To convertElement(From value) {
  constexpr bool fromFloat =
      !std::is_integral_v<From>; // Half and BFloat included
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<double>(value) != 0;
  } else if constexpr (std::is_integral_v<To> && fromFloat) {
    auto wide = static_cast<double>(value);
    if (std::isnan(wide))
      return 0;
    if (wide <= static_cast<double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (wide >= static_cast<double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Byte size of an array; what a user asked for must be addressable.
int64_t checkedByteSize(DType dtype, const std::vector<int64_t> &shape) {
  int64_t bytes = dtypeSize(dtype);
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t extent : shape) {
    if (extent < 0)
      throw Error("an array of shape " + shapeName(shape) +
                  " has an extent below 0");
    if (!empty && __builtin_mul_overflow(bytes, extent, &bytes))
      throw Error("an array of shape " + shapeName(shape) + " and dtype " +
                  std::string(dtypeName(dtype)) + " has more than 2^63 bytes");
  }
  return empty ? 0 : bytes;
}

/// Aligned memory together with its count of owners: one allocation, and none
/// that asks for alignment, which malloc is slow at.
std::shared_ptr<void> allocate(int64_t bytes) {
  constexpr size_t alignment = 64;
  size_t space = static_cast<size_t>(bytes) + alignment;
  try {
    auto block = std::make_shared_for_overwrite<std::byte[]>(space);
    void *memory = block.get();
    std::align(alignment, static_cast<size_t>(bytes), memory, space);
    return {std::move(block), memory};
  } catch (const std::bad_alloc &) {
    throw Error("out of memory: an array of " + std::to_string(bytes) +
                " bytes");
  }
}

} // namespace

std::string_view dtypeName(DType dtype) { return rowOf(dtype).name; }

int64_t dtypeSize(DType dtype) { return rowOf(dtype).bytes; }

bool isFloat(DType dtype) { return dtype >= DType::Float16; }

DType parseDType(std::string_view name) {
  std::string known;
  for (const ktn_dtype_row_t &row : ktn_dtype_rows) {
    if (row.name == name)
      return static_cast<DType>(row.dtype);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("dtype '" + std::string(name) + "' is none of " + known);
}

std::string shapeName(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    text += axis ? ", " : "";
    text += shape[axis] < 0 ? "None" : std::to_string(shape[axis]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

Array::Array(DType dtype, std::vector<int64_t> shape)
    : Array(uninitialized(dtype, std::move(shape))) {
  std::memset(mutableData(), 0, static_cast<size_t>(byteSize()));
}

Array Array::uninitialized(DType dtype, std::vector<int64_t> shape) {
  std::shared_ptr<void> memory = allocate(checkedByteSize(dtype, shape));
  const void *data = memory.get();
  return Array(dtype, std::move(shape), data, std::move(memory));
}

Array::Array(DType dtype, std::vector<int64_t> shape, const void *data,
             std::shared_ptr<const void> owner)
    : type(dtype), extents(std::move(shape)), bytes(data),
      keeper(std::move(owner)) {
  checkedByteSize(type, extents);
}

Array Array::full(std::vector<int64_t> shape, double value, DType dtype) {
  Array array(dtype, std::move(shape));
  visitElements(dtype, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T *to = static_cast<T *>(array.mutableData());
    std::fill(to, to + array.size(), convertElement<T>(value));
  });
  return array;
}

int64_t Array::size() const {
  // An empty array may have extents whose product is too large for a number.
  uint64_t count = 1;
  for (int64_t extent : extents)
    count *= static_cast<uint64_t>(extent);
  return static_cast<int64_t>(count);
}

int64_t Array::byteSize() const { return size() * dtypeSize(type); }

void *Array::unsharedData() {
  // A foreign owner may have other readers that are not counted here, so only
  // elements that this class allocated and no other array shares are written.
  bool unshared = keeper.use_count() == 1 && keeper.get() == bytes;
  return unshared ? const_cast<void *>(bytes) : nullptr;
}

void *Array::mutableData() {
  if (!unsharedData()) {
    std::shared_ptr<void> copy = allocate(byteSize());
    if (bytes)
      std::memcpy(copy.get(), bytes, static_cast<size_t>(byteSize()));
    bytes = copy.get();
    keeper = std::move(copy);
  }
  return const_cast<void *>(bytes);
}

double Array::at(int64_t index) const {
  return visitElements(type, [&](auto *element) {
    return static_cast<double>(
        static_cast<const std::remove_pointer_t<decltype(element)> *>(
            bytes)[index]);
  });
}

void Array::set(int64_t index, double value) {
  visitElements(type, [&](auto *element) {
    using T = std::remove_pointer_t<decltype(element)>;
    static_cast<T *>(mutableData())[index] = convertElement<T>(value);
  });
}

Array Array::to(DType dtype) const {
  if (dtype == type)
    return *this;
  Array result(dtype, extents);
  visitElements(type, [&](auto *from) {
    using From = std::remove_pointer_t<decltype(from)>;
    visitElements(dtype, [&](auto *to) {
      using To = std::remove_pointer_t<decltype(to)>;
      const From *source = as<From>();
      std::transform(source, source + size(),
                     static_cast<To *>(result.mutableData()),
                     [](From value) { return convertElement<To>(value); });
    });
  });
  return result;
}

Array Array::reshaped(std::vector<int64_t> shape) const {
  Array result(type, std::move(shape), bytes, keeper);
  if (result.size() != size())
    throw Error("an array of shape " + shapeName(extents) +
                " cannot have the shape " + shapeName(result.extents));
  return result;
}

void Array::checkCount(int64_t count) const {
  if (count != size())
    throw Error(std::to_string(count) + " values do not fill the shape " +
                shapeName(extents));
}

} // namespace keratin
