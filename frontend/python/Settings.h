//===- Settings.h - how functions are compiled, from Python -----*- C++ -*-===//
#ifndef KERATIN_FRONTEND_PYTHON_SETTINGS_H
#define KERATIN_FRONTEND_PYTHON_SETTINGS_H

#include "keratin/function.h"

#include <nanobind/nanobind.h>

namespace keratin::python {

/// The settings as keyword arguments, for the signatures that people read.
#define KERATIN_SETTINGS_SIGNATURE                                             \
  "target: str | None = None, optimize: bool = True, threads: int = 0, "       \
  "winograd: str = 'auto', precision: str | None = None, unroll_factor: int "  \
  "= 1, "                                                                      \
  "checkpoint_every: int = 0, dump_after: str = '', dump_directory: str = "    \
  "'', time_passes: bool = False"

/// Sets what the keywords of a call of `function` name. A TypeError for one
/// that is no setting.
void setFrom(const nanobind::kwargs &given, const char *function,
             backend::CompileSettings &settings);

/// The same for a call that saves or lowers: these settings, and
#define KERATIN_SAVE_SIGNATURE                                                 \
  "batch: int | None = None, input_shapes: Sequence[Sequence[int | None]] | "  \
  "None = None, training: bool = False, " KERATIN_SETTINGS_SIGNATURE
backend::SaveOptions saveOptionsFrom(const nanobind::kwargs &given,
                                     const char *function);

} // namespace keratin::python

#endif // KERATIN_FRONTEND_PYTHON_SETTINGS_H
