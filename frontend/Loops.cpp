//===- Loops.cpp - tracing of ktn.scan ------------------------------------===//
#include "Diagnostics.h"
#include "Graph.h"

#include "ir/Ktn.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace keratin::backend {

/// The body of a scan while it is traced: pushed as the current block, popped
/// at the end. The op is created when the body is complete.
class Graph::Trace : public ScanTrace {
public:
  Trace(Graph &graph)
      : graph(graph), body(std::make_unique<Region>()),
        depth(graph.blocks.size()) {
    graph.blocks.push_back(&body->emplaceBlock());
  }
  ~Trace() override {
    graph.blocks.resize(depth);
    if (body)
      graph.abandoned.push_back(std::move(body));
  }

  Tensor addArgument(Type type) {
    return graph.wrap(getBlock().addArgument(type, graph.locationFor("scan")));
  }
  Tensor addState(const Tensor &initial) override {
    init.push_back(initial);
    return addArgument(valueOf(initial).getType());
  }
  Tensor outside(const std::function<Tensor()> &make) override {
    std::vector<Block *> inner(
        std::next(graph.blocks.begin(), static_cast<std::ptrdiff_t>(depth)),
        graph.blocks.end());
    graph.blocks.resize(depth);
    llvm::scope_exit restore([&] {
      graph.blocks.insert(graph.blocks.end(), inner.begin(), inner.end());
    });
    return make();
  }

  Block &getBlock() { return body->front(); }
  std::unique_ptr<Region> finish() {
    graph.blocks.resize(depth);
    return std::move(body);
  }

  Tensors init;

private:
  Graph &graph;
  std::unique_ptr<Region> body;
  size_t depth;
};

/// What the body takes: slices and then states.
static SmallVector<Type> bodyTypes(Location loc, ValueRange sequences,
                                   ValueRange starts) {
  Diagnostics diagnostics(*loc.getContext());
  FailureOr<SmallVector<Type>> types =
      ktn::ScanOp::inferBodyArgumentTypes(loc, sequences, starts);
  if (succeeded(types))
    return *types;
  throw Error(diagnostics.message("the sequences do not fit"));
}

ScanStep Graph::appendScan(const Tensors &xs, const Tensors &initial,
                           bool reverse, const ScanBody &body) {
  OperationState state(locationFor("scan"), ktn::ScanOp::getOperationName());
  SmallVector<Value> sequences, starts;
  for (const Tensor &x : xs)
    sequences.push_back(unwrap(x));
  for (const Tensor &start : initial)
    starts.push_back(unwrap(start));

  Tensors slices, states;
  Trace trace(*this);
  for (auto [index, type] :
       llvm::enumerate(bodyTypes(state.location, sequences, starts)))
    if (index < xs.size())
      slices.push_back(trace.addArgument(type));
    else
      states.push_back(trace.addState(initial[index - xs.size()]));
  ScanStep step = body(trace, slices, states);

  OperationState yield(locationFor("scan"), ktn::YieldOp::getOperationName());
  for (const Tensors *values : {&step.states, &step.outputs})
    for (const Tensor &value : *values)
      yield.addOperands(unwrap(value));
  // Verified with the scan: a terminator wants to know its parent.
  trace.getBlock().push_back(Operation::create(yield));

  state.addRegion(trace.finish());
  state.addOperands(sequences);
  for (const Tensor &start : trace.init)
    state.addOperands(unwrap(start));
  state.addAttribute(
      "operandSegmentSizes",
      DenseI32ArrayAttr::get(context.get(),
                             {static_cast<int32_t>(xs.size()),
                              static_cast<int32_t>(trace.init.size())}));
  state.addAttribute("reverse", BoolAttr::get(context.get(), reverse));
  Operation *op = create(state);

  ScanStep results;
  for (Value result : op->getResults())
    (results.states.size() < trace.init.size() ? results.states
                                               : results.outputs)
        .push_back(wrap(result));
  return results;
}

ScanStep emitScan(const Tensors &xs, const Tensors &initial, bool reverse,
                  const ScanBody &body) {
  Tensors all = xs;
  all.insert(all.end(), initial.begin(), initial.end());
  std::shared_ptr<Graph> graph = Graph::of(all);
  std::lock_guard<std::recursive_mutex> lock(graph->mutex);
  return graph->appendScan(xs, initial, reverse, body);
}

} // namespace keratin::backend
