//===- Ktn.h - the ktn dialect ----------------------------------*- C++ -*-===//
#ifndef KERATIN_IR_KTN_H
#define KERATIN_IR_KTN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/Dialect.h.inc"
#include "ir/Enums.h.inc"

namespace keratin::ktn {

/// What `ktn.read` and `ktn.assign` touch.
struct Variables : mlir::SideEffects::Resource::Base<Variables> {
  llvm::StringRef getName() final { return "ktn variables"; }
};

/// The shape that NumPy broadcasts `a` and `b` to, or failure. A `?` against a
/// static extent n is n, unless n is 1: then it stays `?`.
mlir::FailureOr<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// A `ktn.constant` of the static `type`, each element `value` converted to the
/// element type.
mlir::Value createConstant(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::RankedTensorType type, double value);

/// The axis of the channels of an image of `rank` axes.
int64_t channelAxis(int64_t rank, DataFormat format);

/// The axes of an image of `rank` axes but those of the batch and the channels.
llvm::SmallVector<int64_t> spatialAxes(int64_t rank, DataFormat format);

} // namespace keratin::ktn

#include "ir/Interfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attrs.h.inc"
#define GET_OP_CLASSES
#include "ir/Ops.h.inc"

#endif // KERATIN_IR_KTN_H
