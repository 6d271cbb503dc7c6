//===- Variables.cpp - functions that share variables ---------------------===//
#include "codegen/Variables.h"

#include "codegen/Artefact.h"
#include "ir/Ktn.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace keratin {

static SmallVector<func::FuncOp> publicFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      functions.push_back(function);
  return functions;
}

/// Variables that are assigned, in the order of the module. The others are
/// constants, which FoldConstants knows.
static llvm::MapVector<StringAttr, ktn::VariableOp>
assignedVariables(ModuleOp module) {
  llvm::DenseSet<StringAttr> assigned;
  module.walk([&](ktn::AssignOp op) {
    assigned.insert(op.getVariableAttr().getAttr());
  });
  llvm::MapVector<StringAttr, ktn::VariableOp> variables;
  for (auto variable : module.getOps<ktn::VariableOp>())
    if (assigned.contains(variable.getSymNameAttr()))
      variables[variable.getSymNameAttr()] = variable;
  return variables;
}

namespace {
/// Makes the variables of one function its arguments and results.
class Unbinder {
public:
  Unbinder(func::FuncOp function, ArrayRef<ModuleVariable> variables,
           ModulePart &part)
      : function(function), variables(variables), part(part) {
    for (auto [index, variable] : llvm::enumerate(variables))
      numbers[StringAttr::get(function.getContext(), variable.name)] = index;
  }

  LogicalResult run() {
    if (!llvm::hasSingleElement(function.getBody()) ||
        !isa<func::ReturnOp>(function.front().getTerminator()))
      return function.emitError(
          "a function that assigns variables has one block, which returns");
    part.inputState.assign(function.getNumArguments(), -1);
    part.outputState.assign(function.getNumResults(), -1);
    current.resize(variables.size());
    updated.resize(variables.size());
    for (Operation &op : llvm::make_early_inc_range(function.front()))
      if (failed(visit(op)))
        return failure();
    WalkResult nested = function.walk([&](Operation *op) {
      StringAttr name = variableOf(op);
      if (!name || !numbers.count(name))
        return WalkResult::advance();
      op->emitError("variable '")
          << name.getValue() << "' is used in a region of function '"
          << function.getSymName()
          << "' but a compiled function uses those that change outside of "
             "regions only";
      return WalkResult::interrupt();
    });
    if (nested.wasInterrupted())
      return failure();
    addResults();
    return success();
  }

private:
  static StringAttr variableOf(Operation *op) {
    if (auto read = dyn_cast<ktn::ReadOp>(op))
      return read.getVariableAttr().getAttr();
    if (auto assign = dyn_cast<ktn::AssignOp>(op))
      return assign.getVariableAttr().getAttr();
    return {};
  }

  LogicalResult visit(Operation &op) {
    StringAttr name = variableOf(&op);
    auto number = name ? numbers.find(name) : numbers.end();
    if (number == numbers.end())
      return success();
    unsigned index = number->second;
    if (auto assign = dyn_cast<ktn::AssignOp>(op)) {
      if (assign.getX().getType() != variables[index].type)
        return assign.emitError("the new value of '")
               << name.getValue() << "' is a " << assign.getX().getType()
               << " but the variable is a " << variables[index].type;
      current[index] = assign.getX();
      updated[index] = true;
    } else if (!current[index]) {
      current[index] = addArgument(index, op.getLoc());
    }
    op.getResult(0).replaceAllUsesWith(current[index]);
    op.erase();
    return success();
  }

  Value addArgument(unsigned index, Location loc) {
    auto name = StringAttr::get(function.getContext(), variables[index].name);
    auto attributes = DictionaryAttr::get(
        function.getContext(),
        {NamedAttribute(StringAttr::get(function.getContext(), "ktn.name"),
                        name)});
    unsigned position = function.getNumArguments();
    (void)function.insertArgument(position, variables[index].type, attributes,
                                  loc);
    part.inputState.push_back(static_cast<int>(index));
    return function.getArgument(position);
  }

  void addResults() {
    auto exit = cast<func::ReturnOp>(function.front().getTerminator());
    SmallVector<Value> values(exit.getOperands());
    for (auto [index, variable] : llvm::enumerate(variables)) {
      if (!updated[index])
        continue;
      OpBuilder b(function.getContext());
      NamedAttrList attributes;
      attributes.set("ktn.name", b.getStringAttr(variable.name + "_next"));
      // The memory of the old value, if the function reads it.
      auto old = llvm::find(part.inputState, static_cast<int>(index));
      if (old != part.inputState.end())
        attributes.set("ktn.updates",
                       b.getI64IntegerAttr(old - part.inputState.begin()));
      (void)function.insertResult(function.getNumResults(), variable.type,
                                  attributes.getDictionary(b.getContext()));
      part.outputState.push_back(static_cast<int>(index));
      values.push_back(current[index]);
    }
    exit->setOperands(values);
  }

  func::FuncOp function;
  ArrayRef<ModuleVariable> variables;
  ModulePart &part;
  llvm::DenseMap<StringAttr, unsigned> numbers;
  SmallVector<Value> current; // null until it is read or assigned
  SmallVector<bool> updated;
};
} // namespace

FailureOr<SplitModule> splitModule(OwningOpRef<ModuleOp> module) {
  SmallVector<func::FuncOp> functions = publicFunctions(*module);
  llvm::MapVector<StringAttr, ktn::VariableOp> assigned =
      assignedVariables(*module);
  SplitModule result;
  if (functions.size() <= 1 && assigned.empty()) {
    ModulePart part;
    part.module = std::move(module);
    part.entry = "predict";
    result.parts.push_back(std::move(part));
    return result;
  }
  for (auto &[name, variable] : assigned) {
    auto type = dyn_cast<RankedTensorType>(variable.getType());
    if (!type || !type.hasStaticShape())
      return variable.emitError("is a ")
             << variable.getType() << " but state has a static shape";
    result.variables.push_back({name.str(), type, variable.getInitialValue()});
  }
  for (func::FuncOp function : functions) {
    if (llvm::Error error = checkEntryName(function.getSymName()))
      return function.emitError() << llvm::toString(std::move(error));
    ModulePart part;
    part.entry = function.getSymName().str();
    part.module = module->clone();
    func::FuncOp own;
    for (func::FuncOp other : publicFunctions(*part.module))
      if (other.getSymName() == function.getSymName())
        own = other;
      else
        other.erase();
    if (failed(Unbinder(own, result.variables, part).run()))
      return failure();
    for (auto variable :
         llvm::make_early_inc_range(part.module->getOps<ktn::VariableOp>()))
      if (assigned.contains(variable.getSymNameAttr()))
        variable.erase();
    result.parts.push_back(std::move(part));
  }
  return result;
}

} // namespace keratin
