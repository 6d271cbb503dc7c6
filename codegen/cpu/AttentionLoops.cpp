//===- AttentionLoops.cpp - the loops around blocks of queries ------------===//
#include "codegen/cpu/Attention.h"

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
class QueryLoops {
public:
  QueryLoops(Kernel &kernel, Attention &attention,
             llvm::function_ref<void(Value, Value)> body)
      : kernel(kernel), attention(attention), body(body) {}

  void run(int64_t step);

private:
  int64_t extent(unsigned axis) const {
    return staticLoopExtent(attention.scores, attention.scoresLoop(axis));
  }
  std::pair<Value, Value> range(unsigned axis, bool shared, int64_t step);
  void emitAround(unsigned axis, std::optional<unsigned> shared, int64_t step);

  Kernel &kernel;
  Attention &attention;
  llvm::function_ref<void(Value, Value)> body;
};
} // namespace

std::pair<Value, Value> QueryLoops::range(unsigned axis, bool shared,
                                          int64_t step) {
  Value all = kernel.loopExtent(attention.scores, attention.scoresLoop(axis));
  return shared ? kernel.share(all, step) : std::pair(kernel.index(0), all);
}

/// The loops of the axes from `axis` on that are not of queries or keys.
void QueryLoops::emitAround(unsigned axis, std::optional<unsigned> shared,
                            int64_t step) {
  RowBlock &rows = attention.rows;
  if (axis + 1 == attention.axes()) {
    auto [from, to] = range(rows.axis, shared == rows.axis, step);
    return body(from, to);
  }
  if (axis == rows.axis)
    return emitAround(axis + 1, shared, step);
  auto [from, to] = range(axis, shared == axis, 1);
  if (extent(axis) == 1 && shared != axis) {
    rows.around[axis] = from;
    return emitAround(axis + 1, shared, step);
  }
  emitLoop(kernel.builder(), kernel.loc(), from, to, kernel.index(1), {},
           [&](Value at, ValueRange) -> SmallVector<Value> {
             rows.around[axis] = at;
             emitAround(axis + 1, shared, step);
             return {};
           });
}

void QueryLoops::run(int64_t step) {
  RowBlock &rows = attention.rows;
  unsigned last = attention.axes() - 1;
  rows.around.assign(last, kernel.index(0));
  // The loops from outside to inside, blocks of queries last.
  SmallVector<unsigned> order;
  SmallVector<int64_t> turns;
  for (unsigned axis = 0; axis < last; ++axis)
    if (axis != rows.axis) {
      order.push_back(axis);
      turns.push_back(extent(axis));
    }
  order.push_back(rows.axis);
  turns.push_back(llvm::divideCeil(extent(rows.axis), step));
  if (std::optional<unsigned> shared = kernel.pickShared(turns))
    emitAround(0, order[*shared], step);
  else
    kernel.emitOnce([&] { emitAround(0, std::nullopt, step); });
}

void emitAroundQueries(Kernel &kernel, Attention &attention, int64_t step,
                       llvm::function_ref<void(Value, Value)> body) {
  QueryLoops(kernel, attention, body).run(step);
}

} // namespace keratin
