//===- Extraction.cpp - a function cut out of the graph -------------------===//
#include "Extraction.h"

#include "ir/Ktn.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin::backend {

namespace {

/// The ops between the inputs and the outputs, in the order of the graph.
class Slice {
public:
  explicit Slice(const Cut &cut) : cut(cut) {
    for (const Tensor &input : cut.inputs)
      inputs.insert(Graph::valueOf(input));
    for (const Tensor &output : cut.outputs)
      visit(Graph::valueOf(output));
    for (const auto &[variable, value] : cut.updates)
      visit(Graph::valueOf(value));
    while (!pending.empty())
      visitOperands(*pending.pop_back_val());
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  }

  SmallVector<Operation *> ops;

private:
  void visit(Value value) {
    if (inputs.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    if (!op || !isa_and_nonnull<ModuleOp>(op->getParentOp()))
      throw Error("function '" + cut.function +
                  "': an output is a tensor made inside the step of a loop");
    if (auto placeholder = dyn_cast<ktn::PlaceholderOp>(op))
      throw Error("function '" + cut.function + "': missing input: an output " +
                  "depends on placeholder '" + placeholder.getName().str() +
                  "', which is not among the inputs");
    if (!seen.insert(op).second)
      return;
    ops.push_back(op);
    pending.push_back(op);
  }

  void visitOperands(Operation &op) {
    for (Value operand : op.getOperands())
      visit(operand);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op.getRegions(), captured);
    for (Value value : captured)
      visit(value);
  }

  const Cut &cut;
  llvm::DenseSet<Value> inputs;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> pending;
};

void replaceTrainingPhase(func::FuncOp function, bool training) {
  function.walk([&](ktn::TrainingPhaseOp op) {
    OpBuilder b(op);
    auto value = DenseElementsAttr::get(op.getY().getType(), training);
    op.replaceAllUsesWith(
        ktn::ConstantOp::create(b, op.getLoc(), op.getY().getType(), value)
            .getResult());
    op.erase();
  });
}

/// Builds the function from a slice.
class Cutter {
public:
  Cutter(Graph &graph, const Cut &cut, llvm::StringRef symbol)
      : graph(graph), cut(cut), slice(cut), b(&graph.getContext()),
        loc(NameLoc::get(b.getStringAttr(cut.function))), symbol(symbol) {}

  Extraction run() {
    findState();
    result.module = ModuleOp::create(loc);
    b.setInsertionPointToEnd(result.module->getBody());
    auto function = func::FuncOp::create(b, loc, symbol, functionType());
    nameArguments(function);
    b.setInsertionPointToEnd(function.addEntryBlock());
    mapArguments(function);
    for (Operation *op : slice.ops)
      clone(*op);
    SmallVector<Value> values;
    for (Value value : resultValues())
      values.push_back(mapping.lookup(value));
    func::ReturnOp::create(b, loc, values);
    replaceTrainingPhase(function, cut.training);
    return std::move(result);
  }

private:
  /// Variables that are read: arguments when they change, else constants.
  void findState() {
    for (Operation *op : slice.ops) {
      if (!isa<ktn::ReadOp>(op))
        continue;
      VariablePtr variable = graph.findVariable(op->getResult(0));
      bool updated = llvm::any_of(
          cut.updates, [&](auto &update) { return update.first == variable; });
      (updated || cut.live.count(variable) ? result.state : result.folded)
          .push_back(variable);
    }
  }

  SmallVector<Value> resultValues() {
    SmallVector<Value> values;
    for (const Tensor &output : cut.outputs)
      values.push_back(Graph::valueOf(output));
    for (const auto &[variable, value] : cut.updates)
      values.push_back(Graph::valueOf(value));
    return values;
  }

  FunctionType functionType() {
    SmallVector<Type> arguments;
    for (const Tensor &input : cut.inputs)
      arguments.push_back(Graph::typeOf(input));
    for (const VariablePtr &variable : result.state)
      arguments.push_back(
          graph.typeOf(variable->value.shape(), variable->value.dtype()));
    return b.getFunctionType(arguments, ValueRange(resultValues()).getTypes());
  }

  void nameArguments(func::FuncOp function) {
    std::vector<std::string> arguments = cut.inputNames;
    for (const VariablePtr &variable : result.state)
      arguments.push_back(variable->name);
    std::vector<std::string> results = cut.outputNames;
    for (const auto &[variable, value] : cut.updates)
      results.push_back(variable->name + "_next");
    for (auto [index, name] : llvm::enumerate(arguments))
      function.setArgAttr(index, "ktn.name", b.getStringAttr(name));
    for (auto [index, name] : llvm::enumerate(results))
      function.setResultAttr(index, "ktn.name", b.getStringAttr(name));
  }

  void mapArguments(func::FuncOp function) {
    unsigned index = 0;
    for (const Tensor &input : cut.inputs)
      mapping.map(Graph::valueOf(input), function.getArgument(index++));
    llvm::DenseMap<Variable *, Value> arguments;
    for (const VariablePtr &variable : result.state)
      arguments[variable.get()] = function.getArgument(index++);
    for (Operation *op : slice.ops)
      if (isa<ktn::ReadOp>(op))
        if (Value argument =
                arguments.lookup(graph.findVariable(op->getResult(0)).get()))
          mapping.map(op->getResult(0), argument);
  }

  void clone(Operation &op) {
    if (!isa<ktn::ReadOp>(op)) {
      b.clone(op, mapping);
      return;
    }
    if (mapping.contains(op.getResult(0)))
      return;
    VariablePtr variable = graph.findVariable(op.getResult(0));
    mapping.map(op.getResult(0), ktn::ConstantOp::create(
                                     b, op.getLoc(), op.getResult(0).getType(),
                                     graph.attributeOf(*variable))
                                     .getResult());
  }

  Graph &graph;
  const Cut &cut;
  Slice slice;
  OpBuilder b;
  Location loc;
  llvm::StringRef symbol;
  IRMapping mapping;
  Extraction result;
};

} // namespace

Extraction extract(Graph &graph, const Cut &cut, llvm::StringRef symbol) {
  return Cutter(graph, cut, symbol).run();
}

void checkExtraction(const Cut &cut) { Slice slice(cut); }

} // namespace keratin::backend
