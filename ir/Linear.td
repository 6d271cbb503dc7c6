#ifndef KERATIN_IR_LINEAR_TD
#define KERATIN_IR_LINEAR_TD

include "ir/Base.td"

#endif // KERATIN_IR_LINEAR_TD
