//===- CpuPasses.cpp - makes the passes known -----------------------------===//
#include "codegen/cpu/CpuPasses.h"

namespace keratin {
namespace {
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/CpuPasses.h.inc"
} // namespace

void registerCpuPasses() { registerCpuPassesPasses(); }

} // namespace keratin
