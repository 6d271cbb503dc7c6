//===- KerasConfig.h - the configuration that Keras holds -------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_KERASCONFIG_H
#define KERATIN_FRONTEND_PYTHON_KERASCONFIG_H

#include <nanobind/nanobind.h>

namespace keratin::python {

/// `follow_keras()`: from then on floatx, epsilon and the data format are what
/// the module keras.backend.common says, where that is loaded.
void defineKerasConfig(nanobind::module_ &m);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_KERASCONFIG_H
