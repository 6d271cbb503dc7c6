//===- CopyEmitter.cpp - loops that compute the elements of a box ---------===//
#include "codegen/cpu/CopyEmitter.h"
#include "codegen/cpu/Transposed.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

namespace {
class CopyEmitter {
public:
  CopyEmitter(Kernel &kernel, const Box &box, ArrayRef<Copy> copies,
              const VectorUnit &unit, std::optional<unsigned> axis)
      : kernel(kernel), b(kernel.builder()), loc(kernel.loc()), reader(kernel),
        box(box), copies(copies), unit(unit), lanes(unit.bits / 16),
        axis(axis) {
    for (const Copy &copy : copies)
      lanes = std::min(lanes, lanesOf(copy.source, unit));
    for (OpFoldResult size : box.sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    // A function is a chain of operations: those of some vectors side by side,
    // as many as there are registers for.
    unsigned fewChains = unit.registers / 8;
    if (!unit.littleCode && llvm::isPowerOf2_32(lanes) &&
        llvm::any_of(kernel.from().getOps<linalg::GenericOp>(), hasFunction))
      chains = fewChains;
  }

  void run();

private:
  static bool hasFunction(linalg::GenericOp op);
  bool canShareRows() const;
  bool isBesideAxis() const;
  void findTransposed();
  SmallVector<Access> accessesOfAll();
  void findInterleaved();
  void findRepeated();
  void emitLoops(unsigned dim);
  int64_t shareStep(unsigned dim);
  void alongLane();
  void askForRow();
  void copy(int64_t offset, unsigned width, unsigned down = 0);
  void forEachRepeat(llvm::function_ref<void(ArrayRef<int64_t>)> body);
  using Asked = SmallVector<std::pair<Value, Position>>;
  void prefetch(const Position &from, const Position &to, unsigned width,
                Asked &asked);
  int64_t lanesOfLine() const;
  void tiles(unsigned dim, llvm::function_ref<void(unsigned)> body);
  bool sharesSets() const;
  void transposedTiles();
  void transposedTile(unsigned height, unsigned first, unsigned width);
  void interleavedRows();
  void interleavedTile();
  Value load(const Access &access, unsigned number, unsigned height);
  Value size(unsigned dim) {
    return ShapedType::isDynamic(shape[dim]) ? cast<Value>(box.sizes[dim])
                                             : kernel.index(shape[dim]);
  }

  Kernel &kernel;
  OpBuilder &b;
  Location loc;
  LaneReader reader;
  const Box &box;
  ArrayRef<Copy> copies;
  const VectorUnit &unit;
  SmallVector<int64_t> shape;
  unsigned lanes;
  unsigned chains = 1; ///< vectors that are computed side by side
  std::optional<unsigned> lane, shared;
  Value endOfShare; ///< along the dimension `shared`
  std::optional<unsigned>
      axis; ///< that other parts of a whole are shared along
  /// What is contiguous along the dimension `row` instead of the lane.
  SmallVector<Access> transposed;
  unsigned row = 0;
  /// Whether there are few elements along the lane, and vectors go along the
  /// row in front of it.
  bool interleaves = false;
  /// Dimensions of few elements that are all made of the same vectors, which
  /// are read once for all of them: no loops.
  SmallVector<unsigned> repeated;
};
} // namespace

void CopyEmitter::run() {
  // The innermost dimension, unless its elements are not neighbours.
  auto whole = cast<MemRefType>(copies[0].destination.getType()).getShape();
  for (unsigned dim = shape.size(); dim-- > 0 && !lane;) {
    if (shape[dim] != 1)
      lane = dim;
    if (whole[dim] != 1)
      break;
  }
  reader.setLane(lane);
  findTransposed();
  findInterleaved();
  findRepeated();
  SmallVector<int64_t> turns;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    turns.push_back(ShapedType::isDynamic(shape[dim]) ? shape[dim]
                    : llvm::is_contained(repeated, dim)
                        ? 1
                        : llvm::divideCeil(shape[dim], shareStep(dim)));
  shared = canShareRows() ? 0 : kernel.pickShared(turns);
  if (shared && axis && !isBesideAxis())
    shared = axis;
  if (shared && !isBesideAxis())
    return emitLoops(0);
  // Beside the first part of the rest, or the last.
  shared.reset();
  bool first = isBesideAxis() && isZeroInteger(box.offsets[*axis]);
  kernel.emitOnce(
      [&] {
        LaneReader::Scope scope(reader);
        emitLoops(0);
      },
      first);
}

/// Whether computing an element takes a function that is many operations.
bool CopyEmitter::hasFunction(linalg::GenericOp op) {
  return llvm::any_of(*op.getBody(), [](Operation &inner) {
    return isa<math::MathDialect>(inner.getDialect()) &&
           !isa<math::AbsFOp, math::CopySignOp, math::SqrtOp, math::FmaOp>(
               inner);
  });
}

/// Whether the kernel is to be shared by rows, of which the box has all.
bool CopyEmitter::canShareRows() const {
  return kernel.sharedRows() != 0 && shape.size() > 1 && lane != 0 &&
         shape[0] == kernel.sharedRows() &&
         !((!transposed.empty() || interleaves) && row == 0);
}

/// Whether the box is as narrow along the axis as a border.
bool CopyEmitter::isBesideAxis() const {
  if (!axis || !kernel.hasParts())
    return false;
  auto whole = cast<MemRefType>(copies[0].destination.getType()).getShape();
  return !ShapedType::isDynamic(shape[*axis]) &&
         shape[*axis] < whole[*axis] / 2;
}

/// What all copies read, each once; nothing where their loops are not the axes
/// of what is made.
SmallVector<Access> CopyEmitter::accessesOfAll() {
  SmallVector<Access> accesses;
  for (const Copy &copy : copies) {
    auto op = copy.source.getDefiningOp<linalg::GenericOp>();
    if (!op || op.getNumReductionLoops() != 0 ||
        !op.getIndexingMapMatchingResult(cast<OpResult>(copy.source))
             .isIdentity())
      return {};
    for (const Access &access : accessesOf(kernel, op))
      if (llvm::none_of(accesses, [&](const Access &other) {
            return other.tensor == access.tensor &&
                   other.position == access.position;
          }))
        accesses.push_back(access);
  }
  return accesses;
}

/// Looks for dimensions that nothing that is read along the lane depends on, as
/// those of the pixels that an element of a gradient goes to. Each vector is
/// computed once for so many stores as there are registers for.
void CopyEmitter::findRepeated() {
  constexpr int64_t mostTogether = 9;
  if (!lane || !transposed.empty() || interleaves || unit.littleCode)
    return;
  SmallVector<Access> accesses = accessesOfAll();
  llvm::erase_if(
      accesses, [&](const Access &access) { return !access.dependsOn(*lane); });
  if (accesses.empty())
    return;
  int64_t together = 1;
  for (unsigned dim = *lane; dim-- > 0;) {
    bool isRepeated = shape[dim] > 1 && together * shape[dim] <= mostTogether &&
                      dim != axis && !(dim == 0 && kernel.sharedRows() != 0) &&
                      llvm::none_of(accesses, [&](const Access &access) {
                        return access.dependsOn(dim);
                      });
    if (!isRepeated)
      continue;
    together *= shape[dim];
    repeated.push_back(dim);
  }
  chains = std::max<int64_t>(chains / together, 1);
}

/// Looks for operands whose neighbours along the lane are far apart, and which
/// are contiguous along another dimension.
void CopyEmitter::findTransposed() {
  if (!lane || lanes < 4 || !llvm::isPowerOf2_32(lanes))
    return;
  for (const Access &access : accessesOfAll()) {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    if (laneAccess(type, access.position, *lane) != LaneAccess::Gather ||
        type.getElementType().isInteger(1))
      continue;
    for (unsigned dim = 0; dim < shape.size(); ++dim) {
      bool wide = dim != *lane && shape[dim] >= int64_t(lanes) &&
                  shape[*lane] >= int64_t(lanes);
      if (!wide || (!transposed.empty() && dim != row) ||
          laneAccess(type, access.position, dim) != LaneAccess::Contiguous)
        continue;
      row = dim;
      transposed.push_back(access);
      break;
    }
  }
}

/// Looks for few elements along the lane of which something is read that is
/// contiguous along the dimension in front of it, as the groups that a shuffle
/// of channels brings together, or the colours of an image: vectors go along
/// that dimension, one for each of the few, and become one run of what is made.
void CopyEmitter::findInterleaved() {
  constexpr int64_t most = 8;
  if (!lane || *lane == 0 || !transposed.empty() || unit.littleCode ||
      lanes < 4 || !llvm::isPowerOf2_32(lanes))
    return;
  unsigned along = *lane - 1;
  int64_t few = shape[*lane];
  if (few < 2 || few > most || shape[along] < int64_t(lanes) ||
      !isZeroInteger(box.offsets[*lane]))
    return;
  for (const Copy &copy : copies) {
    auto type = cast<MemRefType>(copy.destination.getType());
    auto op = copy.source.getDefiningOp<linalg::GenericOp>();
    if (!op || !op.getBody()->getOps<tensor::ExtractOp>().empty() ||
        !type.getLayout().isIdentity() || type.getDimSize(*lane) != few ||
        bytesOfElement(type) == 0)
      return;
  }
  bool gathers = false;
  for (const Access &access : accessesOfAll()) {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    if (laneAccess(type, access.position, along) == LaneAccess::Gather ||
        type.getElementType().isInteger(1) ||
        access.tensor.getDefiningOp<tensor::PadOp>())
      return;
    gathers |= laneAccess(type, access.position, *lane) == LaneAccess::Gather;
  }
  if (!gathers)
    return;
  interleaves = true;
  row = along;
}

/// Shares along the lane are of some whole vectors, a few cache lines.
int64_t CopyEmitter::shareStep(unsigned dim) {
  constexpr int64_t vectors = 16;
  if ((!transposed.empty() || interleaves) && dim == row)
    return lanes;
  if (!transposed.empty() && dim == lane)
    return lanesOfLine();
  return dim == lane ? vectors * lanes : 1;
}

void CopyEmitter::emitLoops(unsigned dim) {
  if (dim == shape.size() && !transposed.empty())
    return transposedTiles();
  if (dim == shape.size() && interleaves)
    return interleavedRows();
  if (dim == shape.size())
    return lane ? alongLane() : copy(0, 0);
  if (dim == lane || ((!transposed.empty() || interleaves) && dim == row) ||
      llvm::is_contained(repeated, dim))
    return emitLoops(dim + 1);
  LaneReader::Scope scope(reader);
  if (shape[dim] == 1) {
    reader.bind(dim, kernel.index(0));
    return emitLoops(dim + 1);
  }
  Value from = kernel.index(0), to = size(dim);
  if (dim == shared) {
    std::tie(from, to) =
        canShareRows() ? kernel.shareRows() : kernel.share(to, shareStep(dim));
    endOfShare = to;
  }
  emitLoop(b, loc, from, to, kernel.index(1), {}, [&](Value iv, ValueRange) {
    reader.bind(dim, iv);
    emitLoops(dim + 1);
    return SmallVector<Value>();
  });
}

/// Asks for what a later row gathers, as one of an embedding: nobody else knows
/// where that is.
void CopyEmitter::askForRow() {
  constexpr int64_t mostAhead = 16, mostBytes = 1 << 10, leastBytes = 1 << 20;
  constexpr int64_t leastOfRow = 256; // shorter ones are loaded together anyway
  std::optional<unsigned> outer;
  for (unsigned dim = 0; dim < *lane; ++dim)
    if (shape[dim] != 1 && !llvm::is_contained(repeated, dim))
      outer = dim;
  if (!outer || lane == shared || unit.littleCode || !transposed.empty() ||
      ShapedType::isDynamic(shape[*lane]))
    return;
  // For the first rows nobody has asked.
  int64_t ahead = mostAhead;
  if (!ShapedType::isDynamic(shape[*outer]))
    ahead = std::min<int64_t>(ahead, llvm::divideCeil(shape[*outer], 4));
  for (const Copy &copy : copies) {
    auto op = copy.source.getDefiningOp<linalg::GenericOp>();
    int64_t bytes =
        bytesOfElement(cast<MemRefType>(copy.destination.getType()));
    if (!op || op.getBody()->getOps<tensor::ExtractOp>().empty() ||
        shape[*lane] * bytes < leastOfRow || bytes == 0)
      continue;
    LaneReader::Scope scope(reader);
    Value row = reader.at(getAffineDimExpr(*outer, b.getContext()));
    Value end = outer == shared ? endOfShare : size(*outer);
    Value last = arith::SubIOp::create(b, loc, end, kernel.index(1));
    row = kernel.least(kernel.plus(row, kernel.index(ahead)), last);
    reader.bind(*outer, row);
    reader.bind(*lane, kernel.index(0));
    Position position;
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      position.push_back(shape[dim] == 1 || llvm::is_contained(repeated, dim)
                             ? getAffineConstantExpr(0, b.getContext())
                             : getAffineDimExpr(dim, b.getContext()));
    reader.askForExtracted(copy.source, position,
                           std::min(shape[*lane], mostBytes / bytes),
                           leastBytes);
  }
}

void CopyEmitter::alongLane() {
  askForRow();
  int64_t extent = shape[*lane];
  bool dynamic = ShapedType::isDynamic(extent);
  auto loop = [&](Value from, Value to, int64_t step, unsigned width) {
    emitLoop(b, loc, from, to, kernel.index(step), {},
             [&](Value iv, ValueRange) {
               LaneReader::Scope scope(reader);
               reader.bind(*lane, iv);
               copy(0, width);
               return SmallVector<Value>();
             });
  };
  int64_t several = int64_t(chains) * lanes;
  if (dynamic || lane == shared) {
    Value from = kernel.index(0), to = size(*lane);
    if (lane == shared)
      std::tie(from, to) = kernel.share(to, shareStep(*lane));
    // From a multiple of each step on, so that only the last share has a rest.
    auto upTo = [&](int64_t step) {
      Value width = kernel.index(step);
      Value end = arith::MulIOp::create(
          b, loc, arith::DivUIOp::create(b, loc, to, width), width);
      loop(from, end, step, step);
      from = arith::MaxUIOp::create(b, loc, from, end);
    };
    if (chains > 1)
      upTo(several);
    upTo(lanes);
    if (int64_t rest = dynamic ? 1 : extent % lanes)
      loop(from, to, rest, dynamic ? 0 : rest);
    return;
  }
  LaneReader::Scope scope(reader);
  int64_t done = 0;
  auto upTo = [&](int64_t step) {
    int64_t end = done + (extent - done) / step * step;
    if (end > done + step) {
      loop(kernel.index(done), kernel.index(end), step, step);
    } else if (end != done) {
      reader.bind(*lane, kernel.index(0));
      copy(done, step);
    }
    done = end;
  };
  if (chains > 1)
    upTo(several);
  upTo(lanes);
  reader.bind(*lane, kernel.index(0));
  if (extent != done)
    copy(done, extent - done);
}

/// Calls `body` with each place along the dimensions `repeated`.
void CopyEmitter::forEachRepeat(
    llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  int64_t number = 1;
  for (unsigned dim : repeated)
    number *= shape[dim];
  for (int64_t repeat = 0; repeat < number; ++repeat) {
    SmallVector<int64_t> place;
    int64_t rest = repeat;
    for (unsigned dim : repeated) {
      place.push_back(rest % shape[dim]);
      rest /= shape[dim];
    }
    body(place);
  }
}

/// The elements from the lane + offset on, of a row further down.
void CopyEmitter::copy(int64_t offset, unsigned width, unsigned down) {
  LaneReader::Scope scope(reader);
  SmallVector<Position> from, to;
  forEachRepeat([&](ArrayRef<int64_t> place) {
    Position &first = from.emplace_back(), &target = to.emplace_back();
    for (unsigned dim = 0; dim < shape.size(); ++dim) {
      AffineExpr expr = getAffineDimExpr(dim, b.getContext());
      auto *repeat = llvm::find(repeated, dim);
      if (repeat != repeated.end())
        expr = getAffineConstantExpr(place[repeat - repeated.begin()],
                                     b.getContext());
      else if (dim == lane)
        expr = expr + offset;
      else if (!transposed.empty() && dim == row)
        expr = expr + down;
      else if (!transposed.empty() && shape[dim] == 1)
        expr = getAffineConstantExpr(0, b.getContext()); // as in an Access
      first.push_back(expr);
      std::optional<int64_t> known = getConstantIntValue(box.offsets[dim]);
      AffineExpr shift = known ? getAffineConstantExpr(*known, b.getContext())
                               : reader.symbol(cast<Value>(box.offsets[dim]));
      target.push_back(canonical(first.back() + shift));
    }
  });
  // All are read before any is written, and share what they compute.
  SmallVector<Lanes> values;
  for (const Position &position : from)
    for (const Copy &copy : copies)
      values.push_back(isa<TensorType>(copy.source.getType())
                           ? reader.read(copy.source, position, width)
                           : Lanes{copy.source, {}});
  const Lanes *value = values.begin();
  for (const Position &position : to)
    for (const Copy &copy : copies)
      reader.write(*value++, copy.destination, position, width);
  Asked asked;
  for (auto [position, target] : llvm::zip_equal(from, to))
    prefetch(position, target, width, asked);
}

/// Asks for what is read and written some vectors behind `from` and `to`. A
/// store has to wait for its cache line as a load has, and those behind it wait
/// with it; loads of what fetches ahead by itself wait as well where an element
/// is many operations, or others use the same caches. Nearer memory is as fast
/// with it as without, and some machines are ahead by themselves.
void CopyEmitter::prefetch(const Position &from, const Position &to,
                           unsigned width, Asked &asked) {
  constexpr int64_t leastBytes = 128 << 10;
  constexpr int64_t bytesRead = 2 << 10, bytesWritten = 1 << 10;
  if (width == 0 || !lane || !transposed.empty() || unit.fetchesAhead)
    return;
  auto ask = [&](Value memref, ArrayRef<AffineExpr> place, bool isWrite) {
    auto type = cast<MemRefType>(memref.getType());
    int64_t bytes = bytesOfElement(type);
    std::pair<Value, Position> key(memref, place);
    if (bytes == 0 || llvm::is_contained(asked, key) ||
        laneAccess(type, place, *lane) != LaneAccess::Contiguous ||
        (type.hasStaticShape() && type.getNumElements() < leastBytes / bytes))
      return;
    asked.push_back(key);
    int64_t ahead = (isWrite ? bytesWritten : bytesRead) / bytes;
    reader.prefetch(memref, place, unsigned(ahead), width, isWrite);
  };
  for (const Copy &copy : copies) {
    ask(copy.destination, to, /*isWrite=*/true);
    if (Value memref = kernel.memrefOf(copy.source))
      ask(memref, from, /*isWrite=*/false);
    else if (auto op = copy.source.getDefiningOp<linalg::GenericOp>();
             op && op.getNumReductionLoops() == 0)
      for (const Access &access : accessesOf(kernel, op))
        if (Value memref = kernel.memrefOf(access.tensor))
          ask(memref, atPoint(access.position, from), /*isWrite=*/false);
  }
}

//===----------------------------------------------------------------------===//
// Transposed operands
//===----------------------------------------------------------------------===//

/// Elements along the lane that fill a cache line of each result: what is
/// written in part would go to a cache behind and come back for the other part.
int64_t CopyEmitter::lanesOfLine() const {
  constexpr int64_t line = 64;
  int64_t most = lanes;
  for (const Copy &copy : copies)
    if (int64_t bytes =
            bytesOfElement(cast<MemRefType>(copy.destination.getType())))
      most = std::max(most, line / bytes);
  return std::min(most, int64_t(2) * lanes);
}

/// Loops over `dim` in whole shares, then what is left of it.
void CopyEmitter::tiles(unsigned dim, llvm::function_ref<void(unsigned)> body) {
  int64_t extent = shape[dim], step = shareStep(dim);
  int64_t whole = extent / step * step;
  auto loop = [&](Value from, Value to, int64_t step) {
    emitLoop(b, loc, from, to, kernel.index(step), {},
             [&](Value iv, ValueRange) {
               LaneReader::Scope scope(reader);
               reader.bind(dim, iv);
               body(unsigned(step));
               return SmallVector<Value>();
             });
  };
  Value from = kernel.index(0), to = kernel.index(extent);
  Value end = kernel.index(whole), rest = end;
  if (dim == shared) {
    std::tie(from, to) = kernel.share(to, step);
    rest = arith::MaxUIOp::create(b, loc, from, end);
    end = arith::MinUIOp::create(b, loc, to, end);
  }
  if (whole != 0)
    loop(from, end, step);
  if (extent != whole)
    loop(rest, to, extent - whole);
}

/// Whether rows of a result, which are written in whole lines, are so far apart
/// that they share few sets of the first cache.
bool CopyEmitter::sharesSets() const {
  constexpr int64_t line = 64;
  return llvm::any_of(copies, [&](const Copy &copy) {
    auto type = cast<MemRefType>(copy.destination.getType());
    SmallVector<int64_t> strides;
    int64_t offset, bytes = bytesOfElement(type);
    return succeeded(type.getStridesAndOffset(strides, offset)) &&
           !ShapedType::isDynamic(strides[row]) &&
           lanesOfLine() * bytes >= line && shareFewSets(strides[row] * bytes);
  });
}

/// Loads wait for memory longer than stores do: they go in order. But where
/// stores to many rows want the ways of few sets at once, each takes the lines
/// of others before those are written.
void CopyEmitter::transposedTiles() {
  auto tile = [&](unsigned width, unsigned height) {
    for (unsigned first = 0; first < width; first += lanes)
      transposedTile(height, first, std::min(lanes, width - first));
  };
  if (sharesSets())
    return tiles(row, [&](unsigned height) {
      tiles(*lane, [&](unsigned width) { tile(width, height); });
    });
  tiles(*lane, [&](unsigned width) {
    tiles(row, [&](unsigned height) { tile(width, height); });
  });
}

/// `height` elements along the rows of what is `number` further along the lane;
/// a vector of `lanes`.
Value CopyEmitter::load(const Access &access, unsigned number,
                        unsigned height) {
  AffineExpr along = getAffineDimExpr(*lane, b.getContext());
  Position place;
  for (AffineExpr expr : access.position)
    place.push_back(canonical(expr.replace(along, along + number)));
  Value vector =
      reader.materialize(reader.read(access.tensor, place, height), height);
  if (height == lanes)
    return vector;
  auto type = VectorType::get(lanes, getElementTypeOrSelf(vector.getType()));
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return vector::InsertStridedSliceOp::create(
      b, loc, vector, zeros, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
}

/// `height` rows of `width` elements from the lane + `first` on: reads the
/// operands along the rows and transposes them in registers.
void CopyEmitter::transposedTile(unsigned height, unsigned first,
                                 unsigned width) {
  AffineExpr down = getAffineDimExpr(row, b.getContext());
  AffineExpr along = getAffineDimExpr(*lane, b.getContext());
  for (const Access &access : transposed) {
    reader.setLane(row);
    auto type =
        VectorType::get(lanes, getElementTypeOrSelf(access.tensor.getType()));
    Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    SmallVector<Value> rows(lanes, zeros);
    for (unsigned number = 0; number < width; ++number)
      rows[number] = load(access, first + number, height);
    rows = keratin::transposed(b, loc, std::move(rows));
    reader.setLane(lane);
    for (unsigned number = 0; number < height; ++number) {
      Position place;
      for (AffineExpr expr : access.position)
        place.push_back(canonical(
            expr.replace(down, down + number).replace(along, along + first)));
      Value column = rows[number];
      if (width != lanes)
        column = vector::ExtractStridedSliceOp::create(
            b, loc, column, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{width},
            ArrayRef<int64_t>{1});
      reader.remember(access.tensor, place, width, {column, {}});
    }
  }
  for (unsigned number = 0; number < height; ++number)
    copy(first, width, number);
}

//===----------------------------------------------------------------------===//
// Few elements along the lane
//===----------------------------------------------------------------------===//

/// Rows in whole vectors. What is left is a vector once more that begins within
/// the last one, where nobody else makes that and nothing is read that might be
/// written over; else row by row.
void CopyEmitter::interleavedRows() {
  bool twice = row != shared && accessesOfAll().size() == 1;
  int64_t extent = shape[row];
  tiles(row, [&](unsigned height) {
    if (height == lanes)
      return interleavedTile();
    if (twice) {
      LaneReader::Scope scope(reader);
      reader.bind(row, kernel.index(extent - lanes));
      return interleavedTile();
    }
    Value from = reader.at(getAffineDimExpr(row, b.getContext()));
    emitLoop(b, loc, from, kernel.plus(from, kernel.index(height)),
             kernel.index(1), {}, [&](Value iv, ValueRange) {
               LaneReader::Scope scope(reader);
               reader.bind(row, iv);
               alongLane();
               return SmallVector<Value>();
             });
  });
}

/// `parts` as one run in which an element of each comes in turn, in vectors.
static SmallVector<Value> interleaved(OpBuilder &b, Location loc,
                                      ArrayRef<Value> parts) {
  int64_t number = parts.size();
  int64_t lanes = cast<VectorType>(parts[0].getType()).getNumElements();
  SmallVector<Value> run;
  for (int64_t vector = 0; vector < number; ++vector) {
    Value joined = parts[0];
    for (int64_t part = 1; part < number; ++part) {
      SmallVector<int64_t> from;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t element = vector * lanes + lane;
        int64_t of = element % number, at = element / number;
        from.push_back(of == part             ? lanes + at
                       : part == 1 && of == 0 ? at
                                              : lane);
      }
      joined = vector::ShuffleOp::create(b, loc, joined, parts[part], from);
    }
    run.push_back(joined);
  }
  return run;
}

/// `lanes` rows of the few elements along the lane.
void CopyEmitter::interleavedTile() {
  LaneReader::Scope scope(reader);
  MLIRContext *context = b.getContext();
  int64_t few = shape[*lane];
  SmallVector<SmallVector<Value>> parts(copies.size());
  reader.setLane(row);
  for (int64_t number = 0; number < few; ++number) {
    Position position;
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      position.push_back(dim == lane ? getAffineConstantExpr(number, context)
                         : shape[dim] == 1 ? getAffineConstantExpr(0, context)
                                           : getAffineDimExpr(dim, context));
    for (auto [values, copy] : llvm::zip_equal(parts, copies))
      values.push_back(
          reader.materialize(reader.read(copy.source, position, lanes), lanes));
  }
  reader.setLane(lane);
  SmallVector<Value> place;
  for (unsigned dim = 0; dim <= row; ++dim) {
    Value at = shape[dim] == 1 ? kernel.index(0)
                               : reader.at(getAffineDimExpr(dim, context));
    if (!isZeroInteger(box.offsets[dim]))
      at = kernel.plus(
          at, getValueOrCreateConstantIndexOp(b, loc, box.offsets[dim]));
    place.push_back(at);
  }
  Value first = arith::MulIOp::create(b, loc, place.back(), kernel.index(few));
  SmallVector<ReassociationIndices> axes;
  for (unsigned dim = 0; dim < row; ++dim)
    axes.push_back({dim});
  auto &joined = axes.emplace_back();
  for (unsigned dim = row; dim < shape.size(); ++dim)
    joined.push_back(dim);
  for (auto [values, copy] : llvm::zip_equal(parts, copies)) {
    Value memref =
        memref::CollapseShapeOp::create(b, loc, copy.destination, axes);
    for (auto [number, vector] : llvm::enumerate(interleaved(b, loc, values))) {
      place.back() = kernel.plus(first, kernel.index(number * lanes));
      vector::StoreOp::create(b, loc, vector, memref, place);
    }
  }
}

void emitBox(Kernel &kernel, const Box &box, ArrayRef<Copy> copies,
             const VectorUnit &unit, std::optional<unsigned> axis) {
  if (llvm::none_of(box.sizes, isZeroInteger))
    CopyEmitter(kernel, box, copies, unit, axis).run();
}

} // namespace keratin
