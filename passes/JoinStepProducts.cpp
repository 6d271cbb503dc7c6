//===- JoinStepProducts.cpp - input and state in one product --------------===//
#include "passes/JoinStepProducts.h"

#include "mlir/IR/Matchers.h"

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
static ktn::DotGeneralOp productOfWeights(Value value) {
  auto dot = value.getDefiningOp<ktn::DotGeneralOp>();
  if (!dot || !dot->hasOneUse() || !dot.getLhsBatch().empty() ||
      dot.getLhsContract() != ArrayRef<int64_t>{1} ||
      dot.getRhsContract() != ArrayRef<int64_t>{0} ||
      !matchPattern(dot.getRhs(), m_Constant()))
    return nullptr;
  auto rows = cast<RankedTensorType>(dot.getLhs().getType());
  auto weights = cast<RankedTensorType>(dot.getRhs().getType());
  return rows.getRank() == 2 && weights.getRank() == 2 &&
                 rows.hasStaticShape() && weights.hasStaticShape()
             ? dot
             : nullptr;
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

static bool pays(ktn::ScanOp scan, ktn::DotGeneralOp ofInput,
                 ktn::DotGeneralOp ofState) {
  int64_t steps = scan.getStepCount();
  auto type = cast<RankedTensorType>(ofInput.getType());
  return !ShapedType::isDynamic(steps) && type.getDimSize(0) >= fewestRows &&
         steps * bytesOf(ofInput.getY()) >= fewestStackBytes &&
         bytesOf(ofInput.getRhs()) + bytesOf(ofState.getRhs()) <=
             mostWeightBytes;
}

/// The rows of `slice` at the start of the step. Where they are rows of a
/// table, the step takes them from there: it copies them anyway, so they need
/// not all be written and read before. `slice` becomes their numbers.
static Value rowsOf(ktn::ScanOp scan, BlockArgument slice, OpBuilder &b,
                    OpBuilder &outside) {
  OpOperand &operand = scan.getXsMutable()[slice.getArgNumber()];
  Value rows = operand.get();
  auto transpose = rows.getDefiningOp<ktn::TransposeOp>();
  bool stepsFirst = !transpose;
  if (transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0, 2} &&
      transpose->hasOneUse())
    rows = transpose.getX();
  auto gather = rows.getDefiningOp<ktn::GatherOp>();
  if (!gather || !gather->hasOneUse() || !slice.hasOneUse() ||
      gather.getAxis() != 0 || gather.getBatchDims() != 0 ||
      cast<RankedTensorType>(gather.getX().getType()).getRank() != 2 ||
      cast<RankedTensorType>(gather.getIndices().getType()).getRank() != 2)
    return slice;
  Value numbers = gather.getIndices();
  if (!stepsFirst)
    numbers = ktn::TransposeOp::create(outside, gather.getLoc(), numbers,
                                       ArrayRef<int64_t>{1, 0});
  operand.set(numbers);
  auto type = cast<RankedTensorType>(numbers.getType());
  slice.setType(type.clone(type.getShape().drop_front()));
  return ktn::GatherOp::create(b, gather.getLoc(), gather.getX(), slice, 0, 0);
}

/// `sum` is (x W [+ c]) + h U in any order.
static void joinProductsOf(ktn::ScanOp scan, ktn::AddOp sum) {
  for (bool swapped : {false, true}) {
    Value left = swapped ? sum.getB() : sum.getA();
    ktn::DotGeneralOp ofState =
        productOfWeights(swapped ? sum.getA() : sum.getB());
    Value constant;
    ktn::DotGeneralOp ofInput = productOfWeights(left);
    if (auto inner = left.getDefiningOp<ktn::AddOp>();
        !ofInput && inner && inner->hasOneUse() &&
        inner.getType() == sum.getType()) {
      ofInput = productOfWeights(inner.getA());
      constant = inner.getB();
      if (!ofInput) {
        ofInput = productOfWeights(inner.getB());
        constant = inner.getA();
      }
    }
    auto isSlice = [&](Value value) {
      return llvm::is_contained(scan.getSlices(), value);
    };
    if (!ofInput || !ofState || !isSlice(ofInput.getLhs()) ||
        isSlice(ofState.getLhs()) || ofInput.getType() != sum.getType() ||
        ofState.getType() != sum.getType() || !pays(scan, ofInput, ofState))
      continue;
    OpBuilder b(sum);
    Location loc = sum.getLoc();
    OpBuilder outside(scan);
    Value input =
        rowsOf(scan, cast<BlockArgument>(ofInput.getLhs()), b, outside);
    Value rows =
        ktn::ConcatOp::create(b, loc, ValueRange{input, ofState.getLhs()}, 1);
    Value weights = ktn::ConcatOp::create(
        outside, loc, ValueRange{ofInput.getRhs(), ofState.getRhs()}, 0);
    Value joined = ktn::DotGeneralOp::create(
        b, loc, rows, weights, ofInput.getLhsBatch(), ofInput.getRhsBatch(),
        ofInput.getLhsContract(), ofInput.getRhsContract());
    if (constant)
      joined = ktn::AddOp::create(b, loc, joined, constant);
    sum.replaceAllUsesWith(joined);
    Operation *inner = left.getDefiningOp();
    sum.erase();
    inner->erase();
    for (ktn::DotGeneralOp dot : {ofInput, ofState})
      if (dot != inner)
        dot.erase();
    return;
  }
}

void joinStepProducts(ktn::ScanOp scan) {
  SmallVector<ktn::AddOp> sums(scan.getBody().front().getOps<ktn::AddOp>());
  for (ktn::AddOp sum : sums)
    joinProductsOf(scan, sum);
}

} // namespace keratin
