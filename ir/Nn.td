#ifndef KERATIN_IR_NN_TD
#define KERATIN_IR_NN_TD

include "ir/Base.td"

#endif // KERATIN_IR_NN_TD
