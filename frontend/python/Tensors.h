//===- Tensors.h - tensors as Python objects --------------------*- C++ -*-===//
//
// Keras hangs attributes on tensors and looks them up by identity, so a tensor
// that comes back from C++ is the object that Python has for it already.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_PYTHON_TENSORS_H
#define KERATIN_FRONTEND_PYTHON_TENSORS_H

#include "keratin/backend.h"

#include <nanobind/nanobind.h>

#include <optional>

namespace keratin::python {

namespace nb = nanobind;
namespace K = keratin::backend;

/// The instance behind a Python `Tensor`.
class PyTensor {
public:
  explicit PyTensor(K::Tensor tensor) : tensor(std::move(tensor)) {}
  ~PyTensor();
  PyTensor(const PyTensor &) = delete;
  PyTensor &operator=(const PyTensor &) = delete;

  const K::Tensor tensor;
  // Set by Keras, besides what the graph says.
  std::optional<bool> usesLearningPhase;
  nb::object kerasShape;
};

/// The object of a tensor: the one that Python has, else a new one. None for
/// C++'s `None`, a number for one made from a number.
nb::object wrap(const K::Tensor &tensor);
/// A new object, also where Python has one: for K.identity.
nb::object wrapAnew(const K::Tensor &tensor);
/// Null when `object` is no tensor.
const PyTensor *unwrap(nb::handle object);

void defineTensor(nb::module_ &m);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_TENSORS_H
