//===- StateModule.cpp - functions that share variables -------------------===//
#include "StateModule.h"

#include "ir/Ktn.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace keratin::backend {

namespace {

class Joiner {
public:
  explicit Joiner(Graph &graph)
      : graph(graph), b(&graph.getContext()), loc(b.getUnknownLoc()),
        module(ModuleOp::create(loc)) {}

  OwningOpRef<ModuleOp> run(std::vector<Extraction> parts) {
    b.setInsertionPointToEnd(module->getBody());
    for (const Extraction &part : parts) {
      declare(part.state);
      declare(part.updated);
    }
    for (Extraction &part : parts) {
      auto function = *part.module->getOps<func::FuncOp>().begin();
      bindState(function, part);
      function->remove();
      module->push_back(function);
    }
    return std::move(module);
  }

private:
  void declare(const std::vector<VariablePtr> &variables) {
    for (const VariablePtr &variable : variables) {
      if (symbols.count(variable.get()))
        continue;
      std::string symbol = variable->name;
      for (unsigned number = 1; !names.insert(symbol).second; ++number)
        symbol = variable->name + "_" + std::to_string(number);
      symbols[variable.get()] = FlatSymbolRefAttr::get(b.getContext(), symbol);
      ktn::VariableOp::create(
          b, loc, b.getStringAttr(symbol),
          TypeAttr::get(
              graph.typeOf(variable->value.shape(), variable->value.dtype())),
          graph.attributeOf(*variable));
    }
  }

  /// Arguments and results that are state become reads and assignments.
  void bindState(func::FuncOp function, const Extraction &part) {
    unsigned inputs = function.getNumArguments() - part.state.size();
    unsigned outputs = function.getNumResults() - part.updated.size();
    OpBuilder body = OpBuilder::atBlockBegin(&function.front());
    for (auto [argument, variable] : llvm::zip_equal(
             function.getArguments().drop_front(inputs), part.state))
      argument.replaceAllUsesWith(
          ktn::ReadOp::create(body, function.getLoc(), argument.getType(),
                              symbols.lookup(variable.get()))
              .getResult());
    auto exit = cast<func::ReturnOp>(function.front().getTerminator());
    body.setInsertionPoint(exit);
    for (auto [value, variable] :
         llvm::zip_equal(exit.getOperands().drop_front(outputs), part.updated))
      ktn::AssignOp::create(body, function.getLoc(), value.getType(),
                            symbols.lookup(variable.get()), value);
    exit->setOperands(
        SmallVector<Value>(exit.getOperands().take_front(outputs)));
    llvm::BitVector arguments(function.getNumArguments());
    arguments.set(inputs, function.getNumArguments());
    (void)function.eraseArguments(arguments);
    llvm::BitVector results(function.getNumResults());
    results.set(outputs, function.getNumResults());
    (void)function.eraseResults(results);
  }

  Graph &graph;
  OpBuilder b;
  Location loc;
  OwningOpRef<ModuleOp> module;
  llvm::DenseMap<Variable *, FlatSymbolRefAttr> symbols;
  std::set<std::string> names;
};

} // namespace

OwningOpRef<ModuleOp> joinWithState(Graph &graph,
                                    std::vector<Extraction> parts) {
  return Joiner(graph).run(std::move(parts));
}

} // namespace keratin::backend
