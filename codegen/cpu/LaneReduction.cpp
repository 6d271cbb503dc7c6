//===- LaneReduction.cpp - reductions along contiguous elements -----------===//
//
// A few vectors of partial results at once, joined in a fixed tree at the end:
// vectors pairwise, then halves of a vector, then the scalar rest.
//
// What does not fit in the second cache is read in some runs side by side, each
// of which has a vector of partial results: one alone leaves most of the lines
// that a core can wait for unused.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"
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
    pickRuns();
  }

  void run();

private:
  using Sums = SmallVector<Value>;
  /// Equal parts of a loop that are gone through side by side: how many there
  /// are, how far apart they begin, the sums of each, and the tensors that they
  /// read.
  struct Runs {
    unsigned loop;
    int64_t count, apart;
    unsigned sums;
    SmallVector<Access> accesses;
  };

  bool isReduction(unsigned loop) {
    return root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  }
  void pickRuns();
  int64_t stepOfRun();
  void emitLevel(unsigned number);
  void emitElement();
  Sums reduce(ArrayRef<unsigned> loops, Sums sums);
  Sums alongLane(Sums sums);
  Sums alongLaneInRuns(Sums sums);
  Position pointOf(int64_t offset, int64_t run);
  void addVector(Value &sum, int64_t offset, unsigned width, int64_t run = 0);
  Value identity(unsigned width) { return combiner.identity(b, width); }

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  linalg::GenericOp root;
  const Tiling &tiling;
  ArrayRef<Output> outputs;
  Combiner combiner;
  std::optional<Runs> runs;
};
} // namespace

/// Elements along the lane that a run reads in a turn of its loop: a line of
/// cache, or a vector, for each of its sums.
int64_t LaneReduction::stepOfRun() {
  constexpr int64_t line = 64;
  auto type = cast<RankedTensorType>(runs->accesses[0].tensor.getType());
  int64_t lines = line * 8 / type.getElementTypeBitWidth();
  return std::max<int64_t>(lines / tiling.lanes, 1) * tiling.lanes * runs->sums;
}

/// Takes the outermost loop whose parts are far from each other, or else the
/// lane, where an element of the result is made of much memory. Where lines are
/// fetched ahead without being asked for, four of a run in a row are.
void LaneReduction::pickRuns() {
  constexpr int64_t leastBytes = 2 << 20, leastApart = 8 << 10;
  Runs found = {0,
                tiling.asksForRuns ? runsAtOnce : runsAtOnce / 2,
                0,
                tiling.asksForRuns ? 1U : 4U,
                {}};
  for (const Access &access : accessesOf(kernel, root)) {
    Value memref = kernel.memrefOf(access.tensor);
    auto type = cast<RankedTensorType>(access.tensor.getType());
    int64_t bytes =
        memref ? bytesOfElement(cast<MemRefType>(memref.getType())) : 0;
    for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
      if (isReduction(loop) && access.dependsOn(loop)) {
        int64_t extent = staticLoopExtent(root, loop);
        bytes = ShapedType::isDynamic(extent)
                    ? 0
                    : llvm::SaturatingMultiply<uint64_t>(bytes, extent);
      }
    if (bytes >= leastBytes && laneAccess(type, access.position, tiling.lane) ==
                                   LaneAccess::Contiguous)
      found.accesses.push_back(access);
  }
  if (found.accesses.empty())
    return;
  SmallVector<unsigned> loops(tiling.reductions);
  loops.push_back(tiling.lane);
  for (unsigned loop : loops) {
    int64_t extent = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(extent))
      continue;
    runs = found;
    runs->loop = loop;
    int64_t step = loop == tiling.lane ? stepOfRun() : 1;
    runs->apart = extent / (runs->count * step) * step;
    bool isWhole = loop == tiling.lane || extent % runs->count == 0;
    if (isWhole &&
        runs->apart * bytesApart(found.accesses[0], loop) >= leastApart)
      return;
    runs.reset();
  }
}

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
    return runs ? alongLaneInRuns(std::move(sums)) : alongLane(std::move(sums));
  Value to = runs && runs->loop == loops[0] ? kernel.index(runs->apart)
                                            : kernel.loopExtent(root, loops[0]);
  return emitLoop(b, loc, kernel.index(0), to, kernel.index(1), sums,
                  [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loops[0], iv);
                    return reduce(loops.drop_front(), Sums(inner));
                  });
}

/// The loops at the lane + offset, in one of the runs.
Position LaneReduction::pointOf(int64_t offset, int64_t run) {
  Position point;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    AffineExpr expr = getAffineDimExpr(loop, b.getContext());
    if (runs && runs->loop == loop)
      expr = expr + run * runs->apart;
    point.push_back(loop == tiling.lane ? expr + offset : expr);
  }
  return point;
}

/// Adds `width` elements from the lane + offset to `sum`, a vector at least as
/// wide, or a scalar.
void LaneReduction::addVector(Value &sum, int64_t offset, unsigned width,
                              int64_t run) {
  Position point = pointOf(offset, run);
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

/// One run along the lane, or a part of each of several: `sums` has a vector
/// or more for each. What is fetched ahead by itself is not enough on most
/// machines where others use the same memory.
LaneReduction::Sums LaneReduction::alongLaneInRuns(Sums sums) {
  constexpr int64_t bytesAhead = 512;
  unsigned lanes = tiling.lanes;
  bool splitsLane = runs->loop == tiling.lane;
  int64_t extent = staticLoopExtent(root, tiling.lane), step = stepOfRun();
  int64_t whole = splitsLane ? runs->apart : extent / step * step;
  auto prefetch = [&](int64_t run) {
    for (const Access &access : runs->accesses) {
      Value memref = kernel.memrefOf(access.tensor);
      int64_t bytes = bytesOfElement(cast<MemRefType>(memref.getType()));
      reader.prefetch(memref, atPoint(access.position, pointOf(0, run)),
                      unsigned(bytesAhead / bytes), unsigned(step),
                      /*isWrite=*/false);
    }
  };
  sums = emitLoop(b, loc, kernel.index(0), kernel.index(whole),
                  kernel.index(step), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(tiling.lane, iv);
                    Sums next(inner);
                    for (int64_t run = 0; run < runs->count; ++run) {
                      for (int64_t turn = 0; turn * lanes < step; ++turn)
                        addVector(next[run * runs->sums + turn % runs->sums],
                                  turn * lanes, lanes, run);
                      if (tiling.asksForRuns)
                        prefetch(run);
                    }
                    return next;
                  });
  // What is left of each run, or behind the last one.
  int64_t done = splitsLane ? whole * runs->count : whole;
  LaneReader::Scope scope(reader);
  reader.bind(tiling.lane, kernel.index(done));
  int64_t among = splitsLane ? int64_t(sums.size()) : runs->sums;
  for (auto [number, sum] : llvm::enumerate(sums)) {
    int64_t first = int64_t(number) % among * lanes;
    for (int64_t offset = first; done + offset < extent;
         offset += among * lanes)
      addVector(sum, offset, std::min<int64_t>(lanes, extent - done - offset),
                splitsLane ? 0 : int64_t(number) / among);
  }
  return sums;
}

void LaneReduction::emitElement() {
  LaneReader::Scope scope(reader);
  Sums sums(runs ? runs->count * runs->sums : tiling.size.vectors,
            identity(tiling.lanes));
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
