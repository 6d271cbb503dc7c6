//===- keratin-bench.cpp - kernels against the floors of this machine -----===//
//
// Each kernel is a graph of the backend API, compiled by K::function; the times
// are CPU times of one thread. `of_floor` is the part of the time that no code
// goes below, from the multiply-adds that this core did right before and behind
// each sample, and the memory that it went through in between: the median of
// the samples. `alone` is the share of those during which the core was ours.
//
//===----------------------------------------------------------------------===//
#include "BenchKernels.h"
#include "Machine.h"
#include "Pages.h"
#include "Report.h"

#include "keratin/abi.h"
#include "keratin/backend.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace K = keratin::backend;
using namespace keratin::tools;

namespace {

/// A compiled function with its buffers, so that a run is the kernels alone.
class Runnable {
public:
  explicit Runnable(K::Function compiled) : function(std::move(compiled)) {
    std::vector<K::Shape> shapes;
    for (const K::TensorInfo &input : function.inputs()) {
      shapes.push_back(input.shape);
      values.push_back(randomArray(input.shape));
    }
    for (const K::TensorInfo &output : function.outputs())
      values.emplace_back(output.dtype, output.shape);
    for (size_t index = 0; index < values.size(); ++index) {
      if (index < shapes.size())
        inputs.push_back(values[index].data());
      else
        outputs.push_back(values[index].mutableData());
    }
    model = function.compiled(shapes);
    batch = model->batch == -1 ? 1 : model->batch;
    int64_t bytes = model->arena_bytes[0] + batch * model->arena_bytes[1];
    arena = keratin::takePages(bytes);
  }

  bool run() {
    return model->run(model->weights, arena.get(), batch, inputs.data(),
                      outputs.data()) == KTN_OK;
  }

private:
  K::Function function;
  std::vector<K::Array> values;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  const ktn_model_info_t *model;
  int64_t batch;
  keratin::Pages arena;
};

/// What a kernel took, for the table at the end.
struct Result {
  std::string name;
  double seconds, floor;
  bool isArithmetic; ///< what the floor is made of
};

/// Measured results, of each kernel the last: repetitions are run in turn.
class Results {
public:
  void add(Result result) {
    auto same = [&](const Result &other) { return other.name == result.name; };
    auto old = std::find_if(list.begin(), list.end(), same);
    if (old == list.end())
      list.push_back(std::move(result));
    else if (result.seconds < old->seconds)
      *old = std::move(result);
  }

  /// The farthest from their floors first.
  void print(std::ostream &os) {
    std::sort(list.begin(), list.end(), [](const Result &a, const Result &b) {
      return a.floor * b.seconds < b.floor * a.seconds;
    });
    keratin::Table table({"kernel", ">us", ">floor us", ">of floor %", "by"});
    for (const Result &result : list) {
      char times[3][32];
      std::snprintf(times[0], sizeof times[0], "%.2f", result.seconds * 1e6);
      std::snprintf(times[1], sizeof times[1], "%.2f", result.floor * 1e6);
      std::snprintf(times[2], sizeof times[2], "%.0f",
                    100 * result.floor / result.seconds);
      table.addRow({result.name, times[0], times[1], times[2],
                    result.isArithmetic ? "arithmetic" : "memory"});
    }
    table.print(os);
  }

  bool empty() const { return list.empty(); }

private:
  std::vector<Result> list;
};

struct Sample {
  double seconds; ///< CPU time
  double flops;   ///< multiply-adds of the core right before and behind, FLOP/s
};

/// Takes samples that no other program has disturbed which runs on the same
/// core, while waiting for these takes no longer than it should.
class Samples {
public:
  /// That of `work`; the last try's where the core is never ours.
  template <typename Work> Sample take(Work &&work) {
    constexpr double mostWaiting = 4;
    for (;;) {
      double first = cpuSeconds();
      // With the checks, which take longer than one run of a small kernel.
      auto mayWait = [&] {
        constexpr double check = 1e-4;
        waited += std::max(cpuSeconds() - first, check);
        return waited < mostWaiting;
      };
      bool before = isCoreOurs();
      if (!before && mayWait())
        continue;
      double flops = measureFlopsBriefly();
      double start = cpuSeconds();
      work();
      double end = cpuSeconds();
      flops = (flops + measureFlopsBriefly()) / 2;
      // The clock of a virtual machine may be set back.
      constexpr double shortest = 1e-9;
      bool alone = isCoreOurs() && before && end - start >= shortest;
      if (!alone && mayWait())
        continue;
      ++all;
      undisturbed += alone;
      return {std::max(end - start, shortest), flops};
    }
  }

  /// The share of the samples that were not disturbed.
  double share() const { return undisturbed / std::max(all, 1.0); }

private:
  static bool isCoreOurs() {
    constexpr double enough = 0.8;
    static double most = mostAdditions();
    double rate = measureAdditions();
    most = std::max(most, rate);
    return rate >= enough * most;
  }

  /// What the core does when it is ours. Neighbours stay for milliseconds to
  /// seconds: what a few measurements in a row say may all be half of it.
  static double mostAdditions() {
    constexpr double seconds = 2;
    double most = 0;
    for (double start = cpuSeconds(); cpuSeconds() - start < seconds;)
      most = std::max(most, measureAdditions());
    return most;
  }

  double waited = 0, all = 0, undisturbed = 0;
};

} // namespace

/// The one in the middle, which samples that something else made slow or fast
/// do not move.
static double median(std::vector<double> values) {
  auto middle = values.begin() + int64_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A sample is of `inSample` runs, which the first call finds out: repetitions
/// have to agree about their number.
static void runKernel(benchmark::State &state, const BenchKernel &kernel,
                      int64_t &inSample, const Machine &machine,
                      Results &results) {
  K::GraphScope graph;
  K::Tensors inputs;
  for (const K::Shape &shape : kernel.inputs)
    inputs.push_back(K::placeholder(shape));
  K::Function function = K::function(inputs, {kernel.build(inputs)});
  function.configure(kernel.settings);
  Runnable runnable(std::move(function));
  if (!runnable.run()) {
    state.SkipWithError("the model returned an error");
    return;
  }
  Samples samples;
  auto repeat = [](int64_t count, auto work) {
    for (int64_t i = 0; i < count; ++i)
      work();
  };
  // With the CPU seconds of each of `count` times `work`.
  auto average = [&](int64_t count, auto work) {
    Sample sample = samples.take([&] { repeat(count, work); });
    sample.seconds /= double(count);
    return sample;
  };
  auto run = [&] { runnable.run(); };
  // Long beside the checks of the core around each sample.
  constexpr double sampleSeconds = 1e-3;
  double seconds = average(1, run).seconds; // and its code is in the cache
  if (inSample == 0)
    inSample = int64_t(std::ceil(sampleSeconds / seconds));
  std::optional<Memory> memory;
  if (kernel.flops / machine.flops <
      kernel.bytes / machine.memoryOf(kernel.bytes).bytesPerSecond)
    memory.emplace(int64_t(kernel.bytes));
  // The clock of a core changes by a fifth within seconds, and the rate of what
  // it shares with others: each sample has its own floor.
  std::vector<double> times, ofFloor, ofPeak;
  int64_t boundByArithmetic = 0;
  while (state.KeepRunningBatch(inSample)) {
    double memoryFloor = 0;
    if (memory) {
      auto pass = [&] { memory->goThrough(); };
      auto passes = int64_t(std::ceil(sampleSeconds / memory->seconds()));
      repeat(passes, pass);
      memoryFloor = kernel.bytes / double(memory->bytes()) *
                    average(passes, pass).seconds;
      // Either begins with its own data in the caches, to which one run does
      // not bring all: outer caches keep what is asked for again.
      repeat(inSample, run);
    }
    Sample sample = average(inSample, run);
    state.SetIterationTime(sample.seconds * double(inSample));
    double arithmetic = kernel.flops / sample.flops;
    times.push_back(sample.seconds);
    ofPeak.push_back(arithmetic / sample.seconds);
    ofFloor.push_back(std::max(arithmetic, memoryFloor) / sample.seconds);
    boundByArithmetic += arithmetic >= memoryFloor;
  }
  seconds = median(times);
  double share = median(ofFloor);

  using benchmark::Counter;
  constexpr auto rate = Counter::kIsIterationInvariantRate;
  if (kernel.flops != 0) {
    state.counters["flop/s"] = Counter(kernel.flops, rate);
    state.counters["of_peak"] = median(ofPeak);
  }
  state.counters["bytes/s"] = Counter(kernel.bytes, rate);
  state.counters["of_floor"] = share;
  state.counters["alone"] = samples.share();
  results.add({kernel.name, seconds, share * seconds,
               2 * boundByArithmetic >= int64_t(times.size())});
}

static void addContext(const Machine &machine) {
  benchmark::AddCustomContext("fma_peak_gflops",
                              std::to_string(machine.flops * 1e-9));
  for (const Bandwidth &measured : machine.bandwidths)
    benchmark::AddCustomContext(
        "gbytes_per_second_in_" + std::to_string(measured.bytes / 1024) + "KiB",
        std::to_string(measured.bytesPerSecond * 1e-9));
}

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  // What is measured is what this compiler makes now.
  K::set_cache_directory(std::nullopt);
  Machine machine = measureMachine(/*threads=*/1);
  addContext(machine);
  std::vector<BenchKernel> kernels = benchKernels();
  Results results;
  for (const BenchKernel &kernel : kernels)
    benchmark::RegisterBenchmark(
        kernel.name.c_str(),
        [&, inSample = int64_t(0)](benchmark::State &state) mutable {
          runKernel(state, kernel, inSample, machine, results);
        })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  try {
    // The peak is that of one core.
    K::set_num_threads(1);
    // The library says on its own why a filter matches nothing.
    if (benchmark::RunSpecifiedBenchmarks() == 0)
      return EXIT_FAILURE;
  } catch (const keratin::Error &error) {
    std::fprintf(stderr, "keratin-bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
  // Standard output may be JSON.
  if (!results.empty())
    results.print(std::cerr);
  return EXIT_SUCCESS;
}
