//===- Profile.cpp - the time of each kernel ------------------------------===//
#include "Profile.h"

#include "Report.h"

#include "keratin/config.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace keratin {

using Clock = std::chrono::steady_clock;

namespace {
/// What the hook collects of one run.
struct Times {
  std::vector<double> ms;
  std::vector<int64_t> calls;
  Clock::time_point start;

  explicit Times(int32_t kernels) : ms(kernels), calls(kernels) {}

  static void hook(void *user, int32_t kernel, int32_t isEnd) {
    auto &times = *static_cast<Times *>(user);
    if (!isEnd) {
      times.start = Clock::now();
      return;
    }
    times.ms[kernel] +=
        std::chrono::duration<double, std::milli>(Clock::now() - times.start)
            .count();
    ++times.calls[kernel];
  }
};
} // namespace

/// Of an even number of values, the larger of the two in the middle.
static double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

ModelProfile profile(Runnable &model, Runner &runner,
                     const ktn_model_info_t &info, int repeat) {
  Times times(info.num_kernels);
  std::string problem = model.setProfileHook(Times::hook, &times);
  if (!problem.empty())
    throw Error(std::string(info.name) + " " + problem);
  // A run that another program interrupts leaves the median alone.
  std::vector<std::vector<double>> runs(info.num_kernels);
  for (int run = 0; run < repeat; ++run) {
    times = Times(info.num_kernels);
    runner.run();
    for (int32_t index = 0; index < info.num_kernels; ++index)
      runs[index].push_back(times.ms[index]);
  }
  model.setProfileHook(nullptr, nullptr);

  ModelProfile result;
  result.machine =
      tools::measureMachine(static_cast<int>(backend::num_threads()));
  auto memory = static_cast<double>(info.weights_bytes + runner.workingBytes());
  for (int32_t index = 0; index < info.num_kernels; ++index) {
    const ktn_kernel_info_t &kernel = info.kernels[index];
    // The descriptor counts all calls of a run.
    auto perRun = [&](const int64_t (&size)[2]) {
      return static_cast<double>(size[0]) +
             static_cast<double>(runner.batch()) * static_cast<double>(size[1]);
    };
    double flops = perRun(kernel.flops), bytes = perRun(kernel.bytes);
    // A loop over time reads the same weights in each step.
    double calls =
        static_cast<double>(std::max<int64_t>(1, times.calls[index]));
    double workingSet = std::min(bytes / calls, memory);
    double floor = result.machine.floorSeconds(flops, bytes, workingSet);
    result.kernels.push_back({kernel.name, kernel.op, times.calls[index],
                              median(runs[index]), flops, bytes, floor * 1e3});
  }
  return result;
}

static std::string number(const char *format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void printProfile(std::ostream &os, const ModelProfile &profile) {
  double total = 0, floor = 0;
  for (const KernelTime &kernel : profile.kernels) {
    total += kernel.ms;
    floor += kernel.floorMs;
  }
  Table table({"kernel", "op", ">calls", ">ms", ">%", ">GFLOP/s", ">GB/s",
               ">floor ms", ">of floor %"});
  for (const KernelTime &kernel : profile.kernels) {
    auto rate = [&](double size) {
      return number("%.1f", kernel.ms > 0 ? size / kernel.ms / 1e6 : 0);
    };
    table.addRow({kernel.name, kernel.op, std::to_string(kernel.calls),
                  number("%.4f", kernel.ms),
                  number("%.1f", total > 0 ? 100 * kernel.ms / total : 0),
                  rate(kernel.flops), rate(kernel.bytes),
                  number("%.4f", kernel.floorMs),
                  number("%.0f", 100 * kernel.ofFloor())});
  }
  table.print(os);
  os << "kernels " << number("%.4f", total) << " ms, floor "
     << number("%.4f", floor) << " ms at "
     << number("%.1f", profile.machine.flops * 1e-9) << " GFLOP/s";
  double shown = std::numeric_limits<double>::max();
  for (const tools::Bandwidth &measured : profile.machine.bandwidths) {
    if (measured.bytesPerSecond > 0.8 * shown)
      continue; // not another cache
    shown = measured.bytesPerSecond;
    os << ", " << number("%.0f", shown * 1e-9) << " GB/s from "
       << measured.bytes / 1024 << " KiB on";
  }
  os << '\n';
}

nlohmann::json profileJson(const ModelProfile &profile) {
  nlohmann::json bandwidths = nlohmann::json::array();
  for (const tools::Bandwidth &measured : profile.machine.bandwidths)
    bandwidths.push_back({{"bytes", measured.bytes},
                          {"bytes_per_second", measured.bytesPerSecond}});
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelTime &kernel : profile.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"op", kernel.op},
                       {"calls", kernel.calls},
                       {"ms", kernel.ms},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"floor_ms", kernel.floorMs}});
  return {{"machine",
           {{"threads", profile.machine.threads},
            {"flops", profile.machine.flops},
            {"bandwidths", std::move(bandwidths)}}},
          {"kernels", std::move(kernels)}};
}

} // namespace keratin
