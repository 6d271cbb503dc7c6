//===- Passes.td - the passes and their documentation -----*- tablegen -*-===//
#ifndef KERATIN_PASSES_TD
#define KERATIN_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // KERATIN_PASSES_TD
