#ifndef KERATIN_IR_SHAPE_TD
#define KERATIN_IR_SHAPE_TD

include "ir/Base.td"

#endif // KERATIN_IR_SHAPE_TD
