//===- GateEmitter.h - a product and what follows from its gates *- C++ -*-===//
#ifndef KERATIN_CODEGEN_CPU_GATEEMITTER_H
#define KERATIN_CODEGEN_CPU_GATEEMITTER_H

#include "codegen/cpu/Kernel.h"
#include "codegen/cpu/TileSizes.h"
#include "passes/Pipelines.h"

namespace keratin {

/// Emits a kernel in which a product with the axes (…, gates, units) is
/// followed by ops over (…, units) that read its gates, as in a step of an
/// LSTM: a tile has all the gates of some units, so that they meet in
/// registers. `dots` is what the target has for factors of bf16. False, with
/// nothing emitted, for any other form.
bool emitGates(Kernel &kernel, const VectorUnit &unit, DotUnit dots);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_GATEEMITTER_H
