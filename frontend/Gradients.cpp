//===- Gradients.cpp - what a loss depends on -----------------------------===//
#include "Graph.h"

#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace keratin::backend {

namespace {

/// The values through which a gradient flows from a loss.
class GradientPaths {
public:
  explicit GradientPaths(Value loss) {
    follow(loss);
    while (!pending.empty())
      visit(pending.pop_back_val());
  }

  bool reach(Value value) const { return reached.contains(value); }

private:
  void follow(Value value) {
    if (isa<FloatType>(getElementTypeOrSelf(value)) &&
        reached.insert(value).second)
      if (Operation *op = value.getDefiningOp())
        pending.push_back(op);
  }

  void visit(Operation *op) {
    auto rule = dyn_cast<ktn::VjpOpInterface>(op);
    if (!rule && !isa<ktn::GradientsOp>(op))
      return;
    for (OpOperand &operand : op->getOpOperands())
      if (!rule || rule.isDifferentiable(operand.getOperandNumber()))
        follow(operand.get());
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      follow(value);
  }

  llvm::DenseSet<Value> reached;
  SmallVector<Operation *> pending;
};

} // namespace

Tensors gradients(const Tensor &loss, const Tensors &variables) {
  requireTensor(loss, "gradients", "loss");
  for (const Tensor &variable : variables)
    requireTensor(variable, "gradients", "a variable");
  Tensors all = variables;
  all.push_back(loss);
  std::shared_ptr<Graph> graph = Graph::of(all);
  Graph::Lock lock(graph);
  Tensors result(variables.size());
  if (!loss.id())
    return result;

  GradientPaths paths(Graph::valueOf(loss));
  Tensors reached;
  std::vector<size_t> places;
  for (auto [index, variable] : llvm::enumerate(variables))
    if (variable.id() && paths.reach(Graph::valueOf(variable))) {
      reached.push_back(variable);
      places.push_back(index);
    }
  if (reached.empty())
    return result;
  Tensors found = graph->appendGradients(loss, reached);
  for (auto [place, gradient] : llvm::zip_equal(places, found))
    result[place] = gradient;
  return result;
}

} // namespace keratin::backend
