//===- Arrays.h - NumPy arrays in and out -----------------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_ARRAYS_H
#define KERATIN_FRONTEND_PYTHON_ARRAYS_H

#include "keratin/array.h"

#include <nanobind/nanobind.h>

namespace keratin::python {

namespace nb = nanobind;

/// `np.asarray(object)`; what NumPy refuses is a value_error, to which callers
/// add their names.
nb::object asNumpy(nb::handle object);

/// The elements of an array, shared when they are dense, row-major and of a
/// dtype that we have, else copied. Anything that NumPy takes is one: lists,
/// numbers. Throws Python's TypeError for elements that are no numbers.
Array borrowArray(nb::handle object);
/// The same in memory of its own, for what lives longer than the call.
Array copyArray(nb::handle object);
/// A NumPy array, or a NumPy scalar for one without axes. The elements move out
/// when nobody else has them.
nb::object toNumpy(Array array);

/// The dtype of "float32", np.float32, np.dtype("float32"), `float` …: throws
/// Python's TypeError for what is none.
DType toDType(nb::handle object);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_ARRAYS_H
