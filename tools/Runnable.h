//===- Runnable.h - a model that can be run ---------------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_RUNNABLE_H
#define KERATIN_TOOLS_RUNNABLE_H

#include "Pages.h"

#include "keratin/abi.h"
#include "keratin/function.h"

#include <memory>
#include <string>
#include <vector>

namespace keratin {

/// A model in this process, from a file of Keras or a shared library.
class Runnable {
public:
  virtual ~Runnable() = default;
  const std::vector<backend::TensorInfo> &inputs() const { return inputList; }
  const std::vector<backend::TensorInfo> &outputs() const { return outputList; }
  /// The code for inputs of these shapes; compiles it if need be. Throws Error
  /// when the model does not take them.
  virtual const ktn_model_info_t &
  prepare(const std::vector<backend::Shape> &inputShapes) = 0;
  /// Null when the code was not compiled for profiling: then, why.
  virtual std::string setProfileHook(ktn_profile_fn_t hook, void *user) = 0;

protected:
  std::vector<backend::TensorInfo> inputList, outputList;
};

/// Reads a .keras or .h5 file. Throws Error.
std::unique_ptr<Runnable> openModel(const std::string &path,
                                    const backend::CompileSettings &settings);

/// Loads a shared library of keratinc's. `weights` is the file of external
/// weights; empty: PREFIX.weights beside PREFIX.so. Throws Error.
std::unique_ptr<Runnable> openLibrary(const std::string &path,
                                      const std::string &weights);

/// Calls a prepared model. The arena is kept between calls.
class Runner {
public:
  /// Throws Error when the memory for a run is not to be had.
  Runner(const ktn_model_info_t &info, const std::vector<Array> &inputs);

  /// Computes the outputs. Throws Error when the model refuses.
  void run();

  const std::vector<Array> &outputs() const { return results; }
  int64_t arenaBytes() const { return arenaSize; }
  /// Of all memory that a run touches, besides weights.
  int64_t workingBytes() const;
  int64_t batch() const { return batchSize; }

private:
  const ktn_model_info_t &info;
  std::vector<Array> inputArrays, results;
  std::vector<const void *> inputData;
  std::vector<void *> outputData;
  int64_t batchSize = 1, arenaSize = 0;
  Pages arena;
};

} // namespace keratin

#endif // KERATIN_TOOLS_RUNNABLE_H
