//===- Machine.cpp - what this machine can do at most ---------------------===//
#include "Machine.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <thread>

namespace keratin::tools {

double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

//===----------------------------------------------------------------------===//
// Loops, once for each width of vectors
//===----------------------------------------------------------------------===//

/// More than two units times four cycles of latency; fits 16 registers.
constexpr int chains = 12;

template <int bytes> using Vector [[gnu::vector_size(bytes)]] = float;

/// Independent chains, so that latency hides; values stay finite.
template <int bytes>
[[gnu::always_inline]] inline float multiplyAdd(int64_t steps) {
  using V = Vector<bytes>;
  V sums[chains], factor = {}, term = {};
  factor += 0.999f;
  term += 1e-4f;
  for (int chain = 0; chain < chains; ++chain)
    sums[chain] = V{} + float(chain) * 1e-3f;
  for (int64_t step = 0; step < steps; ++step)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < chains; ++chain)
      sums[chain] = __builtin_elementwise_fma(sums[chain], factor, term);
  V total = {};
  for (V sum : sums)
    total += sum;
  return total[0];
}

/// The vectors that each of the loops below handles at a time; `size` is a
/// multiple of them.
constexpr int64_t unrolled = 8;
constexpr int64_t granule = unrolled * 64;

/// Parts that are read side by side.
constexpr int someRuns = 8;

/// Reads the whole buffer, `runs` parts of it side by side: each run is fetched
/// ahead for itself, but of many the first cache holds less.
template <int bytes, int runs>
[[gnu::always_inline]] inline float read(char *data, int64_t size) {
  using V = Vector<bytes>;
  V sums[unrolled] = {};
  int64_t part = size / runs;
  for (int64_t at = 0; at < part; at += unrolled * bytes)
    for (int64_t run = 0; run < runs; ++run)
#pragma clang loop unroll(full)
      for (int64_t i = 0; i < unrolled; ++i)
        sums[i] +=
            *reinterpret_cast<const V *>(data + run * part + at + i * bytes);
  V total = {};
  for (V sum : sums)
    total += sum;
  return total[0];
}

/// Reads the first half and writes the second.
template <int bytes>
[[gnu::always_inline]] inline float copy(char *data, int64_t size) {
  using V = Vector<bytes>;
  char *result = data + size / 2;
  for (int64_t at = 0; at < size / 2; at += unrolled * bytes)
#pragma clang loop unroll(full)
    for (int64_t i = 0; i < unrolled; ++i)
      *reinterpret_cast<V *>(result + at + i * bytes) =
          *reinterpret_cast<const V *>(data + at + i * bytes) + 1.0f;
  return *reinterpret_cast<float *>(result);
}

namespace {
using Pass = float (*)(char *data, int64_t size);

struct Loops {
  int vectorBytes;
  float (*multiplyAdd)(int64_t steps);
  std::array<Pass, 3> passes; ///< through memory
};
} // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): an attribute takes none
#define KERATIN_LOOPS(BYTES, ATTRIBUTE)                                        \
  ATTRIBUTE static float multiplyAdd##BYTES(int64_t steps) {                   \
    return multiplyAdd<BYTES>(steps);                                          \
  }                                                                            \
  ATTRIBUTE static float read##BYTES(char *data, int64_t size) {               \
    return read<BYTES, 1>(data, size);                                         \
  }                                                                            \
  ATTRIBUTE static float readRuns##BYTES(char *data, int64_t size) {           \
    return read<BYTES, someRuns>(data, size);                                  \
  }                                                                            \
  ATTRIBUTE static float copy##BYTES(char *data, int64_t size) {               \
    return copy<BYTES>(data, size);                                            \
  }                                                                            \
  constexpr Loops loops##BYTES = {                                             \
      BYTES, multiplyAdd##BYTES, {read##BYTES, readRuns##BYTES, copy##BYTES}};
// NOLINTEND(bugprone-macro-parentheses)

KERATIN_LOOPS(16, )
#if defined(__x86_64__)
KERATIN_LOOPS(32, [[gnu::target("avx2,fma")]])
KERATIN_LOOPS(64, [[gnu::target("avx512f")]])
#endif

static const Loops &widestLoops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return loops64;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return loops32;
#endif
  return loops16;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// CPU seconds of the fastest of some calls.
template <typename F> static double fastest(int calls, F &&call) {
  double best = std::numeric_limits<double>::max();
  volatile float sink;
  for (int i = 0; i < calls; ++i) {
    double start = cpuSeconds();
    sink = call();
    if (double seconds = cpuSeconds() - start; seconds > 0)
      best = std::min(best, seconds);
  }
  (void)sink;
  return best;
}

static double measureFlops(int calls, int64_t steps) {
  const Loops &loops = widestLoops();
  double seconds = fastest(calls, [&] { return loops.multiplyAdd(steps); });
  return double(steps) * chains * 2 * loops.vectorBytes / sizeof(float) /
         seconds;
}

double measureFlops() { return measureFlops(16, 500'000); }

double measureFlopsBriefly() { return measureFlops(3, 30'000); }

double measureAdditions() {
  constexpr int64_t steps = 100'000, counters = 5;
  int64_t counts[counters] = {};
  double start = cpuSeconds();
  // A loop across two lines of code takes two cycles a step, with and without
  // a neighbour.
  [[clang::code_align(64)]] for (int64_t step = 0; step < steps; ++step)
#pragma clang loop unroll(full)
    for (int64_t &count : counts) {
      ++count;
      asm volatile("" : "+r"(count)); // is added to one by one
    }
  double seconds = cpuSeconds() - start;
  return seconds > 0 ? double(steps) * counters / seconds : 0;
}

/// Sizes a thread measures: in the innermost cache, and in steps out of all.
static std::vector<int64_t> sizes() {
  std::vector<int64_t> list;
  for (int64_t bytes = 16 << 10; bytes <= 64 << 20; bytes *= 2)
    list.push_back(bytes);
  return list;
}

/// What all loops go through to the end: at least one step of each run.
static int64_t wholeSteps(int64_t bytes) {
  constexpr int64_t step = granule * someRuns;
  return std::max(bytes / step, int64_t(1)) * step;
}

Memory::Memory(int64_t bytes)
    : size(wholeSteps(bytes)),
      storage(std::make_unique<char[]>(size + granule)), data(storage.get()) {
  data += granule - reinterpret_cast<uintptr_t>(data) % granule;
  // Long enough for the clock, which is read by a call of the system.
  int64_t passes = std::max<int64_t>(1, (4 << 20) / size);
  pass = widestLoops().passes.front(); // where the clock tells nothing
  least = std::numeric_limits<double>::max();
  for (Pass each : widestLoops().passes) {
    double seconds = fastest(size <= 4 << 20 ? 24 : 6, [&] {
      float sum = 0;
      for (int64_t i = 0; i < passes; ++i)
        sum += each(data, size);
      return sum;
    });
    if (seconds / double(passes) < least) {
      least = seconds / double(passes);
      pass = each;
    }
  }
}

void Memory::goThrough() {
  volatile float sink = pass(data, size);
  (void)sink;
}

static Machine measureThread() {
  Machine machine;
  machine.flops = measureFlops();
  for (int64_t size : sizes())
    machine.bandwidths.push_back({size, double(size) / Memory(size).seconds()});
  return machine;
}

Machine measureMachine(int threads) {
  std::vector<Machine> each(threads);
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back([&, thread] { each[thread] = measureThread(); });
    each[0] = measureThread();
  }
  Machine all = each[0];
  all.threads = threads;
  for (int thread = 1; thread < threads; ++thread) {
    all.flops += each[thread].flops;
    for (size_t i = 0; i < all.bandwidths.size(); ++i) {
      all.bandwidths[i].bytes += each[thread].bandwidths[i].bytes;
      all.bandwidths[i].bytesPerSecond +=
          each[thread].bandwidths[i].bytesPerSecond;
    }
  }
  return all;
}

const Bandwidth &Machine::memoryOf(double workingSet) const {
  const Bandwidth *nearest = &bandwidths.front();
  for (const Bandwidth &measured : bandwidths)
    if (double(measured.bytes) <= workingSet)
      nearest = &measured;
  return *nearest;
}

double Machine::floorSeconds(double count, double bytes,
                             double workingSet) const {
  return std::max(count / flops, bytes / memoryOf(workingSet).bytesPerSecond);
}

} // namespace keratin::tools
