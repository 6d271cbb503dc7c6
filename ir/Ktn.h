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
#include "ir/Interfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attrs.h.inc"
#define GET_OP_CLASSES
#include "ir/Ops.h.inc"

#endif // KERATIN_IR_KTN_H
