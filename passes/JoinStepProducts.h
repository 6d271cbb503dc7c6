//===- JoinStepProducts.h - input and state in one product ------*- C++ -*-===//
#ifndef KERATIN_PASSES_JOINSTEPPRODUCTS_H
#define KERATIN_PASSES_JOINSTEPPRODUCTS_H

#include "ir/Ktn.h"

namespace keratin {

/// Makes of `x W + h U`, where x is a slice and h depends on the state, one
/// product `[x, h] [W; U]` of each step, where that is quicker than all `x W`
/// in front of the loop: those would come and go through memory, while steps
/// of many rows keep the arithmetic busy with weights from the second cache.
/// Weights are constants, rows and steps are known numbers.
void joinStepProducts(ktn::ScanOp scan);

} // namespace keratin

#endif // KERATIN_PASSES_JOINSTEPPRODUCTS_H
