//===- KernelLimits.h - how large a kernel becomes --------------*- C++ -*-===//
//
// What fuses ops makes their code anew each time, and what emits a kernel looks
// at all of it at once. A kernel of bounded size keeps the time that a chain
// takes in proportion to its length, whoever wrote it. The largest of the
// sample models have a tenth of these.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_PASSES_KERNELLIMITS_H
#define KERATIN_PASSES_KERNELLIMITS_H

namespace keratin {

/// Scalar operations that ops are joined up to.
inline constexpr unsigned mostBodyOps = 256;

/// Tensors that joined ops read.
inline constexpr unsigned mostInputs = 64;

} // namespace keratin

#endif // KERATIN_PASSES_KERNELLIMITS_H
