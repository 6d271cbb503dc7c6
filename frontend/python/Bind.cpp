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
  dict["unit_hits"] = statistics.unitHits;
  dict["unit_misses"] = statistics.unitMisses;
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

/// What an error calls `operand #K`, as an argument of the call: the one that
/// is None, or the only tensor; of several tensors nobody knows which it is.
static const char *operandName(size_t index,
                               const std::vector<Argument> &arguments,
                               const nb::object *given) {
  if (index < arguments.size() && given[index].is_none())
    return arguments[index].name;
  const char *only = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (unwrap(given[i]))
      only = only ? "" : arguments[i].name;
  return only && *only ? only : nullptr;
}

/// `text` of an error as one of the function `name`, whichever function that it
/// is composed of found the mistake.
static std::string named(std::string text, const std::string &name,
                         const std::vector<Argument> &arguments,
                         const nb::object *given) {
  static constexpr std::string_view operand = "operand #";
  if (size_t at = text.find(operand); at != std::string::npos) {
    size_t end = at + operand.size(), index = 0;
    for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end)
      index = index * 10 + static_cast<size_t>(text[end] - '0');
    if (const char *argument = operandName(index, arguments, given))
      text.replace(at, end - at, argument);
  }
  size_t at = text.find(name + ": ");
  if (at == 0 || (at != std::string::npos && text[at - 1] == ' '))
    return text;
  return name + ": " + text;
}

/// The call of a function with errors that name it.
static nb::object
callNamed(const std::function<nb::object(const nb::object *)> &call,
          const char *name, const std::vector<Argument> &arguments,
          const nb::object *given) {
  try {
    return call(given);
  } catch (const Error &error) {
    throw Error(named(error.what(), name, arguments, given));
  } catch (const nb::builtin_exception &error) {
    if (error.type() == nb::exception_type::next_overload)
      throw;
    throw nb::builtin_exception(
        error.type(), named(error.what(), name, arguments, given).c_str());
  }
}

template <size_t... I>
static void defArity(nb::module_ &m, const char *name,
                     const std::vector<Argument> &arguments,
                     const char *signature, const char *doc,
                     std::function<nb::object(const nb::object *)> call,
                     std::index_sequence<I...>) {
  m.def(
      name,
      [call = std::move(call), name, arguments](Object<I>... given) {
        const nb::object objects[] = {std::move(given)..., nb::object()};
        return callNamed(call, name, arguments, objects);
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
