//===- Producers.cpp - what makes a tensor --------------------------------===//
//
// Some functions of the API look at the op behind an argument: a cross entropy
// of a softmax is computed from the logits, a product with a sparse matrix from
// its elements.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"

using namespace mlir;

namespace keratin::backend {

static Operation *producerOf(std::string_view mnemonic, const Tensor &x) {
  Operation *op = x.id() ? Graph::valueOf(x).getDefiningOp() : nullptr;
  return op && op->getName().stripDialect() == llvm::StringRef(mnemonic)
             ? op
             : nullptr;
}

Tensors operandsOf(std::string_view mnemonic, const Tensor &x) {
  if (!x.id())
    return {};
  const std::shared_ptr<Graph> &graph = Graph::ownerOf(x);
  Graph::Lock lock(graph);
  Tensors operands;
  if (Operation *op = producerOf(mnemonic, x))
    for (Value operand : op->getOperands())
      operands.push_back(graph->wrap(operand));
  return operands;
}

std::optional<int64_t> attributeOf(std::string_view mnemonic, const Tensor &x,
                                   std::string_view name) {
  if (!x.id())
    return std::nullopt;
  Graph::Lock lock(Graph::ownerOf(x));
  Operation *op = producerOf(mnemonic, x);
  auto integer = op ? op->getAttrOfType<IntegerAttr>(llvm::StringRef(name))
                    : IntegerAttr();
  return integer ? std::optional(integer.getInt()) : std::nullopt;
}

} // namespace keratin::backend
