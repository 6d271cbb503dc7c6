//===- Functions.h - compiled functions as Python objects -------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_FUNCTIONS_H
#define KERATIN_FRONTEND_PYTHON_FUNCTIONS_H

#include <nanobind/nanobind.h>

namespace keratin::python {

/// Prints to Python's sys.stdout what print_tensor left in this thread while
/// it ran without the GIL.
void printPending();

/// The class `Function` and `make_function`.
void defineFunctions(nanobind::module_ &m);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_FUNCTIONS_H
