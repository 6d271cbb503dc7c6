//===- FoldPads.h - windows that read around a border -----------*- C++ -*-===//
#ifndef KERATIN_PASSES_FOLDPADS_H
#define KERATIN_PASSES_FOLDPADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace keratin {

/// Bytes of what `pad` makes, of one image where their number is open.
uint64_t bytesOfPadded(mlir::tensor::PadOp pad);

/// Whether `kernel`, which has the result of `pad` as its argument `argument`,
/// would read as well from the source of it: a small window moves over each
/// axis that has a border.
bool readsAroundBorder(mlir::func::FuncOp kernel, unsigned argument,
                       mlir::tensor::PadOp pad);

/// The same of `use`, which reads the result of `pad`.
bool readsAroundBorder(mlir::OpOperand &use, mlir::tensor::PadOp pad);

} // namespace keratin

#endif // KERATIN_PASSES_FOLDPADS_H
