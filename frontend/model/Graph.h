//===- Graph.h - from the configuration of a model to a graph ---*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_GRAPH_H
#define KERATIN_FRONTEND_MODEL_GRAPH_H

#include "Layer.h"

#include <string>
#include <vector>

namespace keratin::model {

/// Thrown, past all handlers of errors of a layer, when a file asks for more
/// work than any model needs.
struct TooMuchWork {
  std::string why;
};

using InputShapes = std::map<std::string, K::Shape>;

/// Builds the graph of a model from its configuration: Functional and
/// Sequential models, nested ones, and layers that are called several times.
class GraphReader {
public:
  /// `inputShapes` gives extents that the file leaves open.
  GraphReader(WeightScope weights, Problems &problems, bool isKeras2 = false,
              InputShapes inputShapes = {})
      : weights(std::move(weights)), problems(problems),
        shared{problems, {}, isKeras2}, inputShapes(std::move(inputShapes)) {}

  struct Result {
    std::string name;
    std::vector<Value> inputs, outputs;
    std::vector<std::string> inputNames, outputNames;
  };
  /// `object` has `class_name` and `config`. Problems are collected; the result
  /// is of use only if there are none.
  Result read(const Json &object);
  /// The inputs alone, without building what follows from them.
  std::vector<K::TensorInfo> readInputs(const Json &object);

  /// Builds a call of a layer or a model. Empty if there is a problem.
  std::vector<Value> buildObject(const Json &object, const std::string &path,
                                 const Call &call, const WeightScope &scope);
  /// Names the problems of layers that cannot be built for want of an input.
  void checkObject(const Json &object, const std::string &path);
  void problem(const std::string &line) { problems.add(line); }
  bool isKeras2() const { return shared.isKeras2; }

private:
  std::vector<Value> buildLayer(const Json &object, const std::string &path,
                                const Call &call, const WeightScope &scope);
  std::vector<Value> buildSequential(const Json &config,
                                     const std::string &path, Value input,
                                     const WeightScope &scope);
  std::vector<Value> buildFunctional(const Json &config,
                                     const std::string &path, const Call *call,
                                     const WeightScope &scope, Result *result);
  void readSequential(const Json &config, Result &result);
  std::optional<K::TensorInfo> inputOf(const Json &config,
                                       const std::string &fallbackName);
  Value placeholderFor(const Json &config, const std::string &name,
                       Result &result);
  void checkInputShapes(const std::vector<std::string> &names);

  WeightScope weights;
  Problems &problems;
  Shared shared;
  InputShapes inputShapes;
  size_t callCount = 0;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_GRAPH_H
