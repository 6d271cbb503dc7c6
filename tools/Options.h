//===- Options.h - command line options that tools share --------*- C++ -*-===//
#ifndef KERATIN_TOOLS_OPTIONS_H
#define KERATIN_TOOLS_OPTIONS_H

#include "IrFile.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace keratin {

/// Parses; the exit status when the program is to end: 0 after help, 2 for
/// wrong usage.
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv);

/// Writes what stdout still holds. Throws Error where that, or anything before
/// it, did not get there, as on a full disk.
void finishOutput();

/// -O0 and -O2.
void addOptimizationFlags(CLI::App &app, bool &optimize);
/// --winograd: auto, off, 2 or 4.
void addWinogradOption(CLI::App &app, std::string &winograd);
/// --tiles: auto or off.
void addTilesOption(CLI::App &app, std::string &tiles);
/// --weights24: auto or off.
void addWeights24Option(CLI::App &app, std::string &weights24);
/// --strassen: auto or off.
void addStrassenOption(CLI::App &app, std::string &strassen);
/// --pairs: auto or off.
void addPairsOption(CLI::App &app, std::string &pairs);
/// --fold-lookups: auto or off.
void addFoldLookupsOption(CLI::App &app, std::string &foldLookups);
/// --threads, a number from 1.
void addThreadsOption(CLI::App &app, int &threads, const std::string &what);
/// --target, "native" unless it is given, whatever Keras' configuration says.
void addTargetOption(CLI::App &app, std::string &target);
/// --unroll-factor and --checkpoint-every.
void addLoopOptions(CLI::App &app, backend::CompileSettings &settings);
/// --cache-dir and --no-cache: where code is kept, from here on.
void addCacheOptions(CLI::App &app);
/// --precision: f32, bf16 or f16.
void addPrecisionOption(CLI::App &app, std::string &precision);

/// Checks of the words of options: an empty string is fine.
std::string isBatch(const std::string &text);
std::string isBound(const std::string &text);
std::string isSeed(const std::string &text);
std::string isInputShape(const std::string &text);
std::string isPrefix(const std::string &text);

/// "NAME=2x3x4"s that isInputShape has accepted.
NamedShapes parseInputShapes(const std::vector<std::string> &texts);

/// Throws Error when an input has an axis open beside the batch that `shapes`
/// does not give: compiled code has one extent for it.
void checkShapes(const std::vector<backend::TensorInfo> &inputs,
                 const NamedShapes &shapes);

/// The shapes in the order of the inputs, unnamed ones as they are; empty when
/// none is named. Throws Error for a name that no input has.
std::vector<std::vector<int64_t>>
orderShapes(const std::vector<backend::TensorInfo> &inputs,
            const NamedShapes &shapes);

} // namespace keratin

#endif // KERATIN_TOOLS_OPTIONS_H
