//===- VectorMathTable.h - the numbers of the functions ---------*- C++ -*-===//
#ifndef KERATIN_PASSES_VECTORMATHTABLE_H
#define KERATIN_PASSES_VECTORMATHTABLE_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace keratin {

/// What is particular to a float format.
struct VectorMathTable {
  int mantissaBits; ///< stored ones; also the distance of subnormals
  double magic;     ///< 1.5 2^mantissaBits: + magic - magic rounds
  double smallestNormal;
  double ln2High, ln2Low; ///< the high part leaves room for k in a product
  double expLow, expHigh; ///< past them the result is 0 or infinite anyway
  double expFlushLow;     ///< k is here the exponent of +0
  double swishLow;        ///< 1 / (1 + e^-x) is normal down to here
  double sigmoidIsOne;    ///< so it is above: 1 + e^-x rounds to 1
  double expm1Low;        ///< e^x is here below half an ulp of 1
  uint64_t sqrtHalf;      ///< the bits of sqrt 1/2
  double log1pTiny;       ///< log1p(x) is x below
  double halfPi[3];       ///< their sum is pi/2
  llvm::ArrayRef<double> exp, expm1, log, sin, cos, erfSmall, erfLarge;
  /// erf(x) = x p(x^2) / q(x^2) up to where that is 1; f32 only.
  llvm::ArrayRef<double> erfNumerator, erfDenominator;
  double erfIsOne;
  /// 2^x for 0 <= x <= 1, for |x| <= 1/2, and 2^(x/8) for those; f32 only.
  llvm::ArrayRef<double> exp2, exp2Near, exp2Eighths;
  /// atanh(s) = s + s^3 (1/3 + s^2 p(s^2)), of pow; f64 only.
  llvm::ArrayRef<double> atanh;
};

extern const VectorMathTable f32MathTable, f64MathTable;

/// erf(y) as polynomials of f = 8 y - k, |f| <= 1/2, for k = 0 to 31: for each
/// power of f, lowest first, the coefficients of all k. 1 for the last k. f32
/// only.
extern const llvm::ArrayRef<llvm::ArrayRef<float>> f32ErfPieces;
inline constexpr double f32ErfPiecesOfOne = 8, f32ErfPiecesEnd = 31.25;

} // namespace keratin

#endif // KERATIN_PASSES_VECTORMATHTABLE_H
