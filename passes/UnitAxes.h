//===- UnitAxes.h - axes of extent 1 part no kernels ------------*- C++ -*-===//
#ifndef KERATIN_PASSES_UNITAXES_H
#define KERATIN_PASSES_UNITAXES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace keratin {

/// Takes the trailing axes of extent 1, which `keepdims` leaves, out of the
/// loops of elementwise ops, and lets readers of a view that only adds such
/// axes read what is viewed. Then all ops over one row have the same row loops.
void foldUnitAxes(mlir::func::FuncOp function);

} // namespace keratin

#endif // KERATIN_PASSES_UNITAXES_H
