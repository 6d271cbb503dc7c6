//===- FmaPeak.cpp - what this core can do at most ------------------------===//
//
// Compiled for the machine that builds it: it runs here and now.
//
//===----------------------------------------------------------------------===//
#include "FmaPeak.h"

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace keratin::tools {

#if defined(__AVX512F__)
constexpr int vectorBytes = 64;
#elif defined(__AVX__)
constexpr int vectorBytes = 32;
#else
constexpr int vectorBytes = 16;
#endif
constexpr int lanes = vectorBytes / sizeof(float);
/// More than two units times four cycles of latency; fits 16 registers.
constexpr int chains = 12;

typedef float Vector __attribute__((vector_size(vectorBytes)));

double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Independent chains, so that latency hides; values stay finite.
static Vector multiplyAdd(int64_t steps) {
  Vector sums[chains], factor = {}, term = {};
  factor += 0.999f;
  term += 1e-4f;
  for (int chain = 0; chain < chains; ++chain)
    sums[chain] = Vector{} + float(chain) * 1e-3f;
  for (int64_t step = 0; step < steps; ++step)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < chains; ++chain)
      sums[chain] = sums[chain] * factor + term;
  Vector total = {};
  for (Vector sum : sums)
    total += sum;
  return total;
}

double measureFmaPeak() {
  constexpr int64_t steps = 2'000'000;
  double best = 1e9;
  volatile float sink;
  for (int run = 0; run < 12; ++run) {
    double start = cpuSeconds();
    sink = multiplyAdd(steps)[0];
    best = std::min(best, cpuSeconds() - start);
  }
  (void)sink;
  return double(steps) * chains * lanes * 2 / best;
}

} // namespace keratin::tools
