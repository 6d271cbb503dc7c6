//===- Slice.cpp - the part of the graph that a function needs ------------===//
#include "Slice.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin::backend {

Slice::Slice(Graph &graph, const Cut &cut, const Circumstances &known)
    : graph(graph), cut(cut), known(known) {
  for (const Tensor &input : cut.inputs)
    inputs.insert(Graph::valueOf(input));
  for (const Tensor &output : cut.outputs)
    visit(Graph::valueOf(output));
  if (cut.commits)
    for (const Tensor &event : cut.events)
      visitEffects(Graph::valueOf(event));
  while (!pending.empty())
    visitInputs(pending.pop_back_val());
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

std::optional<bool> Slice::valueOf(Value condition) const {
  if (auto found = known.choices.find(condition.getAsOpaquePointer());
      found != known.choices.end())
    return found->second;
  DenseElementsAttr constant;
  if (matchPattern(condition, m_Constant(&constant)))
    return constant.getSplatValue<bool>();
  if (isInput(condition))
    return std::nullopt;
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<ktn::TrainingPhaseOp>(op))
    return known.training;
  if (auto inverse = dyn_cast_if_present<ktn::LogicalNotOp>(op))
    if (std::optional<bool> value = valueOf(inverse.getX()))
      return !*value;
  if (auto after = dyn_cast_if_present<ktn::AfterOp>(op))
    return valueOf(after.getX());
  return std::nullopt;
}

Value Slice::aliased(Operation *op) const {
  if (auto after = dyn_cast<ktn::AfterOp>(op))
    return after.getX();
  if (auto assign = dyn_cast<ktn::AssignOp>(op))
    return assign.getX();
  if (auto choose = dyn_cast<ktn::ChooseOp>(op))
    if (std::optional<bool> cond = valueOf(choose.getCond()))
      return *cond ? choose.getA() : choose.getB();
  return {};
}

bool Slice::isOpen(Operation *op) const {
  auto choose = dyn_cast<ktn::ChooseOp>(op);
  return choose && !known.keepOpenChoices &&
         choose.getA().getType() != choose.getB().getType() && !aliased(op);
}

SetVector<Value> Slice::inputsOf(Operation *op) const {
  SetVector<Value> result;
  if (Value only = aliased(op)) {
    result.insert(only);
    return result;
  }
  result.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), result);
  return result;
}

/// A value is needed.
void Slice::visit(Value value) {
  if (isInput(value))
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

/// Not the value is needed, but what it assigns on the way.
void Slice::visitEffects(Value value) {
  SmallVector<Value> waiting{value};
  while (!waiting.empty()) {
    Value next = waiting.pop_back_val();
    if (isInput(next) || !graph.hasTrait(next, Graph::Assigns))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || !isa_and_nonnull<ModuleOp>(op->getParentOp()) ||
        isa<ktn::AssignOp>(op)) {
      visit(next);
      continue;
    }
    if (!seenEffects.insert(op).second)
      continue;
    if (isOpen(op)) {
      // What it assigns is known when it is chosen.
      visit(next);
    } else if (isa<ktn::ChooseOp>(op)) {
      llvm::append_range(waiting, inputsOf(op));
      waiting.push_back(op->getOperand(0));
    } else {
      llvm::append_range(waiting, op->getOperands());
    }
  }
}

/// Assignments in loops are seen by nobody, and so must not matter.
void Slice::checkLoop(Operation *op) const {
  op->walk([&](ktn::AssignOp assign) {
    if (assign.getOperation() != op && !assign.use_empty())
      throw Error("function '" + cut.function + "': variable '" +
                  assign.getVariable().str() +
                  "' is assigned inside the step of a loop: return its new "
                  "value as a state and assign it after the loop");
  });
}

void Slice::visitInputs(Operation *op) {
  readsPhase |= isa<ktn::TrainingPhaseOp>(op);
  if (op->getNumRegions() > 0)
    checkLoop(op);
  if (auto choose = dyn_cast<ktn::ChooseOp>(op)) {
    readsPhase |= graph.hasTrait(choose.getCond(), Graph::UsesPhase);
    if (cut.commits)
      visitEffects(choose.getCond());
    if (isOpen(op)) {
      readsPhase |= graph.hasTrait(choose.getY(), Graph::UsesPhase);
      open.push_back(op);
      return;
    }
  }
  if (auto after = dyn_cast<ktn::AfterOp>(op); after && cut.commits)
    for (Value event : after.getEvents())
      visitEffects(event);
  for (Value input : inputsOf(op))
    visit(input);
}

Survey survey(Graph &graph, const Cut &cut, const Circumstances &known) {
  Slice slice(graph, cut, known);
  Survey result;
  llvm::DenseSet<Value> found;
  for (Operation *op : slice.open) {
    Value condition = cast<ktn::ChooseOp>(op).getCond();
    if (found.insert(condition).second)
      result.openConditions.push_back(graph.wrap(condition));
    // What is in the branches is not seen yet.
    result.updates |=
        cut.commits && graph.hasTrait(op->getResult(0), Graph::Assigns);
  }
  result.readsPhase = slice.readsPhase;
  result.updates |= cut.commits && llvm::any_of(slice.ops, [&](Operation *op) {
                      if (isa<ktn::AssignOp>(op))
                        return true;
                      return isa<ktn::ReadOp>(op) &&
                             graph.findVariable(op->getResult(0))->countsCalls;
                    });
  return result;
}

} // namespace keratin::backend
