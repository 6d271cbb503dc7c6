//===- SmallWeights.h - what gains by weights of 16 bits --------*- C++ -*-===//
#ifndef KERATIN_PASSES_SMALLWEIGHTS_H
#define KERATIN_PASSES_SMALLWEIGHTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// Whether some input of `op` is read in windows, not along plain loops.
bool hasWindow(mlir::linalg::GenericOp op);

/// Whether `product`, of floats, which adds in f32, reads `weights` sooner
/// where they have 16 bits, although it has to widen them: not those of windows
/// of more than one element, which are multiplied more often than they are
/// read, nor those that a loop around it reads in each turn and the second
/// cache holds.
bool gainsBySmallWeights(mlir::linalg::GenericOp product, mlir::Value weights);

/// Lets the body of `op` compute with the elements of `input`, which may have
/// become smaller, as f32.
void readWidened(mlir::linalg::GenericOp op, mlir::OpOperand &input);

} // namespace keratin

#endif // KERATIN_PASSES_SMALLWEIGHTS_H
