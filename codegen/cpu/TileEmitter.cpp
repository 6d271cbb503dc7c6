//===- TileEmitter.cpp - register tiles of outputs ------------------------===//
//
// A tile keeps rows times vectors of accumulators in registers over the whole
// reduction. Per step it loads the vectors of columns, broadcasts a scalar for
// each row, and issues one FMA for each pair. Edges are smaller tiles of the
// exact rest, not masks.
//
// A reduction in blocks goes over all tiles for each block; the output holds
// the sums between them.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/InPlace.h"
#include "codegen/cpu/SharedNest.h"
#include "codegen/cpu/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

void TileEmitter::run() {
  takeWeightsAhead();
  if (tiling.blocked)
    layOutBlocks();
  if (tiling.copied)
    layOutCopies();
  auto emit = [&] {
    emitBlocks(ArrayRef(tiling.reductions).take_front(tiling.outerReductions));
  };
  if (tiling.sharedWith) {
    const Tiling::Level &major = tiling.levels[*tiling.shared];
    Value turns = countTurns(kernel, kernel.loopExtent(root, major.loop),
                             stepOf(major), tiling.turnsWith);
    sharedTurns = kernel.share(turns, 1);
  }
  if (tiling.shared)
    return emit();
  kernel.emitOnce([&] {
    LaneReader::Scope scope(reader);
    emit();
  });
}

void TileEmitter::enter(const TilesWithin &place) {
  for (auto [coordinate, value] : place.coordinates)
    reader.bind(coordinate, value);
  for (const auto &[tensor, part] : place.parts)
    reader.setPart(tensor, part);
  blocksAround[*tiling.row] = place.rows;
  columnsWithin = place.columns;
  isPartOfSums = place.sums.first != nullptr;
  if (isPartOfSums)
    block = place.sums;
  panel = place.blocks ? place.blocks : place.panel;
  if (tiling.blocked)
    layOutBlocks();
}

void TileEmitter::runWithin(const TilesWithin &place) {
  enter(place);
  keepsBlocks = place.blocks != nullptr;
  LaneReader::Scope scope(reader);
  emitBlocks(ArrayRef(tiling.reductions).take_front(tiling.outerReductions));
}

void TileEmitter::fillBlocks(const TilesWithin &place) {
  enter(place);
  LaneReader::Scope scope(reader);
  emitColumns(/*shared=*/false, [] {});
}

void TileEmitter::emitBlocks(ArrayRef<unsigned> outer) {
  if (!outer.empty())
    return span(outer[0], kernel.index(0), kernel.loopExtent(root, outer[0]), 1,
                [&] { emitBlocks(outer.drop_front()); });
  if (tiling.blockStep == 0 || isPartOfSums)
    return emitBlock();
  unsigned loop = tiling.reductions[tiling.outerReductions];
  Value extent = kernel.loopExtent(root, loop);
  Value step = kernel.index(tiling.blockStep);
  emitLoop(b, loc, kernel.index(0), extent, step, {},
           [&](Value from, ValueRange) -> Sums {
             LaneReader::Scope scope(reader);
             Value to = arith::AddIOp::create(b, loc, from, step);
             block = {from, arith::MinUIOp::create(b, loc, to, extent)};
             emitBlock();
             return {};
           });
}

/// All tiles of a block of the reduction.
void TileEmitter::emitBlock() {
  if (tiling.packsAll) {
    auto isColumns = [](const Tiling::Level &level) {
      return level.kind == Tiling::Kind::Columns;
    };
    LaneReader::Scope scope(reader);
    // What is packed depends on no loop around the columns with more turns.
    for (const Tiling::Level &level : tiling.levels)
      if (staticLoopExtent(root, level.loop) == 1 &&
          level.kind != Tiling::Kind::Columns)
        reader.bind(level.loop, kernel.index(0));
    keepsBlocks = false;
    emitColumns(tiling.shared && isColumns(tiling.levels[*tiling.shared]),
                [] {});
    keepsBlocks = true;
  }
  emitLevel(0);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// `for coordinate loop = from to to step step`, without a loop for one turn.
void TileEmitter::span(unsigned loop, Value from, Value to, int64_t step,
                       Then then) {
  emitTurns(kernel, reader, from, to, step, [&](Value at) {
    reader.bind(loop, at);
    then();
  });
}

/// Windows go from the last rows to the first ones: what the kernel before
/// wrote last is still in the second cache, and so is what they write last when
/// the kernel behind begins. That is the loop outside of the rows of a tile.
bool TileEmitter::goesBackwards(unsigned loop) {
  return loopOfBackwardTiles(root, tiling) == loop;
}

/// The turns of `span`, whole steps, from the last one to the first.
void TileEmitter::spanBackwards(unsigned loop, Value from, Value to,
                                int64_t step, Then then) {
  Value last = arith::SubIOp::create(
      b, loc, arith::AddIOp::create(b, loc, from, to), kernel.index(step));
  span(loop, from, to, step, [&] {
    LaneReader::Scope scope(reader);
    Value at = reader.at(getAffineDimExpr(loop, b.getContext()));
    reader.bind(loop, arith::SubIOp::create(b, loc, last, at));
    then();
  });
}

/// The tiles of `step` along `loop`, of known extent, that read nothing but
/// elements where others read a border. Null where there is none, or where many
/// tiles read it.
std::optional<TileEmitter::Inside> TileEmitter::insideOfBorder(unsigned loop,
                                                               int64_t step) {
  constexpr int64_t mostAtBorder = 4;
  int64_t tiles = staticLoopExtent(root, loop) / step;
  std::optional<Inside> inside;
  for (OpOperand *operand : root.getDpsInputOperands()) {
    auto pad = operand->get().getDefiningOp<tensor::PadOp>();
    if (tiling.isCopied(operand))
      pad = nullptr;
    AffineMap map = root.getMatchingIndexingMap(operand);
    for (unsigned dim = 0; pad && dim < map.getNumResults(); ++dim) {
      AffineExpr expr = map.getResult(dim);
      int64_t low = pad.getStaticLow()[dim], high = pad.getStaticHigh()[dim];
      if ((low == 0 && high == 0) || !expr.isFunctionOfDim(loop))
        continue;
      int64_t size = pad.getSourceType().getDimSize(dim), reach = 0;
      for (unsigned other = 0; other < root.getNumLoops(); ++other)
        if (other != loop && expr.isFunctionOfDim(other))
          reach += laneStep(expr, other).value_or(0) *
                   (staticLoopExtent(root, other) - 1);
      int64_t move = laneStep(expr, loop).value_or(0);
      int64_t first = 0, end = tiles;
      while (first < end && first * step * move < low)
        ++first;
      while (end > first && (end * step - 1) * move + reach - low >= size)
        --end;
      if (inside) { // the loop moves over two images
        first = std::max(first, inside->first / step);
        end = std::max(first, std::min(end, inside->end / step));
      }
      inside = {first * step, end * step};
    }
  }
  if (!inside || tiles - (inside->end - inside->first) / step > mostAtBorder)
    return std::nullopt;
  return inside;
}

/// One tile at a place that is known, if it is from `from` to before `to`.
void TileEmitter::tileAt(unsigned loop, Value from, Value to, int64_t first,
                         int64_t step, Then then) {
  emitTurns(kernel, reader, most(from, kernel.index(first)),
            least(to, first + step), step, [&](Value) {
              reader.bind(loop, kernel.index(first));
              reader.setRange(loop, std::pair(first, first));
              then();
              reader.setRange(loop, std::nullopt);
            });
}

/// Tiles from `from` to before `to`, whole steps. Where some read a border,
/// each of those has code of its own, that knows which of its taps do.
void TileEmitter::spanTiles(unsigned loop, Value from, Value to, int64_t step,
                            Then then) {
  bool back = goesBackwards(loop);
  std::optional<Inside> inside;
  if (!ShapedType::isDynamic(staticLoopExtent(root, loop)))
    inside = insideOfBorder(loop, step);
  if (!inside)
    return back ? spanBackwards(loop, from, to, step, then)
                : span(loop, from, to, step, then);
  int64_t end = staticLoopExtent(root, loop) / step * step;
  SmallVector<int64_t> firsts;
  for (int64_t at = 0; at < end; at += step)
    if (at <= inside->first || at >= inside->end)
      firsts.push_back(at);
  if (back)
    std::reverse(firsts.begin(), firsts.end());
  for (int64_t first : firsts) {
    if (first != inside->first || inside->first == inside->end) {
      tileAt(loop, from, to, first, step, then);
      continue;
    }
    reader.setRange(loop, std::pair(inside->first, inside->end - step));
    Value begin = most(from, kernel.index(inside->first));
    Value last = least(to, inside->end);
    back ? spanBackwards(loop, begin, last, step, then)
         : span(loop, begin, last, step, then);
    reader.setRange(loop, std::nullopt);
  }
}

void TileEmitter::emitLevel(unsigned number) {
  if (number == tiling.levels.size())
    return emitTile();
  if (number == tiling.levelOfCopies)
    copyWindows();
  auto then = [&] { emitLevel(number + 1); };
  const Tiling::Level &level = tiling.levels[number];
  bool shared = number == tiling.shared || number == tiling.sharedWith;
  switch (level.kind) {
  case Tiling::Kind::Single: {
    auto [from, to] = range(level.loop, 1, shared);
    return spanTiles(level.loop, from, to, 1, then);
  }
  case Tiling::Kind::Columns:
    if (copies)
      copyRows();
    return emitColumns(shared, then);
  case Tiling::Kind::Rows:
    return emitRows(level.loop, shared, then);
  case Tiling::Kind::Blocks:
    return emitBlocksOf(level, shared, then);
  }
}

/// Where a loop starts and ends: in the block around it, or that of a shared
/// level in steps of full tiles.
std::pair<Value, Value> TileEmitter::range(unsigned loop, int64_t step,
                                           bool shared) {
  if (auto known = blocksAround.find(loop); known != blocksAround.end())
    return known->second;
  Value extent = kernel.loopExtent(root, loop);
  if (shared)
    return share(loop, extent, step);
  return {kernel.index(0), extent};
}

/// How far a turn of `level` goes on, which has tiles.
int64_t TileEmitter::stepOf(const Tiling::Level &level) {
  if (level.kind == Tiling::Kind::Columns)
    return int64_t(tiling.size.vectors) * tiling.lanes;
  if (level.kind != Tiling::Kind::Rows)
    return 1;
  return level.loop == tiling.outerRow ? tiling.size.outerRows
                                       : tiling.size.rows;
}

/// Which of the turns of `level` this is.
Value TileEmitter::turnOf(const Tiling::Level &level) {
  Value at = reader.at(getAffineDimExpr(level.loop, b.getContext()));
  return arith::DivUIOp::create(b, loc, at, kernel.index(stepOf(level)));
}

/// What this call has of a shared level. With two, it has some of the turns
///
///     turn of tiling.shared * tiling.turnsWith + turn of tiling.sharedWith,
///
/// one after the other, whichever of the levels is the outer one.
std::pair<Value, Value> TileEmitter::share(unsigned loop, Value extent,
                                           int64_t step) {
  if (!tiling.sharedWith)
    return kernel.share(extent, step);
  unsigned major = *tiling.shared, minor = *tiling.sharedWith;
  bool isMajor = tiling.levels[major].loop == loop;
  Value width = kernel.index(tiling.turnsWith), from, to;
  if (isMajor) {
    // Those of which a turn of the other level, or any of its turns, is here.
    Value first =
        major < minor
            ? kernel.index(0)
            : arith::SubIOp::create(b, loc, kernel.index(tiling.turnsWith - 1),
                                    turnOf(tiling.levels[minor]));
    Value last = major < minor ? kernel.index(tiling.turnsWith - 1) : first;
    auto turn = [&](Value end, Value added) -> Value {
      end = arith::AddIOp::create(b, loc, end, added);
      return arith::DivUIOp::create(b, loc, end, width);
    };
    from = turn(sharedTurns.first, first);
    to = turn(sharedTurns.second, last);
  } else if (minor < major) {
    return {kernel.index(0), extent};
  } else {
    Value around = turnOf(tiling.levels[major]);
    from = turnOfInner(kernel, sharedTurns.first, around, tiling.turnsWith);
    to = turnOfInner(kernel, sharedTurns.second, around, tiling.turnsWith);
  }
  return placesOfTurns(kernel, {from, to}, step, extent);
}

void TileEmitter::emitBlocksOf(const Tiling::Level &level, bool shared,
                               Then then) {
  auto [from, to] = range(level.loop, level.step, shared);
  Value step = kernel.index(level.step), end = to;
  emitLoop(b, loc, from, to, step, {}, [&](Value iv, ValueRange) -> Sums {
    LaneReader::Scope scope(reader);
    Value next = arith::AddIOp::create(b, loc, iv, step);
    blocksAround[level.loop] = {iv, arith::MinUIOp::create(b, loc, next, end)};
    then();
    blocksAround.erase(level.loop);
    return {};
  });
}

/// Turns of a loop in groups of `step`: where each begins, and how many it has.
void TileEmitter::inGroups(Value from, Value to, int64_t step,
                           llvm::function_ref<void(Value, Value)> body) {
  std::optional<int64_t> first = getConstantIntValue(from),
                         end = getConstantIntValue(to);
  bool areKnown = first && end;
  emitTurns(kernel, reader, from, to, step, [&](Value at) {
    Value count;
    if (areKnown && (*end - *first <= step || (*end - *first) % step == 0))
      count = kernel.index(std::min(*end - *first, step));
    else
      count = least(arith::SubIOp::create(b, loc, to, at), step);
    body(at, count);
  });
  firstOfGroup = nullptr;
}

/// `number` without what is less than a `step`.
Value TileEmitter::wholeTurns(Value number, int64_t step) {
  if (std::optional<int64_t> known = getConstantIntValue(number))
    return kernel.index(*known / step * step);
  if (step == 1)
    return number;
  Value turns = arith::DivUIOp::create(b, loc, number, kernel.index(step));
  return times(turns, step);
}

Value TileEmitter::least(Value value, int64_t bound) {
  return kernel.least(value, kernel.index(bound));
}

Value TileEmitter::most(Value value, Value bound) {
  if (isZeroInteger(value))
    return bound;
  return arith::MaxUIOp::create(b, loc, value, bound);
}

/// The first packed block of the columns `number`.
Value TileEmitter::firstOfStreams(Value number) {
  if (tiling.streams == 1)
    return number;
  return arith::MulIOp::create(b, loc, number, kernel.index(tiling.streams));
}

void TileEmitter::inBlock(Value number, ArrayRef<Column> vectors, Then then) {
  columns.assign(vectors.begin(), vectors.end());
  bool hasAll = panel && cast<MemRefType>(panel.getType()).getDimSize(0) > 1;
  blockInPanel = hasAll ? number : kernel.index(0);
  if (panel)
    keepsBlocks ? readPanel(tiling.packsAll ? startsInPanel() : Sums())
                : fillPanel(number);
  else if (tiling.blocked)
    reader.setPacked(tiling.blocked->get(),
                     {kernel.memrefOf(tiling.blocked->get()),
                      firstOfStreams(number), packing});
  if (tiling.tilesOfPrefetch != 0)
    findNextBlock(number);
  then();
}

/// Full blocks, then the exact rest; columns of unknown number go vector by
/// vector and then one by one.
void TileEmitter::emitColumns(bool shared, Then then) {
  unsigned loop = tiling.lane, lanes = tiling.lanes;
  int64_t block = int64_t(tiling.size.vectors) * lanes;
  SmallVector<Column> full;
  for (unsigned vector = 0; vector < tiling.size.vectors; ++vector)
    full.push_back({int64_t(vector) * lanes, lanes});

  int64_t extent = staticLoopExtent(root, loop);
  if (ShapedType::isDynamic(extent)) {
    auto [from, to] = range(loop, block, shared);
    // From a multiple of a block on, so that only the last share has a rest.
    Value width = kernel.index(block);
    Value whole = arith::MulIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, to, width), width);
    span(loop, from, whole, block, [&] { inBlock({}, full, then); });
    span(loop, most(from, whole), to, 1,
         [&] { inBlock({}, {Column{0, 0}}, then); });
    return;
  }
  // The loop counts blocks, which is how packed operands are addressed.
  auto blockAt = [&](Value number, ArrayRef<Column> vectors) {
    reader.bind(loop, times(number, block));
    inBlock(number, vectors, then);
  };
  int64_t blocks = extent / block, rest = extent % block;
  Value number = kernel.index(blocks + (rest != 0));
  auto [from, to] =
      shared ? share(loop, number, 1) : std::pair(kernel.index(0), number);
  if (shared)
    sharedColumns = {from, to};
  if (columnsWithin.first)
    std::tie(from, to) = columnsWithin;
  if (auto around = blocksAround.find(loop); around != blocksAround.end()) {
    Value width = kernel.index(block);
    from = arith::DivUIOp::create(b, loc, around->second.first, width);
    to = arith::CeilDivUIOp::create(b, loc, around->second.second, width);
  }
  if (tiling.levels.back().kind == Tiling::Kind::Columns)
    columnsInside = {from, to};
  auto turns = [&](Value from, Value to, llvm::function_ref<void(Value)> body) {
    std::optional<int64_t> first = getConstantIntValue(from);
    std::optional<int64_t> last = getConstantIntValue(to);
    if (first && last && *last <= *first + 1) {
      LaneReader::Scope scope(reader);
      if (*last > *first)
        body(from);
      return;
    }
    emitLoop(b, loc, from, to, kernel.index(1), {},
             [&](Value number, ValueRange) -> Sums {
               LaneReader::Scope scope(reader);
               body(number);
               return {};
             });
  };
  SmallVector<Column> last;
  for (int64_t offset = 0; offset < rest; offset += lanes)
    last.push_back({offset, unsigned(std::min<int64_t>(lanes, rest - offset))});
  auto allTurns = [&](Value from, Value to) {
    Value end = least(to, blocks), back;
    if (tiling.alternates)
      back = kernel.goesBack();
    turns(from, end, [&](Value number) {
      blockAt(back ? mirrored(kernel, number, from, end, back) : number, full);
    });
    if (rest != 0)
      turns(most(from, kernel.index(blocks)), to,
            [&](Value) { blockAt(kernel.index(blocks), last); });
  };
  int64_t together = tilesFinishedTogether(loop);
  if (together == 1)
    return allTurns(from, to);
  inGroups(from, to, together, [&](Value first, Value count) {
    firstOfGroup = times(first, block);
    allTurns(first, kernel.plus(first, count));
    Value width = times(count, block);
    if (rest != 0) {
      Value left =
          arith::SubIOp::create(b, loc, kernel.index(extent), firstOfGroup);
      width = kernel.least(width, left);
    }
    finishColumns(width);
  });
}

void emitTilesWithin(Kernel &kernel, linalg::GenericOp root,
                     const Tiling &tiling, ArrayRef<Output> outputs,
                     const TilesWithin &place) {
  TileEmitter(kernel, root, tiling, outputs).runWithin(place);
}

SmallVector<int64_t> blocksShape(Kernel &kernel, linalg::GenericOp root,
                                 const Tiling &tiling) {
  SmallVector<int64_t> shape =
      TileEmitter(kernel, root, tiling, {}).panelShape();
  shape[0] = llvm::divideCeil(staticLoopExtent(root, tiling.lane),
                              int64_t(tiling.size.vectors) * tiling.lanes);
  return shape;
}

void fillBlocks(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
                const TilesWithin &place) {
  TileEmitter(kernel, root, tiling, {}).fillBlocks(place);
}

/// Emits `root` for one row, which reads some packed blocks side by side, for
/// one tile of rows, which asks for weights in many runs, and for many tiles.
/// One needs no blocks of the reduction: between those sums are in memory as
/// they are in registers, so results are the same.
static void emitForNumberOfRows(Kernel &kernel, linalg::GenericOp root,
                                const Tiling &tiling,
                                ArrayRef<Output> outputs) {
  OpBuilder &b = kernel.builder();
  OpBuilder::InsertionGuard guard(b);
  auto emit = [&](const Tiling &tiling) {
    TileEmitter(kernel, root, tiling, outputs).run();
  };
  auto emitUpTo = [&](int64_t rows, const Tiling &tiling) {
    Value areAtMost = arith::CmpIOp::create(
        b, kernel.loc(), arith::CmpIPredicate::ule,
        kernel.loopExtent(root, *tiling.row), kernel.index(rows));
    auto branch =
        scf::IfOp::create(b, kernel.loc(), areAtMost, /*withElse=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    emit(tiling);
    b.setInsertionPointToStart(branch.elseBlock());
  };
  Tiling few = tiling;
  few.runs = runsAtOnce;
  few.tilesOfPrefetch = 0;
  few.outerReductions = 0;
  few.blockStep = 0;
  few.nextBlocks.clear();
  few.rowsAhead.reset();
  few.copied.reset();
  if (tiling.streamsOfOneRow > 1) {
    Tiling one = few;
    one.runs = 1;
    one.streams = tiling.streamsOfOneRow;
    one.size = {1, tiling.size.vectors * one.streams};
    emitUpTo(1, one);
  }
  if (tiling.mayHaveFewRows)
    emitUpTo(tiling.size.rows, few);
  emit(tiling);
}

void emitTiles(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
               ArrayRef<Output> outputs) {
  if (tiling.mayHaveFewRows || tiling.streamsOfOneRow > 1)
    emitForNumberOfRows(kernel, root, tiling, outputs);
  else
    TileEmitter(kernel, root, tiling, outputs).run();
  // Between blocks of a reduction the output has sums where an argument is
  // still to be read.
  if (!tiling.inBlocks() && outputs.size() == kernel.results().size())
    markInPlace(kernel, root);
  markBehind(kernel, root, tiling, outputs);
}

} // namespace keratin
