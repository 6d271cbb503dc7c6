#include "ir/Ktn.h"

using namespace mlir;
using namespace keratin::ktn;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
