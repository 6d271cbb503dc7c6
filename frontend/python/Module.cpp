//===- Module.cpp - the extension module keratin._keratin -----------------===//
#include "Arrays.h"
#include "Backend.h"
#include "Functions.h"
#include "KerasConfig.h"
#include "Tensors.h"

#include "keratin/backend.h"

#include <nanobind/stl/string.h>

namespace keratin::python {

/// Random ops without a seed take theirs from NumPy, as in Keras: so
/// np.random.seed makes a program repeatable.
static uint64_t drawFromNumpy() {
  nb::gil_scoped_acquire gil;
  nb::object random = nb::module_::import_("numpy.random");
  return nb::cast<uint64_t>(
      nb::int_(random.attr("randint")(nb::int_(int64_t(10'000'000)))));
}

NB_MODULE(_keratin, m) {
  m.doc() = "The Keratin compiler behind the functions of keratin.backend.";
  // Mistakes of the caller: Keras has ValueErrors for them.
  nb::register_exception_translator(
      [](const std::exception_ptr &error, void *) {
        try {
          std::rethrow_exception(error);
        } catch (const Error &mistake) {
          PyErr_SetString(PyExc_ValueError, mistake.what());
        }
      });
  K::set_seed_source(&drawFromNumpy);
  defineTensor(m);
  defineFunctions(m);
  defineBackend(m);
  defineKerasConfig(m);
}

} // namespace keratin::python
