//===- Sweep.h - errors of the vector mathematics over all floats ---------===//
#ifndef KERATIN_TESTS_ULP_SWEEP_H
#define KERATIN_TESTS_ULP_SWEEP_H

#include "tests/ulp/ElementKernel.h"

#include "llvm/ADT/ArrayRef.h"

namespace keratin::test {

/// A function of one f32 and what is promised of it.
struct Function {
  const char *name;
  const char *body;            ///< see ElementKernel
  double (*reference)(double); ///< of libm, in double
  double bound;                ///< in units of the last place
  double domain;               ///< the bound holds for |x| up to here
  double perUnit = 0; ///< and grows by this from 0 to -1, from -1 to -2
};

/// What a sweep found. Special values count as wrong wherever they differ from
/// the rounded reference: NaN, infinities, zeros and their sign.
struct Errors {
  double worst = 0;
  float worstAt = 0;
  uint64_t checked = 0, wrongSpecial = 0;
  float wrongAt = 0;
};

llvm::ArrayRef<Function> functions();

/// Error of `y` for the exact `reference`, in units of the last place of f32;
/// infinity where one of them is special and the other is not the same.
double ulpError(float y, double reference);

/// Compares every `stride`th pattern of 32 bits.
Errors sweep(const Function &function, const KernelForm &form, uint64_t stride);

} // namespace keratin::test

#endif // KERATIN_TESTS_ULP_SWEEP_H
