//===- Profile.cpp - the time of each kernel ------------------------------===//
#include "Profile.h"

#include "Report.h"

#include <chrono>
#include <cstdio>

namespace keratin {

using Clock = std::chrono::steady_clock;

namespace {
/// What the hook collects.
struct Times {
  std::vector<double> ms;
  std::vector<int64_t> calls;
  Clock::time_point start;

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

static std::string number(const char *format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void profile(Runnable &model, Runner &runner, const ktn_model_info_t &info,
             int repeat, std::ostream &os) {
  Times times;
  times.ms.resize(info.num_kernels);
  times.calls.resize(info.num_kernels);
  std::string problem = model.setProfileHook(Times::hook, &times);
  if (!problem.empty())
    throw Error(std::string(info.name) + " " + problem);
  for (int run = 0; run < repeat; ++run)
    runner.run();
  model.setProfileHook(nullptr, nullptr);

  double total = 0;
  for (double ms : times.ms)
    total += ms;
  Table table({"kernel", "op", ">calls", ">ms", ">%", ">GFLOP/s", ">GB/s"});
  for (int32_t index = 0; index < info.num_kernels; ++index) {
    const ktn_kernel_info_t &kernel = info.kernels[index];
    double batch = static_cast<double>(runner.batch());
    double seconds = times.ms[index] / 1e3;
    // The descriptor counts all calls of a run.
    auto rate = [&](const int64_t (&size)[2]) {
      double perRun =
          static_cast<double>(size[0]) + batch * static_cast<double>(size[1]);
      return seconds > 0 ? perRun * repeat / seconds / 1e9 : 0;
    };
    table.addRow({kernel.name, kernel.op,
                  std::to_string(times.calls[index] / repeat),
                  number("%.4f", times.ms[index] / repeat),
                  number("%.1f", total > 0 ? 100 * times.ms[index] / total : 0),
                  number("%.1f", rate(kernel.flops)),
                  number("%.1f", rate(kernel.bytes))});
  }
  table.print(os);
}

} // namespace keratin
