//===- model.h - reading of Keras model files -------------------*- C++ -*-===//
//
//   keratin::Model digits = keratin::loadModel("digits.keras");
//   K::Function predict = K::function(digits.inputs, digits.outputs);
//
// Includes no MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_MODEL_H
#define KERATIN_MODEL_H

#include "keratin/backend.h"

#include <map>
#include <string>
#include <vector>

namespace keratin {

/// A model as a graph of the backend API, ready for K::function.
struct Model {
  std::string name;
  /// Placeholders, in the order and with the names of the file.
  backend::Tensors inputs;
  backend::Tensors outputs;
  std::vector<std::string> inputNames;
  /// Names of the layers that make the outputs; a layer with several has
  /// `name`, `name_1`, …
  std::vector<std::string> outputNames;
};

/// All that is wrong with a model file: one line for each problem, which names
/// the layer, what was found, what was expected and the way out. what() is all
/// lines.
class ModelError : public Error {
public:
  explicit ModelError(std::vector<std::string> problems);
  const std::vector<std::string> &problems() const { return lines; }

private:
  std::vector<std::string> lines;
};

struct ModelOptions {
  /// Shapes of inputs, by name, for axes that the file leaves open. Some layers
  /// cannot be built without (a strided convolution with padding "same"). The
  /// batch stays open: the first extent only has to agree.
  std::map<std::string, backend::Shape> inputShapes;
  /// Puts the weights of a `.keras` file in a temporary file, from where they
  /// are read when they are needed: compiling takes less memory.
  bool spills = false;
};

/// What the model in a file takes, without building its graph. Throws
/// ModelError.
std::vector<backend::TensorInfo> readModelInputs(const std::string &path);

/// Reads a model that Keras saved: a `.keras` file or the same unpacked as a
/// directory, or a whole-model `.h5` file, of Keras 3 or Keras 2. A directory
/// may have sharded weights: `model.weights.json` and the files that it names.
/// Weights are shared with the bytes of the file, not copied.
///
/// The file is not trusted: it is never executed, does not reach other files,
/// and sizes and nesting are bounded. Throws ModelError, also for layers and
/// options that are not supported; all of them are listed.
///
/// The graph is made in a graph of its own. Any thread may call this.
Model loadModel(const std::string &path, const ModelOptions &options = {});

} // namespace keratin

#endif // KERATIN_MODEL_H
