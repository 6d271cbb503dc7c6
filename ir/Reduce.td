#ifndef KERATIN_IR_REDUCE_TD
#define KERATIN_IR_REDUCE_TD

include "ir/Base.td"

#endif // KERATIN_IR_REDUCE_TD
