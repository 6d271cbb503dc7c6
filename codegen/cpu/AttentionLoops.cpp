//===- AttentionLoops.cpp - the loops around blocks of queries ------------===//
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/SharedNest.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

void renameKeys(Kernel &kernel, Attention &attention) {
  Location loc = kernel.loc();
  Value tensor = attention.keys->get();
  if (tensor != attention.queries->get())
    return;
  OpBuilder before(attention.scores);
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> sizes;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(extent))
      sizes.push_back(tensor::DimOp::create(before, loc, tensor, int64_t(dim)));
  Value name = tensor::EmptyOp::create(before, loc, type, sizes);
  kernel.setMemref(name, kernel.memrefOf(tensor));
  attention.keys->set(name);
}

namespace {
/// The loops of the axes that are not of keys, those of queries innermost.
class QueryLoops {
public:
  QueryLoops(Kernel &kernel, Attention &attention, int64_t step,
             llvm::function_ref<void(Value, Value)> body)
      : kernel(kernel), attention(attention), step(step), body(body) {
    for (unsigned axis = 0; axis + 1 < attention.axes(); ++axis)
      if (axis != attention.rows.axis)
        order.push_back(axis);
    order.push_back(attention.rows.axis);
  }

  void run();

private:
  unsigned loopOf(unsigned axis) const { return attention.scoresLoop(axis); }
  int64_t turnsOf(unsigned axis) const;
  void emitFrom(unsigned number, SharedNest &nest);

  Kernel &kernel;
  Attention &attention;
  int64_t step; ///< of queries
  llvm::function_ref<void(Value, Value)> body;
  SmallVector<unsigned> order;
};
} // namespace

int64_t QueryLoops::turnsOf(unsigned axis) const {
  int64_t extent = staticLoopExtent(attention.scores, loopOf(axis));
  return axis != attention.rows.axis || ShapedType::isDynamic(extent)
             ? extent
             : int64_t(llvm::divideCeil(extent, step));
}

void QueryLoops::emitFrom(unsigned number, SharedNest &nest) {
  unsigned axis = order[number];
  bool ofQueries = axis == attention.rows.axis;
  auto [from, to] =
      nest.range(number, kernel.loopExtent(attention.scores, loopOf(axis)),
                 ofQueries ? step : 1);
  if (ofQueries)
    return body(from, to);
  auto enter = [&](Value at) {
    nest.enter(number, at);
    attention.rows.around[axis] = at;
    emitFrom(number + 1, nest);
  };
  if (turnsOf(axis) == 1)
    return enter(from);
  emitLoop(kernel.builder(), kernel.loc(), from, to, kernel.index(1), {},
           [&](Value at, ValueRange) -> SmallVector<Value> {
             enter(at);
             return {};
           });
}

void QueryLoops::run() {
  attention.rows.around.assign(attention.axes() - 1, kernel.index(0));
  SmallVector<int64_t> turns;
  for (unsigned axis : order)
    turns.push_back(turnsOf(axis));
  SharedNest nest(kernel, turns);
  if (nest.isShared())
    emitFrom(0, nest);
  else
    kernel.emitOnce([&] { emitFrom(0, nest); });
}

void emitAroundQueries(Kernel &kernel, Attention &attention, int64_t step,
                       llvm::function_ref<void(Value, Value)> body) {
  QueryLoops(kernel, attention, step, body).run();
}

} // namespace keratin
