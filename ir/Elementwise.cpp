#include "ir/Inference.h"
#include "ir/Ktn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace keratin::ktn;

LogicalResult CastOp::inferReturnTypes(MLIRContext *, MaybeLoc location,
                                       Adaptor adaptor, InferredTypes &types) {
  FailureOr<RankedTensorType> x = inferRanked(location, adaptor.getX());
  if (failed(x))
    return failure();
  return inferTensor(location, x->getShape(), adaptor.getDtype(), types);
}
