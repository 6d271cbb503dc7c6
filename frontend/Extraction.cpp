//===- Extraction.cpp - a function cut out of the graph -------------------===//
#include "Extraction.h"

#include "Diagnostics.h"
#include "Slice.h"
#include "codegen/Compile.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace keratin::backend {

namespace {

/// The new values of variables so far.
using NewValues = llvm::MapVector<const Variable *, Value>;

/// Builds the function from a slice.
class Cutter {
public:
  Cutter(Graph &graph, const Cut &cut, const Circumstances &known,
         llvm::StringRef symbol)
      : graph(graph), cut(cut), known(known), slice(graph, cut, known),
        b(&graph.getContext()),
        loc(NameLoc::get(b.getStringAttr(cut.function))), symbol(symbol) {}

  Extraction run() {
    if (!slice.open.empty())
      throw Error("function '" + cut.function +
                  "' chooses between shapes by values: there is no code "
                  "before they are known");
    findState();
    result.module = ModuleOp::create(loc);
    b.setInsertionPointToEnd(result.module->getBody());
    auto function = func::FuncOp::create(b, loc, symbol, argumentTypes());
    b.setInsertionPointToEnd(function.addEntryBlock());
    mapArguments(function);
    for (Operation *op : slice.ops)
      emit(*op);
    SmallVector<Value> values = results();
    func::ReturnOp::create(b, loc, values);
    function.setFunctionType(b.getFunctionType(function.getArgumentTypes(),
                                               ValueRange(values).getTypes()));
    nameValues(function);
    if (typesChanged)
      inferAgain(function);
    return std::move(result);
  }

private:
  //===--------------------------------------------------------------------===//
  // Signature
  //===--------------------------------------------------------------------===//

  VariablePtr variableOf(Operation *read) const {
    return graph.findVariable(read->getResult(0));
  }

  /// Variables that are read: arguments when they change, else constants.
  void findState() {
    llvm::DenseSet<Variable *> updated;
    for (Operation *op : slice.ops)
      if (isa<ktn::AssignOp>(op))
        updated.insert(graph.findAssigned(op).get());
    for (Operation *op : slice.ops) {
      if (!isa<ktn::ReadOp>(op) || slice.isInput(op->getResult(0)))
        continue;
      VariablePtr variable = variableOf(op);
      bool isState = !known.foldVariables || variable->countsCalls ||
                     updated.contains(variable.get()) ||
                     known.live.count(variable);
      (isState ? result.state : result.folded).push_back(variable);
    }
  }

  FunctionType argumentTypes() {
    SmallVector<Type> arguments;
    for (const Tensor &input : cut.inputs)
      arguments.push_back(Graph::typeOf(input));
    for (const VariablePtr &variable : result.state)
      arguments.push_back(
          graph.typeOf(variable->value.shape(), variable->value.dtype()));
    return b.getFunctionType(arguments, {});
  }

  void nameValues(func::FuncOp function) {
    std::vector<std::string> arguments = cut.inputNames;
    for (const VariablePtr &variable : result.state)
      arguments.push_back(variable->name);
    std::vector<std::string> results = cut.outputNames;
    for (const VariablePtr &variable : result.updated)
      results.push_back(variable->name + "_next");
    for (auto [index, name] : llvm::enumerate(arguments))
      function.setArgAttr(index, "ktn.name", b.getStringAttr(name));
    for (auto [index, name] : llvm::enumerate(results))
      function.setResultAttr(index, "ktn.name", b.getStringAttr(name));
    // The memory of the old value, if the function reads it.
    for (auto [index, variable] : llvm::enumerate(result.updated))
      if (auto old = llvm::find(result.state, variable);
          old != result.state.end())
        function.setResultAttr(
            cut.outputNames.size() + index, "ktn.updates",
            b.getI64IntegerAttr(int64_t(cut.inputs.size()) +
                                (old - result.state.begin())));
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
        if (Value argument = arguments.lookup(variableOf(op).get()))
          mapping.map(op->getResult(0), argument);
  }

  /// The outputs and then the new values.
  SmallVector<Value> results() {
    SmallVector<Value> values;
    for (auto [index, output] : llvm::enumerate(cut.outputs)) {
      Value value = Graph::valueOf(output);
      values.push_back(cut.afterUpdates.count(index)
                           ? evaluateWith(value, newValues)
                           : mapping.lookup(value));
    }
    if (!cut.commits) {
      result.updated.clear();
      return values;
    }
    for (const VariablePtr &variable : result.updated)
      values.push_back(newValues.lookup(variable.get()));
    for (Operation *op : slice.ops)
      if (isa<ktn::ReadOp>(op) && variableOf(op)->countsCalls) {
        result.updated.push_back(variableOf(op));
        values.push_back(countCall(mapping.lookup(op->getResult(0))));
      }
    return values;
  }

  /// {key, calls + 1}
  Value countCall(Value state) {
    auto type = cast<RankedTensorType>(state.getType());
    auto one = DenseElementsAttr::get(type, ArrayRef<int64_t>({0, 1}));
    return ktn::AddOp::create(b, loc, state,
                              ktn::ConstantOp::create(b, loc, one));
  }

  //===--------------------------------------------------------------------===//
  // Values before the updates
  //===--------------------------------------------------------------------===//

  void emit(Operation &op) {
    if (auto assign = dyn_cast<ktn::AssignOp>(op))
      return emitAssign(assign);
    if (Value source = slice.aliased(&op))
      return mapAlias(op, source, mapping);
    if (op.getNumResults() == 1 && mapping.contains(op.getResult(0)))
      return;
    if (isa<ktn::ReadOp>(op)) {
      mapConstant(op, graph.attributeOf(*variableOf(&op)));
      return;
    }
    if (auto phase = dyn_cast<ktn::TrainingPhaseOp>(op)) {
      mapConstant(
          op, DenseElementsAttr::get(phase.getY().getType(), known.training));
      return;
    }
    clone(op, mapping);
  }

  void mapConstant(Operation &op, ElementsAttr value) {
    mapping.map(op.getResult(0),
                ktn::ConstantOp::create(b, op.getLoc(),
                                        op.getResult(0).getType(), value)
                    .getResult());
  }

  void mapAlias(Operation &op, Value source, IRMapping &values) {
    Value value = values.lookup(source);
    typesChanged |= value.getType() != op.getResult(0).getType();
    values.map(op.getResult(0), value);
  }

  void clone(Operation &op, IRMapping &values) {
    Operation *copy = b.clone(op, values);
    if (op.getNumRegions() == 0)
      return;
    // Of loops the slice knows that nobody uses them.
    SmallVector<ktn::AssignOp> assigns;
    copy->walk([&](ktn::AssignOp assign) { assigns.push_back(assign); });
    for (ktn::AssignOp assign : assigns)
      assign.erase();
  }

  /// The second new value of a variable starts from the first.
  void emitAssign(ktn::AssignOp op) {
    VariablePtr variable = graph.findAssigned(op);
    Value value = mapping.lookup(op.getX());
    if (Value first = newValues.lookup(variable.get())) {
      NewValues only;
      only[variable.get()] = first;
      value = evaluateWith(op.getX(), only);
    } else {
      result.updated.push_back(variable);
    }
    newValues[variable.get()] = value;
    mapping.map(op.getY(), value);
  }

  //===--------------------------------------------------------------------===//
  // Values after updates
  //===--------------------------------------------------------------------===//

  /// What `value` depends on, in the order of the graph, up to assignments:
  /// those stay as they are.
  SmallVector<Operation *> opsBehind(Value value) {
    llvm::DenseSet<Operation *> found;
    SmallVector<Value> pending{value};
    while (!pending.empty()) {
      Value next = pending.pop_back_val();
      Operation *op = next.getDefiningOp();
      if (slice.isInput(next) || isa<ktn::AssignOp>(op) ||
          !found.insert(op).second)
        continue;
      llvm::append_range(pending, slice.inputsOf(op));
    }
    SmallVector<Operation *> ops(found.begin(), found.end());
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return ops;
  }

  /// `value` where reads of the variables in `given` give their new values.
  Value evaluateWith(Value value, const NewValues &given) {
    IRMapping values;
    llvm::DenseSet<Value> changed;
    auto isChanged = [&](Value input) { return changed.contains(input); };
    for (Operation *op : opsBehind(value)) {
      if (isa<ktn::ReadOp>(op)) {
        if (Value now = given.lookup(variableOf(op).get())) {
          values.map(op->getResult(0), now);
          changed.insert(op->getResult(0));
        }
        continue;
      }
      checkChoice(*op, isChanged);
      SetVector<Value> inputs = slice.inputsOf(op);
      if (llvm::none_of(inputs, isChanged))
        continue;
      for (Value input : inputs)
        if (!isChanged(input))
          values.map(input, mapping.lookup(input));
      if (Value source = slice.aliased(op))
        mapAlias(*op, source, values);
      else
        clone(*op, values);
      changed.insert_range(op->getResults());
    }
    return isChanged(value) ? values.lookup(value) : mapping.lookup(value);
  }

  /// Conditions are evaluated once, before the updates.
  void checkChoice(Operation &op, llvm::function_ref<bool(Value)> isChanged) {
    auto choose = dyn_cast<ktn::ChooseOp>(op);
    if (choose && isChanged(choose.getCond()) && slice.aliased(&op))
      throw Error("function '" + cut.function +
                  "': an output after the updates chooses between shapes by "
                  "what the updates change");
  }

  /// What was chosen may be more static than the choice.
  void inferAgain(func::FuncOp function) {
    SmallVector<RankedTensorType> types;
    for (Type type : function.getArgumentTypes())
      types.push_back(cast<RankedTensorType>(type));
    Diagnostics diagnostics(graph.getContext());
    if (failed(specializeShapes(function, types)))
      throw Error(diagnostics.message("function '" + cut.function +
                                      "' does not fit what was chosen"));
  }

  Graph &graph;
  const Cut &cut;
  const Circumstances &known;
  Slice slice;
  OpBuilder b;
  Location loc;
  llvm::StringRef symbol;
  IRMapping mapping;
  NewValues newValues;
  bool typesChanged = false;
  Extraction result;
};

} // namespace

Extraction extract(Graph &graph, const Cut &cut, const Circumstances &known,
                   llvm::StringRef symbol) {
  return Cutter(graph, cut, known, symbol).run();
}

} // namespace keratin::backend
