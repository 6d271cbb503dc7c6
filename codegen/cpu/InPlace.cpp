//===- InPlace.cpp - what a kernel may be written over --------------------===//
#include "codegen/cpu/InPlace.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

namespace {
/// Follows the results of a kernel to the arguments that they are computed
/// from.
class Reads {
public:
  explicit Reads(linalg::GenericOp root) : root(root) {}

  /// Visits `tensor`, which is read at the position that is computed or, if not
  /// `same`, anywhere.
  void visit(Value tensor, bool same);

  /// Whether `argument` is read at the position that is computed alone.
  bool isInPlace(BlockArgument argument) const {
    return !elsewhere.contains(argument);
  }
  /// Whether the root is read at another position: then results that belong to
  /// one of its sums are at different ones.
  bool leavesRoot = false;

private:
  linalg::GenericOp root;
  llvm::DenseSet<std::pair<Operation *, unsigned>> seen;
  llvm::DenseSet<Value> elsewhere;
};
} // namespace

void Reads::visit(Value tensor, bool same) {
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    if (!same)
      elsewhere.insert(tensor);
    return;
  }
  if (!seen.insert({op, unsigned(same)}).second)
    return;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (op == root) {
    leavesRoot |= !same;
    same = false;
  }
  if (!generic) { // views, pads and what else reads an argument
    for (Value operand : op->getOperands())
      visit(operand, /*same=*/false);
    return;
  }
  for (Value result : op->getResults())
    same &= generic.getIndexingMapMatchingResult(cast<OpResult>(result))
                .isIdentity();
  for (OpOperand &operand : op->getOpOperands())
    if (!generic.getMatchingBlockArgument(&operand).use_empty())
      visit(operand.get(),
            same && generic.getMatchingIndexingMap(&operand).isIdentity());
  for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>())
    visit(extract.getTensor(), /*same=*/false);
}

void markInPlace(Kernel &kernel, linalg::GenericOp root, bool severalSums) {
  Reads reads(root);
  auto shape =
      cast<RankedTensorType>(kernel.results().front().getType()).getShape();
  for (Value result : kernel.results()) {
    if (!result.getDefiningOp<linalg::GenericOp>() ||
        cast<RankedTensorType>(result.getType()).getShape() != shape)
      return;
    reads.visit(result, /*same=*/true);
  }
  if ((reads.leavesRoot && !severalSums) || ShapedType::isDynamicShape(shape))
    return;
  func::FuncOp from = kernel.from();
  unsigned inputs = from.getNumArguments() - from.getNumResults();
  for (BlockArgument argument : from.getArguments().take_front(inputs)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getShape() == shape && reads.isInPlace(argument))
      kernel.to().setArgAttr(argument.getArgNumber(), "ktn.in_place",
                             kernel.builder().getUnitAttr());
  }
}

//===----------------------------------------------------------------------===//
// Behind the beginning
//===----------------------------------------------------------------------===//

std::optional<unsigned> loopOfBackwardTiles(linalg::GenericOp root,
                                            const Tiling &tiling) {
  if (tiling.taps.empty() || !tiling.windowCopies.empty())
    return std::nullopt;
  if (tiling.outerRow)
    return tiling.outerRow;
  std::optional<unsigned> outside;
  for (const Tiling::Level &level : tiling.levels) {
    if (level.loop == tiling.row || (outside && !tiling.row))
      break;
    if (level.kind == Tiling::Kind::Single &&
        staticLoopExtent(root, level.loop) != 1)
      outside = level.loop;
  }
  return outside;
}

namespace {
/// An axis of a dense tensor along which a loop goes, in front of which there
/// is nothing.
struct AxisOfLoop {
  unsigned axis;
  int64_t bytes; ///< from one index to the next
};
} // namespace

/// The outermost axis of `type` that has more than one index, if `loop` moves
/// `position` along it and along no other.
static std::optional<AxisOfLoop>
outermostAxis(MemRefType type, ArrayRef<AffineExpr> position, unsigned loop) {
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !type.getElementType().isIntOrFloat() || type.getNumElements() == 0)
    return std::nullopt;
  std::optional<AxisOfLoop> found;
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8) *
                  type.getNumElements();
  for (auto [axis, extent] : llvm::enumerate(type.getShape())) {
    bytes /= extent;
    if (!position[axis].isFunctionOfDim(loop)) {
      if (extent != 1 && !found)
        return std::nullopt;
      continue;
    }
    if (found)
      return std::nullopt;
    found = {unsigned(axis), bytes};
  }
  return found;
}

/// The argument that `access` reads around the border of a pad or as it is, if
/// it is read for nothing but the root.
static BlockArgument onlyReadBy(linalg::GenericOp root, const Access &access) {
  Value tensor = access.tensor;
  if (auto pad = tensor.getDefiningOp<tensor::PadOp>())
    tensor = pad.getSource();
  auto argument = dyn_cast<BlockArgument>(tensor);
  while (tensor.hasOneUse()) {
    Operation *user = *tensor.user_begin();
    if (user == root)
      return argument;
    if (!isa<tensor::PadOp, linalg::GenericOp>(user) ||
        user->getNumResults() != 1)
      break;
    tensor = user->getResult(0);
  }
  return {};
}

/// One past the last index along `axis` of what `access` reads when `loop` is
/// at most at `last`, the other loops anywhere.
static std::optional<int64_t> endOfRead(linalg::GenericOp root,
                                        const Access &access, unsigned axis,
                                        unsigned loop, int64_t last) {
  AffineExpr expr = access.position[axis];
  Position at;
  for (unsigned other = 0; other < root.getNumLoops(); ++other) {
    std::optional<int64_t> step = laneStep(expr, other);
    int64_t extent = staticLoopExtent(root, other);
    if (!step || *step < 0 || (other == loop && *step == 0))
      return std::nullopt;
    if (*step != 0 && ShapedType::isDynamic(extent))
      return std::nullopt;
    int64_t most = other == loop ? last : *step == 0 ? 0 : extent - 1;
    at.push_back(getAffineConstantExpr(most, root.getContext()));
  }
  auto end = dyn_cast<AffineConstantExpr>(canonical(expr.replaceDims(at)));
  if (!end)
    return std::nullopt;
  int64_t low = 0;
  if (auto pad = access.tensor.getDefiningOp<tensor::PadOp>())
    low = pad.getStaticLow()[axis];
  // Beside a border the nearest element is read.
  return std::max<int64_t>(end.getValue() + 1 - low, 1);
}

/// The first index that is written at `place` when `loop` is at `first` or
/// behind, the other loops anywhere.
static std::optional<int64_t> startOfWrite(linalg::GenericOp root,
                                           AffineExpr place, unsigned loop,
                                           int64_t first) {
  Position at;
  for (unsigned other = 0; other < root.getNumLoops(); ++other) {
    std::optional<int64_t> step = laneStep(place, other);
    if (!step || *step < 0)
      return std::nullopt;
    at.push_back(
        getAffineConstantExpr(other == loop ? first : 0, root.getContext()));
  }
  auto start = dyn_cast<AffineConstantExpr>(canonical(place.replaceDims(at)));
  if (!start)
    return std::nullopt;
  return start.getValue();
}

void markBehind(Kernel &kernel, linalg::GenericOp root, const Tiling &tiling,
                ArrayRef<Output> outputs) {
  std::optional<unsigned> loop = loopOfBackwardTiles(root, tiling);
  if (!loop || tiling.shared || tiling.panel || tiling.inBlocks() ||
      outputs.size() != 1 || kernel.results().size() != 1)
    return;
  // Nothing but the tiles of that loop is outside of a tile.
  for (const Tiling::Level &level : tiling.levels) {
    if (level.loop == *loop)
      break;
    if (staticLoopExtent(root, level.loop) != 1)
      return;
  }
  auto made = cast<MemRefType>(outputs[0].destination.getType());
  std::optional<AxisOfLoop> to = outermostAxis(made, outputs[0].place, *loop);
  if (!to)
    return;
  int64_t rows = staticLoopExtent(root, *loop);
  int64_t height = tiling.outerRow ? tiling.size.outerRows : 1;
  auto tiles = int64_t(llvm::divideCeil(rows, height));
  auto startOf = [&](int64_t tile) {
    return startOfWrite(root, outputs[0].place[to->axis], *loop, tile * height);
  };
  if (!startOf(0))
    return;
  for (const Access &access : accessesOf(kernel, root)) {
    BlockArgument argument = onlyReadBy(root, access);
    auto from =
        argument
            ? dyn_cast_or_null<MemRefType>(
                  kernel.to().getArgument(argument.getArgNumber()).getType())
            : MemRefType();
    std::optional<AxisOfLoop> read;
    if (from && !kernel.to().getArgAttr(argument.getArgNumber(), "ktn.packed"))
      read = outermostAxis(from, access.position, *loop);
    if (!read)
      continue;
    int64_t last = from.getDimSize(read->axis);
    auto endOf = [&](int64_t tile) {
      return endOfRead(root, access, read->axis, *loop,
                       std::min((tile + 1) * height, rows) - 1);
    };
    if (!endOf(0))
      continue;
    // What is read ends farther behind from tile to tile, up to the end of the
    // image; where it goes does so all the way. They are farthest apart where
    // one of the two begins or ends to move.
    auto all = llvm::seq<int64_t>(0, tiles);
    int64_t whole =
        llvm::partition_point(
            all, [&](int64_t tile) { return *endOf(tile) < last; }) -
        all.begin();
    int64_t behind = 0;
    for (int64_t tile : {int64_t(0), whole - 1, whole, tiles - 2, tiles - 1})
      if (tile >= 0 && tile < tiles)
        behind = std::max(behind, std::min(*endOf(tile), last) * read->bytes -
                                      *startOf(tile) * to->bytes);
    kernel.to().setArgAttr(argument.getArgNumber(), "ktn.behind",
                           kernel.builder().getI64IntegerAttr(behind));
  }
}

} // namespace keratin
