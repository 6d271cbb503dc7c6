//===- LowerToLlvm.cpp - from loops to the LLVM dialect -------------------===//
#include "passes/LowerToLlvm.h"

#include "passes/Passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_CALLLIBM
#define GEN_PASS_DEF_PREPAREMEMREFS
#include "passes/Passes.h.inc"

namespace {

struct PrepareMemrefs : impl::PrepareMemrefsBase<PrepareMemrefs> {
  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    WalkResult walk = getOperation()->walk([&](Operation *op) {
      if (isa<memref::AllocOp, memref::DeallocOp, memref::ReallocOp>(op)) {
        op->emitOpError("would allocate while the model runs");
        return WalkResult::interrupt();
      }
      if (auto copy = dyn_cast<memref::CopyOp>(op))
        copies.push_back(copy);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (memref::CopyOp copy : copies)
      if (!isDense(copy.getSource()) || !isDense(copy.getTarget()))
        rewriteAsLoops(copy);
  }

private:
  static bool isDense(Value memref) {
    return cast<MemRefType>(memref.getType()).getLayout().isIdentity();
  }
  static void rewriteAsLoops(memref::CopyOp copy);
};

} // namespace

/// LLVM would call a C function that walks strides for it.
void PrepareMemrefs::rewriteAsLoops(memref::CopyOp copy) {
  ImplicitLocOpBuilder b(copy.getLoc(), copy);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  SmallVector<Value> position;
  auto type = cast<MemRefType>(copy.getSource().getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value extent = memref::DimOp::create(b, copy.getSource(), dim);
    auto loop = scf::ForOp::create(b, zero, extent, one);
    position.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  Value element = memref::LoadOp::create(b, copy.getSource(), position);
  memref::StoreOp::create(b, element, copy.getTarget(), position);
  copy.erase();
}

namespace {

/// Not all that libm has: the rest are instructions.
struct CallLibm : impl::CallLibmBase<CallLibm> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::ExpOp, math::ExpM1Op, math::LogOp, math::Log1pOp,
                        math::TanhOp, math::ErfOp, math::SinOp, math::CosOp,
                        math::PowFOp>();
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

/// Elementary functions, as polynomials or as calls, and floats of 16 bits as
/// f32: LLVM would call a library to convert them where the target cannot, and
/// add in f16 where it can.
static void addMath(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(math::createMathExtendToSupportedTypes());
  if (options.optimize) {
    ExpandMathOptions math;
    math.hasFma = options.fma;
    math.hasRounding = options.rounding;
    math.hasAvx512 = options.avx512;
    math.divides = options.divides;
    math.permutes = options.permutes;
    pm.addPass(createExpandMath(math));
  } else {
    pm.addPass(createCallLibm());
  }
  arith::ArithEmulateUnsupportedFloatsOptions narrow;
  narrow.sourceTypeStrs = {"bf16", "f16"};
  pm.addPass(arith::createArithEmulateUnsupportedFloats(narrow));
  // What has dot products of bf16 also rounds to it.
  bool roundsToBf16 = options.optimize && options.dots != DotUnit::None;
  RoundToBf16Options rounding;
  rounding.expand = !roundsToBf16;
  pm.addPass(createRoundToBf16(rounding));
  ConvertF16Options halves;
  halves.expand = !options.halves;
  pm.addPass(createConvertF16(halves));
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = !roundsToBf16;
  pm.addPass(arith::createArithExpandOpsPass(expand));
}

void addLowerToLlvm(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createReduceLanes());
  addMath(pm, options);
  pm.addPass(createPrepareMemrefs());
  pm.addPass(createPassPointers());
  // Address arithmetic of views, in the open for the clean-up below.
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createCanonicalize());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());

  pm.addPass(createConvertToLlvm());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

} // namespace keratin
