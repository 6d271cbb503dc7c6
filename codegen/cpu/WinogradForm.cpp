//===- WinogradForm.cpp - what is a sum over windows of 3x3 ---------------===//
#include "codegen/cpu/Winograd.h"
#include "ir/FloatProducts.h"

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
  bool readWeights();
  bool readImages(AffineMap map);
  bool readWindows(AffineMap map);
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

/// [i, j, c, k] of windows of 3 x 3.
bool WindowReader::readWindows(AffineMap map) {
  if (map.getNumResults() != 4 || !map.isProjectedPermutation())
    return false;
  conv.tapRow = *loopAt(map, 0);
  conv.tapColumn = *loopAt(map, 1);
  conv.channel = *loopAt(map, 2);
  conv.filter = *loopAt(map, 3);
  conv.channels = extent(conv.channel);
  conv.filters = extent(conv.filter);
  // Loops of one turn are not among the coordinates of the emitters.
  return extent(conv.tapRow) == 3 && extent(conv.tapColumn) == 3 &&
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
    return true;
  }
  return false;
}

/// [n, h, w, k], where k is known.
bool WindowReader::readImages(AffineMap map) {
  unsigned rank = map.getNumResults();
  if (rank < 3 || rank > 4 || !map.isProjectedPermutation() ||
      root.getNumLoops() != rank + 3 || loopAt(map, rank - 1) != conv.filter ||
      map.isFunctionOfDim(conv.tapRow) || map.isFunctionOfDim(conv.tapColumn) ||
      map.isFunctionOfDim(conv.channel))
    return false;
  conv.row = *loopAt(map, rank - 3);
  conv.column = *loopAt(map, rank - 2);
  conv.height = extent(conv.row);
  conv.width = extent(conv.column);
  conv.image = std::nullopt;
  conv.images = 1;
  if (rank == 4 && extent(*loopAt(map, 0)) != 1) {
    conv.image = loopAt(map, 0);
    int64_t known = extent(*conv.image);
    conv.images =
        ShapedType::isDynamic(known) ? std::nullopt : std::optional(known);
  }
  return conv.height > 1 && conv.width > 1 && conv.images.value_or(1) > 0;
}

/// x[n, h + i, w + j, c]
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
  return seen == 7 && conv.inputHeight >= conv.height + 2 &&
         conv.inputWidth >= conv.width + 2;
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
  constexpr int64_t mostChannels = 1 << 24;
  constexpr double mostProducts = 1e15;
  double products = double(conv.images.value_or(1)) * double(conv.height) *
                    double(conv.width) * double(conv.channels) *
                    double(conv.filters);
  return std::max(conv.channels, conv.filters) <= mostChannels &&
         products <= mostProducts;
}

std::optional<WindowConv> WindowReader::readConvolution() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (isSumOfProducts() && root.getNumReductionLoops() == 3 && readWeights() &&
      readImages(root.getMatchingIndexingMap(output)) && readInput() &&
      isReadInOrder(conv.input, conv.channel) && canBeCounted())
    return conv;
  return std::nullopt;
}

std::optional<WindowConv> WindowReader::readGradient() {
  OpOperand *output = root.getDpsInitOperand(0);
  if (!isSumOfProducts() || root.getNumParallelLoops() != 4 ||
      !readWindows(root.getMatchingIndexingMap(output)))
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
