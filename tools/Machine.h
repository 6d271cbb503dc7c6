//===- Machine.h - what this machine can do at most -------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_MACHINE_H
#define KERATIN_TOOLS_MACHINE_H

#include <cstdint>
#include <memory>
#include <vector>

namespace keratin::tools {

/// CPU time of this thread, in seconds.
double cpuSeconds();

/// How fast memory of one size is read, in one run or in some side by side, or
/// read and written: the fastest of these.
struct Bandwidth {
  int64_t bytes;         ///< of all threads together
  double bytesPerSecond; ///< likewise
};

/// Memory of one size, to measure in turn with a kernel: caches that are shared
/// with others, and memory, change their rate from one second to the next.
class Memory {
public:
  /// Of `bytes` down to a multiple of 4 KiB, at least one. Finds out what goes
  /// through it fastest. Takes some ms, and more for what is larger than a few
  /// MB.
  explicit Memory(int64_t bytes);

  int64_t bytes() const { return size; }
  /// CPU time of the fastest pass so far, as in Bandwidth.
  double seconds() const { return least; }
  void goThrough();

private:
  int64_t size;
  std::unique_ptr<char[]> storage;
  char *data; ///< of `size` bytes, at the start of a cache line
  double least;
  float (*pass)(char *data, int64_t size);
};

/// The two roofs of a kernel, measured here and now.
struct Machine {
  int threads = 1;
  double flops = 0;                  ///< f32 multiply-adds in registers, FLOP/s
  std::vector<Bandwidth> bandwidths; ///< from the smallest size to the largest

  /// That of the largest size measured which `workingSet` bytes reach.
  const Bandwidth &memoryOf(double workingSet) const;

  /// What no code goes below, in seconds: the time of its arithmetic or of
  /// its memory, whichever is longer. Memory is taken to be as near as the
  /// `workingSet` of a call, in bytes, allows. Fewer multiplications than are
  /// counted (Winograd) and products of bf16 do go below.
  double floorSeconds(double flops, double bytes, double workingSet) const;
};

/// That of the calling thread now: clocks change within seconds. Takes about
/// 20 ms.
double measureFlops();

/// The same, for what is measured right beside. Takes about 0.2 ms.
double measureFlopsBriefly();

/// Integer additions of the calling thread in a second. Half as many where
/// another program, or another virtual machine, has the other hyperthread of
/// its core; registers of vectors alone do not tell. 0 where the clock was set
/// back in between. Takes about 0.1 ms.
double measureAdditions();

/// Measures with this many threads at once, each in its own CPU time, so that
/// other programs disturb little. Takes about 0.2 s, and 64 MiB a thread.
Machine measureMachine(int threads);

} // namespace keratin::tools

#endif // KERATIN_TOOLS_MACHINE_H
