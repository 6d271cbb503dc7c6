//===- VectorMathTest.cpp - the stated errors hold on a sample ------------===//
#include "tests/ulp/Sweep.h"

#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace keratin::test {
namespace {

/// A prime, so that every exponent and many low bits occur.
constexpr uint64_t sampleStride = 4099;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class EveryFunction : public testing::TestWithParam<Function> {
protected:
  void expectWithinBound(const KernelForm &form, double slack = 0) {
    const Function &function = GetParam();
    Errors errors = sweep(function, form, sampleStride);
    EXPECT_LE(errors.worst, function.bound + slack)
        << function.name << " at " << errors.worstAt;
    EXPECT_EQ(errors.wrongSpecial, 0u)
        << function.name << " at " << errors.wrongAt;
    EXPECT_GT(errors.checked, 500000u);
  }

  /// The intrinsics of one register of `lanes`, for several, a part of one, and
  /// a scalar.
  void expectWithinBoundInPieces(KernelForm form, unsigned lanes) {
    for (unsigned count : {lanes, 4 * lanes, 4U, 0U}) {
      form.lanes = count;
      expectWithinBound(form);
    }
  }
};

TEST_P(EveryFunction, KeepsItsBoundOnVectors) {
  expectWithinBound(KernelForm());
}

TEST_P(EveryFunction, KeepsItsBoundOnScalars) {
  KernelForm form;
  form.lanes = 0;
  expectWithinBound(form);
}

TEST_P(EveryFunction, KeepsItsBoundWithAvx512) {
  KernelForm form;
  form.avx512 = true;
  expectWithinBoundInPieces(form, /*lanes=*/16);
}

TEST_P(EveryFunction, KeepsItsBoundWhereAvx2Permutes) {
  KernelForm form;
  form.permutes = true;
  expectWithinBoundInPieces(form, /*lanes=*/8);
}

// Where that divides in less time than it multiplies by reciprocals.
TEST_P(EveryFunction, KeepsItsBoundWhereAvx512Divides) {
  KernelForm form;
  form.avx512 = form.divides = true;
  form.lanes = 16;
  expectWithinBound(form);
}

// The products of the polynomials are then rounded too.
TEST_P(EveryFunction, LosesHalfAnUlpWithoutFma) {
  KernelForm form;
  form.lanes = 4;
  form.fma = form.rounding = false;
  expectWithinBound(form, /*slack=*/0.5);
}

std::string nameOf(const testing::TestParamInfo<Function> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(VectorMath, EveryFunction,
                         testing::ValuesIn(functions().begin(),
                                           functions().end()),
                         nameOf);

//===----------------------------------------------------------------------===//
// f64
//===----------------------------------------------------------------------===//

struct DoubleFunction {
  const char *name, *body;
  long double (*reference)(long double);
  double low, high;
};

/// Error in units of the last place of a double.
double doubleUlpError(double y, long double reference) {
  double rounded = static_cast<double>(reference);
  if (std::isnan(rounded) || std::isnan(y))
    return std::isnan(rounded) == std::isnan(y) ? 0 : double(inf);
  if (std::isinf(rounded) || std::isinf(y))
    return rounded == y ? 0 : double(inf);
  int exponent = reference == 0 ? -1022 : std::ilogb(reference);
  long double ulp = std::ldexp(1.0L, std::max(exponent, -1022) - 52);
  return static_cast<double>(std::fabs(y - reference) / ulp);
}

class DoubleFunctions : public testing::TestWithParam<DoubleFunction> {};

TEST_P(DoubleFunctions, AreWithinThreeUlp) {
  const DoubleFunction &function = GetParam();
  for (bool fma : {true, false}) {
    KernelForm form{"f64", /*lanes=*/8, fma, /*rounding=*/fma};
    ElementKernel kernel(function.body, form);
    constexpr int count = 1 << 17;
    std::vector<double> x(count), y(count);
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(function.low, function.high);
    // Half of the range, half of all magnitudes within it.
    for (int i = 0; i < count; ++i) {
      x[i] = uniform(random);
      if (i % 2)
        x[i] *= std::ldexp(1.0, -int(random() % 60));
    }
    kernel(x.data(), x.data(), y.data(), count);
    double worst = 0, at = 0;
    for (int i = 0; i < count; ++i) {
      double error = doubleUlpError(y[i], function.reference(x[i]));
      if (error > worst)
        worst = error, at = x[i];
    }
    RecordProperty(fma ? "ulp_fma" : "ulp_no_fma", std::to_string(worst));
    EXPECT_LE(worst, 3.0) << function.name << " at " << at << " fma " << fma;
  }
}

const DoubleFunction doubleFunctions[] = {
    {"exp", "%y = math.exp %a : TYPE", expl, -745, 710},
    {"expm1", "%y = math.expm1 %a : TYPE", expm1l, -50, 709},
    {"log", "%y = math.log %a : TYPE", logl, 0, 4},
    {"log1p", "%y = math.log1p %a : TYPE", log1pl, -1, 8},
    {"tanh", "%y = math.tanh %a : TYPE", tanhl, -20, 20},
    {"erf", "%y = math.erf %a : TYPE", erfl, -6.5, 6.5},
    {"sin", "%y = math.sin %a : TYPE", sinl, -1e5, 1e5},
    {"cos", "%y = math.cos %a : TYPE", cosl, -1e5, 1e5},
};
INSTANTIATE_TEST_SUITE_P(VectorMath, DoubleFunctions,
                         testing::ValuesIn(doubleFunctions),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

//===----------------------------------------------------------------------===//
// pow, remainder, rounding
//===----------------------------------------------------------------------===//

const KernelForm forms[] = {
    {"f32", 16, true, true}, {"f32", 0, true, true}, {"f32", 4, false, false}};

/// All pairs of values that a definition might treat apart.
void makeSpecialPairs(std::vector<float> &a, std::vector<float> &b) {
  const float values[] = {
      0.0f,    -0.0f,  1.0f,    -1.0f,       0.5f,         -0.5f,
      2.0f,    -2.0f,  3.0f,    -3.0f,       2.5f,         1e-45f,
      -1e-45f, 1e-38f, 3.4e38f, -3.4e38f,    16777215.0f,  16777216.0f,
      inf,     -inf,   nan,     0.99999994f, -0.99999994f, 1.0000001f,
      1e10f,   7.0f};
  for (float x : values)
    for (float y : values)
      a.push_back(x), b.push_back(y);
}

void padToBlocks(std::vector<float> &a, std::vector<float> &b) {
  while (a.size() % 64)
    a.push_back(1), b.push_back(1);
}

TEST(Pow, IsCsPowInEverySpecialCase) {
  std::vector<float> a, b;
  makeSpecialPairs(a, b);
  padToBlocks(a, b);
  std::vector<float> y(a.size());
  for (const KernelForm &form : forms) {
    ElementKernel kernel("%y = math.powf %a, %b : TYPE", form);
    kernel(a.data(), b.data(), y.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_LE(ulpError(y[i], std::pow(double(a[i]), double(b[i]))), 0.51)
          << a[i] << " ^ " << b[i] << " = " << y[i];
  }
}

TEST(Pow, IsRoundedRightButForTies) {
  std::mt19937 random(11);
  std::vector<float> a(1 << 16), b(a.size()), y(a.size());
  std::uniform_real_distribution<float> exponent(-90, 90), power(-8, 8);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = std::exp(exponent(random) / (i % 3 + 1));
    b[i] = power(random);
  }
  ElementKernel kernel("%y = math.powf %a, %b : TYPE", KernelForm());
  kernel(a.data(), b.data(), y.data(), a.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst =
        std::max(worst, ulpError(y[i], std::pow(double(a[i]), double(b[i]))));
  EXPECT_LE(worst, 0.51);
}

TEST(Pow, OfDoublesIsWithinTwoUlp) {
  std::mt19937 random(11);
  constexpr int count = 1 << 16;
  std::vector<double> a(count), b(count), y(count);
  std::uniform_real_distribution<double> exponent(-700, 700), power(-8, 8);
  for (int i = 0; i < count; ++i) {
    a[i] = std::exp(exponent(random) / (1 << i % 12));
    b[i] = power(random) * (1 << i % 5);
  }
  for (bool fma : {true, false}) {
    KernelForm form{"f64", 8, fma, fma};
    ElementKernel kernel("%y = math.powf %a, %b : TYPE", form);
    kernel(a.data(), b.data(), y.data(), count);
    double worst = 0;
    int at = 0;
    for (int i = 0; i < count; ++i) {
      double error = doubleUlpError(y[i], powl(a[i], b[i]));
      if (error > worst)
        worst = error, at = i;
    }
    EXPECT_LE(worst, 2) << a[at] << " ^ " << b[at] << " = " << y[at];
  }
}

TEST(Remainder, IsCsFmodBitForBit) {
  std::vector<float> a, b;
  makeSpecialPairs(a, b);
  std::mt19937 random(3);
  for (int i = 0; i < 1 << 15; ++i) {
    a.push_back(llvm::bit_cast<float>(uint32_t(random())));
    b.push_back(llvm::bit_cast<float>(uint32_t(random())));
  }
  padToBlocks(a, b);
  std::vector<float> y(a.size());
  for (const KernelForm &form : forms) {
    ElementKernel kernel("%y = arith.remf %a, %b : TYPE", form);
    kernel(a.data(), b.data(), y.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(ulpError(y[i], std::fmod(a[i], b[i])), 0)
          << a[i] << " mod " << b[i] << " = " << y[i];
  }
}

TEST(Remainder, OfDoublesIsCsFmodBitForBit) {
  std::mt19937_64 random(5);
  constexpr int count = 1 << 14;
  std::vector<double> a(count), b(count), y(count);
  for (int i = 0; i < count; ++i) {
    a[i] = llvm::bit_cast<double>(uint64_t(random()));
    b[i] = llvm::bit_cast<double>(uint64_t(random()));
  }
  const double values[] = {0.0,    -0.0,    1.0,         -3.0,
                           5e-324, 1.7e308, double(inf), nan};
  int i = 0;
  for (double x : values)
    for (double z : values)
      a[i] = x, b[i++] = z;
  for (unsigned lanes : {0u, 8u}) {
    ElementKernel kernel("%y = arith.remf %a, %b : TYPE",
                         KernelForm{"f64", lanes});
    kernel(a.data(), b.data(), y.data(), count);
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(doubleUlpError(y[i], std::fmod(a[i], b[i])), 0)
          << a[i] << " mod " << b[i] << " = " << y[i];
  }
}

/// The sequences for targets without an instruction.
TEST(Rounding, IsExactInPlainArithmetic) {
  const std::pair<const char *, float (*)(float)> cases[] = {
      {"%y = math.floor %a : TYPE", std::floor},
      {"%y = math.ceil %a : TYPE", std::ceil},
      {"%y = math.trunc %a : TYPE", std::trunc},
      {"%y = math.roundeven %a : TYPE", std::nearbyint}};
  std::vector<float> a, b;
  makeSpecialPairs(a, b);
  for (int quarters = -16; quarters <= 16; ++quarters) {
    a.push_back(float(quarters) / 4);
    b.push_back(float(quarters) / 4);
  }
  padToBlocks(a, b);
  std::vector<float> y(a.size());
  for (auto [body, reference] : cases) {
    ElementKernel kernel(body, {"f32", 4, false, false});
    kernel(a.data(), b.data(), y.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(ulpError(y[i], double(reference(a[i]))), 0)
          << body << " of " << a[i] << " = " << y[i];
  }
}

/// The way that GELU takes, in units of the last place of 1.
TEST(ErfPlusOne, IsAsGoodAsOneIs) {
  ElementKernel kernel(R"(%one = arith.constant ONE
      %e = math.erf %a : TYPE
      %y = arith.addf %e, %one : TYPE)",
                       KernelForm());
  std::vector<float> x(1 << 16), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (float(i) - 0x1p15f) * 0x1p-12f;
  x[1] = -inf;
  x[2] = nan;
  kernel(x.data(), x.data(), y.data(), x.size());
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  for (size_t i = 3; i < x.size(); ++i)
    EXPECT_NEAR(y[i], 1 + std::erf(double(x[i])), 6 * 0x1p-24) << x[i];
}

TEST(Extremum, KeepsNanAndIsExactOtherwise) {
  std::vector<float> a, b;
  makeSpecialPairs(a, b);
  padToBlocks(a, b);
  std::vector<float> y(a.size());
  for (const KernelForm &form : forms) {
    ElementKernel maximum("%y = arith.maximumf %a, %b : TYPE", form);
    maximum(a.data(), b.data(), y.data(), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      bool isNan = std::isnan(a[i]) || std::isnan(b[i]);
      EXPECT_EQ(std::isnan(y[i]), isNan) << a[i] << ", " << b[i];
      if (!isNan)
        EXPECT_EQ(y[i], std::max(a[i], b[i]));
    }
  }
  ElementKernel clamp("%six = arith.constant dense<6.0> : TYPE\n"
                      "%y = arith.minimumf %a, %six : TYPE",
                      KernelForm());
  clamp(a.data(), b.data(), y.data(), a.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(std::isnan(a[i]) ? std::isnan(y[i])
                                 : y[i] == std::min(a[i], 6.0f));
}

/// Softmax' exp: as exp, but for results that are not normal.
TEST(FlushedExp, IsExpOfWhatIsNotPositive) {
  Function flushed = functions().front();
  ASSERT_STREQ(flushed.name, "exp");
  flushed.body = "%y = math.exp %a {ktn.flush} : TYPE";
  std::vector<float> x(4096), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = -87.3f * float(i) / float(x.size());
  x[7] = -inf;
  x[8] = nan;
  // Of AVX-512 the exponent is a product that is rounded, elsewhere log2 e is.
  for (bool avx512 : {false, true}) {
    KernelForm form;
    form.avx512 = avx512;
    ElementKernel kernel(flushed.body, form);
    kernel(x.data(), x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      double bound = 2.2 + (avx512 ? 1.25 : 0.25) *
                               (std::isfinite(x[i]) ? -double(x[i]) : 0.0);
      EXPECT_LE(ulpError(y[i], std::exp(double(x[i]))), bound) << x[i];
    }
    if (!avx512)
      EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[7], 0.0f);
    EXPECT_TRUE(std::isnan(y[8]));
  }
}

} // namespace
} // namespace keratin::test
