//===- WinogradForm.cpp - what is a sum over windows of 3x3 ---------------===//
#include "codegen/cpu/Winograd.h"
#include "ir/FloatProducts.h"

#include "llvm/Support/MathExtras.h"

#include <utility>

using namespace mlir;

namespace keratin {

namespace {
/// Reads a root as a WindowConv.
class WindowReader {
public:
  WindowReader(Kernel &kernel, linalg::GenericOp root)
      : kernel(kernel), root(root) {}

  std::optional<WindowConv> readConvolution();
  std::optional<WindowConv> readGradient();

private:
  bool isSumOfProducts();
  bool haveType(Type element);
  bool isOnePiece() const { return conv.tapRows == 3 && conv.tapColumns == 3; }
  bool readWeights();
  bool readImages(AffineMap map);
  bool readWindows(AffineMap map);
  bool readDepth(std::optional<unsigned> depth, std::optional<unsigned> tap);
  bool readInput();
  bool isReadInOrder(OpOperand *operand, unsigned lane);
  bool canBeCounted();
  std::optional<unsigned> loopAt(AffineMap map, unsigned position);
  int64_t extent(unsigned loop) { return staticLoopExtent(root, loop); }

  Kernel &kernel;
  linalg::GenericOp root;
  WindowConv conv;
};
} // namespace

std::optional<unsigned> WindowReader::loopAt(AffineMap map, unsigned position) {
  if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(position)))
    return dim.getPosition();
  return std::nullopt;
}

/// A sum of products of floats of one type, or of bf16, that starts at zero.
bool WindowReader::isSumOfProducts() {
  Type element = getElementTypeOrSelf(root.getResult(0));
  return isFloatProduct(root) && (element.isF32() || element.isF64()) &&
         startsFromZero(root) &&
         (haveType(element) ||
          (element.isF32() && onlyWidensFactors(root) &&
           haveType(BFloat16Type::get(root.getContext()))));
}

bool WindowReader::haveType(Type element) {
  return llvm::all_of(root.getDpsInputs(), [&](Value input) {
    return getElementTypeOrSelf(input) == element;
  });
}

/// [i, j, c, k] of windows of 3 x 3 or more, or [t, i, j, c, k].
bool WindowReader::readWindows(AffineMap map) {
  unsigned rank = map.getNumResults();
  if (rank < 4 || rank > 5 || !map.isProjectedPermutation())
    return false;
  conv.tapRow = *loopAt(map, rank - 4);
  conv.tapColumn = *loopAt(map, rank - 3);
  conv.channel = *loopAt(map, rank - 2);
  conv.filter = *loopAt(map, rank - 1);
  conv.tapDepth = rank == 5 ? loopAt(map, 0) : std::nullopt;
  conv.channels = extent(conv.channel);
  conv.filters = extent(conv.filter);
  conv.tapRows = extent(conv.tapRow);
  conv.tapColumns = extent(conv.tapColumn);
  // All pieces of a tile wait for products. Loops of one turn are not among the
  // coordinates of the emitters.
  constexpr int64_t mostPieces = 16;
  return std::min(conv.tapRows, conv.tapColumns) >= 3 &&
         std::max(conv.tapRows, conv.tapColumns) <= 3 * mostPieces &&
         conv.piecesDown() * conv.piecesAcross() <= mostPieces &&
         conv.channels > 1 && conv.filters > 1;
}

/// g[i, j, c, k]
bool WindowReader::readWeights() {
  for (OpOperand *operand : root.getDpsInputOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand->get());
    if (!argument || !argument.hasOneUse() ||
        !readWindows(root.getMatchingIndexingMap(operand)))
      continue;
    conv.factor = operand;
    conv.input = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    conv.hasKnownWeights =
        bool(kernel.from().getArgAttr(argument.getArgNumber(), "ktn.constant"));
    return conv.hasKnownWeights || isOnePiece();
  }
  return false;
}

/// [n, h, w, k], where k is known, or [n, d, h, w, k] with a window that has a
/// depth.
bool WindowReader::readImages(AffineMap map) {
  unsigned rank = map.getNumResults(), axes = conv.tapDepth ? 4 : 3;
  if (rank < axes || rank > axes + 1 || !map.isProjectedPermutation() ||
      root.getNumLoops() != rank + axes ||
      loopAt(map, rank - 1) != conv.filter ||
      map.isFunctionOfDim(conv.tapRow) || map.isFunctionOfDim(conv.tapColumn) ||
      map.isFunctionOfDim(conv.channel) ||
      (conv.tapDepth && map.isFunctionOfDim(*conv.tapDepth)))
    return false;
  conv.row = *loopAt(map, rank - 3);
  conv.column = *loopAt(map, rank - 2);
  conv.height = extent(conv.row);
  conv.width = extent(conv.column);
  if (conv.tapDepth &&
      !readDepth(loopAt(map, rank - 4), std::exchange(conv.tapDepth, {})))
    return false;
  conv.image = std::nullopt;
  conv.images = conv.depths;
  if (rank > axes && extent(*loopAt(map, 0)) != 1) {
    conv.image = loopAt(map, 0);
    int64_t known = extent(*conv.image);
    conv.images =
        ShapedType::isDynamic(known)
            ? std::nullopt
            : std::optional<int64_t>(
                  llvm::SaturatingMultiply<uint64_t>(known, conv.depths));
  }
  return conv.height > 1 && conv.width > 1 && conv.images.value_or(1) > 0;
}

/// The loops d and t, of which those of one turn are no coordinates.
bool WindowReader::readDepth(std::optional<unsigned> depth,
                             std::optional<unsigned> tap) {
  conv.depths = extent(*depth);
  conv.depthTaps = extent(*tap);
  constexpr int64_t mostTaps = 16;
  if (conv.depths < 1 || conv.depthTaps < 1 || conv.depthTaps > mostTaps)
    return false;
  conv.depth = conv.depths > 1 ? depth : std::nullopt;
  conv.tapDepth = conv.depthTaps > 1 ? tap : std::nullopt;
  return true;
}

/// x[n, z(d, t), h + i, w + j, c]
bool WindowReader::readInput() {
  AffineMap map = root.getMatchingIndexingMap(conv.input);
  auto type = cast<RankedTensorType>(conv.input->get().getType());
  MLIRContext *context = root.getContext();
  auto sum = [&](unsigned one, unsigned other) {
    return canonical(getAffineDimExpr(one, context) +
                     getAffineDimExpr(other, context));
  };
  unsigned seen = 0;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    if (canonical(expr) == sum(conv.row, conv.tapRow)) {
      conv.inputHeight = type.getDimSize(position);
      seen |= 1;
    } else if (canonical(expr) == sum(conv.column, conv.tapColumn)) {
      conv.inputWidth = type.getDimSize(position);
      seen |= 2;
    } else if (expr == getAffineDimExpr(conv.channel, context)) {
      seen |= 4;
    } else if (llvm::any_of(
                   ArrayRef{conv.row, conv.column, conv.filter, conv.tapRow,
                            conv.tapColumn, conv.channel},
                   [&](unsigned loop) { return expr.isFunctionOfDim(loop); })) {
      return false;
    }
  }
  return seen == 7 && conv.inputHeight >= conv.height + conv.tapRows - 1 &&
         conv.inputWidth >= conv.width + conv.tapColumns - 1;
}

/// Whether neighbours along `lane` are neighbours in memory.
bool WindowReader::isReadInOrder(OpOperand *operand, unsigned lane) {
  return llvm::none_of(accessesOf(kernel, root), [&](const Access &access) {
    return access.operand == operand &&
           laneAccess(cast<ShapedType>(access.tensor.getType()),
                      access.position, lane) == LaneAccess::Gather;
  });
}

/// Whether no cost overflows. What does not fit in memory is refused later.
bool WindowReader::canBeCounted() {
  constexpr double mostChannels = 1 << 24;
  constexpr double mostProducts = 1e15;
  double channels = double(conv.depthTaps) * double(conv.tapRows) *
                    double(conv.tapColumns) * double(conv.channels);
  double products = double(conv.images.value_or(conv.depths)) *
                    double(conv.height) * double(conv.width) * channels *
                    double(conv.filters);
  return std::max(channels, double(conv.filters)) <= mostChannels &&
         products <= mostProducts;
}

std::optional<WindowConv> WindowReader::readConvolution() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (isSumOfProducts() && readWeights() &&
      root.getNumReductionLoops() == (conv.tapDepth ? 4U : 3U) &&
      readImages(root.getMatchingIndexingMap(output)) && readInput() &&
      isReadInOrder(conv.input, conv.channel) && canBeCounted())
    return conv;
  return std::nullopt;
}

std::optional<WindowConv> WindowReader::readGradient() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (!isSumOfProducts() || root.getNumParallelLoops() != 4 ||
      !readWindows(root.getMatchingIndexingMap(output)) || conv.tapDepth ||
      !isOnePiece())
    return std::nullopt;
  conv.hasKnownWeights = false;
  for (OpOperand *operand : root.getDpsInputOperands()) {
    conv.factor = operand;
    conv.input = root.getDpsInputOperand(operand->getOperandNumber() == 0);
    if (readImages(root.getMatchingIndexingMap(operand)) && readInput() &&
        isReadInOrder(conv.input, conv.channel) &&
        isReadInOrder(conv.factor, conv.filter) && canBeCounted())
      return conv;
  }
  return std::nullopt;
}

std::optional<WindowConv> readConvolution(Kernel &kernel,
                                          linalg::GenericOp root) {
  return WindowReader(kernel, root).readConvolution();
}

std::optional<WindowConv> readWindowGradient(Kernel &kernel,
                                             linalg::GenericOp root) {
  return WindowReader(kernel, root).readGradient();
}

} // namespace keratin
