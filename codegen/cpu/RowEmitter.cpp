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
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/RowEmitter.h"

#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/RowLoops.h"
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

/// The `count` rows of the group from the one that is emitted on.
void RowEmitter::forEachRow(unsigned count,
                            llvm::function_ref<void(unsigned)> body) {
  unsigned first = row;
  for (unsigned number = 0; number < count; ++number) {
    row = first + number;
    usePlaces();
    body(number);
  }
  row = first;
}

/// The end of the row, which is less than a turn of the loop.
void RowEmitter::rest(const Pass &pass, Sums &sums, int64_t left) {
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
    forEachRow(pass.rows, [&](unsigned number) { restOf(number, stream); });
}

RowEmitter::Sums RowEmitter::alongLane(const Pass &pass, Sums sums) {
  int64_t extent = length(), step = int64_t(pass.width) * pass.streams;
  int64_t whole = extent / step * step;
  size_t reductions = pass.reductions.size();
  unsigned lane = loops - 1;
  auto place = [&](Value offset) -> Value {
    if (!block || !block->first)
      return offset;
    return arith::AddIOp::create(b, loc, block->first, offset);
  };
  auto turns = [&](Value at, ValueRange before) {
    LaneReader::Scope scope(reader);
    reader.bind(lane, place(at));
    Sums sums(before);
    for (unsigned stream = 0; stream < pass.streams; ++stream)
      forEachRow(pass.rows, [&](unsigned number) {
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
    return sums;
  };
  if (whole != 0)
    sums = emitLoop(b, loc, kernel.index(0), kernel.index(whole),
                    kernel.index(step), sums, turns);
  LaneReader::Scope scope(reader);
  reader.bind(lane, place(kernel.index(whole)));
  rest(pass, sums, extent - whole);
  return sums;
}

/// The loops of the row around the one that vectors go along.
RowEmitter::Sums RowEmitter::trailingLoops(const Pass &pass, unsigned loop,
                                           Sums sums) {
  if (loop + 1 == loops)
    return alongLane(pass, std::move(sums));
  return emitLoop(b, loc, kernel.index(0), kernel.index(extents[loop - rows]),
                  kernel.index(1), sums, [&](Value iv, ValueRange inner) {
                    LaneReader::Scope scope(reader);
                    reader.bind(loop, iv);
                    return trailingLoops(pass, loop + 1, Sums(inner));
                  });
}

/// The pass of `pass.rows` rows.
void RowEmitter::emitPass(const Pass &pass) {
  Sums sums;
  forEachRow(pass.rows, [&](unsigned) {
    for (linalg::GenericOp op : pass.reductions)
      sums.append(pass.streams, Combiner::of(op, 0)->identity(b, pass.width));
    for (Value value : pass.stored)
      if (!places.contains({value, row}))
        places[{value, row}] = memoryFor(value);
  });
  sums = trailingLoops(pass, rows, std::move(sums));

  auto join = [&](linalg::GenericOp op, ArrayRef<Value> parts) {
    Combiner combiner = *Combiner::of(op, 0);
    Value total =
        combiner.joinLanes(b, combiner.joinAll(b, SmallVector<Value>(parts)));
    OpOperand *init = op.getDpsInitOperand(0);
    Position position =
        atPoint(op.getMatchingIndexingMap(init).getResults(), point(0));
    Lanes start = reader.read(init->get(), position, 0);
    total = combiner.join(b, reader.materialize(start, 0), total);
    reader.remember(op->getResult(0), position, 0, {total, {}});
  };
  forEachRow(pass.rows, [&](unsigned number) {
    for (auto [index, op] : llvm::enumerate(pass.reductions)) {
      size_t first = placeOfSum(number, pass.reductions.size(), index,
                                pass.streams, /*stream=*/0);
      join(op, ArrayRef(sums).slice(first, pass.streams));
    }
  });
}

/// Reads of what is stored go to the place of this row.
void RowEmitter::usePlaces() {
  for (const auto &[key, part] : places)
    if (key.second == row && done.contains(key.first))
      reader.setPart(key.first, part);
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
  bool hasFunctions = llvm::any_of(ops, [&](linalg::GenericOp op) {
    return isWhole(op->getResult(0)) && isExpensive(op->getResult(0));
  });
  unsigned number = 0;
  for (Pass pass; nextPass(pass); pass = Pass()) {
    pass.asksForNext = !block && number++ == 1;
    // Functions are enough operations by themselves.
    bool clashes = !pass.stored.empty() && rowsClash();
    pass.rows = hasFunctions || clashes ? 1 : count;
    for (row = 0; row < count; row += pass.rows)
      emitPass(pass);
    row = 0;
    done.insert(pass.stored.begin(), pass.stored.end());
    for (linalg::GenericOp op : pass.reductions)
      done.insert(op->getResult(0));
  }
  forEachRow(count, [&](unsigned) { emitSingles(); });
  for (const auto &[key, part] : places)
    reader.forgetPart(key.first);
  done = std::move(before);
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
    Position position(ArrayRef(point(0)).take_front(rows));
    position.resize(cast<RankedTensorType>(result.getType()).getRank(),
                    getAffineConstantExpr(0, b.getContext()));
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
  if (rows == 0)
    return kernel.emitOnce([&] { emitGroup(1); });
  OpBuilder::InsertionGuard guard(b);
  SmallVector<int64_t> turns;
  for (unsigned loop = 0; loop < rows; ++loop)
    turns.push_back(staticLoopExtent(whole, loop));
  std::optional<unsigned> shared = kernel.pickShared(turns);
  for (unsigned loop = 0; loop < rows; ++loop) {
    bool isInner = loop + 1 == rows;
    Value from = kernel.index(0), to = kernel.loopExtent(whole, loop);
    if (loop == shared)
      std::tie(from, to) = kernel.share(to, isInner ? rowsOfGroup() : 1);
    if (isInner)
      return shared ? emitGroups(from, to)
                    : kernel.emitOnce([&] { emitGroups(from, to); });
    auto nest = scf::ForOp::create(b, loc, from, to, kernel.index(1));
    reader.bind(loop, nest.getInductionVar());
    b.setInsertionPointToStart(nest.getBody());
  }
}

void RowEmitter::runBlock() {
  reader.setLane(loops - 1);
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
