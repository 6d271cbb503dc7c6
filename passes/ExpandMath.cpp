//===- ExpandMath.cpp - elementary functions without libm -----------------===//
#include "passes/Lanes.h"
#include "passes/Passes.h"
#include "passes/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"

/// An exp with this attribute has no positive argument, and its results below
/// the normal numbers may be 0.
static constexpr llvm::StringLiteral flushAttribute = "ktn.flush";

/// A maximum with this attribute may leave out what is NaN.
static constexpr llvm::StringLiteral skipNanAttribute = "ktn.skip_nan";

/// The type in which a function of `type` values is computed; null: in none.
static Type computeType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32() || element.isF64())
    return type;
  if (!element.isF16() && !element.isBF16())
    return nullptr;
  return likewise(type, Float32Type::get(type.getContext()));
}

/// Replaces `op`, all of whose operands have its type, by what `write` makes of
/// them; f16 and bf16 by way of f32.
static LogicalResult
rewriteWith(PatternRewriter &rewriter, Operation *op, VectorMathTarget target,
            function_ref<Value(VectorMath &, ValueRange)> write) {
  Type type = op->getResult(0).getType();
  Type compute = computeType(type);
  if (!compute)
    return rewriter.notifyMatchFailure(op, "not a float of 16, 32 or 64 bits");
  SmallVector<Value> operands(op->getOperands());
  if (compute != type)
    for (Value &operand : operands)
      operand = arith::ExtFOp::create(rewriter, op->getLoc(), compute, operand);
  VectorMath math(rewriter, op->getLoc(), compute, target);
  Value result = write(math, operands);
  if (compute != type)
    result = arith::TruncFOp::create(rewriter, op->getLoc(), type, result);
  rewriter.replaceOp(op, result);
  return success();
}

namespace {

template <typename OpTy, Value (VectorMath::*function)(Value)>
struct ExpandUnary : OpRewritePattern<OpTy> {
  ExpandUnary(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern<OpTy>(context), target(target) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    return rewriteWith(rewriter, op, target,
                       [](VectorMath &math, ValueRange operands) {
                         return (math.*function)(operands[0]);
                       });
  }
  VectorMathTarget target;
};

template <typename OpTy, Value (VectorMath::*function)(Value, Value)>
struct ExpandBinary : OpRewritePattern<OpTy> {
  ExpandBinary(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern<OpTy>(context), target(target) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    return rewriteWith(rewriter, op, target,
                       [](VectorMath &math, ValueRange operands) {
                         return (math.*function)(operands[0], operands[1]);
                       });
  }
  VectorMathTarget target;
};

/// A cheaper exp where the producer of the op asked for it, or where the
/// argument is the negation of a magnitude.
struct ExpandExpOfNonPositive : OpRewritePattern<math::ExpOp> {
  ExpandExpOfNonPositive(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    bool mayFlush = op->hasAttr(flushAttribute);
    auto negation = op.getOperand().getDefiningOp<arith::NegFOp>();
    bool isNegation =
        negation && negation.getOperand().getDefiningOp<math::AbsFOp>();
    if (!mayFlush && !isNegation)
      return rewriter.notifyMatchFailure(op, "wants the full range");
    return rewriteWith(rewriter, op, target,
                       [&](VectorMath &math, ValueRange operands) {
                         return mayFlush ? math.expFlushed(operands[0])
                                         : math.expOfNonPositive(operands[0]);
                       });
  }
  VectorMathTarget target;
};

/// The constant of `type`, a float or a vector of it, whose elements are
/// `scalar`.
Value number(OpBuilder &b, Location loc, Type type, const APFloat &scalar) {
  return splat(b, loc, type,
               FloatAttr::get(getElementTypeOrSelf(type), scalar));
}

/// What `x` is times a positive constant, with which `scale` is multiplied.
Value withoutScale(Value x, double &scale) {
  constexpr double most = 1024;
  APFloat factor(0.0F);
  auto isFactor = [&](Value value) {
    return matchPattern(value, m_ConstantFloat(&factor)) &&
           factor.convertToDouble() > 1 / most &&
           factor.convertToDouble() < most;
  };
  while (auto product = x.getDefiningOp<arith::MulFOp>()) {
    bool first = isFactor(product.getLhs());
    if (!first && !isFactor(product.getRhs()))
      break;
    scale *= factor.convertToDouble();
    x = first ? product.getRhs() : product.getLhs();
  }
  return x;
}

/// 1 + erf(x), of GELU and of the normal distribution, needs fewer digits.
struct ExpandErfPlusOne : OpRewritePattern<math::ErfOp> {
  ExpandErfPlusOne(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    if (!llvm::all_of(op->getUsers(), [&](Operation *user) {
          auto sum = dyn_cast<arith::AddFOp>(user);
          return sum && (matchPattern(sum.getLhs(), m_OneFloat()) ||
                         matchPattern(sum.getRhs(), m_OneFloat()));
        }))
      return rewriter.notifyMatchFailure(op, "is used for itself");
    double scale = 1;
    Value x = op.getOperand();
    if (getElementTypeOrSelf(x).isF32()) // others round their products
      x = withoutScale(x, scale);
    return rewriteWith(
        rewriter, op, target, [&](VectorMath &math, ValueRange operands) {
          return math.erfForSum(scale == 1 ? operands[0] : x, scale);
        });
  }
  VectorMathTarget target;
};

/// a (1 + erf(s x)), as of GELU, for an `a` that is c x with a positive c:
/// x (c + c erf(s x)), one operation for the sum and a product. In the other
/// order, a + a erf(s x), the sign of a zero would be lost.
struct ExpandProductWithErf : OpRewritePattern<arith::MulFOp> {
  ExpandProductWithErf(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern(context), target(target) {}

  /// The erf of which `value` is one more, if nobody else needs either.
  static math::ErfOp oneLess(Value value) {
    auto sum = value.getDefiningOp<arith::AddFOp>();
    if (!sum || !sum->hasOneUse())
      return {};
    bool first = matchPattern(sum.getLhs(), m_OneFloat());
    if (!first && !matchPattern(sum.getRhs(), m_OneFloat()))
      return {};
    auto erf =
        (first ? sum.getRhs() : sum.getLhs()).getDefiningOp<math::ErfOp>();
    return erf && erf->hasOneUse() ? erf : math::ErfOp();
  }

  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    Value factor = op.getLhs();
    math::ErfOp erf = oneLess(op.getRhs());
    if (!erf) {
      factor = op.getRhs();
      erf = oneLess(op.getLhs());
    }
    if (!erf || !target.fma || !getElementTypeOrSelf(factor).isF32())
      return rewriter.notifyMatchFailure(op, "is no GELU in fused operations");
    double scale = 1, other = 1;
    Value x = withoutScale(erf.getOperand(), scale);
    if (withoutScale(factor, other) != x)
      return rewriter.notifyMatchFailure(op, "may be infinite for a finite x");
    VectorMath math(rewriter, op.getLoc(), op.getType(), target);
    Value c =
        number(rewriter, op.getLoc(), op.getType(), APFloat(float(other)));
    Value sum = math.fma(math.erfForSum(x, scale), c, c);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, x, sum);
    return success();
  }
  VectorMathTarget target;
};

/// The x of z / (1 + z) or 1 / (1 + z) with z = e^-|x|, as `ktn.sigmoid` is
/// written; null for any other quotient.
Value argumentOfSigmoid(arith::DivFOp op) {
  auto sum = op.getRhs().getDefiningOp<arith::AddFOp>();
  auto choice = op.getLhs().getDefiningOp<arith::SelectOp>();
  if (!sum || !choice || !matchPattern(choice.getFalseValue(), m_OneFloat()))
    return nullptr;
  Value z = choice.getTrueValue();
  if (!(matchPattern(sum.getLhs(), m_OneFloat()) && sum.getRhs() == z) &&
      !(matchPattern(sum.getRhs(), m_OneFloat()) && sum.getLhs() == z))
    return nullptr;
  auto exp = z.getDefiningOp<math::ExpOp>();
  auto minus = exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : nullptr;
  auto magnitude =
      minus ? minus.getOperand().getDefiningOp<math::AbsFOp>() : nullptr;
  auto isBelow = choice.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!magnitude || !isBelow ||
      isBelow.getPredicate() != arith::CmpFPredicate::OLT ||
      isBelow.getLhs() != magnitude.getOperand() ||
      !matchPattern(isBelow.getRhs(), m_AnyZeroFloat()))
    return nullptr;
  return magnitude.getOperand();
}

/// A sigmoid in one sequence.
struct ExpandSigmoid : OpRewritePattern<arith::DivFOp> {
  ExpandSigmoid(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    Value x = argumentOfSigmoid(op);
    if (!x)
      return rewriter.notifyMatchFailure(op, "is no sigmoid");
    Type type = op.getType(), compute = computeType(type);
    if (!compute)
      return rewriter.notifyMatchFailure(op, "has a type of its own");
    if (compute != type)
      x = arith::ExtFOp::create(rewriter, op.getLoc(), compute, x);
    Value y = VectorMath(rewriter, op.getLoc(), compute, target).sigmoid(x);
    if (compute != type)
      y = arith::TruncFOp::create(rewriter, op.getLoc(), type, y);
    rewriter.replaceOp(op, y);
    return success();
  }
  VectorMathTarget target;
};

/// x times its sigmoid, which nobody else needs, in one sequence.
struct ExpandSwish : OpRewritePattern<arith::MulFOp> {
  ExpandSwish(MLIRContext *context, VectorMathTarget target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    auto isSwish = [](Value x, Value factor) {
      auto quotient = factor.getDefiningOp<arith::DivFOp>();
      return quotient && quotient->hasOneUse() &&
             argumentOfSigmoid(quotient) == x;
    };
    Value x = op.getLhs(), factor = op.getRhs();
    if (!isSwish(x, factor))
      std::swap(x, factor);
    if (!isSwish(x, factor) || !getElementTypeOrSelf(x).isF32())
      return rewriter.notifyMatchFailure(op, "is no swish of f32");
    VectorMath math(rewriter, op.getLoc(), op.getType(), target);
    rewriter.replaceOp(op, math.swish(x));
    return success();
  }
  VectorMathTarget target;
};

/// x^n by the x^y of floats: every 32-bit n is one in f64, in which pow works.
struct ExpandIntegerPower : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    Type wide = likewise(type, rewriter.getF64Type());
    Value base = op.getLhs();
    if (wide != type)
      base = arith::ExtFOp::create(rewriter, op.getLoc(), wide, base);
    Value exponent =
        arith::SIToFPOp::create(rewriter, op.getLoc(), wide, op.getRhs());
    Value power = math::PowFOp::create(rewriter, op.getLoc(), base, exponent);
    if (wide != type)
      power = arith::TruncFOp::create(rewriter, op.getLoc(), type, power);
    rewriter.replaceOp(op, power);
    return success();
  }
};

/// max(x, y) as x > y ? x : y, one instruction on x86 that gives y when either
/// is NaN: so a constant goes first, and otherwise a NaN in x has its own test.
template <typename OpTy, arith::CmpFPredicate isBetter>
struct ExpandExtremum : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = op.getLhs(), y = op.getRhs();
    if (isNumber(y))
      std::swap(x, y);
    Value better = arith::CmpFOp::create(rewriter, loc, isBetter, x, y);
    Value result = arith::SelectOp::create(rewriter, loc, better, x, y);
    if (!isNumber(x) && !op->hasAttr(skipNanAttribute)) {
      // A constant: LLVM would join two choices of x to a slower one.
      Value isNan =
          arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, x, x);
      result = arith::SelectOp::create(rewriter, loc, isNan,
                                       notANumber(rewriter, loc, op.getType()),
                                       result);
    }
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value notANumber(PatternRewriter &rewriter, Location loc, Type type) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    return number(rewriter, loc, type,
                  APFloat::getQNaN(element.getFloatSemantics()));
  }
  static bool isNumber(Value value) {
    APFloat number(0.0f);
    return matchPattern(value, m_ConstantFloat(&number)) && !number.isNaN();
  }
};

struct ExpandFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FmaOp op,
                                PatternRewriter &rewriter) const override {
    Value product =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getA(), op.getB());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getC());
    return success();
  }
};

struct ExpandMath : impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    VectorMathTarget target{hasFma, hasRounding, hasAvx512, divides, permutes};
    // What is made of functions that are expanded below.
    RewritePatternSet products(context);
    products.add<ExpandProductWithErf, ExpandSwish>(context, target);
    walkAndApplyPatterns(getOperation(), std::move(products));
    RewritePatternSet compounds(context);
    compounds.add<ExpandIntegerPower>(context);
    compounds.add<ExpandSigmoid>(context, target);
    walkAndApplyPatterns(getOperation(), std::move(compounds));

    RewritePatternSet patterns(context);
    patterns.add<ExpandExpOfNonPositive, ExpandErfPlusOne,
                 ExpandUnary<math::ExpOp, &VectorMath::exp>,
                 ExpandUnary<math::ExpM1Op, &VectorMath::expm1>,
                 ExpandUnary<math::LogOp, &VectorMath::log>,
                 ExpandUnary<math::Log1pOp, &VectorMath::log1p>,
                 ExpandUnary<math::TanhOp, &VectorMath::tanh>,
                 ExpandUnary<math::ErfOp, &VectorMath::erf>,
                 ExpandUnary<math::SinOp, &VectorMath::sin>,
                 ExpandUnary<math::CosOp, &VectorMath::cos>,
                 ExpandBinary<math::PowFOp, &VectorMath::pow>,
                 ExpandBinary<arith::RemFOp, &VectorMath::remainder>>(context,
                                                                      target);
    patterns.add<ExpandExtremum<arith::MaximumFOp, arith::CmpFPredicate::OGT>,
                 ExpandExtremum<arith::MinimumFOp, arith::CmpFPredicate::OLT>>(
        context);
    if (!hasRounding)
      patterns.add<ExpandUnary<math::FloorOp, &VectorMath::floor>,
                   ExpandUnary<math::CeilOp, &VectorMath::ceil>,
                   ExpandUnary<math::TruncOp, &VectorMath::trunc>,
                   ExpandUnary<math::RoundEvenOp, &VectorMath::roundEven>>(
          context, target);
    if (!hasFma)
      patterns.add<ExpandFma>(context);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    refuseLeftovers();
  }

private:
  /// Whether the target computes `op` in place, without a library.
  static bool isPlain(Operation *op) {
    return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::ClampFOp,
               math::CopySignOp, math::CountLeadingZerosOp,
               math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp,
               math::FmaOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
               math::IsNormalOp, math::RoundEvenOp, math::RsqrtOp, math::SqrtOp,
               math::TruncOp>(op);
  }

  void refuseLeftovers() {
    WalkResult walk = getOperation()->walk([](Operation *op) {
      bool isMath = isa_and_present<math::MathDialect>(op->getDialect());
      if (!isa<arith::RemFOp>(op) && (!isMath || isPlain(op)))
        return WalkResult::advance();
      op->emitOpError("of ") << op->getResult(0).getType()
                             << " has no expansion and would need libm";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace keratin
