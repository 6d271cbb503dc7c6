//===- Arguments.h - arguments of the API from Python objects ---*- C++ -*-===//
//
// Conversions happen inside of the call, not in nanobind's overload resolution:
// so an error names the function, the argument and what was given.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_PYTHON_ARGUMENTS_H
#define KERATIN_FRONTEND_PYTHON_ARGUMENTS_H

#include "Tensors.h"

#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

namespace keratin::python {

/// What an error is about.
struct Place {
  const char *function;
  const char *argument;
};

/// One thread builds graphs at a time. A thread that waits gives up the GIL, as
/// the one that builds needs it when it calls the step of a loop.
class Building {
public:
  Building();
  ~Building();
  Building(const Building &) = delete;
  Building &operator=(const Building &) = delete;
};

/// The dtype that arrays and lists take among the operands of one call: that of
/// the tensors there, where conditions do not count.
class Like {
public:
  /// Notes the dtype of `operand`, if it is a tensor or holds some.
  void join(nb::handle operand);
  const std::optional<DType> &dtype() const { return type; }

private:
  std::optional<DType> type;
};

/// A tensor, number, array, or a list of such.
bool isTensorLike(nb::handle object);

K::Tensor toTensor(nb::handle object, Place place, const Like &like);
int64_t toInteger(nb::handle object, Place place);
/// Extents, None for those that are not known.
nb::tuple toTuple(const K::Shape &shape);

/// A value of the C++ type `T` from an argument.
template <typename T> struct Convert;

#define KERATIN_CONVERT(...)                                                   \
  template <> struct Convert<__VA_ARGS__> {                                    \
    static __VA_ARGS__ from(nb::handle object, Place place, const Like &like); \
  }
KERATIN_CONVERT(K::Tensor);
KERATIN_CONVERT(K::Tensors);
KERATIN_CONVERT(K::Branch);
KERATIN_CONVERT(K::Axes);
KERATIN_CONVERT(K::Dim);
KERATIN_CONVERT(K::Dims);
KERATIN_CONVERT(K::Padding);
KERATIN_CONVERT(std::vector<int64_t>);
KERATIN_CONVERT(std::vector<std::pair<int64_t, int64_t>>);
KERATIN_CONVERT(std::pair<int64_t, int64_t>);
KERATIN_CONVERT(Array);
KERATIN_CONVERT(std::string);
KERATIN_CONVERT(DType);
KERATIN_CONVERT(bool);
KERATIN_CONVERT(int);
KERATIN_CONVERT(int64_t);
KERATIN_CONVERT(uint64_t);
KERATIN_CONVERT(double);
#undef KERATIN_CONVERT

template <typename T> struct Convert<std::optional<T>> {
  static std::optional<T> from(nb::handle object, Place place,
                               const Like &like) {
    if (object.is_none())
      return std::nullopt;
    return Convert<T>::from(object, place, like);
  }
};

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_ARGUMENTS_H
