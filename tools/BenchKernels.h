//===- BenchKernels.h - the kernels that keratin-bench times ----*- C++ -*-===//
#ifndef KERATIN_TOOLS_BENCHKERNELS_H
#define KERATIN_TOOLS_BENCHKERNELS_H

#include "keratin/backend.h"

#include <functional>
#include <string>
#include <vector>

namespace keratin::tools {

/// A function of the backend API, and what it costs at least.
struct BenchKernel {
  std::string name;
  std::vector<backend::Shape> inputs;
  std::function<backend::Tensor(const backend::Tensors &)> build;
  double flops; ///< 0: not a matter of arithmetic
  double bytes; ///< read once and written once, weights too
  /// How it is compiled otherwise than by default.
  backend::CompileSettings settings = {};
};

/// Numbers of one seed, so that every run computes the same.
backend::Array randomArray(const backend::Shape &shape);

std::vector<BenchKernel> benchKernels();

} // namespace keratin::tools

#endif // KERATIN_TOOLS_BENCHKERNELS_H
