//===- Arrays.h - arrays of numbers, there and back -------------*- C++ -*-===//
#ifndef KERATIN_TESTS_FRONTEND_ARRAYS_H
#define KERATIN_TESTS_FRONTEND_ARRAYS_H

#include "keratin/backend.h"

namespace keratin::test {

inline Array floats(std::vector<int64_t> shape,
                    const std::vector<float> &values) {
  return Array::of<float>(std::move(shape), values);
}

inline backend::Tensor constant(std::vector<int64_t> shape,
                                const std::vector<float> &values) {
  return backend::constant(floats(std::move(shape), values));
}

inline std::vector<double> valuesOf(const Array &array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.size(); ++i)
    values.push_back(array.at(i));
  return values;
}

inline std::vector<double> evaluate(const backend::Tensor &x) {
  return valuesOf(backend::eval(x));
}

} // namespace keratin::test

#endif // KERATIN_TESTS_FRONTEND_ARRAYS_H
