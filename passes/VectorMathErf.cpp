//===- VectorMathErf.cpp - the error function -----------------------------===//
#include "passes/VectorMath.h"

#include "passes/VectorMathTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace keratin {

/// |x| < 0.9375: x + x p(x^2). Beyond, f32: 1 - 1/p(|x|)^8; f64:
/// 1 - e^(-x^2) p((|x| - 2) / (|x| + 2)).
Value VectorMath::erf(Value x) {
  Value magnitude = abs(x);
  Value small = fma(magnitude, horner(mul(x, x), table.erfSmall), magnitude);
  Value rest;
  if (isDouble()) {
    Value y = atMost(magnitude, 6.0); // erf is 1 from 5.93 on
    Value two = constant(2.0);
    Value t = div(sub(y, two), add(y, two));
    rest = mul(expFlushed(negate(mul(y, y))), horner(t, table.erfLarge));
  } else {
    Value p = horner(magnitude, table.erfLarge);
    for (int squaring = 0; squaring < 3; ++squaring)
      p = mul(p, p);
    rest = div(constant(1.0), p);
  }
  Value large = sub(constant(1.0), rest);
  return withSignOf(select(lessThan(magnitude, constant(0.9375)), small, large),
                    x);
}

/// erf of y = scale |x| in pieces around multiples of 1/8, polynomials of 8 y -
/// k with k = round(8 y).
Value VectorMath::erfInPieces(Value x, double scale) {
  double pieces = f32ErfPiecesOfOne * scale;
  Value magnitude = atMost(abs(x), f32ErfPiecesEnd / pieces);
  Value shifted = fma(magnitude, pieces, table.magic);
  Value k = sub(shifted, constant(table.magic));
  Value f = fma(magnitude, pieces, negate(k));
  Value number = asInteger(shifted);
  Value sum = lookUp(number, f32ErfPieces.back());
  for (ArrayRef<float> coefficients : llvm::reverse(f32ErfPieces.drop_back()))
    sum = fma(sum, f, lookUp(number, coefficients));
  return withSignOf(sum, x);
}

Value VectorMath::erfForSum(Value x, double scale) {
  if (hasIntrinsics())
    return erfInPieces(x, scale);
  if (scale != 1)
    x = mul(x, constant(scale));
  if (isDouble())
    return erf(x);
  Value y = atMost(atLeast(x, -table.erfIsOne), table.erfIsOne);
  Value u = mul(y, y);
  return quotient(mul(y, horner(u, table.erfNumerator)),
                  horner(u, table.erfDenominator));
}

} // namespace keratin
