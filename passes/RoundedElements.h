//===- RoundedElements.h - weights in fewer bits ----------------*- C++ -*-===//
#ifndef KERATIN_PASSES_ROUNDEDELEMENTS_H
#define KERATIN_PASSES_ROUNDEDELEMENTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace keratin {

/// The elements of `from`, of f32, rounded to `to`, bf16 or f16: to nearest,
/// ties to even. They are those of a tensor of `type`, whose elements are of
/// `to`, or of f32 again. Null where `from` is not known, as in a dump without
/// weights.
mlir::ElementsAttr roundElements(mlir::ElementsAttr from, mlir::FloatType to,
                                 mlir::RankedTensorType type);

/// The elements of `from`, of bf16 or f16, as those of a tensor of `type`, of
/// f32. Null where `from` is not known.
mlir::ElementsAttr widenElements(mlir::ElementsAttr from,
                                 mlir::RankedTensorType type);

/// Whether a finite element of `from`, of f32, is infinite in f16: is 65520 or
/// more, or -65520 or less. No element of what is not known is.
bool overflowsF16(mlir::ElementsAttr from);

/// The elements of `from`, of 16 bits, with zeros behind those of axis `axis`,
/// as many as `type` has more. Null where `from` is not known.
mlir::ElementsAttr padElements(mlir::ElementsAttr from, int64_t axis,
                               mlir::RankedTensorType type);

} // namespace keratin

#endif // KERATIN_PASSES_ROUNDEDELEMENTS_H
