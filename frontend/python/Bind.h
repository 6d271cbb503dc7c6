//===- Bind.h - C++ functions of the API as Python functions ----*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_BIND_H
#define KERATIN_FRONTEND_PYTHON_BIND_H

#include "Arguments.h"
#include "Arrays.h"

#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace keratin::python {

/// An argument of a Python function: its name, and its default as Python text.
struct Argument {
  const char *name;
  const char *defaultValue;
};

/// Defines a function of as many objects as there are arguments. `signature`
/// and `doc` are for people.
void defObjects(nb::module_ &m, const char *name,
                std::vector<Argument> arguments, const char *signature,
                const char *doc,
                std::function<nb::object(const nb::object *)> call);

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

inline nb::object result(const K::Tensor &tensor) { return wrap(tensor); }
inline nb::object result(bool value) { return nb::bool_(value); }
inline nb::object result(int64_t value) { return nb::int_(value); }
inline nb::object result(double value) { return nb::float_(value); }
inline nb::object result(const std::string &text) {
  return nb::str(text.c_str(), text.size());
}
inline nb::object result(DType dtype) {
  return result(std::string(dtypeName(dtype)));
}
inline nb::object result(const K::Shape &shape) { return toTuple(shape); }
inline nb::object result(Array array) { return toNumpy(std::move(array)); }
inline nb::object result(const K::Dim &dim) {
  return dim.tensor ? wrap(dim.tensor) : result(dim.extent);
}
inline nb::object result(const K::BatchStatistics &statistics) {
  return nb::make_tuple(wrap(statistics.normalized), wrap(statistics.mean),
                        wrap(statistics.variance));
}
nb::object result(const K::CtcPaths &paths);
inline nb::object result(const std::pair<K::Tensor, K::Tensor> &pair) {
  return nb::make_tuple(wrap(pair.first), wrap(pair.second));
}
inline nb::object result(const std::optional<std::string> &text) {
  return text ? result(*text) : nb::none();
}
nb::object result(const K::CompileCacheStatistics &statistics);
template <typename T> nb::object result(const std::map<std::string, T> &map) {
  nb::dict dict;
  for (const auto &[key, value] : map)
    dict[key.c_str()] = result(value);
  return dict;
}
template <typename T>
  requires(!std::is_same_v<T, int64_t>) // that is a Shape
nb::object result(const std::vector<T> &values) {
  nb::list list;
  for (const T &value : values)
    list.append(result(value));
  return list;
}

inline nb::object result(const K::CtcPaths &paths) {
  return nb::make_tuple(result(paths.decoded), wrap(paths.log_prob));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What is kept of an argument during the call.
template <typename A>
using Kept = std::conditional_t<std::is_same_v<A, std::string_view>,
                                std::string, std::remove_cvref_t<A>>;

template <typename R, typename... A, size_t... I>
nb::object call(R (*function)(A...), const char *name,
                const std::vector<Argument> &arguments, const nb::object *given,
                std::index_sequence<I...>) {
  Building building;
  Like like;
  (like.join(given[I]), ...);
  std::tuple<Kept<A>...> values{
      Convert<Kept<A>>::from(given[I], {name, arguments[I].name}, like)...};
  if constexpr (std::is_void_v<R>) {
    function(std::get<I>(values)...);
    return nb::none();
  } else {
    return result(function(std::get<I>(values)...));
  }
}

/// Defines a C++ function as it is.
template <typename R, typename... A>
void def(nb::module_ &m, const char *name, R (*function)(A...),
         const std::vector<Argument> &arguments, const char *signature,
         const char *doc) {
  defObjects(m, name, arguments, signature, doc, [=](const nb::object *given) {
    return call(function, name, arguments, given,
                std::index_sequence_for<A...>());
  });
}

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_BIND_H
