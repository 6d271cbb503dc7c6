//===- RowEmitter.cpp - kernels computed row by row -----------------------===//
//
// A row is read in passes: each computes all reductions whose operands are
// known by then, with a few vectors of partial results; the last stores the
// results. Elementwise values are computed in each pass that reads them, but
// those that are expensive and read again are kept in a scratch row, which
// stays in the first cache.
//
// What a row ends a pass with is a chain: the lanes of a sum are joined, and a
// quotient or a root may follow. So some short rows go through a pass before
// the first of them begins with the next: side by side in one loop, which reads
// once what they share, or one after the other where they compute functions.
// Where there are many rows, of a length that a first cache has some of, all
// passes are in one loop, each a row behind the one before it: while a row is
// stored, the next ones are summed up, and nobody waits for the end of a pass.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/RowEmitter.h"

#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/RowLoops.h"
#include "codegen/cpu/SharedNest.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Position RowEmitter::point(int64_t offset) {
  Position position;
  for (unsigned loop = 0; loop < loops; ++loop)
    position.push_back(getAffineDimExpr(loop, b.getContext()));
  position.back() = position.back() + offset;
  if (row != 0)
    position[rowLoop()] = position[rowLoop()] + row;
  return position;
}

/// The rows of the panel.
LaneReader::Part RowEmitter::inPanel() {
  LaneReader::Part part = {
      block->panel, {block->axis, loops - 1}, {reader.symbol(block->from)}};
  if (block->first)
    part.origins.push_back(reader.symbol(block->first));
  return part;
}

/// One element for each row of the panel.
LaneReader::Part RowEmitter::perRow(Value memory) {
  return {memory, {block->axis}, {reader.symbol(block->from)}};
}

/// How many elements of the row the innermost loop goes along.
int64_t RowEmitter::length() const {
  return block && block->count != 0 ? block->count : extents.back();
}

/// Whether nothing but `value` needs what rows follow from any more: each
/// element of that is read right before the one of `value` is stored.
bool RowEmitter::takesPlaceOfGiven(Value value) {
  return block &&
         getElementTypeOrSelf(value) == getElementTypeOrSelf(block->given) &&
         llvm::all_of(block->given.getUsers(), [&](Operation *user) {
           return user == value.getDefiningOp() ||
                  (isReduction(user) && done.contains(user->getResult(0)));
         });
}

/// Where a stored value goes: its destination, or a scratch row.
LaneReader::Part RowEmitter::memoryFor(Value value) {
  auto dims = llvm::to_vector(llvm::seq(0u, loops));
  for (auto [number, result] : llvm::enumerate(results))
    if (result == value)
      return block ? inPanel()
                   : LaneReader::Part{kernel.destination(number), dims};
  if (takesPlaceOfGiven(value))
    return inPanel();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.to().front());
  auto type = MemRefType::get(extents, getElementTypeOrSelf(value));
  dims.erase(dims.begin(), dims.begin() + rows);
  return {memref::AllocaOp::create(b, loc, type, b.getI64IntegerAttr(64)),
          dims};
}

/// Asks for what is read and written at `point` of the next row, `offset`
/// elements behind where the turn begins. Of vectors that are parts of a line
/// the first one asks.
void RowEmitter::prefetchRow(const Position &point, int64_t offset,
                             unsigned width) {
  constexpr unsigned line = 64;
  llvm::SmallDenseSet<std::pair<Value, AffineMap>> seen;
  auto ask = [&](Value memref, AffineMap map, bool isWrite) {
    auto type = cast<MemRefType>(memref.getType());
    unsigned bits = type.getElementTypeBitWidth();
    if (bits < 8 || offset * bits % (line * 8) != 0 ||
        !map.isProjectedPermutation() || !map.isFunctionOfDim(rows - 1) ||
        !map.isFunctionOfDim(loops - 1) || !seen.insert({memref, map}).second)
      return;
    for (unsigned lane = 0; lane < width; lane += line * 8 / bits) {
      Position next = point;
      next[rows - 1] = next[rows - 1] + group;
      next[loops - 1] = next[loops - 1] + lane;
      SmallVector<Value> place;
      for (AffineExpr expr : map.getResults())
        place.push_back(reader.at(canonical(expr.replaceDims(next))));
      memref::PrefetchOp::create(b, loc, memref, place, isWrite,
                                 /*localityHint=*/3, /*isDataCache=*/true);
    }
  };
  for (linalg::GenericOp op : ops)
    if (op.getNumLoops() == loops)
      for (OpOperand *input : op.getDpsInputOperands())
        if (Value memref = kernel.memrefOf(input->get()))
          ask(memref, op.getMatchingIndexingMap(input), /*isWrite=*/false);
  for (auto [number, result] : llvm::enumerate(results))
    if (isWhole(result))
      ask(kernel.destination(number), b.getMultiDimIdentityMap(loops),
          /*isWrite=*/true);
}

/// Some lanes of the row: stores what is kept, and adds the others to `sums`,
/// one for each reduction.
RowEmitter::Sums RowEmitter::turn(const Pass &pass, ValueRange sums,
                                  int64_t offset, unsigned width) {
  Position position = point(offset);
  if (pass.asksForNext)
    prefetchRow(position, offset, width);
  for (Value value : pass.stored) {
    Lanes lanes = reader.read(value, position, width);
    const LaneReader::Part &part = places.at({value, row});
    reader.write(lanes, part.memref, part.place(position), width);
  }
  Sums next;
  for (auto [op, sum] : llvm::zip_equal(pass.reductions, sums))
    next.push_back(reader.materialize(
        reader.evaluate(op, position, {Lanes{sum, {}}}, width)[0], width));
  return next;
}

/// Where the sums of all rows, reductions and streams have one of them.
static size_t placeOfSum(size_t row, size_t reductions, size_t number,
                         size_t streams, size_t stream) {
  return (row * reductions + number) * streams + stream;
}

/// The rows that `pass` goes along.
void RowEmitter::forEachRow(const Pass &pass,
                            llvm::function_ref<void(unsigned)> body) {
  done = pass.known;
  for (unsigned number = 0; number < pass.rows; ++number) {
    row = pass.first + number;
    usePlaces();
    body(number);
  }
  row = 0;
}

/// A turn of the loop along the row.
void RowEmitter::turns(const Pass &pass, MutableArrayRef<Value> sums) {
  size_t reductions = pass.reductions.size();
  for (unsigned stream = 0; stream < pass.streams; ++stream)
    forEachRow(pass, [&](unsigned number) {
      auto placeOf = [&](size_t index) {
        return placeOfSum(number, reductions, index, pass.streams, stream);
      };
      Sums own;
      for (size_t index = 0; index < reductions; ++index)
        own.push_back(sums[placeOf(index)]);
      own = turn(pass, own, int64_t(stream) * pass.width, pass.width);
      for (size_t index = 0; index < reductions; ++index)
        sums[placeOf(index)] = own[index];
    });
}

/// The end of the row, which is less than a turn of the loop.
void RowEmitter::rest(const Pass &pass, MutableArrayRef<Value> sums,
                      int64_t left) {
  auto identities = [&](unsigned width) {
    Sums values;
    for (linalg::GenericOp op : pass.reductions)
      values.push_back(Combiner::of(op, 0)->identity(b, width));
    return values;
  };
  auto restOf = [&](unsigned number, unsigned stream) {
    int64_t first = int64_t(stream) * pass.width;
    int64_t count = std::min<int64_t>(pass.width, left - first);
    Sums added = identities(pass.width);
    for (int64_t offset = 0, width = 0; offset < count; offset += width) {
      width = count - offset;
      if (uint64_t vectors = width / lanes)
        width = int64_t(llvm::bit_floor(vectors)) * lanes;
      Sums some = turn(pass, identities(width), first + offset, width);
      for (auto [all, part] : llvm::zip_equal(added, some))
        all = width == pass.width
                  ? part
                  : vector::InsertStridedSliceOp::create(
                        b, loc, part, all, ArrayRef<int64_t>{offset},
                        ArrayRef<int64_t>{1});
    }
    for (auto [index, op] : llvm::enumerate(pass.reductions)) {
      Value &sum = sums[placeOfSum(number, pass.reductions.size(), index,
                                   pass.streams, stream)];
      sum = Combiner::of(op, 0)->join(b, sum, added[index]);
    }
  };
  for (unsigned stream = 0;
       stream < pass.streams && int64_t(stream) * pass.width < left; ++stream)
    forEachRow(pass, [&](unsigned number) { restOf(number, stream); });
}

RowEmitter::Sums RowEmitter::alongLane(ArrayRef<Pass> passes, Sums sums) {
  int64_t extent = length(), step = passes.front().step();
  int64_t whole = extent / step * step;
  unsigned lane = loops - 1;
  auto place = [&](Value offset) -> Value {
    if (!block || !block->first)
      return offset;
    return arith::AddIOp::create(b, loc, block->first, offset);
  };
  auto forEachPass = [&](Sums &sums, auto body) {
    MutableArrayRef<Value> left = sums;
    for (const Pass &pass : passes) {
      body(pass, left.take_front(pass.numSums()));
      left = left.drop_front(pass.numSums());
    }
  };
  if (whole != 0)
    sums = emitLoop(b, loc, kernel.index(0), kernel.index(whole),
                    kernel.index(step), sums, [&](Value at, ValueRange before) {
                      LaneReader::Scope scope(reader);
                      reader.bind(lane, place(at));
                      Sums next(before);
                      forEachPass(next, [&](const Pass &pass, auto own) {
                        turns(pass, own);
                      });
                      return next;
                    });
  LaneReader::Scope scope(reader);
  reader.bind(lane, place(kernel.index(whole)));
  forEachPass(sums, [&](const Pass &pass, auto own) {
    rest(pass, own, extent - whole);
  });
  return sums;
}

/// The loops of the row around the one that vectors go along.
RowEmitter::Sums RowEmitter::trailingLoops(ArrayRef<Pass> passes, unsigned loop,
                                           Sums sums) {
  if (loop + 1 == loops)
    return alongLane(passes, std::move(sums));
  return emitLoop(b, loc, kernel.index(0), kernel.index(extents[loop - rows]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loop, iv);
                    return trailingLoops(passes, loop + 1, Sums(inner));
                  });
}

/// Where the result of a reduction for this row is.
Position RowEmitter::placeOf(linalg::GenericOp reduction) {
  AffineMap map =
      reduction.getMatchingIndexingMap(reduction.getDpsInitOperand(0));
  return atPoint(map.getResults(), point(0));
}

/// The passes, each of its own rows, in one loop along them.
void RowEmitter::emitPasses(ArrayRef<Pass> passes) {
  Sums sums;
  for (const Pass &pass : passes)
    forEachRow(pass, [&](unsigned) {
      for (linalg::GenericOp op : pass.reductions)
        sums.append(pass.streams, Combiner::of(op, 0)->identity(b, pass.width));
      for (Value value : pass.stored)
        if (!places.contains({value, row}))
          places[{value, row}] = memoryFor(value);
    });
  sums = trailingLoops(passes, rows, std::move(sums));

  ArrayRef<Value> left = sums;
  auto join = [&](linalg::GenericOp op, ArrayRef<Value> parts) {
    Combiner combiner = *Combiner::of(op, 0);
    Value total =
        combiner.joinLanes(b, combiner.joinAll(b, SmallVector<Value>(parts)));
    Position position = placeOf(op);
    Lanes start =
        reader.read(op.getDpsInitOperand(0)->get(), position, /*width=*/0);
    total = combiner.join(b, reader.materialize(start, 0), total);
    reader.remember(op->getResult(0), position, 0, {total, {}});
  };
  for (const Pass &pass : passes)
    forEachRow(pass, [&](unsigned) {
      for (linalg::GenericOp op : pass.reductions) {
        join(op, left.take_front(pass.streams));
        left = left.drop_front(pass.streams);
      }
    });
}

/// Reads of what is stored by now go to the place of this row.
void RowEmitter::usePlaces() {
  for (const auto &[key, part] : places) {
    if (key.second != row)
      continue;
    if (done.contains(key.first))
      reader.setPart(key.first, part);
    else
      reader.forgetPart(key.first);
  }
}

/// How many rows go through each pass before the next: a first cache holds
/// some short ones, with what they follow from and the next ones.
unsigned RowEmitter::rowsOfGroup() {
  if (rows == 0 || unit.littleCode)
    return 1;
  int64_t vectors = llvm::divideCeil(llvm::product_of(extents), int64_t(lanes));
  int64_t bytes = vectors * unit.bits / 8;
  unsigned count = vectors <= 8 ? 4 : bytes <= 4096 ? 2 : 1;
  int64_t known = staticLoopExtent(whole, rowLoop());
  while (!ShapedType::isDynamic(known) && count > known)
    count /= 2;
  return std::max(count, 1U);
}

/// Whether a load from one row seems to read what was just stored to the row
/// beside it: a core compares the place within a page first, and waits.
bool RowEmitter::rowsClash() {
  constexpr int64_t page = 4096, nearBytes = 512;
  int64_t bytes = llvm::product_of(extents) * unit.bits / 8 / lanes;
  int64_t beyond = bytes % page;
  return bytes >= page - nearBytes &&
         std::min(beyond, page - beyond) < nearBytes;
}

/// The passes of the `count` rows from the bound one on.
void RowEmitter::emitGroup(unsigned count) {
  LaneReader::Scope scope(reader);
  llvm::DenseSet<Value> before = done;
  bool hasFunctions = computesFunctions();
  for (auto [number, planned] : llvm::enumerate(passes)) {
    Pass pass = planned;
    pass.asksForNext = !block && !staggers && number == 1;
    // Functions are enough operations by themselves.
    bool clashes = !pass.stored.empty() && rowsClash();
    pass.rows = hasFunctions || clashes ? 1 : count;
    for (; pass.first < count; pass.first += pass.rows)
      emitPasses(pass);
  }
  end.rows = count;
  forEachRow(end, [&](unsigned) { emitSingles(); });
  forgetPlaces();
  done = std::move(before);
}

void RowEmitter::forgetPlaces() {
  for (const auto &[key, part] : places)
    reader.forgetPart(key.first);
}

/// The rows `from` to before `to` but for some at the end, if there are enough:
/// each turn goes along one with the last pass, and along the next ones with
/// those before it. Returns the first row that is left.
Value RowEmitter::emitStaggered(Value from, Value to) {
  unsigned loop = rowLoop(), last = passes.size() - 1;
  for (const Pass &pass : passes)
    for (Value value : pass.stored) {
      LaneReader::Part memory = memoryFor(value);
      for (unsigned number = 0; number <= last; ++number)
        places[{value, number}] = memory;
    }
  // What turns leave of rows that have not been through all passes.
  SmallVector<std::pair<linalg::GenericOp, unsigned>> carried;
  for (unsigned number = 0; number < last; ++number)
    for (linalg::GenericOp op : passes[number].reductions)
      for (unsigned behind = 0; number + behind < last; ++behind)
        carried.emplace_back(op, behind);
  auto valueOf = [&](linalg::GenericOp op, unsigned behind) {
    row = behind;
    Lanes value = reader.read(op->getResult(0), placeOf(op), /*width=*/0);
    row = 0;
    return reader.materialize(value, /*width=*/0);
  };
  auto emitStart = [&] {
    LaneReader::Scope scope(reader);
    reader.bind(loop, from);
    for (unsigned number = 0; number < last; ++number)
      for (Pass pass = passes[number]; number + pass.first < last; ++pass.first)
        emitPasses(pass);
    Sums start;
    for (auto [op, behind] : carried)
      start.push_back(valueOf(op, behind));
    return start;
  };
  auto emitTurn = [&](Value at, ValueRange before) {
    LaneReader::Scope scope(reader);
    reader.bind(loop, at);
    for (auto [entry, value] : llvm::zip_equal(carried, before)) {
      row = entry.second;
      reader.remember(entry.first->getResult(0), placeOf(entry.first),
                      /*width=*/0, {value, {}});
    }
    row = 0;
    // What a pass keeps of a row takes the place of what the next one reads.
    SmallVector<Pass> all(llvm::reverse(passes));
    for (auto [behind, pass] : llvm::enumerate(all))
      pass.first = behind;
    emitPasses(all);
    end.rows = 1;
    forEachRow(end, [&](unsigned) { emitSingles(); });
    Sums next;
    for (auto [op, behind] : carried)
      next.push_back(valueOf(op, behind + 1));
    return next;
  };
  llvm::DenseSet<Value> before = done;
  Value count = b.createOrFold<arith::SubIOp>(loc, to, from);
  Value isEnough = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                         count, kernel.index(last));
  auto branch = scf::IfOp::create(
      b, loc, isEnough,
      [&](OpBuilder &, Location) {
        Value stop = b.createOrFold<arith::SubIOp>(loc, to, kernel.index(last));
        emitLoop(b, loc, from, stop, kernel.index(1), emitStart(), emitTurn);
        scf::YieldOp::create(b, loc, stop);
      },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, from); });
  forgetPlaces();
  done = std::move(before);
  return branch.getResult(0);
}

/// Where a row has the only element of `result`.
Position RowEmitter::pointOfSingle(Value result) {
  Position position(ArrayRef(point(0)).take_front(rows));
  position.resize(cast<RankedTensorType>(result.getType()).getRank(),
                  getAffineConstantExpr(0, b.getContext()));
  return position;
}

/// Stores the results that there is one of in a row.
void RowEmitter::emitSingles() {
  struct Single {
    Lanes value;
    Value memref;
    Position place;
  };
  SmallVector<Single> singles;
  for (auto [number, result] : llvm::enumerate(results)) {
    if (isWhole(result))
      continue;
    Position position = pointOfSingle(result);
    Lanes value = reader.read(result, position, 0);
    if (!block) {
      singles.push_back({value, kernel.destination(number), position});
      continue;
    }
    LaneReader::Part part = perRow(block->kept[number - 1].second);
    singles.push_back({value, part.memref, part.place(position)});
  }
  for (const Single &single : singles)
    reader.write(single.value, single.memref, single.place, 0);
}

/// The rows `from` to before `to`: whole groups, and the rest one by one.
void RowEmitter::emitGroups(Value from, Value to) {
  unsigned loop = rowLoop();
  auto turns = [&](Value first, Value last, unsigned count) {
    group = count;
    emitTurns(kernel, reader, first, last, count, [&](Value at) {
      reader.bind(loop, at);
      emitGroup(count);
    });
  };
  if (staggers)
    return turns(emitStaggered(from, to), to, 1);
  unsigned most = rowsOfGroup();
  int64_t known = staticLoopExtent(whole, loop);
  bool hasRest = block || ShapedType::isDynamic(known) || known % most != 0;
  if (most == 1 || !hasRest)
    return turns(from, to, most);
  Value step = kernel.index(most);
  Value count = arith::SubIOp::create(b, loc, to, from);
  Value rest = arith::RemUIOp::create(b, loc, count, step);
  Value end = arith::SubIOp::create(b, loc, to, rest);
  turns(from, end, most);
  turns(end, to, 1);
}

void RowEmitter::run() {
  reader.setLane(loops - 1);
  planPasses();
  if (rows == 0)
    return kernel.emitOnce([&] { emitGroup(1); });
  OpBuilder::InsertionGuard guard(b);
  bool isAcross = goesAcross();
  int64_t step = isAcross ? lanesAcross : staggers ? 1 : rowsOfGroup();
  SmallVector<int64_t> turns;
  for (unsigned loop = 0; loop < rows; ++loop) {
    int64_t extent = staticLoopExtent(whole, loop);
    bool isWhole = loop + 1 < rows || ShapedType::isDynamic(extent);
    turns.push_back(isWhole ? extent : int64_t(llvm::divideCeil(extent, step)));
  }
  SharedNest nest(kernel, turns);
  for (unsigned loop = 0; loop < rows; ++loop) {
    bool isInner = loop + 1 == rows;
    auto [from, to] =
        nest.range(loop, kernel.loopExtent(whole, loop), isInner ? step : 1);
    if (isInner) {
      auto emit = [&, from, to] {
        isAcross ? emitAcross(from, to) : emitGroups(from, to);
      };
      return nest.isShared() ? emit() : kernel.emitOnce(emit);
    }
    auto around = scf::ForOp::create(b, loc, from, to, kernel.index(1));
    nest.enter(loop, around.getInductionVar());
    reader.bind(loop, around.getInductionVar());
    b.setInsertionPointToStart(around.getBody());
  }
}

void RowEmitter::runBlock() {
  reader.setLane(loops - 1);
  planPasses();
  reader.setPart(block->given, inPanel());
  for (const auto &[value, memory] : block->known)
    reader.setPart(value, perRow(memory));
  for (auto [axis, place] : llvm::enumerate(block->around))
    reader.bind(axis, place);
  emitGroups(block->from, block->to);
}

bool fitsRowBlock(Kernel &kernel, const RowBlock &block,
                  const VectorUnit &unit) {
  return RowEmitter(kernel, unit, block).matches();
}

void emitRowBlock(Kernel &kernel, const RowBlock &block,
                  const VectorUnit &unit) {
  RowEmitter emitter(kernel, unit, block);
  [[maybe_unused]] bool fits = emitter.matches();
  assert(fits && "somebody has to ask first");
  emitter.runBlock();
}

bool emitRows(Kernel &kernel, const VectorUnit &unit) {
  auto isOther = [](Operation &op) {
    return isa<tensor::PadOp, tensor::ConcatOp>(op);
  };
  if (llvm::any_of(kernel.from().front(), isOther))
    return false;
  RowEmitter emitter(kernel, unit);
  if (!emitter.matches())
    return false;
  emitter.run();
  return true;
}

} // namespace keratin
