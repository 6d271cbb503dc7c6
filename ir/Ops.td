//===- Ops.td - the one op table -------------------------*- tablegen -*-===//
#ifndef KERATIN_IR_OPS_TD
#define KERATIN_IR_OPS_TD

include "ir/Control.td"
include "ir/Elementwise.td"
include "ir/Index.td"
include "ir/Linear.td"
include "ir/Nn.td"
include "ir/Random.td"
include "ir/Reduce.td"
include "ir/Shape.td"

#endif // KERATIN_IR_OPS_TD
