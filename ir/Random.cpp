#include "ir/Folding.h"
#include "ir/Inference.h"
#include "ir/Ktn.h"

using namespace mlir;
using namespace keratin::ktn;

LogicalResult RandomOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                         Adaptor adaptor,
                                         InferredTypes &types) {
  FailureOr<RankedTensorType> state = inferRanked(location, adaptor.getState());
  if (failed(state))
    return failure();
  if (state->getRank() != 1 || state->getDimSize(0) != 2)
    return emitOptionalError(location, "state has the shape ",
                             formatShape(state->getShape()),
                             " but must be a key and a call: [2]");
  ArrayRef<int64_t> target = adaptor.getTarget();
  if (ShapedType::isDynamicShape(target) && !adaptor.getShape())
    return emitOptionalError(location, "target ", formatShape(target),
                             " has an unknown extent but there is no shape "
                             "that gives it");
  if (failed(checkShapeOperand(location, adaptor.getShape(), target)))
    return failure();
  return inferTensor(location, target, adaptor.getDtype(), types);
}

LogicalResult RandomOp::refineShapes() {
  resolveTarget(*this);
  return success();
}
