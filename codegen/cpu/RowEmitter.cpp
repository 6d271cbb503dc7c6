//===- RowEmitter.cpp - kernels computed row by row -----------------------===//
//
// A row is read in passes: each computes all reductions whose operands are
// known by then, with a few vectors of partial results; the last stores the
// results. Elementwise values are computed in each pass that reads them, but
// those that are expensive and read again are kept in a scratch row, which
// stays in the first cache.
//
// What a row ends a pass with is a chain: the lanes of a sum are joined, and a
// quotient or a root may follow. So some short rows go through a pass one after
// the other before the first of them begins with the next.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/RowEmitter.h"

#include "codegen/cpu/LaneReader.h"
#include "codegen/cpu/Reductions.h"
#include "codegen/cpu/Roles.h"
#include "codegen/cpu/TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace keratin {

namespace {

class RowEmitter {
public:
  RowEmitter(Kernel &kernel, const VectorUnit &unit)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        unit(unit), ops(kernel.from().getOps<linalg::GenericOp>()),
        results(kernel.results()) {}
  RowEmitter(Kernel &kernel, const VectorUnit &unit, const RowBlock &block)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        unit(unit), ops(block.ops), results({block.result}), block(&block) {
    done.insert(block.given);
    for (const auto &[value, memory] : block.kept)
      results.push_back(value);
  }

  bool matches();
  void run();
  void runBlock();

private:
  using Sums = SmallVector<Value>;
  /// What one reading of the row computes.
  struct Pass {
    SmallVector<linalg::GenericOp> reductions;
    llvm::SmallSetVector<Value, 4> stored;
    unsigned streams = 1; ///< vectors of partial results of each reduction
    unsigned width = 1;   ///< lanes of each, one or more vectors of the machine
    bool asksForNext = false; ///< while this row is at hand
  };

  bool isReduction(Operation *op) const {
    auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
    return generic && generic.getNumReductionLoops() != 0;
  }
  bool hasExtents(linalg::GenericOp op, ArrayRef<int64_t> expected);
  bool isWhole(Value value);
  bool leadsToRow(linalg::GenericOp op, AffineMap map);
  bool fits(linalg::GenericOp op);
  void forEachOperand(linalg::GenericOp op,
                      llvm::function_ref<void(Value)> visit);
  bool isKnown(Value value);
  bool isExpensive(Value value);
  bool computesExpensive(Value value);
  unsigned usesInRow(Value value);
  void collectStored(Value value, Pass &pass);

  unsigned rowsOfGroup();
  unsigned rowLoop() const { return block ? block->axis : rows - 1; }
  void emitGroups(Value from, Value to);
  void emitGroup(unsigned count);
  void emitSingles();
  bool nextPass(Pass &pass);
  void emitPass(const Pass &pass);
  void usePlaces();
  Sums trailingLoops(const Pass &pass, unsigned loop, Sums sums);
  Sums alongLane(const Pass &pass, Sums sums);
  Sums turn(const Pass &pass, ValueRange sums, int64_t offset, unsigned width);
  void rest(const Pass &pass, Sums &sums, int64_t left);
  void prefetchRow(const Position &point, unsigned width);
  LaneReader::Part memoryFor(Value value);
  LaneReader::Part inPanel();
  LaneReader::Part perRow(Value memory);
  int64_t length() const;
  bool takesPlaceOfGiven(Value value);
  Position point(int64_t offset);

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  const VectorUnit &unit;
  SmallVector<linalg::GenericOp> ops;
  SmallVector<Value> results;
  const RowBlock *block = nullptr;
  unsigned rows = 0, loops = 0, lanes = 0;
  SmallVector<int64_t> extents; ///< of the row
  linalg::GenericOp whole;      ///< one with all the loops
  llvm::DenseSet<Value> done;   ///< reductions and stored values
  unsigned group = 1;           ///< rows that go side by side
  unsigned row = 0;             ///< of the group, that is emitted
  /// Of the stored values, for each row of a group.
  llvm::DenseMap<std::pair<Value, unsigned>, LaneReader::Part> places;
};

} // namespace

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

/// Whether the loops of `op` beyond the rows are `extents`; those of a value
/// that there is one of in a row have one turn.
bool RowEmitter::hasExtents(linalg::GenericOp op, ArrayRef<int64_t> expected) {
  if (!expected.empty() && op.getNumLoops() != loops)
    return false;
  for (unsigned loop = rows; loop < op.getNumLoops(); ++loop)
    if (staticLoopExtent(op, loop) !=
        (expected.empty() ? 1 : expected[loop - rows]))
      return false;
  return true;
}

bool RowEmitter::isWhole(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  return op && !isReduction(op) && hasExtents(op, extents);
}

/// Whether `map` leads to the row that the first loops of `op` are at: those,
/// and zeros, or a loop of one turn of an op that is computed once a row.
bool RowEmitter::leadsToRow(linalg::GenericOp op, AffineMap map) {
  bool oncePerRow = hasExtents(op, {});
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool own =
        dim && (position < rows ? dim.getPosition() == position
                                : dim.getPosition() >= rows && oncePerRow);
    bool zero = position >= rows && isa<AffineConstantExpr>(expr);
    if (!own && !zero)
      return false;
  }
  return map.getNumResults() >= rows;
}

bool RowEmitter::fits(linalg::GenericOp op) {
  if (op->getNumResults() != 1 || !isVectorizable(op) ||
      op.getNumLoops() < rows)
    return false;
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
    if (!kernel.memrefOf(extract.getTensor()))
      return false;
  bool reduces = isReduction(op), whole = hasExtents(op, extents);
  if (!whole && (reduces || !hasExtents(op, {})))
    return false;
  for (auto [loop, type] : llvm::enumerate(op.getIteratorTypesArray()))
    if ((type == utils::IteratorType::reduction) != (reduces && loop >= rows))
      return false;
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (reduces ? !leadsToRow(op, output) : !output.isIdentity())
    return false;
  // Values of the kernel are read in their own row.
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    Value value = input->get();
    if (!value.getDefiningOp<linalg::GenericOp>())
      return true;
    AffineMap map = op.getMatchingIndexingMap(input);
    if (block && value == block->given)
      return whole && map.isIdentity();
    return isWhole(value) ? whole && map.isIdentity() : leadsToRow(op, map);
  });
}

bool RowEmitter::matches() {
  for (linalg::GenericOp op : ops)
    if (isReduction(op) && !whole)
      whole = op;
  if (!whole)
    return false;
  rows = whole.getNumParallelLoops();
  loops = whole.getNumLoops();
  for (unsigned loop = rows; loop < loops; ++loop) {
    extents.push_back(staticLoopExtent(whole, loop));
    if (extents.back() <= 0) // nothing to read, or of unknown length
      return false;
  }
  // A row of one element and the values of a row are not to be told apart.
  if (llvm::all_of(extents, [](int64_t extent) { return extent == 1; }))
    return false;
  lanes = unit.bits / 16;
  for (linalg::GenericOp generic : ops) {
    if (!fits(generic))
      return false;
    lanes = std::min(lanes, lanesOf(generic->getResult(0), unit));
    // Without a way to join partial results there is one.
    if (isReduction(generic) && !Combiner::of(generic, 0))
      return false;
  }
  lanes = std::min<uint64_t>(lanes, llvm::bit_floor(uint64_t(extents.back())));
  // Each is stored to one destination.
  llvm::SmallDenseSet<Value, 4> seen;
  return llvm::all_of(results, [&](Value result) {
    return result.getDefiningOp<linalg::GenericOp>() &&
           seen.insert(result).second;
  });
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void RowEmitter::forEachOperand(linalg::GenericOp op,
                                llvm::function_ref<void(Value)> visit) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getDefiningOp<linalg::GenericOp>() &&
        !op.getMatchingBlockArgument(&operand).use_empty())
      visit(operand.get());
}

/// Whether `value` can be computed from what earlier passes have left.
bool RowEmitter::isKnown(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value))
    return true;
  if (isReduction(op))
    return false;
  bool known = true;
  forEachOperand(op, [&](Value operand) { known &= isKnown(operand); });
  return known;
}

/// Whether an elementwise value is worth keeping when it is read again.
bool RowEmitter::isExpensive(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  return op && !isReduction(op) &&
         llvm::any_of(*op.getBody(), [](Operation &inner) {
           return isa<math::MathDialect>(inner.getDialect()) &&
                  !isa<math::AbsFOp, math::CopySignOp>(inner);
         });
}

bool RowEmitter::computesExpensive(Value value) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value) || !isWhole(value))
    return false;
  bool expensive = isExpensive(value);
  forEachOperand(
      op, [&](Value operand) { expensive |= computesExpensive(operand); });
  return expensive;
}

/// How often passes read the row `value`; a chain of elementwise ops is read
/// by each pass that reads its end.
unsigned RowEmitter::usesInRow(Value value) {
  unsigned uses = 0;
  for (OpOperand &use : value.getUses()) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!user || isReduction(user))
      ++uses;
    else if (!user.getMatchingBlockArgument(&use).use_empty())
      uses += usesInRow(user->getResult(0));
  }
  return uses;
}

/// The values under `value` that this pass is to keep.
void RowEmitter::collectStored(Value value, Pass &pass) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || done.contains(value) || isReduction(op) || !isWhole(value))
    return;
  forEachOperand(op, [&](Value operand) { collectStored(operand, pass); });
  if (isExpensive(value) && usesInRow(value) > 1)
    pass.stored.insert(value);
}

/// The next pass; false when all is done.
bool RowEmitter::nextPass(Pass &pass) {
  bool left = false;
  for (linalg::GenericOp op : ops) {
    if (!isReduction(op) || done.contains(op->getResult(0)))
      continue;
    left = true;
    bool known = true;
    forEachOperand(op, [&](Value operand) { known &= isKnown(operand); });
    if (known)
      pass.reductions.push_back(op);
  }
  bool expensive = false;
  for (linalg::GenericOp op : pass.reductions)
    forEachOperand(op, [&](Value operand) {
      expensive |= computesExpensive(operand);
      collectStored(operand, pass);
    });
  for (Value result : results)
    if (!left && isWhole(result) && !done.contains(result)) {
      collectStored(result, pass);
      pass.stored.insert(result);
    }
  // Long bodies hide the latency of the sums by themselves, and that of their
  // own chains where those of several vectors go side by side.
  constexpr uint64_t most = 4;
  auto vectors = llvm::divideCeil(uint64_t(length()), lanes);
  unsigned chains =
      expensive && llvm::isPowerOf2_32(lanes)
          ? std::clamp<uint64_t>(llvm::bit_floor(vectors), 1, most)
          : 1;
  pass.width = chains * lanes;
  pass.streams = expensive ? 1 : std::clamp<uint64_t>(vectors, 1, most);
  return !pass.reductions.empty() || !pass.stored.empty();
}

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

/// Asks for what is read and written at `point` of the next row.
void RowEmitter::prefetchRow(const Position &point, unsigned width) {
  constexpr unsigned line = 64;
  llvm::SmallDenseSet<std::pair<Value, AffineMap>> seen;
  auto ask = [&](Value memref, AffineMap map, bool isWrite) {
    auto type = cast<MemRefType>(memref.getType());
    unsigned bits = type.getElementTypeBitWidth();
    if (bits < 8 || !map.isProjectedPermutation() ||
        !map.isFunctionOfDim(rows - 1) || !map.isFunctionOfDim(loops - 1) ||
        !seen.insert({memref, map}).second)
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
    prefetchRow(position, width);
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

/// The sums of `stream` of all reductions.
static SmallVector<Value> ofStream(ArrayRef<Value> sums, unsigned streams,
                                   unsigned stream) {
  SmallVector<Value> some;
  for (size_t number = stream; number < sums.size(); number += streams)
    some.push_back(sums[number]);
  return some;
}

/// The end of the row, which is less than a turn of the loop.
void RowEmitter::rest(const Pass &pass, Sums &sums, int64_t left) {
  auto identities = [&](unsigned width) {
    Sums values;
    for (linalg::GenericOp op : pass.reductions)
      values.push_back(Combiner::of(op, 0)->identity(b, width));
    return values;
  };
  for (unsigned stream = 0; stream < pass.streams; ++stream) {
    int64_t first = int64_t(stream) * pass.width;
    int64_t count = std::min<int64_t>(pass.width, left - first);
    if (count <= 0)
      return;
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
    for (auto [number, op] : llvm::enumerate(pass.reductions)) {
      Value &sum = sums[number * pass.streams + stream];
      sum = Combiner::of(op, 0)->join(b, sum, added[number]);
    }
  }
}

RowEmitter::Sums RowEmitter::alongLane(const Pass &pass, Sums sums) {
  int64_t extent = length(), step = int64_t(pass.width) * pass.streams;
  int64_t whole = extent / step * step;
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
    for (unsigned stream = 0; stream < pass.streams; ++stream) {
      Sums next = turn(pass, ofStream(sums, pass.streams, stream),
                       int64_t(stream) * pass.width, pass.width);
      for (auto [number, sum] : llvm::enumerate(next))
        sums[number * pass.streams + stream] = sum;
    }
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

void RowEmitter::emitPass(const Pass &pass) {
  Sums sums;
  for (linalg::GenericOp op : pass.reductions)
    sums.append(pass.streams, Combiner::of(op, 0)->identity(b, pass.width));
  for (Value value : pass.stored)
    if (!places.contains({value, row}))
      places[{value, row}] = memoryFor(value);
  sums = trailingLoops(pass, rows, std::move(sums));

  for (auto [number, reduction] : llvm::enumerate(pass.reductions)) {
    linalg::GenericOp op = reduction;
    Combiner combiner = *Combiner::of(op, 0);
    ArrayRef<Value> parts =
        ArrayRef(sums).slice(number * pass.streams, pass.streams);
    Value total =
        combiner.joinLanes(b, combiner.joinAll(b, SmallVector<Value>(parts)));
    OpOperand *init = op.getDpsInitOperand(0);
    Position position =
        atPoint(op.getMatchingIndexingMap(init).getResults(), point(0));
    Lanes start = reader.read(init->get(), position, 0);
    total = combiner.join(b, reader.materialize(start, 0), total);
    reader.remember(op->getResult(0), position, 0, {total, {}});
  }
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
  unsigned count = vectors <= 8 ? 4 : vectors <= 64 ? 2 : 1;
  int64_t known = staticLoopExtent(whole, rowLoop());
  while (!ShapedType::isDynamic(known) && count > known)
    count /= 2;
  return std::max(count, 1U);
}

/// The passes of the `count` rows from the bound one on.
void RowEmitter::emitGroup(unsigned count) {
  LaneReader::Scope scope(reader);
  llvm::DenseSet<Value> before = done;
  auto forEachRow = [&](llvm::function_ref<void()> body) {
    for (row = 0; row < count; ++row)
      body();
    row = 0;
  };
  unsigned number = 0;
  for (Pass pass; nextPass(pass); pass = Pass()) {
    pass.asksForNext = !block && number++ == 1;
    forEachRow([&] {
      usePlaces();
      emitPass(pass);
    });
    done.insert(pass.stored.begin(), pass.stored.end());
    for (linalg::GenericOp op : pass.reductions)
      done.insert(op->getResult(0));
  }
  forEachRow([&] {
    usePlaces();
    emitSingles();
  });
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
