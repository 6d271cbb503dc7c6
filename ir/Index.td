#ifndef KERATIN_IR_INDEX_TD
#define KERATIN_IR_INDEX_TD

include "ir/Base.td"

#endif // KERATIN_IR_INDEX_TD
