//===- keratin-run.cpp - runs a model and compares its outputs ------------===//
#include "Compare.h"
#include "Machine.h"
#include "Npz.h"
#include "Options.h"
#include "Profile.h"
#include "Report.h"
#include "Runnable.h"

#include "keratin/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sys/resource.h>

namespace K = keratin::backend;
using namespace keratin;

namespace {

struct Arguments {
  std::string model, inputs, expect, outputs, weights, batch;
  std::vector<std::string> inputShapes;
  K::CompileSettings settings;
  double maxRelError = 1e-5;
  uint64_t seed = 0;
  int repeat = 1;
  bool json = false, runs = false;
};

/// What there is to say after a run.
struct Results {
  std::vector<double> latencies, cpuTimes; // ms, sorted
  std::optional<nlohmann::json> runs;      ///< one by one
  double loadMs = 0, compileMs = 0;
  double peakRssMb = 0;
  int64_t arenaBytes = 0, weightsBytes = 0;
  int64_t arenaLeast = -1; ///< of a model that is compiled here
  std::optional<Comparison> comparison;
  std::optional<ModelProfile> profile;
};

class Stopwatch {
public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - start)
        .count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace

/// Random elements that any model takes: [-1, 1), 0…9 or a coin.
static Array randomArray(DType dtype, const K::Shape &shape,
                         std::mt19937_64 &random) {
  Array array(dtype, shape);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> whole(0, dtype == DType::Bool ? 1 : 9);
  for (int64_t index = 0; index < array.size(); ++index)
    array.set(index, isFloat(dtype) ? real(random)
                                    : static_cast<double>(whole(random)));
  return array;
}

/// The shape of an input that no file gives; `asked` is what is told of it.
static K::Shape randomShape(const K::TensorInfo &input, const K::Shape &asked,
                            int64_t batch) {
  K::Shape shape = asked;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] >= 0)
      continue;
    if (axis > 0)
      throw Error("input '" + input.name + "' has shape " + shapeName(shape) +
                  ": give --inputs, or --input-shape " + input.name + "=…");
    shape[axis] = batch;
  }
  return shape;
}

/// The open leading extent, the batch, is one for all inputs.
static void checkBatch(const Runnable &model, const std::vector<Array> &arrays,
                       const std::string &path) {
  std::optional<size_t> first;
  for (size_t index = 0; index < arrays.size(); ++index) {
    const K::TensorInfo &input = model.inputs()[index];
    if (input.shape.empty() || input.shape[0] >= 0 ||
        arrays[index].shape().empty())
      continue;
    first = first.value_or(index);
    int64_t expected = arrays[*first].shape()[0];
    if (int64_t rows = arrays[index].shape()[0]; rows != expected)
      throw Error(path + ": input '" + input.name + "' has " +
                  std::to_string(rows) + " rows but input '" +
                  model.inputs()[*first].name + "' has " +
                  std::to_string(expected) + ": all need the same batch");
  }
}

/// The model's inputs from the file, or random ones without a file.
static std::vector<Array> makeInputs(const Runnable &model,
                                     const Arguments &given) {
  std::vector<Array> arrays;
  if (!given.inputs.empty()) {
    arrays = pickInputs(readArrays(given.inputs), model.inputs(), given.inputs);
    if (!given.batch.empty())
      for (Array &array : arrays)
        array = firstRows(array, std::stoll(given.batch), given.inputs);
    checkBatch(model, arrays, given.inputs);
    return arrays;
  }
  std::mt19937_64 random(given.seed);
  std::vector<K::Shape> shapes =
      orderShapes(model.inputs(), parseInputShapes(given.inputShapes));
  int64_t batch = given.batch.empty() ? 1 : std::stoll(given.batch);
  for (size_t index = 0; index < model.inputs().size(); ++index) {
    const K::TensorInfo &input = model.inputs()[index];
    const K::Shape &asked = shapes.empty() ? input.shape : shapes[index];
    arrays.push_back(
        randomArray(input.dtype, randomShape(input, asked, batch), random));
  }
  return arrays;
}

static std::unique_ptr<Runnable> open(const Arguments &given) {
  if (given.model.ends_with(".so"))
    return openLibrary(given.model, given.weights);
  return openModel(given.model, given.settings);
}

static void writeOutputs(const std::string &path,
                         const std::vector<Array> &outputs) {
  Arrays arrays;
  for (size_t index = 0; index < outputs.size(); ++index)
    arrays["out_" + std::to_string(index)] = outputs[index];
  writeArrays(path, arrays);
}

/// CPU time of this process, all its threads.
static double cpuMs() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) +
         1e-6 * static_cast<double>(now.tv_nsec);
}

/// Of sorted values.
static double quantile(const std::vector<double> &values, double part) {
  auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::lround(part * last))];
}

/// Times the runs; the first of several only warms the caches. Keeps what each
/// took, if `oneByOne`, with what the core was able to do around it.
static void measure(Runner &runner, int repeat, bool oneByOne,
                    Results &results) {
  if (repeat > 1)
    runner.run();
  std::vector<double> additions;
  double before = oneByOne ? tools::measureAdditions() : 0;
  for (int run = 0; run < repeat; ++run) {
    double cpuStart = cpuMs();
    Stopwatch clock;
    runner.run();
    results.latencies.push_back(clock.ms());
    results.cpuTimes.push_back(cpuMs() - cpuStart);
    if (oneByOne) {
      double after = tools::measureAdditions();
      additions.push_back(std::min(before, after));
      before = after;
    }
  }
  if (oneByOne)
    results.runs = {{"ms", results.latencies},
                    {"cpu_ms", results.cpuTimes},
                    {"additions_per_second", additions}};
  std::sort(results.latencies.begin(), results.latencies.end());
  std::sort(results.cpuTimes.begin(), results.cpuTimes.end());
}

static double peakRssMb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

static void printJson(const Results &results) {
  nlohmann::json json = {{"latency_ms",
                          {{"median", quantile(results.latencies, 0.5)},
                           {"min", results.latencies.front()},
                           {"p99", quantile(results.latencies, 0.99)}}},
                         {"cpu_ms",
                          {{"median", quantile(results.cpuTimes, 0.5)},
                           {"min", results.cpuTimes.front()}}},
                         {"compile_ms", results.compileMs},
                         {"load_ms", results.loadMs},
                         {"peak_rss_mb", results.peakRssMb},
                         {"arena_bytes", results.arenaBytes},
                         {"arena_least_bytes", nullptr},
                         {"weights_bytes", results.weightsBytes}};
  if (results.arenaLeast >= 0)
    json["arena_least_bytes"] = results.arenaLeast;
  if (results.runs)
    json["runs"] = *results.runs;
  json["max_rel_error"] = nullptr;
  // JSON has no infinity: an output that is not finite has no error to name.
  if (results.comparison && std::isfinite(results.comparison->maxRelError))
    json["max_rel_error"] = results.comparison->maxRelError;
  if (results.profile)
    json.update(profileJson(*results.profile));
  std::cout << json.dump() << '\n';
}

static void printText(const Results &results, const Runner &runner,
                      const Runnable &model) {
  for (size_t index = 0; index < runner.outputs().size(); ++index)
    std::cout << model.outputs()[index].name << ": "
              << summarize(runner.outputs()[index]) << '\n';
  std::printf("latency: median %.3f ms, min %.3f ms, p99 %.3f ms (%zu runs, "
              "batch %lld)\n",
              quantile(results.latencies, 0.5), results.latencies.front(),
              quantile(results.latencies, 0.99), results.latencies.size(),
              static_cast<long long>(runner.batch()));
  std::printf("load %.1f ms, compile %.1f ms, arena %lld bytes, peak memory "
              "%.1f MB\n",
              results.loadMs, results.compileMs,
              static_cast<long long>(results.arenaBytes), results.peakRssMb);
  if (results.comparison)
    std::printf("max_rel_error: %g\n", results.comparison->maxRelError);
  std::fflush(stdout);
  if (results.profile)
    printProfile(std::cout, *results.profile);
}

/// The exit status.
static int runModel(Arguments given) {
  Results results;
  std::optional<K::ArenaInfo> arena;
  given.settings.arena = [&](const K::ArenaInfo &told) { arena = told; };
  Stopwatch load;
  std::unique_ptr<Runnable> model = open(given);
  results.loadMs = load.ms();
  std::vector<Array> inputs = makeInputs(*model, given);
  std::vector<K::Shape> shapes;
  for (const Array &input : inputs)
    shapes.push_back(input.shape());
  Stopwatch compile;
  const ktn_model_info_t &info = model->prepare(shapes);
  results.compileMs = compile.ms();

  Runner runner(info, inputs);
  results.arenaBytes = runner.arenaBytes();
  if (arena)
    results.arenaLeast = arena->least[0] + runner.batch() * arena->least[1];
  results.weightsBytes = info.weights_bytes;
  measure(runner, given.repeat, given.runs, results);
  if (!given.expect.empty())
    results.comparison = compare(runner.outputs(), model->outputs(),
                                 readArrays(given.expect), given.expect);
  if (!given.outputs.empty())
    writeOutputs(given.outputs, runner.outputs());

  results.peakRssMb = peakRssMb();
  if (given.settings.profile)
    results.profile = profile(*model, runner, info, given.repeat);

  given.json ? printJson(results) : printText(results, runner, *model);
  finishOutput();
  if (!results.comparison || results.comparison->passes(given.maxRelError))
    return 0;
  printErrors(results.comparison->problem(given.maxRelError));
  return 1;
}

/// Refuses what a model of this kind has no use for: it would be ignored.
static void checkOptions(const CLI::App &app, const std::string &model) {
  bool isCompiled = model.ends_with(".so");
  if (isCompiled)
    for (const char *name :
         {"-O", "--target", "--precision", "--winograd", "--tiles",
          "--weights24", "--strassen", "--pairs", "--fold-lookups",
          "--unroll-factor", "--checkpoint-every"})
      if (app.get_option(name)->count() > 0)
        throw Error(model + ": is compiled already: give " + name +
                    " to keratinc");
  if (!isCompiled && app.get_option("--weights")->count() > 0)
    throw Error(model + ": has its weights in it: --weights is for a .so");
}

int main(int argc, char **argv) try {
  CLI::App app("Runs a model, compares its outputs, measures its time.",
               "keratin-run");
  Arguments given;
  app.add_option("model", given.model,
                 "model saved by Keras (.keras, .h5), or compiled (.so)")
      ->required();
  CLI::Option *inputs =
      app.add_option("--inputs", given.inputs,
                     ".npz with arrays in_NAME or NAME, or .npy; else random");
  app.add_option(
      "--expect", given.expect,
      ".npz with arrays out_INDEX or NAME, or .npy, to compare with");
  app.add_option("--max-rel-error", given.maxRelError,
                 "of max |y - ref| / max |ref|, worst output")
      ->check(isBound)
      ->capture_default_str();
  app.add_option("--seed", given.seed, "of random inputs")->check(isSeed);
  app.add_option("--batch", given.batch,
                 "of random inputs; with --inputs, how many of their rows")
      ->check(isBatch);
  app.add_option("--input-shape", given.inputShapes,
                 "NAME=2x3x4 or NAME=?x3x4: the shape of a random input; ? is "
                 "the batch")
      ->check(isInputShape)
      ->excludes(inputs);
  addOptimizationFlags(app, given.settings.optimize);
  addTargetOption(app, given.settings.target);
  addThreadsOption(app, given.settings.threads,
                   "number of threads; else as many as the machine has");
  addPrecisionOption(app, given.settings.precision);
  addWinogradOption(app, given.settings.winograd);
  addTilesOption(app, given.settings.tiles);
  addWeights24Option(app, given.settings.weights24);
  addStrassenOption(app, given.settings.strassen);
  addPairsOption(app, given.settings.pairs);
  addFoldLookupsOption(app, given.settings.foldLookups);
  addLoopOptions(app, given.settings);
  addCacheOptions(app);
  app.add_option("--repeat", given.repeat, "runs to measure")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--profile", given.settings.profile,
               "print the time of each kernel");
  app.add_option("--weights", given.weights,
                 "external weights of a .so; else PREFIX.weights");
  app.add_option("--outputs", given.outputs,
                 ".npz for arrays out_INDEX, or .npy");
  CLI::Option *json =
      app.add_flag("--json", given.json, "print one JSON object");
  app.add_flag("--runs", given.runs,
               "with --json: the times of each run, and the integer additions "
               "that its core did in a second before or after it, whichever "
               "were fewer")
      ->needs(json);
  if (std::optional<int> status = parseCommandLine(app, argc, argv))
    return *status;
  checkOptions(app, given.model);
  if (given.batch == "dynamic")
    given.batch.clear();
  if (given.settings.threads != 0)
    K::set_num_threads(given.settings.threads);
  return runModel(given);
} catch (const std::bad_alloc &) {
  printErrors("out of memory");
  return 1;
} catch (const std::exception &error) {
  printErrors(error.what());
  return 1;
}
