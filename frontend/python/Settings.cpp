//===- Settings.cpp - how functions are compiled, from Python -------------===//
#include "Settings.h"

#include "Arguments.h"

#include <map>

namespace keratin::python {

namespace {

/// Puts the value of a keyword where it belongs.
template <typename Options>
using Setter = void (*)(Options &, nb::handle value, Place place);
template <typename Options>
using Setters = std::map<std::string, Setter<Options>>;

template <auto member, typename Options>
void set(Options &options, nb::handle value, Place place) {
  using T = std::remove_cvref_t<decltype(options.*member)>;
  options.*member = Convert<T>::from(value, place, {});
}

/// The settings that Python has; hooks and progress are for C++.
template <typename Options> Setters<Options> compileSetters() {
  using S = K::CompileSettings;
  return {{"target", &set<&S::target, Options>},
          {"optimize", &set<&S::optimize, Options>},
          {"threads", &set<&S::threads, Options>},
          {"winograd", &set<&S::winograd, Options>},
          {"tiles", &set<&S::tiles, Options>},
          {"weights24", &set<&S::weights24, Options>},
          {"strassen", &set<&S::strassen, Options>},
          {"pairs", &set<&S::pairs, Options>},
          {"fold_lookups", &set<&S::foldLookups, Options>},
          {"precision", &set<&S::precision, Options>},
          {"unroll_factor", &set<&S::unrollFactor, Options>},
          {"checkpoint_every", &set<&S::checkpointEvery, Options>},
          {"dump_after", &set<&S::dumpAfter, Options>},
          {"dump_directory", &set<&S::dumpDirectory, Options>},
          {"time_passes", &set<&S::timePasses, Options>}};
}

void setBatch(K::SaveOptions &options, nb::handle value, Place place) {
  options.batch =
      Convert<std::optional<int64_t>>::from(value, place, {}).value_or(K::None);
}

void setInputShapes(K::SaveOptions &options, nb::handle value, Place place) {
  options.inputShapes.clear();
  if (value.is_none())
    return;
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
    throw nb::type_error(
        (std::string(place.function) + ": input_shapes is no list of shapes")
            .c_str());
  for (nb::handle shape : nb::borrow<nb::sequence>(value))
    options.inputShapes.push_back(Convert<K::Shape>::from(shape, place, {}));
}

Setters<K::SaveOptions> saveSetters() {
  using S = K::SaveOptions;
  Setters<S> setters = compileSetters<S>();
  setters.insert({{"emit", &set<&S::emit, S>},
                  {"weights", &set<&S::weights, S>},
                  {"name", &set<&S::name, S>},
                  {"batch", &setBatch},
                  {"input_shapes", &setInputShapes},
                  {"training", &set<&S::training, S>}});
  return setters;
}

template <typename Options>
void apply(const Setters<Options> &setters, const nb::kwargs &given,
           const char *function, Options &options) {
  for (auto [key, value] : given) {
    std::string name = nb::cast<std::string>(key);
    auto setter = setters.find(name);
    if (setter == setters.end())
      throw nb::type_error(
          (std::string(function) + ": unknown argument '" + name + "'")
              .c_str());
    setter->second(options, value, {function, setter->first.c_str()});
  }
}

} // namespace

void setFrom(const nb::kwargs &given, const char *function,
             K::CompileSettings &settings) {
  apply(compileSetters<K::CompileSettings>(), given, function, settings);
}

K::SaveOptions saveOptionsFrom(const nb::kwargs &given, const char *function) {
  K::SaveOptions options;
  apply(saveSetters(), given, function, options);
  return options;
}

} // namespace keratin::python
