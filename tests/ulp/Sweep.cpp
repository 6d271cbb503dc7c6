//===- Sweep.cpp - errors of the vector mathematics over all floats -------===//
#include "tests/ulp/Sweep.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace keratin::test {

static constexpr double infinity = std::numeric_limits<double>::infinity();

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double swish(double x) {
  x = std::max(x, double(-87.3F));
  return x / (1 + std::exp(-x));
}

static double onePlusErf(double x) { return 1 + std::erf(std::fabs(x)); }

/// The bounds of passes/VectorMath.h.
static constexpr Function table[] = {
    {"exp", "%y = math.exp %a : TYPE", std::exp, 1.1, infinity},
    {"log", "%y = math.log %a : TYPE", std::log, 1.0, infinity},
    {"log1p", "%y = math.log1p %a : TYPE", std::log1p, 1.6, infinity},
    {"expm1", "%y = math.expm1 %a : TYPE", std::expm1, 1.6, infinity},
    {"tanh", "%y = math.tanh %a : TYPE", std::tanh, 2.6, infinity},
    {"erf", "%y = math.erf %a : TYPE", std::erf, 3.0, infinity},
    // Below 0 the sum cancels: there its error is that of erf, which is odd.
    {"erf_plus_one", R"(%one = arith.constant ONE
        %magnitude = math.absf %a : TYPE
        %e = math.erf %magnitude : TYPE
        %y = arith.addf %e, %one : TYPE)",
     onePlusErf, 6.0, infinity},
    {"sin", "%y = math.sin %a : TYPE", std::sin, 1.8, 0x1p45},
    {"cos", "%y = math.cos %a : TYPE", std::cos, 1.8, 0x1p45},
    // As ktn.sigmoid is written: e^-|x| over 1 + e^-|x|, or 1 over it.
    {"sigmoid", R"(%one = arith.constant ONE
        %nought = arith.constant ZERO
        %magnitude = math.absf %a : TYPE
        %minus = arith.negf %magnitude : TYPE
        %z = math.exp %minus : TYPE
        %below = arith.cmpf olt, %a, %nought : TYPE
        %top = arith.select %below, %z, %one : BOOLS, TYPE
        %bottom = arith.addf %one, %z : TYPE
        %y = arith.divf %top, %bottom : TYPE)",
     sigmoid, 2.5, infinity},
    {"swish", R"(%one = arith.constant ONE
        %nought = arith.constant ZERO
        %magnitude = math.absf %a : TYPE
        %minus = arith.negf %magnitude : TYPE
        %z = math.exp %minus : TYPE
        %below = arith.cmpf olt, %a, %nought : TYPE
        %top = arith.select %below, %z, %one : BOOLS, TYPE
        %bottom = arith.addf %one, %z : TYPE
        %s = arith.divf %top, %bottom : TYPE
        %y = arith.mulf %a, %s : TYPE)",
     swish, 3.3, infinity, 1.25},
};

llvm::ArrayRef<Function> functions() { return table; }

double ulpError(float y, double reference) {
  float rounded = static_cast<float>(reference);
  if (std::isnan(rounded) || std::isnan(y))
    return std::isnan(rounded) && std::isnan(y) ? 0 : infinity;
  if (rounded == 0 || y == 0)
    if (rounded == 0 && y == 0 && std::signbit(rounded) != std::signbit(y))
      return infinity;
  // A true value beyond the floats may round to the largest or to infinity.
  double largest = 0x1p128;
  double value = std::isinf(y) ? std::copysign(largest, y) : double(y);
  double exact =
      std::isinf(rounded) ? std::copysign(largest, rounded) : reference;
  int exponent = exact == 0 ? -126 : std::ilogb(exact);
  exponent = std::clamp(exponent, -126, 127);
  return std::fabs(value - exact) * std::ldexp(1.0, 23 - exponent);
}

static void compareBlock(const Function &function, llvm::ArrayRef<float> x,
                         llvm::ArrayRef<float> y, Errors &errors) {
  for (auto [input, output] : llvm::zip(x, y)) {
    if (std::fabs(input) > function.domain && !std::isinf(input))
      continue;
    double error = ulpError(output, function.reference(input)) -
                   function.perUnit * std::clamp(-input, 0.0F, 88.0F);
    ++errors.checked;
    if (std::isinf(error)) {
      ++errors.wrongSpecial;
      errors.wrongAt = input;
    } else if (error > errors.worst) {
      errors.worst = error;
      errors.worstAt = input;
    }
  }
}

Errors sweep(const Function &function, const KernelForm &form,
             uint64_t stride) {
  constexpr int64_t blockSize = 4096;
  ElementKernel kernel(function.body, form);
  std::vector<float> x(blockSize), y(blockSize);
  Errors errors;
  uint64_t pattern = 0, end = uint64_t(1) << 32;
  while (pattern < end) {
    for (float &input : x) {
      input = llvm::bit_cast<float>(
          static_cast<uint32_t>(std::min(pattern, end - 1)));
      pattern += stride;
    }
    kernel(x.data(), x.data(), y.data(), blockSize);
    compareBlock(function, x, y, errors);
  }
  return errors;
}

} // namespace keratin::test
