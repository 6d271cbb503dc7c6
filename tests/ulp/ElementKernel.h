//===- ElementKernel.h - one elementwise operation as machine code --------===//
#ifndef KERATIN_TESTS_ULP_ELEMENTKERNEL_H
#define KERATIN_TESTS_ULP_ELEMENTKERNEL_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace keratin::test {

/// How a kernel is compiled.
struct KernelForm {
  std::string element = "f32";
  unsigned lanes = 16; ///< 0: scalars
  bool fma = true;
  bool rounding = true;
  bool avx512 = false; ///< emulated where this machine has none
  bool divides = false;
  bool permutes = false; ///< likewise
};

/// `body`, MLIR that makes `%y` of `%a` and `%b`, over arrays, as the compiler
/// lowers it at -O2 for this machine. In `body`, TYPE stands for the type of
/// all three, BOOLS for as many i1, ONE and ZERO for constants of TYPE.
class ElementKernel {
public:
  ElementKernel(llvm::StringRef body, const KernelForm &form);
  ~ElementKernel();

  /// y[i] = body(a[i], b[i]) for `count` elements, a multiple of 64.
  void operator()(const void *a, const void *b, void *y, int64_t count) const {
    function(a, b, y, count);
  }

private:
  struct Code;
  std::unique_ptr<Code> code;
  void (*function)(const void *, const void *, void *, int64_t) = nullptr;
};

} // namespace keratin::test

#endif // KERATIN_TESTS_ULP_ELEMENTKERNEL_H
