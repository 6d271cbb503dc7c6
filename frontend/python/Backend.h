//===- Backend.h - the functions of the API ---------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_BACKEND_H
#define KERATIN_FRONTEND_PYTHON_BACKEND_H

#include <nanobind/nanobind.h>

namespace keratin::python {

/// All functions.
void defineBackend(nanobind::module_ &m);
/// Those that bindings.py writes.
void defineGenerated(nanobind::module_ &m);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_BACKEND_H
