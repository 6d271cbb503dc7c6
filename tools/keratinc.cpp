//===- keratinc.cpp - compiles a model ahead of time ----------------------===//
#include "IrFile.h"
#include "Options.h"
#include "Report.h"

#include "keratin/model.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>

namespace K = keratin::backend;
using namespace keratin;

namespace {
struct Arguments {
  std::string model, prefix, batch = "dynamic";
  std::vector<std::string> dump, inputShapes;
  K::SaveOptions options;
  bool printKernels = false;
};
} // namespace

static std::vector<K::KernelInfo> compileModel(const Arguments &given) {
  NamedShapes shapes = parseInputShapes(given.inputShapes);
  if (given.model.ends_with(".mlir"))
    return IrFile(given.model).save(given.prefix, given.options, shapes);
  Model model = [&] {
    try {
      return loadModel(given.model, {shapes, /*spills=*/true});
    } catch (const Error &) {
      // What is wrong may follow from an axis that is open.
      checkShapes(readModelInputs(given.model), shapes);
      throw;
    }
  }();
  K::FunctionNames names{model.name, model.inputNames, model.outputNames};
  K::Function function =
      K::function(model.inputs, model.outputs, /*updates=*/{}, names);
  checkShapes(function.inputs(), shapes);
  K::SaveOptions options = given.options;
  options.inputShapes = orderShapes(function.inputs(), shapes);
  return function.save(given.prefix, options);
}

int main(int argc, char **argv) try {
  CLI::App app("Compiles a Keras model to native code.", "keratinc");
  Arguments given;
  K::SaveOptions &options = given.options;
  app.add_option("model", given.model,
                 "model saved by Keras (.keras, .h5), or IR (.mlir)")
      ->required();
  app.add_option("-o,--output", given.prefix,
                 "PREFIX of the files written; '-' for text on stdout")
      ->required()
      ->check(isPrefix);
  app.add_option("--emit", options.emit, "what is written")
      ->check(
          CLI::IsMember({"obj", "lib", "so", "exe", "graph", "core", "layout",
                         "linalg", "kernels", "loops", "llvm", "asm"}))
      ->capture_default_str();
  addOptimizationFlags(app, options.optimize);
  addTargetOption(app, options.target);
  app.add_option("--batch", given.batch, "dynamic, or the only batch accepted")
      ->check(isBatch)
      ->capture_default_str();
  app.add_option("--input-shape", given.inputShapes,
                 "NAME=?x3x4: the shape of an input, where the model leaves "
                 "more than the batch open; ? keeps the batch open")
      ->check(isInputShape);
  app.add_option("--weights", options.weights,
                 "in the code, or in PREFIX.weights")
      ->check(CLI::IsMember({"embed", "external"}))
      ->capture_default_str();
  app.add_option("--name", options.name,
                 "prefix of the C symbols; else made from PREFIX");
  addThreadsOption(app, options.threads,
                   "1: code that asks for no threads; N: the default of a "
                   "program; else as many as the machine has");
  addPrecisionOption(app, options.precision);
  addWinogradOption(app, options.winograd);
  addTilesOption(app, options.tiles);
  addWeights24Option(app, options.weights24);
  addStrassenOption(app, options.strassen);
  addPairsOption(app, options.pairs);
  addFoldLookupsOption(app, options.foldLookups);
  addLoopOptions(app, options);
  addCacheOptions(app);
  app.add_flag("--profile", options.profile,
               "let the code call a hook around each kernel");
  app.add_option("--dump-ir-after", given.dump,
                 "PASS|all DIR: write the IR after passes to files in DIR")
      ->expected(2);
  app.add_flag("--print-kernels", given.printKernels,
               "print a table of the kernels");
  app.add_flag("--time-passes", options.timePasses,
               "print the time of each pass");
  if (std::optional<int> status = parseCommandLine(app, argc, argv))
    return *status;
  if (given.batch != "dynamic")
    options.batch = std::stoll(given.batch);

  ProgressBar bar;
  options.progress = [&](std::string_view what, unsigned done, unsigned total) {
    bar.show(what, done, total);
  };
  if (!given.dump.empty()) {
    options.dumpAfter = given.dump[0];
    options.dumpDirectory = given.dump[1];
    std::error_code code;
    std::filesystem::create_directories(options.dumpDirectory, code);
    if (code)
      throw Error("--dump-ir-after: the folder " + options.dumpDirectory +
                  " cannot be made: " + code.message());
  }
  K::ArenaInfo arena = {};
  options.arena = [&](const K::ArenaInfo &told) { arena = told; };
  std::vector<K::KernelInfo> kernels = compileModel(given);
  if (given.printKernels)
    printKernels(std::cout, kernels, arena);
  finishOutput();
  return 0;
} catch (const std::bad_alloc &) {
  printErrors("out of memory");
  return 1;
} catch (const std::exception &error) {
  printErrors(error.what());
  return 1;
}
