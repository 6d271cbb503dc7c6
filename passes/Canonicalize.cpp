//===- Canonicalize.cpp - canonical forms, patterns collected once --------===//
#include "ir/Ktn.h"
#include "passes/Passes.h"

#include "mlir/IR/DialectInterface.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <mutex>

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_CANONICALIZE
#include "passes/Passes.h.inc"

/// The patterns of everything that `context` has loaded.
static FrozenRewritePatternSet collectPatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
  return FrozenRewritePatternSet(std::move(patterns));
}

namespace {
/// What `collectPatterns` found, as long as no other dialect is loaded.
class PatternStore : public DialectInterface::Base<PatternStore> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PatternStore)
  explicit PatternStore(Dialect *dialect) : Base(dialect) {}

  FrozenRewritePatternSet get() const {
    std::lock_guard<std::mutex> lock(mutex);
    size_t loaded = getContext()->getLoadedDialects().size();
    if (loaded != dialects) {
      patterns = collectPatterns(getContext());
      dialects = loaded;
    }
    return patterns;
  }

private:
  mutable std::mutex mutex;
  mutable size_t dialects = 0;
  mutable FrozenRewritePatternSet patterns;
};

struct Canonicalize : impl::CanonicalizeBase<Canonicalize> {
  LogicalResult initialize(MLIRContext *context) override {
    auto *dialect = context->getLoadedDialect<ktn::KtnDialect>();
    auto *store =
        dialect ? dialect->getRegisteredInterface<PatternStore>() : nullptr;
    patterns = store ? store->get() : collectPatterns(context);
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal().setRegionSimplificationLevel(
        GreedySimplifyRegionLevel::Normal);
    // To stop before all is canonical is no failure.
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }

  FrozenRewritePatternSet patterns;
};
} // namespace

void registerPatternStore(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, ktn::KtnDialect *dialect) {
    dialect->addInterfaces<PatternStore>();
  });
}

} // namespace keratin
