//===- Loops.cpp - tracing of ktn.scan ------------------------------------===//
#include "Diagnostics.h"
#include "Graph.h"

#include "ir/Ktn.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace keratin::backend {

/// The body of a scan while it is traced: pushed as the current block, popped
/// at the end. The op is created when the body is complete.
class Graph::Trace : public ScanTrace {
public:
  Trace(Graph &graph, const Tensors &xs)
      : xs(xs), graph(graph), body(std::make_unique<Region>()),
        depth(graph.blocks.size()) {
    graph.blocks.push_back(&body->emplaceBlock());
    graph.traces.push_back(this);
  }
  ~Trace() override {
    leave();
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

  /// The number of the step: one more sequence, so that it costs nothing where
  /// nobody asks for it.
  Tensor stepIndex() {
    if (index)
      return index;
    Tensor positions = outside([&] {
      Tensor shape =
          graph.wrap(graph.append("shape", {xs[0]}, {}, 1)->getResult(0));
      std::vector<int64_t> zero{0}, one{1};
      Tensor count = graph.wrap(
          graph
              .append("slice", {shape},
                      {{"starts", zero}, {"ends", one}, {"strides", one}}, 1)
              ->getResult(0));
      Extents target{
          {typeOf(xs[0]).isDynamicDim(0) ? None : typeOf(xs[0]).getDimSize(0)}};
      return graph.wrap(graph
                            .append("iota", {count},
                                    {{"target", target},
                                     {"axis", int64_t(0)},
                                     {"dtype", DType::Int64}},
                                    1)
                            ->getResult(0));
    });
    auto scalar = typeOf(positions).clone(ArrayRef<int64_t>());
    index = graph.wrap(getBlock().insertArgument(xs.size(), scalar,
                                                 graph.locationFor("scan")));
    xs.push_back(positions);
    return index;
  }

  Block &getBlock() { return body->front(); }
  std::unique_ptr<Region> finish() {
    leave();
    return std::move(body);
  }

  Tensors xs, init;

private:
  void leave() {
    graph.blocks.resize(depth);
    if (!graph.traces.empty() && graph.traces.back() == this)
      graph.traces.pop_back();
  }

  Graph &graph;
  Tensor index;
  std::unique_ptr<Region> body;
  size_t depth;
};

/// Random numbers of a step are others than those of the next one: the key of
/// `state` moves on by an odd number for each step, another one for each loop
/// around (the fractions of the golden ratio and of roots).
Tensor Graph::inEachStep(Tensor state) {
  static constexpr uint64_t strides[] = {0x9E3779B97F4A7C15, 0x6A09E667F3BCC909,
                                         0xBB67AE8584CAA73B,
                                         0x3C6EF372FE94F82B};
  for (auto [depth, trace] : llvm::enumerate(traces)) {
    int64_t stride = static_cast<int64_t>(strides[depth % std::size(strides)]);
    Tensor strideAndZero = constant(Array::of<int64_t>({2}, {stride, 0}), "");
    Tensor offset =
        wrap(append("mul", {trace->stepIndex(), strideAndZero}, {}, 2)
                 ->getResult(0));
    state = wrap(append("add", {state, offset}, {}, 2)->getResult(0));
  }
  return state;
}

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

/// `x` in the type of `like` where the one knows extents that the other does
/// not.
Tensor Graph::statedAs(const Tensor &x, const Tensor &like) {
  Value value = unwrap(x);
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType wanted = typeOf(like);
  if (type == wanted || failed(verifyCompatibleShape(type, wanted)) ||
      type.getElementType() != wanted.getElementType())
    return x;
  Tensors operands{x};
  if (!wanted.hasStaticShape())
    operands.push_back(
        wrap(append("shape", {like}, {}, SIZE_MAX)->getResult(0)));
  Attributes target{{"target", Extents{shapeOf(wanted)}}};
  return wrap(append("reshape", operands, target, 1)->getResult(0));
}

ScanStep Graph::appendScan(const Tensors &xs, const Tensors &initial,
                           bool reverse, const ScanBody &body,
                           std::optional<int64_t> checkpointEvery) {
  OperationState state(locationFor("scan"), ktn::ScanOp::getOperationName());
  SmallVector<Value> sequences, starts;
  for (const Tensor &x : xs)
    sequences.push_back(unwrap(x));
  for (const Tensor &start : initial)
    starts.push_back(unwrap(start));

  Tensors slices, states;
  Trace trace(*this, xs);
  for (auto [index, type] :
       llvm::enumerate(bodyTypes(state.location, sequences, starts)))
    if (index < xs.size())
      slices.push_back(trace.addArgument(type));
    else
      states.push_back(trace.addState(initial[index - xs.size()]));
  ScanStep step = body(trace, slices, states);

  for (auto [next, argument] :
       llvm::zip(step.states,
                 trace.getBlock().getArguments().drop_front(trace.xs.size())))
    next = statedAs(next, wrap(argument));

  OperationState yield(locationFor("scan"), ktn::YieldOp::getOperationName());
  for (const Tensors *values : {&step.states, &step.outputs})
    for (const Tensor &value : *values)
      yield.addOperands(unwrap(value));
  // Verified with the scan: a terminator wants to know its parent.
  trace.getBlock().push_back(Operation::create(yield));

  state.addRegion(trace.finish());
  for (const Tensor &x : trace.xs)
    state.addOperands(unwrap(x));
  for (const Tensor &start : trace.init)
    state.addOperands(unwrap(start));
  state.addAttribute(
      "operandSegmentSizes",
      DenseI32ArrayAttr::get(context.get(),
                             {static_cast<int32_t>(trace.xs.size()),
                              static_cast<int32_t>(trace.init.size())}));
  state.addAttribute("reverse", BoolAttr::get(context.get(), reverse));
  if (checkpointEvery)
    state.addAttribute(
        "checkpoint_every",
        Builder(context.get()).getI64IntegerAttr(*checkpointEvery));
  Operation *op = create(state);

  ScanStep results;
  for (Value result : op->getResults())
    (results.states.size() < trace.init.size() ? results.states
                                               : results.outputs)
        .push_back(wrap(result));
  return results;
}

ScanStep emitScan(const Tensors &xs, const Tensors &initial, bool reverse,
                  const ScanBody &body,
                  std::optional<int64_t> checkpointEvery) {
  Tensors all = xs;
  all.insert(all.end(), initial.begin(), initial.end());
  std::shared_ptr<Graph> graph = Graph::of(all);
  Graph::Lock lock(graph);
  return graph->appendScan(xs, initial, reverse, body, checkpointEvery);
}

} // namespace keratin::backend
