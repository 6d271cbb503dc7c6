//===- LaneReduction.cpp - reductions along contiguous elements -----------===//
//
// A few vectors of partial results at once, joined in a fixed tree at the end:
// vectors pairwise, then halves of a vector, then the scalar rest.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

namespace {
class LaneReduction {
public:
  LaneReduction(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
                ArrayRef<Output> outputs)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        root(root), tiling(tiling), outputs(outputs),
        combiner(*Combiner::of(root, 0)) {
    reader.setLane(tiling.lane);
  }

  void run();

private:
  using Sums = SmallVector<Value>;

  void emitLevel(unsigned number);
  void emitElement();
  Sums reduce(ArrayRef<unsigned> loops, Sums sums);
  Sums alongLane(Sums sums);
  void addVector(Value &sum, int64_t offset, unsigned width);
  Value identity(unsigned width) { return combiner.identity(b, width); }

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const Tiling &tiling;
  ArrayRef<Output> outputs;
  Combiner combiner;
};
} // namespace

void LaneReduction::run() {
  if (tiling.shared)
    return emitLevel(0);
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    emitLevel(0);
  });
}

void LaneReduction::emitLevel(unsigned number) {
  if (number == tiling.levels.size())
    return emitElement();
  unsigned loop = tiling.levels[number].loop;
  Value from = kernel.index(0), to = kernel.loopExtent(root, loop);
  if (number == tiling.shared)
    std::tie(from, to) = kernel.share(to, 1);
  emitLoop(b, loc, from, to, kernel.index(1), {},
           [&](Value iv, ValueRange) -> Sums {
             LaneReader::Scope scope(reader);
             reader.bind(loop, iv);
             emitLevel(number + 1);
             return {};
           });
}

LaneReduction::Sums LaneReduction::reduce(ArrayRef<unsigned> loops, Sums sums) {
  if (loops.empty())
    return alongLane(std::move(sums));
  return emitLoop(b, loc, kernel.index(0), kernel.loopExtent(root, loops[0]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loops[0], iv);
                    return reduce(loops.drop_front(), Sums(inner));
                  });
}

/// Adds `width` elements from the lane + offset to `sum`, a vector at least as
/// wide, or a scalar.
void LaneReduction::addVector(Value &sum, int64_t offset, unsigned width) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    point.push_back(loop == tiling.lane ? expr + offset : expr);
  }
  bool partial = width != 0 && width != tiling.lanes;
  Lanes old = {partial ? identity(width) : sum, {}};
  Value value =
      reader.materialize(reader.evaluate(root, point, {old}, width)[0], width);
  if (partial) {
    value = vector::InsertStridedSliceOp::create(
        b, loc, value, identity(tiling.lanes), ArrayRef<int64_t>{0},
        ArrayRef<int64_t>{1});
    value = combiner.join(b, sum, value);
  }
  sum = value;
}

/// One run along the lane: `sums` are the vectors and, along a run of unknown
/// length, a scalar for its rest.
LaneReduction::Sums LaneReduction::alongLane(Sums sums) {
  unsigned lanes = tiling.lanes, vectors = tiling.size.vectors;
  int64_t extent = staticLoopExtent(root, tiling.lane);
  bool dynamic = ShapedType::isDynamic(extent);
  Value from = kernel.index(0), all = kernel.loopExtent(root, tiling.lane);

  auto loop = [&](int64_t step, unsigned turns, unsigned width) {
    Value to = all;
    if (!dynamic)
      to = kernel.index(extent / step * step);
    else if (step != 1)
      to = arith::MulIOp::create(
          b, loc, arith::DivUIOp::create(b, loc, all, kernel.index(step)),
          kernel.index(step));
    sums = emitLoop(b, loc, from, to, kernel.index(step), sums,
                    [&](Value iv, ValueRange inner) {
                      LaneReader::Scope scope(reader);
                      reader.bind(tiling.lane, iv);
                      Sums next(inner);
                      for (unsigned turn = 0; turn < turns; ++turn)
                        addVector(width ? next[turn] : next.back(),
                                  int64_t(turn) * lanes, width);
                      return next;
                    });
    from = to;
  };
  loop(int64_t(lanes) * vectors, vectors, lanes);
  if (dynamic) {
    if (vectors > 1)
      loop(lanes, 1, lanes);
    loop(1, 1, 0);
    return sums;
  }
  LaneReader::Scope scope(reader);
  int64_t done = extent / (int64_t(lanes) * vectors) * lanes * vectors;
  reader.bind(tiling.lane, kernel.index(done));
  for (unsigned turn = 0; done + int64_t(turn) * lanes < extent; ++turn) {
    int64_t offset = int64_t(turn) * lanes;
    addVector(sums[turn], offset,
              std::min<int64_t>(lanes, extent - done - offset));
  }
  return sums;
}

void LaneReduction::emitElement() {
  LaneReader::Scope scope(reader);
  Sums sums(tiling.size.vectors, identity(tiling.lanes));
  bool dynamic = ShapedType::isDynamic(staticLoopExtent(root, tiling.lane));
  if (dynamic)
    sums.push_back(identity(0));
  sums = reduce(tiling.reductions, std::move(sums));
  Value rest = dynamic ? sums.pop_back_val() : Value();
  Value total = combiner.joinLanes(b, combiner.joinAll(b, std::move(sums)));
  if (dynamic)
    total = combiner.join(b, total, rest);

  OpOperand *init = root.getDpsInitOperand(0);
  AffineMap map = root.getMatchingIndexingMap(init);
  Lanes start = reader.read(init->get(), map.getResults(), 0);
  total = combiner.join(b, reader.materialize(start, 0), total);
  Value result = root->getResult(0);
  reader.remember(result, *positionOf(result, root), 0, {total, {}});
  auto values = llvm::map_to_vector(outputs, [&](const Output &output) {
    return reader.read(output.tensor, output.position, 0);
  });
  for (auto [value, output] : llvm::zip_equal(values, outputs))
    reader.write(value, output.destination, output.place, 0);
}

void emitLaneReduction(Kernel &kernel, linalg::GenericOp root,
                       const Tiling &tiling, ArrayRef<Output> outputs) {
  LaneReduction(kernel, root, tiling, outputs).run();
  if (outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
}

} // namespace keratin
