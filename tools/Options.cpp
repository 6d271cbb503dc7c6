//===- Options.cpp - command line options that tools share ----------------===//
#include "Options.h"

#include "keratin/cache.h"
#include "keratin/runtime.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

namespace keratin {

std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}

void finishOutput() {
  std::cout.flush();
  if (std::cout.fail() || std::fflush(stdout) != 0)
    throw backend::Error("standard output cannot be written");
}

void addOptimizationFlags(CLI::App &app, bool &optimize) {
  app.add_option_function<std::string>(
         "-O",
         [&optimize](const std::string &level) { optimize = level == "2"; },
         "0: plain loops, the reference; 2: fast code, the default")
      ->check(CLI::IsMember({"0", "2"}));
}

void addWinogradOption(CLI::App &app, std::string &winograd) {
  app.add_option(
         "--winograd", winograd,
         "convolutions whose windows have two taps or more for each pixel "
         "that they move by as products of transformed tiles: wherever that "
         "applies of four inputs along one or two axes (2: F(2x2,3x3)), of "
         "six (4: F(4x4,3x3)) or of eight (8: F(4x4,5x5))")
      ->check(CLI::IsMember({"auto", "off", "2", "4", "8"}))
      ->capture_default_str();
}

static void addAutoOption(CLI::App &app, const char *name, std::string &value,
                          const char *what) {
  app.add_option(name, value, what)
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
}

void addTilesOption(CLI::App &app, std::string &tiles) {
  addAutoOption(app, "--tiles", tiles,
                "products in tile registers (AMX) where the target has them, "
                "also those of f32, which become sums of products of bf16");
}

void addStrassenOption(CLI::App &app, std::string &strassen) {
  addAutoOption(app, "--strassen", strassen,
                "products of many rows with known weights made of seven "
                "products of half the rows, columns and sums in place of "
                "eight, where that is faster");
}

void addPairsOption(CLI::App &app, std::string &pairs) {
  addAutoOption(app, "--pairs", pairs,
                "products of f32 made in pairs, by one "
                "multiplication and two sums, where the target has units for "
                "these beside those for products");
}

void addFoldLookupsOption(CLI::App &app, std::string &foldLookups) {
  addAutoOption(app, "--fold-lookups", foldLookups,
                "embeddings multiplied by the weights of the layer behind "
                "them, while such tables have 64 MiB at most");
}

void addWeights24Option(CLI::App &app, std::string &weights24) {
  addAutoOption(app, "--weights24", weights24,
                "weights that one row is multiplied by as integers of 24 bits "
                "with a scale for each column, where the target is faster so");
}

void addThreadsOption(CLI::App &app, int &threads, const std::string &what) {
  app.add_option("--threads", threads, what)
      ->check(CLI::Range(1, KTN_MAX_THREADS));
}

void addTargetOption(CLI::App &app, std::string &target) {
  target = "native";
  app.add_option(
         "--target", target,
         "native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, "
         "aarch64-linux-gnu, or TRIPLE,CPU[,FEATURES]; of the levels of "
         "x86-64 several, with commas between: code for each, which "
         "asks the CPU")
      ->capture_default_str();
}

void addLoopOptions(CLI::App &app, backend::CompileSettings &settings) {
  app.add_option("--unroll-factor", settings.unrollFactor,
                 "steps of a loop in a row; 0 unrolls what stays small")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20))
      ->capture_default_str();
  app.add_option("--checkpoint-every", settings.checkpointEvery,
                 "keep one state of a loop in so many for its gradient, and "
                 "compute the others again; 0 keeps all")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 40))
      ->capture_default_str();
}

void addCacheOptions(CLI::App &app) {
  auto *directory = app.add_option_function<std::string>(
      "--cache-dir",
      [](const std::string &path) {
        backend::set_cache_directory(path);
        // Whoever names a directory wants it; the default is used if it can be.
        if (std::optional<std::string> problem =
                backend::cache_directory_problem())
          throw CLI::ValidationError("--cache-dir", *problem);
      },
      "where compiled kernels are kept and looked for; else "
      "$KERATIN_CACHE_DIR or ~/.cache/keratin");
  app.add_flag_callback(
         "--no-cache", [] { backend::set_cache_directory(std::nullopt); },
         "compile all kernels anew, and keep none")
      ->excludes(directory);
}

void addPrecisionOption(CLI::App &app, std::string &precision) {
  precision = "f32";
  app.add_option("--precision", precision,
                 "what is rounded: factors of matrix products and convolutions "
                 "to bf16, or weights of matrix products to f16; sums are f32 "
                 "all the same")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
}

/// A positive number, nothing before or after it.
static std::optional<int64_t> parseExtent(std::string_view text) {
  int64_t value;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    return std::nullopt;
  return value;
}

std::string isBatch(const std::string &text) {
  if (text == "dynamic" || parseExtent(text))
    return "";
  return "'" + text + "' is neither 'dynamic' nor a positive number";
}

/// Splits "NAME=2x3x4" or "NAME=?x3x4"; nothing when it is not of this form.
static std::optional<NamedShapes::value_type>
parseInputShape(std::string_view text) {
  size_t equal = text.rfind('=');
  if (equal == std::string_view::npos || equal == 0)
    return std::nullopt;
  std::vector<int64_t> shape;
  std::string_view rest = text.substr(equal + 1);
  while (true) {
    size_t end = std::min(rest.find('x'), rest.size());
    std::string_view word = rest.substr(0, end);
    bool isBatch = shape.empty() && word == "?";
    std::optional<int64_t> extent = isBatch ? backend::None : parseExtent(word);
    if (!extent)
      return std::nullopt;
    shape.push_back(*extent);
    if (end == rest.size())
      break;
    rest.remove_prefix(end + 1);
  }
  return NamedShapes::value_type(text.substr(0, equal), std::move(shape));
}

std::string isBound(const std::string &text) {
  double bound = -1;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), bound);
  bool isNumber = error == std::errc() && end == text.data() + text.size();
  return text.empty() || (isNumber && bound >= 0)
             ? ""
             : "'" + text + "' is not a number of 0 or more";
}

std::string isSeed(const std::string &text) {
  uint64_t seed;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc() && end == text.data() + text.size()
             ? ""
             : "'" + text + "' is not an integer from 0 to 2^64 - 1";
}

std::string isInputShape(const std::string &text) {
  return parseInputShape(text)
             ? ""
             : "'" + text + "' is not of the form NAME=2x3x4 or NAME=?x3x4";
}

std::string isPrefix(const std::string &text) {
  std::string name = std::filesystem::path(text).filename().string();
  if (name.empty() || name == "." || name == "..")
    return "'" + text +
           "' is a directory, expected a prefix of file names "
           "such as out/model";
  return "";
}

NamedShapes parseInputShapes(const std::vector<std::string> &texts) {
  NamedShapes shapes;
  for (const std::string &text : texts)
    if (auto shape = *parseInputShape(text); !shapes.insert(shape).second)
      throw Error("--input-shape: the input '" + shape.first +
                  "' is given two shapes");
  return shapes;
}

void checkShapes(const std::vector<backend::TensorInfo> &inputs,
                 const NamedShapes &shapes) {
  for (const backend::TensorInfo &input : inputs) {
    if (shapes.contains(input.name))
      continue;
    for (size_t axis = 1; axis < input.shape.size(); ++axis)
      if (input.shape[axis] < 0)
        throw Error("input '" + input.name + "' has shape " +
                    shapeName(input.shape) +
                    " but compiled code can leave only the first axis open: "
                    "give --input-shape " +
                    input.name + "=?x...");
  }
}

std::vector<std::vector<int64_t>>
orderShapes(const std::vector<backend::TensorInfo> &inputs,
            const NamedShapes &shapes) {
  if (shapes.empty())
    return {};
  std::vector<std::vector<int64_t>> ordered;
  size_t used = 0;
  std::string names;
  for (const backend::TensorInfo &input : inputs) {
    auto given = shapes.find(input.name);
    used += given != shapes.end();
    ordered.push_back(given != shapes.end() ? given->second : input.shape);
    names += (names.empty() ? "" : ", ") + input.name;
  }
  for (const auto &[name, shape] : shapes)
    if (used != shapes.size() &&
        std::none_of(inputs.begin(), inputs.end(),
                     [&](auto &input) { return input.name == name; }))
      throw Error("--input-shape names '" + name +
                  "', the inputs are: " + names);
  return ordered;
}

} // namespace keratin
