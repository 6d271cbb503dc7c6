//===- array.h - dense arrays and element types -----------------*- C++ -*-===//
#ifndef KERATIN_ARRAY_H
#define KERATIN_ARRAY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace keratin {

/// What a user can cause: a message in lower case that names both facts that
/// disagree. `what()` is one line.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Element types, in Keras' names. The values are those of ktn_dtype_t
/// (keratin/abi.h).
enum class DType : int32_t {
  Bool = 1,
  Int8 = 2,
  Int16 = 3,
  Int32 = 4,
  Int64 = 5,
  UInt8 = 6,
  Float16 = 7,
  BFloat16 = 8,
  Float32 = 9,
  Float64 = 10,
};

/// "float32" …
std::string_view dtypeName(DType dtype);
/// Throws Error for a name that is none, listing those that are.
DType parseDType(std::string_view name);
/// Bytes of one element.
int64_t dtypeSize(DType dtype);
/// float16, bfloat16, float32 and float64.
bool isFloat(DType dtype);
/// "(2, None, 3)", as Python prints it.
std::string shapeName(const std::vector<int64_t> &shape);

/// The DType of a C++ number.
template <typename T> constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T>,
                  "no DType has these elements");
    return sizeof(T) == 1   ? DType::Int8
           : sizeof(T) == 2 ? DType::Int16
           : sizeof(T) == 4 ? DType::Int32
                            : DType::Int64;
  }
}

/// A dense row-major array that owns its elements, or shares them with whoever
/// keeps `owner` alive. Copies share the elements until one of them is written.
class Array {
public:
  Array() = default;
  /// Zeros. Throws Error when the size overflows or an extent is negative.
  Array(DType dtype, std::vector<int64_t> shape);
  /// Shares `data`, which `owner` keeps alive; 64-byte alignment is not needed.
  Array(DType dtype, std::vector<int64_t> shape, const void *data,
        std::shared_ptr<const void> owner);

  /// Copies `values`. Throws Error when there are more or fewer than the shape
  /// has elements.
  template <typename T>
  static Array of(std::vector<int64_t> shape, const std::vector<T> &values) {
    Array array(dtypeOf<T>(), std::move(shape));
    array.checkCount(static_cast<int64_t>(values.size()));
    T *to = static_cast<T *>(array.mutableData());
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = values[i];
    return array;
  }
  /// Elements that are still to be written.
  static Array uninitialized(DType dtype, std::vector<int64_t> shape);
  static Array full(std::vector<int64_t> shape, double value,
                    DType dtype = DType::Float32);

  DType dtype() const { return type; }
  const std::vector<int64_t> &shape() const { return extents; }
  int64_t size() const; ///< number of elements
  int64_t byteSize() const;
  const void *data() const { return bytes; }
  /// Unshared elements to write: copies first when they are shared.
  void *mutableData();
  /// What mutableData gives where it copies nothing, else null.
  void *unsharedData();
  template <typename T> const T *as() const {
    return static_cast<const T *>(bytes);
  }
  /// Element `index` (row-major) converted to double.
  double at(int64_t index) const;
  /// Writes element `index`: rounds to a float, truncates to an integer.
  void set(int64_t index, double value);
  /// The elements converted to another type; shares them when it is the same.
  Array to(DType dtype) const;
  /// The same elements in another shape. Throws Error when it has another
  /// number of elements.
  Array reshaped(std::vector<int64_t> shape) const;
  /// Whoever keeps the elements alive.
  const std::shared_ptr<const void> &owner() const { return keeper; }

private:
  void checkCount(int64_t count) const;

  DType type = DType::Float32;
  std::vector<int64_t> extents{0};
  const void *bytes = nullptr;
  std::shared_ptr<const void> keeper;
};

} // namespace keratin

#endif // KERATIN_ARRAY_H
