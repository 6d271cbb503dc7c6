//===- JoinStepProducts.cpp - input and state in one product --------------===//
#include "passes/JoinStepProducts.h"
#include "passes/Rebuild.h"
#include "passes/StepSource.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace keratin {

/// Rows from which on a product is bound by its arithmetic and not by reading
/// its weights from the second cache.
static constexpr int64_t fewestRows = 8;
/// What stays in the second cache from step to step, beside other data.
static constexpr int64_t mostWeightBytes = 1 << 20;
/// What comes and goes through the second cache at no great cost.
static constexpr int64_t fewestStackBytes = 1 << 20;

/// `value` as a plain product of rows with constant weights that one sum reads,
/// or null.
static ktn::JoinableOpInterface productOfWeights(Value value) {
  auto product = value.getDefiningOp<ktn::JoinableOpInterface>();
  if (!product || !product->hasOneUse() || !product.getJoinedAxes() ||
      !matchPattern(product->getOperand(1), m_Constant()))
    return nullptr;
  auto isPlain = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() == 2 && tensor.hasStaticShape();
  };
  return isPlain(value.getType()) &&
                 llvm::all_of(product->getOperandTypes(), isPlain)
             ? product
             : nullptr;
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

static bool pays(ktn::ScanOp scan, Operation *ofInput, Operation *ofState) {
  int64_t steps = scan.getStepCount();
  Value product = ofInput->getResult(0);
  return !ShapedType::isDynamic(steps) &&
         cast<RankedTensorType>(product.getType()).getDimSize(0) >=
             fewestRows &&
         steps * bytesOf(product) >= fewestStackBytes &&
         bytesOf(ofInput->getOperand(1)) + bytesOf(ofState->getOperand(1)) <=
             mostWeightBytes;
}

/// The smallest that `slice` follows from alone.
static StepSource smallestSource(ktn::ScanOp scan, BlockArgument slice) {
  StepSource best = sourceOf(scan, slice), next = best;
  while (next.advance()) {
    if (!next.ops.back().first->hasOneUse() ||
        !cast<RankedTensorType>(next.value.getType()).hasStaticShape())
      break;
    if (bytesOf(next.value) < bytesOf(best.value))
      best = next;
  }
  return best;
}

/// The rows of `slice` at the start of the step. Where they follow from less,
/// as rows of a table from their numbers, the step takes them from there: it
/// copies them anyway, so they need not all be written and read before. `slice`
/// becomes what they follow from.
static Value rowsOf(ktn::ScanOp scan, BlockArgument slice, OpBuilder &b) {
  StepSource source = smallestSource(scan, slice);
  if (source.ops.empty() || !slice.hasOneUse())
    return slice;
  return takeFrom(source, scan, slice, b);
}

/// Whether two products are the same op on elements of the same types.
static bool goTogether(Operation *one, Operation *other) {
  auto element = [](Value value) { return getElementTypeOrSelf(value); };
  return one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() &&
         llvm::equal(llvm::map_range(one->getOperands(), element),
                     llvm::map_range(other->getOperands(), element));
}

/// `sum` is (x W [+ c]) + h U in any order.
static void joinProductsOf(ktn::ScanOp scan, ktn::AffineOpInterface sum) {
  Type type = sum->getResult(0).getType();
  for (unsigned side : {0, 1}) {
    Value left = sum->getOperand(side);
    ktn::JoinableOpInterface ofState =
        productOfWeights(sum->getOperand(1 - side));
    Value constant;
    ktn::JoinableOpInterface ofInput = productOfWeights(left);
    if (auto inner = left.getDefiningOp<ktn::AffineOpInterface>();
        !ofInput && inner && inner.isSum() && inner->hasOneUse() &&
        left.getType() == type) {
      for (unsigned index : {0, 1})
        if (!ofInput) {
          ofInput = productOfWeights(inner->getOperand(index));
          constant = inner->getOperand(1 - index);
        }
    }
    auto isSlice = [&](Value value) {
      return llvm::is_contained(scan.getSlices(), value);
    };
    if (!ofInput || !ofState || !goTogether(ofInput, ofState) ||
        !isSlice(ofInput->getOperand(0)) || isSlice(ofState->getOperand(0)) ||
        ofInput->getResult(0).getType() != type ||
        ofState->getResult(0).getType() != type ||
        !pays(scan, ofInput, ofState))
      continue;
    OpBuilder b(sum), outside(scan);
    Location loc = sum->getLoc();
    auto [rowAxis, weightAxis] = *ofInput.getJoinedAxes();
    auto slice = cast<BlockArgument>(ofInput->getOperand(0));
    auto rows = ktn::ConcatOp::create(
        b, loc, ValueRange{slice, ofState->getOperand(0)}, rowAxis);
    auto weights = ktn::ConcatOp::create(
        outside, loc,
        ValueRange{ofInput->getOperand(1), ofState->getOperand(1)}, weightAxis);
    FailureOr<Operation *> product =
        rebuild(b, ofState, ValueRange{rows, weights});
    if (failed(product)) {
      rows.erase();
      weights.erase();
      continue;
    }
    Value joined = (*product)->getResult(0);
    if (constant)
      joined = ktn::AddOp::create(b, loc, joined, constant);
    sum->replaceAllUsesWith(ValueRange(joined));
    Operation *inner = left.getDefiningOp();
    sum->erase();
    inner->erase();
    for (Operation *op : {ofInput.getOperation(), ofState.getOperation()})
      if (op != inner)
        op->erase();
    b.setInsertionPoint(rows);
    rows->setOperand(0, rowsOf(scan, slice, b));
    return;
  }
}

void joinStepProducts(ktn::ScanOp scan) {
  SmallVector<ktn::AffineOpInterface> sums;
  for (Operation &op : scan.getBody().front())
    if (auto sum = dyn_cast<ktn::AffineOpInterface>(op); sum && sum.isSum())
      sums.push_back(sum);
  for (ktn::AffineOpInterface sum : sums)
    joinProductsOf(scan, sum);
}

} // namespace keratin
