//===- Profile.h - the time of each kernel ----------------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_PROFILE_H
#define KERATIN_TOOLS_PROFILE_H

#include "Machine.h"
#include "Runnable.h"

#include <nlohmann/json_fwd.hpp>

#include <ostream>

namespace keratin {

/// One kernel of a model, its calls of one run together.
struct KernelTime {
  std::string name, op;
  int64_t calls;
  double ms;           ///< of a run, the median of several
  double flops, bytes; ///< of a run
  double floorMs;      ///< what no code goes below, see Machine::floorSeconds

  /// The part of the time that has to be, 1 at best.
  double ofFloor() const { return ms > 0 ? floorMs / ms : 0; }
};

/// The kernels in order of execution, beside what this machine can do.
struct ModelProfile {
  tools::Machine machine;
  std::vector<KernelTime> kernels;
};

/// Runs the model `repeat` times more. Throws Error when the model was not
/// compiled for profiling.
ModelProfile profile(Runnable &model, Runner &runner,
                     const ktn_model_info_t &info, int repeat);

/// A table: each kernel's time, its part of the whole, its rates and its floor.
void printProfile(std::ostream &os, const ModelProfile &profile);

/// The same for scripts: `machine` and `kernels`.
nlohmann::json profileJson(const ModelProfile &profile);

} // namespace keratin

#endif // KERATIN_TOOLS_PROFILE_H
