//===- Dialects.h - what parsing and compiling need -------------*- C++ -*-===//
#ifndef KERATIN_CODEGEN_DIALECTS_H
#define KERATIN_CODEGEN_DIALECTS_H

#include "mlir/IR/MLIRContext.h"

namespace keratin {

/// Loads every dialect that a compilation may need: while passes run, and
/// compile constants in turn, none can be.
void loadDialects(mlir::MLIRContext *context);

} // namespace keratin

#endif // KERATIN_CODEGEN_DIALECTS_H
