//===- Profile.h - the time of each kernel ----------------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_PROFILE_H
#define KERATIN_TOOLS_PROFILE_H

#include "Runnable.h"

#include <ostream>

namespace keratin {

/// Runs the model `repeat` times more and prints a table: for each kernel its
/// mean time a run, its part of the whole, and its rates. Throws Error when
/// the model was not compiled for profiling.
void profile(Runnable &model, Runner &runner, const ktn_model_info_t &info,
             int repeat, std::ostream &os);

} // namespace keratin

#endif // KERATIN_TOOLS_PROFILE_H
