//===- Quantized.h - layers with quantised weights --------------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_QUANTIZED_H
#define KERATIN_FRONTEND_MODEL_QUANTIZED_H

#include "Layer.h"

namespace keratin::model {

/// The product (and bias) of a Dense layer whose policy is a quantised one:
/// int8, int4 and float8.
K::Tensor quantizedDense(LayerContext &layer, const K::Tensor &x,
                         int64_t features, int64_t units, bool biased);

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_QUANTIZED_H
