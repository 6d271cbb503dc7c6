//===- Functional.h - the graph of a functional model -----------*- C++ -*-===//
#ifndef KERATIN_FRONTEND_MODEL_FUNCTIONAL_H
#define KERATIN_FRONTEND_MODEL_FUNCTIONAL_H

#include "Graph.h"
#include "Objects.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace keratin::model {

/// A reference [layer name, call, output] to a tensor.
struct Reference {
  std::string layer;
  size_t call = 0;
  size_t output = 0;
  /// What the file says about the tensor, for when its layer failed.
  const Json *shape = nullptr;
  const Json *dtype = nullptr;
};

/// Nothing when `triple` is none.
std::optional<Reference> parseReference(const Json &triple);

/// The layers of a functional model, the calls of each, and which call reads
/// what. References are checked before anything is built.
class FunctionalGraph {
public:
  /// `config` is the model's; it and the others outlive the graph.
  FunctionalGraph(GraphReader &reader, const Json &config,
                  const std::string &path, const WeightScope &scope);

  /// The InputLayer that `reference` names, or null.
  const Json *input(const Json &reference) const;
  void setInput(const Json &reference, Value value);
  /// Builds all calls, each after those it reads.
  void run();
  std::vector<Value> outputs(const std::vector<Leaf> &leaves);
  void problem(const std::string &message);

private:
  struct CallNode {
    size_t layer = 0;
    const Json *arguments = nullptr;
    std::vector<Reference> reads;
    std::vector<size_t> readers;
    size_t waitsFor = 0;
    bool done = false;
    std::vector<Value> outputs;
  };
  struct LayerNode {
    const Json *object = nullptr;
    std::string name;
    std::string path;
    std::string group;
    size_t firstCall = 0;
    size_t calls = 0;
    bool isInput = false;
    bool isModel = false;
  };

  void readLayers(const Json &list);
  void readCalls();
  void readReferences(const Json &value, std::vector<Reference> &references);
  void readLegacyReferences(const Json &node,
                            std::vector<Reference> &references);
  void addReference(const Json &triple, const Json *tensor,
                    std::vector<Reference> &references);
  size_t callOf(const Reference &reference, bool isOutput) const;
  void link();
  void reportCycle();
  void runCall(size_t index);
  Call arguments(const CallNode &node);
  Argument argumentOf(const Json &value);
  Argument legacyArgument(const Json &value);
  std::vector<Value> *outputsOf(const Reference &reference);
  Value valueOf(const Reference &reference);
  void takeMasks(const CallNode &node);

  GraphReader &reader;
  const std::string &path;
  const WeightScope &scope;
  std::vector<LayerNode> layers;
  std::vector<CallNode> calls;
  std::unordered_map<std::string, size_t> byName;
  /// Keras 2 wrote `inbound_nodes`: lists instead of objects.
  bool isLegacy = false;
};

} // namespace keratin::model

#endif // KERATIN_FRONTEND_MODEL_FUNCTIONAL_H
