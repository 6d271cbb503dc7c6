//===- Bind.cpp - C++ functions of the API as Python functions ------------===//
#include "Bind.h"

#include <nanobind/eval.h>

#include <stdexcept>

namespace keratin::python {

nb::object result(const K::CompileCacheStatistics &statistics) {
  nb::dict dict;
  dict["memory_hits"] = statistics.memoryHits;
  dict["disk_hits"] = statistics.diskHits;
  dict["misses"] = statistics.misses;
  dict["bypassed"] = statistics.bypassed;
  dict["compile_ms"] = statistics.compileMs;
  dict["lookup_ms"] = statistics.lookupMs;
  return dict;
}

/// An argument of any type.
template <size_t> using Object = nb::object;

static nb::arg_v toArg(const Argument &argument) {
  nb::object value;
  if (argument.defaultValue) {
    nb::dict empty;
    value = nb::eval(nb::str(argument.defaultValue), empty, empty);
  }
  // No value is no default.
  return {nb::arg(argument.name).none(), std::move(value)};
}

template <size_t... I>
static void defArity(nb::module_ &m, const char *name,
                     const std::vector<Argument> &arguments,
                     const char *signature, const char *doc,
                     std::function<nb::object(const nb::object *)> call,
                     std::index_sequence<I...>) {
  m.def(
      name,
      [call = std::move(call)](Object<I>... given) {
        const nb::object objects[] = {std::move(given)..., nb::object()};
        return call(objects);
      },
      nb::sig(signature), doc, toArg(arguments[I])...);
}

void defObjects(nb::module_ &m, const char *name,
                std::vector<Argument> arguments, const char *signature,
                const char *doc,
                std::function<nb::object(const nb::object *)> call) {
  // A function of N objects for each N up to the most that a function has.
  [&]<size_t... N>(std::index_sequence<N...>) {
    bool defined = ((arguments.size() == N &&
                     (defArity(m, name, arguments, signature, doc, call,
                               std::make_index_sequence<N>()),
                      true)) ||
                    ...);
    if (!defined)
      throw std::logic_error(std::string(name) + " has too many arguments");
  }(std::make_index_sequence<13>());
}

} // namespace keratin::python
