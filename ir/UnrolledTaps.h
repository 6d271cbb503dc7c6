//===- UnrolledTaps.h - windows without loops of their own ------*- C++ -*-===//
#ifndef KERATIN_IR_UNROLLEDTAPS_H
#define KERATIN_IR_UNROLLEDTAPS_H

#include <cstdint>

namespace keratin {

/// Taps of a window that tiles unroll. Passes ask for it too: of a larger
/// window tiles read copies, which have the border already.
inline constexpr int64_t mostUnrolledTaps = 25;

} // namespace keratin

#endif // KERATIN_IR_UNROLLEDTAPS_H
