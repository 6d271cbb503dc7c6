//===- ConvertToLlvm.cpp - all dialects to LLVM's, at once ----------------===//
#include "ir/Ktn.h"
#include "passes/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <mutex>

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_CONVERTTOLLVM
#include "passes/Passes.h.inc"

namespace {

/// What is needed to convert, made once.
class LlvmPatterns {
public:
  explicit LlvmPatterns(MLIRContext *context)
      : converter(context, LowerToLLVMOptions(context)),
        vectors(vectorPatterns(context)), all(conversions(context, converter)) {
  }

  LLVMTypeConverter converter;
  FrozenRewritePatternSet vectors; ///< of vectors, to smaller ones
  FrozenRewritePatternSet all;

private:
  static RewritePatternSet vectorPatterns(MLIRContext *context);
  static RewritePatternSet conversions(MLIRContext *context,
                                       const LLVMTypeConverter &converter);
};

/// The patterns of a context.
class LlvmPatternStore : public DialectInterface::Base<LlvmPatternStore> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LlvmPatternStore)
  explicit LlvmPatternStore(Dialect *dialect) : Base(dialect) {}

  std::shared_ptr<const LlvmPatterns> get() const {
    std::lock_guard<std::mutex> lock(mutex);
    if (!patterns)
      patterns = std::make_shared<LlvmPatterns>(getContext());
    return patterns;
  }

private:
  mutable std::mutex mutex;
  mutable std::shared_ptr<const LlvmPatterns> patterns;
};

struct ConvertToLlvm : impl::ConvertToLlvmBase<ConvertToLlvm> {
  LogicalResult initialize(MLIRContext *context) override {
    auto *dialect = context->getLoadedDialect<ktn::KtnDialect>();
    auto *store =
        dialect ? dialect->getRegisteredInterface<LlvmPatternStore>() : nullptr;
    patterns = store ? store->get() : std::make_shared<LlvmPatterns>(context);
    return success();
  }

  void runOnOperation() override {
    // Of all other ops no pattern asks, and they are canonical.
    SmallVector<Operation *> vectors;
    getOperation().walk([&](Operation *op) {
      if (isa_and_present<vector::VectorDialect>(op->getDialect()))
        vectors.push_back(op);
    });
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    // To stop before all is lowered shows in the conversion.
    (void)applyOpPatternsGreedily(vectors, patterns->vectors, config);
    LLVMConversionTarget target(getContext());
    if (failed(applyPartialConversion(getOperation(), target, patterns->all)))
      signalPassFailure();
  }

  std::shared_ptr<const LlvmPatterns> patterns;
};

} // namespace

/// As `convert-vector-to-llvm` does before it converts.
RewritePatternSet LlvmPatterns::vectorPatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  vector::populateVectorToVectorCanonicalizationPatterns(patterns);
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorContractLoweringPatterns(
      patterns, vector::VectorContractLowering::Dot);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorTransposeLoweringPatterns(
      patterns, vector::VectorTransposeLowering::EltWise);
  vector::populateVectorTransferLoweringPatterns(patterns,
                                                 /*maxTransferRank=*/1);
  vector::populateVectorMaskMaterializationPatterns(
      patterns, /*force32BitVectorIndices=*/true);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  vector::populateVectorRankReducingFMAPattern(patterns);
  vector::populateVectorGatherLoweringPatterns(patterns);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  vector::populateVectorToElementsUnrollPatterns(patterns);
  return patterns;
}

RewritePatternSet
LlvmPatterns::conversions(MLIRContext *context,
                          const LLVMTypeConverter &converter) {
  RewritePatternSet patterns(context);
  vector::populateVectorTransferLoweringPatterns(patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns,
                                         /*reassociateFPReductions=*/false,
                                         /*force32BitVectorIndices=*/true);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  return patterns;
}

void registerLlvmPatterns(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, ktn::KtnDialect *dialect) {
    dialect->addInterfaces<LlvmPatternStore>();
  });
}

} // namespace keratin
