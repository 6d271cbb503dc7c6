//===- tensor.h - what the functions of the backend API take ----*- C++ -*-===//
//
// Handles on graph values and the small argument types of the API: shapes,
// axes, paddings. keratin/backend.h is the header to include.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_TENSOR_H
#define KERATIN_TENSOR_H

#include "keratin/array.h"

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace keratin::backend {

using keratin::Array;
using keratin::DType;
using keratin::Error;

/// A dimension that is not known when the graph is built, Python's `None`.
inline constexpr int64_t None = -1; // NOLINT(readability-identifier-naming)
/// Extents, outermost axis first; `None` where not known.
using Shape = std::vector<int64_t>;

class Graph;
class ValueHandle;

/// A value in the graph: a small handle, cheap to copy. The value, and what it
/// is computed from, live as long as a handle, a function or another value
/// needs them; handles may die in any thread. A default-constructed tensor is
/// Python's `None`; one made from a number takes the dtype of the tensor that
/// it is combined with, and floatx() where there is none.
class Tensor {
public:
  Tensor() = default;
  template <typename T>
    requires std::is_arithmetic_v<T>
  Tensor(T number)
      : literal(static_cast<double>(number)),
        kind(std::is_same_v<T, bool> ? Kind::Bool
             : std::is_integral_v<T> ? Kind::Integer
                                     : Kind::Float) {}
  /// False for `None`.
  explicit operator bool() const { return kind != Kind::None; }
  /// Whether both are the same value of the same graph; `equal` compares
  /// elements.
  bool is(const Tensor &other) const { return value && value == other.value; }
  /// A key for maps and sets: two tensors have the same if one `is` the other.
  const void *id() const { return value; }
  /// Whether it was made from a number, and is in no graph yet.
  bool isNumber() const { return kind != Kind::None && kind != Kind::Value; }
  /// The number that it was made from.
  double number() const { return literal; }

private:
  friend class Graph;
  enum class Kind : uint8_t { None, Bool, Integer, Float, Value };

  std::shared_ptr<ValueHandle> handle;
  void *value = nullptr; // mlir::Value's opaque pointer
  double literal = 0;
  Kind kind = Kind::None;
};

using Tensors = std::vector<Tensor>;

/// What a call of a function changes after its outputs are computed: a variable
/// and its new value, or a tensor that `update`, `update_add` … gave.
struct Update {
  Update(Tensor performed) : value(std::move(performed)) {}
  Update(Tensor variable, Tensor value)
      : variable(std::move(variable)), value(std::move(value)) {}

  Tensor variable; ///< `None` for a tensor that assigns
  Tensor value;
};

/// A tensor, or a function that makes it when it is needed.
class Branch {
public:
  Branch(Tensor tensor) : tensor(std::move(tensor)) {}
  template <typename T>
    requires std::is_arithmetic_v<T>
  Branch(T number) : tensor(number) {}
  template <typename F>
    requires std::is_invocable_r_v<Tensor, F &>
  Branch(F make) : make(std::move(make)) {}

  Tensor get() const { return make ? make() : tensor; }

private:
  Tensor tensor;
  std::function<Tensor()> make;
};

/// Axes of a tensor, negative ones counted from the end; Python's `None`, all
/// axes, when default-constructed.
class Axes {
public:
  Axes() : everything(true) {}
  template <typename T>
    requires std::is_integral_v<T>
  Axes(T axis) : list{static_cast<int64_t>(axis)} {}
  Axes(std::initializer_list<int64_t> axes) : list(axes) {}
  Axes(std::vector<int64_t> axes) : list(std::move(axes)) {}

  bool all() const { return everything; }
  const std::vector<int64_t> &values() const { return list; }

private:
  std::vector<int64_t> list;
  bool everything = false;
};

/// One extent of a shape that is computed in the graph: a number, `None` or -1,
/// or a scalar integer tensor such as `slice(shape(x), {0}, {1})`.
struct Dim {
  template <typename T>
    requires std::is_integral_v<T>
  Dim(T extent) : extent(static_cast<int64_t>(extent)) {}
  Dim(Tensor tensor) : tensor(std::move(tensor)) {}

  int64_t extent = None;
  Tensor tensor;
};

/// A target shape: numbers, or numbers mixed with scalar tensors.
class Dims {
public:
  Dims() = default;
  Dims(std::initializer_list<Dim> dims) : list(dims) {}
  Dims(const Shape &shape) : list(shape.begin(), shape.end()) {}
  Dims(std::vector<Dim> dims) : list(std::move(dims)) {}
  /// The elements of an integer tensor of one axis, such as `shape(x)`. Throws
  /// Error for another tensor.
  Dims(const Tensor &extents);

  const std::vector<Dim> &values() const { return list; }

private:
  std::vector<Dim> list;
};

/// Padding of a convolution or pool: "valid", "same" or "causal" (conv1d), or
/// the explicit numbers of zeros {before, after} of each spatial axis.
class Padding {
public:
  Padding(const char *name) : word(name) {}
  Padding(std::string_view name) : word(name) {}
  Padding(const std::string &name) : word(name) {}
  Padding(std::vector<std::pair<int64_t, int64_t>> amounts)
      : pairs(std::move(amounts)) {}

  /// Empty when the amounts are explicit.
  const std::string &name() const { return word; }
  const std::vector<std::pair<int64_t, int64_t>> &amounts() const {
    return pairs;
  }

private:
  std::string word;
  std::vector<std::pair<int64_t, int64_t>> pairs;
};

} // namespace keratin::backend

#endif // KERATIN_TENSOR_H
