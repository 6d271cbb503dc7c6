//===- FmaPeak.h - what this core can do at most ----------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_FMAPEAK_H
#define KERATIN_TOOLS_FMAPEAK_H

namespace keratin::tools {

/// Floating-point operations per second of f32 multiply-adds in registers, the
/// best of several runs, in CPU time of this thread.
double measureFmaPeak();

/// CPU time of this thread.
double cpuSeconds();

} // namespace keratin::tools

#endif // KERATIN_TOOLS_FMAPEAK_H
