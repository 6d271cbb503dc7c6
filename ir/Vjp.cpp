#include "ir/Vjp.h"

using namespace mlir;
using namespace keratin::ktn;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value keratin::ktn::createScalarLike(OpBuilder &b, Location loc, Value like,
                                     double value) {
  return createConstant(
      b, loc, RankedTensorType::get({}, typeOf(like).getElementType()), value);
}

Value keratin::ktn::createZerosLike(OpBuilder &b, Location loc, Value like) {
  if (typeOf(like).hasStaticShape())
    return createConstant(b, loc, typeOf(like), 0);
  return broadcastLike(b, loc, createScalarLike(b, loc, like, 0), like);
}

Value keratin::ktn::broadcastLike(OpBuilder &b, Location loc, Value x,
                                  Value like) {
  if (x.getType() == like.getType())
    return x;
  RankedTensorType type = typeOf(like);
  Value shape;
  if (!type.hasStaticShape())
    shape = ShapeOp::create(b, loc, like);
  return BroadcastToOp::create(b, loc, x, shape, type.getShape());
}

Value keratin::ktn::sumLike(OpBuilder &b, Location loc, Value dy, Value x) {
  RankedTensorType type = typeOf(x);
  int64_t leading = typeOf(dy).getRank() - type.getRank();
  auto added = llvm::to_vector(llvm::seq(leading));
  if (!added.empty())
    dy = SumOp::create(b, loc, dy, added);

  SmallVector<int64_t> repeated;
  for (int64_t axis : llvm::seq(type.getRank()))
    if (type.getDimSize(axis) == 1 && typeOf(dy).getDimSize(axis) != 1)
      repeated.push_back(axis);
  if (!repeated.empty())
    dy = SumOp::create(b, loc, dy, repeated, /*keepdims=*/true);
  if (dy.getType() == type)
    return dy;

  // An extent is known on one side only. A reshape states the type of x.
  Value shape;
  if (!type.hasStaticShape())
    shape = ShapeOp::create(b, loc, x);
  return ReshapeOp::create(b, loc, dy, shape, type.getShape());
}

Value keratin::ktn::permuteAxes(OpBuilder &b, Location loc, Value x,
                                ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return x;
  return TransposeOp::create(b, loc, x, permutation);
}
