//===- WindowCopies.cpp - what windows read, for a block of columns -------===//
//
// A tile of a wide window reads many lines, and in an image of many channels
// they are whole pixels apart: they share the ways of few sets of the first
// cache, so that each of them comes from the second one for each vector of each
// tile. A copy of the channels of one line, rows side by side with the border
// around them, is one run of memory, which the tiles of all its rows read.
// Weights are copied likewise.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Classifier.h"
#include "codegen/cpu/TileLoops.h"
#include "ir/UnrolledTaps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <utility>

using namespace mlir;

namespace keratin {

static constexpr int64_t lineBytes = 64;

static int64_t bytesOfElement(Value tensor) {
  return llvm::divideCeil(getElementTypeOrSelf(tensor).getIntOrFloatBitWidth(),
                          8);
}

//===----------------------------------------------------------------------===//
// Whether it pays
//===----------------------------------------------------------------------===//

/// The loop outside of the rows of a tile that the window moves along as well.
std::optional<unsigned> Classifier::outerLoopOfWindow() {
  if (tiling.outerRow)
    return tiling.outerRow;
  for (unsigned loop = root.getNumLoops(); loop-- > 0;) {
    if (isReduction(loop) || loop == tiling.lane || loop == tiling.row ||
        extent(loop) == 1)
      continue;
    for (const Access &access : accesses)
      for (AffineExpr expr : access.position)
        for (unsigned tap = 0; tap < root.getNumLoops(); ++tap)
          if (isReduction(tap) && expr.isFunctionOfDim(loop) &&
              expr.isFunctionOfDim(tap))
            return loop;
  }
  return std::nullopt;
}

/// Whether there is a border around what a window of many taps reads: only a
/// copy knows where.
bool Classifier::readsWideBorder() {
  int64_t taps = 1;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop)
    if (isReduction(loop))
      taps = llvm::SaturatingMultiply<uint64_t>(
          taps, extent(loop).value_or(INT32_MAX));
  return taps > mostUnrolledTaps &&
         llvm::any_of(root.getDpsInputs(), [](Value input) {
           return input.getDefiningOp<tensor::PadOp>() != nullptr;
         });
}

/// How many places along each dimension of `operand` are read in turns of the
/// reductions and of `turns`, of the lane `columns`. Null where they are not
/// side by side.
std::optional<SmallVector<int64_t>>
Classifier::extentsOfCopy(OpOperand &operand,
                          const llvm::DenseMap<unsigned, int64_t> &turns,
                          int64_t columns) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  SmallVector<int64_t> extents;
  AffineMap map = root.getMatchingIndexingMap(&operand);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (expr.isFunctionOfDim(tiling.lane)) {
      if (expr != getAffineDimExpr(tiling.lane, root.getContext()) ||
          type.isDynamicDim(dim))
        return std::nullopt;
      extents.push_back(std::min(columns, type.getDimSize(dim)));
      continue;
    }
    int64_t places = 1;
    for (auto [loop, number] : turns) {
      std::optional<int64_t> step = laneStep(expr, loop);
      if (!step || *step < 0)
        return std::nullopt;
      places += *step * (number - 1);
    }
    if (places > 1 && type.isDynamicDim(dim))
      return std::nullopt;
    extents.push_back(places > 1 ? std::min(places, type.getDimSize(dim)) : 1);
  }
  return extents;
}

/// Lines that come from the second cache for each vector of a result, where
/// tiles read images as they are: each line once for all vectors in it, and
/// those of a set beyond its ways for each vector, which waits for them.
double
Classifier::linesOfWindow(const llvm::DenseMap<unsigned, int64_t> &turns) {
  constexpr int64_t sets = 64, ways = 8;
  llvm::DenseMap<int64_t, int64_t> inSet;
  for (Access access : accesses) {
    if (auto pad = access.tensor.getDefiningOp<tensor::PadOp>())
      access.tensor = pad.getSource(); // whose rows are shorter
    SmallVector<int64_t> offsets = {0};
    for (auto [loop, number] : turns) {
      int64_t apart = bytesApart(access, loop);
      SmallVector<int64_t> before = std::exchange(offsets, {});
      for (int64_t turn = 0; turn < (access.dependsOn(loop) ? number : 1);
           ++turn)
        for (int64_t offset : before)
          offsets.push_back(offset + turn * apart);
    }
    llvm::DenseSet<int64_t> lines;
    for (int64_t offset : offsets)
      if (lines.insert(llvm::divideFloorSigned(offset, lineBytes)).second)
        ++inSet[llvm::mod(llvm::divideFloorSigned(offset, lineBytes), sets)];
  }
  double lines = 0;
  double ofVector =
      double(tiling.lanes * bytesOfElement(root->getResult(0))) / lineBytes;
  for (auto [set, number] : inSet)
    lines += double(number) * std::min(ofVector, 1.) +
             2. * double(std::max<int64_t>(number - ways, 0));
  return lines / double(tiling.size.rows * tiling.size.outerRows);
}

/// Cuts columns and the outer rows of a window in blocks for which what it
/// reads is copied, where that costs less than what it saves: the levels
/// outside of the rows.
bool Classifier::copyWindows() {
  constexpr int64_t mostBytes = 112 << 10;
  constexpr double gain = 2.75;
  bool hasBorder = readsWideBorder();
  if ((unit.littleCode && !hasBorder) || tiling.taps.empty() || !tiling.row ||
      tiling.reducesLanes || tiling.blocked || tiling.inBlocks() ||
      root.getNumResults() != 1)
    return false;
  std::optional<unsigned> outer = outerLoopOfWindow();
  std::optional<int64_t> columns = extent(tiling.lane);
  llvm::DenseMap<unsigned, int64_t> ofTile, inside;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    if (!isReduction(loop) && loop != tiling.row && loop != outer)
      continue;
    if (!extent(loop))
      return false;
    inside[loop] = ofTile[loop] = *extent(loop);
  }
  int64_t bytes = bytesOfElement(root->getResult(0));
  int64_t block = std::max<int64_t>(tiling.lanes, lineBytes / bytes);
  if (!columns || *columns <= block)
    return false;
  // Blocks are of whole tiles, which are wide where they have few rows.
  if (block % (int64_t(tiling.size.vectors) * tiling.lanes) != 0) {
    if (!hasBorder)
      return false;
    tiling.size.vectors = unsigned(block / tiling.lanes);
  }
  ofTile[*tiling.row] = tiling.size.rows;
  int64_t height = tiling.outerRow ? tiling.size.outerRows : 1;
  if (outer)
    ofTile[*outer] = height;

  // As many outer rows as there is room for, in blocks of about one size.
  auto copies = [&](int64_t rows, int64_t &most) -> std::optional<int64_t> {
    if (outer)
      inside[*outer] = std::min(rows, *extent(*outer));
    int64_t elements = 0;
    most = 0;
    tiling.windowCopies.clear();
    for (OpOperand *operand : root.getDpsInputOperands()) {
      if (!root.getMatchingIndexingMap(operand).isFunctionOfDim(tiling.lane))
        continue;
      auto extents = extentsOfCopy(*operand, inside, block);
      if (!extents || bytesOfElement(operand->get()) != bytes)
        return std::nullopt;
      int64_t places = 1, wide = 0;
      for (int64_t extent : *extents)
        places = llvm::SaturatingMultiply<uint64_t>(places, extent);
      AffineMap map = root.getMatchingIndexingMap(operand);
      for (auto [expr, extent] : llvm::zip_equal(map.getResults(), *extents))
        wide += extent > 1 && !expr.isFunctionOfDim(tiling.lane);
      if (wide == 0)
        continue;
      if (wide > int64_t(spareCoordinates) || places > mostBytes)
        return std::nullopt;
      tiling.windowCopies.push_back({operand, *extents});
      elements += places;
      most = std::max(most, places * bytes);
    }
    return elements;
  };
  int64_t rows = outer ? llvm::alignTo(*extent(*outer), height) : 1, most = 0;
  std::optional<int64_t> elements;
  for (int64_t blocks = 1;; ++blocks) {
    int64_t next = llvm::alignTo(llvm::divideCeil(rows, blocks), height);
    elements = copies(next, most);
    if (!elements || *elements * bytes <= mostBytes) {
      rows = next;
      break;
    }
    if (next == height)
      return tiling.windowCopies.clear(), false;
  }
  // A vector is read, which is a part of a line, and written.
  double vectors = elements ? double(*elements) / double(tiling.lanes) : 0;
  double results = double(rows * *extent(*tiling.row)) * double(block) /
                   double(tiling.lanes);
  double ofVector = double(tiling.lanes * bytes) / lineBytes;
  double cost = vectors / results * (1 + std::min(ofVector, 1.));
  if (!elements || tiling.windowCopies.empty() ||
      (!hasBorder && linesOfWindow(ofTile) < gain * cost))
    return tiling.windowCopies.clear(), false;

  auto &levels = tiling.levels;
  llvm::erase_if(
      levels, [&](const Tiling::Level &level) { return level.loop == outer; });
  levels.push_back({Tiling::Kind::Blocks, tiling.lane, block});
  if (outer)
    levels.push_back({Tiling::Kind::Blocks, *outer, rows});
  tiling.levelOfCopies = levels.size();
  if (outer)
    levels.push_back(
        {tiling.outerRow ? Tiling::Kind::Rows : Tiling::Kind::Single, *outer});
  return true;
}

//===----------------------------------------------------------------------===//
// Copying
//===----------------------------------------------------------------------===//

/// Copies what the tiles of these blocks read, and lets them read the copies.
void TileEmitter::copyWindows() {
  MLIRContext *context = b.getContext();
  for (auto [number, copy] : llvm::enumerate(tiling.windowCopies)) {
    Value tensor = copy.operand->get();
    if (number == windows.size()) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&kernel.to().front());
      SmallVector<int64_t> shape;
      AffineMap map = root.getMatchingIndexingMap(copy.operand);
      for (auto [expr, extent] :
           llvm::zip_equal(map.getResults(), copy.extents))
        if (extent > 1 && !expr.isFunctionOfDim(tiling.lane))
          shape.push_back(extent);
      shape.push_back(copy.extents[laneOf(map)]);
      windows.push_back(memref::AllocaOp::create(
          b, loc, MemRefType::get(shape, getElementTypeOrSelf(tensor)),
          b.getI64IntegerAttr(lineBytes)));
    }
    LaneReader::Part part = {windows[number], {}, {}};
    reader.forgetPart(tensor);
    {
      LaneReader::Scope scope(reader);
      AffineMap map = root.getMatchingIndexingMap(copy.operand);
      SmallVector<AffineExpr> first;
      for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
        AffineExpr expr = getAffineDimExpr(loop, context);
        if (auto around = blocksAround.find(loop); around != blocksAround.end())
          expr = reader.symbol(around->second.first);
        else if (loop == tiling.row || isReduction(loop))
          expr = getAffineConstantExpr(0, context);
        first.push_back(expr);
      }
      Position starts = atPoint(map.getResults(), first), position = starts;
      unsigned spare = root.getNumLoops(), lane = laneOf(map);
      for (auto [dim, extent] : llvm::enumerate(copy.extents))
        if (extent > 1 && dim != lane) {
          part.dims.push_back(dim);
          part.origins.push_back(starts[dim]);
          position[dim] = getAffineDimExpr(spare++, context);
        }
      part.dims.push_back(lane);
      part.origins.push_back(starts[lane]);
      position[lane] = getAffineDimExpr(tiling.lane, context);
      copyWindow(copy, part, position, 0);
    }
    reader.setPart(tensor, part);
  }
}

/// The dimension along which the lane goes.
unsigned TileEmitter::laneOf(AffineMap map) {
  unsigned dim = 0;
  while (!map.getResult(dim).isFunctionOfDim(tiling.lane))
    ++dim;
  return dim;
}

bool TileEmitter::isReduction(unsigned loop) {
  return root.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

/// Copies along the dimensions of `part` from `depth` on: what is before, in
/// and behind the middle of a pad by loops that know it.
void TileEmitter::copyWindow(const Tiling::WindowCopy &copy,
                             const LaneReader::Part &part,
                             ArrayRef<AffineExpr> position, size_t depth) {
  if (depth + 1 == part.dims.size())
    return copyColumns(copy, part, position);
  Value tensor = copy.operand->get();
  unsigned dim = part.dims[depth], loop = root.getNumLoops() + depth;
  int64_t size = cast<ShapedType>(tensor.getType()).getDimSize(dim);
  Value from = reader.at(part.origins[depth]);
  Value to = least(kernel.plus(from, kernel.index(copy.extents[dim])), size);
  auto copyPart = [&](int64_t first, int64_t end) {
    if (first == end)
      return;
    reader.setRange(loop, std::pair(first, end - 1));
    span(loop, most(from, kernel.index(first)), least(to, end), 1,
         [&] { copyWindow(copy, part, position, depth + 1); });
    reader.setRange(loop, std::nullopt);
  };
  auto pad = tensor.getDefiningOp<tensor::PadOp>();
  int64_t low = pad ? pad.getStaticLow()[dim] : 0;
  int64_t high = pad ? pad.getStaticHigh()[dim] : 0;
  copyPart(0, low);
  copyPart(low, size - high);
  copyPart(size - high, size);
}

void TileEmitter::copyColumns(const Tiling::WindowCopy &copy,
                              const LaneReader::Part &part,
                              ArrayRef<AffineExpr> position) {
  Value tensor = copy.operand->get();
  AffineExpr lane = getAffineDimExpr(tiling.lane, b.getContext());
  auto copyVector = [&](int64_t offset, unsigned width) {
    Position place;
    for (AffineExpr expr : position)
      place.push_back(canonical(expr.replace(lane, lane + offset)));
    reader.write(reader.read(tensor, place, width), part.memref,
                 part.place(place), width);
  };
  auto [from, to] = blocksAround[tiling.lane];
  int64_t lanes = tiling.lanes, block = copy.extents[part.dims.back()];
  int64_t extent = staticLoopExtent(root, tiling.lane), rest = extent % lanes;
  if (extent % block == 0 && rest == 0) {
    reader.bind(tiling.lane, from);
    for (int64_t offset = 0; offset < block; offset += lanes)
      copyVector(offset, lanes);
    return;
  }
  span(tiling.lane, from, least(to, extent - rest), lanes,
       [&] { copyVector(0, lanes); });
  if (rest != 0)
    span(tiling.lane, most(from, kernel.index(extent - rest)), to, rest,
         [&] { copyVector(0, rest); });
}

} // namespace keratin
