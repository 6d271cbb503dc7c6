//===- Graph.h - the graph under the backend API ----------------*- C++ -*-===//
//
// A graph is one MLIR context and one block, to which every function of the API
// appends `ktn` ops. A compiled function is cut out of the block as the ops
// that its outputs need (Extraction.cpp). An op that no tensor, function or
// other op needs is erased (Lifetime.cpp).
//
// MLIR contexts are used by one thread at a time: whoever touches a graph holds
// a Graph::Lock, which nests because tracing a loop body calls the API.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_GRAPH_H
#define KERATIN_FRONTEND_GRAPH_H

#include "Emit.h"
#include "keratin/config.h"
#include "keratin/function.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace keratin::backend {

/// What a Tensor holds of a value in a graph. The last one of a value to die
/// tells the graph, without waiting for it.
class ValueHandle {
public:
  /// The graph is locked by the caller.
  ValueHandle(std::shared_ptr<Graph> graph, mlir::Value value);
  ~ValueHandle();
  ValueHandle(const ValueHandle &) = delete;
  ValueHandle &operator=(const ValueHandle &) = delete;

  const std::shared_ptr<Graph> graph;
  const mlir::Value value;
};

/// The state behind a `ktn.read` of the graph.
struct Variable {
  std::string name;
  Array value;
  /// The value is {key, count of calls}: a function that reads it adds one to
  /// the count when it is called.
  bool countsCalls = false;
  /// Counts assignments: code with the value folded in is stale after one.
  uint64_t version = 0;
  /// The value as an attribute, once somebody has folded it.
  mlir::ElementsAttr attribute;
};

class Graph : public std::enable_shared_from_this<Graph> {
public:
  Graph();
  ~Graph();

  /// The graph in which this thread makes new values.
  static std::shared_ptr<Graph> current();
  /// The one graph of the tensors; the current one when they are numbers.
  /// Throws Error when there are two.
  static std::shared_ptr<Graph> of(const Tensors &tensors);
  /// Of a tensor that is no number.
  static const std::shared_ptr<Graph> &ownerOf(const Tensor &tensor) {
    return tensor.handle->graph;
  }

  /// Holds the mutex. When the outermost of a thread ends, what has become
  /// useless meanwhile is erased: not earlier, since code under a lock may hold
  /// values without handles.
  class Lock {
  public:
    explicit Lock(const std::shared_ptr<Graph> &graph);
    ~Lock();
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;

  private:
    std::shared_ptr<Graph> graph;
  };

  mlir::MLIRContext &getContext() { return *context; }
  mlir::Block *getTopBlock() { return blocks.front(); }

  Tensor wrap(mlir::Value value);
  /// The value of a tensor of this graph that may be used where the next op
  /// goes. A number becomes a constant of `dtype`. In a ControlDependencies
  /// scope it is the value after the assignments that are waited for.
  mlir::Value unwrap(const Tensor &tensor, DType dtype = floatx());
  /// The value of a tensor that may be used where the next op goes.
  mlir::Value checkedValueOf(const Tensor &tensor);
  /// The same without a look at where it may be used.
  static mlir::Value valueOf(const Tensor &tensor);
  static mlir::RankedTensorType typeOf(const Tensor &tensor) {
    return llvm::cast<mlir::RankedTensorType>(valueOf(tensor).getType());
  }

  Tensor placeholder(const Shape &shape, DType dtype, std::string_view name);
  Tensor variable(const Array &value, std::string_view name);
  Tensor constant(const Array &value, std::string_view name);
  /// A variable of the value {key, 0} that counts the calls of functions.
  Tensor randomState(uint64_t key);
  Tensor trainingPhase();
  /// Null for what is no variable.
  std::shared_ptr<Variable> findVariable(mlir::Value value) const;
  std::shared_ptr<Variable> findVariable(const Tensor &tensor) const {
    return findVariable(valueOf(tensor));
  }
  /// The variable that a `ktn.assign` of this graph assigns.
  std::shared_ptr<Variable> findAssigned(mlir::Operation *op) const {
    return assigned.lookup(op);
  }

  /// Gives a variable a value of its dtype and shape.
  void assign(Variable &variable, Array value);

  /// What is known of a value. All but the last an op has of its operands.
  enum Trait : uint8_t { UsesPhase = 1, Assigns = 2, OfLayer = 4 };
  bool hasTrait(mlir::Value value, Trait trait) const {
    return traits.lookup(value) & trait;
  }
  void addTrait(mlir::Value value, Trait trait) { traits[value] |= trait; }

  mlir::Operation *append(std::string_view mnemonic, const Tensors &operands,
                          const Attributes &attributes, size_t required);
  ScanStep appendScan(const Tensors &xs, const Tensors &initial, bool reverse,
                      const ScanBody &body,
                      std::optional<int64_t> checkpointEvery);
  Tensor statedAs(const Tensor &x, const Tensor &like);
  Tensor inEachStep(Tensor state);
  Tensors appendGradients(const Tensor &loss, const Tensors &variables);
  /// Throws Error when `value` is not of the variable's dtype and shape.
  Tensor appendAssign(const Tensor &variable, const Tensor &value);
  /// `value` in such a way that who asks for it performs the assignments that
  /// `events` depend on.
  mlir::Value appendAfter(mlir::Value value, mlir::ValueRange events);
  /// `results` as what `task` makes of the values of `operands`, and `saved` in
  /// their place in a saved function (Host.h).
  Tensors appendHost(HostTask task, const Tensors &operands,
                     const std::vector<std::pair<Shape, DType>> &results,
                     const Tensors &saved);
  const HostTask &hostTask(int64_t number) const {
    return hostTasks.at(number);
  }

  /// The value of a variable, or of a constant, as an attribute.
  mlir::ElementsAttr attributeOf(const Array &value, llvm::StringRef name);
  /// Frees the constants that a compilation has left behind.
  void dropCompiledBlobs();
  mlir::ElementsAttr attributeOf(Variable &variable);

  mlir::RankedTensorType typeOf(const Shape &shape, DType dtype);
  mlir::Type elementType(DType dtype);
  static DType dtypeOf(mlir::Type elementType);
  static Shape shapeOf(mlir::RankedTensorType type);

  /// What `learning_phase` gives from now on, when it is a number.
  std::optional<int> phase;
  std::map<std::string, int64_t> uids;

private:
  class Trace;
  friend class ValueHandle;

  /// Infers the types of the results where there are none, creates the op at
  /// the end of the current block and verifies it.
  mlir::Operation *create(mlir::OperationState &state);
  /// The same outside of the loops that are being traced.
  mlir::Operation *createAtTop(mlir::OperationState &state);
  void inferTypes(mlir::OperationState &state);
  mlir::Attribute attributeFor(const AttributeValue &value);
  mlir::Location locationFor(llvm::StringRef fallback);
  std::string uniqueName(llvm::StringRef name, llvm::StringRef fallback);
  void inheritTraits(mlir::Operation *op);
  mlir::Value makeVariable(std::shared_ptr<Variable> variable);

  // Lifetime.cpp
  /// A handle of `value` has died, in any thread.
  void release(mlir::Value value);
  std::vector<mlir::Value> takeReleased();
  /// Erases what nobody needs after the handles that have died.
  void eraseUseless();
  void eraseUseless(llvm::ArrayRef<mlir::Value> notes);
  bool isNeeded(mlir::Operation *op) const;
  bool hasHandles(mlir::Region &region) const;
  /// Drops what is known of an op, and of those in its regions.
  void forget(mlir::Operation *op);
  /// Frees the elements of a constant that nobody reads any more.
  void dropBlob(mlir::Attribute attribute);

  std::recursive_mutex mutex;
  unsigned lockDepth = 0;
  std::mutex releasedMutex;
  std::vector<mlir::Value> released;

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Where ops go: the block of the module, then the bodies being traced.
  std::vector<mlir::Block *> blocks;
  /// The loops around the op that comes next.
  std::vector<Trace *> traces;
  /// Bodies whose tracing ended with an exception; tensors of them may be held.
  std::vector<std::unique_ptr<mlir::Region>> abandoned;
  /// Of the `ktn.host` ops.
  std::map<int64_t, HostTask> hostTasks;
  int64_t nextTask = 0;
  llvm::DenseMap<mlir::Value, std::shared_ptr<Variable>> variables;
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<Variable>> assigned;
  llvm::DenseMap<mlir::Value, unsigned> handleCounts;
  /// Only where there is one.
  llvm::DenseMap<mlir::Value, uint8_t> traits;
  /// The `ktn.training_phase` of the graph, while it is there.
  mlir::Value phaseValue;
  llvm::StringMap<unsigned> nameCounts;
  /// Keys of the resources that constants and variables of the graph have.
  llvm::StringSet<> blobs;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_GRAPH_H
