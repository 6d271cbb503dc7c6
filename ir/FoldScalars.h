//===- FoldScalars.h - scalar code on constants, evaluated ------*- C++ -*-===//
#ifndef KERATIN_IR_FOLDSCALARS_H
#define KERATIN_IR_FOLDSCALARS_H

#include "mlir/IR/Block.h"

namespace keratin::ktn {

/// The constant that `block`, scalar ops on constants, computes for `result`;
/// null when one of the ops does not fold.
mlir::Attribute foldScalars(mlir::Block &block, mlir::Value result);

} // namespace keratin::ktn

#endif // KERATIN_IR_FOLDSCALARS_H
