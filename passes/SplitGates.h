//===- SplitGates.h - gates of a recurrent step as an axis ------*- C++ -*-===//
#ifndef KERATIN_PASSES_SPLITGATES_H
#define KERATIN_PASSES_SPLITGATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace keratin {

/// A product of G·U columns, or what is added to it, that is only read in G
/// equal parts side by side, as the gates of a recurrent step are, gets an axis
/// of G in front of one of U. All that reads it then reads whole positions, at
/// a constant of that axis, and can share a kernel with it.
void splitGates(mlir::func::FuncOp function);

/// Whether `consumer`, which computes element by element, reads `value` as
/// gates: at its own position and a constant of one more axis, the last but
/// one.
bool readsGates(mlir::linalg::GenericOp consumer, mlir::Value value);

} // namespace keratin

#endif // KERATIN_PASSES_SPLITGATES_H
