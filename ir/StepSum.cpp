//===- StepSum.cpp - how ops sum over the steps of a loop -----------------===//
#include "ir/Ktn.h"

using namespace mlir;
using namespace keratin::ktn;

static bool allChange(ArrayRef<bool> changing) {
  return !llvm::is_contained(changing, false);
}

bool AddOp::isAdditive(ArrayRef<bool> changing) { return allChange(changing); }
bool SubOp::isAdditive(ArrayRef<bool> changing) { return allChange(changing); }
bool ConcatOp::isAdditive(ArrayRef<bool> changing) {
  return allChange(changing);
}
bool MulOp::isAdditive(ArrayRef<bool> changing) {
  return changing[0] != changing[1];
}
bool DotGeneralOp::isAdditive(ArrayRef<bool> changing) {
  return changing[0] != changing[1];
}

bool PadOp::isAdditive(ArrayRef<bool>) {
  TypedAttr value = getValue();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isZero();
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

/// `axes` behind a new axis 0.
static SmallVector<int64_t> behindSteps(ArrayRef<int64_t> axes) {
  return llvm::map_to_vector(axes, [](int64_t axis) { return axis + 1; });
}

Value SumOp::buildStepSum(OpBuilder &b, ValueRange operands, ArrayRef<bool>) {
  SmallVector<int64_t> axes = behindSteps(getAxes());
  if (getKeepdims()) {
    Value steps = SumOp::create(b, getLoc(), operands[0], ArrayRef<int64_t>{0});
    return SumOp::create(b, getLoc(), steps, getAxes(), /*keepdims=*/true);
  }
  axes.insert(axes.begin(), 0);
  return SumOp::create(b, getLoc(), operands[0], axes);
}

Value DotGeneralOp::buildStepSum(OpBuilder &b, ValueRange operands,
                                 ArrayRef<bool> changing) {
  // The steps are one more axis over which products are summed.
  if (!allChange(changing))
    return {};
  SmallVector<int64_t> lhs = behindSteps(getLhsContract());
  SmallVector<int64_t> rhs = behindSteps(getRhsContract());
  lhs.insert(lhs.begin(), 0);
  rhs.insert(rhs.begin(), 0);
  return DotGeneralOp::create(b, getLoc(), operands[0], operands[1],
                              behindSteps(getLhsBatch()),
                              behindSteps(getRhsBatch()), lhs, rhs);
}
