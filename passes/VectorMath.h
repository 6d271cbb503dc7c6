//===- VectorMath.h - elementary functions in plain arithmetic --*- C++ -*-===//
#ifndef KERATIN_PASSES_VECTORMATH_H
#define KERATIN_PASSES_VECTORMATH_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace keratin {

struct VectorMathTable;

/// What the target's vector unit does in one instruction; where it does not,
/// the sequences do without, since the intrinsic would become a call of libm.
struct VectorMathTarget {
  bool fma = true;
  bool rounding = true; ///< floor, ceil, trunc and round half to even
  bool avx512 = false;  ///< times 2^k, and reciprocals to 14 bits, of f32
  bool divides = false; ///< a vector in less time than four products
  /// AVX2's choice of one of eight f32 for each lane takes no longer than one
  /// product.
  bool permutes = false;
};

/// Writes elementary functions as straight lines of `arith` and `math.fma`, and
/// of one intrinsic of AVX2 or four of AVX-512 where the target has it: no
/// table, no call, and no branch but for large angles and quotients. Special
/// values and gradual underflow are right.
///
/// Largest errors in units of the last place, over all f32 values (tests/ulp):
/// exp 1.1, log 1.0, log1p 1.6, expm1 1.6, tanh 2.6, sigmoid 2.8, erf 3.0, sin
/// and cos 1.8, pow 0.6. Of f64, sampled: 3. swish 3.3 from 0 on, 3.3
/// + 1.25 |x| below, which is nowhere 1e-7, and -1e-36 from -87.3 on down.
class VectorMath {
public:
  /// For values of `type`: f32, f64 or a vector of either.
  VectorMath(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
             VectorMathTarget target);

  mlir::Value exp(mlir::Value x);
  /// exp for x <= 0, or NaN.
  mlir::Value expOfNonPositive(mlir::Value x);
  /// exp for x <= 0, where results below the normal numbers may become 0: the
  /// numerators of a softmax. With AVX-512 it is off by 2.2 + 1.25 |x| ulp: as
  /// much as if x had been rounded once more.
  mlir::Value expFlushed(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  /// 1 / (1 + e^-x).
  mlir::Value sigmoid(mlir::Value x);
  /// x / (1 + e^-x).
  mlir::Value swish(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  /// erf of scale x, for sums with numbers that are not smaller: 1 + erf |x|,
  /// of f32, is off by at most 6 ulp, with AVX-512 by 1.
  mlir::Value erfForSum(mlir::Value x, double scale = 1);
  /// Up to |x| = 2^45 (f64: 1e5); beyond, the angle loses digits and results
  /// only stay in [-1, 1].
  mlir::Value sin(mlir::Value x);
  mlir::Value cos(mlir::Value x);
  /// As C's pow, every special case included.
  mlir::Value pow(mlir::Value x, mlir::Value y);
  /// As C's fmod: exact, with the sign of x. Loops while a quotient has more
  /// digits than one division gives.
  mlir::Value remainder(mlir::Value x, mlir::Value y);

  mlir::Value trunc(mlir::Value x);
  mlir::Value floor(mlir::Value x);
  mlir::Value ceil(mlir::Value x);
  mlir::Value roundEven(mlir::Value x);
  /// a b + c, in one rounding if the target can.
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);

private:
  /// x = k ln 2 + r; the low bits of `shifted`, as an integer, hold k.
  struct Reduced {
    mlir::Value shifted, k, r;
  };
  /// x = 2^k (1 + f).
  struct LogParts {
    mlir::Value k, f;
  };
  /// An unevaluated product of a number near 1 and a power of two, or of its
  /// eighth root.
  struct Factors {
    mlir::Value near, scale;
  };
  /// An unevaluated sum of two floats.
  struct Pair {
    mlir::Value high, low;
  };

  /// `shape`, a scalar or a vector type, with elements of `element`.

  bool isDouble() const;
  mlir::Value constant(double value);
  mlir::Value integer(uint64_t value);
  uint64_t bitsOf(double value) const;

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, double b, double c);
  mlir::Value fma(mlir::Value a, mlir::Value b, double c);
  mlir::Value fma(mlir::Value a, double b, mlir::Value c);
  mlir::Value addBits(mlir::Value a, mlir::Value b);
  mlir::Value subBits(mlir::Value a, mlir::Value b);
  mlir::Value andBits(mlir::Value a, mlir::Value b);
  mlir::Value orBits(mlir::Value a, mlir::Value b);
  mlir::Value xorBits(mlir::Value a, mlir::Value b);
  mlir::Value shiftLeft(mlir::Value a, unsigned count);
  mlir::Value shiftRight(mlir::Value a, unsigned count);
  mlir::Value asInteger(mlir::Value x);
  mlir::Value asFloat(mlir::Value bits);

  mlir::Value lessThan(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value notEqual(mlir::Value a, mlir::Value b);
  mlir::Value greaterOrUnordered(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value c, mlir::Value a, mlir::Value b);
  mlir::Value atLeast(mlir::Value x, double bound);
  mlir::Value atMost(mlir::Value x, double bound);

  mlir::Value abs(mlir::Value x);
  mlir::Value negate(mlir::Value x);
  mlir::Value quotient(mlir::Value x, mlir::Value divisor);
  bool hasIntrinsics() const;
  bool hasPermutations() const;
  mlir::Value inRegisters(
      int64_t lanes, mlir::ValueRange operands,
      llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> make);
  mlir::Value intrinsic(llvm::StringRef name, mlir::ValueRange operands,
                        bool rounds, std::optional<int32_t> immediate = {});
  mlir::Value lookUp(mlir::Value number, llvm::ArrayRef<float> pieces);
  mlir::Value erfInPieces(mlir::Value x, double scale);
  mlir::Value reciprocalTo14Bits(mlir::Value x);
  mlir::Value aboveFloor(mlir::Value x);
  mlir::Value quotientBy(mlir::Value x, mlir::Value divisor,
                         mlir::Value reciprocal);
  mlir::Value signBit(mlir::Value x);
  mlir::Value withSignOf(mlir::Value magnitude, mlir::Value x);
  mlir::Value horner(mlir::Value x, llvm::ArrayRef<double> coefficients);
  mlir::Value powerOfTwo(mlir::Value k, double scale = 1.0);
  Pair exactProduct(mlir::Value a, mlir::Value b);
  Pair orderedSum(mlir::Value a, mlir::Value b);
  mlir::Value exactFma(mlir::Value a, mlir::Value b, mlir::Value c);

  Reduced reduceByLn2(mlir::Value x, bool negated = false);
  Reduced reduceNear(mlir::Value x);
  mlir::Value expTail(mlir::Value r, llvm::ArrayRef<double> coefficients);
  mlir::Value powerOfEighths(mlir::Value k);
  Factors powerOfTwoOf(mlir::Value x, double factor);
  mlir::Value expOfReduced(const Reduced &reduced);
  mlir::Value scaledExp(mlir::Value x, mlir::Value low);
  mlir::Value exponentAsFloat(mlir::Value exponent);
  LogParts splitForLog(mlir::Value x);
  mlir::Value logOfParts(LogParts parts);
  mlir::Value withEndsOfLog(mlir::Value result, mlir::Value x, double pole);
  Pair logPair(mlir::Value x);
  mlir::Value sinOrCos(mlir::Value x, bool cosine);
  mlir::Value sinOrCosInPlace(mlir::Value x, bool cosine);
  mlir::Value sinOrCosInDouble(mlir::Value x, bool cosine);
  mlir::Value powOfMagnitude(mlir::Value magnitude, mlir::Value y);
  mlir::Value powOfF32(mlir::Value x, mlir::Value y);
  mlir::Value finishPow(mlir::Value result, mlir::Value x, mlir::Value y);
  mlir::Value isInteger(mlir::Value x);
  mlir::Value inDouble(mlir::Value x, mlir::Value y,
                       mlir::Value (VectorMath::*function)(mlir::Value,
                                                           mlir::Value));
  mlir::Value anyLane(mlir::Value condition);
  mlir::Value takeOffMultiples(mlir::Value x, mlir::Value divisor);
  mlir::Value remainderOfF32(mlir::Value x, mlir::Value y);
  mlir::Value finishRemainder(mlir::Value left, mlir::Value x, mlir::Value y);
  mlir::Value roundMagnitude(mlir::Value x, bool towardZero);

  mlir::ImplicitLocOpBuilder b;
  mlir::Type type, integerType;
  VectorMathTarget target;
  const VectorMathTable &table;
};

} // namespace keratin

#endif // KERATIN_PASSES_VECTORMATH_H
