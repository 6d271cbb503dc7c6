//===- Affine.cpp - how scales and shifts compose -------------------------===//
//
// Each op on x * scale + shift, where null stands for 1 and for 0.
//
//===----------------------------------------------------------------------===//
#include "ir/Ktn.h"

using namespace mlir;
using namespace keratin::ktn;

/// `scale`, or 1 in the element type of `like`.
static Value scaleOrOne(OpBuilder &b, Location loc, Value scale, Value like) {
  if (scale)
    return scale;
  auto type = cast<RankedTensorType>(like.getType());
  return createConstant(b, loc, type.clone(ArrayRef<int64_t>{}), 1.0);
}

static void addShift(OpBuilder &b, Location loc, Value other, Value &shift) {
  shift = shift ? AddOp::create(b, loc, shift, other).getY() : other;
}

bool AddOp::isSum() { return true; }
bool MulOp::isProduct() { return true; }

void AddOp::composeAffine(OpBuilder &b, unsigned, Value other, Value &,
                          Value &shift) {
  addShift(b, getLoc(), other, shift);
}

bool BiasAddOp::isAffineIn(unsigned index) { return index == 0; }

int64_t BiasAddOp::getAxisInResult(unsigned index, int64_t axis) {
  return index == 0 ? axis : getChannelAxis();
}

void BiasAddOp::composeAffine(OpBuilder &b, unsigned, Value other, Value &,
                              Value &shift) {
  addShift(b, getLoc(), other, shift);
}

void SubOp::composeAffine(OpBuilder &b, unsigned index, Value other,
                          Value &scale, Value &shift) {
  Location loc = getLoc();
  if (index == 0) {
    shift = shift ? SubOp::create(b, loc, shift, other).getY()
                  : NegOp::create(b, loc, other).getY();
    return;
  }
  // other - (x * scale + shift)
  scale = NegOp::create(b, loc, scaleOrOne(b, loc, scale, other));
  shift = shift ? SubOp::create(b, loc, other, shift).getY() : other;
}

void MulOp::composeAffine(OpBuilder &b, unsigned, Value other, Value &scale,
                          Value &shift) {
  Location loc = getLoc();
  scale = scale ? MulOp::create(b, loc, scale, other).getY() : other;
  if (shift)
    shift = MulOp::create(b, loc, shift, other);
}

bool DivOp::isAffineIn(unsigned index) { return index == 0; }

void DivOp::composeAffine(OpBuilder &b, unsigned, Value other, Value &scale,
                          Value &shift) {
  Location loc = getLoc();
  scale = DivOp::create(b, loc, scaleOrOne(b, loc, scale, other), other);
  if (shift)
    shift = DivOp::create(b, loc, shift, other);
}
