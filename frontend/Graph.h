//===- Graph.h - the graph under the backend API ----------------*- C++ -*-===//
//
// A graph is one MLIR context and one block, to which every function of the API
// appends `ktn` ops. Nothing is erased: a compiled function is cut out of the
// block as the ops that its outputs need (Function.cpp).
//
// MLIR contexts are used by one thread at a time: whoever touches a graph holds
// its mutex, which is recursive because tracing a loop body calls the API.
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
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace keratin::backend {

/// The state behind a `ktn.read` of the graph.
struct Variable {
  std::string name;
  Array value;
  /// Counts assignments: code with the value folded in is stale after one.
  uint64_t version = 0;
  /// The value as an attribute, for the version that it was made of.
  mlir::ElementsAttr attribute;
  uint64_t attributeVersion = 0;
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
  static const std::shared_ptr<Graph> &ownerOf(const Tensor &tensor) {
    return tensor.graph;
  }

  mlir::MLIRContext &getContext() { return *context; }
  mlir::Block *getTopBlock() { return blocks.front(); }

  Tensor wrap(mlir::Value value);
  /// The value of a tensor of this graph that may be used where the next op
  /// goes. A number becomes a constant of `dtype`.
  mlir::Value unwrap(const Tensor &tensor, DType dtype = floatx());
  /// The same without a look at where it may be used.
  static mlir::Value valueOf(const Tensor &tensor);
  static mlir::RankedTensorType typeOf(const Tensor &tensor) {
    return llvm::cast<mlir::RankedTensorType>(valueOf(tensor).getType());
  }

  Tensor placeholder(const Shape &shape, DType dtype, std::string_view name);
  Tensor variable(const Array &value, std::string_view name);
  Tensor constant(const Array &value, std::string_view name);
  /// Null for what is no variable.
  std::shared_ptr<Variable> findVariable(mlir::Value value) const;
  std::shared_ptr<Variable> findVariable(const Tensor &tensor) const {
    return findVariable(valueOf(tensor));
  }

  mlir::Operation *append(std::string_view mnemonic, const Tensors &operands,
                          const Attributes &attributes, size_t required);
  ScanStep appendScan(const Tensors &xs, const Tensors &initial, bool reverse,
                      const ScanBody &body);
  Tensors appendGradients(const Tensor &loss, const Tensors &variables);

  /// The value of a variable, or of a constant, as an attribute.
  mlir::ElementsAttr attributeOf(const Array &value, llvm::StringRef name);
  mlir::ElementsAttr attributeOf(Variable &variable);

  mlir::RankedTensorType typeOf(const Shape &shape, DType dtype);
  mlir::Type elementType(DType dtype);
  static DType dtypeOf(mlir::Type elementType);
  static Shape shapeOf(mlir::RankedTensorType type);

  std::recursive_mutex mutex;
  /// What `learning_phase` is in functions built from now on.
  bool training = false;

private:
  class Trace;

  /// Infers the types of the results where there are none, creates the op at
  /// the end of the current block and verifies it.
  mlir::Operation *create(mlir::OperationState &state);
  void inferTypes(mlir::OperationState &state);
  mlir::Attribute attributeFor(const AttributeValue &value);
  mlir::Location locationFor(llvm::StringRef fallback);
  std::string uniqueName(llvm::StringRef name, llvm::StringRef fallback);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Where ops go: the block of the module, then the bodies being traced.
  std::vector<mlir::Block *> blocks;
  /// Bodies whose tracing ended with an exception; tensors of them may be held.
  std::vector<std::unique_ptr<mlir::Region>> abandoned;
  llvm::DenseMap<mlir::Value, std::shared_ptr<Variable>> variables;
  llvm::StringMap<unsigned> nameCounts;
};

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_GRAPH_H
