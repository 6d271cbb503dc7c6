//===- Frames.h - calls that only put values in places ----------*- C++ -*-===//
#ifndef KERATIN_PASSES_FRAMES_H
#define KERATIN_PASSES_FRAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace keratin {

/// An operand of a frame and where it is in the result.
struct Part {
  mlir::Value value;
  llvm::SmallVector<int64_t> offsets;
  bool placed = false;
};

/// A call that does nothing but to put its operands next to each other, or a
/// border around one.
struct Frame {
  llvm::SmallVector<Part> parts;
  mlir::tensor::PadOp pad; ///< of the kernel, where there is a border
};

/// The frame that `call` of `kernel` is. None for a kernel that computes more
/// than a `tensor.concat` or a `tensor.pad`, and where a part is no slice
/// (canBeSlice) at offsets that are known.
std::optional<Frame> frameOf(mlir::func::CallOp call,
                             mlir::func::FuncOp kernel);

} // namespace keratin

#endif // KERATIN_PASSES_FRAMES_H
