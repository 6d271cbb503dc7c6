//===- backend.h - the Keras backend API in C++ -----------------*- C++ -*-===//
//
//   namespace K = keratin::backend;
//   K::Tensor x = K::placeholder({K::None, 784});
//   K::Tensor w = K::variable(K::Array::full({784, 10}, 0.01f));
//   K::Function predict = K::function({x}, {K::softmax(K::dot(x, w))});
//   K::Array scores = predict({images})[0];
//
// Names, argument order and defaults are Keras'. A mistake in shapes, dtypes or
// arguments throws keratin::Error at the call that made it. Includes no MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_BACKEND_H
#define KERATIN_BACKEND_H

#include "keratin/array.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keratin::backend {

/// A dimension that is not known when the graph is built, Python's `None`.
inline constexpr int64_t None = -1;
/// Extents, outermost axis first; `None` where not known.
using Shape = std::vector<int64_t>;

class Graph;

/// A value in the graph: a small handle, cheap to copy. The graph lives as long
/// as a tensor of it.
class Tensor {
public:
  Tensor() = default;
  explicit operator bool() const { return graph != nullptr; }

private:
  friend class Graph;
  std::shared_ptr<Graph> graph;
  void *value = nullptr; // mlir::Value's opaque pointer
};

using Tensors = std::vector<Tensor>;

/// `(variable, new value)`: assigned after the outputs of a function are
/// computed.
using Update = std::pair<Tensor, Tensor>;

Tensor placeholder(const Shape &shape, DType dtype = floatx(),
                   std::string_view name = "");
Tensor variable(const Array &value, std::string_view name = "");
Tensor constant(const Array &value, std::string_view name = "");

Shape int_shape(const Tensor &x);
DType dtype(const Tensor &x);
int64_t ndim(const Tensor &x);

} // namespace keratin::backend

#endif // KERATIN_BACKEND_H
