//===- array.h - dense arrays and element types -----------------*- C++ -*-===//
#ifndef KERATIN_ARRAY_H
#define KERATIN_ARRAY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace keratin {

/// What a user can cause: a message in lower case that names both facts that
/// disagree. `what()` is one line.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Element types, in Keras' names. The values are those of ktn_dtype_t (keratin/abi.h).
enum class DType : int32_t {
  Bool = 1, Int8 = 2, Int16 = 3, Int32 = 4, Int64 = 5, UInt8 = 6,
  Float16 = 7, BFloat16 = 8, Float32 = 9, Float64 = 10,
};

/// "float32" …
std::string_view dtypeName(DType dtype);
/// Throws Error for a name that is none, listing those that are.
DType parseDType(std::string_view name);
/// Bytes of one element.
int64_t dtypeSize(DType dtype);

/// A dense row-major array that owns its elements, or shares them with whoever
/// keeps `owner` alive. Copies share the elements.
class Array {
public:
  Array() = default;
  /// Zeros. Throws Error when the size overflows or an extent is negative.
  Array(DType dtype, std::vector<int64_t> shape);
  /// Shares `data`, which `owner` keeps alive; 64-byte alignment is not needed.
  Array(DType dtype, std::vector<int64_t> shape, const void *data,
        std::shared_ptr<const void> owner);

  template <typename T>
  static Array of(std::vector<int64_t> shape, const std::vector<T> &values);
  static Array full(std::vector<int64_t> shape, double value,
                    DType dtype = DType::Float32);

  DType dtype() const { return type; }
  const std::vector<int64_t> &shape() const { return extents; }
  int64_t size() const;      ///< number of elements
  int64_t byteSize() const;
  const void *data() const { return bytes; }
  /// Unshared elements to write: copies first when they are shared.
  void *mutableData();
  template <typename T> const T *as() const { return static_cast<const T *>(bytes); }
  /// Element `index` (row-major) converted to double.
  double at(int64_t index) const;

private:
  DType type = DType::Float32;
  std::vector<int64_t> extents;
  const void *bytes = nullptr;
  std::shared_ptr<const void> owner;
};

} // namespace keratin

#endif // KERATIN_ARRAY_H
