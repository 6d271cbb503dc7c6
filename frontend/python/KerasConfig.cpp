//===- KerasConfig.cpp - the configuration that Keras holds ---------------===//
#include "KerasConfig.h"

#include "keratin/config.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;
namespace K = keratin::backend;

namespace keratin::python {

/// A variable of keras.backend.common, null without that module. It is looked
/// up each time, as a user may import Keras later or set the value by hand. A
/// thread without the GIL builds no graph and so has no use for it.
static PyObject *setting(const char *name) {
  if (!PyGILState_Check())
    return nullptr;
  PyObject *module =
      PyDict_GetItemString(PyImport_GetModuleDict(), "keras.backend.common");
  return module && PyModule_Check(module)
             ? PyDict_GetItemString(PyModule_GetDict(module), name)
             : nullptr;
}

static std::optional<std::string> text(const char *name) {
  PyObject *value = setting(name);
  if (!value || !PyUnicode_Check(value))
    return std::nullopt;
  return nb::cast<std::string>(nb::handle(value));
}

void defineKerasConfig(nb::module_ &m) {
  m.def(
      "follow_keras",
      [] {
        K::ConfigSource source;
        source.floatx = []() -> std::optional<DType> {
          std::optional<std::string> name = text("_FLOATX");
          return name ? std::optional(parseDType(*name)) : std::nullopt;
        };
        source.epsilon = []() -> std::optional<double> {
          PyObject *value = setting("_EPSILON");
          return value ? std::optional(PyFloat_AsDouble(value)) : std::nullopt;
        };
        source.image_data_format = [] { return text("_IMAGE_DATA_FORMAT"); };
        K::set_config_source(
            std::make_shared<const K::ConfigSource>(std::move(source)));
      },
      "From now on floatx, epsilon and the data format are Keras', where it is "
      "loaded.");
}

} // namespace keratin::python
